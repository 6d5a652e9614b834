// SPDX-License-Identifier: GPL-2.0-only
//! Messages on stderr: one line each, with the program's name, so that they can be told apart in a journal.

use std::io::Write;

use env_logger::Builder;
use libbpf_rs::{PrintLevel, set_print};
use log::{Level, LevelFilter};

use crate::NAME;

/// Starts logging. `verbose` shows debug messages, among them what libbpf and the verifier say.
pub fn init(verbose: bool) {
    let level = if verbose { LevelFilter::Debug } else { LevelFilter::Info };
    // Fails only if a logger is set already: then that one stays.
    let _ = Builder::new()
        .filter_level(level)
        // Which kernel features the scx library misses says nothing to a user of this program.
        .filter_module("scx_utils::compat", if verbose { level } else { LevelFilter::Warn })
        .format(|out, record| match record.level() {
            Level::Info => writeln!(out, "{NAME}: {}", record.args()),
            Level::Error => writeln!(out, "{NAME}: error: {}", record.args()),
            Level::Warn => writeln!(out, "{NAME}: warning: {}", record.args()),
            _ => writeln!(out, "{NAME}: debug: {}", record.args()),
        })
        .try_init();
    set_print(Some((PrintLevel::Debug, from_libbpf)));
}

/// libbpf reports what the loader copes with, over many lines, so all of it is for debugging only.
fn from_libbpf(_level: PrintLevel, message: String) {
    log::debug!("{}", message.trim_end());
}
