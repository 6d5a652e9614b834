// SPDX-License-Identifier: GPL-2.0-only
//! The flags of `sim scale`.

use std::path::PathBuf;

use clap::Args;

use super::{NODES, Runs};

/// What to expect on 2 to 65536 nodes: slowdown, degree of coscheduling and F, with lossy and slow networks, a mistuned
/// node and clocks that differ. CSV, JSON, SVG and PNG, and a page of them.
#[derive(Args, Clone, Debug)]
pub struct ScaleArgs {
    /// Which: nodes, jobs, loss, latency, mistuned, skew, beat, or all; none with --page makes the page of what is
    /// there.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// The directory for the figures; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Write what the figures in that directory say to this file, in Markdown.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// No more nodes than this, 1 to 65536.
    #[arg(long, value_name = "N", default_value = "65536", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub most_nodes: u32,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}
