// SPDX-License-Identifier: GPL-2.0-only
//! `bench report`: one page of what the benches have found, which needs nothing else: no script, no server, no font.

mod chart;
mod page;
mod read;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};

/// Write a page of HTML with tables and pictures of what the benches have found.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Directories with a summary.json, or such files.
    #[arg(value_name = "DIR", required = true)]
    dirs: Vec<PathBuf>,

    /// The page.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

pub fn run(args: &ReportArgs) -> Result<ExitCode> {
    let benches = read::benches(&args.dirs)?;
    let text = page::page(&benches)?;
    let out = args.out.display();
    std::fs::write(&args.out, text).with_context(|| format!("cannot write {out} (choose another --out)"))?;
    println!("the report is in {out}: open it in a browser");
    Ok(ExitCode::SUCCESS)
}
