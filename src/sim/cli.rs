// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `sim`: every flag with its unit, range and default.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

use super::jobs::Pattern;
use super::policy::WaitRule;
use super::report;
use crate::limits::Range;

/// Simulate the rules on many nodes, and the papers' models of them.
#[derive(Debug, Args)]
pub struct SimArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Markov(MarkovArgs),
    Dynamic(DynamicArgs),
    Bsp(BspArgs),
}

/// Runs one of the models.
///
/// # Errors
/// One line for flags that do not go together, or a trace that cannot be written.
pub fn run(args: &SimArgs) -> Result<ExitCode> {
    match &args.command {
        Command::Markov(args) => report::markov(args),
        Command::Dynamic(args) => report::dynamic(args),
        Command::Bsp(args) => report::bsp(args),
    }
}

const RATE: Range<f64> = Range::new(0.0, 1e9, "a rate");
const PER_CYCLE: Range<f64> = Range::new(0.0, 1000.0, "a number per cycle");
const H_CYCLES: Range<f64> = Range::new(-1e9, 1e9, "a number of cycles");
const CYCLES: Range<u64> = Range::new(1, 1_000_000_000, "a whole number of cycles");
const WARMUP: Range<u64> = Range::new(0, 1_000_000_000, "a whole number of cycles");
const RUNS: Range<u32> = Range::new(1, 100_000, "a whole number");
const SEED: Range<u64> = Range::new(0, u64::MAX, "a whole number");
const MARKOV_NODES: Range<u32> = Range::new(1, 1_000_000, "a whole number");
const NODES: Range<u32> = Range::new(1, 65_536, "a whole number");
const JOBS: Range<u32> = Range::new(1, 64, "a whole number");
const GRANULARITY: Range<f64> = Range::new(1.0, 1e8, "a number of us");
const IMBALANCE: Range<f64> = Range::new(0.0, 2.0, "a multiple of g");
const COST: Range<f64> = Range::new(0.0, 1e6, "a number of us");
const QUANTUM: Range<u32> = Range::new(1, 60_000, "a whole number of ms");
const ITERATIONS: Range<u32> = Range::new(1, 100_000_000, "a whole number");

/// A rate that is so small that products with it lose digits is none.
fn rate(text: &str) -> Result<f64, String> {
    match RATE.parse(text)? {
        rate if rate > 0.0 && rate < 1e-9 => Err(format!("{rate} is out of range: it takes 0, or a rate from 1e-9 on")),
        rate => Ok(rate),
    }
}

/// How often, from where and in which form.
#[derive(Args, Clone, Copy, Debug)]
pub struct Runs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,

    /// What decides all that is random, 0 to 2^64 - 1: equal seeds make equal runs.
    #[arg(long, value_name = "N", default_value = "1", value_parser = |s: &str| SEED.parse(s), allow_hyphen_values = true)]
    pub seed: u64,

    /// Independent runs, 1 to 100000; from 2 on results have 90% confidence intervals (Student's t).
    #[arg(long, value_name = "N", default_value = "5", value_parser = |s: &str| RUNS.parse(s), allow_hyphen_values = true)]
    pub runs: u32,
}

/// The Markov model of two jobs under the gate `always`, in closed form (thesis 3.1). Prints for each number of nodes the
/// probability that so many run job B.
#[derive(Args, Debug)]
pub struct MarkovArgs {
    /// N, nodes and processes of each job, 1 to 1000000.
    #[arg(long, value_name = "N", default_value = "64", value_parser = |s: &str| MARKOV_NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// Spontaneous switches away from each process of job A, per unit of time, 0 or 1e-9 to 1e9.
    #[arg(long, value_name = "RATE", default_value = "0.005", value_parser = rate, allow_hyphen_values = true)]
    pub qs_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.005", value_parser = rate, allow_hyphen_values = true)]
    pub qs_b: f64,

    /// Messages that each running process of job A sends, per unit of time, 0 or 1e-9 to 1e9.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = rate, allow_hyphen_values = true)]
    pub qm_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = rate, allow_hyphen_values = true)]
    pub qm_b: f64,

    /// How the result is printed; there is nothing random in it, and one run has it.
    #[command(flatten)]
    pub runs: Runs,
}

/// Which gate of `policies/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Algorithm {
    /// Every message is granted its switch (thesis 3.1).
    Always,
    /// If the receiver lags by more than h (thesis 3.2).
    Equalizing,
    /// If besides the message is of a later epoch (thesis 3.3).
    Epochs,
}

/// The thesis's simulation of two jobs (3.1 to 3.3). Time is counted in scheduler cycles. Defaults are those of Figure
/// 3-5 at 375 messages per time slice.
#[derive(Args, Debug)]
pub struct DynamicArgs {
    /// Which messages have a node switch.
    #[arg(long, value_enum, value_name = "GATE", default_value = "epochs")]
    pub algorithm: Algorithm,

    /// N, nodes and processes of each job, 1 to 65536.
    #[arg(long, value_name = "N", default_value = "64", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// How long each run is, in cycles, 1 to 1000000000.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = |s: &str| CYCLES.parse(s), allow_hyphen_values = true)]
    pub cycles: u64,

    /// How much of it passes before anything is counted, in cycles, 0 to 1000000000. [default: a tenth]
    #[arg(long, value_name = "N", value_parser = |s: &str| WARMUP.parse(s), allow_hyphen_values = true)]
    pub warmup_cycles: Option<u64>,

    /// Spontaneous switches away from each process of job A, per cycle, 0 to 1000.
    #[arg(long, value_name = "RATE", default_value = "0.001", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qs_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.001", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qs_b: f64,

    /// Messages that each running process of job A sends, per cycle, 0 to 1000.
    #[arg(long, value_name = "RATE", default_value = "0.25", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qm_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qm_b: f64,

    /// Equalizing, epochs: the lag that a switch needs, in cycles, -1e9 to 1e9; negative lets a process run ahead.
    #[arg(long, value_name = "H", default_value = "-1000", value_parser = |s: &str| H_CYCLES.parse(s), allow_hyphen_values = true)]
    pub h_cycles: f64,

    /// Epochs: with the number of the node that counted as low bits, as in the kernel; the thesis's simulation has none.
    #[arg(long)]
    pub node_numbers: bool,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}

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
}

/// Bulk-synchronous jobs under implicit scheduling, against ideal coscheduling (Dusseau 1996). Prints the slowdown.
#[derive(Args, Debug)]
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

    /// L, from one node to another, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "10", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub latency_us: f64,

    /// CS (and W), a context switch, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "200", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub switch_us: f64,

    /// c, the computation before each event of a communication phase, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "8", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub gap_us: f64,

    /// How a process waits before it sleeps: immediate (not at all), fixed, baseline, conditional, oracle, adaptive-local,
    /// adaptive-global.
    #[arg(long, value_name = "RULE", default_value = "adaptive-global")]
    pub wait: WaitRule,

    /// Fixed: how long it spins, in us, 0 to 1000000. [default: a context switch]
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub spin_us: Option<f64>,

    /// The local scheduler of each node.
    #[arg(long, value_enum, value_name = "NAME", default_value = "svr4")]
    pub scheduler: SchedulerName,

    /// Round-robin: the quantum, in ms, 1 to 60000, rounded up to ticks of 10 [default: 10]; fair: the slice [default: 20].
    #[arg(long, value_name = "MS", value_parser = |s: &str| QUANTUM.parse(s), allow_hyphen_values = true)]
    pub quantum_ms: Option<u32>,

    /// P, nodes and processes of each job, 1 to 65536.
    #[arg(long, value_name = "P", default_value = "32", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// Jobs, all alike, 1 to 64.
    #[arg(long, value_name = "J", default_value = "3", value_parser = |s: &str| JOBS.parse(s), allow_hyphen_values = true)]
    pub jobs: u32,

    /// Iterations of each job, 1 to 100000000. [default: what takes it 10 s alone, up to 10000]
    #[arg(long, value_name = "N", value_parser = |s: &str| ITERATIONS.parse(s), allow_hyphen_values = true)]
    pub iterations: Option<u32>,

    /// Whether the clocks of the nodes tick together.
    #[arg(long, value_enum, value_name = "HOW", default_value = "independent")]
    pub ticks: Ticks,

    /// What a message does with a process that sleeps.
    #[arg(long, value_enum, value_name = "HOW", default_value = "urgent")]
    pub wakeup: WakeupName,

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
