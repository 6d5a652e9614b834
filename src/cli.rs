// SPDX-License-Identifier: GPL-2.0-only
//! The command line.

use std::ffi::OsString;

use clap::{Args, Id, Parser, Subcommand};

use crate::control::commands::{ClientArgs, ListArgs, Look, SetArgs};
use crate::control::trace::TraceArgs;
use crate::run::check::CheckArgs;

use crate::settings::{RunArgs, limits};
use crate::top::TopArgs;

/// Demand-based coscheduling: a scheduler that takes the arrival of a message as the demand to run its
/// receiver, so that the processes of a parallel job run at the same time on all nodes.
///
/// Without a command it runs the scheduler until it is told to stop, as 'run' does with the same flags. This is how
/// scx_loader and scx.service start a scheduler.
#[derive(Debug, Parser)]
#[command(name = "scx_cosched", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    /// What to do. [default: run]
    #[command(subcommand)]
    pub command: Option<Command>,

    /// Print statistics of the running scheduler every SEC seconds; load nothing.
    #[arg(long, value_name = "SEC", value_parser = |s: &str| limits::STATS.parse(s), allow_hyphen_values = true,
          conflicts_with_all = run_flags())]
    pub monitor: Option<f64>,

    /// Describe the statistics that --stats and --monitor print.
    #[arg(long, conflicts_with = "monitor", conflicts_with_all = run_flags())]
    pub help_stats: bool,

    /// The flags of 'run', if there is no command.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The flags of what loads a scheduler, which therefore do not go with those that load nothing.
fn run_flags() -> Vec<Id> {
    RunArgs::augment_args(clap::Command::new("run")).get_arguments().map(|arg| arg.get_id().clone()).collect()
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Load the scheduler and run it until it is told to stop.
    Run(Box<RunArgs>),
    /// List the policies, or show or change that of the running scheduler.
    #[command(subcommand)]
    Policy(PolicyCommand),
    /// Show what the running scheduler does.
    Status(ClientArgs),
    /// Watch what the running scheduler does: jobs, boosts and CPUs, on a terminal, until a key ends it.
    Top(TopArgs),
    /// Have the running scheduler read its configuration file again, and put the policy in force that it names.
    Reload(ClientArgs),
    /// Print arrivals of messages, decisions of the gate and switches as they happen, until Ctrl-C.
    Trace(TraceArgs),
    /// Say what this kernel has and lacks; fail if the scheduler cannot run.
    Check(CheckArgs),
    /// Measure what a parallel job gets beside busy competitors, by the program scx_cosched-bench.
    #[command(disable_help_flag = true)]
    Bench(Passed),
    /// Simulate the rules on many nodes, by the program scx_cosched-sim.
    #[command(disable_help_flag = true)]
    Sim(Passed),
}

/// What a program beside this one is told.
#[derive(Args, Debug)]
pub struct Passed {
    /// Its command and flags.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// `policy`.
#[derive(Debug, Subcommand)]
pub enum PolicyCommand {
    /// List the policies by name.
    List(ListArgs),
    /// Asks and changes nothing.
    #[command(flatten)]
    Show(Look),
    /// Change the policy of the running scheduler, without a reload.
    Set(SetArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }
}
