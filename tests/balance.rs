// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a busy CPU takes a task from a CPU that has had one task more for a while, and from no other.

use cosched_rules::intf::{COSCHED_WAITS_PARTS, FAIR_MEAN_SHIFT, FAIR_WEIGHT_DEFAULT};
use cosched_rules::native::{self, NEW_PRESENCE, move_pays};
use proptest::prelude::*;
use random::Random;

#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

/// A task of nice level 0.
const TASK: u32 = FAIR_WEIGHT_DEFAULT;
const TICK_NS: u64 = 4_000_000;

/// Of two CPUs that share their memory, for a task that waits.
fn load_differs(here: u64, there: u64) -> bool {
    native::load_differs(here, there, TASK, COSCHED_WAITS_PARTS, false)
}

/// The load of a CPU at each tick, on which so many tasks are runnable between that one and the one before.
fn loads(nr: impl Fn(u64) -> u64) -> impl Iterator<Item = u64> {
    let mut presence = NEW_PRESENCE;
    (1..).map(move |tick| {
        native::fair_note_presence(
            &mut presence,
            native::fair_room(nr(tick) * u64::from(TASK)),
            1_000_000_000 + tick * TICK_NS,
        );
        native::fair_load(presence.mean >> FAIR_MEAN_SHIFT)
    })
}

#[test]
fn one_task_more_is_noticed_within_a_fifth_of_a_second_and_not_within_a_twentieth() {
    // Two CPUs with two tasks and one, one of which changes sides.
    let (here, there) = (loads(|tick| if tick < 250 { 2 } else { 1 }), loads(|tick| if tick < 250 { 1 } else { 2 }));
    let differ = here.zip(there).skip(250).position(|(here, there)| load_differs(here, there));
    assert!(matches!(differ, Some(13..=50)), "{differ:?}");
}

#[test]
fn who_sleeps_now_and_then_makes_no_difference() {
    // Two CPUs with three tasks each, of which one sleeps half of the time, on one CPU when it does not on the other.
    let asleep = |tick: u64| tick / 5 % 2;
    let both = loads(move |tick| 3 - asleep(tick)).zip(loads(move |tick| 2 + asleep(tick)));
    for (tick, (here, there)) in both.take(10_000).enumerate().skip(10) {
        assert!(!load_differs(here, there) && !load_differs(there, here), "at tick {tick}: {here}, {there}");
    }
}

#[test]
fn a_load_is_the_weight_of_those_that_always_run_and_little_more_for_one_that_seldom_does() {
    let after = |nr: fn(u64) -> u64| loads(nr).nth(1000).unwrap();
    for nr in [1, 2, 7, 100] {
        let load = native::fair_load(native::fair_room(nr * u64::from(TASK)));
        assert!(load.abs_diff(nr * u64::from(TASK)) * 50 <= load, "{nr}: {load}");
    }
    // A tenth of the time at 20 times the weight takes a tenth of the CPU, as a ninth more weight does.
    let load = after(|tick| if tick % 10 == 0 { 21 } else { 1 });
    assert!((1700..=1900).contains(&load), "{load}");
    // A CPU that idles for half of the time has most of it to give.
    let load = after(|tick| tick % 2);
    assert!(load < 100, "{load}");
}

#[test]
fn a_task_is_taken_for_three_quarters_of_its_weight_and_from_afar_for_one_more() {
    for weight in [1, 15, 1600, 9548 * 16] {
        for (parts, far, sixty_fourths) in
            [(COSCHED_WAITS_PARTS, false, 48), (8, false, 8), (COSCHED_WAITS_PARTS, true, 112), (8, true, 72)]
        {
            for here in [0, 1600, 8000] {
                let there = here + (sixty_fourths * u64::from(weight) / 64).max(1);
                let differs = |there| native::load_differs(here, there, weight, parts, far);
                assert!(differs(there) && !differs(there - 1), "{weight}, {parts}, {far}");
            }
        }
    }
    assert!(!native::load_differs(1600, 1600, 0, 0, false), "nobody goes for nothing");
    assert!(!native::load_differs(1600, 1600, TASK, 0, false), "nor does a task that never runs");
}

#[test]
fn the_task_that_evens_out_most_has_half_of_what_the_loads_differ_by() {
    for (here, there, weight, apart) in [
        (1000, 5000, 2000, 0),
        (1000, 5000, 1999, 2),
        (1000, 5000, 2001, 2),
        // A task of the whole difference leaves it as it was, on the other side.
        (1000, 5000, 4000, 4000),
        (1000, 5000, 0, 4000),
        // Loads are means: they may be the other way round, or not show the task yet. The lightest does least harm.
        (5000, 1000, 100, 4200),
        (0, 0, 1, 2),
        (0, 0, 1600, 3200),
    ] {
        assert_eq!(native::left_apart(here, there, weight), apart, "{here}, {there}, {weight}");
    }
}

#[test]
fn a_task_that_wakes_counts_by_what_it_runs_from_a_sixteenth_of_its_weight_to_a_quarter() {
    for (ran_ns, passed_ns, parts) in [
        (0, TICK_NS, 4),
        (TICK_NS / 16, TICK_NS, 4),
        (TICK_NS / 8, TICK_NS, 8),
        (TICK_NS / 4, TICK_NS, 16),
        (TICK_NS, TICK_NS, 16),
        // It has just come, or a clock was read a moment later than the other.
        (0, 0, 16),
        (TICK_NS + 1, TICK_NS, 16),
        (TICK_NS, 8 * TICK_NS, 8),
    ] {
        assert_eq!(native::wakes_parts(ran_ns, passed_ns), parts, "{ran_ns} of {passed_ns}");
    }
}

#[test]
fn a_task_that_wakes_does_not_leave_its_new_cpu_the_busier_one() {
    // A task that runs for an eighth of the time moves from a CPU with a busy task to another one. It moves for the
    // least difference for which it may, and does not go back.
    let both = |tick: u64| 1 + u64::from(tick.is_multiple_of(8));
    let with = loads(both).nth(1000).unwrap();
    let without = loads(|_| 1).nth(1000).unwrap();
    let parts = native::wakes_parts(1, 8);
    let moves = |more: u64| native::load_differs(without, with + more, TASK, parts, false);
    let least = (0..1600).find(|&more| moves(more)).unwrap();
    let (here, there) = (with, without + least);
    assert!(!native::load_differs(there, here, TASK, parts, false), "{here} and {there}");
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

/// What each of three tasks on two CPUs has had of a CPU after a minute, in ms. The CPU with a single task looks each 50
/// to 150 ms. It takes the task that waits on the other CPU if `may_move` says so, given the ns since that task moved.
/// Else it looks again at a tick. The two tasks there have slices of 20 ms in turn. The means of the loads follow a move
/// in 100 ms.
fn three_on_two_cpus(seed: u64, may_move: impl Fn(u64) -> bool) -> [u64; 3] {
    let mut random = Random::new(seed);
    let (mut alone, mut had, mut moved) = (0, [0; 3], [0; 3]);
    let (mut now, mut last_move, mut passed) = (1_000, 1_000, 100);
    while now < 61_000 {
        for (task, had) in had.iter_mut().enumerate() {
            *had += if task == alone { 2 * passed } else { passed };
        }
        now += passed;
        passed = 50 + random.below(101);
        let waits = (alone + 1 + (now / 20 % 2) as usize) % 3;
        if now - last_move < 100 {
            continue;
        }
        if may_move((now - moved[waits]) * 1_000_000) {
            (moved[waits], last_move) = (now, now);
            alone = 3 - alone - waits;
        } else {
            passed = 4 + random.below(5);
        }
    }
    had.map(|twice| twice / 2)
}

#[test]
fn what_has_just_moved_stays_and_three_tasks_on_two_cpus_have_the_same_sooner() {
    let apart = |may_move: fn(u64) -> bool| {
        let of_seed = |seed| {
            let had = three_on_two_cpus(seed, may_move);
            had.iter().max().unwrap() - had.iter().min().unwrap()
        };
        (0..200).map(of_seed).sum::<u64>() / 200
    };
    let (with, without) = (apart(native::has_rested), apart(|_| true));
    assert!(2 * with <= without, "{with} ms apart in the mean, and {without} without");
    assert!(!native::has_rested(299_999_999) && native::has_rested(300_000_000));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nobody_takes_from_one_who_takes_from_him(here: u64, there: u64) {
        prop_assert!(!(load_differs(here, there) && load_differs(there, here)));
    }
}
