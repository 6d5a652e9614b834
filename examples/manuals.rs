// SPDX-License-Identifier: GPL-2.0-only
//! Writes the manual pages and the completions of shells for the command line into a directory, for the package:
//! `cargo run --release --example manuals -- DIR`. No part of the program: it needs libraries that the program does
//! not.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use clap_complete::{Shell, generate_to};
use command_line::command_line;

#[path = "../tests/common/command_line.rs"]
mod command_line;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("no directory (usage: manuals DIR)".into());
    };
    let (manuals, completions) = (dir.join("man"), dir.join("completions"));
    for dir in [&manuals, &completions] {
        fs::create_dir_all(dir)?;
    }
    clap_mangen::generate_to(command_line(), &manuals)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut command_line(), "scx_cosched", &completions)?;
    }
    Ok(())
}
