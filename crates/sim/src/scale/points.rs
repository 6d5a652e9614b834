// SPDX-License-Identifier: GPL-2.0-only
//! The points of the figures: each a load on some nodes, run several times, all of them on all CPUs.

use rayon::prelude::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::How;
use crate::progress::progress;
use crate::report::run_seed;
use crate::report::shared::policy;
use crate::shared::messages::Messages;
use crate::shared::program::{Pattern, Program, Receiver};
use crate::shared::uneven::Uneven;
use crate::shared::{self, Costs, Faults, Outcome, Setup};
use crate::stats::Estimate;
use cosched_rules::costs;

/// As the loader assumes of a machine that cannot be measured.
const COSTS: costs::Costs = costs::Costs::ASSUMED;
/// g, in ns, and v as a share of it.
const GRAIN_NS: u64 = 5_000_000;
const IMBALANCE: f64 = 0.1;
const MS: u64 = 1_000_000;

/// In which curve, and where in it.
pub struct Cell {
    /// In which of the graphs.
    pub panel: &'static str,
    /// In which of the curves.
    pub series: String,
    /// Where on the x axis.
    pub x: f64,
    /// What is run.
    pub setup: Setup,
}

/// A cell, and what came out.
pub struct Ran {
    /// What was run.
    pub cell: Cell,
    /// Each run of it.
    pub outcomes: Vec<Outcome>,
    /// What a job makes alone.
    pub alone_per_s: f64,
}

impl Ran {
    /// The mean of the runs.
    pub fn estimate(&self, of: impl Fn(&Outcome) -> f64) -> Estimate {
        Estimate::of(&self.outcomes.iter().map(of).collect::<Vec<_>>())
    }

    /// How much slower than at a fair share of all nodes at the same time.
    pub fn slowdown(&self) -> Estimate {
        self.estimate(|outcome| self.cell.setup.slowdown(outcome, self.alone_per_s))
    }
}

/// For how long a run is measured, and how long it runs before, in ns: less on more nodes, of which each run has as
/// many samples as many runs of few.
fn lengths_ns(nodes: u32) -> (u64, u64) {
    match nodes {
        0..=256 => (8000 * MS, 1000 * MS),
        257..=2048 => (3000 * MS, 1000 * MS),
        2049..=16_384 => (1000 * MS, 500 * MS),
        _ => (400 * MS, 200 * MS),
    }
}

/// Some jobs and competitors under a policy, on machines as [`COSTS`] has them.
pub fn load(name: &str, pattern: Pattern, nodes: u32, tasks: (u32, u32)) -> Setup {
    let (length_ns, warmup_ns) = lengths_ns(nodes);
    let us = |us: f64| (us * 1000.0) as u64;
    Setup {
        nodes,
        cpus: 1,
        jobs: tasks.0,
        ranks: 1,
        competitors: tasks.1,
        program: Program {
            pattern,
            receiver: Receiver::Spin,
            grain_ns: GRAIN_NS,
            imbalance_ns: (GRAIN_NS as f64 * IMBALANCE) as u64,
        },
        policy: policy_of(name, tasks),
        is_eevdf: false,
        first: None,
        costs: Costs {
            latency_ns: us(COSTS.latency_us),
            overhead_ns: us(COSTS.overhead_us),
            switch_ns: us(COSTS.switch_us),
            idle_switch_ns: us(COSTS.switch_us),
        },
        faults: Faults { loss: 0.0, resend_ns: 200 * MS, skew_ns: 0 },
        uneven: Uneven::default(),
        messages: Messages::default(),
        tick_ns: 4 * MS,
        aligned: false,
        warmup_ns,
        length_ns,
    }
}

/// The policy by this name on nodes with these jobs and competitors.
pub fn policy_of(name: &str, tasks: (u32, u32)) -> cosched_rules::intf::cosched_policy {
    policy("policy", name, tasks.0 + tasks.1, &COSTS).expect("it is a preset with changes that it takes")
}

/// Runs all cells, as often as asked for, on all CPUs. The largest come first, so that none is alone at the end.
pub fn run(name: &str, cells: Vec<Cell>, how: &How) -> Vec<Ran> {
    let runs_of = |cell: &Cell| if cell.setup.nodes > 2048 { 1 } else { how.runs };
    let mut each: Vec<(usize, u32)> = Vec::new();
    for (index, cell) in cells.iter().enumerate() {
        each.extend((0..runs_of(cell)).map(|run| (index, run)));
    }
    each.sort_by_key(|(index, _)| std::cmp::Reverse(cells[*index].setup.nodes));
    let bar = progress(name, each.len() as u64);
    let one = |(index, run): &(usize, u32)| {
        let outcome = shared::simulate(&cells[*index].setup, run_seed(how.seed, *run));
        bar.inc(1);
        (*index, *run, outcome)
    };
    // One at a time, so that the order above is the order in which they begin.
    let mut outcomes: Vec<(usize, u32, Outcome)> = each.par_iter().with_max_len(1).map(one).collect();
    bar.finish_and_clear();
    outcomes.sort_by_key(|(index, run, _)| (*index, *run));
    let alone: Vec<f64> = cells.par_iter().map(|cell| shared::alone_per_s(&cell.setup, how.seed)).collect();
    let mut ran: Vec<Ran> = cells
        .into_iter()
        .zip(alone)
        .map(|(cell, alone_per_s)| Ran { cell, outcomes: Vec::new(), alone_per_s })
        .collect();
    outcomes.into_iter().for_each(|(index, _, outcome)| ran[index].outcomes.push(outcome));
    ran
}
