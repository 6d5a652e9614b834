// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the periodic boost, and a task that yields, choose whom their rule says: round robin from the current task,
//! those with a message for the receive that they are in before those that are in none (Zhang 2.4.4).

use cosched_rules::intf::{
    cosched_choice_COSCHED_CHOICE_LONGEST_WAITING as LONGEST_WAITING,
    cosched_choice_COSCHED_CHOICE_MOST_PENDING as MOST_PENDING,
    cosched_choice_COSCHED_CHOICE_NEXT_PENDING as NEXT_PENDING,
    cosched_choice_COSCHED_CHOICE_ROUND_ROBIN as ROUND_ROBIN, cosched_choice_COSCHED_NR_CHOICES as NR_CHOICES,
};
use cosched_rules::native::{self, choice_prefers, choice_rank};
use proptest::prelude::*;
use rules::cosched_candidate;

#[path = "common/rules.rs"]
mod rules;

/// The place in `candidates` of the one that is chosen.
fn choose(choice: u32, candidates: &[cosched_candidate]) -> Option<usize> {
    native::choose(choice, candidates.iter().copied().enumerate())
}

/// (in a receive, messages, when the first of them came), in the order of their distances from 1 on.
fn candidates(tasks: &[(bool, u32, u64)]) -> Vec<cosched_candidate> {
    let candidate = |(i, &(receives, pending, arrival_ns)): (usize, &(bool, u32, u64))| cosched_candidate {
        distance: i as u32 + 1,
        receives: u32::from(receives),
        pending,
        reserved: 0,
        arrival_ns,
    };
    tasks.iter().enumerate().map(candidate).collect()
}

const WAITS: (bool, u32, u64) = (true, 0, 0);
const COMPUTES: (bool, u32, u64) = (false, 0, 0);

#[test]
fn round_robin_takes_the_first_with_its_message_and_else_the_first_outside_of_a_receive() {
    for (tasks, expected) in [
        (vec![], None),
        (vec![WAITS, WAITS], None),
        (vec![WAITS, (true, 1, 50), (true, 9, 10)], Some(1)),
        (vec![(true, 9, 10), (true, 1, 50)], Some(0)),
        // The first class before the second, wherever they are.
        (vec![COMPUTES, WAITS, (true, 1, 50)], Some(2)),
        (vec![WAITS, COMPUTES, COMPUTES], Some(1)),
        // A message that nobody is about to take makes nobody a receiver.
        (vec![(false, 5, 10), (true, 1, 50)], Some(1)),
        (vec![WAITS, COMPUTES, (false, 5, 10)], Some(1)),
    ] {
        assert_eq!(choose(ROUND_ROBIN, &candidates(&tasks)), expected, "{tasks:?}");
    }
}

#[test]
fn the_other_rules_look_at_messages_alone() {
    let nobody = [WAITS, COMPUTES];
    let tasks = [COMPUTES, (false, 2, 40), (true, 7, 30), (true, 7, 20), (true, 1, 10)];
    for (choice, expected) in [(NEXT_PENDING, 1), (MOST_PENDING, 2), (LONGEST_WAITING, 4)] {
        assert_eq!(choose(choice, &candidates(&nobody)), None, "choice {choice}");
        assert_eq!(choose(choice, &candidates(&tasks)), Some(expected), "choice {choice}");
    }
}

#[test]
fn equals_take_turns_after_the_running_task() {
    // Four tasks, each of which runs once: the one with the next number, going around, is chosen.
    let message = candidates(&[(true, 1, 5)])[0];
    for (choice, running) in (0..NR_CHOICES).flat_map(|choice| (0..4).map(move |running| (choice, running))) {
        let waiting: Vec<u32> = (0..4).filter(|number| *number != running).collect();
        let distance = |number: &u32| (number + 4 - running) % 4;
        let candidates: Vec<_> =
            waiting.iter().map(|number| cosched_candidate { distance: distance(number), ..message }).collect();
        let chosen = choose(choice, &candidates).expect("all have a message");
        assert_eq!(waiting[chosen], (running + 1) % 4, "choice {choice}");
    }
}

/// Few different values, so that candidates are often alike.
fn any_candidate() -> impl Strategy<Value = cosched_candidate> {
    let number = || prop_oneof![4 => 0..3u32, 1 => any::<u32>()];
    (number(), 0..2u32, number(), prop_oneof![4 => 0..3u64, 1 => any::<u64>()]).prop_map(
        |(distance, receives, pending, arrival_ns)| cosched_candidate {
            distance,
            receives,
            pending,
            reserved: 0,
            arrival_ns,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn to_prefer_is_a_strict_order(
        choice in 0..=NR_CHOICES, a in any_candidate(), b in any_candidate(), c in any_candidate(),
    ) {
        let prefers = |a, b| choice_prefers(choice, a, b);
        prop_assert!(!prefers(&a, &a));
        prop_assert!(!(prefers(&a, &b) && prefers(&b, &a)));
        prop_assert!(!(prefers(&a, &b) && prefers(&b, &c)) || prefers(&a, &c));
        // Two tasks have two numbers: one of them goes first.
        prop_assert!(a.distance == b.distance || prefers(&a, &b) || prefers(&b, &a));
    }

    #[test]
    fn the_choice_does_not_depend_on_the_order_of_the_queue(
        choice in 0..NR_CHOICES, tasks in prop::collection::vec((any::<bool>(), 0..3u32, 0..5u64), 0..10),
        seed in any::<u64>(),
    ) {
        let candidates = candidates(&tasks);
        let mut shuffled = candidates.clone();
        shuffled.sort_by_key(|c| u64::from(c.distance).wrapping_mul(seed | 1) >> 7);
        let distance = |of: &[cosched_candidate]| choose(choice, of).map(|i| of[i].distance);
        prop_assert_eq!(distance(&candidates), distance(&shuffled));
    }

    #[test]
    fn whoever_has_its_message_is_never_passed_over_for_one_that_has_none(
        choice in 0..NR_CHOICES, tasks in prop::collection::vec((any::<bool>(), 0..3u32, 0..5u64), 0..10),
    ) {
        let candidates = candidates(&tasks);
        let chosen = choose(choice, &candidates).map(|i| candidates[i]);
        if candidates.iter().any(|c| c.pending > 0 && c.receives > 0) {
            prop_assert!(chosen.is_some_and(|c| c.pending > 0 && (c.receives > 0 || choice != ROUND_ROBIN)));
        }
        prop_assert_eq!(chosen.is_some(), candidates.iter().any(|c| choice_rank(choice, c) > 0));
    }
}
