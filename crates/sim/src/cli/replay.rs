// SPDX-License-Identifier: GPL-2.0-only
//! The flags of `sim replay`.

use std::path::PathBuf;

use clap::Args;

use super::{Runs, TICK};
use cosched_rules::range::Range;

const LATENCY: Range<f64> = Range::new(0.0, 1e6, "a number of us");
const COST: Range<f64> = Range::new(0.05, 1e6, "a number of us");

/// The scenarios of `bench demo` or `bench policies` by the simulator, beside what was measured, at the costs that were
/// measured there. Round trips per second and F under each scheduler.
#[derive(Args, Clone, Debug)]
pub struct ReplayArgs {
    /// What the bench has written: summary.json.
    #[arg(value_name = "SUMMARY.json")]
    pub file: PathBuf,

    /// L, as the calibration of that machine had it, in us, 0 to 1000000. [default: what the file has]
    #[arg(long, value_name = "US", value_parser = |s: &str| LATENCY.parse(s), allow_hyphen_values = true)]
    pub latency_us: Option<f64>,

    /// The same of o, in us, 0.05 to 1000000.
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub overhead_us: Option<f64>,

    /// The same of W, in us, 0.05 to 1000000.
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub switch_us: Option<f64>,

    /// Between two ticks of a CPU there, in us, 100 to 10000: 250 Hz is Debian's.
    #[arg(long, value_name = "US", default_value = "4000", value_parser = |s: &str| TICK.parse(s), allow_hyphen_values = true)]
    pub tick_us: u32,

    /// Write the comparison to this directory too, as figures for `sim paper --page`; it is made if it is not there.
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}
