// SPDX-License-Identifier: GPL-2.0-only
//! Claim: kernel threads go first, and leave users a third of a busy CPU all the same (`policies/account.h`).

use cosched_rules::native::{self, NEW_LOAN};

const MS: u64 = 1_000_000;

/// A kernel thread on a CPU that a task of a user always wants. It works for `work_ns`, sleeps for `sleep_ns`, and so
/// on. While its budget is used up the two take turns of 20 ms. Returns what the user has of the CPU, and how often of
/// 1,000 the thread had to wait when it woke.
fn beside_kernel_thread(work_ns: u64, sleep_ns: u64) -> (f64, u64) {
    let mut loan = NEW_LOAN;
    let (mut user_ns, mut kernel_ns, mut waits) = (0, 0, 0);
    for _ in 0..1000 {
        let mut left_ns = work_ns;
        waits += u64::from(loan.starving != 0);
        while left_ns > 0 {
            if loan.starving != 0 {
                native::account_urgent(&mut loan, false, 20 * MS);
                user_ns += 20 * MS;
            }
            let runs_ns = left_ns.min(20 * MS);
            native::account_urgent(&mut loan, true, runs_ns);
            kernel_ns += runs_ns;
            left_ns -= runs_ns;
        }
        native::account_urgent(&mut loan, false, sleep_ns);
        user_ns += sleep_ns;
    }
    (user_ns as f64 / (user_ns + kernel_ns) as f64, waits)
}

#[test]
fn users_keep_a_third_whatever_kernel_threads_do() {
    for (work_ns, sleep_ns) in [(20 * MS, 0), (20 * MS, MS / 10), (5 * MS, 1), (1000 * MS, MS), (MS, MS / 100)] {
        let (share, _) = beside_kernel_thread(work_ns, sleep_ns);
        assert!(share >= 1. / 3. - 0.01, "{work_ns} ns of work, {sleep_ns} of sleep: {share}");
    }
}

#[test]
fn one_that_works_for_less_than_two_thirds_of_the_time_never_waits() {
    for (work_ns, sleep_ns) in [(19 * MS, 10 * MS), (MS, MS), (MS / 10, MS), (30 * MS, 20 * MS)] {
        assert_eq!(beside_kernel_thread(work_ns, sleep_ns).1, 0, "{work_ns} ns of work, {sleep_ns} of sleep");
    }
}

#[test]
fn most_of_what_one_had_while_nobody_else_was_there_is_forgiven() {
    let mut loan = NEW_LOAN;
    native::account_urgent(&mut loan, true, 60_000 * MS);
    native::account_urgent(&mut loan, false, 39 * MS);
    assert_ne!(loan.starving, 0);
    native::account_urgent(&mut loan, false, MS);
    assert_eq!(loan.starving, 0);
}
