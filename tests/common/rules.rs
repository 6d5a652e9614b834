// SPDX-License-Identifier: GPL-2.0-only
//! What the tests of the rules start from: a policy, a demand and a history in which nothing has happened yet, and any.

#![allow(dead_code, unused_imports)]

use std::ops::Range;

pub use cosched_rules::intf::{
    COSCHED_MAX_CPUS, COSCHED_SCALE_SHIFT, COSCHED_WAIT_SAMPLES, FAIR_MEAN_SHIFT,
    cosched_arrival_COSCHED_ARRIVAL_BEAT as BEAT, cosched_arrival_COSCHED_ARRIVAL_DEMAND as DEMAND,
    cosched_arrival_COSCHED_ARRIVAL_GANG as GANG, cosched_arrival_COSCHED_ARRIVAL_NONE as NONE,
    cosched_arrival_COSCHED_ARRIVAL_PERIODIC as PERIODIC, cosched_candidate, cosched_demand,
    cosched_gate_COSCHED_GATE_ALWAYS as ALWAYS, cosched_gate_COSCHED_GATE_AUTO as AUTO,
    cosched_gate_COSCHED_GATE_EPOCHS as EPOCHS, cosched_gate_COSCHED_GATE_EQUALIZING as EQUALIZING,
    cosched_gate_COSCHED_GATE_RATE as RATE, cosched_policy, cosched_wait_COSCHED_WAIT_BUSY as BUSY,
    cosched_wait_COSCHED_WAIT_SPIN as SPIN, cosched_wait_COSCHED_WAIT_SPIN_BLOCK as SPIN_BLOCK,
    cosched_wait_COSCHED_WAIT_SPIN_YIELD as SPIN_YIELD, cosched_wait_history, cosched_window,
};
use cosched_rules::native;
pub use cosched_sim::policy::NEW_HISTORY as NEW;
use cosched_sim::policy::NOTHING;
use proptest::prelude::*;

pub const US: u64 = 1_000;
pub const MS: u64 = 1_000_000;
pub const SEC: u64 = 1_000_000_000;

/// All gates, and one that nobody knows.
pub const GATES: Range<u32> = 0..6;

/// Among tasks of equal weight, time on the fair clock is CPU time.
pub const EQUAL_WEIGHTS: u32 = 1 << COSCHED_SCALE_SHIFT;

/// Every arrival is a demand, and the gate always grants it. Costs of messages are 0.
pub const POLICY: cosched_policy = cosched_policy {
    arrival: DEMAND,
    gate: ALWAYS,
    wait: BUSY,
    slice_ns: 20 * MS,
    interval_ns: MS,
    recheck_ns: 50 * MS,
    quantum_ns: 100 * MS,
    rows: 5,
    ..NOTHING
};

/// Of a task that has never run, on a CPU where nobody has.
pub const IDLE: cosched_demand = native::IDLE_DEMAND;

/// The name of the gate's answer.
pub fn reason(policy: &cosched_policy, demand: &cosched_demand) -> &'static str {
    native::reasons()[native::decide(policy, demand) as usize].name
}

pub fn grants(policy: &cosched_policy, demand: &cosched_demand) -> bool {
    native::grants(native::decide(policy, demand))
}

/// Numbers of all sizes; the ends of the range more often than chance would have it, and small ones too, so that
/// h and a lead come close to each other.
pub fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![1 => any::<i64>(), 4 => -1000..1000i64, 1 => Just(i64::MIN), 1 => Just(i64::MAX), 1 => Just(0)]
}

pub fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..1000u64, Just(u64::MAX)]
}

prop_compose! {
    pub fn any_policy(gates: Range<u32>)(
        arrival in prop_oneof![8 => Just(DEMAND), 1 => 0..5u32], gate in gates, slice_ns in any_u64(),
        h_ns in any_i64(), rate_constant_ns in any_i64(), rate_exponent in prop_oneof![any::<i32>(), -70..70i32],
        target_permille in prop_oneof![Just(1000), 0..10_000u32, any::<u32>()], rate_average in 0..2u64,
    ) -> cosched_policy {
        cosched_policy {
            arrival, gate, slice_ns, h_ns, rate_constant_ns, rate_exponent, rate_average, target_permille, ..POLICY
        }
    }
}

prop_compose! {
    pub fn any_demand()(
        (now_ns, last_boost_ns) in (any_u64(), any_u64()), (receiver_ran_ns, running_ran_ns) in (any_i64(), any_i64()),
        nr_runnable in prop_oneof![any::<u32>(), 0..COSCHED_MAX_CPUS],
        denied in prop_oneof![2 => Just(0), 1 => Just(1), 1 => any::<u32>()],
        scale in prop_oneof![Just(EQUAL_WEIGHTS), any::<u32>()], node_quiet in 0..2u32,
        max_lead_ns in prop_oneof![3 => Just(u64::MAX), 1 => any_u64()],
        mean_waiting in prop_oneof![any_u64(), 0..1u64 << 20], (cpu_ns, fair_ns) in (any_u64(), any_u64()),
        (message_epoch, node_epoch) in (any_u64(), any_u64()),
    ) -> cosched_demand {
        cosched_demand {
            now_ns, last_boost_ns, receiver_ran_ns, running_ran_ns, nr_runnable, denied, scale, max_lead_ns,
            cpu_ns, fair_ns, message_epoch, node_epoch, node_quiet, mean_waiting,
        }
    }
}
