// SPDX-License-Identifier: GPL-2.0-only
//! The axes of a policy and the rules on each.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::intf;
use crate::rows::Scalar;

/// What is known of an axis.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Its name.
    pub name: &'static str,
    /// What it decides.
    pub help: &'static str,
    /// Its rules by name, and what each of them does.
    pub rules: &'static [(&'static str, &'static str)],
}

/// All axes, in the order of the choices.
pub const AXES: [Axis; 5] = [Arrival::AXIS, Gate::AXIS, BoostChoice::AXIS, Wait::AXIS, Spin::AXIS];

/// An axis: its rules, their names everywhere, and their numbers on the C side.
macro_rules! axis {
    ($(#[doc = $doc:literal])+ $type:ident, $what:literal:
     $($(#[doc = $rule_doc:literal])+ $rule:ident = $name:literal, $number:ident;)+) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum $type {
            $($(#[doc = $rule_doc])+ $rule,)+
        }

        impl $type {
            /// The axis, as docs/reference.md shows it.
            pub const AXIS: Axis =
                Axis { name: $what, help: concat!($($doc),+), rules: &[$(($name, concat!($($rule_doc),+))),+] };

            /// As the BPF side reads it.
            pub fn to_bpf(self) -> u32 {
                match self { $($type::$rule => intf::$number),+ }
            }
        }

        impl Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(match self { $($type::$rule => $name),+ })
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                match text {
                    $($name => Ok($type::$rule),)+
                    _ => Err(format!("unknown {} '{text}' (known: {})", $what, [$($name),+].join(", "))),
                }
            }
        }

        impl Scalar for $type {}

        impl TryFrom<String> for $type {
            type Error = String;

            fn try_from(text: String) -> Result<Self, String> {
                text.parse()
            }
        }

        impl From<$type> for String {
            fn from(rule: $type) -> String {
                rule.to_string()
            }
        }
    };
}

axis! {
    /// What happens when a message arrives (Zhang, Table 1).
    Arrival, "arrival rule":
    /// A message changes nothing: the local scheduler alone decides.
    None = "none", cosched_arrival_COSCHED_ARRIVAL_NONE;
    /// A message runs its receiver at once, if the gate allows.
    Demand = "demand", cosched_arrival_COSCHED_ARRIVAL_DEMAND;
    /// Every interval the scheduler chooses one receiver, which runs if the gate allows (Zhang 2.4.4).
    Periodic = "periodic", cosched_arrival_COSCHED_ARRIVAL_PERIODIC;
    /// A message changes nothing: the clock says which row of jobs has its turn (Zhang 2.2).
    Gang = "gang", cosched_arrival_COSCHED_ARRIVAL_GANG;
    /// The job that wins the turn goes first, which all nodes draw alike. In a turn that no job has won a message runs
    /// its receiver, if the gate allows (policies/beat.h).
    Beat = "beat", cosched_arrival_COSCHED_ARRIVAL_BEAT;
}

axis! {
    /// Whether a boost is fair now.
    Gate, "gate":
    /// Every boost is granted (thesis 3.1).
    Always = "always", cosched_gate_COSCHED_GATE_ALWAYS;
    /// A boost is granted if the receiver lags the running task by more than h, `--h-ms`: r_j + h < r_i, r being CPU
    /// time (thesis 3.2).
    Equalizing = "equalizing", cosched_gate_COSCHED_GATE_EQUALIZING;
    /// A boost is granted if `equalizing` grants it and the message is of a later epoch than the node (thesis 3.3).
    Epochs = "epochs", cosched_gate_COSCHED_GATE_EPOCHS;
    /// A boost is granted if the receiver's last boost was long enough ago: 2^E (Tc - Tp) + C >= Tq R, with
    /// `--rate-exponent` and `--rate-constant-ms` (thesis 4.2.1).
    Rate = "rate", cosched_gate_COSCHED_GATE_RATE;
    /// A boost is granted until the receiver's F over the last two seconds is at `--target-fairness` (thesis 4.1,
    /// 6.2.4; policies/gate_auto.h).
    Auto = "auto", cosched_gate_COSCHED_GATE_AUTO;
}

axis! {
    /// What a receive does that finds nothing (Zhang, Table 1).
    Wait, "wait rule":
    /// The program waits in its own way.
    Busy = "busy", cosched_wait_COSCHED_WAIT_BUSY;
    /// A receive that would sleep spins first (thesis 4.2.3).
    Spin = "spin", cosched_wait_COSCHED_WAIT_SPIN;
    /// A receive that would sleep spins first. A task that polls leaves the CPU after the same time, until a message
    /// comes or `--recheck-ms` has passed (Zhang 2.4.1).
    SpinBlock = "spin-block", cosched_wait_COSCHED_WAIT_SPIN_BLOCK;
    /// A receive that would sleep spins first. A task that polls lets the next one on its CPU go first after the same
    /// time (Zhang 2.4.2).
    SpinYield = "spin-yield", cosched_wait_COSCHED_WAIT_SPIN_YIELD;
}

axis! {
    /// How long a receive that finds nothing spins.
    Spin, "spin rule":
    /// A receive does not spin.
    Immediate = "immediate", cosched_spin_COSCHED_SPIN_IMMEDIATE;
    /// A receive spins for a fixed time, `--spin-us` (Zhang 2.4.1, Dusseau 5.1).
    Fixed = "fixed", cosched_spin_COSCHED_SPIN_FIXED;
    /// A receive spins for 2L + 2o + W. These costs are measured at the start, or set by `--latency-us`,
    /// `--overhead-us` and `--switch-us` (Arpaci-Dusseau 3.3).
    Baseline = "baseline", cosched_spin_COSCHED_SPIN_BASELINE;
    /// A receive spins as under `baseline`, and on while a message has come within the last 3W + 2o
    /// (Arpaci-Dusseau 3.4).
    Conditional = "conditional", cosched_spin_COSCHED_SPIN_CONDITIONAL;
    /// A receive spins as long as the task's own waits have taken, up to 10 W (Dusseau 6.2).
    AdaptiveLocal = "adaptive-local", cosched_spin_COSCHED_SPIN_ADAPTIVE_LOCAL;
    /// A receive spins as long as the waits have taken of the tasks that it hears from, up to 10 W (Dusseau 6.3).
    AdaptiveGlobal = "adaptive-global", cosched_spin_COSCHED_SPIN_ADAPTIVE_GLOBAL;
}

axis! {
    /// Which task the periodic boost, and a task that yields, put first (Zhang 2.4.4).
    BoostChoice, "boost choice":
    /// The next task inside a receive that has its message; else the next task outside of a receive, as in the paper.
    RoundRobin = "round-robin", cosched_choice_COSCHED_CHOICE_ROUND_ROBIN;
    /// The next task in turn that has a message.
    NextPending = "next-pending", cosched_choice_COSCHED_CHOICE_NEXT_PENDING;
    /// The task with most messages.
    MostPending = "most-pending", cosched_choice_COSCHED_CHOICE_MOST_PENDING;
    /// The task whose message has waited longest.
    LongestWaiting = "longest-waiting", cosched_choice_COSCHED_CHOICE_LONGEST_WAITING;
}
