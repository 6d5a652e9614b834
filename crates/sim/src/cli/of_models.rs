// SPDX-License-Identifier: GPL-2.0-only
//! The flags of what is made of models: `sim paper` and `sim sweep`.

use std::path::PathBuf;

use clap::Args;

use super::{ReadingArgs, Runs};
use crate::bsp::Readings;
use cosched_rules::range::Range;

const ITERATIONS: Range<u32> = Range::new(1, 100_000_000, "a whole number");

/// Figures and tables of the papers: CSV, JSON, SVG and PNG, with the papers' numbers beside ours where their text has
/// them.
#[derive(Args, Clone, Debug)]
pub struct PaperArgs {
    /// Which: thesis-3-2 to thesis-3-5, dusseau-2 to dusseau-13 (but 7), dusseau-readings, arpaci-3 to arpaci-5,
    /// zhang-fig3 to zhang-fig5, zhang-tab4, zhang-tab5, zhang-readings, or all. None with --page makes the page of
    /// what is there.
    #[arg(value_name = "NAME")]
    pub names: Vec<String>,

    /// The directory for NAME.csv, NAME.json, NAME.svg and NAME.png; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Write the comparison of all figures in that directory to this file, in Markdown.
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,

    /// At most so many iterations of each bulk-synchronous job, 1 to 100000000; the papers have 10 s of it.
    #[arg(long, value_name = "N", default_value = "2000", value_parser = |s: &str| ITERATIONS.parse(s), allow_hyphen_values = true)]
    pub iterations: u32,

    /// How the figures of Dusseau are read: tick, round-trip, both with a comma, or none, as in "sim bsp". Figure 12 has
    /// no tick.
    #[arg(long, value_name = "LIST", default_value_t = Readings::ALL)]
    pub dusseau: Readings,

    /// How the figures of Zhang are read.
    #[command(flatten)]
    pub readings: ReadingArgs,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}

/// Runs a model at every point of a grid. The file says `model = "bsp"`, in [fixed] flags with a value for all points,
/// and in [grid] flags with lists of values.
#[derive(Args, Clone, Debug)]
pub struct SweepArgs {
    /// The TOML file with the grid.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// The directory for results, points.jsonl and points.csv; it is made if it is not there. Points with a result in
    /// one of its .jsonl files are not run again.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,

    /// Only every n-th point, from the i-th on: I/N, with I from 0 to N - 1 and N from 1 to 100000. Results go to
    /// points-I-of-N.jsonl.
    #[arg(long, value_name = "I/N", allow_hyphen_values = true)]
    pub shard: Option<Shard>,
}

/// Every `count`-th point, from number `place` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// From which on.
    pub place: usize,
    /// How many there are.
    pub count: usize,
}

impl std::str::FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "it takes I/N, with N from 1 to 100000 and I from 0 to N - 1".to_string();
        let (place, count) = text.split_once('/').ok_or_else(wrong)?;
        let shard = Shard { place: place.parse().map_err(|_| wrong())?, count: count.parse().map_err(|_| wrong())? };
        let fits = shard.place < shard.count && shard.count <= 100_000;
        fits.then_some(shard).ok_or_else(wrong)
    }
}

impl Shard {
    /// Whether the point with this number is one of its own.
    pub fn has(self, place: usize) -> bool {
        place % self.count == self.place
    }
}
