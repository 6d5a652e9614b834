// SPDX-License-Identifier: GPL-2.0-only
//! Parses the command line and hands over to the library.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::{Command as Program, ExitCode};

use anyhow::{Context, Error, Result};
use cosched_rules::{NAME, report};
use scx_cosched::cli::{Cli, Command, PolicyCommand};
use scx_cosched::control::{commands, trace};
use scx_cosched::metrics::monitor;
use scx_cosched::run::{self, check};
use scx_cosched::top;

fn main() -> ExitCode {
    report::program(dispatch)
}

fn dispatch(cli: Cli) -> Result<ExitCode> {
    let prints = cli.help_stats || cli.monitor.is_some();
    if prints || !matches!(cli.command, None | Some(Command::Run(_) | Command::Bench(_))) {
        report::die_quietly_on_closed_pipe();
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
        Some(Command::Top(args)) => top::run(&args),
        Some(Command::Trace(args)) => trace::run(&args),
        Some(Command::Bench(passed)) => Err(become_program("bench", &passed.args)),
        Some(Command::Sim(passed)) => Err(become_program("sim", &passed.args)),
    }
}

/// Goes on as the program `scx_cosched-NAME` that is beside this one; returns only if there is none.
fn become_program(name: &str, args: &[OsString]) -> Error {
    let program = match std::env::current_exe().context("cannot find this program") {
        Ok(this) => this.with_file_name(format!("{NAME}-{name}")),
        Err(error) => return error,
    };
    let error = Program::new(&program).args(args).exec();
    Error::new(error).context(format!("cannot run {}, which comes with {NAME}", program.display()))
}
