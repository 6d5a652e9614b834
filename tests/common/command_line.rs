// SPDX-License-Identifier: GPL-2.0-only
//! The command line of the program together with those of the programs beside it.

use clap::{Command, CommandFactory};

/// All of it.
pub fn command_line() -> Command {
    let command = scx_cosched::cli::Cli::command();
    let command = command.mut_subcommand("bench", |_| cosched_bench::BenchArgs::command());
    command.mut_subcommand("sim", |_| cosched_sim::cli::SimArgs::command())
}
