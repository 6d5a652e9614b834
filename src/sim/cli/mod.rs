// SPDX-License-Identifier: GPL-2.0-only
//! The command line of `sim`: every flag with its unit, range and default.

mod jobs;
mod thesis;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Subcommand};

pub use self::jobs::{BspArgs, ClusterArgs, ContinuousArgs, SchedulerName, Ticks, WakeupName};
pub use self::thesis::{Algorithm, DynamicArgs, MarkovArgs};
use super::paper::{self, PaperArgs};
use super::report;
use super::sweep::{self, SweepArgs};
use crate::limits::Range;

/// Simulate the rules on many nodes, and the papers' models of them.
#[derive(Debug, Args)]
pub struct SimArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    #[command(flatten)]
    Model(Model),
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
}

impl Model {
    /// Runs it, and prints the result.
    fn run(&self) -> Result<ExitCode> {
        match self {
            Model::Markov(args) => report::markov(args),
            Model::Dynamic(args) => report::dynamic(args),
            Model::Bsp(args) => report::bsp(args),
            Model::Continuous(args) => report::continuous(args),
        }
    }

    /// Whether its flags go together, without running it.
    ///
    /// # Errors
    /// One line, if not.
    pub fn check(&self) -> Result<()> {
        match self {
            Model::Markov(args) => report::check_markov(args),
            Model::Dynamic(args) => report::check_dynamic(args),
            Model::Bsp(args) => report::check_bsp(args),
            Model::Continuous(args) => report::check_continuous(args),
        }
    }

    /// Runs it. Returns what `--json` prints.
    ///
    /// # Errors
    /// One line for flags that do not go together.
    pub fn json(&self) -> Result<String> {
        match self {
            Model::Markov(args) => report::markov_json(args),
            Model::Dynamic(args) => report::dynamic_json(args),
            Model::Bsp(args) => report::bsp_json(args),
            Model::Continuous(args) => report::continuous_json(args),
        }
    }
}

/// Runs one of the models, or what is made of them.
///
/// # Errors
/// One line for flags that do not go together, or a file that cannot be read or written.
pub fn run(args: &SimArgs) -> Result<ExitCode> {
    match &args.command {
        Command::Model(model) => model.run(),
        Command::Paper(args) => paper::run(args),
        Command::Sweep(args) => sweep::run(args),
    }
}

const RUNS: Range<u32> = Range::new(1, 100_000, "a whole number");
const SEED: Range<u64> = Range::new(0, u64::MAX, "a whole number");
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
