// SPDX-License-Identifier: GPL-2.0-only
//! The axes of a policy and the rules on each.

use std::fmt::{self, Display};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::bpf::intf;

/// An axis: its rules, their names everywhere, and their numbers on the C side.
macro_rules! axis {
    ($(#[$doc:meta])* $type:ident, $what:literal: $($(#[$rule_doc:meta])* $rule:ident = $name:literal, $number:ident;)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub enum $type {
            $($(#[$rule_doc])* $rule,)+
        }

        impl $type {
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
    /// Nothing: the local scheduler alone decides.
    None = "none", cosched_arrival_COSCHED_ARRIVAL_NONE;
    /// The receiver runs at once, if the gate allows.
    Demand = "demand", cosched_arrival_COSCHED_ARRIVAL_DEMAND;
    /// Every interval one receiver is chosen, and runs if the gate allows.
    Periodic = "periodic", cosched_arrival_COSCHED_ARRIVAL_PERIODIC;
    /// Nothing: the clock says which row of jobs has its turn.
    Gang = "gang", cosched_arrival_COSCHED_ARRIVAL_GANG;
    /// The receiver runs if it comes earlier in the order of the turn, which all nodes draw alike.
    Beat = "beat", cosched_arrival_COSCHED_ARRIVAL_BEAT;
}

axis! {
    /// Whether a boost is fair now.
    Gate, "gate":
    /// Always (thesis 3.1).
    Always = "always", cosched_gate_COSCHED_GATE_ALWAYS;
    /// If the receiver lags the running task by more than h (thesis 3.2).
    Equalizing = "equalizing", cosched_gate_COSCHED_GATE_EQUALIZING;
    /// If besides the message is of a later epoch than the node (thesis 3.3).
    Epochs = "epochs", cosched_gate_COSCHED_GATE_EPOCHS;
    /// If the receiver's last boost was long enough ago (thesis 4.2.1).
    Rate = "rate", cosched_gate_COSCHED_GATE_RATE;
    /// If the receiver has less CPU time than its target (thesis 4.1, 6.2.4).
    Auto = "auto", cosched_gate_COSCHED_GATE_AUTO;
}

axis! {
    /// What a receive does that finds nothing (Zhang, Table 1).
    Wait, "wait rule":
    /// What the program has it do.
    Busy = "busy", cosched_wait_COSCHED_WAIT_BUSY;
    /// One that would sleep spins before (thesis 4.2.3).
    Spin = "spin", cosched_wait_COSCHED_WAIT_SPIN;
    /// And one that polls leaves the CPU after as long, until a message comes (Zhang 2.4.1).
    SpinBlock = "spin-block", cosched_wait_COSCHED_WAIT_SPIN_BLOCK;
    /// Or lets all others on its CPU go first (Zhang 2.4.2).
    SpinYield = "spin-yield", cosched_wait_COSCHED_WAIT_SPIN_YIELD;
}

axis! {
    /// How long a receive that finds nothing spins.
    Spin, "spin rule":
    /// Not at all.
    Immediate = "immediate", cosched_spin_COSCHED_SPIN_IMMEDIATE;
    /// For a fixed time (Zhang 2.4.1, Dusseau 5.1).
    Fixed = "fixed", cosched_spin_COSCHED_SPIN_FIXED;
    /// For 2L + 2o + W (Arpaci-Dusseau 3.3).
    Baseline = "baseline", cosched_spin_COSCHED_SPIN_BASELINE;
    /// And on, while messages keep coming (Arpaci-Dusseau 3.4).
    Conditional = "conditional", cosched_spin_COSCHED_SPIN_CONDITIONAL;
    /// As long as the task's own waits have taken (Dusseau 6.2).
    AdaptiveLocal = "adaptive-local", cosched_spin_COSCHED_SPIN_ADAPTIVE_LOCAL;
    /// Or those of the tasks that it hears from (Dusseau 6.3).
    AdaptiveGlobal = "adaptive-global", cosched_spin_COSCHED_SPIN_ADAPTIVE_GLOBAL;
}

axis! {
    /// Whom the periodic boost, and a task that yields, put first (Zhang 2.4.4).
    BoostChoice, "boost choice":
    /// The paper's: the next that has its message in a receive, else the next outside of one.
    RoundRobin = "round-robin", cosched_choice_COSCHED_CHOICE_ROUND_ROBIN;
    /// The next in turn that has a message.
    NextPending = "next-pending", cosched_choice_COSCHED_CHOICE_NEXT_PENDING;
    /// The one with most messages.
    MostPending = "most-pending", cosched_choice_COSCHED_CHOICE_MOST_PENDING;
    /// The one whose message has waited longest.
    LongestWaiting = "longest-waiting", cosched_choice_COSCHED_CHOICE_LONGEST_WAITING;
}
