// SPDX-License-Identifier: GPL-2.0-only
//! How errors leave the program: one line on stderr that says what is wrong and how to mend it.

use std::fmt;
use std::process::ExitCode;

use clap::Parser;
use clap::error::{ContextKind, ErrorKind};

use crate::NAME;

/// The program was called wrongly: exit code 2. Every other error has exit code 1.
#[derive(Debug)]
struct UsageError(String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// An error in how the program was called.
pub fn usage(what: impl Into<String>) -> anyhow::Error {
    UsageError(what.into()).into()
}

/// Prints `error` as one line and returns the exit code that belongs to it.
pub fn error(error: &anyhow::Error) -> ExitCode {
    eprintln!("{NAME}: error: {}", one_line(&format!("{error:#}")));
    ExitCode::from(if error.is::<UsageError>() { 2 } else { 1 })
}

/// A whole program: hands the command line of this process to `run`, and prints what is wrong with it or what `run`
/// says, in one line.
pub fn program<T: Parser>(run: impl FnOnce(T) -> anyhow::Result<ExitCode>) -> ExitCode {
    match T::try_parse() {
        Ok(command_line) => run(command_line).unwrap_or_else(|wrong| error(&wrong)),
        Err(wrong) if matches!(wrong.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) => {
            let _ = wrong.print();
            ExitCode::SUCCESS
        }
        Err(wrong) => error(&usage(what_to_do(&wrong))),
    }
}

/// What clap says over several lines, in one, with what to do about it.
fn what_to_do(error: &clap::Error) -> String {
    let what = what_is_wrong(error);
    match error.get(ContextKind::SuggestedSubcommand).or_else(|| error.get(ContextKind::SuggestedArg)) {
        Some(suggestion) => format!("{what} (did you mean {suggestion}? --help shows all)"),
        None if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            "no command (--help shows all)".into()
        }
        None if error.kind() == ErrorKind::ValueValidation => what,
        None => format!("{what} (--help shows what it takes)"),
    }
}

/// For programs whose output somebody may pipe into `head`: end without a word when it closes the pipe.
pub fn die_quietly_on_closed_pipe() {
    // SAFETY: sets a signal to its default before there are threads.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
}

/// Folds `text` into one line: whoever reads a log or an exit message in a mail gets all of it.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What clap finds wrong with a command line, in one line, without the tip and the usage that follow.
pub fn what_is_wrong(error: &clap::Error) -> String {
    let text = error.render().to_string();
    // What is wrong may hold a value with blank lines.
    let end = ["\n\n  tip:", "\n\nUsage:", "\n\nFor more"].iter().filter_map(|mark| text.find(mark)).min();
    one_line(text[..end.unwrap_or(text.len())].trim_start_matches("error: "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_folded() {
        assert_eq!(one_line("a\n  b\tc\n\n"), "a b c");
    }

    #[test]
    fn usage_errors_are_told_apart() {
        assert_eq!(error(&usage("x")), ExitCode::from(2));
        assert_eq!(error(&anyhow::anyhow!("x").context("y")), ExitCode::from(1));
    }
}
