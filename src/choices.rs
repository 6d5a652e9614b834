// SPDX-License-Identifier: GPL-2.0-only
//! The choices that make a policy: a rule on each axis, and the rules' parameters.
//!
//! A choice is declared in three places: a field of [`Choices`], a row of [`ROWS`] and a line of
//! [`Policy::to_bpf`](crate::policy::Policy::to_bpf). Flags, configuration file, control socket, presets and every
//! output follow from these.

use std::collections::BTreeMap;

use clap::Args;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use crate::axes::{Arrival, BoostChoice, Gate, Spin, Wait};
use crate::given::{Given, Origin};
use crate::limits::Range;

macro_rules! choices {
    ($($(#[$help:meta])+ $key:ident: $type:ty, $value:literal;)+) => {
        /// Choices, as flags give them, the configuration file and the control socket carry them, presets hold
        /// them and outputs show them. None: not given, or of no effect.
        #[derive(Args, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Choices {
            $(
                $(#[$help])+
                #[arg(long, value_name = $value, value_parser = flag::<$type>(stringify!($key)),
                      allow_hyphen_values = is_number(stringify!($key)))]
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<$type>,
            )+
        }
    };
}

choices! {
    /// What happens when a message arrives: none, demand (its receiver runs), periodic (every interval one receiver
    /// runs), gang (nothing: jobs take turns by the clock), beat (its receiver runs, in the order of the turn).
    arrival: Arrival, "RULE";
    /// Whether a boost is fair: always, equalizing, epochs, rate, auto.
    gate: Gate, "RULE";
    /// Equalizing, epochs: the lag in ms that a boost needs, -3600000 to 3600000; negative lets a job run ahead by as
    /// much.
    h_ms: f64, "MS";
    /// Auto: the share of its fair share that a job is boosted up to, 0.1 to 10; 1 is exactly fair.
    target_fairness: f64, "F";
    /// Rate: 2^E boosts per round of the CPU's tasks, E being -32 to 32.
    rate_exponent: i32, "E";
    /// Rate: the constant C, in ms, -3600000 to 3600000.
    rate_constant_ms: f64, "MS";
    /// Whether a boost needs a message of a later epoch than the node besides: true, false.
    epochs: bool, "BOOL";
    /// Demand, periodic: whether a boost lasts no longer than what is left of the sender's slice: true, false.
    residual_slice: bool, "BOOL";
    /// Whom the periodic boost, and a task that yields, put first: round-robin, next-pending, most-pending,
    /// longest-waiting.
    boost_choice: BoostChoice, "RULE";
    /// What a receive does that finds nothing: busy (what the program has it do), spin (before it sleeps), spin-block
    /// (and one that polls leaves the CPU), spin-yield (or lets others go first).
    wait: Wait, "RULE";
    /// For how long it spins: immediate (not at all), fixed, baseline, conditional, adaptive-local, adaptive-global.
    spin: Spin, "RULE";
    /// Fixed: how long a receive that finds nothing spins, in us, 1 to 10000.
    spin_us: u32, "US";
    /// Spin-block: how long a task that polled stays off the CPU at most, in ms, 1 to 1000.
    recheck_ms: u32, "MS";
    /// How often a CPU looks for whom to boost and who polls in vain, in us, 100 to 100000.
    interval_us: u32, "US";
    /// Gang, beat: how long a turn is, in ms, 1 to 60000.
    quantum_ms: u32, "MS";
    /// Gang: how many rows there are, 1 to 1024.
    rows: u32, "N";
    /// How long a task runs before the next decision, in us, 100 to 1000000.
    slice_us: u32, "US";
    /// L, the latency of a message, in us, 0 to 1000000, instead of the measured one.
    latency_us: f64, "US";
    /// o, the CPU time to send or to receive a message, in us, 0 to 1000000, instead of the measured one.
    overhead_us: f64, "US";
    /// W, the time to wake a task and switch to it, in us, 0 to 1000000, instead of the measured one.
    switch_us: f64, "US";
}

/// One of these rules, each with its axis, is needed. The first is the one that an error names.
pub type Need = &'static [(&'static str, &'static [&'static str])];

const BOOSTS: Need = &[("arrival", &["demand", "periodic"]), ("wait", &["spin-yield"])];
const ARRIVES: Need = &[("arrival", &["demand", "periodic"])];
const CHOOSES: Need = &[("arrival", &["periodic"]), ("wait", &["spin-yield"])];
const PULSES: Need = &[("arrival", &["periodic"]), ("wait", &["spin-block", "spin-yield"])];
const GANG: Need = &[("arrival", &["gang"])];
const TURNS: Need = &[("arrival", &["gang", "beat"])];
const LAGS: Need = &[("gate", &["equalizing", "epochs"])];
const COMBINES: Need = &[("gate", &["auto", "equalizing", "always", "rate"])];
const RATE: Need = &[("gate", &["rate"])];
const AUTO: Need = &[("gate", &["auto"])];
const SPINS: Need = &[("wait", &["spin", "spin-block", "spin-yield"])];
const PARKS: Need = &[("wait", &["spin-block"])];
const FIXED: Need = &[("spin", &["fixed"])];
const RECKONS: Need = &[("spin", &["baseline", "conditional", "adaptive-local", "adaptive-global"])];

const MS: Kind = Kind::Real(Range::new(-3_600_000.0, 3_600_000.0, "a number of ms"));
const COST: Kind = Kind::Real(Range::new(0.0, 1e6, "a number of us"));

const fn whole(min: u32, max: u32, what: &'static str) -> Kind {
    Kind::Whole(Range::new(min as f64, max as f64, what))
}

/// What is known of each choice, in the order of the fields.
pub static ROWS: &[Row] = &[
    Row { key: "arrival", kind: Kind::Rule, needs: &[] },
    Row { key: "gate", kind: Kind::Rule, needs: &[BOOSTS] },
    Row { key: "h_ms", kind: MS, needs: &[BOOSTS, LAGS] },
    Row { key: "target_fairness", kind: Kind::Real(Range::new(0.1, 10.0, "a number")), needs: &[BOOSTS, AUTO] },
    Row { key: "rate_exponent", kind: Kind::Whole(Range::new(-32.0, 32.0, "a whole number")), needs: &[BOOSTS, RATE] },
    Row { key: "rate_constant_ms", kind: MS, needs: &[BOOSTS, RATE] },
    Row { key: "epochs", kind: Kind::Switch, needs: &[BOOSTS, COMBINES] },
    Row { key: "residual_slice", kind: Kind::Switch, needs: &[ARRIVES] },
    Row { key: "boost_choice", kind: Kind::Rule, needs: &[CHOOSES] },
    Row { key: "wait", kind: Kind::Rule, needs: &[] },
    Row { key: "spin", kind: Kind::Rule, needs: &[SPINS] },
    Row { key: "spin_us", kind: whole(1, 10_000, "a whole number of us"), needs: &[SPINS, FIXED] },
    Row { key: "recheck_ms", kind: whole(1, 1000, "a whole number of ms"), needs: &[PARKS] },
    Row { key: "interval_us", kind: whole(100, 100_000, "a whole number of us"), needs: &[PULSES] },
    Row { key: "quantum_ms", kind: whole(1, 60_000, "a whole number of ms"), needs: &[TURNS] },
    Row { key: "rows", kind: whole(1, 1024, "a whole number"), needs: &[GANG] },
    Row { key: "slice_us", kind: whole(100, 1_000_000, "a whole number of us"), needs: &[] },
    Row { key: "latency_us", kind: COST, needs: &[SPINS, RECKONS] },
    Row { key: "overhead_us", kind: COST, needs: &[SPINS, RECKONS] },
    Row { key: "switch_us", kind: COST, needs: &[SPINS, RECKONS] },
];

/// Which values a choice may have.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// One of the rules of an axis.
    Rule,
    /// True or false.
    Switch,
    /// A whole number.
    Whole(Range<f64>),
    /// Any number.
    Real(Range<f64>),
}

/// What is known of a choice.
#[derive(Debug)]
pub struct Row {
    /// Its name: that of the field, of the key, and with hyphens of the flag.
    pub key: &'static str,
    /// Which values it may have.
    pub kind: Kind,
    /// What it needs to have an effect: all of these.
    pub needs: &'static [Need],
}

/// The row of `key`, if that is a choice.
pub fn row(key: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.key == key)
}

fn is_number(key: &str) -> bool {
    matches!(row(key), Some(Row { kind: Kind::Whole(_) | Kind::Real(_), .. }))
}

/// Reads the flag of `key`.
fn flag<T: DeserializeOwned>(key: &'static str) -> impl Fn(&str) -> Result<T, String> + Clone {
    move |text| {
        let value = row(key).ok_or("it has no row")?.parse(text)?;
        serde_json::from_value(value).map_err(|e| e.to_string())
    }
}

impl Row {
    fn parse(&self, text: &str) -> Result<Value, String> {
        Ok(match self.kind {
            Kind::Rule => text.into(),
            Kind::Switch => text.parse::<bool>().map_err(|_| "it takes true or false")?.into(),
            Kind::Whole(range) => {
                let number: i64 = text.parse().map_err(|_| range.describe())?;
                range.check(number as f64)?;
                number.into()
            }
            Kind::Real(range) => range.parse(text)?.into(),
        })
    }

    /// `number`, if this choice may have it; else a message that says what would be.
    pub fn check(&self, number: f64) -> Result<(), String> {
        match self.kind {
            Kind::Whole(range) | Kind::Real(range) => range.check(number).map(drop),
            Kind::Rule | Kind::Switch => Ok(()),
        }
    }

    /// The first need that `values` do not meet.
    pub fn unmet(&self, values: &Map<String, Value>) -> Option<Need> {
        let is = |axis: &str| values.get(axis).and_then(Value::as_str).unwrap_or_default();
        let met = |need: &Need| need.iter().any(|(axis, rules)| rules.contains(&is(axis)));
        self.needs.iter().copied().find(|need| !met(need))
    }
}

/// Choices that somebody made, with where he did, by key.
pub type Overrides = BTreeMap<&'static str, Given<Value>>;

/// A value as a flag has it.
pub fn text(value: &Value) -> String {
    match (value, value.as_f64()) {
        (Value::String(text), _) => text.clone(),
        (Value::Number(number), Some(real)) if number.is_f64() => real.to_string(),
        _ => value.to_string(),
    }
}

impl Choices {
    /// What is given, by key.
    pub fn values(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(values)) => values,
            other => unreachable!("choices are an object: {other:?}"),
        }
    }

    /// These, and where they say nothing, `other`.
    pub fn or(&self, other: &Choices) -> Choices {
        let mut values = other.values();
        values.extend(self.values());
        Choices::from_values(values)
    }

    /// Those that have an effect together with the others; the rules of all axes must be given.
    pub fn effective(&self) -> Choices {
        let all = self.values();
        let kept = ROWS.iter().filter(|row| row.unmet(&all).is_none());
        Choices::from_values(kept.filter_map(|row| Some((row.key.to_string(), all.get(row.key)?.clone()))).collect())
    }

    /// From values that were choices.
    pub(crate) fn from_values(values: Map<String, Value>) -> Choices {
        serde_json::from_value(Value::Object(values)).expect("they were choices")
    }

    /// What is given, as flags have it, in the order of the fields.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        let values = self.values();
        ROWS.iter().filter_map(move |row| Some((row.key, text(values.get(row.key)?))))
    }

    /// What is given, with where that was.
    pub fn given(&self, origin: impl Fn(&str) -> Origin) -> Overrides {
        let values = self.values();
        let one = |row: &Row| Some((row.key, Given { value: values.get(row.key)?.clone(), origin: origin(row.key) }));
        ROWS.iter().filter_map(one).collect()
    }

    /// Names the first flag with a value out of range.
    ///
    /// # Errors
    /// One line that says what it takes.
    pub fn check(&self) -> Result<(), String> {
        let values = self.values();
        let number = |row: &'static Row| Some((row, values.get(row.key)?.as_f64()?));
        ROWS.iter().filter_map(number).try_for_each(|(row, number)| {
            row.check(number).map_err(|e| format!("--{}: {e}", row.key.replace('_', "-")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_row_in_order() {
        let command = Choices::augment_args(clap::Command::new("x"));
        let fields: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        assert_eq!(fields, ROWS.iter().map(|row| row.key).collect::<Vec<_>>());
    }

    #[test]
    fn every_rule_that_is_needed_exists() {
        for (axis, rules) in ROWS.iter().flat_map(|row| row.needs).copied().flatten() {
            for rule in *rules {
                let values = Map::from_iter([(axis.to_string(), Value::from(*rule))]);
                serde_json::from_value::<Choices>(Value::Object(values)).unwrap();
            }
        }
    }

    #[test]
    fn a_text_is_what_a_flag_reads() {
        for (key, texts) in [("h_ms", ["-20", "0.5"]), ("spin_us", ["1", "200"]), ("residual_slice", ["true", "false"])]
        {
            for wanted in texts {
                assert_eq!(text(&row(key).unwrap().parse(wanted).unwrap()), wanted);
            }
        }
    }
}
