// SPDX-License-Identifier: GPL-2.0-only
//! The flags of `sim shared`.

use clap::Args;

use super::{NODES, Runs, TICK};
use crate::shared::messages::{Demands, MOST_PREFETCHED};
use crate::shared::uneven::Piece;
use cosched_rules::range::Range;

const CPUS: Range<u32> = Range::new(1, 64, "a whole number");
const JOBS: Range<u32> = Range::new(1, 64, "a whole number");
const EVERY: Range<u32> = Range::new(2, 65_536, "a whole number");
const COMPETITORS: Range<u32> = Range::new(0, 64, "a whole number");
const PREFETCH: Range<u32> = Range::new(0, MOST_PREFETCHED, "a whole number");
const GRAIN: Range<f64> = Range::new(1.0, 1e6, "a number of us");
const IMBALANCE: Range<f64> = Range::new(0.0, 2.0, "a multiple of the grain");
const LATENCY: Range<f64> = Range::new(0.0, 1e6, "a number of us");
const COST: Range<f64> = Range::new(0.05, 1e6, "a number of us");
const LOSS: Range<f64> = Range::new(0.0, 50.0, "a number of %");
const RESEND: Range<f64> = Range::new(0.01, 60_000.0, "a number of ms");
const SKEW: Range<f64> = Range::new(0.0, 10_000.0, "a number of ms");
const DRIFT: Range<f64> = Range::new(0.0, 10_000.0, "a number of parts per million");
const STAY: Range<f64> = Range::new(0.05, 3600.0, "a number of s");
const LEAD: Range<f64> = Range::new(0.0, 10_000.0, "a number of ms");
const SECONDS: Range<f64> = Range::new(0.01, 3600.0, "a number of s");
const WARMUP: Range<f64> = Range::new(0.0, 3600.0, "a number of s");

/// Who sends to whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PatternName {
    /// Pairs that pass one message to and fro, as in the demo.
    Token,
    /// All with both neighbours on a ring.
    Ring,
    /// And then all meet, in log2 of them rounds: a barrier or a small reduction.
    Meeting,
}

/// How a process waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ReceiverName {
    /// It polls.
    Spin,
    /// It sleeps, unless the policy has it spin before.
    Block,
}

/// Parallel jobs and busy competitors that share nodes for good, under a policy as the kernel has it, with its gate and
/// its slices. Prints the slowdown, F and the degree of coscheduling.
#[derive(Args, Clone, Debug)]
pub struct SharedArgs {
    /// The preset, as `policy list` shows them, with changes if need be: dcs-sb+epochs=true+slice_us=60000.
    #[arg(long, value_name = "PRESET", default_value = "dcs-sb")]
    pub policy: String,

    /// The same for the first node, which somebody has mistuned. [default: as all others]
    #[arg(long, value_name = "PRESET")]
    pub mistuned: Option<String>,

    /// Of so many nodes one is mistuned, 2 to 65536. [default: the first one alone]
    #[arg(long, value_name = "N", value_parser = |s: &str| EVERY.parse(s), allow_hyphen_values = true)]
    pub mistuned_every: Option<u32>,

    /// Who sends to whom in an iteration.
    #[arg(long, value_enum, value_name = "PATTERN", default_value = "ring")]
    pub pattern: PatternName,

    /// How a process waits for a message.
    #[arg(long, value_enum, value_name = "HOW", default_value = "spin")]
    pub receiver: ReceiverName,

    /// Nodes, 1 to 65536; with pattern token an even number.
    #[arg(long, value_name = "N", default_value = "64", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// CPUs of each node, 1 to 64, each with a queue of its own; of all nodes together 65536 at most. One that has
    /// nobody to run takes a task from another.
    #[arg(long, value_name = "N", default_value = "1", value_parser = |s: &str| CPUS.parse(s), allow_hyphen_values = true)]
    pub cpus: u32,

    /// Processes of each job on each node, 1 to 64, and no more than it has CPUs. Ranks go round the nodes: neighbours
    /// are on different ones.
    #[arg(long, value_name = "N", default_value = "1", value_parser = |s: &str| CPUS.parse(s), allow_hyphen_values = true)]
    pub ranks: u32,

    /// Parallel jobs, all alike, 1 to 64.
    #[arg(long, value_name = "N", default_value = "2", value_parser = |s: &str| JOBS.parse(s), allow_hyphen_values = true)]
    pub jobs: u32,

    /// Processes on each node that only compute, 0 to 64.
    #[arg(long, value_name = "N", default_value = "0", value_parser = |s: &str| COMPETITORS.parse(s), allow_hyphen_values = true)]
    pub competitors: u32,

    /// The most competitors on a node, 0 to 64: from --competitors on, uniform. [default: as many]
    #[arg(long, value_name = "N", value_parser = |s: &str| COMPETITORS.parse(s), allow_hyphen_values = true)]
    pub most_competitors: Option<u32>,

    /// The nodes of a job, 2 to 65536: so many or more, uniform, side by side, anywhere. [default: all jobs are on all
    /// nodes]
    #[arg(long, value_name = "N", value_parser = |s: &str| EVERY.parse(s), allow_hyphen_values = true)]
    pub least_nodes: Option<u32>,

    /// How long a job stays, and how long it is away after that, in s, 0.05 to 3600. It is uniform from half of it to
    /// half as much again. [default: all stay]
    #[arg(long, value_name = "S", value_parser = |s: &str| STAY.parse(s), allow_hyphen_values = true)]
    pub stay_s: Option<f64>,

    /// By how much tasks are ahead of the fair order at the start, in ms, 0 to 10000: uniform.
    #[arg(long, value_name = "MS", default_value = "0", value_parser = |s: &str| LEAD.parse(s), allow_hyphen_values = true)]
    pub start_lead_ms: f64,

    /// g, what a process computes in an iteration, in us, 1 to 1000000.
    #[arg(long, value_name = "US", default_value = "5000", value_parser = |s: &str| GRAIN.parse(s), allow_hyphen_values = true)]
    pub grain_us: f64,

    /// By how much that differs from process to process and time to time, as a multiple of g, 0 to 2: uniform.
    #[arg(long, value_name = "V", default_value = "0.1", value_parser = |s: &str| IMBALANCE.parse(s), allow_hyphen_values = true)]
    pub imbalance: f64,

    /// L, from one node to another, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "20", value_parser = |s: &str| LATENCY.parse(s), allow_hyphen_values = true)]
    pub latency_us: f64,

    /// o, of the CPU, to send a message or to receive one, in us, 0.05 to 1000000.
    #[arg(long, value_name = "US", default_value = "5", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub overhead_us: f64,

    /// W, to wake a process and switch to it, in us, 0.05 to 1000000.
    #[arg(long, value_name = "US", default_value = "10", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub switch_us: f64,

    /// How many correspondents of a task are asked for when its slice begins, before there is a message for them, 0 to 8
    /// (thesis 6.2.3).
    #[arg(long, value_name = "N", default_value = "0", value_parser = |s: &str| PREFETCH.parse(s), allow_hyphen_values = true)]
    pub prefetch: u32,

    /// Pattern meeting: which messages are demands to run their receiver (thesis 6.2.5).
    #[arg(long, value_enum, value_name = "WHICH", default_value = "all")]
    pub demands: Demands,

    /// How many messages are lost and sent again, in %, 0 to 50.
    #[arg(long, value_name = "PCT", default_value = "0", value_parser = |s: &str| LOSS.parse(s), allow_hyphen_values = true)]
    pub loss: f64,

    /// After how long, each time, in ms, 0.01 to 60000. [default: 200, the least that Linux's TCP waits]
    #[arg(long, value_name = "MS", value_parser = |s: &str| RESEND.parse(s), allow_hyphen_values = true)]
    pub resend_ms: Option<f64>,

    /// Gang, beat: by how much the nodes' clocks differ, in ms, 0 to 10000: uniform.
    #[arg(long, value_name = "MS", value_parser = |s: &str| SKEW.parse(s), allow_hyphen_values = true)]
    pub clock_skew_ms: Option<f64>,

    /// Gang, beat: by how much too fast a clock goes, in parts per million, 0 to 10000: uniform.
    #[arg(long, value_name = "PPM", value_parser = |s: &str| DRIFT.parse(s), allow_hyphen_values = true)]
    pub clock_drift_ppm: Option<f64>,

    /// Beat: what is left out, to see what it is worth; may be given several times.
    #[arg(long, value_enum, value_name = "PIECE")]
    pub beat_without: Vec<Piece>,

    /// Between two ticks of a CPU, in us, 100 to 10000: 250 Hz is Debian's.
    #[arg(long, value_name = "US", default_value = "4000", value_parser = |s: &str| TICK.parse(s), allow_hyphen_values = true)]
    pub tick_us: u32,

    /// How long a run is, in s, 0.01 to 3600.
    #[arg(long, value_name = "S", default_value = "5", value_parser = |s: &str| SECONDS.parse(s), allow_hyphen_values = true)]
    pub seconds: f64,

    /// How long it runs before that, in s, 0 to 3600.
    #[arg(long, value_name = "S", default_value = "1", value_parser = |s: &str| WARMUP.parse(s), allow_hyphen_values = true)]
    pub warmup_s: f64,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}
