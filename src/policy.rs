// SPDX-License-Identifier: GPL-2.0-only
//! A policy is a choice on each axis, with parameters. It starts as a preset; single choices can be
//! overridden, and what then makes no sense together is refused with the name of the setting at fault.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bpf::intf;
use crate::given::{Fault, Given, Origin};
use crate::{limits, presets};

/// What happens when a message arrives (Zhang, Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrival {
    /// Nothing: the local scheduler alone decides.
    None,
    /// The receiver runs at once, if the gate allows.
    Demand,
}

/// Whether a boost is fair now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Gate {
    /// Always (thesis 3.1).
    Always,
    /// If the receiver lags the running task by more than h (thesis 3.2).
    Equalizing,
    /// If the receiver's last boost was long enough ago (thesis 4.2.1).
    Rate,
}

/// What a receiver does that finds nothing (Zhang, Table 1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wait {
    /// What the program has it do.
    None,
    /// It spins for a while before it sleeps (thesis 4.2.3).
    Spin,
}

macro_rules! names {
    ($type:ident, $what:literal, $($variant:ident = $name:literal),+) => {
        impl Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($type::$variant => $name),+ })
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok($type::$variant),)+
                    _ => Err(format!("unknown {} '{text}' (known: {})", $what, [$($name),+].join(", "))),
                }
            }
        }
    };
}

names!(Arrival, "arrival rule", None = "none", Demand = "demand");
names!(Gate, "gate", Always = "always", Equalizing = "equalizing", Rate = "rate");
names!(Wait, "wait rule", None = "none", Spin = "spin");

/// A choice on each axis. Parameters that no rule of it uses have their default values, so that two
/// policies that do the same are equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The preset that it started as.
    pub preset: String,
    /// What happens at arrival.
    pub arrival: Arrival,
    /// Whether a boost is fair.
    pub gate: Gate,
    /// Equalizing: the lag that a boost needs, ms.
    pub h_ms: f64,
    /// Rate: E.
    pub rate_exponent: i32,
    /// Rate: C, ms.
    pub rate_constant_ms: f64,
    /// What a receiver does that finds nothing.
    pub wait: Wait,
    /// Spin: how long it spins before it sleeps, us.
    pub spin_us: u32,
    /// How long a task runs before the next decision, us.
    pub slice_us: u32,
}

/// What the user wants otherwise than the preset has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overrides {
    /// `--arrival`.
    pub arrival: Option<Given<Arrival>>,
    /// `--gate`.
    pub gate: Option<Given<Gate>>,
    /// `--h-ms`.
    pub h_ms: Option<Given<f64>>,
    /// `--rate-exponent`.
    pub rate_exponent: Option<Given<i32>>,
    /// `--rate-constant-ms`.
    pub rate_constant_ms: Option<Given<f64>>,
    /// `--wait`.
    pub wait: Option<Given<Wait>>,
    /// `--spin-us`.
    pub spin_us: Option<Given<u32>>,
    /// `--slice-us`.
    pub slice_us: Option<Given<u32>>,
}

impl Overrides {
    /// These, and where they say nothing, `other`.
    pub fn or(self, other: Overrides) -> Overrides {
        Overrides {
            arrival: self.arrival.or(other.arrival),
            gate: self.gate.or(other.gate),
            h_ms: self.h_ms.or(other.h_ms),
            rate_exponent: self.rate_exponent.or(other.rate_exponent),
            rate_constant_ms: self.rate_constant_ms.or(other.rate_constant_ms),
            wait: self.wait.or(other.wait),
            spin_us: self.spin_us.or(other.spin_us),
            slice_us: self.slice_us.or(other.slice_us),
        }
    }
}

/// A policy as every output shows it. Parameters that no rule of it uses are absent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PolicyView {
    /// The preset, with what was overridden: `dcs`, `dcs+h_ms=-20`.
    pub name: String,
    /// What happens at arrival.
    pub arrival: Arrival,
    /// Whether a boost is fair.
    pub gate: Gate,
    /// Equalizing: the lag that a boost needs, ms.
    pub h_ms: Option<f64>,
    /// Rate: E.
    pub rate_exponent: Option<i32>,
    /// Rate: C, ms.
    pub rate_constant_ms: Option<f64>,
    /// What a receiver does that finds nothing.
    pub wait: Wait,
    /// Spin: how long it spins before it sleeps, us.
    pub spin_us: Option<u32>,
    /// How long a task runs before the next decision, us.
    pub slice_us: u32,
}

/// Checks that a parameter which was given has an effect; else says what it needs. A line of the
/// configuration file which a flag has made moot is no error: it is passed over.
struct Moot<'a> {
    arrival: Arrival,
    gate: Gate,
    wait: Wait,
    overrides: &'a Overrides,
    preset_by_flag: bool,
}

/// What a setting needs to have an effect.
enum Wanted {
    Demand,
    Gate(Gate),
    Spin,
}

impl Moot<'_> {
    fn check<T: Clone>(&self, key: &str, given: &Option<Given<T>>, wanted: Wanted) -> Result<Option<T>, Fault> {
        let Some(given) = given else { return Ok(None) };
        let demand = self.arrival == Arrival::Demand;
        let (axis, is, needs) = match wanted {
            Wanted::Spin if self.wait != Wait::Spin => ("wait", self.wait.to_string(), Wait::Spin.to_string()),
            Wanted::Demand | Wanted::Gate(_) if !demand => {
                ("arrival", self.arrival.to_string(), Arrival::Demand.to_string())
            }
            Wanted::Gate(gate) if self.gate != gate => ("gate", self.gate.to_string(), gate.to_string()),
            _ => return Ok(Some(given.value.clone())),
        };
        if given.origin != Origin::Flag && self.set_by_flag(axis) {
            return Ok(None);
        }
        let message = format!("it has no effect with {axis} '{is}' (leave it out, or choose {axis} '{needs}')");
        Err(given.fault(key, message))
    }

    fn set_by_flag(&self, axis: &str) -> bool {
        let origin = match axis {
            "arrival" => self.overrides.arrival.as_ref().map(|g| &g.origin),
            "wait" => self.overrides.wait.as_ref().map(|g| &g.origin),
            _ => self.overrides.gate.as_ref().map(|g| &g.origin),
        };
        origin.map_or(self.preset_by_flag, |origin| *origin == Origin::Flag)
    }
}

impl Policy {
    /// This policy with `overrides`. `preset_by_flag`: it was named on the command line.
    ///
    /// # Errors
    /// Names a setting that has no effect together with the others, and what to do about it.
    pub fn with(&self, overrides: &Overrides, preset_by_flag: bool) -> Result<Policy, Fault> {
        let arrival = overrides.arrival.as_ref().map_or(self.arrival, |g| g.value);
        let gate = overrides.gate.as_ref().map_or(self.gate, |g| g.value);
        let wait = overrides.wait.as_ref().map_or(self.wait, |g| g.value);
        let moot = Moot { arrival, gate, wait, overrides, preset_by_flag };

        moot.check("gate", &overrides.gate, Wanted::Demand)?;
        let h_ms = moot.check("h_ms", &overrides.h_ms, Wanted::Gate(Gate::Equalizing))?;
        let exponent = moot.check("rate_exponent", &overrides.rate_exponent, Wanted::Gate(Gate::Rate))?;
        let constant = moot.check("rate_constant_ms", &overrides.rate_constant_ms, Wanted::Gate(Gate::Rate))?;
        let spin_us = moot.check("spin_us", &overrides.spin_us, Wanted::Spin)?;

        Ok(Policy {
            preset: self.preset.clone(),
            arrival,
            gate,
            h_ms: h_ms.unwrap_or(self.h_ms),
            rate_exponent: exponent.unwrap_or(self.rate_exponent),
            rate_constant_ms: constant.unwrap_or(self.rate_constant_ms),
            wait,
            spin_us: spin_us.unwrap_or(self.spin_us),
            slice_us: overrides.slice_us.as_ref().map_or(self.slice_us, |g| g.value),
        }
        .normalized())
    }

    /// With default values where no rule looks.
    pub(crate) fn normalized(self) -> Policy {
        let (equalizing, rate) = (self.uses(Gate::Equalizing), self.uses(Gate::Rate));
        Policy {
            h_ms: if equalizing { self.h_ms } else { presets::default_h_ms() },
            rate_exponent: if rate { self.rate_exponent } else { 0 },
            rate_constant_ms: if rate { self.rate_constant_ms } else { 0.0 },
            spin_us: if self.spins() { self.spin_us } else { presets::default_spin_us() },
            ..self
        }
    }

    /// The preset's name, followed by what differs from the preset.
    pub fn name(&self) -> String {
        let mut name = self.preset.clone();
        let Ok(preset) = presets::find(&self.preset) else { return name };
        let of = preset.policy;
        let mut differs = |key: &str, now: &dyn Display, differs: bool| {
            if differs {
                name.push_str(&format!("+{key}={now}"));
            }
        };
        differs("arrival", &self.arrival, self.arrival != of.arrival);
        differs("gate", &self.gate, self.gate != of.gate);
        let gate = (self.arrival, self.gate) != (of.arrival, of.gate);
        differs("h_ms", &self.h_ms, self.uses(Gate::Equalizing) && (gate || self.h_ms != of.h_ms));
        let rate = self.uses(Gate::Rate);
        differs("rate_exponent", &self.rate_exponent, rate && (gate || self.rate_exponent != of.rate_exponent));
        let constant = rate && (gate || self.rate_constant_ms != of.rate_constant_ms);
        differs("rate_constant_ms", &self.rate_constant_ms, constant);
        differs("wait", &self.wait, self.wait != of.wait);
        differs("spin_us", &self.spin_us, self.spins() && (self.wait != of.wait || self.spin_us != of.spin_us));
        differs("slice_us", &self.slice_us, self.slice_us != of.slice_us);
        name
    }

    /// Does it want to see messages and waits? One that does not costs nothing for the hooks.
    pub fn needs_hooks(&self) -> bool {
        self.arrival == Arrival::Demand || self.spins()
    }

    fn spins(&self) -> bool {
        self.wait == Wait::Spin
    }

    fn uses(&self, gate: Gate) -> bool {
        self.arrival == Arrival::Demand && self.gate == gate
    }

    /// As every output shows it.
    pub fn view(&self) -> PolicyView {
        let rate = self.uses(Gate::Rate);
        PolicyView {
            name: self.name(),
            arrival: self.arrival,
            gate: self.gate,
            h_ms: self.uses(Gate::Equalizing).then_some(self.h_ms),
            rate_exponent: rate.then_some(self.rate_exponent),
            rate_constant_ms: rate.then_some(self.rate_constant_ms),
            wait: self.wait,
            spin_us: self.spins().then_some(self.spin_us),
            slice_us: self.slice_us,
        }
    }

    /// As the BPF side reads it. Parameters within [`limits`] cannot overflow.
    pub fn to_bpf(&self) -> intf::cosched_policy {
        intf::cosched_policy {
            arrival: match self.arrival {
                Arrival::None => intf::cosched_arrival_COSCHED_ARRIVAL_NONE,
                Arrival::Demand => intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND,
            },
            gate: match self.gate {
                Gate::Always => intf::cosched_gate_COSCHED_GATE_ALWAYS,
                Gate::Equalizing => intf::cosched_gate_COSCHED_GATE_EQUALIZING,
                Gate::Rate => intf::cosched_gate_COSCHED_GATE_RATE,
            },
            slice_ns: u64::from(self.slice_us) * 1000,
            h_ns: ns_of_ms(self.h_ms),
            rate_constant_ns: ns_of_ms(self.rate_constant_ms),
            rate_exponent: self.rate_exponent,
            wait: match self.wait {
                Wait::None => intf::cosched_wait_COSCHED_WAIT_NONE,
                Wait::Spin => intf::cosched_wait_COSCHED_WAIT_SPIN,
            },
            spin_ns: u64::from(self.spin_us) * 1000,
        }
    }
}

fn ns_of_ms(ms: f64) -> i64 {
    (ms * 1e6).round() as i64
}

/// What `policy set` asks for, as it crosses the control socket.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyChange {
    /// The preset to start from; absent: the policy in force.
    pub name: Option<String>,
    /// `--arrival`.
    pub arrival: Option<Arrival>,
    /// `--gate`.
    pub gate: Option<Gate>,
    /// `--h-ms`.
    pub h_ms: Option<f64>,
    /// `--rate-exponent`.
    pub rate_exponent: Option<i32>,
    /// `--rate-constant-ms`.
    pub rate_constant_ms: Option<f64>,
    /// `--wait`.
    pub wait: Option<Wait>,
    /// `--spin-us`.
    pub spin_us: Option<u32>,
    /// `--slice-us`.
    pub slice_us: Option<u32>,
}

impl PolicyChange {
    /// The policy that this makes of `current`.
    ///
    /// # Errors
    /// One line for an unknown name, a value out of range, or settings that contradict each other.
    pub fn apply(&self, current: &Policy) -> Result<Policy, String> {
        let base = match &self.name {
            Some(name) => presets::find(name)?.policy,
            None => current.clone(),
        };
        let ranged = |key: &str, result: Result<(), String>| result.map_err(|e| format!("--{key}: {e}"));
        ranged("h-ms", self.h_ms.map_or(Ok(()), |v| limits::H_MS.check(v).map(drop)))?;
        ranged("rate-exponent", self.rate_exponent.map_or(Ok(()), |v| limits::RATE_EXPONENT.check(v).map(drop)))?;
        let constant = self.rate_constant_ms.map_or(Ok(()), |v| limits::RATE_CONSTANT_MS.check(v).map(drop));
        ranged("rate-constant-ms", constant)?;
        ranged("spin-us", self.spin_us.map_or(Ok(()), |v| limits::SPIN_US.check(v).map(drop)))?;
        ranged("slice-us", self.slice_us.map_or(Ok(()), |v| limits::SLICE_US.check(v).map(drop)))?;
        base.with(&self.overrides(), self.name.is_some()).map_err(|fault| fault.message)
    }

    /// The single choices, without the name.
    pub fn overrides(&self) -> Overrides {
        Overrides {
            arrival: self.arrival.map(Given::flag),
            gate: self.gate.map(Given::flag),
            h_ms: self.h_ms.map(Given::flag),
            rate_exponent: self.rate_exponent.map(Given::flag),
            rate_constant_ms: self.rate_constant_ms.map(Given::flag),
            wait: self.wait.map(Given::flag),
            spin_us: self.spin_us.map(Given::flag),
            slice_us: self.slice_us.map(Given::flag),
        }
    }
}
