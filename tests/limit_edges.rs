// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the rules of `cpu.max` (`policies/limit.h`) hold at their edges, to the ns.

use cosched_rules::intf::{
    LIMIT_NS_MAX, LIMIT_PERIODS_MAX, LIMIT_PORTION_NS, LIMIT_WAIT_NS, cosched_limit, cosched_portion,
};
use cosched_rules::native::{NEW_LIMIT, limit_return, limit_set, limit_take, limit_until};
use rules::{MS, SEC};

#[path = "common/rules.rs"]
mod rules;

const PART_NS: u64 = LIMIT_PORTION_NS as u64;
const HALF_NS: i64 = PART_NS as i64 / 2;
const DEBT_NS: i64 = -(3_600 * SEC as i64);

/// 10 ms in 100 ms with this burst, of period 1, and so much left in the pool.
fn limit(burst_ns: u64, left_ns: i64) -> cosched_limit {
    let mut limit = NEW_LIMIT;
    limit_set(&mut limit, 10 * MS, 100 * MS, burst_ns, 0);
    cosched_limit { left_ns, ..limit }
}

/// A portion of period 1 is of this one, and one of period 0 of an earlier one.
fn portion(left_ns: i64, number: u64) -> cosched_portion {
    cosched_portion { left_ns, number }
}

#[test]
fn a_limit_begins_with_its_quota_and_without_a_past() {
    let mut limit = cosched_limit { number: 7, room_ns: 5, left_ns: -3, ..NEW_LIMIT };
    limit_set(&mut limit, 10 * MS, 0, 4 * MS, 3 * SEC);
    let cosched_limit { quota_ns, period_ns, burst_ns, left_ns, room_ns, refill_at_ns, number } = limit;
    assert_eq!((quota_ns, burst_ns, left_ns, room_ns, number), (10 * MS, 4 * MS, 10 * MS as i64, 0, 8));
    assert_eq!((period_ns, refill_at_ns), (1, 3 * SEC + 1), "a period of 0 counts as 1 ns");
    limit_set(&mut limit, u64::MAX, SEC, u64::MAX, 0);
    assert_eq!((limit.quota_ns, limit.burst_ns), (LIMIT_NS_MAX, LIMIT_NS_MAX));
}

#[test]
fn a_refill_leaves_room_for_what_portions_may_bring_back() {
    for (left_ns, room_ns) in [(0, 4 * MS), (1, 4 * MS - 1), (MS as i64, 3 * MS), (-1, 4 * MS), (20 * MS as i64, 0)] {
        let mut limit = limit(4 * MS, left_ns);
        limit_take(&mut limit, &mut portion(0, 0), PART_NS, 100 * MS);
        assert_eq!((limit.room_ns, limit.number), (room_ns, 2), "{left_ns} ns left");
    }
    let mut late = limit(0, 0);
    limit_take(&mut late, &mut portion(0, 0), PART_NS, 399 * MS);
    assert_eq!((late.number, late.refill_at_ns), (4, 400 * MS), "three periods have ended");
}

#[test]
fn what_comes_back_late_uses_the_room_up() {
    let mut limit = cosched_limit { room_ns: 4 * MS, ..limit(4 * MS, 0) };
    for (expected, room_ns) in [(3 * MS, MS), (4 * MS, 0), (4 * MS, 0)] {
        limit_return(&mut limit, &mut portion(3 * MS as i64, 0));
        assert_eq!((limit.left_ns, limit.room_ns), (expected as i64, room_ns));
    }
    limit_return(&mut limit, &mut portion(1, 0));
    assert_eq!(limit.left_ns, 4 * MS as i64, "not even a ns, without room");
    limit_return(&mut limit, &mut portion(1, 1));
    assert_eq!(limit.left_ns, 4 * MS as i64 + 1, "what is of this period needs no room");
}

#[test]
fn a_debt_is_bounded_by_whole_periods() {
    let least = LIMIT_WAIT_NS;
    for (quota_ns, period_ns, periods) in
        [(MS, 2 * least, 1), (MS, least, 1), (MS, least / 2, 2), (1, 1, LIMIT_PERIODS_MAX)]
    {
        let mut limit = NEW_LIMIT;
        limit_set(&mut limit, quota_ns, period_ns, 0, 0);
        limit_return(&mut limit, &mut portion(DEBT_NS, 0));
        assert_eq!(limit.left_ns, -((quota_ns * u64::from(periods)) as i64), "{quota_ns} ns in {period_ns} ns");
    }
}

#[test]
fn a_portion_is_filled_up_when_less_than_half_of_it_is_left() {
    for (left_ns, expected, pool_ns) in [
        (PART_NS as i64, PART_NS as i64, 8 * MS as i64),
        (HALF_NS, HALF_NS, 8 * MS as i64),
        (HALF_NS - 1, PART_NS as i64, 8 * MS as i64 + HALF_NS - 1 - PART_NS as i64),
        (-(MS as i64), PART_NS as i64, 7 * MS as i64 - PART_NS as i64),
    ] {
        let (mut limit, mut portion) = (limit(0, 8 * MS as i64), portion(left_ns, 1));
        let got = limit_take(&mut limit, &mut portion, PART_NS, MS);
        assert_eq!((got, portion.left_ns, limit.left_ns), (expected, expected, pool_ns), "{left_ns} ns left");
    }
    // One of an earlier period comes back first, and is lost where there is no room.
    let (mut limit, mut old) = (limit(0, MS as i64), portion(PART_NS as i64, 0));
    assert_eq!(limit_take(&mut limit, &mut old, PART_NS, MS), MS as i64);
    assert_eq!((limit.left_ns, old.number), (0, 1));
}

#[test]
fn the_last_ns_of_a_pool_is_had_and_no_more() {
    for (left_ns, expected) in [(1, 1), (0, 0), (-1, 0)] {
        let mut limit = limit(0, left_ns);
        assert_eq!(limit_take(&mut limit, &mut portion(0, 0), PART_NS, MS), expected, "{left_ns} ns in the pool");
    }
}

#[test]
fn a_cpu_may_run_the_group_as_long_as_a_ns_is_left_to_it() {
    let refill = 100 * MS;
    for (pool_ns, left_ns, number, expected) in [
        (0, 1, 1, 0),
        (0, 0, 1, refill),
        (0, -1, 1, refill),
        (0, 3 * MS as i64, 0, refill),
        (1, 0, 0, 0),
        (1, -1, 1, refill),
        (2, -1, 1, 0),
        (-1, 1, 1, 0),
    ] {
        let until = limit_until(&limit(0, pool_ns), &portion(left_ns, number), MS);
        assert_eq!(until, expected, "{pool_ns} ns in the pool, {left_ns} of period {number} on the CPU");
    }
    // The end of a period counts as soon as it is there, whether anybody has refilled the pool or not.
    let owed = portion(-(10 * MS as i64), 1);
    assert_eq!(limit_until(&limit(0, 0), &portion(0, 1), refill - 1), refill);
    assert_eq!(limit_until(&limit(0, 0), &portion(0, 1), refill), 0);
    assert_eq!(limit_until(&limit(0, 0), &owed, refill), 2 * refill, "a quota's debt");
    assert_eq!(limit_until(&NEW_LIMIT, &owed, refill), 0, "no limit");
}
