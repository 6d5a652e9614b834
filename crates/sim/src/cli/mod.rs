// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `sim`: every flag with its unit, range and default. It knows of nothing that runs.

mod cluster;
mod jobs;
mod of_models;
mod replay;
mod scale;
mod shared;
mod thesis;

use clap::{Args, Parser, Subcommand};

pub use self::cluster::{ReadingArgs, ZhangArgs};
pub use self::jobs::{BspArgs, ClusterArgs, ContinuousArgs, SchedulerName, Ticks, WakeupName};
pub use self::of_models::{PaperArgs, Shard, SweepArgs};
pub use self::replay::ReplayArgs;
pub use self::scale::ScaleArgs;
pub use self::shared::{PatternName, ReceiverName, SharedArgs};
pub use self::thesis::{Algorithm, DynamicArgs, MarkovArgs};
use cosched_rules::range::Range;

/// Simulate the rules on many nodes, and the papers' models of them.
#[derive(Debug, Parser)]
#[command(name = "sim", bin_name = "scx_cosched sim", version)]
pub struct SimArgs {
    #[command(subcommand)]
    pub(super) command: Command,
}

/// What is run.
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    #[command(flatten)]
    Model(Model),
    Replay(ReplayArgs),
    Scale(ScaleArgs),
    Paper(PaperArgs),
    Sweep(SweepArgs),
}

/// A model, with its flags.
#[derive(Clone, Debug, Subcommand)]
pub(crate) enum Model {
    Markov(MarkovArgs),
    Dynamic(DynamicArgs),
    Bsp(BspArgs),
    Continuous(ContinuousArgs),
    Cluster(ZhangArgs),
    Shared(SharedArgs),
}

const RUNS: Range<u32> = Range::new(1, 100_000, "a whole number");
const SEED: Range<u64> = Range::new(0, u64::MAX, "a whole number");
const TICK: Range<u32> = Range::new(100, 10_000, "a whole number of us");
const NODES: Range<u32> = Range::new(1, 65_536, "a whole number");

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
