// SPDX-License-Identifier: GPL-2.0-only
//! Parses the command line and hands over to the library.

use std::process::ExitCode;

use anyhow::Result;
use scx_cosched::cli::{Cli, Command, PolicyCommand};
use scx_cosched::{bench, check, commands, monitor, report, run, sim, trace};

fn main() -> ExitCode {
    let cli = match Cli::from_command_line() {
        Ok(cli) => cli,
        Err(code) => return code,
    };
    dispatch(cli).unwrap_or_else(|error| report::error(&error))
}

fn dispatch(cli: Cli) -> Result<ExitCode> {
    let prints = cli.help_stats || cli.monitor.is_some();
    if prints || !matches!(cli.command, None | Some(Command::Run(_) | Command::Bench(_))) {
        commands::die_quietly_on_closed_pipe();
    }
    match cli.command {
        None if cli.help_stats => monitor::describe(),
        None => match cli.monitor {
            Some(seconds) => monitor::watch(seconds),
            None => run::run(&cli.run),
        },
        Some(Command::Run(args)) => run::run(&args),
        Some(Command::Check(args)) => check::run(&args),
        Some(Command::Reload(args)) => commands::reload(&args),
        Some(Command::Status(args)) => commands::status(&args),
        Some(Command::Policy(PolicyCommand::List(args))) => commands::policy_list(&args),
        Some(Command::Policy(PolicyCommand::Show(args))) => commands::policy_show(&args),
        Some(Command::Policy(PolicyCommand::Set(args))) => commands::policy_set(&args),
        Some(Command::Trace(args)) => trace::run(&args),
        Some(Command::Bench(args)) => bench::run(args),
        Some(Command::Sim(args)) => sim::run(&args),
    }
}
