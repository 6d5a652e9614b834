// SPDX-License-Identifier: GPL-2.0-only
//! `bench spmd`: the synthetic parallel job of the papers on implicit scheduling, one process on each node. Phases of
//! computing alternate with phases of communication (Dusseau 3.1), or it communicates all the time (Arpaci-Dusseau
//! 5.2).
//! Or it computes, reads files and talks to its neighbours, and ends (Zhang 3.2).
//!
//! Messages are requests and responses. A request is answered by its receiver itself, as soon as that runs and looks:
//! while it waits, and between two pieces of its computing. They are datagrams, so that a process waits for all of its
//! peers in one receive. None is sent again: on a wire that loses some, the job stands still.

use std::mem::take;
use std::net::SocketAddr;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::prctl;
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::datagrams::{Datagrams, Kind};
use crate::interval::{Interval, Phase, monotonic_ns, phase, thread_cpu_ns};
use crate::machine;
use crate::pattern::{Pattern, beside};
use crate::peer::MESSAGE;
use crate::receiver::{Receiver, parse_of_spmd};
use crate::record::Record;
use crate::scenario::{COMPUTE_US, IMBALANCE};
use crate::work::Work;
use crate::worker::{Begin, Report, Timing};
use cosched_rules::report;

/// Between two reads of a phase of communication (Dusseau 3.4).
const BETWEEN_READS: Duration = Duration::from_micros(8);
/// Between two barriers of a job that communicates all the time (Arpaci-Dusseau 5.2).
const BETWEEN_BARRIERS: Duration = Duration::from_millis(100);
/// A process that computes looks for requests so often.
const LOOKS_EACH: Duration = Duration::from_micros(100);

/// A process of the pattern line sends so often to each neighbour in an iteration, and then receives as often: what
/// `sim cluster` takes Zhang to mean.
const EXCHANGES: usize = 2;

/// To sleep and to wake takes tens of us, so shorter reads would be longer than they are meant to be.
const SHORTEST_IO: Duration = Duration::from_millis(1);

/// An oracle spins two switches at a read, and no longer than ten at a barrier (Dusseau 6.1).
const SWITCHES_AT_A_READ: u32 = 2;
const BLOCKING_PAYS: u32 = 10;

/// Run a process of a job that computes, meets at barriers and reads from its peers, and measure its iterations.
#[derive(Clone, Debug, clap::Args)]
pub struct SpmdArgs {
    /// Wait here for the job's first process; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT", conflicts_with = "connect")]
    listen: Option<SocketAddr>,

    /// Be the first process of a job whose others wait at these addresses. Without any it is the only one.
    #[arg(long, value_name = "ADDR:PORT,...", value_delimiter = ',')]
    connect: Vec<SocketAddr>,

    /// What an iteration consists of.
    #[arg(long, value_enum, default_value = "bulk")]
    pattern: Pattern,

    /// How to wait for a message: spin, block, twophase, oracle.
    #[arg(long, default_value = "spin", value_parser = parse_of_spmd)]
    receiver: Receiver,

    /// Microseconds of CPU work before each barrier on average; with the pattern random before each read.
    #[arg(long, value_name = "US", default_value = "1000",
          value_parser = clap::value_parser!(u32).range(1..=i64::from(*COMPUTE_US.end())))]
    compute_us: u32,

    /// By how much of --compute-us the longest work before a barrier is longer than the shortest.
    #[arg(long, value_name = "PERCENT", default_value = "0",
          value_parser = clap::value_parser!(u16).range(..=i64::from(*IMBALANCE.end())))]
    imbalance: u16,

    /// Microseconds of sleep after the computing, as a process does that reads files, with the same imbalance. What is
    /// less than 1 ms waits until that much has come together.
    #[arg(long, value_name = "US", default_value = "0",
          value_parser = clap::value_parser!(u32).range(..=i64::from(*COMPUTE_US.end())))]
    io_us: u32,

    /// Bytes of a message.
    #[arg(long, value_name = "N", default_value_t = MESSAGE as u16,
          value_parser = clap::value_parser!(u16).range(16..=8192))]
    bytes: u16,

    /// End after so many iterations, and report how long they took.
    #[arg(long, value_name = "N", conflicts_with_all = ["seconds", "warm_up"],
          value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,

    /// CS, a switch to another process, which an oracle reckons with, besides what virtual time charges for one.
    #[arg(long, value_name = "US", default_value = "15", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    cs_us: u32,

    /// CPU to stay on.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    #[command(flatten)]
    pub timing: Timing,
}

/// The process at the side that connects is the root of the barriers, and measures iterations.
pub fn run(args: &SpmdArgs, begin: Begin) -> Result<Report> {
    if args.pattern == Pattern::Random && args.iterations.is_some() {
        let why = "processes that are done would answer no more reads";
        return Err(report::usage(format!("--iterations is not for the pattern random: {why} (choose --seconds)")));
    }
    machine::pin(args.cpu)?;
    let work = Work::lasting(LOOKS_EACH)?;
    let peers = match args.listen {
        Some(address) => Datagrams::listen(address, |bound| begin.announce(Some(bound)))?,
        None => {
            let peers = Datagrams::connect(&args.connect)?;
            begin.announce(None)?;
            peers
        }
    };
    let mut process = Process::new(args, peers.with_bytes(args.bytes), work);
    let bounds = begin.bounds()?;
    // Sleeps are to be as long as they are said to be.
    prctl::set_timerslack(1).context("cannot set the slack of timers")?;
    if let Some(iterations) = args.iterations {
        return process.iterate_for(iterations);
    }
    let interval = Interval::begin(bounds)?;
    process.meet()?;
    let mut record = Record::new(bounds.end_ns)?;
    let mut started = monotonic_ns();
    while phase() < Phase::Stop {
        process.iterate()?;
        let now = monotonic_ns();
        record.round_trip(started, now, phase());
        started = now;
    }
    let round_trips = process.is_root().then(|| record.figures());
    Ok(Report { round_trips, ..Report::of(&interval) })
}

/// For how many polls in vain a wait goes on before it blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Polls {
    at_reads: u64,
    at_barriers: u64,
}

struct Process {
    peers: Datagrams,
    pattern: Pattern,
    random: SplitMix64,
    work: Work,
    compute: Duration,
    /// In per cent of a length.
    imbalance: u64,
    polls: Polls,
    /// Reads that have not been answered: one at most.
    unanswered: usize,
    /// At the root: how many have come to the barrier. Elsewhere: barriers that are over and were not noticed yet.
    arrived: usize,
    /// Of the pattern random: computing since the last barrier.
    since_barrier: Duration,
    /// Of the pattern line: by rank, the messages that have come.
    came: Vec<usize>,
    io: Duration,
    /// What has come together of it.
    io_due: Duration,
}

impl Process {
    fn new(args: &SpmdArgs, peers: Datagrams, work: Work) -> Process {
        let compute = Duration::from_micros(args.compute_us.into());
        let longest = compute * u32::from(args.imbalance) / 100;
        let polls_within = |length| peers.polls_within(length);
        let polls = match args.receiver {
            Receiver::Oracle => {
                let charged = Duration::from_nanos(machine::time().switch_price_ns);
                let switch = Duration::from_micros(args.cs_us.into()) + charged;
                let (at_reads, at_barriers) = oracle(switch, longest);
                Polls { at_reads: polls_within(at_reads), at_barriers: polls_within(at_barriers) }
            }
            other => {
                let polls = other.polls(polls_within);
                Polls { at_reads: polls, at_barriers: polls }
            }
        };
        Process {
            pattern: args.pattern,
            random: SplitMix64::seed_from_u64(peers.rank() as u64),
            work,
            compute,
            imbalance: args.imbalance.into(),
            io: Duration::from_micros(args.io_us.into()),
            io_due: Duration::ZERO,
            polls,
            unanswered: 0,
            arrived: 0,
            since_barrier: Duration::ZERO,
            came: vec![0; peers.number()],
            peers,
        }
    }

    fn is_root(&self) -> bool {
        self.peers.rank() == 0
    }

    /// Before its first message to any but the root, which is there from the beginning: the others may not have heard
    /// yet which job they are of.
    fn meet(&mut self) -> Result<()> {
        if self.peers.number() > 1 { self.barrier() } else { Ok(()) }
    }

    fn iterate_for(&mut self, iterations: u64) -> Result<Report> {
        self.meet()?;
        let (started_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
        (0..iterations).try_for_each(|_| self.iterate())?;
        let seconds = |ns: u64| Duration::from_nanos(ns).as_secs_f64();
        Ok(Report::of_task(seconds(monotonic_ns() - started_ns), seconds(thread_cpu_ns() - cpu_ns)))
    }

    /// One phase of computing and one of communication; of the pattern random a computation and a read.
    fn iterate(&mut self) -> Result<()> {
        let length = self.length(self.compute);
        self.compute(length)?;
        let io = self.length(self.io);
        self.io_due += io;
        if self.io_due >= SHORTEST_IO {
            thread::sleep(take(&mut self.io_due));
        }
        let (rank, number) = (self.peers.rank(), self.peers.number());
        match self.pattern {
            Pattern::Random => {
                if number > 1 {
                    let step = 1 + (self.random.next_u64() % (number as u64 - 1)) as usize;
                    self.read((rank + step) % number)?;
                }
                self.since_barrier += length;
                if self.since_barrier >= BETWEEN_BARRIERS {
                    self.since_barrier -= BETWEEN_BARRIERS;
                    self.barrier()?;
                }
                return Ok(());
            }
            Pattern::Line => return self.exchange(),
            _ => self.barrier()?,
        }
        let read_from = self.pattern.reads(rank, number);
        for &peer in &read_from {
            self.compute(BETWEEN_READS)?;
            self.read(peer)?;
        }
        if !read_from.is_empty() {
            self.barrier()?;
        }
        Ok(())
    }

    fn length(&mut self, mean: Duration) -> Duration {
        drawn(mean, self.imbalance, &mut self.random)
    }

    fn exchange(&mut self) -> Result<()> {
        let neighbours: Vec<usize> = beside(self.peers.rank(), self.peers.number()).collect();
        for _ in 0..EXCHANGES {
            neighbours.iter().try_for_each(|&peer| self.peers.send(peer, Kind::News))?;
        }
        self.wait(self.polls.at_reads, |process| neighbours.iter().all(|&peer| process.came[peer] >= EXCHANGES))?;
        // Not all have come if the time is over.
        neighbours.iter().for_each(|&peer| self.came[peer] = self.came[peer].saturating_sub(EXCHANGES));
        Ok(())
    }

    fn compute(&mut self, length: Duration) -> Result<()> {
        let mut left = length;
        while !left.is_zero() && phase() < Phase::Stop {
            let piece = left.min(LOOKS_EACH);
            self.work.part(piece, LOOKS_EACH).run();
            left -= piece;
            while let Some((from, kind)) = self.peers.poll()? {
                self.take(from, kind)?;
            }
        }
        Ok(())
    }

    fn read(&mut self, peer: usize) -> Result<()> {
        self.unanswered += 1;
        self.peers.send(peer, Kind::Read)?;
        self.wait(self.polls.at_reads, |process| process.unanswered == 0)
    }

    /// Each sends to the root, which answers all when it has heard of all (Dusseau 3.1, footnote 1).
    fn barrier(&mut self) -> Result<()> {
        if !self.is_root() {
            self.peers.send(0, Kind::Arrived)?;
            self.wait(self.polls.at_barriers, |process| process.arrived > 0)?;
            self.arrived = self.arrived.saturating_sub(1);
            return Ok(());
        }
        let others = self.peers.number() - 1;
        self.wait(self.polls.at_barriers, |process| process.arrived >= others)?;
        self.arrived = self.arrived.saturating_sub(others);
        (1..=others).try_for_each(|peer| self.peers.send(peer, Kind::Over))
    }

    /// Takes messages until `is_over`, or until the time of this thread is.
    fn wait(&mut self, polls: u64, is_over: impl Fn(&Process) -> bool) -> Result<()> {
        let mut in_vain = 0;
        while !is_over(self) && phase() < Phase::Stop {
            let message = if in_vain < polls { self.peers.poll()? } else { self.peers.receive()? };
            match message {
                Some((from, kind)) => self.take(from, kind)?,
                None => in_vain += 1,
            }
        }
        Ok(())
    }

    fn take(&mut self, from: usize, kind: Kind) -> Result<()> {
        match kind {
            Kind::Read => self.peers.send(from, Kind::Answer)?,
            Kind::Answer => self.unanswered = self.unanswered.saturating_sub(1),
            Kind::Arrived | Kind::Over => self.arrived += 1,
            Kind::News => self.came[from] += 1,
        }
        Ok(())
    }
}

/// Uniform between half of so many per cent less than the mean, and half more.
fn drawn(mean: Duration, imbalance: u64, random: &mut SplitMix64) -> Duration {
    let spread_ns = mean.as_nanos() as u64 * imbalance / 100;
    let drawn_ns = random.next_u64() % (spread_ns + 1);
    (mean + Duration::from_nanos(drawn_ns)).saturating_sub(Duration::from_nanos(spread_ns / 2))
}

/// How long an oracle spins at a read and at a barrier, if it knows the imbalance. A barrier is two more messages,
/// which are short against a switch.
fn oracle(switch: Duration, imbalance: Duration) -> (Duration, Duration) {
    let at_reads = SWITCHES_AT_A_READ * switch;
    (at_reads, if imbalance > BLOCKING_PAYS * switch { at_reads } else { imbalance + at_reads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_as_uneven_as_it_is_said_to_be() {
        let mut random = SplitMix64::seed_from_u64(7);
        let mut lengths = |percent| -> Vec<u64> {
            let one = |_| drawn(Duration::from_micros(100), percent, &mut random).as_nanos() as u64;
            (0..1000).map(one).collect()
        };
        let uneven = lengths(150);
        assert!(uneven.iter().all(|ns| (25_000..=175_000).contains(ns)));
        let mean_ns = uneven.iter().sum::<u64>() / 1000;
        // The standard deviation of a mean of 1,000 is 1.4 us.
        assert!((92_000..=108_000).contains(&mean_ns), "{mean_ns}");
        assert!(uneven.iter().any(|&ns| ns < 40_000) && uneven.iter().any(|&ns| ns > 160_000));
        assert!(lengths(0).iter().all(|&ns| ns == 100_000));
    }

    #[test]
    fn an_oracle_outlasts_an_imbalance_that_is_not_too_long() {
        let us = Duration::from_micros;
        assert_eq!(oracle(us(50), us(25)), (us(100), us(125)));
        assert_eq!(oracle(us(50), us(500)), (us(100), us(600)));
        assert_eq!(oracle(us(50), us(501)), (us(100), us(100)), "it pays to let another process run");
    }
}
