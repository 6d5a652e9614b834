// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a wait spins for the time that the papers derive from a message's costs and, under the adaptive rules, from
//! the waits that the task itself and its peers have seen.

use cosched_rules::intf::{
    cosched_spin_COSCHED_NR_SPINS as NR_SPINS, cosched_spin_COSCHED_SPIN_ADAPTIVE_GLOBAL as GLOBAL,
    cosched_spin_COSCHED_SPIN_ADAPTIVE_LOCAL as LOCAL, cosched_spin_COSCHED_SPIN_BASELINE as BASELINE,
    cosched_spin_COSCHED_SPIN_CONDITIONAL as CONDITIONAL, cosched_spin_COSCHED_SPIN_FIXED as FIXED,
    cosched_spin_COSCHED_SPIN_IMMEDIATE as IMMEDIATE,
};
use cosched_rules::native::{spin_goes_on, spin_hear, spin_learn, spin_ns};
use proptest::prelude::*;
use rules::{COSCHED_WAIT_SAMPLES, NEW, POLICY, US, any_u64, cosched_policy, cosched_wait_history};

#[path = "common/rules.rs"]
mod rules;

const SAMPLES: usize = COSCHED_WAIT_SAMPLES as usize;

/// L, o and W in us.
fn policy(spin: u32, latency: u64, overhead: u64, switch: u64) -> cosched_policy {
    let (latency_ns, overhead_ns, switch_ns) = (latency * US, overhead * US, switch * US);
    cosched_policy { spin, spin_ns: 77 * US, latency_ns, overhead_ns, switch_ns, ..POLICY }
}

/// The costs of Dusseau 3.2: L = 10 us and W = 200 us.
fn dusseau(spin: u32) -> cosched_policy {
    policy(spin, 10, 0, 200)
}

/// What waits of these lengths, in us, have taught.
fn taught(waits_us: impl IntoIterator<Item = u64>) -> cosched_wait_history {
    let mut history = NEW;
    for wait_us in waits_us {
        spin_learn(&dusseau(LOCAL), &mut history, wait_us * US);
    }
    history
}

/// The spin in us, of a task that is taught so.
fn spin_us(policy: &cosched_policy, history: &cosched_wait_history) -> u64 {
    spin_ns(policy, history) / US
}

#[test]
fn baseline_is_a_message_there_and_back_and_a_switch() {
    // Arpaci-Dusseau 3.3: 2L + 2o + W, all in us. The first two are the costs of their section 5.
    for (latency, overhead, switch, expected) in
        [(10, 0, 50, 70), (10, 0, 200, 220), (20, 5, 10, 60), (0, 0, 10, 10), (7, 3, 10, 30), (0, 0, 0, 0)]
    {
        for spin in [BASELINE, CONDITIONAL, LOCAL, GLOBAL] {
            let policy = policy(spin, latency, overhead, switch);
            assert_eq!(spin_us(&policy, &NEW), expected, "L {latency} o {overhead} W {switch} rule {spin}");
        }
    }
}

#[test]
fn the_other_times_are_nothing_and_what_was_chosen() {
    let history = taught([500; SAMPLES]);
    for (spin, expected) in [(IMMEDIATE, 0), (FIXED, 77), (NR_SPINS, 0), (17, 0)] {
        assert_eq!(spin_us(&dusseau(spin), &history), expected, "rule {spin}");
    }
}

#[test]
fn conditional_goes_on_while_messages_come_often_enough() {
    // Arpaci-Dusseau 3.4: 3W + 2o, all in us, and how long ago the last message came.
    for (overhead, switch, since, expected) in [
        (0, 50, 149, true),
        (0, 50, 150, false),
        (0, 200, 599, true),
        (0, 200, 600, false),
        (5, 10, 39, true),
        (5, 10, 40, false),
        (0, 0, 0, false),
    ] {
        for spin in 0..=NR_SPINS {
            let goes_on = spin_goes_on(&policy(spin, 1000, overhead, switch), since * US);
            assert_eq!(goes_on, expected && spin == CONDITIONAL, "o {overhead} W {switch} since {since} rule {spin}");
        }
    }
}

#[test]
fn adaptive_outlasts_the_imbalance_until_blocking_pays() {
    // Dusseau 6.1: v + the round trip up to 10 W = 2000 us, beyond it the baseline, 220 us. All in us.
    for (imbalance, expected) in
        [(0, 220), (100, 220), (200, 220), (201, 221), (450, 470), (1500, 1520), (2000, 2020), (2001, 220), (9000, 220)]
    {
        let history = taught([imbalance; SAMPLES]);
        assert_eq!(spin_us(&dusseau(LOCAL), &history), expected, "v {imbalance}");
    }
    // With an overhead: v + 2L + 4o.
    assert_eq!(spin_us(&policy(LOCAL, 10, 3, 200), &taught([500; SAMPLES])), 532);
}

#[test]
fn the_worst_tenth_of_the_waits_was_for_peers_that_did_not_run() {
    // Dusseau 6.2, waits in us; the imbalance is what they leave as the longest.
    let with = |longest: &[u64], nr: usize| -> Vec<u64> {
        longest.iter().copied().chain(std::iter::repeat(300)).take(nr).collect()
    };
    for (waits, imbalance) in [
        (vec![], 0),
        (vec![700], 700),
        // Of fewer than ten none is dropped, of ten one, of twenty two.
        (with(&[900], 9), 900),
        (with(&[900], 10), 300),
        (with(&[900, 800], 10), 800),
        (with(&[900, 800], 19), 800),
        (with(&[900, 800], 20), 300),
        (with(&[900, 800, 700], 20), 700),
        // Of equals no more are dropped than a tenth.
        (with(&[900, 900, 900], 20), 900),
        (with(&[900, 700, 700], 20), 700),
        (vec![300; 20], 300),
    ] {
        assert_eq!(spin_us(&dusseau(LOCAL), &taught(waits.iter().copied())), (imbalance + 20).max(220), "{waits:?}");
    }
}

#[test]
fn waits_of_no_time_make_no_imbalance() {
    for nr in 1..=2 * SAMPLES {
        assert_eq!(taught(std::iter::repeat_n(0, nr)).estimate_us, 0, "{nr} waits");
        // A single longer wait counts, until there are ten waits and the worst tenth is dropped.
        let one = taught([900].into_iter().chain(std::iter::repeat_n(0, nr - 1))).estimate_us;
        assert_eq!(one, if nr < 10 { 900 } else { 0 }, "{nr} waits");
    }
}

#[test]
fn a_count_of_waits_that_is_full_begins_again_with_all_samples() {
    for (before, after) in [(u32::MAX - 1, u32::MAX), (u32::MAX, COSCHED_WAIT_SAMPLES)] {
        let mut history = cosched_wait_history { nr_waits: before, ..taught([500; SAMPLES]) };
        spin_learn(&dusseau(LOCAL), &mut history, 500 * US);
        assert_eq!((history.nr_waits, history.estimate_us), (after, 500));
    }
}

#[test]
fn a_wait_is_kept_to_the_us_or_is_the_longest_that_fits() {
    const MAX: u64 = u32::MAX as u64;
    for (waited_ns, kept) in
        [(999, 0), (1000, 1), ((MAX - 1) * US, MAX - 1), (MAX * US, MAX), ((MAX + 1) * US, MAX), (u64::MAX, MAX)]
    {
        let mut history = NEW;
        spin_learn(&dusseau(LOCAL), &mut history, waited_ns);
        assert_eq!(u64::from(history.waits_us[0]), kept, "{waited_ns}");
    }
}

#[test]
fn global_takes_the_longest_that_it_hears_until_that_wears_off() {
    let mut history = taught([300; SAMPLES]);
    assert_eq!(spin_us(&dusseau(GLOBAL), &history), 320);
    spin_hear(&mut history, 250);
    assert_eq!(spin_us(&dusseau(GLOBAL), &history), 320);
    spin_hear(&mut history, 800);
    assert_eq!((spin_us(&dusseau(GLOBAL), &history), spin_us(&dusseau(LOCAL), &history)), (820, 320));
    // A message from a peer that knows of no imbalance lets go of an eighth.
    spin_hear(&mut history, 0);
    assert_eq!(spin_us(&dusseau(GLOBAL), &history), 720);
    for _ in 0..10 {
        spin_hear(&mut history, 0);
    }
    assert_eq!(spin_us(&dusseau(GLOBAL), &history), 320);
}

#[test]
fn only_the_adaptive_rules_learn() {
    for spin in 0..=NR_SPINS {
        let mut history = NEW;
        spin_learn(&dusseau(spin), &mut history, 500 * US);
        assert_eq!(history.nr_waits, u32::from([LOCAL, GLOBAL].contains(&spin)), "rule {spin}");
    }
}

#[test]
fn old_waits_make_place_for_new_ones() {
    // Whenever a phase of the program ends, twice as many waits later nothing is left of it.
    for first in 0..500 {
        let mut history = taught(std::iter::repeat_n(1_500, SAMPLES + first));
        for _ in 0..2 * SAMPLES {
            spin_learn(&dusseau(LOCAL), &mut history, 400 * US);
        }
        assert_eq!(history.waits_us, [400; SAMPLES], "after {first}");
    }
}

prop_compose! {
    fn any_costs()(
        spin in 0..=NR_SPINS, spin_ns in any_u64(), latency_ns in any_u64(), overhead_ns in any_u64(),
        switch_ns in any_u64(),
    ) -> cosched_policy {
        cosched_policy { spin, spin_ns, latency_ns, overhead_ns, switch_ns, ..POLICY }
    }
}

prop_compose! {
    fn any_history()(
        waits_us in prop::array::uniform20(prop_oneof![any::<u32>(), 0..10u32, 0..3_000u32]),
        nr_waits in prop_oneof![0..40u32, any::<u32>()], estimate_us in prop_oneof![any::<u32>(), 0..3_000u32],
        heard_us in prop_oneof![any::<u32>(), 0..3_000u32],
    ) -> cosched_wait_history {
        cosched_wait_history { waits_us, nr_waits, estimate_us, heard_us, ..NEW }
    }
}

/// The imbalance by its definition, in us: sort the waits, drop a tenth.
fn imbalance_us(history: &cosched_wait_history) -> u32 {
    let nr = SAMPLES.min(history.nr_waits as usize);
    let mut waits = history.waits_us[..nr].to_vec();
    waits.sort_unstable_by(|a, b| b.cmp(a));
    waits.get(nr / 10).copied().unwrap_or(0)
}

/// The time by its definition, in numbers so wide that nothing saturates until the end.
fn by_definition(policy: &cosched_policy, history: &cosched_wait_history) -> u64 {
    let [latency, overhead, switch] = [policy.latency_ns, policy.overhead_ns, policy.switch_ns].map(u128::from);
    let baseline = 2 * latency + 2 * overhead + switch;
    let adaptive = |imbalance_us: u32| {
        let imbalance = u128::from(imbalance_us) * 1000;
        if imbalance <= 10 * switch { baseline.max(imbalance + 2 * latency + 4 * overhead) } else { baseline }
    };
    let spin = match policy.spin {
        FIXED => u128::from(policy.spin_ns),
        BASELINE | CONDITIONAL => baseline,
        LOCAL => adaptive(history.estimate_us),
        GLOBAL => adaptive(history.estimate_us.max(history.heard_us)),
        _ => 0,
    };
    u64::try_from(spin).unwrap_or(u64::MAX)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_time_is_its_definition_or_as_long_as_can_be(policy in any_costs(), history in any_history()) {
        prop_assert_eq!(spin_ns(&policy, &history), by_definition(&policy, &history));
    }

    #[test]
    fn adaptive_is_never_shorter_than_the_baseline(policy in any_costs(), history in any_history()) {
        let baseline = spin_ns(&cosched_policy { spin: BASELINE, ..policy }, &history);
        for spin in [LOCAL, GLOBAL] {
            let adaptive = cosched_policy { spin, ..policy };
            prop_assert!(spin_ns(&adaptive, &history) >= baseline);
        }
    }

    #[test]
    fn messages_that_come_more_often_never_end_a_spin(
        policy in any_costs(), since in any_u64(), sooner in any_u64(),
    ) {
        prop_assert!(!spin_goes_on(&policy, since) || spin_goes_on(&policy, since.saturating_sub(sooner)));
    }

    #[test]
    fn whatever_is_learned_and_heard_stays_in_its_place(
        history in any_history(), waited_ns in any_u64(), estimate_us in any::<u32>(), spin in LOCAL..NR_SPINS,
    ) {
        let mut after = history;
        spin_learn(&dusseau(spin), &mut after, waited_ns);
        let wait_us = u32::try_from(waited_ns / US).unwrap_or(u32::MAX);
        let changed: Vec<usize> = (0..SAMPLES).filter(|&i| after.waits_us[i] != history.waits_us[i]).collect();
        prop_assert!(changed.len() <= 1 && changed.iter().all(|&i| after.waits_us[i] == wait_us));
        prop_assert!(after.waits_us.contains(&wait_us) && after.nr_waits > 0);
        prop_assert_eq!(after.estimate_us, imbalance_us(&after));
        spin_hear(&mut after, estimate_us);
        prop_assert!(after.heard_us >= estimate_us && after.heard_us <= estimate_us.max(history.heard_us));
        prop_assert_eq!((after.skips, after.skips_left), (history.skips, history.skips_left));
    }
}
