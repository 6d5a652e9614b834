// SPDX-License-Identifier: GPL-2.0-only
//! The choices that make a policy: a rule on each axis, and the rules' parameters.
//!
//! A choice is one row of the table below. Its flag, its key, its help, its place in presets, control socket and
//! metrics, and its way to the BPF side follow from the row.

use clap::error::ErrorKind;
use clap::{ArgMatches, Args, Command, FromArgMatches};
use serde::{Deserialize, Serialize};

pub use crate::axes::{Arrival, BoostChoice, Gate, Spin, Wait};
use crate::intf;
use crate::range::Range;
use crate::rows::{Entries, Fault, Kind, Need, Row, TEXT, Value, entries, whole};

/// Each row: what it is for; its key and type, and its value where neither preset nor user give one (None: each preset
/// gives it, or the node); what `--help` calls its value; which values it takes; what it needs to have an effect; and
/// the field of the C side that it becomes, with the function that converts it.
macro_rules! choices {
    ($($(#[doc = $help:literal])+ $key:ident: $type:ty = $default:expr, $value:literal, $kind:expr, [$($need:ident),*]
       => $field:ident: $convert:expr;)+) => {
        /// Choices, as flags give them, the configuration file and the control socket carry them, presets hold
        /// them and outputs show them. None: not given, or of no effect.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct Choices {
            $($(#[doc = $help])+ #[serde(skip_serializing_if = "Option::is_none")] pub $key: Option<$type>,)+
        }

        /// What is known of each choice.
        pub static ROWS: &[Row] = &[$(Row {
            key: stringify!($key),
            help: concat!($($help),+),
            value: $value,
            kind: $kind,
            default: "",
            needs: &[$($need),*],
            with: "",
            check: <Option<$type> as Value>::check,
        }),+];

        impl Choices {
            /// Each choice that neither preset nor user makes.
            pub fn defaults() -> Choices {
                Choices { $($key: $default),+ }
            }

            /// Those among `given`.
            pub fn read(given: &Entries) -> Result<Choices, Fault> {
                Ok(Choices { $($key: row(stringify!($key)).value(given)?),+ })
            }

            /// These, and where they say nothing, `other`.
            pub fn or(&self, other: &Choices) -> Choices {
                Choices { $($key: self.$key.or(other.$key)),+ }
            }

            /// Those that have an effect together with the others; the rules of all axes must be given.
            pub fn effective(&self) -> Choices {
                let has_effect = |key| row(key).unmet(self).is_none();
                Choices { $($key: self.$key.filter(|_| has_effect(stringify!($key)))),+ }
            }

            /// The choice `key`, if it is given, as a flag has it.
            pub fn text(&self, key: &str) -> Option<String> {
                match key {
                    $(stringify!($key) => self.$key.map(|value| value.to_string()),)+
                    _ => None,
                }
            }

            /// As the BPF side reads them. Parameters within their ranges cannot overflow.
            pub fn to_bpf(&self) -> intf::cosched_policy {
                intf::cosched_policy { $($field: self.$key.map($convert).unwrap_or_default()),+ }
            }
        }
    };
}

choices! {
    /// What happens when a message arrives: none, demand (its receiver runs), periodic (every interval one receiver
    /// runs), gang (nothing: jobs take turns by the clock), beat (its receiver runs in turns that no job has won).
    arrival: Arrival = None, "RULE", TEXT, [] => arrival: Arrival::to_bpf;
    /// Whether a boost is fair: always, equalizing, epochs, rate, auto.
    gate: Gate = None, "RULE", TEXT, [BOOSTS] => gate: Gate::to_bpf;
    /// Equalizing, epochs: the lag in ms that a boost needs; negative lets a job run ahead by as much.
    h_ms: f64 = Some(-60.0), "MS", MS, [BOOSTS, LAGS] => h_ns: ns_of_ms;
    /// Auto: the share of its fair share that a job is boosted up to; 1 is exactly fair.
    target_fairness: f64 = Some(1.0), "F", Kind::Real(Range::new(0.1, 10.0, "a number")), [BOOSTS, AUTO]
        => target_permille: permille;
    /// Rate: 2^E boosts per round of the CPU's tasks.
    rate_exponent: i32 = Some(0), "E", whole(-32, 32, "a whole number"), [BOOSTS, RATE] => rate_exponent: i32::from;
    /// Rate: whether R is the mean number of waiting tasks of late, instead of the number of runnable tasks now: true,
    /// false.
    rate_average: bool = Some(false), "BOOL", Kind::Truth, [BOOSTS, RATE] => rate_average: u64::from;
    /// Rate: the constant C, in ms.
    rate_constant_ms: f64 = Some(0.0), "MS", MS, [BOOSTS, RATE] => rate_constant_ns: ns_of_ms;
    /// Whether a boost needs a message of a later epoch than the node besides: true, false.
    epochs: bool = Some(false), "BOOL", Kind::Truth, [BOOSTS, COMBINES] => epochs: u32::from;
    /// Demand, periodic: whether a boost lasts no longer than what is left of the sender's slice: true, false.
    residual_slice: bool = Some(false), "BOOL", Kind::Truth, [ARRIVES] => residual_slice: u32::from;
    /// Which task the periodic boost, and a task that yields, put first: round-robin, next-pending, most-pending,
    /// longest-waiting.
    boost_choice: BoostChoice = Some(BoostChoice::RoundRobin), "RULE", TEXT, [CHOOSES] => choice: BoostChoice::to_bpf;
    /// What a receive does that finds nothing: busy (what the program has it do), spin (before it sleeps), spin-block
    /// (and a task that polls leaves the CPU), spin-yield (or it lets the next one go first).
    wait: Wait = None, "RULE", TEXT, [] => wait: Wait::to_bpf;
    /// For how long it spins: immediate (not at all), fixed, baseline, conditional, adaptive-local, adaptive-global.
    spin: Spin = Some(Spin::Fixed), "RULE", TEXT, [SPINS] => spin: Spin::to_bpf;
    /// Fixed: how long a receive that finds nothing spins, in us.
    spin_us: u32 = Some(200), "US", whole(1, 10_000, "a whole number of us"), [SPINS, FIXED] => spin_ns: ns_of_us;
    /// Spin-block: how long a task that polled stays off the CPU at most, in ms.
    recheck_ms: u32 = Some(50), "MS", whole(1, 1000, "a whole number of ms"), [PARKS] => recheck_ns: whole_ms;
    /// How often a CPU looks which task to boost, and which one polls in vain, in us.
    interval_us: u32 = Some(1000), "US", whole(100, 100_000, "a whole number of us"), [PULSES] => interval_ns: ns_of_us;
    /// Gang, beat: how long a turn is, in ms.
    quantum_ms: u32 = Some(100), "MS", whole(1, 60_000, "a whole number of ms"), [TURNS] => quantum_ns: whole_ms;
    /// Gang: how many rows there are.
    rows: u32 = Some(5), "N", whole(1, 1024, "a whole number"), [GANG] => rows: u32::from;
    /// How long a task runs before the next decision, in us.
    slice_us: u32 = Some(20_000), "US", whole(100, 1_000_000, "a whole number of us"), [] => slice_ns: ns_of_us;
    /// L, the latency of a message, in us, instead of the measured one.
    latency_us: f64 = None, "US", COST, [SPINS, RECKONS] => latency_ns: ns_of_us;
    /// o, the CPU time to send or to receive a message, in us, instead of the measured one.
    overhead_us: f64 = None, "US", COST, [SPINS, RECKONS] => overhead_ns: ns_of_us;
    /// W, the time to wake a task and switch to it, in us, instead of the measured one.
    switch_us: f64 = None, "US", COST, [SPINS, RECKONS] => switch_ns: ns_of_us;
}

const BOOSTS: Need = &[("arrival", &["demand", "periodic", "beat"]), ("wait", &["spin-yield"])];
const ARRIVES: Need = &[("arrival", &["demand", "periodic", "beat"])];
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

fn whole_ms(ms: u32) -> u64 {
    u64::from(ms) * 1_000_000
}

fn ns_of_ms(ms: f64) -> i64 {
    (ms * 1e6).round() as i64
}

fn ns_of_us(us: impl Into<f64>) -> u64 {
    (us.into() * 1e3).round() as u64
}

fn permille(ratio: f64) -> u32 {
    (ratio * 1000.0).round() as u32
}

/// The row of a choice.
pub fn row(key: &str) -> &'static Row {
    ROWS.iter().find(|row| row.key == key).expect("every choice has a row")
}

impl Row {
    /// The first need that `choices` do not meet.
    pub fn unmet(&self, choices: &Choices) -> Option<Need> {
        let has = |axis: &str, rules: &[&str]| choices.text(axis).is_some_and(|is| rules.contains(&is.as_str()));
        self.needs.iter().copied().find(|need| !need.iter().any(|(axis, rules)| has(axis, rules)))
    }
}

impl Choices {
    /// What is given, as flags have it, in the order of the rows.
    pub fn texts(&self) -> impl Iterator<Item = (&'static str, String)> {
        ROWS.iter().filter_map(|row| Some((row.key, self.text(row.key)?)))
    }

    /// Names the first flag with a value that it does not take.
    ///
    /// # Errors
    /// One line that says what it takes.
    pub fn check(&self) -> Result<(), String> {
        let wrong =
            |key, text: String| (row(key).check)(row(key), &text).map_err(|e| format!("--{}: {e}", row(key).flag()));
        self.texts().try_for_each(|(key, text)| wrong(key, text))
    }
}

impl Args for Choices {
    fn augment_args(command: Command) -> Command {
        command.args(ROWS.iter().map(Row::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Choices {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let given = entries(ROWS.iter(), matches);
        Choices::read(&given).map_err(|fault| clap::Error::raw(ErrorKind::ValueValidation, fault.message()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?.or(self);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_that_is_needed_exists() {
        for (axis, rules) in ROWS.iter().flat_map(|row| row.needs).copied().flatten() {
            for rule in *rules {
                (row(axis).check)(row(axis), rule).unwrap();
            }
        }
    }

    #[test]
    fn every_default_is_a_value() {
        Choices::defaults().check().unwrap();
    }

    #[test]
    fn a_text_is_what_a_flag_reads() {
        for (key, texts) in [("h_ms", ["-20", "0.5"]), ("spin_us", ["1", "200"]), ("residual_slice", ["true", "false"])]
        {
            for wanted in texts {
                let command = Choices::augment_args(Command::new("x").no_binary_name(true));
                let matches = command.get_matches_from([format!("--{}={wanted}", row(key).flag())]);
                assert_eq!(Choices::from_arg_matches(&matches).unwrap().text(key).unwrap(), wanted);
            }
        }
    }
}
