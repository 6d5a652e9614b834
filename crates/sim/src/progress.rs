// SPDX-License-Identifier: GPL-2.0-only
//! How far something is that takes long.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// On stderr, if that is a terminal.
pub fn progress(name: &str, length: u64) -> ProgressBar {
    let target = match std::io::stderr().is_terminal() {
        true => ProgressDrawTarget::stderr(),
        false => ProgressDrawTarget::hidden(),
    };
    let style = ProgressStyle::with_template("{prefix} [{wide_bar}] {pos}/{len}, {eta} left").expect("it is right");
    ProgressBar::with_draw_target(Some(length), target).with_style(style).with_prefix(name.to_string())
}
