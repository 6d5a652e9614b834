// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the gates decide as the papers say, for the papers' examples, and for no input do they wrap,
//! crash or turn "never" into "always".

use proptest::prelude::*;
use scx_cosched::bpf::intf::{
    COSCHED_MAX_CPUS, cosched_arrival_COSCHED_ARRIVAL_DEMAND as DEMAND, cosched_arrival_COSCHED_ARRIVAL_NONE as NONE,
    cosched_demand, cosched_gate_COSCHED_GATE_ALWAYS as ALWAYS, cosched_gate_COSCHED_GATE_EQUALIZING as EQUALIZING,
    cosched_gate_COSCHED_GATE_RATE as RATE, cosched_policy,
};
use scx_cosched::native;

const MS: i64 = 1_000_000;

fn policy(gate: u32) -> cosched_policy {
    cosched_policy {
        arrival: DEMAND,
        gate,
        slice_ns: 20 * MS as u64,
        h_ns: 0,
        rate_constant_ns: 0,
        rate_exponent: 0,
        pad: 0,
    }
}

const IDLE: cosched_demand =
    cosched_demand { now_ns: 0, last_boost_ns: 0, receiver_ran_ns: 0, running_ran_ns: 0, nr_runnable: 0, pad: 0 };

fn reason(policy: &cosched_policy, demand: &cosched_demand) -> &'static str {
    native::reasons()[native::decide(policy, demand) as usize].name
}

fn grants(policy: &cosched_policy, demand: &cosched_demand) -> bool {
    native::grants(native::decide(policy, demand))
}

#[test]
fn without_an_arrival_rule_nothing_is_a_demand() {
    for gate in [ALWAYS, EQUALIZING, RATE] {
        assert_eq!(reason(&cosched_policy { arrival: NONE, ..policy(gate) }, &IDLE), "no_demand");
    }
}

#[test]
fn always_grants() {
    assert_eq!(reason(&policy(ALWAYS), &IDLE), "always");
}

#[test]
fn equalizing_compares_lag_with_h() {
    // Thesis 3.2: boost j over i only if r_j + h < r_i. All in ms: r_j, h, r_i.
    for (receiver, h, running, expected) in [
        (10, 0, 20, "lags"),
        (20, 0, 20, "not_behind"),
        (20, 0, 10, "not_behind"),
        (10, 5, 20, "lags"),
        (10, 10, 20, "not_behind"),
        (10, 20, 20, "not_behind"),
        // The header's example: h = -40 lets the receiver run ahead, until it is 40 ahead.
        (120, -40, 90, "lags"),
        (130, -40, 90, "not_behind"),
        (129, -40, 90, "lags"),
        // Behind the fair clock: both may be negative.
        (-30, 0, -20, "lags"),
        (-20, 0, -30, "not_behind"),
    ] {
        let policy = cosched_policy { h_ns: h * MS, ..policy(EQUALIZING) };
        let demand = cosched_demand { receiver_ran_ns: receiver * MS, running_ran_ns: running * MS, ..IDLE };
        assert_eq!(reason(&policy, &demand), expected, "r_j {receiver} h {h} r_i {running}");
    }
}

/// Asks the gate `rate`, times in ms.
fn rate(exponent: i32, constant: i64, since: u64, runnable: u32) -> &'static str {
    let policy = cosched_policy { rate_exponent: exponent, rate_constant_ns: constant * MS, ..policy(RATE) };
    let last_boost_ns = 1_000_000 * MS as u64;
    let now_ns = last_boost_ns + since * MS as u64;
    reason(&policy, &cosched_demand { now_ns, last_boost_ns, nr_runnable: runnable, ..IDLE })
}

#[test]
fn rate_compares_the_interval_with_the_round() {
    // Thesis 4.2.1: boost only if 2^E (Tc - Tp) + C >= Tq R, here with Tq = 20 ms.
    for (exponent, constant, since, runnable, expected) in [
        // E = 0: one boost a round of 5 x 20 ms.
        (0, 0, 99, 5, "too_soon"),
        (0, 0, 100, 5, "interval"),
        // E = -1: the time since the last boost must be twice the round.
        (-1, 0, 199, 5, "too_soon"),
        (-1, 0, 200, 5, "interval"),
        // E = 1: two boosts a round.
        (1, 0, 49, 5, "too_soon"),
        (1, 0, 50, 5, "interval"),
        // C moves the point by a constant, either way.
        (0, 30, 69, 5, "too_soon"),
        (0, 30, 70, 5, "interval"),
        (0, -30, 129, 5, "too_soon"),
        (0, -30, 130, 5, "interval"),
        // Alone on its CPU it waits for one slice.
        (0, 0, 19, 1, "too_soon"),
        (0, 0, 20, 1, "interval"),
        // Nobody is there: a round takes no time.
        (0, 0, 0, 0, "interval"),
    ] {
        let decision = rate(exponent, constant, since, runnable);
        assert_eq!(decision, expected, "E {exponent} C {constant} since {since} R {runnable}");
    }
}

#[test]
fn a_boost_in_the_future_was_just_now() {
    let demand = cosched_demand { now_ns: 5, last_boost_ns: 6, nr_runnable: 2, ..IDLE };
    assert_eq!(reason(&policy(RATE), &demand), "too_soon");
}

#[test]
fn a_rule_that_nobody_knows_denies() {
    assert_eq!(reason(&policy(17), &IDLE), "no_demand");
    assert_eq!(reason(&cosched_policy { arrival: 17, ..policy(ALWAYS) }, &IDLE), "no_demand");
}

/// Numbers of all sizes, and the ends of the range more often than chance would have it.
fn any_i64() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -1000..1000i64, Just(i64::MIN), Just(i64::MAX), Just(0)]
}

fn any_u64() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0..1000u64, Just(u64::MAX)]
}

prop_compose! {
    fn any_policy(gates: std::ops::Range<u32>)(
        arrival in prop_oneof![8 => Just(DEMAND), 1 => 0..3u32], gate in gates, slice_ns in any_u64(), h_ns in any_i64(),
        rate_constant_ns in any_i64(), rate_exponent in prop_oneof![any::<i32>(), -70..70i32],
    ) -> cosched_policy {
        cosched_policy { arrival, gate, slice_ns, h_ns, rate_constant_ns, rate_exponent, pad: 0 }
    }
}

prop_compose! {
    fn any_demand()(
        now_ns in any_u64(), last_boost_ns in any_u64(), receiver_ran_ns in any_i64(),
        running_ran_ns in any_i64(), nr_runnable in prop_oneof![any::<u32>(), 0..COSCHED_MAX_CPUS],
    ) -> cosched_demand {
        cosched_demand { now_ns, last_boost_ns, receiver_ran_ns, running_ran_ns, nr_runnable, pad: 0 }
    }
}

/// The rule of thesis 4.2.1 without any shortcut: in numbers so wide that nothing saturates. Multiplied by
/// 2^-E where E is negative, so that nothing is rounded.
fn rate_by_definition(policy: &cosched_policy, demand: &cosched_demand) -> bool {
    let since = i128::from(demand.now_ns.saturating_sub(demand.last_boost_ns));
    let round = i128::from(policy.slice_ns) * i128::from(demand.nr_runnable);
    let constant = i128::from(policy.rate_constant_ns);
    match policy.rate_exponent {
        e if e >= 0 => (since << e) + constant >= round,
        e => since + (constant << -e) >= round << -e,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_input_has_an_answer(policy in any_policy(0..4), demand in any_demand()) {
        prop_assert!((native::decide(&policy, &demand) as usize) < native::reasons().len());
    }

    #[test]
    fn more_lag_never_turns_a_grant_into_a_denial(
        policy in any_policy(EQUALIZING..RATE), demand in any_demand(), more in any::<u64>(),
    ) {
        let running_ran_ns = demand.running_ran_ns.saturating_add_unsigned(more);
        let receiver_ran_ns = demand.receiver_ran_ns.saturating_sub_unsigned(more);
        let ahead = cosched_demand { running_ran_ns, ..demand };
        let behind = cosched_demand { receiver_ran_ns, ..demand };
        prop_assert!(!grants(&policy, &demand) || (grants(&policy, &ahead) && grants(&policy, &behind)));
    }

    #[test]
    fn a_lower_h_never_turns_a_grant_into_a_denial(
        policy in any_policy(EQUALIZING..RATE), demand in any_demand(), less in any::<u64>(),
    ) {
        let lower = cosched_policy { h_ns: policy.h_ns.saturating_sub_unsigned(less), ..policy };
        prop_assert!(!grants(&policy, &demand) || grants(&lower, &demand));
    }

    #[test]
    fn the_ends_of_h_mean_always_and_never(
        receiver_ran_ns in i64::MIN / 2..i64::MAX / 2, running_ran_ns in i64::MIN / 2..i64::MAX / 2,
    ) {
        let demand = cosched_demand { receiver_ran_ns, running_ran_ns, ..IDLE };
        let always = cosched_policy { h_ns: i64::MIN, ..policy(EQUALIZING) };
        let never = cosched_policy { h_ns: i64::MAX, ..policy(EQUALIZING) };
        prop_assert!(grants(&always, &demand));
        prop_assert!(!grants(&never, &demand));
    }

    #[test]
    fn more_time_never_turns_a_grant_into_a_denial(
        policy in any_policy(RATE..RATE + 1), demand in any_demand(), more in any::<u64>(),
    ) {
        let later = cosched_demand { now_ns: demand.now_ns.saturating_add(more), ..demand };
        prop_assert!(!grants(&policy, &demand) || grants(&policy, &later));
    }

    #[test]
    fn a_longer_queue_never_turns_a_denial_into_a_grant(
        policy in any_policy(RATE..RATE + 1), demand in any_demand(), more in any::<u32>(),
    ) {
        let fuller = cosched_demand { nr_runnable: demand.nr_runnable.saturating_add(more), ..demand };
        prop_assert!(grants(&policy, &demand) || !grants(&policy, &fuller));
    }

    #[test]
    fn rate_is_its_definition_for_all_that_an_operator_can_set(
        demand in any_demand(), exponent in -32..=32i32, constant_ms in -3_600_000..=3_600_000i64,
        slice_us in 100..=1_000_000u64, since in 0..1u64 << 60, nr_runnable in 0..10_000u32,
    ) {
        let policy = cosched_policy {
            rate_exponent: exponent,
            rate_constant_ns: constant_ms * MS,
            slice_ns: slice_us * 1000,
            ..policy(RATE)
        };
        let now_ns = demand.last_boost_ns.saturating_add(since);
        let demand = cosched_demand { now_ns, nr_runnable, ..demand };
        prop_assert_eq!(grants(&policy, &demand), rate_by_definition(&policy, &demand));
    }

    #[test]
    fn equalizing_is_its_definition_unless_a_sum_saturates(
        policy in any_policy(EQUALIZING..RATE), demand in any_demand(),
    ) {
        let policy = cosched_policy { arrival: DEMAND, ..policy };
        let sum = i128::from(demand.receiver_ran_ns) + i128::from(policy.h_ns);
        if i64::try_from(sum).is_ok() {
            prop_assert_eq!(grants(&policy, &demand), sum < i128::from(demand.running_ran_ns));
        }
    }
}
