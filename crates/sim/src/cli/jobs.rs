// SPDX-License-Identifier: GPL-2.0-only
//! The flags of the models of jobs: `sim bsp` and `sim continuous`.

use std::path::PathBuf;

use clap::Args;

use super::{NODES, Runs};
use crate::bsp::Readings;
use crate::jobs::Pattern;
use crate::policy::WaitRule;
use cosched_rules::range::Range;

const JOBS: Range<u32> = Range::new(1, 64, "a whole number");
const GRANULARITY: Range<f64> = Range::new(1.0, 1e8, "a number of us");
const IMBALANCE: Range<f64> = Range::new(0.0, 2.0, "a multiple of g");
const COST: Range<f64> = Range::new(0.0, 1e6, "a number of us");
const QUANTUM: Range<u32> = Range::new(1, 60_000, "a whole number of ms");
const ITERATIONS: Range<u32> = Range::new(1, 100_000_000, "a whole number");

/// A local scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SchedulerName {
    /// Time-sharing of System V Release 4, as Solaris 2.4 has it (Dusseau 3.3).
    Svr4,
    /// One level and one quantum (Dusseau 7.2).
    RoundRobin,
    /// Zhang's multi-level feedback queue (2.3).
    Feedback,
    /// The fair order that the kernel's side of this program has.
    Fair,
}

/// Whether clocks tick together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Ticks {
    /// Each on its own (Dusseau 3.3).
    Independent,
    /// All at the same time (Dusseau 7.1).
    Aligned,
}

/// What a message does with a process that sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum WakeupName {
    /// It runs before all others, and sleeps again if it still waits (Dusseau 3.3).
    Urgent,
    /// It has the level of one that returns from sleep, and spins for W (Arpaci-Dusseau 4).
    Ordinary,
    /// The same, and it takes W on an idle CPU too, whoever ran last there (Arpaci-Dusseau 3.1, 3.3).
    Charged,
}

/// Bulk-synchronous jobs under implicit scheduling, against ideal coscheduling (Dusseau 1996; Arpaci-Dusseau 5.1).
/// Prints the slowdown.
#[derive(Args, Clone, Debug)]
pub struct BspArgs {
    /// Who reads from whom: barrier (nobody), news (four neighbours), transpose (each).
    #[arg(long, value_name = "PATTERN", default_value = "news")]
    pub pattern: Pattern,

    /// g, the mean computation between communication phases, in us, 1 to 100000000.
    #[arg(long, value_name = "US", default_value = "100", value_parser = |s: &str| GRANULARITY.parse(s), allow_hyphen_values = true)]
    pub granularity_us: f64,

    /// v, by how much computations differ, as a multiple of g, 0 to 2.
    #[arg(long, value_name = "F", default_value = "0.25", value_parser = |s: &str| IMBALANCE.parse(s), allow_hyphen_values = true)]
    pub imbalance: f64,

    /// c, the computation before each event of a communication phase, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "8", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub gap_us: f64,

    /// How a process waits before it sleeps: immediate (not at all), fixed, baseline, conditional, oracle,
    /// adaptive-local, adaptive-global.
    #[arg(long, value_name = "RULE", default_value = "adaptive-global")]
    pub wait: WaitRule,

    /// What a message does with a process that sleeps.
    #[arg(long, value_enum, value_name = "HOW", default_value = "urgent")]
    pub wakeup: WakeupName,

    /// How the paper is read: tick, round-trip, both with a comma, or none. tick: a process that left the CPU in this
    /// tick comes back before its equals. round-trip: the shortest spin of oracle and adaptive rules is two switches
    /// and a round trip.
    /// [default: tick,round-trip; of other schedulers than svr4: round-trip]
    #[arg(long, value_name = "LIST")]
    pub readings: Option<Readings>,

    /// What all models of jobs have.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Jobs whose processes read from one another all the time, and rarely meet at a barrier, against ideal coscheduling
/// (Arpaci-Dusseau 5.2, 5.3). Prints the slowdown.
#[derive(Args, Clone, Debug)]
pub struct ContinuousArgs {
    /// C, the computation between barriers, in us, 1 to 100000000.
    #[arg(long, value_name = "US", default_value = "100000", value_parser = |s: &str| GRANULARITY.parse(s), allow_hyphen_values = true)]
    pub interval_us: f64,

    /// c, the computation before each read, in us, 1 to 100000000, and no more than C: so many reads are between
    /// barriers.
    #[arg(long, value_name = "US", default_value = "100", value_parser = |s: &str| GRANULARITY.parse(s), allow_hyphen_values = true)]
    pub gap_us: f64,

    /// How a process waits before it sleeps: immediate (not at all), fixed, baseline (2L + W), conditional (baseline,
    /// and on while messages come).
    #[arg(long, value_name = "RULE", default_value = "conditional")]
    pub wait: WaitRule,

    /// What a message does with a process that sleeps.
    #[arg(long, value_enum, value_name = "HOW", default_value = "ordinary")]
    pub wakeup: WakeupName,

    /// What all models of jobs have.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What all models of jobs have: machines, messages, how long, how often.
#[derive(Args, Clone, Debug)]
pub struct ClusterArgs {
    /// Instead of a wait rule, a preset, with changes if need be: local, implicit, sb, sb+spin=adaptive-global. One
    /// that boosts anybody has no place in this model.
    #[arg(long, value_name = "PRESET", conflicts_with_all = ["wait", "spin_us", "barrier_spin_us"])]
    pub policy: Option<String>,

    /// L, from one node to another, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "10", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub latency_us: f64,

    /// CS and W, a context switch, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "200", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub switch_us: f64,

    /// Fixed: how long it spins, in us, 0 to 1000000. [default: a context switch]
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub spin_us: Option<f64>,

    /// Fixed: how long it spins at barriers, in us, 0 to 1000000. [default: as long as at reads]
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub barrier_spin_us: Option<f64>,

    /// Conditional: how long after the last message a spin goes on, in us, 0 to 1000000. [default: 3W]
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub conditional_us: Option<f64>,

    /// The local scheduler of each node.
    #[arg(long, value_enum, value_name = "NAME", default_value = "svr4")]
    pub scheduler: SchedulerName,

    /// Round-robin: the quantum, in ms, 1 to 60000, rounded up to ticks of 10 [default: 10]; fair: the slice [default:
    /// 20].
    #[arg(long, value_name = "MS", value_parser = |s: &str| QUANTUM.parse(s), allow_hyphen_values = true)]
    pub quantum_ms: Option<u32>,

    /// P, nodes, with a CPU each, and processes of each job, 1 to 65536.
    #[arg(long, value_name = "P", default_value = "32", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// Jobs, all alike, 1 to 64.
    #[arg(long, value_name = "J", default_value = "3", value_parser = |s: &str| JOBS.parse(s), allow_hyphen_values = true)]
    pub jobs: u32,

    /// Iterations of each job, one to each opening barrier, 1 to 100000000. [default: what takes it 10 s alone, up to
    /// 10000]
    #[arg(long, value_name = "N", value_parser = |s: &str| ITERATIONS.parse(s), allow_hyphen_values = true)]
    pub iterations: Option<u32>,

    /// Whether the clocks of the nodes tick together.
    #[arg(long, value_enum, value_name = "HOW", default_value = "independent")]
    pub ticks: Ticks,

    /// Where the barriers' roots are: on one node, or each job's on another.
    #[arg(long)]
    pub spread_roots: bool,

    /// Write every event of the first run to this file, a line each: its time in ns, and what happens.
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}
