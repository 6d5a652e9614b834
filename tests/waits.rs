// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a receive spins for as long as the policy says, and one that spins in vain does so ever more seldom, so that
//! whoever has to wait for long pays next to nothing for it.

use cosched_rules::intf::cosched_spin_COSCHED_SPIN_FIXED as FIXED;
use cosched_rules::native;
use proptest::prelude::*;
use rules::{BUSY, NEW, POLICY, SPIN, SPIN_BLOCK, SPIN_YIELD, cosched_policy, cosched_wait_history};

#[path = "common/rules.rs"]
mod rules;

const SPIN_NS: u64 = 200_000;
const SPINNERS: [u32; 3] = [SPIN, SPIN_BLOCK, SPIN_YIELD];

fn policy(wait: u32) -> cosched_policy {
    cosched_policy { wait, spin: FIXED, spin_ns: SPIN_NS, ..POLICY }
}

/// One wait, at whose end the message has come or not. Has it spun?
fn wait(history: &mut cosched_wait_history, came: bool) -> bool {
    let policy = policy(SPIN);
    let spins = native::wait_begin(&policy, history) > 0;
    if spins {
        native::wait_end(&policy, history, came);
    }
    spins
}

/// How many waits sleep at once before one spins again.
fn skipped(history: &mut cosched_wait_history) -> usize {
    (0..).take_while(|_| !wait(history, false)).count()
}

#[test]
fn without_a_rule_and_under_one_that_nobody_knows_nothing_spins() {
    for rule in [BUSY, 17] {
        let mut history = NEW;
        assert_eq!(native::wait_begin(&policy(rule), &mut history), 0);
        native::wait_end(&policy(rule), &mut history, false);
        assert_eq!((history.skips, history.skips_left), (0, 0));
    }
}

#[test]
fn a_task_that_was_never_seen_to_wait_spins_under_every_rule_that_spins() {
    for rule in SPINNERS {
        assert_eq!(native::wait_begin(&policy(rule), &mut NEW.clone()), SPIN_NS);
        // For no time at all under the spin rule "immediate".
        assert_eq!(native::wait_begin(&cosched_policy { spin: 0, ..policy(rule) }, &mut NEW.clone()), 0);
    }
}

#[test]
fn who_polls_leaves_the_cpu_under_spin_block_and_spin_yield_alone() {
    for (rule, parks) in [(BUSY, false), (SPIN, false), (SPIN_BLOCK, true), (SPIN_YIELD, true), (17, false)] {
        assert_eq!(native::wait_parks(&policy(rule)), parks, "rule {rule}");
    }
}

#[test]
fn each_spin_in_vain_doubles_the_waits_until_the_next() {
    let mut history = NEW;
    assert!(wait(&mut history, false));
    let gaps: Vec<usize> = (0..10).map(|_| skipped(&mut history)).collect();
    assert_eq!(gaps, [1, 3, 7, 15, 31, 63, 63, 63, 63, 63]);
}

#[test]
fn any_number_of_skips_doubles_up_to_63_and_is_quartered_from_there() {
    for skips in (0..300).chain([u32::MAX - 1, u32::MAX]) {
        for (came, after) in [(false, skips.saturating_mul(2).saturating_add(1).min(63)), (true, skips.min(63) / 4)] {
            let mut history = cosched_wait_history { skips, ..NEW };
            native::wait_end(&policy(SPIN), &mut history, came);
            assert_eq!((history.skips, history.skips_left), (after, after), "{skips}, a message came: {came}");
        }
    }
}

#[test]
fn each_success_leaves_a_quarter_of_them() {
    let mut history = NEW;
    for _ in 0..1000 {
        wait(&mut history, false);
    }
    while !wait(&mut history, true) {}
    let gaps: Vec<usize> = (0..4).map(|_| (0..).take_while(|_| !wait(&mut history, true)).count()).collect();
    assert_eq!(gaps, [15, 3, 0, 0]);
}

/// How many of 10,000 waits spin, if `answered` of each ten spins have their message.
fn spins_of_10000(answered: usize) -> usize {
    let (mut history, mut spins) = (NEW, 0);
    for _ in 0..10_000 {
        // 7 goes through all remainders of 10.
        spins += usize::from(wait(&mut history, spins * 7 % 10 < answered));
    }
    spins
}

#[test]
fn spins_that_fail_too_often_are_hardly_tried() {
    assert!(spins_of_10000(2) < 1_000, "{}", spins_of_10000(2));
    assert!(spins_of_10000(8) > 5_000, "{}", spins_of_10000(8));
}

#[test]
fn a_pair_whose_peer_is_away_now_and_then_spins_nearly_always() {
    // 500 messages while both run, then one wait in vain until the peer is back: as at the end of each slice.
    let mut history = NEW;
    let spins = (0..100 * 501).filter(|n| wait(&mut history, n % 501 != 500)).count();
    assert!(spins >= 100 * 500, "{spins}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_spins_for_the_time_given_or_not_at_all(
        skips in any::<u32>(), skips_left in prop_oneof![Just(0), any::<u32>()], rule in 0..5u32,
        spin_ns in any::<u64>(), came in any::<bool>(),
    ) {
        let policy = cosched_policy { spin_ns, ..policy(rule) };
        let mut history = cosched_wait_history { skips, skips_left, ..NEW };
        let spins_ns = native::wait_begin(&policy, &mut history);
        let spins = SPINNERS.contains(&rule);
        prop_assert_eq!(spins_ns, if spins && skips_left == 0 { spin_ns } else { 0 });
        native::wait_end(&policy, &mut history, came);
        if spins {
            prop_assert!(history.skips <= 63 && history.skips_left == history.skips);
        } else {
            prop_assert_eq!((history.skips, history.skips_left), (skips, skips_left));
        }
    }

    #[test]
    fn who_waits_in_vain_spins_in_one_of_64_waits_in_the_long_run(waits in 0..20_000usize) {
        let mut history = NEW;
        let spins = (0..waits).filter(|_| wait(&mut history, false)).count();
        prop_assert!(spins <= 6 + 1 + waits / 64, "{spins} of {waits}");
    }
}
