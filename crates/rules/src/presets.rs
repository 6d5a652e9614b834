// SPDX-License-Identifier: GPL-2.0-only
//! The presets: policies under the papers' names, from `policies/presets.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use anyhow::{Context, Result, anyhow};
use clap::Parser;
use toml::Table;

use crate::choices::Choices;
use crate::policy::{Policy, PolicyChange};
use crate::report;
use crate::rows::Origin;

/// The policy of a scheduler that was told nothing.
pub const DEFAULT: &str = "dcs-sb";

const SOURCE: &str = include_str!("../../../policies/presets.toml");

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

static PRESETS: LazyLock<BTreeMap<String, Preset>> =
    LazyLock::new(|| read(SOURCE).expect("policies/presets.toml is valid: a test reads it"));

fn read(source: &str) -> Result<BTreeMap<String, Preset>> {
    let tables: BTreeMap<String, Table> = toml::from_str(source)?;
    let preset = |(name, table): (String, Table)| {
        let preset = preset(&name, table).with_context(|| name.clone())?;
        Ok((name, preset))
    };
    tables.into_iter().map(preset).collect()
}

fn preset(name: &str, mut table: Table) -> Result<Preset> {
    let mut text = |key: &str| match table.remove(key) {
        Some(toml::Value::String(text)) => Ok(text),
        _ => Err(anyhow!("no {key}")),
    };
    let (summary, source) = (text("summary")?, text("source")?);
    let choices: Choices = table.try_into()?;
    choices.check().map_err(|e| anyhow!(e))?;
    Ok(Preset { summary, source, policy: Policy::new(name, choices.or(&Choices::defaults())) })
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

/// What the choice `key` is unless somebody makes it, in words for `--help`.
pub fn default_of(key: &str) -> String {
    let of_presets = all().values().filter_map(|preset| preset.policy.choices.text(key));
    let mut values: BTreeSet<String> = of_presets.chain(Choices::defaults().text(key)).collect();
    match values.len() {
        0 => "measured".into(),
        1 => values.pop_first().unwrap_or_default(),
        _ => "by preset, see 'policy list --json'".into(),
    }
}

/// What is changed in a preset, as the loader's own flags.
#[derive(Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Changes {
    #[command(flatten)]
    choices: Choices,
}

/// A preset and the flags for what is to differ from it: `dcs+h_ms=-20` is `dcs` with `--h-ms=-20`.
pub fn arguments(name: &str) -> (&str, Vec<String>) {
    let mut parts = name.split('+');
    let preset = parts.next().unwrap_or_default();
    let flag = |change: &str| {
        let (key, value) = change.split_once('=').unwrap_or((change, ""));
        format!("--{}={value}", key.replace('_', "-"))
    };
    (preset, parts.map(flag).collect())
}

/// The preset with the changes that are in its name, as every output has it: `dcs+h_ms=-20`.
///
/// # Errors
/// One line, if the loader would refuse it.
pub fn changed(name: &str) -> Result<Policy, String> {
    let (preset, changes) = arguments(name);
    let base = find(preset)?.policy;
    let changes = Changes::try_parse_from(changes).map_err(|error| report::what_is_wrong(&error))?;
    PolicyChange { name: Some(preset.into()), choices: changes.choices }.apply(&base)
}

impl PolicyChange {
    /// The policy that this makes of `current`.
    ///
    /// # Errors
    /// One line for an unknown name, a value out of range, or settings that contradict each other.
    pub fn apply(&self, current: &Policy) -> Result<Policy, String> {
        let base = match &self.name {
            Some(name) => find(name)?.policy,
            None => current.clone(),
        };
        self.choices.check()?;
        base.with(&self.choices, |_| Origin::Flag, self.name.is_some()).map_err(|fault| fault.message())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::choices::ROWS;
    use crate::costs::Costs;
    use crate::intf;

    #[test]
    fn every_preset_is_valid_and_is_its_own_name() {
        assert!(all().contains_key(DEFAULT) && all().contains_key("local"));
        for (name, preset) in all() {
            assert_eq!(preset.policy.name(), *name);
            assert!(!preset.summary.is_empty() && !preset.source.is_empty(), "{name}");
        }
    }

    #[test]
    fn every_preset_has_a_rule_on_each_axis_and_nothing_without_effect() {
        let tables: BTreeMap<String, Table> = toml::from_str(SOURCE).unwrap();
        for (name, table) in tables {
            let choices = &all()[&name].policy.choices;
            // A gate that has no effect is shown all the same.
            for key in table.keys().filter(|key| !["summary", "source", "gate"].contains(&key.as_str())) {
                assert!(choices.text(key).is_some(), "{name}: {key} has no effect");
            }
            for axis in ["arrival", "gate", "wait"] {
                assert!(table.contains_key(axis), "{name}: no {axis}");
            }
        }
        // The costs are those of the node.
        let given = ["arrival", "gate", "wait", "latency_us", "overhead_us", "switch_us"];
        let without = ROWS.iter().map(|row| row.key).filter(|key| Choices::defaults().text(key).is_none());
        assert_eq!(without.collect::<Vec<_>>(), given);
    }

    #[test]
    fn every_rule_of_the_file_is_known_to_the_c_side() {
        let costs = Costs { latency_us: 1.0, overhead_us: 1.0, switch_us: 1.0 };
        for preset in all().values() {
            let policy = preset.policy.to_bpf(&costs);
            assert!(policy.arrival < intf::cosched_arrival_COSCHED_NR_ARRIVALS);
            assert!(policy.gate < intf::cosched_gate_COSCHED_NR_GATES);
            assert!(policy.wait < intf::cosched_wait_COSCHED_NR_WAITS);
            assert!(policy.spin < intf::cosched_spin_COSCHED_NR_SPINS);
            assert!(policy.choice < intf::cosched_choice_COSCHED_NR_CHOICES);
        }
    }

    #[test]
    fn a_change_is_a_flag() {
        assert_eq!(arguments("dcs"), ("dcs", vec![]));
        let flags = ("dcs", vec!["--gate=rate".to_owned(), "--rate-exponent=-1".to_owned()]);
        assert_eq!(arguments("dcs+gate=rate+rate_exponent=-1"), flags);
        assert_eq!(changed("dcs+h_ms=-20").unwrap().name(), "dcs+h_ms=-20");
        assert!(changed("local+h_ms=-20").unwrap_err().contains("no effect"));
    }

    #[test]
    fn a_file_that_is_wrong_is_no_preset() {
        for (source, wanted) in [
            ("[x]\nsource = 'a'\n", "x: no summary"),
            ("[x]\nsummary = 'a'\nsource = 'a'\nspin_us = 0\n", "x: --spin-us: 0 is out of range"),
            ("[x]\nsummary = 'a'\nsource = 'a'\nhms = 1\n", "x: unknown field `hms`"),
        ] {
            let error = format!("{:#}", read(source).unwrap_err());
            assert!(error.starts_with(wanted), "{error}");
        }
    }
}
