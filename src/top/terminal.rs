// SPDX-License-Identifier: GPL-2.0-only
//! Takes the terminal, and gives it back as it was.

use std::io::{IsTerminal, stdout};
use std::thread;

use anyhow::{Context, Result, bail};
use ratatui::DefaultTerminal;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::execute;
use signal_hook::consts::SIGHUP;
use signal_hook::iterator::Signals;

/// Makes sure that there is a terminal to draw on.
///
/// # Errors
/// If the output goes somewhere else.
pub fn require() -> Result<()> {
    if !stdout().is_terminal() {
        bail!("the output is no terminal (use 'status', or 'status --json' for programs)");
    }
    Ok(())
}

/// Ends the process when the terminal is gone, by a thread. The one that reads keys never comes back then: crossterm
/// reads on until there is an error, and the end of a file is none.
///
/// # Errors
/// If the signal cannot be handled.
pub fn end_on_hang_up() -> Result<()> {
    let mut signals = Signals::new([SIGHUP]).context("cannot handle signals")?;
    let wait = move || {
        if signals.forever().next().is_some() {
            let _ = ratatui::try_restore();
            let _ = execute!(stdout(), Show);
            std::process::exit(128 + SIGHUP);
        }
    };
    thread::Builder::new().name("hang-up".into()).spawn(wait).map(drop).context("cannot start a thread")
}

/// Has `work` draw on the whole terminal. Afterwards, whether it succeeds, fails or panics, the terminal is as before.
///
/// # Errors
/// If the terminal cannot be set up, or `work` fails.
pub fn with<T>(work: impl FnOnce(&mut DefaultTerminal) -> Result<T>) -> Result<T> {
    // In a panic a hook restores the terminal before the message is printed.
    let result = ratatui::try_init().context("cannot set up the terminal").and_then(|mut terminal| work(&mut terminal));
    // If the terminal is gone, there is nothing to restore.
    let _ = ratatui::try_restore();
    result
}
