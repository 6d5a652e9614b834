// SPDX-License-Identifier: GPL-2.0-only
//! What differs from node to node and from time to time: where jobs are, how many compete with them, when they come and
//! go, how clocks and the fair order stand at the start, which nodes have another policy.

use super::Setup;
use crate::random::Random;

/// A piece of the arrival rule `beat` that can be left out, to see what it is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Piece {
    /// A message that comes preempts nobody.
    Demand,
    /// Clocks are as each node has them.
    Clock,
    /// Each node draws by its own weights.
    Share,
    /// Jobs draw in the order of their names.
    Size,
    /// A job draws though one of its nodes does not.
    Astray,
}

/// What is uneven.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Uneven {
    /// How many more competitors a node may have: uniform, from none on.
    pub competitors_more: u32,
    /// Each job is on so many nodes or more, side by side, anywhere; 0: all jobs are on all nodes.
    pub nodes_least: u32,
    /// How long a job stays, and how long it is away, in ns, in the mean; uniform from half of that. 0: all stay.
    pub stay_ns: u64,
    /// By how much the clocks of the nodes go too fast, at most, in parts per million: uniform.
    pub drift_ppm: f64,
    /// By how much tasks are ahead of the fair order at the start, at most, in ns: uniform.
    pub lead_ns: u64,
    /// At the start each CPU is amid a slice, anywhere in it. Otherwise slices begin on all at once.
    pub amid_slices: bool,
    /// Of so many nodes one has the other policy; 0: the first one alone.
    pub mistuned_every: u32,
    /// Of the looks at a task that polls, so many find it outside of its receive, and learn nothing: 0 to 1.
    pub looks_in_vain: f64,
    /// How often a kernel thread takes a CPU for a moment, in ns, in the mean: at random. 0: never.
    pub kernel_thread_ns: u64,
    /// What is left out of `beat`.
    pub without: Vec<Piece>,
}

/// Where a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Its first node; the others follow, and node 0 the last one.
    pub first: u32,
    /// How many.
    pub nodes: u32,
    /// It has come and not gone.
    pub is_here: bool,
}

impl Span {
    /// Which of its nodes this is, if it is one.
    pub fn index(&self, node: u32, all: u32) -> Option<u32> {
        let index = (node + all - self.first) % all;
        (index < self.nodes).then_some(index)
    }
}

/// Where each job is, under this seed.
pub fn spans(setup: &Setup, seed: u64) -> Vec<Span> {
    let mut random = Random::new(seed, u64::MAX - 1);
    let span = |_| {
        let least = match setup.uneven.nodes_least {
            0 => setup.nodes,
            least => least.min(setup.nodes),
        };
        let nodes = least + random.below(u64::from(setup.nodes - least) + 1) as u32;
        let first = if nodes == setup.nodes { 0 } else { random.below(u64::from(setup.nodes)) as u32 };
        Span { first, nodes, is_here: true }
    };
    (0..setup.jobs).map(span).collect()
}

/// How many competitors this node has, under this seed.
pub fn competitors(setup: &Setup, seed: u64, node: u32) -> u32 {
    setup.competitors
        + Random::new(seed, (1 << 63) | u64::from(node)).below(u64::from(setup.uneven.competitors_more) + 1) as u32
}
