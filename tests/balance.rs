// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the load of a CPU follows the number of its tasks and forgets what comes and goes, and a busy CPU takes a task from
//! one that has had one more for a while, and from no other.

use proptest::prelude::*;
use scx_cosched::native::{self, load_next, move_pays};

/// A task, as loads count.
const TASK: u32 = 1 << 10;

/// Of two CPUs that share their memory.
fn load_differs(here: u32, there: u32) -> bool {
    native::load_differs(here, there, false)
}

fn after(load: u32, ticks: u32, nr: u32) -> u32 {
    (0..ticks).fold(load, |load, _| load_next(load, nr))
}

#[test]
fn a_load_is_the_number_of_tasks_after_a_while() {
    for nr in [0, 1, 2, 3, 7, 100, 5000] {
        for start in [0, TASK, 9 * TASK, 6000 * TASK] {
            let load = after(start, 1000, nr);
            assert!(load.abs_diff(nr * TASK) < 32, "{nr} tasks, from {start}: {load}");
        }
    }
}

#[test]
fn a_load_loses_a_thirty_second_of_itself_at_each_tick() {
    assert_eq!(load_next(32 * TASK, 0), 31 * TASK);
    assert_eq!(load_next(0, 32), TASK);
}

#[test]
fn one_task_more_is_noticed_within_a_second_and_not_within_a_tenth() {
    // Ticks of 4 ms: two CPUs with one and two tasks, one of which changes sides.
    let differ = (1..=250).find(|&ticks| load_differs(after(2 * TASK, ticks, 1), after(TASK, ticks, 2)));
    assert!(matches!(differ, Some(25..)), "{differ:?}");
}

#[test]
fn who_sleeps_now_and_then_makes_no_difference() {
    // Two CPUs with three tasks each, of which one sleeps half of the time, on one CPU when it does not on the other.
    let (mut here, mut there) = (3 * TASK, 3 * TASK);
    for tick in 0..10_000u32 {
        let asleep = tick / 5 % 2;
        (here, there) = (load_next(here, 3 - asleep), load_next(there, 2 + asleep));
        assert!(!load_differs(here, there) && !load_differs(there, here), "at tick {tick}: {here}, {there}");
    }
}

#[test]
fn a_cpu_that_is_far_has_to_have_one_task_more() {
    for here in [0, TASK, 5 * TASK] {
        assert!(native::load_differs(here, here + TASK * 3 / 4, false));
        assert!(!native::load_differs(here, here + TASK * 3 / 4 - 1, false));
        assert!(native::load_differs(here, here + TASK * 7 / 4, true));
        assert!(!native::load_differs(here, here + TASK * 7 / 4 - 1, true));
    }
}

#[test]
fn a_task_moves_if_it_loses_no_more_than_a_sixteenth_of_its_share() {
    for (here, there, pays) in [
        (1600, 1600, true),
        (1500, 1600, true),
        (1499, 1600, false),
        (2000, 1600, true),
        (0, 1600, false),
        (0, 0, true),
        // Of less than sixteen there is no sixteenth.
        (14, 15, false),
        (15, 16, true),
        (u64::MAX, u64::MAX, true),
        (0, u64::MAX, false),
    ] {
        assert_eq!(move_pays(here, there), pays, "{here} for {there}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_load_stays_between_what_it_was_and_what_there_is(load in 0..=u32::MAX / 2, nr: u32) {
        let now = nr.min(1 << 20) << 10;
        let next = load_next(load, nr);
        prop_assert!(next >= load.min(now).saturating_sub(1) && next <= load.max(now) + 1, "{load} and {now}: {next}");
    }

    #[test]
    fn nobody_takes_from_one_who_takes_from_him(here in 0..=u32::MAX / 2, there in 0..=u32::MAX / 2) {
        prop_assert!(!(load_differs(here, there) && load_differs(there, here)));
    }
}
