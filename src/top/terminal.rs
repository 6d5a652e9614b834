// SPDX-License-Identifier: GPL-2.0-only
//! Takes the terminal, and gives it back as it was.

use std::io::{IsTerminal, stdout};

use anyhow::{Context, Result, bail};
use ratatui::DefaultTerminal;

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
