// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the window that the gate "auto" looks at forgets all at once after as many steps as it is wide, goes on from
//! there, and saves up no more credit than four slices, against the target.

use cosched_rules::native::window_add;
use rules::{MS, POLICY, cosched_policy, cosched_window};

#[path = "common/rules.rs"]
mod rules;

/// Of two seconds, in 16 steps.
const STEP_NS: u64 = 125 * MS;
const BEGUN: cosched_window = cosched_window { cpu_ns: 1_000_000_007, fair_ns: 900_000_011, stepped_ns: 77 * STEP_NS };

/// The window at `now_ns` with so much added.
fn added(mut window: cosched_window, target_permille: u32, now_ns: u64, cpu_ns: u64, fair_ns: u64) -> (u64, u64, u64) {
    let policy = cosched_policy { target_permille, ..POLICY };
    window_add(&mut window, &policy, now_ns, cpu_ns, fair_ns);
    (window.cpu_ns, window.fair_ns, window.stepped_ns)
}

#[test]
fn nothing_is_left_after_two_seconds_and_a_part_before() {
    let end_ns = BEGUN.stepped_ns + 16 * STEP_NS;
    assert_eq!(added(BEGUN, 1000, end_ns, 0, 0), (0, 0, end_ns));
    let (cpu_ns, fair_ns, stepped_ns) = added(BEGUN, 1000, end_ns - 1, 0, 0);
    assert_eq!((cpu_ns / MS, fair_ns / MS, stepped_ns), (62, 56, end_ns - STEP_NS));
}

#[test]
fn after_a_gap_it_adds_up_again() {
    let late_ns = BEGUN.stepped_ns + 100 * STEP_NS + 7;
    let mut window = BEGUN;
    for (at_ns, sum) in [(late_ns, 5), (late_ns + MS, 10), (late_ns + 2 * MS, 15)] {
        window_add(&mut window, &cosched_policy { target_permille: 1000, ..POLICY }, at_ns, 5, 5);
        assert_eq!((window.cpu_ns, window.fair_ns, window.stepped_ns), (sum, sum, late_ns));
    }
}

#[test]
fn credit_is_four_slices_against_the_target() {
    let empty = cosched_window { cpu_ns: 0, fair_ns: 0, stepped_ns: 0 };
    // Four slices are 80 ms. A target of 0, which nobody can set, counts as the least.
    for (target_permille, most_ns) in
        [(1000, 80 * MS), (500, 160 * MS), (2000, 40 * MS), (1, 80_000 * MS), (0, 80_000 * MS)]
    {
        assert_eq!(added(empty, target_permille, 0, 0, u64::MAX).1, most_ns, "target {target_permille}");
        assert_eq!(added(empty, target_permille, 0, 0, most_ns - 1).1, most_ns - 1, "target {target_permille}");
    }
}
