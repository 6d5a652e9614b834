// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the fair order's rules (`policies/fair.h`) hold at their edges, to the ns.

use cosched_rules::intf::{
    COSCHED_WINDOW_CREDIT, FAIR_FEW, FAIR_LAG_SLICES, FAIR_LEAD_MAX, FAIR_LEAST_SLICE_NS, FAIR_MANY, FAIR_MEAN_SHIFT,
    FAIR_PRESENCE_NS, FAIR_ROOM_SHIFT, FAIR_ROOM_WEIGHT, FAIR_ROUND_NS, FAIR_SUM_MAX, FAIR_SYNC_NS, FAIR_WAIT_NS,
    FAIR_WAKE_MARGIN_NS, FAIR_WEIGHT_DEFAULT, FAIR_WEIGHT_SHIFT, cosched_gate_COSCHED_GATE_ALWAYS as ALWAYS,
    cosched_gate_COSCHED_GATE_AUTO as AUTO, cosched_order, cosched_place, cosched_presence,
};
use cosched_rules::native as rule;
use cosched_sim::policy::NOTHING;
use rules::{MS, cosched_policy};

#[path = "common/rules.rs"]
mod rules;

const WEIGHT: u32 = FAIR_WEIGHT_DEFAULT;
const MOST: i64 = FAIR_LEAD_MAX as i64;
const CLOCK: u64 = 1 << 40;

fn order(weight: u64) -> cosched_order {
    cosched_order { weight, weighted_vtime: weight.wrapping_mul(CLOCK), clock: CLOCK, ahead: 0 }
}

fn place(vtime: u64, weight: u64) -> cosched_place {
    cosched_place { vtime, weight, lag: 0, ahead: 0 }
}

/// An order of two of these weights, whose vtimes are so far from its clock.
fn two(leads: [i64; 2], weights: [u32; 2]) -> (cosched_order, [cosched_place; 2]) {
    let mut order = cosched_order { weight: 0, weighted_vtime: 0, clock: 0, ahead: 0 };
    let places = [0, 1].map(|i| {
        let mut place = place(CLOCK.wrapping_add_signed(leads[i]), 0);
        rule::fair_enter(&mut order, &mut place, weights[i]);
        place
    });
    (order, places)
}

#[test]
fn the_clock_is_the_mean_by_weight_and_goes_both_ways() {
    let (mut order, mut places) = two([0, 1000], [100, 300]);
    assert_eq!((order.weight, order.clock), (400, CLOCK + 750));
    assert_eq!(order.weighted_vtime, (400 * CLOCK).wrapping_add(300_000));
    rule::fair_leave(&mut order, &mut places[1]);
    assert_eq!((order.weight, order.clock, places[1].lag), (100, CLOCK, -1000), "back to what is left");
    rule::fair_leave(&mut order, &mut places[0]);
    assert_eq!((order.weight, order.weighted_vtime, order.clock), (0, 0, CLOCK), "of none, what it was last");
}

/// A credit is measured from where the clock would be without the tasks ahead of it.
#[test]
fn a_lead_takes_no_credit_from_tasks_that_wake() {
    let (ms, slices) = (MS as i64, i64::from(FAIR_LAG_SLICES));
    let (mut order, mut places) = two([0, 60 * ms], [2 * WEIGHT, WEIGHT]);
    assert_eq!((order.clock, order.ahead), (CLOCK + 20 * MS, 40 * MS * u64::from(WEIGHT)), "it is 40 ms ahead");
    let places_at = |order: &cosched_order, credit, slice| {
        rule::fair_place(order, -MOST, 0, WEIGHT, credit, slice).wrapping_sub(CLOCK) as i64
    };
    let begins = |order: &cosched_order, credit| places_at(order, credit, 20 * MS);
    assert_eq!(begins(&order, 5 * MS), 20 * ms - 40 * ms / 3 - 5 * ms);
    assert_eq!(places_at(&order, 5 * MS, MS), 20 * ms - slices * ms - 5 * ms, "no more than it could have waited for");
    assert_eq!(begins(&order, 0), 20 * ms, "without a credit it begins at the clock");
    rule::fair_reweigh(&mut order, &mut places[1], 2 * WEIGHT);
    assert_eq!(order.ahead, 20 * MS * u64::from(2 * WEIGHT), "the same in CPU time");
    rule::fair_leave(&mut order, &mut places[1]);
    assert_eq!((order.ahead, places[1].ahead), (0, 0), "gone, and what it added to the clock is too");
    assert_eq!(begins(&order, 5 * MS), -5 * ms);
    rule::fair_charge(&mut order, &mut places[0], 7);
    assert_eq!((order.ahead, places[0].ahead), (0, 0), "alone it is the mean");
    rule::fair_enter(&mut order, &mut places[1], WEIGHT);
    let noted = order.ahead;
    let mut stale = cosched_place { ahead: 1 << 40, ..place(CLOCK, 0) };
    rule::fair_enter(&mut order, &mut stale, WEIGHT);
    assert_eq!((order.ahead, stale.ahead), (noted, 0), "what it had in an order that is gone is none of this one");
    rule::fair_leave(&mut order, &mut stale);
    rule::fair_charge(&mut order, &mut places[1], 3000);
    assert!(order.ahead > noted && order.ahead == places[1].ahead, "as of its last run");
}

#[test]
fn a_task_that_has_had_no_more_than_its_share_is_due() {
    assert!(rule::fair_is_due(-MOST) && rule::fair_is_due(0) && !rule::fair_is_due(1));
}

#[test]
fn tasks_that_go_ahead_of_boosts_are_ahead_of_all_others_and_in_the_fair_order() {
    let (front, most) = (MOST / 4, MOST / 2);
    assert_eq!((rule::fair_front(0), rule::fair_front(7)), (-3 * front, 7 - 3 * front));
    assert_eq!((rule::fair_front(front), rule::fair_front(front + 1)), (-most, -most), "none is further ahead");
    assert_eq!((rule::fair_front(-front), rule::fair_front(-MOST)), (-MOST, -MOST), "nor further behind");
    assert!(rule::fair_is_front(-most) && !rule::fair_is_front(1 - most) && !rule::fair_is_front(0));
    assert!(rule::fair_is_front(rule::fair_front(MOST)) && rule::fair_is_front(rule::fair_front(-MOST)));
}

#[test]
fn who_comes_to_an_empty_order_brings_its_clock_along() {
    // From so far away that a mean by weight would not fit into 64 bits.
    let mut order = cosched_order { weight: 0, weighted_vtime: 0, clock: 0, ahead: 0 };
    let mut first = place(1 << 62, 0);
    rule::fair_enter(&mut order, &mut first, WEIGHT);
    assert_eq!(order.clock, 1 << 62);
    let mut second = place((1 << 62) + 10, 0);
    rule::fair_enter(&mut order, &mut second, WEIGHT);
    assert_eq!(order.clock, (1 << 62) + 5);
}

#[test]
fn a_weight_of_nothing_counts_as_one() {
    let (order, places) = two([0, 0], [0, 0]);
    assert_eq!((order.weight, places[0].weight), (2, 1));
    let (mut order, mut places) = two([300, 0], [100, 200]);
    rule::fair_reweigh(&mut order, &mut places[0], 0);
    assert_eq!((places[0].weight, order.weight), (1, 201));
    assert_eq!(places[0].vtime, CLOCK + 100 + 200 * 100, "a lead of 200 by a hundredth of the weight");
    assert_eq!(order.clock, CLOCK + 100);
    let (mut order, mut charged) = (order, place(CLOCK, 0));
    rule::fair_charge(&mut order, &mut charged, 3);
    assert_eq!(charged.vtime, CLOCK + 3 * u64::from(WEIGHT));
    assert_eq!(rule::fair_load(0), (u64::from(FAIR_ROOM_WEIGHT) << FAIR_ROOM_SHIFT) - u64::from(FAIR_ROOM_WEIGHT));
    assert_eq!(rule::fair_portion(0, 1, 1, 1), 1);
}

#[test]
fn the_clock_stays_the_mean_when_a_weight_goes() {
    let (mut order, mut places) = two([0, 99], [99, 1]);
    assert_eq!(order.clock, CLOCK, "of 99 / 100 nothing");
    rule::fair_reweigh(&mut order, &mut places[0], 1);
    assert_eq!(order.clock, CLOCK + 49);
}

#[test]
fn leads_are_bounded_both_ways() {
    let clock = order(u64::from(WEIGHT));
    for (off, expected) in [(MOST + 1, MOST), (MOST, MOST), (5, 5), (-5, -5), (-MOST, -MOST), (-MOST - 1, -MOST)] {
        assert_eq!(rule::fair_lead(&clock, &place(CLOCK.wrapping_add_signed(off), 1)), expected);
    }
    let above = |lead, sum, weight| rule::fair_lead_above(lead, &order(sum), weight);
    assert_eq!((above(7, 3, 2), above(-7, 3, 2), above(0, 3, 2)), (10, -10, 0), "towards 0");
    assert_eq!((above(MOST + 1, 1, 1), above(-MOST - 1, 1, 1)), (MOST, -MOST));
    assert_eq!((above(MOST, 2, 1), above(-MOST, 2, 1)), (MOST, -MOST));
    assert_eq!(above(2 * MOST, 1, 2), MOST / 2, "bounded before it is scaled");
    let sum = u64::from(FAIR_SUM_MAX);
    assert_eq!(above(3, 8 * sum, sum), 3, "a sum of weights beyond counts as the most");
    assert_eq!(above(5, 3, 0), 0, "among none nobody leads");
}

#[test]
fn where_one_begins_has_two_bounds() {
    let begins = |sum, lead, lag, credit, slice| {
        rule::fair_place(&order(sum), lead, lag, WEIGHT, credit, slice).wrapping_sub(CLOCK) as i64
    };
    let (sum, far, slices) = (u64::from(WEIGHT), MOST, i64::from(FAIR_LAG_SLICES));
    let ms = MS as i64;
    assert_eq!(begins(sum, -far, 0, 20 * MS, 5 * MS), -20 * ms, "a credit");
    assert_eq!(begins(sum, -3, 0, 20 * MS, 5 * MS), -3);
    assert_eq!(begins(sum, -far, far, 20 * MS, 5 * MS), -slices * 5 * ms, "of a lag, slices");
    assert_eq!(begins(sum, -far, far, 5 * MS, 20 * MS), -slices * 5 * ms, "of a small credit, as many of these");
    assert_eq!(begins(sum, -far, 30 * ms, 20 * MS, 5 * MS), -30 * ms);
    assert_eq!(begins(sum, -far, -far, 20 * MS, 5 * MS), -20 * ms, "a debt is no lag");
    assert_eq!((begins(sum, -5, 0, 0, MS), begins(sum, -5, 1000, 0, MS)), (0, 0), "without a credit, the clock");
    assert_eq!(
        begins(sum, far, 0, 0, 20 * MS),
        i64::from(FAIR_WAIT_NS) / 2 + 20 * ms,
        "of a debt, what two make up for"
    );
    assert_eq!(begins(1 << 62, 5, 0, 0, 0), 0, "among so many nothing is made up for");
}

#[test]
fn a_debt_and_a_credit_are_cut_to_the_ns() {
    let most = i64::from(FAIR_WAIT_NS) / 3 + i64::from(FAIR_LEAST_SLICE_NS);
    for (lead, forgives, expected) in [(1, false, most), (1, true, 0), (0, false, most), (-1, false, most - 1)] {
        // What is bounded is in the order, and moves its clock by half of what it moves.
        let mut order = order(2 * u64::from(WEIGHT));
        let mut place = place(CLOCK.wrapping_add_signed(most + lead), u64::from(WEIGHT));
        rule::fair_bound(&mut order, &mut place, forgives);
        assert_eq!(place.vtime.wrapping_sub(CLOCK) as i64, expected, "{lead} ns too far");
        let moved = expected - most - lead;
        assert_eq!(order.clock.wrapping_sub(CLOCK) as i64, moved / 2);
    }
    for (behind, expected) in [(101, -100), (100, -100), (99, -99)] {
        let (mut order, mut place) = (order(u64::from(WEIGHT)), place(CLOCK - behind, u64::from(WEIGHT)));
        rule::fair_bound_credit(&mut order, &mut place, 100);
        assert_eq!(place.vtime.wrapping_sub(CLOCK) as i64, expected, "{behind} ns behind");
        assert_eq!(order.clock.wrapping_sub(CLOCK), behind.wrapping_add_signed(expected));
    }
}

#[test]
fn a_presence_is_forgotten_by_halves_and_in_the_end_for_good() {
    let half_ns = u64::from(FAIR_PRESENCE_NS);
    for (passed_ns, expected) in [
        (0, 1 << 36),
        (half_ns, 1 << 35),
        (half_ns * 3 / 2, (1 << 35) * 2 / 3),
        (31 * half_ns, 1 << 5),
        (32 * half_ns, 0),
        (64 * half_ns, 0),
    ] {
        let mut presence = cosched_presence { mean: 1 << 36, at_ns: 7 };
        rule::fair_note_presence(&mut presence, 0, 7 + passed_ns);
        assert_eq!((presence.mean, presence.at_ns), (expected, 7 + passed_ns), "after {passed_ns} ns");
        let mut presence = cosched_presence { mean: 0, at_ns: 7 };
        rule::fair_note_presence(&mut presence, 1 << (36 - FAIR_MEAN_SHIFT), 7 + passed_ns);
        assert_eq!(presence.mean, (1 << 36) - expected, "of one that comes, after {passed_ns} ns");
    }
    let mut held = cosched_presence { mean: 3 << FAIR_MEAN_SHIFT, at_ns: 7 };
    rule::fair_hold_presence(&mut held, 2, 9);
    assert_eq!(held.mean, 3 << FAIR_MEAN_SHIFT, "more than the last that left");
    rule::fair_note_presence(&mut held, 0, 8);
    assert_eq!((held.mean, held.at_ns), (3 << FAIR_MEAN_SHIFT, 8));
}

#[test]
fn a_portion_is_what_runs_here_of_all() {
    for (here, mean, all, expected) in [
        (1, 3, 4, 75),
        (3, 1, 4, 50),
        (3, 0, 1, 75),
        (3, 2, 1, 100),
        (1, 1, 0, 100),
        (0, 0, 0, 100),
        (1, 1, 1000, 1),
        (0, 0, 4, 1),
    ] {
        assert_eq!(rule::fair_portion(100, here, mean, all), expected, "{here} here, {mean} of late, {all} in all");
    }
    for (was, portion, differs) in
        [(640, 650, false), (640, 651, true), (640, 629, true), (640, 630, false), (6300, 6399, true)]
    {
        assert_eq!(rule::fair_portion_differs(was, portion), differs, "{was} and {portion}");
    }
}

#[test]
fn a_slice_is_a_share_of_the_round_within_two_bounds() {
    let (round, least) = (u64::from(FAIR_ROUND_NS), u64::from(FAIR_LEAST_SLICE_NS));
    let slice = |slice_ns, effective: u64, sum| rule::fair_slice(slice_ns, effective << FAIR_WEIGHT_SHIFT, sum);
    assert_eq!(slice(2 * round, 1, 1), round, "alone, the whole round");
    assert_eq!(slice(2 * round, 2, 1), round);
    assert_eq!(slice(round, 1, 4), round / 4);
    assert_eq!((slice(round / 4, 1, 4), slice(round / 4 - 1, 1, 4)), (round / 4, round / 4 - 1));
    assert_eq!((slice(round, 1, 2001), slice(round, 1, 1999)), (least, round / 64 * 64 / 1999));
    assert_eq!(slice(round, 0, 0), round, "among none");
}

#[test]
fn a_credit_shrinks_by_the_square_of_the_crowd() {
    let policy = |gate| cosched_policy { slice_ns: 20 * MS, gate, ..NOTHING };
    let credit = |gate, others, awaited| rule::fair_credit(&policy(gate), others, awaited);
    let (always, auto, few) = (ALWAYS, AUTO, FAIR_FEW);
    assert_eq!((credit(always, 0, false), credit(always, few - 1, false)), (20 * MS, 20 * MS));
    let many = u64::from(few + 1);
    assert_eq!(credit(always, few, false), 20 * MS * u64::from(few * few) / (many * many));
    let most = u64::from(FAIR_MANY);
    assert_eq!(credit(always, FAIR_MANY - 1, false), 20 * MS * u64::from(few * few) / (most * most));
    assert_eq!(credit(always, u32::MAX, false), credit(always, FAIR_MANY, false), "no count wraps");
    let windows = u64::from(COSCHED_WINDOW_CREDIT);
    assert_eq!((credit(auto, 0, true), credit(auto, 0, false)), (20 * MS * windows, 20 * MS));
    assert_eq!(credit(always, 0, true), 20 * MS);
}

#[test]
fn who_preempts_is_ahead_by_more_than_the_margin() {
    let (margin, sum) = (FAIR_WAKE_MARGIN_NS as i64, u64::from(WEIGHT));
    assert_eq!(rule::fair_lead_ns(10, 2 * sum, 1), 20);
    assert_eq!(rule::fair_lead_ns(10, 2 * sum, 2), 10);
    assert_eq!(rule::fair_lead_ns(10, sum, 0), 10, "among none, as among one");
    assert!(!rule::fair_preempts(margin, sum, 1) && rule::fair_preempts(margin + 1, sum, 1));
    let moment = u64::from(FAIR_SYNC_NS);
    assert!(!rule::fair_has_had_time(moment - 1) && rule::fair_has_had_time(moment));
    let least = u64::from(FAIR_LEAST_SLICE_NS);
    assert!(!rule::fair_has_rest(20 * MS, 0) && rule::fair_has_rest(20 * MS, 1));
    assert!(rule::fair_has_rest(20 * MS, 20 * MS - least) && !rule::fair_has_rest(20 * MS, 20 * MS - least + 1));
}
