// SPDX-License-Identifier: GPL-2.0-only
//! The presets: policies under the papers' names, from `policies/presets.toml`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::limits;
use crate::policy::{Arrival, Gate, Policy, Wait};

/// The policy of a scheduler that was told nothing.
pub const DEFAULT: &str = "dcs";
/// How long a task runs before the next decision unless the preset says otherwise, us.
pub const DEFAULT_SLICE_US: u32 = 20_000;

const SOURCE: &str = include_str!("../policies/presets.toml");

/// A policy with a name that others know it by.
#[derive(Clone, Debug)]
pub struct Preset {
    /// What it does, in a line.
    pub summary: String,
    /// Where it is described.
    pub source: String,
    /// The choice on each axis.
    pub policy: Policy,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    summary: String,
    source: String,
    arrival: Arrival,
    gate: Gate,
    h_ms: Option<f64>,
    rate_exponent: Option<i32>,
    rate_constant_ms: Option<f64>,
    wait: Wait,
    spin_us: Option<u32>,
    slice_us: Option<u32>,
}

static ROWS: LazyLock<BTreeMap<String, Row>> =
    LazyLock::new(|| toml::from_str(SOURCE).expect("policies/presets.toml is valid: a test reads it"));

static PRESETS: LazyLock<BTreeMap<String, Preset>> =
    LazyLock::new(|| ROWS.iter().map(|(name, row)| (name.clone(), row.to_preset(name))).collect());

impl Row {
    fn to_preset(&self, name: &str) -> Preset {
        let policy = Policy {
            preset: name.to_string(),
            arrival: self.arrival,
            gate: self.gate,
            h_ms: limits::H_MS.check(self.h_ms.unwrap_or_else(default_h_ms)).expect("h_ms of a preset"),
            rate_exponent: limits::RATE_EXPONENT.check(self.rate_exponent.unwrap_or(0)).expect("E of a preset"),
            rate_constant_ms: limits::RATE_CONSTANT_MS
                .check(self.rate_constant_ms.unwrap_or(0.0))
                .expect("C of a preset"),
            wait: self.wait,
            spin_us: limits::SPIN_US.check(self.spin_us.unwrap_or_else(default_spin_us)).expect("spin_us of a preset"),
            slice_us: limits::SLICE_US.check(self.slice_us.unwrap_or(DEFAULT_SLICE_US)).expect("slice of a preset"),
        };
        Preset { summary: self.summary.clone(), source: self.source.clone(), policy: policy.normalized() }
    }
}

/// h of the gate `equalizing` where neither the preset nor the user gives one, ms: that of the default policy.
pub fn default_h_ms() -> f64 {
    ROWS.get(DEFAULT).and_then(|row| row.h_ms).unwrap_or(0.0)
}

/// How long the wait rule `spin` spins where neither the preset nor the user says, us: as under the default policy.
pub fn default_spin_us() -> u32 {
    ROWS.get(DEFAULT).and_then(|row| row.spin_us).expect("the default policy says how long to spin")
}

/// All presets, by name.
pub fn all() -> &'static BTreeMap<String, Preset> {
    &PRESETS
}

/// The preset called `name`.
///
/// # Errors
/// One line that has the names of all, if it is none of them.
pub fn find(name: &str) -> Result<Preset, String> {
    PRESETS.get(name).cloned().ok_or_else(|| {
        let known: Vec<&str> = PRESETS.keys().map(String::as_str).collect();
        format!("unknown policy '{name}' (known: {})", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_valid_and_is_its_own_name() {
        assert!(all().contains_key(DEFAULT) && all().contains_key("local"));
        for (name, preset) in all() {
            assert_eq!(preset.policy.name(), *name);
            assert!(!preset.summary.is_empty() && !preset.source.is_empty(), "{name}");
        }
    }

    #[test]
    fn every_rule_of_the_file_is_known_to_the_c_side() {
        for preset in all().values() {
            let policy = preset.policy.to_bpf();
            assert!(policy.arrival < crate::bpf::intf::cosched_arrival_COSCHED_NR_ARRIVALS);
            assert!(policy.gate < crate::bpf::intf::cosched_gate_COSCHED_NR_GATES);
            assert!(policy.wait < crate::bpf::intf::cosched_wait_COSCHED_NR_WAITS);
        }
    }
}
