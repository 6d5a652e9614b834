// SPDX-License-Identifier: GPL-2.0-only
//! `bench token`: the smallest parallel job, two processes that pass a message to and fro over TCP. Or a barrier: one
//! process sends to several and waits for them all (thesis 5.2.2).
//!
//! The side that connects starts the token and measures its round trips. A receiver either spins, which
//! is a receive that does not wait, again and again, as message passing libraries do it, or blocks in it.
//! Between receiving and sending it may have work of its own, and each process may have several threads,
//! each of which passes a token of its own to its counterpart.

use std::net::{SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};

use crate::interval::{Bounds, Interval, Phase, monotonic_ns, phase};
use crate::machine;
use crate::peer::Peer;
use crate::receiver::{Receiver, parse_of_token};
use crate::record::Record;
use crate::scenario::{COMPUTE_US, THREADS};
use crate::work::Work;
use crate::worker::{Begin, Report, Timing};

/// Pass a token between two processes, or one between one and each of several, and measure round trips. One is over
/// when all have come back.
#[derive(Clone, Debug, clap::Args)]
pub struct TokenArgs {
    #[command(flatten)]
    side: Side,

    /// How to wait for a message: spin, block, poll, twophase.
    #[arg(long, value_parser = parse_of_token, default_value = "spin")]
    receiver: Receiver,

    /// Microseconds of CPU work between receiving and sending, in a loop that is calibrated at the start.
    #[arg(long, value_name = "US", default_value = "0",
          value_parser = clap::value_parser!(u32).range(..=i64::from(*COMPUTE_US.end())))]
    compute_us: u32,

    /// Threads, each of which passes tokens of its own; the other sides must have as many.
    #[arg(long, value_name = "N", default_value = "1",
          value_parser = clap::value_parser!(u16).range(1..=*THREADS.end() as i64))]
    threads: u16,

    /// CPU to stay on.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    #[command(flatten)]
    pub timing: Timing,
}

#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Side {
    /// Wait here for the side that connects; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Begin with the process at this address, or with those at several.
    #[arg(long, value_name = "ADDR:PORT,...", value_delimiter = ',')]
    connect: Vec<SocketAddr>,
}

pub fn run(args: &TokenArgs, begin: Begin) -> Result<Report> {
    machine::pin(args.cpu)?;
    let work = Work::lasting(Duration::from_micros(args.compute_us.into()))?;
    if let Some(address) = args.side.listen {
        let peers = accept(address, args, &begin)?;
        return in_threads(peers, begin.bounds()?, |peer, bounds| respond(peer, work, bounds));
    }
    let connect = || args.side.connect.iter().map(|address| Peer::connect(*address, args.receiver)).collect();
    let peers = (0..args.threads).map(|_| connect()).collect::<Result<_>>()?;
    begin.announce(None)?;
    in_threads(peers, begin.bounds()?, |peers, bounds| initiate(peers, work, bounds))
}

/// Nobody listens any more when all have come: one that is too many is to fail and not to wait.
fn accept(address: SocketAddr, args: &TokenArgs, begin: &Begin) -> Result<Vec<Peer>> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    begin.announce(Some(listener.local_addr()?))?;
    (0..args.threads).map(|_| Peer::accept(&listener, args.receiver)).collect()
}

/// What a thread has measured.
struct Part {
    report: Report,
    /// Of the side that starts the token.
    record: Option<Record>,
}

/// Passes tokens with each peer, or each set of them, in a thread for each, of which this is one. So a job of one
/// thread is a process of one, and no task is there that is not counted.
fn in_threads<P: Send>(
    mut peers: Vec<P>,
    bounds: Bounds,
    pass: impl Fn(P, Bounds) -> Result<Part> + Sync,
) -> Result<Report> {
    let pass = &pass;
    let last = peers.pop().context("no peer")?;
    let parts = thread::scope(|scope| {
        let start = |peer| thread::Builder::new().spawn_scoped(scope, move || pass(peer, bounds));
        let others = peers.into_iter().map(start).collect::<Result<Vec<_>, _>>().context("cannot start a thread")?;
        let ours = pass(last, bounds);
        let others = others.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked"))?);
        others.chain([ours]).collect::<Result<Vec<Part>>>()
    })?;
    total(parts)
}

/// They are of the same interval.
fn total(parts: Vec<Part>) -> Result<Report> {
    let tasks = parts.len();
    let cpu_seconds = parts.iter().map(|part| part.report.cpu_seconds).sum();
    let seconds = parts.first().context("no thread")?.report.seconds;
    let records = parts.into_iter().filter_map(|part| part.record);
    let round_trips = records.reduce(Record::merge).map(Record::figures);
    Ok(Report { seconds, cpu_seconds, tasks, round_trips, loops: None })
}

fn respond(mut peer: Peer, work: Work, bounds: Bounds) -> Result<Part> {
    let interval = Interval::begin(bounds)?;
    while peer.receive()? {
        work.run();
        if !peer.send()? {
            break;
        }
    }
    check_complete()?;
    Ok(Part { report: Report::of(&interval), record: None })
}

/// The work of both sides is part of a round trip.
fn initiate(mut peers: Vec<Peer>, work: Work, bounds: Bounds) -> Result<Part> {
    let interval = Interval::begin(bounds)?;

    // The clock is read once a round trip, which is the end of one and the start of the next.
    let mut record = Record::new(bounds.end_ns)?;
    let mut started = monotonic_ns();
    while all(&mut peers, Peer::send)? && all(&mut peers, Peer::receive)? {
        let now = monotonic_ns();
        record.round_trip(started, now, phase());
        started = now;
        work.run();
    }
    record.round_trip(started, monotonic_ns(), phase());
    check_complete()?;
    Ok(Part { report: Report::of(&interval), record: Some(record) })
}

/// What is to be done with each; false if one has left.
fn all(peers: &mut [Peer], done: fn(&mut Peer) -> Result<bool>) -> Result<bool> {
    peers.iter_mut().try_fold(true, |all, peer| Ok(done(peer)? && all))
}

/// An interval that the peer cut short is no measurement.
fn check_complete() -> Result<()> {
    if phase() < Phase::Linger {
        bail!("the peer left before the measurement was over");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn part(cpu_seconds: f64, round_trip_ns: u64) -> Part {
        let mut record = Record::new(10_000).unwrap();
        record.round_trip(0, round_trip_ns, Phase::Measured);
        let report = Report { seconds: 0.5, cpu_seconds, tasks: 1, round_trips: None, loops: None };
        Part { report, record: Some(record) }
    }

    #[test]
    fn threads_add_up_to_a_job() {
        let report = total(vec![part(0.125, 500), part(0.25, 1_000), part(0.125, 2_000)]).unwrap();
        assert_eq!((report.seconds, report.cpu_seconds, report.tasks), (0.5, 0.5, 3));
        let trips = report.round_trips.unwrap();
        assert_eq!((trips.count, trips.p50_us, trips.max_us), (3, 1.0, 2.0));
    }

    #[test]
    fn a_thread_that_fails_fails_the_job() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let peer = |_| Peer::connect(listener.local_addr().unwrap(), Receiver::Block).unwrap();
        let (bounds, threads) = (Bounds::new(0, Duration::ZERO), AtomicUsize::new(0));
        let result = in_threads((0..3).map(peer).collect(), bounds, |_, _| match threads.fetch_add(1, Relaxed) {
            1 => bail!("no luck"),
            _ => Ok(part(0.1, 1_000)),
        });
        assert_eq!(result.unwrap_err().to_string(), "no luck");
        assert_eq!(threads.load(Relaxed), 3, "one for each peer");
    }
}
