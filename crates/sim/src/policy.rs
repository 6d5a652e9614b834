// SPDX-License-Identifier: GPL-2.0-only
//! How the simulated nodes decide: by the functions of `policies/`, the same that run in the kernel.

use std::fmt;
use std::str::FromStr;

use cosched_rules::intf::{self, cosched_policy, cosched_wait_history};
use cosched_rules::native;

/// A policy of zeroes: no arrival is a demand, nobody spins.
pub const NOTHING: cosched_policy = cosched_policy {
    arrival: intf::cosched_arrival_COSCHED_ARRIVAL_NONE,
    gate: intf::cosched_gate_COSCHED_GATE_ALWAYS,
    wait: intf::cosched_wait_COSCHED_WAIT_BUSY,
    spin: intf::cosched_spin_COSCHED_SPIN_IMMEDIATE,
    choice: intf::cosched_choice_COSCHED_CHOICE_ROUND_ROBIN,
    residual_slice: 0,
    slice_ns: 0,
    interval_ns: 0,
    h_ns: 0,
    rate_constant_ns: 0,
    rate_exponent: 0,
    target_permille: 1000,
    spin_ns: 0,
    latency_ns: 0,
    overhead_ns: 0,
    switch_ns: 0,
    recheck_ns: 0,
    quantum_ns: 0,
    rate_average: 0,
    rows: 1,
    epochs: 0,
};

/// Of a task that has not waited yet.
pub const NEW_HISTORY: cosched_wait_history = cosched_wait_history {
    skips: 0,
    skips_left: 0,
    waits_us: [0; intf::COSCHED_WAIT_SAMPLES as usize],
    nr_waits: 0,
    estimate_us: 0,
    heard_us: 0,
};

/// How long a process spins that waits, before it sleeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitRule {
    /// For ever: what a process does whose peers all run, as under ideal coscheduling.
    Busy,
    /// Not at all (Dusseau 4).
    Immediate,
    /// For a time by hand (Dusseau 5).
    Fixed,
    /// For 2L + 2o + W (Arpaci-Dusseau 3.3).
    Baseline,
    /// And on, while messages keep coming (Arpaci-Dusseau 3.4).
    Conditional,
    /// As long as the imbalance, which it knows, has it wait (Dusseau 6.1).
    Oracle,
    /// As long as its own waits took (Dusseau 6.2).
    AdaptiveLocal,
    /// As long as the root of the barrier saw that waits took (Dusseau 6.3).
    AdaptiveGlobal,
}

const NAMES: [(WaitRule, &str); 7] = [
    (WaitRule::Immediate, "immediate"),
    (WaitRule::Fixed, "fixed"),
    (WaitRule::Baseline, "baseline"),
    (WaitRule::Conditional, "conditional"),
    (WaitRule::Oracle, "oracle"),
    (WaitRule::AdaptiveLocal, "adaptive-local"),
    (WaitRule::AdaptiveGlobal, "adaptive-global"),
];

impl FromStr for WaitRule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = NAMES.map(|(_, name)| name).join(", ");
        let found = NAMES.iter().find(|(_, name)| *name == text);
        found.map(|(rule, _)| *rule).ok_or_else(|| format!("unknown wait rule '{text}' (known: {known})"))
    }
}

impl fmt::Display for WaitRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(NAMES.iter().find(|(rule, _)| rule == self).map_or("busy", |(_, name)| name))
    }
}

/// What a process waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitFor {
    /// The answer to a read.
    Read,
    /// All others, after they computed for different times.
    OpeningBarrier,
    /// All others, after they read.
    ClosingBarrier,
}

/// What a message and a switch cost, and what a wait rule needs besides. All in ns.
#[derive(Clone, Copy, Debug, Default)]
pub struct Costs {
    /// L.
    pub latency_ns: u64,
    /// W, the context switch.
    pub switch_ns: u64,
    /// `fixed`: how long it spins at a read.
    pub spin_ns: u64,
    /// `fixed`: how long it spins at a barrier; none: as long as at a read.
    pub barrier_spin_ns: Option<u64>,
    /// `conditional`: how long after the last message a spin goes on; none: 3W + 2o.
    pub conditional_ns: Option<u64>,
    /// `oracle`: v, the imbalance.
    pub imbalance_ns: u64,
    /// The oracle and the adaptive rules: by how much the shortest spin is longer than two switches.
    pub network_ns: u64,
}

/// A wait rule with its parameters.
///
/// The adaptive rules of `policies/` never spin for less than the baseline of Arpaci-Dusseau, 2L + 2o + W; Dusseau's
/// spin S = 2 CS before a read, and at a barrier as long as the imbalance says but no less than S. So S is added here,
/// with the network's time if need be.
#[derive(Clone, Debug)]
pub struct Waits {
    rule: WaitRule,
    policy: cosched_policy,
    /// `fixed`: the policy at barriers.
    at_barriers: cosched_policy,
    /// What says whether a spin goes on: `policy`, unless S_Cond is set by hand.
    goes_on: cosched_policy,
    /// `oracle`: a history that says v.
    known: cosched_wait_history,
    /// S of Dusseau 6.1: 2 CS, or with the network's time (note 3).
    least_ns: u64,
}

impl Waits {
    /// The rule, on nodes with these costs.
    pub fn new(rule: WaitRule, costs: Costs) -> Waits {
        let spin = match rule {
            WaitRule::Busy | WaitRule::Immediate => intf::cosched_spin_COSCHED_SPIN_IMMEDIATE,
            WaitRule::Fixed => intf::cosched_spin_COSCHED_SPIN_FIXED,
            WaitRule::Baseline => intf::cosched_spin_COSCHED_SPIN_BASELINE,
            WaitRule::Conditional => intf::cosched_spin_COSCHED_SPIN_CONDITIONAL,
            WaitRule::Oracle | WaitRule::AdaptiveLocal => intf::cosched_spin_COSCHED_SPIN_ADAPTIVE_LOCAL,
            WaitRule::AdaptiveGlobal => intf::cosched_spin_COSCHED_SPIN_ADAPTIVE_GLOBAL,
        };
        let Costs { latency_ns, switch_ns, spin_ns, barrier_spin_ns, conditional_ns, imbalance_ns, network_ns } = costs;
        let policy = cosched_policy { spin, spin_ns, latency_ns, switch_ns, ..NOTHING };
        let at_barriers = cosched_policy { spin_ns: barrier_spin_ns.unwrap_or(spin_ns), ..policy };
        // The rule of policies/ knows 3W + 2o only: a policy whose W is 0 and whose o is half of S_Cond has it say
        // that.
        let by_hand = |ns: u64| cosched_policy { switch_ns: 0, overhead_ns: ns / 2, ..policy };
        let goes_on = conditional_ns.map_or(policy, by_hand);
        let known = cosched_wait_history { estimate_us: (imbalance_ns / 1000) as u32, ..NEW_HISTORY };
        Waits { rule, policy, at_barriers, goes_on, known, least_ns: 2 * switch_ns + network_ns }
    }

    /// Whether waits differ by what was learned from others.
    pub fn learns(&self) -> bool {
        matches!(self.rule, WaitRule::AdaptiveLocal | WaitRule::AdaptiveGlobal)
    }

    /// How long a wait spins before it sleeps, in ns; none: as long as it takes.
    pub fn spin_ns(&self, wait: WaitFor, history: &cosched_wait_history) -> Option<u64> {
        match (self.rule, wait) {
            (WaitRule::Busy, _) => None,
            (WaitRule::Oracle, WaitFor::OpeningBarrier | WaitFor::ClosingBarrier) => {
                Some(native::spin_ns(&self.policy, &self.known).max(self.least_ns))
            }
            (WaitRule::AdaptiveLocal | WaitRule::AdaptiveGlobal, WaitFor::OpeningBarrier | WaitFor::ClosingBarrier) => {
                Some(native::spin_ns(&self.policy, history).max(self.least_ns))
            }
            (WaitRule::Oracle | WaitRule::AdaptiveLocal | WaitRule::AdaptiveGlobal, WaitFor::Read) => {
                Some(self.least_ns)
            }
            (_, WaitFor::Read) => Some(native::spin_ns(&self.policy, history)),
            _ => Some(native::spin_ns(&self.at_barriers, history)),
        }
    }

    /// Until when a spin may go on whose time is over `now_ns`, the last message having come at `arrival_ns`; none: it
    /// is over.
    pub fn goes_on_until(&self, now_ns: u64, arrival_ns: u64) -> Option<u64> {
        let goes_on = native::spin_goes_on(&self.goes_on, now_ns - arrival_ns);
        goes_on.then(|| arrival_ns + native::spin_interval_ns(&self.goes_on))
    }

    /// A process has waited for a barrier. `local` learns from it (Dusseau 6.2).
    pub fn learn(&self, history: &mut cosched_wait_history, waited_ns: u64) {
        if self.rule == WaitRule::AdaptiveLocal {
            native::spin_learn(&self.policy, history, waited_ns);
        }
    }

    /// The root of an opening barrier has seen all arrive, and the first has to wait for `longest_ns` in all. `global`
    /// learns from it, and what it has learned goes out with the release, in us (Dusseau 6.3).
    pub fn estimate_us(&self, history: &mut cosched_wait_history, longest_ns: u64) -> u32 {
        if self.rule == WaitRule::AdaptiveGlobal {
            native::spin_learn(&self.policy, history, longest_ns);
        }
        history.estimate_us
    }

    /// A release has come with what the root has learned.
    pub fn hear(&self, history: &mut cosched_wait_history, estimate_us: u32) {
        if self.rule == WaitRule::AdaptiveGlobal {
            native::spin_hear(history, estimate_us);
        }
    }
}
