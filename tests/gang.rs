// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the rows of the gang's matrix take turns by the clock alone, each for a quantum, on all nodes at once, and
//! jobs that nobody has given a row spread over all of them (Zhang 2.2).

use cosched_rules::native::{gang_rest_ns, gang_row_at, gang_row_of};
use proptest::prelude::*;
use rules::{MS, POLICY, SEC, cosched_policy};

#[path = "common/rules.rs"]
mod rules;

fn policy(quantum_ns: u64, rows: u32) -> cosched_policy {
    cosched_policy { quantum_ns, rows, ..POLICY }
}

#[test]
fn each_row_has_its_turn_for_a_quantum() {
    // Quantum in ms and rows; the time in ms; the row, and the rest of its turn in ms.
    for (quantum, rows, at, row, rest) in [
        (100, 5, 0, 0, 100),
        (100, 5, 99, 0, 1),
        (100, 5, 100, 1, 100),
        (100, 5, 130, 1, 70),
        (100, 5, 499, 4, 1),
        (100, 5, 500, 0, 100),
        (100, 5, 1_000_000_000_350, 3, 50),
        (20, 2, 50, 0, 10),
        (100, 1, 250, 0, 50),
    ] {
        let policy = policy(quantum * MS, rows);
        assert_eq!(gang_row_at(&policy, at * MS), row, "{quantum} ms, {rows} rows, at {at}");
        assert_eq!(gang_rest_ns(&policy, at * MS), rest * MS, "{quantum} ms, {rows} rows, at {at}");
    }
}

#[test]
fn no_quantum_and_no_rows_are_as_little_as_can_be() {
    assert_eq!((gang_row_at(&policy(0, 3), 7), gang_rest_ns(&policy(0, 3), 7)), (1, 1));
    assert_eq!((gang_row_at(&policy(10, 0), 75), gang_row_of(&policy(10, 0), 75)), (0, 0));
}

#[test]
fn jobs_in_a_row_of_numbers_spread_over_the_rows() {
    for rows in 2..=64 {
        let policy = policy(MS, rows);
        for first in [0, 1, 1_000, 123_456, 1 << 32, (1 << 40) + 77] {
            for start in first..first + 100 {
                let mut jobs = vec![0; rows as usize];
                for job in start..start + u64::from(rows) {
                    jobs[gang_row_of(&policy, job) as usize] += 1;
                }
                assert!(jobs.iter().all(|n| *n <= 2), "{rows} rows, jobs from {start}: {jobs:?}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_input_has_a_row_and_a_rest(
        quantum_ns in prop_oneof![any::<u64>(), 0..1000u64], rows in prop_oneof![any::<u32>(), 0..10u32],
        tai_ns in any::<u64>(), job in any::<u64>(),
    ) {
        let policy = policy(quantum_ns, rows);
        prop_assert!(gang_row_at(&policy, tai_ns) < rows.max(1));
        prop_assert!(gang_row_of(&policy, job) < rows.max(1));
        prop_assert!((1..=quantum_ns.max(1)).contains(&gang_rest_ns(&policy, tai_ns)));
    }

    #[test]
    fn the_row_of_a_job_is_the_same_in_every_version(rows in 1..=u32::MAX, job: u64) {
        // Fibonacci hashing: 2^64 over the golden ratio. Nodes of two versions must not disagree.
        let hash = job.wrapping_mul(11_400_714_819_323_198_485) >> 32;
        prop_assert_eq!(u64::from(gang_row_of(&policy(MS, rows), job)), (hash * u64::from(rows)) >> 32);
    }

    #[test]
    fn the_row_stays_for_the_rest_and_the_next_one_follows(
        quantum_ns in MS..60 * SEC, rows in 2..=1024u32, tai_ns in 0..u64::MAX / 2,
    ) {
        let policy = policy(quantum_ns, rows);
        let (row, rest_ns) = (gang_row_at(&policy, tai_ns), gang_rest_ns(&policy, tai_ns));
        prop_assert_eq!(gang_row_at(&policy, tai_ns + rest_ns - 1), row);
        prop_assert_eq!(gang_row_at(&policy, tai_ns + rest_ns), (row + 1) % rows);
        prop_assert_eq!(gang_rest_ns(&policy, tai_ns + rest_ns), quantum_ns);
    }

    #[test]
    fn clocks_that_differ_by_little_disagree_for_as_little(
        quantum_ns in MS..60 * SEC, rows in 2..=1024u32, tai_ns in 0..u64::MAX / 2, skew_ns in 0..MS / 2,
    ) {
        let policy = policy(quantum_ns, rows);
        let agree = gang_row_at(&policy, tai_ns) == gang_row_at(&policy, tai_ns + skew_ns);
        prop_assert_eq!(agree, gang_rest_ns(&policy, tai_ns) > skew_ns);
    }
}
