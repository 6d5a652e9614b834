// SPDX-License-Identifier: GPL-2.0-only
//! The axes of a policy as flags, for every command that takes them.

use clap::Args;

use crate::limits;
use crate::policy::{Arrival, Gate, PolicyChange, Wait};

/// The choices that a policy is made of.
#[derive(Args, Clone, Debug, Default)]
pub struct AxisArgs {
    /// What happens when a message arrives: none, demand.
    #[arg(long, value_name = "RULE")]
    pub arrival: Option<Arrival>,

    /// Whether a boost is fair: always, equalizing, rate.
    #[arg(long, value_name = "RULE")]
    pub gate: Option<Gate>,

    /// Equalizing: the lag in ms that a boost needs; negative lets a job run ahead by as much.
    #[arg(long, value_name = "MS", value_parser = |s: &str| limits::H_MS.parse(s), allow_hyphen_values = true)]
    pub h_ms: Option<f64>,

    /// Rate: 2^E boosts per round of the CPU's tasks.
    #[arg(long, value_name = "E", value_parser = |s: &str| limits::RATE_EXPONENT.parse(s), allow_hyphen_values = true)]
    pub rate_exponent: Option<i32>,

    /// Rate: the constant C, in ms.
    #[arg(long, value_name = "MS", value_parser = |s: &str| limits::RATE_CONSTANT_MS.parse(s), allow_hyphen_values = true)]
    pub rate_constant_ms: Option<f64>,

    /// What a receive does that finds nothing: none (what the program has it do), spin (before it sleeps).
    #[arg(long, value_name = "RULE")]
    pub wait: Option<Wait>,

    /// Spin: how long a receive that finds nothing spins before it sleeps, in us.
    #[arg(long, value_name = "US", value_parser = |s: &str| limits::SPIN_US.parse(s), allow_hyphen_values = true)]
    pub spin_us: Option<u32>,

    /// How long a task runs before the next decision, in us.
    #[arg(long, value_name = "US", value_parser = |s: &str| limits::SLICE_US.parse(s), allow_hyphen_values = true)]
    pub slice_us: Option<u32>,
}

impl AxisArgs {
    /// With the name of a preset, as `policy set` sends it.
    pub fn change(&self, name: Option<String>) -> PolicyChange {
        PolicyChange {
            name,
            arrival: self.arrival,
            gate: self.gate,
            h_ms: self.h_ms,
            rate_exponent: self.rate_exponent,
            rate_constant_ms: self.rate_constant_ms,
            wait: self.wait,
            spin_us: self.spin_us,
            slice_us: self.slice_us,
        }
    }
}
