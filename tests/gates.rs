// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the gates decide as the papers say, for the papers' examples, a boost lasts no longer than its gate
//! stays open, and for no input do they wrap, crash or turn "never" into "always".

use cosched_rules::native;
use proptest::prelude::*;
use rules::{
    ALWAYS, AUTO, BUSY, COSCHED_SCALE_SHIFT, DEMAND, EPOCHS, EQUAL_WEIGHTS, EQUALIZING, FAIR_MEAN_SHIFT, GANG, GATES,
    IDLE, NONE, PERIODIC, POLICY, RATE, SPIN_BLOCK, SPIN_YIELD, any_demand, any_policy, cosched_demand, cosched_policy,
    grants, reason,
};

#[path = "common/rules.rs"]
mod rules;

const MS: i64 = 1_000_000;

fn policy(gate: u32) -> cosched_policy {
    cosched_policy { gate, ..POLICY }
}

/// A policy under the gate `equalizing` and a demand that it has not denied, times in ms: h, r_j, r_i.
fn equalizing(h: i64, receiver: i64, running: i64) -> (cosched_policy, cosched_demand) {
    let policy = cosched_policy { h_ns: h * MS, ..policy(EQUALIZING) };
    (policy, cosched_demand { receiver_ran_ns: receiver * MS, running_ran_ns: running * MS, ..IDLE })
}

#[test]
fn nobody_is_boosted_but_on_arrival_each_interval_or_by_one_that_yields() {
    for (arrival, wait, boosts) in [
        (NONE, BUSY, false),
        (NONE, SPIN_BLOCK, false),
        (NONE, SPIN_YIELD, true),
        (GANG, BUSY, false),
        (DEMAND, BUSY, true),
        (PERIODIC, BUSY, true),
        (17, BUSY, false),
    ] {
        let policy = |gate| cosched_policy { arrival, wait, ..policy(gate) };
        assert_eq!(reason(&policy(ALWAYS), &IDLE), if boosts { "always" } else { "no_demand" }, "{arrival} {wait}");
        for gate in [EQUALIZING, EPOCHS, RATE, AUTO] {
            assert_eq!(reason(&policy(gate), &IDLE) != "no_demand", boosts, "{arrival} {wait} gate {gate}");
        }
        assert_eq!(reason(&policy(17), &IDLE), "no_demand", "{arrival} {wait} and a gate that nobody knows");
    }
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
        let (policy, demand) = equalizing(h, receiver, running);
        assert_eq!(reason(&policy, &demand), expected, "r_j {receiver} h {h} r_i {running}");
    }
}

#[test]
fn a_gate_that_denied_opens_again_at_half_of_a_negative_h() {
    // All in ms: h, the receiver's lead; then the answer at first, and after a denial.
    for (h, lead, at_first, after_denial) in [
        (-80, 39, "lags", "lags"),
        (-80, 40, "lags", "not_behind"),
        (-80, 50, "lags", "not_behind"),
        (-80, 79, "lags", "not_behind"),
        (-80, 80, "not_behind", "not_behind"),
        (-80, -500, "lags", "lags"),
        // From h = 0 on the receiver has to lag anyway, and half of a positive h would open the gate earlier.
        (0, -1, "lags", "lags"),
        (0, 0, "not_behind", "not_behind"),
        (80, -81, "lags", "lags"),
        (80, -80, "not_behind", "not_behind"),
        (80, -50, "not_behind", "not_behind"),
    ] {
        // The running task may be anywhere on the fair clock: only the lead counts.
        for running in [-1000, 0, 1000] {
            let (policy, demand) = equalizing(h, running + lead, running);
            assert_eq!(reason(&policy, &demand), at_first, "h {h} lead {lead} r_i {running}");
            for denied in [1, 2, u32::MAX] {
                let again = cosched_demand { denied, ..demand };
                assert_eq!(reason(&policy, &again), after_denial, "h {h} lead {lead} r_i {running} denied {denied}");
            }
        }
    }
}

#[test]
fn h_allows_no_lead_that_nobody_collects() {
    // All in ms: h, the greatest lead, the receiver's lead, and the answer with the time granted of a slice of 20.
    for (h, max_lead, lead, expected, granted) in [
        (-60, 30, 29, "lags", 1),
        (-60, 30, 30, "not_behind", 0),
        (-60, 60, 45, "lags", 15),
        (-60, 0, -5, "lags", 5),
        (-60, 0, 0, "not_behind", 0),
        // h is the narrower bound.
        (-20, 30, 20, "not_behind", 0),
        (20, 0, -20, "not_behind", 0),
    ] {
        let (policy, demand) = equalizing(h, lead, 0);
        let demand = cosched_demand { max_lead_ns: (max_lead * MS) as u64, ..demand };
        assert_eq!(reason(&policy, &demand), expected, "h {h} max {max_lead} lead {lead}");
        assert_eq!(native::slice(&policy, &demand), (granted * MS) as u64, "h {h} max {max_lead} lead {lead}");
    }
}

#[test]
fn half_of_the_smallest_h_is_no_h() {
    let policy = cosched_policy { h_ns: -1, ..policy(EQUALIZING) };
    assert_eq!(reason(&policy, &IDLE), "lags");
    assert_eq!(reason(&policy, &cosched_demand { denied: 1, ..IDLE }), "not_behind");
}

#[test]
fn a_boost_lasts_a_slice_or_until_the_gate_closes() {
    // All in ms: r_j, h, r_i, and the time granted of a slice of 20.
    for (receiver, h, running, expected) in [
        // The gate stays open for longer than a slice, for just one, for less, and not at all.
        (0, 0, 100, 20),
        (80, 0, 100, 20),
        (81, 0, 100, 19),
        (99, 0, 100, 1),
        (100, 0, 100, 0),
        (500, 0, 100, 0),
        // h > 0: the receiver stops h short of the running task.
        (0, 5, 30, 20),
        (0, 15, 30, 15),
        (0, 30, 30, 0),
        // h < 0: it may get ahead by -h. The second is the header's example.
        (0, -40, 0, 20),
        (120, -40, 90, 10),
        (130, -40, 90, 0),
        // Behind the fair clock: both may be negative.
        (-30, 0, -20, 10),
        (-20, 0, -30, 0),
    ] {
        let (policy, demand) = equalizing(h, receiver, running);
        let slice_ns = native::slice(&policy, &demand);
        assert_eq!(slice_ns, (expected * MS) as u64, "r_j {receiver} h {h} r_i {running}");
    }
}

#[test]
fn after_a_denial_a_boost_may_still_use_all_of_h() {
    // The hysteresis is there to have longer turns: it holds the start of a boost back, not its end.
    let (policy, demand) = equalizing(-80, 39, 0);
    let policy = cosched_policy { slice_ns: 1000 * MS as u64, ..policy };
    let again = cosched_demand { denied: 1, ..demand };
    assert_eq!(native::slice(&policy, &demand), 41 * MS as u64);
    assert_eq!(native::slice(&policy, &again), 41 * MS as u64);
}

#[test]
fn time_on_the_fair_clock_is_charged_by_weight() {
    // A task of `weight` among four of 100 has room for 10 ms on the fair clock, and may run for as long as charges
    // that, in us, of a slice of 20 ms.
    for (weight, expected) in [(100, 10_000), (300, 20_000), (200, 16_666), (50, 5_555), (10, 1_219), (0, 0)] {
        let scale = u64::from(EQUAL_WEIGHTS) * weight * 5 / (weight + 400);
        let (policy, demand) = equalizing(0, 90, 100);
        let slice_ns = native::slice(&policy, &cosched_demand { scale: scale as u32, ..demand });
        assert_eq!(slice_ns / 1000, expected, "weight {weight}");
    }
}

#[test]
fn absurd_times_saturate_and_never_lengthen_a_boost() {
    const MIN: i64 = i64::MIN;
    const MAX: i64 = i64::MAX;
    const HOURS: i64 = (1 << 44) - 1; // nearly five: the longest boost, since its product with the scale has 64 bits
    // In ns: r_j, h, r_i, and what is granted of the longest slice that can be written down.
    for (receiver, h, running, expected) in [
        (MIN, MIN, MAX, HOURS),
        (MIN, 0, MAX, HOURS),
        (-1, 0, MAX, HOURS),
        (0, 0, HOURS, HOURS),
        (1, 0, HOURS, HOURS - 1),
        (0, MIN, 0, HOURS),
        (MAX, MIN, 0, 1),
        (MAX, MIN, -1, 0),
        (MAX, 0, MIN, 0),
        (MAX, MAX, MAX, 0),
        (MAX, 1, MAX, 0),
        // Here the gate would be open, had the sum not saturated: in doubt it stays closed.
        (MIN, MIN, MIN, 0),
    ] {
        let policy = cosched_policy { h_ns: h, slice_ns: u64::MAX, ..policy(EQUALIZING) };
        let demand = cosched_demand { receiver_ran_ns: receiver, running_ran_ns: running, ..IDLE };
        assert_eq!(native::slice(&policy, &demand), expected as u64, "r_j {receiver} h {h} r_i {running}");
    }
}

#[test]
fn gates_that_count_no_cpu_time_grant_a_whole_slice() {
    for gate in [ALWAYS, RATE, 17] {
        // A lead that closes the gate `equalizing` for long.
        let (equalizing, demand) = equalizing(0, 500, 0);
        assert_eq!(native::slice(&cosched_policy { gate, ..equalizing }, &demand), 20 * MS as u64, "gate {gate}");
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
fn the_average_counts_those_that_waited() {
    // Buchanan-Chien 2.2.2, with Tq = 20 ms: how many are runnable at the moment is not asked.
    let policy = cosched_policy { rate_average: 1, ..policy(RATE) };
    for (halves, since, expected) in
        [(0, 0, "interval"), (1, 9, "too_soon"), (1, 10, "interval"), (8, 79, "too_soon"), (8, 80, "interval")]
    {
        let mean_waiting = halves << (FAIR_MEAN_SHIFT - 1);
        let now_ns = 1_000_000 * MS as u64;
        let last_boost_ns = now_ns - since * MS as u64;
        let demand = cosched_demand { now_ns, last_boost_ns, nr_runnable: 100, mean_waiting, ..IDLE };
        assert_eq!(reason(&policy, &demand), expected, "{halves} / 2, after {since} ms");
    }
}

#[test]
fn a_boost_in_the_future_was_just_now() {
    let demand = cosched_demand { now_ns: 5, last_boost_ns: 6, nr_runnable: 2, ..IDLE };
    assert_eq!(reason(&policy(RATE), &demand), "too_soon");
}

/// h, or the lead that is collected in the end, whichever allows less.
fn bounded_h(policy: &cosched_policy, demand: &cosched_demand) -> i64 {
    policy.h_ns.max(i64::try_from(demand.max_lead_ns).map_or(i64::MIN, |lead| -lead))
}

/// r_i - (r_j + h) in exact numbers: how far the receiver is from where h closes the gate.
fn exact_room(h_ns: i64, demand: &cosched_demand) -> i128 {
    i128::from(demand.running_ran_ns) - i128::from(demand.receiver_ran_ns) - i128::from(h_ns)
}

/// The rule of thesis 4.2.1 without any shortcut: in numbers so wide that nothing saturates. Multiplied by
/// 2^-E where E is negative, so that nothing is rounded.
fn rate_by_definition(policy: &cosched_policy, demand: &cosched_demand) -> bool {
    let since = i128::from(demand.now_ns.saturating_sub(demand.last_boost_ns));
    let round = match policy.rate_average {
        0 => i128::from(policy.slice_ns) * i128::from(demand.nr_runnable),
        // More than four million count as so many.
        _ => {
            (i128::from(policy.slice_ns) * i128::from(demand.mean_waiting.min(u64::from(u32::MAX)))) >> FAIR_MEAN_SHIFT
        }
    };
    let constant = i128::from(policy.rate_constant_ns);
    match policy.rate_exponent {
        e if e >= 0 => (since << e) + constant >= round,
        e => since + (constant << -e) >= round << -e,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_input_has_an_answer(policy in any_policy(GATES), demand in any_demand()) {
        prop_assert!((native::decide(&policy, &demand) as usize) < native::reasons().len());
        prop_assert!(native::slice(&policy, &demand) <= policy.slice_ns);
    }

    #[test]
    fn a_grant_is_worth_some_time(policy in any_policy(GATES), demand in any_demand()) {
        // No operator can set a slice of nothing; a ns on the fair clock may be less than one of CPU time.
        let policy = cosched_policy { slice_ns: policy.slice_ns.max(1), ..policy };
        let demand = cosched_demand { scale: demand.scale.max(EQUAL_WEIGHTS), ..demand };
        prop_assert!(!grants(&policy, &demand) || native::slice(&policy, &demand) > 0);
    }

    #[test]
    fn a_boost_never_carries_the_lead_beyond_h(policy in any_policy(EQUALIZING..RATE), demand in any_demand()) {
        // Where a sum saturates too: it does so on the side of the shorter boost.
        let slice_ns = native::slice(&policy, &demand);
        let room = exact_room(bounded_h(&policy, &demand), &demand);
        prop_assert!(slice_ns == 0 || i128::from(slice_ns) << COSCHED_SCALE_SHIFT <= room * i128::from(demand.scale));
    }

    #[test]
    fn a_boost_is_as_long_as_the_room_unless_a_sum_saturates(
        policy in any_policy(EQUALIZING..RATE), demand in any_demand(),
    ) {
        let h_ns = bounded_h(&policy, &demand);
        let sum = i128::from(demand.receiver_ran_ns) + i128::from(h_ns);
        let room = exact_room(h_ns, &demand);
        if i64::try_from(sum).is_ok() && i64::try_from(room).is_ok() {
            let scaled = (room.max(0) * i128::from(demand.scale)).min(i128::from(u64::MAX)) >> COSCHED_SCALE_SHIFT;
            prop_assert_eq!(i128::from(native::slice(&policy, &demand)), scaled.min(i128::from(policy.slice_ns)));
        }
    }

    #[test]
    fn a_denial_never_opens_a_gate(policy in any_policy(GATES), demand in any_demand()) {
        let again = cosched_demand { denied: demand.denied.max(1), ..demand };
        let first = cosched_demand { denied: 0, ..demand };
        prop_assert!(!grants(&policy, &again) || grants(&policy, &first));
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
        let fuller = cosched_demand {
            nr_runnable: demand.nr_runnable.saturating_add(more),
            mean_waiting: demand.mean_waiting.saturating_add(u64::from(more)),
            ..demand
        };
        prop_assert!(grants(&policy, &demand) || !grants(&policy, &fuller));
    }

    #[test]
    fn rate_is_its_definition_for_all_that_an_operator_can_set(
        demand in any_demand(), exponent in -32..=32i32, constant_ms in -3_600_000..=3_600_000i64,
        slice_us in 100..=1_000_000u64, since in 0..1u64 << 60, nr_runnable in 0..10_000u32, rate_average in 0..2u64,
    ) {
        let policy = cosched_policy {
            rate_average,
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
        policy in any_policy(EQUALIZING..EPOCHS), demand in any_demand(),
    ) {
        let policy = cosched_policy { arrival: DEMAND, ..policy };
        let h_ns = bounded_h(&policy, &demand);
        let h_ns = if demand.denied != 0 { h_ns.max(h_ns / 2) } else { h_ns };
        let sum = i128::from(demand.receiver_ran_ns) + i128::from(h_ns);
        if i64::try_from(sum).is_ok() {
            prop_assert_eq!(grants(&policy, &demand), exact_room(h_ns, &demand) > 0);
        }
    }
}
