// SPDX-License-Identifier: GPL-2.0-only
//! A process of a job: it computes, reads or writes, sends to its neighbours and receives from them, again and again
//! (Zhang 3.2, Figure 2).

use super::workload::JobSpec;
use super::{Reading, Setup};
use crate::policy::NEW_HISTORY;
use crate::random::Random;
use cosched_rules::intf::cosched_wait_history;

/// Which neighbour a message comes from.
pub const SIDES: usize = 2;

/// What a process does, or does next when it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Begins an iteration.
    Begin,
    /// Computes.
    Compute,
    /// Sleeps until its disk has done its part.
    Io,
    /// Sends.
    Send,
    /// Receives from the neighbour before (0) or behind it (1).
    Receive(usize),
}

/// What an iteration of a job is made of, in ns, without skew.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Iteration {
    /// Computing.
    pub compute_ns: f64,
    /// Reading and writing.
    pub io_ns: f64,
    /// One exchange of messages, in the mean.
    pub exchange_ns: u64,
    /// How many there are.
    pub count: u32,
}

impl Iteration {
    /// Of `job`, with the messages that the setup has it exchange: the rest follows from its mix (3.2). A job of one
    /// process has nobody to communicate with, and one that does not communicate has iterations as long as its
    /// exchanges would be; either does the rest alone, for as long in all.
    pub fn of(job: &JobSpec, setup: &Setup) -> Iteration {
        let exchanges = setup.readings.exchanges;
        let messages_ns = messages_alone_ns(job.size, setup).max(1.0);
        let exchange_ns = (messages_ns / f64::from(exchanges)).round() as u64;
        let all_ns = if job.mix.communication > 0.0 { messages_ns / job.mix.communication } else { messages_ns };
        let alone_ns = if job.size > 1 { all_ns } else { all_ns * (job.mix.compute + job.mix.io) };
        let count = (job.execution_ns as f64 / alone_ns.max(1.0)).round().clamp(1.0, f64::from(u32::MAX)) as u32;
        Iteration { compute_ns: all_ns * job.mix.compute, io_ns: all_ns * job.mix.io, exchange_ns, count }
    }
}

/// How long the exchanges of an iteration take a job that is alone.
///
/// Two processes send each other messages at once. Of more, all but the ends send two in an exchange, of which the
/// second leaves when the first has left the interface. After the last exchange a process goes on when it has what the
/// others sent, even if the interface still has its own second message. It waits for the first of the one neighbour and
/// the second of the other. From a process there and back that is two latencies and one busy interface in two
/// iterations.
fn messages_alone_ns(size: u32, setup: &Setup) -> f64 {
    let (latency_ns, interface_ns) = (setup.costs.latency_ns as f64, setup.interface_ns() as f64);
    let (last_ns, busy_ns) =
        if size > 2 { (latency_ns + interface_ns / 2.0, 2.0 * interface_ns) } else { (latency_ns, interface_ns) };
    let other_ns = match setup.readings {
        // While a process computes the interface is done with its messages.
        readings if readings.has(Reading::Apart) => last_ns,
        readings if readings.bursts() => busy_ns,
        _ => last_ns.max(busy_ns),
    };
    f64::from(setup.readings.exchanges - 1) * other_ns + last_ns
}

/// A process, in a slot of its node.
#[derive(Clone, Debug)]
pub struct Task {
    /// Which job's.
    pub job: u32,
    /// Where its neighbours are, if it has them: the one before it and the one behind it.
    pub neighbours: [Option<u32>; SIDES],
    /// What it does.
    pub step: Step,
    /// How long it is still to compute or to spin, in ns, when it runs next.
    pub left_ns: u64,
    /// Its iteration.
    pub iteration: Iteration,
    /// How many are left, without the present one.
    pub iterations_left: u32,
    /// How many exchanges are left of the present one, without the present one.
    pub exchanges_left: u32,
    /// Messages that have come from each neighbour, and that it has not received.
    pub pending: [u32; SIDES],
    /// When the first of them came, in ns.
    pub first_arrival_ns: u64,
    /// When the last message came, in ns.
    pub last_arrival_ns: u64,
    /// It is off the CPU until its disk or a message wakes it.
    pub sleeps: bool,
    /// An interrupt is on its way to wake it.
    pub wakes: bool,
    /// What its waits have taught.
    pub history: cosched_wait_history,
    /// How long it computes.
    random: Random,
}

impl Task {
    /// At its start.
    pub fn new(job: u32, neighbours: [Option<u32>; SIDES], iteration: Iteration, random: Random) -> Task {
        Task {
            job,
            neighbours,
            step: Step::Begin,
            left_ns: 0,
            iteration,
            iterations_left: iteration.count,
            exchanges_left: 0,
            pending: [0; SIDES],
            first_arrival_ns: 0,
            last_arrival_ns: 0,
            sleeps: false,
            wakes: false,
            history: NEW_HISTORY,
            random,
        }
    }

    /// A time that differs from process to process and iteration to iteration by the skew: uniform from 1 - s / 2 to 1
    /// + s / 2 times `mean_ns`; s is at most 2.
    pub fn skewed_ns(&mut self, mean_ns: f64, skew: f64) -> u64 {
        (mean_ns * (1.0 + skew * (self.random.unit() - 0.5))).round() as u64
    }

    /// Whether it waits for a message from this neighbour.
    pub fn receives_from(&self, side: usize) -> bool {
        self.step == Step::Receive(side)
    }

    /// Whether it is inside a receive.
    pub fn receives(&self) -> bool {
        matches!(self.step, Step::Receive(_))
    }

    /// Messages that its receive would take; outside of one, any.
    pub fn pending_for_it(&self) -> u32 {
        match self.step {
            Step::Receive(side) => self.pending[side],
            _ => self.pending.iter().sum(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster::workload::TYPES;
    use crate::cluster::{Costs, Readings, policy_of};

    fn setup(readings: Readings) -> Setup {
        let costs = Costs { switch_ns: 0, interrupt_ns: 0, latency_ns: 100_000, move_ns: 0, check_ns: 0 };
        let policy = policy_of("local", &costs, 0, 0).unwrap();
        Setup { nodes: 8, level: 1, policy, costs, readings, skew: 0.0, warmup: 0.0 }
    }

    #[test]
    fn an_iteration_is_in_proportion_to_its_messages() {
        let of = |size, mix, readings, exchanges| {
            let job = JobSpec { arrival_ns: 0, size, execution_ns: 1_000_000_000, mix };
            Iteration::of(&job, &setup(Readings { exchanges, ..readings }))
        };
        let none = Readings::NONE;
        // J1: half of it are messages, of two processes 100 us, so 70 us of computing and 30 us of disk.
        let j1 = of(2, TYPES[0], none, 1);
        assert_eq!(j1, Iteration { compute_ns: 70_000.0, io_ns: 30_000.0, exchange_ns: 100_000, count: 5000 });
        // Of eight it takes one and a half times as long.
        let j1 = of(8, TYPES[0], none, 1);
        assert_eq!(j1, Iteration { compute_ns: 105_000.0, io_ns: 45_000.0, exchange_ns: 150_000, count: 3333 });
        // Alone it has twice as many as two have, since nobody sends.
        assert_eq!(of(1, TYPES[0], none, 1).count, 10_000);
        let j4 = of(2, TYPES[3], none, 1);
        assert!((j4.compute_ns - 1_800_000.0).abs() < 1e-3 && j4.count == 500, "{j4:?}");
        // Four exchanges take 750 us, be they one after the other or in a burst.
        let coarse = of(8, TYPES[0], none, 4);
        assert_eq!(coarse, Iteration { compute_ns: 525_000.0, io_ns: 225_000.0, exchange_ns: 187_500, count: 667 });
        assert_eq!(of(8, TYPES[0], none.with(Reading::Burst), 4), coarse);
        // An interface that is free at once has messages leave together.
        for (reading, latencies) in [(Reading::Burst, 1), (Reading::Block, 4)] {
            let free = of(8, TYPES[0], Readings { interface: 0.0, ..none.with(reading) }, 4);
            assert_eq!(free.exchange_ns * 4, latencies * 100_000, "{reading:?}");
        }
    }
}
