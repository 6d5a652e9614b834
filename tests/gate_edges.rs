// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a gate changes its answer at the very ns where its definition does, and at the ends of what numbers can hold
//! it denies rather than wraps.

use cosched_rules::native;
use proptest::prelude::*;
use rules::{AUTO, EQUALIZING, FAIR_MEAN_SHIFT, IDLE, POLICY, RATE, cosched_demand, cosched_policy, grants, reason};

#[path = "common/rules.rs"]
mod rules;

/// The gate `equalizing` at these times in ns: h, r_j, r_i.
fn equalizing(h_ns: i64, receiver_ran_ns: i64, running_ran_ns: i64) -> (cosched_policy, cosched_demand) {
    let policy = cosched_policy { gate: EQUALIZING, h_ns, ..POLICY };
    (policy, cosched_demand { receiver_ran_ns, running_ran_ns, ..IDLE })
}

#[test]
fn a_lead_that_is_bounded_by_all_that_fits_is_bounded_still() {
    let (policy, demand) = equalizing(i64::MIN, 0, -i64::MAX);
    let bounded = |max_lead_ns| cosched_demand { max_lead_ns, ..demand };
    assert_eq!(reason(&policy, &bounded(i64::MAX as u64)), "not_behind");
    assert_eq!(reason(&policy, &bounded(i64::MAX as u64 + 1)), "lags");
}

#[test]
fn a_lag_below_all_that_fits_is_no_lag() {
    for (receiver, h) in [(1, 0), (0, 1), (2, 0), (i64::MAX, 0), (i64::MAX, i64::MAX)] {
        let (policy, demand) = equalizing(h, receiver, i64::MIN);
        assert_eq!(reason(&policy, &demand), "not_behind", "r_j {receiver} h {h}");
        assert_eq!(native::slice(&policy, &demand), 0, "r_j {receiver} h {h}");
    }
}

#[test]
fn a_boost_in_the_future_counts_as_no_time_at_all() {
    let policy = cosched_policy { gate: RATE, rate_exponent: 63, ..POLICY };
    let demand = cosched_demand { now_ns: 5, nr_runnable: 1, ..IDLE };
    for (last_boost_ns, expected) in [(4, "interval"), (5, "too_soon"), (6, "too_soon"), (u64::MAX, "too_soon")] {
        assert_eq!(reason(&policy, &cosched_demand { last_boost_ns, ..demand }), expected, "{last_boost_ns}");
    }
}

#[test]
fn a_power_of_two_is_exact_to_the_last_bit() {
    const MAX: u64 = u64::MAX;
    // E, the time since the last boost and a slice in ns, R, and whether 2^E times the former is as much as a round.
    for (exponent, since, slice_ns, nr_runnable, expected) in [
        (i32::MIN, MAX, 1, 1, "too_soon"),
        (-64, MAX, 1, 1, "too_soon"),
        (-63, MAX, 1, 1, "interval"),
        (-63, MAX >> 1, 1, 1, "too_soon"),
        (-1, 1, 1, 1, "too_soon"),
        (0, 0, 1, 1, "too_soon"),
        (0, MAX, MAX, 1, "interval"),
        (1, 1, 2, 1, "interval"),
        (1, 1, 3, 1, "too_soon"),
        (1, MAX, MAX, 1, "interval"),
        (63, 1, 1 << 62, 2, "interval"),
        (63, 1, 1 << 62, 3, "too_soon"),
        (63, 2, 1 << 62, 3, "interval"),
        (64, 0, 1, 1, "too_soon"),
        (64, 1, MAX, 1, "interval"),
        (i32::MAX, 0, 1, 1, "too_soon"),
        (i32::MAX, 1, MAX, 1, "interval"),
    ] {
        let policy = cosched_policy { gate: RATE, rate_exponent: exponent, slice_ns, ..POLICY };
        let demand = cosched_demand { now_ns: since, nr_runnable, ..IDLE };
        assert_eq!(reason(&policy, &demand), expected, "2^{exponent} {since} for {slice_ns} {nr_runnable}");
    }
}

#[test]
fn the_lead_under_auto_is_bounded_however_long_a_slice_is() {
    let demand = cosched_demand { fair_ns: 1 << 40, ..IDLE };
    for slice_ns in [1 << 40, 1 << 61, 3 << 61, u64::MAX] {
        let policy = cosched_policy { gate: AUTO, slice_ns, target_permille: 1000, ..POLICY };
        assert_eq!(reason(&policy, &demand), "below_target", "{slice_ns}");
    }
}

#[test]
fn five_reasons_grant_and_no_other_number_does() {
    let granting: Vec<&str> =
        native::reasons().iter().filter(|reason| reason.grants).map(|reason| reason.name).collect();
    assert_eq!(granting, ["always", "lags", "interval", "new_epoch", "below_target"]);
    let reasons = native::reasons().len() as u32;
    assert!(!native::grants(reasons) && !native::grants(u32::MAX));
}

/// With a slice of 2^`FAIR_MEAN_SHIFT` ns the round takes as many ns as the mean is in its own unit.
#[test]
fn a_mean_beyond_32_bits_counts_as_so_many() {
    let policy = cosched_policy { gate: RATE, rate_average: 1, slice_ns: 1 << FAIR_MEAN_SHIFT, ..POLICY };
    let most = u64::from(u32::MAX);
    for (mean_waiting, since, expected) in [
        (most - 1, most - 1, "interval"),
        (most, most - 1, "too_soon"),
        (most, most, "interval"),
        (u64::MAX, most - 1, "too_soon"),
        (u64::MAX, most, "interval"),
    ] {
        let demand = cosched_demand { now_ns: since, mean_waiting, ..IDLE };
        assert_eq!(reason(&policy, &demand), expected, "{mean_waiting} waiting, after {since} ns");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rate_opens_at_the_ns_that_its_definition_says(
        slice_ns in 1..1u64 << 40, nr_runnable in 1..1u32 << 20, constant_ns in -1_000_000..1_000_000i64, off in 0..5u64,
    ) {
        let round_ns = slice_ns * u64::from(nr_runnable);
        let since_ns = (round_ns + off).saturating_add_signed(-constant_ns).saturating_sub(2);
        let policy = cosched_policy { gate: RATE, slice_ns, rate_constant_ns: constant_ns, ..POLICY };
        let demand = cosched_demand { now_ns: since_ns, nr_runnable, ..IDLE };
        let is_time = i128::from(since_ns) + i128::from(constant_ns) >= i128::from(round_ns);
        prop_assert_eq!(grants(&policy, &demand), is_time);
    }

    #[test]
    fn auto_closes_and_opens_at_the_ns_that_its_definition_says(
        fair_ns in 0..1u64 << 45, target_permille in 1..=10_000u32, slice_ns in 1_000..1u64 << 30, off in 0..5u64,
        denied in 0..2u32,
    ) {
        let due_ns = fair_ns * u64::from(target_permille) / 1000;
        let band_ns = (fair_ns / 40).clamp(slice_ns / 5 * 2, slice_ns / 5 * 6);
        let (upper_ns, lower_ns) = (due_ns + band_ns, due_ns.saturating_sub(band_ns));
        let bound_ns = if denied == 1 { lower_ns } else { upper_ns };
        let cpu_ns = (bound_ns + off).saturating_sub(2);
        let policy = cosched_policy { gate: AUTO, target_permille, slice_ns, ..POLICY };
        let demand = cosched_demand { fair_ns, cpu_ns, denied, ..IDLE };
        prop_assert_eq!(grants(&policy, &demand), cpu_ns < bound_ns);
        prop_assert_eq!(native::slice(&policy, &demand), upper_ns.saturating_sub(cpu_ns).min(slice_ns));
    }
}
