// SPDX-License-Identifier: GPL-2.0-only
//! The flags of the thesis's models: `sim markov` and `sim dynamic`.

use clap::Args;

use super::{NODES, Runs};
use cosched_rules::range::Range;

const RATE: Range<f64> = Range::new(0.0, 1e9, "a rate");
const PER_CYCLE: Range<f64> = Range::new(0.0, 1000.0, "a number per cycle");
const H_CYCLES: Range<f64> = Range::new(-1e9, 1e9, "a number of cycles");
const CYCLES: Range<u64> = Range::new(1, 1_000_000_000, "a whole number of cycles");
const WARMUP: Range<u64> = Range::new(0, 1_000_000_000, "a whole number of cycles");
const MARKOV_NODES: Range<u32> = Range::new(1, 1_000_000, "a whole number");

/// A rate that is so small that products with it lose digits is none.
fn rate(text: &str) -> Result<f64, String> {
    match RATE.parse(text)? {
        rate if rate > 0.0 && rate < 1e-9 => Err(format!("{rate} is out of range: it takes 0, or a rate from 1e-9 on")),
        rate => Ok(rate),
    }
}

/// The Markov model of two jobs under the gate `always`, in closed form (thesis 3.1). Prints for each number of nodes
/// the probability that so many run job B.
#[derive(Args, Clone, Debug)]
pub struct MarkovArgs {
    /// N, nodes, with a CPU each, and processes of each job, 1 to 1000000.
    #[arg(long, value_name = "N", default_value = "64", value_parser = |s: &str| MARKOV_NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// Spontaneous switches away from each process of job A, per unit of time, 0 or 1e-9 to 1e9.
    #[arg(long, value_name = "RATE", default_value = "0.005", value_parser = rate, allow_hyphen_values = true)]
    pub qs_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.005", value_parser = rate, allow_hyphen_values = true)]
    pub qs_b: f64,

    /// Messages that each running process of job A sends, per unit of time, 0 or 1e-9 to 1e9.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = rate, allow_hyphen_values = true)]
    pub qm_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = rate, allow_hyphen_values = true)]
    pub qm_b: f64,

    /// How the result is printed; there is nothing random in it, and one run has it.
    #[command(flatten)]
    pub runs: Runs,
}

/// Which gate of `policies/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Algorithm {
    /// Every message is granted its switch (thesis 3.1).
    Always,
    /// If the receiver lags by more than h (thesis 3.2).
    Equalizing,
    /// If besides the message is of a later epoch (thesis 3.3).
    Epochs,
}

/// The thesis's simulation of two jobs (3.1 to 3.3). Time is counted in scheduler cycles. Defaults are those of Figure
/// 3-5 at 375 messages per time slice.
#[derive(Args, Clone, Debug)]
pub struct DynamicArgs {
    /// Which messages have a node switch.
    #[arg(long, value_enum, value_name = "GATE", default_value = "epochs")]
    pub algorithm: Algorithm,

    /// Instead of a gate, a preset as the kernel has it, with changes if need be: dcs-sb+gate=rate. A mean time slice
    /// is then as long as its own, and its gate knows what the kernel's does.
    #[arg(long, value_name = "PRESET", conflicts_with_all = ["algorithm", "h_cycles", "node_numbers"])]
    pub policy: Option<String>,

    /// N, nodes, with a CPU each, and processes of each job, 1 to 65536.
    #[arg(long, value_name = "N", default_value = "64", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// How long each run is, in cycles, 1 to 1000000000.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = |s: &str| CYCLES.parse(s), allow_hyphen_values = true)]
    pub cycles: u64,

    /// How much of it passes before anything is counted, in cycles, 0 to 1000000000. [default: a tenth]
    #[arg(long, value_name = "N", value_parser = |s: &str| WARMUP.parse(s), allow_hyphen_values = true)]
    pub warmup_cycles: Option<u64>,

    /// Spontaneous switches away from each process of job A, per cycle, 0 to 1000.
    #[arg(long, value_name = "RATE", default_value = "0.001", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qs_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.001", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qs_b: f64,

    /// Messages that each running process of job A sends, per cycle, 0 to 1000.
    #[arg(long, value_name = "RATE", default_value = "0.25", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qm_a: f64,

    /// The same of job B.
    #[arg(long, value_name = "RATE", default_value = "0.5", value_parser = |s: &str| PER_CYCLE.parse(s), allow_hyphen_values = true)]
    pub qm_b: f64,

    /// Equalizing, epochs: the lag that a switch needs, in cycles, -1e9 to 1e9; negative lets a process run ahead.
    #[arg(long, value_name = "H", default_value = "-1000", value_parser = |s: &str| H_CYCLES.parse(s), allow_hyphen_values = true)]
    pub h_cycles: f64,

    /// Epochs: with the number of the node that counted as low bits, as in the kernel; the thesis's simulation has
    /// none.
    #[arg(long)]
    pub node_numbers: bool,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}
