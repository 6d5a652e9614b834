// SPDX-License-Identifier: GPL-2.0-only
//! Claim: what tasks are due and have borrowed (`policies/account.h`) is counted to the ns.

use cosched_rules::intf::{
    ACCOUNT_MAX_BOOSTED, ACCOUNT_URGENT_NS, COSCHED_SCALE_SHIFT, FAIR_WAIT_NS, FAIR_WEIGHT_DEFAULT, FAIR_WEIGHT_SHIFT,
    cosched_loan, cosched_share_clock,
};
use cosched_rules::native as rule;
use cosched_sim::policy::NOTHING;
use rules::{MS, cosched_policy};

#[path = "common/rules.rs"]
mod rules;

const SUM: u64 = FAIR_WEIGHT_DEFAULT as u64;
const POLICY: cosched_policy = cosched_policy { slice_ns: 20 * MS, ..NOTHING };
const NOBODY: cosched_loan = cosched_loan { ahead_ns: 0, starving: 0, reserved: 0 };

#[test]
fn the_share_clock_goes_on_among_somebody_and_never_back() {
    for (sum, now_ns, expected) in
        [(SUM, 101, 51), (2 * SUM, 104, 52), (SUM, 100, 50), (SUM, 99, 50), (0, 200, 50), (0, 99, 50)]
    {
        let mut clock = cosched_share_clock { ns: 50, at_ns: 100 };
        rule::account_advance(&mut clock, sum, now_ns);
        assert_eq!((clock.ns, clock.at_ns), (expected, now_ns), "among {sum}, at {now_ns}");
    }
}

#[test]
fn what_others_have_had_is_on_the_share_clock_of_nobody() {
    for (skipped_ns, now_ns, expected) in
        [(0, 150, 100), (20, 150, 80), (50, 150, 50), (51, 150, 50), (20, 90, 50), (1, 101, 50)]
    {
        let mut clock = cosched_share_clock { ns: 50, at_ns: 100 };
        rule::account_skip(&mut clock, skipped_ns, now_ns);
        rule::account_advance(&mut clock, SUM, now_ns);
        assert_eq!((clock.ns, clock.at_ns), (expected, now_ns), "{skipped_ns} ns skipped, at {now_ns}");
    }
    let mut clock = cosched_share_clock { ns: 50, at_ns: 100 };
    rule::account_skip(&mut clock, u64::MAX, 150);
    assert_eq!((clock.ns, clock.at_ns), (50, 150), "of a CPU where no task has run so far");
}

#[test]
fn who_awaits_a_message_is_due_what_it_would_have_had_beside_the_others() {
    let effective = SUM << FAIR_WEIGHT_SHIFT;
    assert_eq!(rule::account_share(1000, effective), 1000);
    assert_eq!(rule::account_share(1000, effective / 4), 250);
    assert_eq!(rule::account_awaited(1000, effective, SUM, 2 * SUM), 500, "beside an equal");
    assert_eq!(rule::account_awaited(1000, effective, 3 * SUM, 4 * SUM), 750);
    assert_eq!(rule::account_awaited(1000, effective / 4, SUM, SUM), 250, "its cgroup was there without it");
    assert_eq!(rule::account_awaited(1000, effective, 0, SUM), 0, "beside nobody the clock stands still");
    assert_eq!(rule::account_awaited(1000, 0, 0, 0), 0);

    // Ten hours of sleep, of a task of the greatest weight, beside an equal one and beside a thousand.
    let (slept_ns, heaviest) = (36_000 * 1_000_000_000, 100 * SUM);
    for others in [heaviest, 1000 * heaviest] {
        let alone = u128::from(slept_ns) * u128::from(heaviest) / u128::from(SUM);
        let wanted = alone * u128::from(others) / u128::from(others + heaviest);
        let got = u128::from(rule::account_awaited(slept_ns, heaviest << FAIR_WEIGHT_SHIFT, others, others + heaviest));
        assert!(wanted.abs_diff(got) < wanted / 1_000_000, "{got} ns instead of {wanted}");
    }
}

#[test]
fn boosts_end_when_they_are_so_many_slices_ahead() {
    let most_ns = u64::from(ACCOUNT_MAX_BOOSTED) * POLICY.slice_ns;
    let mut loan = NOBODY;
    rule::account_loan(&mut loan, &POLICY, true, most_ns - 1);
    assert_eq!((loan.ahead_ns, loan.starving), (most_ns - 1, 0));
    rule::account_loan(&mut loan, &POLICY, true, 1);
    assert_eq!((loan.ahead_ns, loan.starving), (most_ns, 1));
    rule::account_loan(&mut loan, &POLICY, false, POLICY.slice_ns - 1);
    assert_eq!((loan.ahead_ns, loan.starving), (u64::from(ACCOUNT_MAX_BOOSTED), 1), "a turn repays eight times");
    rule::account_loan(&mut loan, &POLICY, false, 2);
    assert_eq!((loan.ahead_ns, loan.starving), (0, 0), "and no more than there is");
}

#[test]
fn of_what_kernel_threads_had_most_is_forgiven() {
    let budget_ns = u64::from(ACCOUNT_URGENT_NS);
    for (ran_ns, ahead_ns, starving) in [
        (budget_ns - 1, budget_ns - 1, 0),
        (budget_ns, budget_ns, 1),
        (budget_ns * 3 / 2, budget_ns * 3 / 2, 1),
        (2 * budget_ns, 2 * budget_ns, 1),
        (2 * budget_ns + 1, 2 * budget_ns, 1),
        (100 * budget_ns, 2 * budget_ns, 1),
    ] {
        let mut loan = NOBODY;
        rule::account_urgent(&mut loan, true, ran_ns);
        assert_eq!((loan.ahead_ns, loan.starving), (ahead_ns, starving), "after {ran_ns} ns");
    }
    let mut loan = cosched_loan { ahead_ns: 2 * budget_ns, starving: 1, reserved: 0 };
    rule::account_urgent(&mut loan, false, budget_ns - 1);
    assert_eq!((loan.ahead_ns, loan.starving), (2, 1), "a user's task repays twice");
    rule::account_urgent(&mut loan, false, 1);
    assert_eq!((loan.ahead_ns, loan.starving), (0, 0));
}

#[test]
fn a_gate_is_told_how_the_receiver_and_the_others_stand() {
    let described = |lead, weight: u64, nr, counts| {
        let mut demand = rule::IDLE_DEMAND;
        rule::account_describe(&mut demand, lead, weight << FAIR_WEIGHT_SHIFT, SUM, nr, counts);
        demand
    };
    let demand = described(1200, SUM / 4, 2, true);
    assert_eq!((demand.receiver_ran_ns, demand.running_ran_ns), (600, -200), "the others have three quarters");
    assert_eq!((demand.nr_runnable, demand.max_lead_ns), (2, u64::from(FAIR_WAIT_NS) / 2));
    assert_eq!(demand.scale, (2 << COSCHED_SCALE_SHIFT) / 4, "a quarter of two");
    let far = 1 << 30;
    assert_eq!(described(far, SUM / 4, 2, false).running_ran_ns, 0, "it is not among them");
    assert_eq!(described(far, SUM, 1, true).running_ran_ns, 0, "there are no others");
    assert_eq!(described(far, 2 * SUM, 1, true).running_ran_ns, 0);
    assert_eq!(described(far, SUM / 4, 0, false).max_lead_ns, u64::from(FAIR_WAIT_NS));
}
