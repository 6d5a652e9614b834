// SPDX-License-Identifier: GPL-2.0-only
//! A process of a bulk-synchronous job, and what a job's barrier has seen.

use super::super::jobs::Step;
use super::super::policy::NEW_HISTORY;
use super::super::random::Random;
use cosched_rules::intf::cosched_wait_history;

/// Nobody.
pub const NOBODY: u32 = u32::MAX;

/// A process, which has one CPU for good.
#[derive(Clone, Debug)]
pub struct Process {
    /// What it does.
    pub step: Step,
    /// How many iterations are left, the present one included.
    pub iterations_left: u32,
    /// How long it is still to compute or to spin, in ns, when it runs next.
    pub left_ns: u64,
    /// It sleeps until a message comes.
    pub sleeps: bool,
    /// It slept, and a message has come; it has not run since.
    pub woken: bool,
    /// It has slept in the wait that it is in.
    pub slept: bool,
    /// What it waits for has come.
    pub satisfied: bool,
    /// Its spin is over, but for the messages that come at this very moment.
    pub expires: bool,
    /// When its wait began, in ns.
    pub wait_began_ns: u64,
    /// When the last message for it came, in ns.
    pub arrival_ns: u64,
    /// The first of those who wait for it to answer their reads, a process.
    pub first_asker: u32,
    /// The next in the queue that it is in itself: it never waits for more than one answer.
    pub next_asker: u32,
    /// What the root said of the imbalance with the release that has come, in us.
    pub heard_us: u32,
    /// What its waits have taught.
    pub history: cosched_wait_history,
    /// How long it computes.
    pub random: Random,
}

impl Process {
    /// At its start.
    pub fn new(iterations: u32, random: Random) -> Process {
        Process {
            step: Step::Done,
            iterations_left: iterations + 1,
            left_ns: 0,
            sleeps: false,
            woken: false,
            slept: false,
            satisfied: false,
            expires: false,
            wait_began_ns: 0,
            arrival_ns: 0,
            first_asker: NOBODY,
            next_asker: NOBODY,
            heard_us: 0,
            history: NEW_HISTORY,
            random,
        }
    }
}

/// The barrier of a job.
#[derive(Clone, Debug, Default)]
pub struct Barrier {
    /// How many have told the root that they are there, and it has handled that.
    pub counted: u32,
    /// How many messages of that kind wait until the root runs.
    pub buffered: u32,
    /// When the first of them was sent, in ns.
    pub first_ns: u64,
    /// How many processes of the job have not done all their iterations.
    pub running: u32,
    /// When the last of them had, in ns.
    pub done_ns: u64,
}
