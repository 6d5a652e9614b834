// SPDX-License-Identifier: GPL-2.0-only
//! A task: a process of a parallel job, or a competitor.

use super::program::CHANNELS;
use crate::engine::NEVER_NS;
use crate::policy::NEW_HISTORY;
use crate::random::Random;
use cosched_rules::intf::{cosched_wait_history, cosched_window};

/// How long TCP waits for an answer to send an acknowledgement along with, in ns.
const ACK_NS: u64 = 40_000_000;

/// What a task does, or does next when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes, with what the last messages and the next take to receive and to send.
    Compute,
    /// Sends what this round has.
    Send(u8),
    /// Receives the message with this place in this round.
    Receive(u8, u8),
}

/// What it does, if it is in a receive that has found nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// It is not in one, or does not run.
    None,
    /// It polls.
    Polls,
    /// It spins before it sleeps.
    Spins,
    /// It sleeps.
    Sleeps,
}

/// As in `bpf/state.bpf.h`: how it comes to run ahead of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Boost {
    /// Not at all.
    None,
    /// The gate has granted it.
    Granted,
    /// One that was granted was cut short.
    Resumed,
}

/// Whether it is off the CPU since it polled in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Park {
    /// No.
    None,
    /// It is to leave.
    Wanted,
    /// It has left.
    Parked,
}

/// What its time goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spends {
    /// It computes, with what messages take to send and to receive.
    Compute,
    /// It spins for a message of its neighbours.
    Communicate,
    /// It spins for one of a meeting of all.
    Synchronize,
    /// Its CPU switches to it.
    Switch,
    /// It waits for its CPU.
    Queue,
    /// It is off the CPU until a message comes: asleep, or parked.
    Off,
    /// Its job is not there.
    Away,
}

/// Of a process whose job is there.
pub const SPENDS: usize = 6;

/// From whom a task has heard, on this channel of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Correspondent {
    /// Its place among those of the task.
    pub channel: u8,
    /// When it was heard from last, in ns.
    pub heard_ns: u64,
    /// When it was asked for last, in ns.
    pub told_ns: Option<u64>,
}

/// A task.
#[derive(Clone, Debug)]
pub struct Task {
    /// Whether it is one of a job.
    pub talks: bool,
    /// On which CPU of its node it is, or was when it fell asleep.
    pub cpu: u32,
    /// What it does.
    pub step: Step,
    /// For how long it is still to compute when it runs next, in ns.
    pub left_ns: u64,
    /// How it waits just now.
    pub wait: Wait,
    /// Since when, in ns: the last time that it was seen not to.
    pub wait_since_ns: u64,
    /// It has done something else than wait since it was last looked at.
    pub progressed: bool,
    /// When it was queued last, in ns.
    pub queued_ns: u64,
    /// No busy CPU takes it before, in ns.
    pub stays_until_ns: u64,
    /// Messages that it has not received, by channel.
    pub pending: [u8; CHANNELS],
    /// When the last one came, in ns.
    pub last_arrival_ns: u64,
    /// When the first of those came that it has not run for, in ns; 0: none.
    pub first_arrival_ns: u64,
    /// What the last message carried: the epoch, and what was left of the sender's slice, in ns.
    pub message_epoch: u64,
    /// In ns; 0: nothing, or it is not known.
    pub message_slice_ns: u64,
    /// Of those, the ones that it has not read yet: who polls reads all that comes, whatever it waits for.
    pub unread: u32,
    /// Of those, the ones that are no demand.
    pub silent: u32,
    /// When it last read one that is, if it has sent nothing since, in ns.
    pub asked_ns: Option<u64>,
    /// It was stopped with that.
    pub owes: bool,
    /// Its slice began as it woke up, and it was not cut short later than in its moment (`bpf/fair.bpf.h`).
    pub slept: bool,
    /// Its demand was denied.
    pub denied: bool,
    /// Its way to the CPU.
    pub boost: Boost,
    /// It runs because of a boost.
    pub boosted: bool,
    /// For how long the next boost is, in ns.
    pub granted_ns: u64,
    /// When it was last boosted, in ns; 0: never.
    pub last_boost_ns: u64,
    /// Whether it is off the CPU.
    pub park: Park,
    /// Up to where its share was taken of its CPU's clock of shares.
    pub share_seen: u64,
    /// For the gate `auto`.
    pub window: cosched_window,
    /// By how much it is ahead of its share, for turns by draw, in ns.
    pub ahead_ns: i64,
    /// What its waits have taught.
    pub history: cosched_wait_history,
    /// From whom it has heard, if these are asked for ahead.
    pub correspondents: Vec<Correspondent>,
    /// Iterations that are done, in the time that counts.
    pub iterations: u64,
    /// CPU time, in ns, in the time that counts.
    pub cpu_ns: u64,
    /// What was due of that, by the number of tasks that shared its CPU, in ns.
    pub due_ns: f64,
    /// When the last iteration began, and how long the longest took, in ns.
    pub iterated_ns: u64,
    /// In ns, of those that ended in the time that counts.
    pub longest_ns: u64,
    /// What its time goes to, and since when, in ns.
    pub spends: Spends,
    /// In ns.
    pub spends_since_ns: u64,
    /// How long it did each, in ns, in the time that counts; the last is [`Spends::Away`].
    pub spent_ns: [u64; SPENDS + 1],
    /// Messages that came, and of those the ones that found it running, in the time that counts.
    pub arrivals: [u64; 2],
    /// For how long it computes.
    pub random: Random,
}

impl Task {
    /// A competitor, or a process of a job that begins with this step.
    pub fn new(talks: bool, step: Step, random: Random) -> Task {
        Task {
            talks,
            cpu: 0,
            step,
            left_ns: if talks { 0 } else { NEVER_NS },
            wait: Wait::None,
            wait_since_ns: 0,
            progressed: true,
            queued_ns: 0,
            stays_until_ns: 0,
            pending: [0; CHANNELS],
            last_arrival_ns: 0,
            first_arrival_ns: 0,
            message_epoch: 0,
            message_slice_ns: 0,
            unread: 0,
            silent: 0,
            asked_ns: None,
            owes: false,
            slept: false,
            denied: false,
            boost: Boost::None,
            boosted: false,
            granted_ns: 0,
            last_boost_ns: 0,
            park: Park::None,
            share_seen: 0,
            window: cosched_window { cpu_ns: 0, fair_ns: 0, stepped_ns: 0 },
            ahead_ns: 0,
            history: NEW_HISTORY,
            correspondents: Vec::new(),
            iterations: 0,
            cpu_ns: 0,
            due_ns: 0.0,
            iterated_ns: 0,
            longest_ns: 0,
            spends: Spends::Queue,
            spends_since_ns: 0,
            spent_ns: [0; SPENDS + 1],
            arrivals: [0; 2],
            random,
        }
    }

    /// Whether somebody waits for it to run: it has a message that it has not read, or was stopped before it answered
    /// one.
    pub fn has_demand(&self) -> bool {
        self.owes || self.unread > self.silent
    }

    /// Whether it has something to do: one that does is not parked.
    pub fn has_message(&self) -> bool {
        self.owes || self.unread > 0
    }

    /// Whether it is stopped at `now_ns` with a question in its hands: TCP knows that for some 40 ms
    /// (`bpf/endpoints.bpf.h`).
    pub fn is_asked(&self, now_ns: u64) -> bool {
        self.asked_ns.is_some_and(|asked_ns| now_ns - asked_ns < ACK_NS)
    }

    /// Whether it is inside a receive.
    pub fn receives(&self) -> bool {
        matches!(self.step, Step::Receive(..))
    }

    /// Whether it is off the CPU until a message comes, and not runnable.
    pub fn sleeps(&self) -> bool {
        self.wait == Wait::Sleeps
    }

    /// From now on its time goes to this.
    #[inline]
    pub fn spends(&mut self, spends: Spends, now_ns: u64) {
        self.spent_ns[self.spends as usize] += now_ns - self.spends_since_ns;
        (self.spends, self.spends_since_ns) = (spends, now_ns);
    }

    /// What is counted begins now.
    pub fn reset(&mut self) {
        self.spent_ns.fill(0);
        (self.iterations, self.cpu_ns, self.arrivals) = (0, 0, [0; 2]);
        (self.due_ns, self.longest_ns) = (0.0, 0);
    }
}
