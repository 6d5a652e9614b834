// SPDX-License-Identifier: GPL-2.0-only
//! `bench token`: the smallest parallel job, two processes that pass a message to and fro over TCP.
//!
//! The side that connects starts the token and measures its round trips. A receiver either spins, which
//! is a receive that does not wait, again and again, as message passing libraries do it, or blocks in it.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use hdrhistogram::Histogram;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};

use super::interval::{Phase, monotonic_ns, phase};
use super::machine;
use super::protocol::Receiver;
use super::worker::{Begin, Report, RoundTrips, Timing};

/// The thesis's and Zhang's token is small; 128 bytes are a message with a header of a library.
const MESSAGE: usize = 128;

/// For a peer that has not started yet.
const MEETING: Duration = Duration::from_secs(20);

/// Pass a token between two processes and measure its round trips.
#[derive(Clone, Debug, clap::Args)]
pub struct TokenArgs {
    #[command(flatten)]
    side: Side,

    /// How to wait for a message.
    #[arg(long, value_enum, default_value = "spin")]
    receiver: Receiver,

    /// CPU to stay on.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    #[command(flatten)]
    pub timing: Timing,
}

#[derive(Clone, Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Side {
    /// Wait for the token here; port 0 takes a free one.
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<SocketAddr>,

    /// Start the token, towards this address.
    #[arg(long, value_name = "ADDR:PORT")]
    connect: Option<SocketAddr>,
}

pub fn run(args: &TokenArgs, begin: Begin) -> Result<Report> {
    machine::pin(args.cpu)?;
    match (args.side.listen, args.side.connect) {
        (Some(address), _) => respond(address, args.receiver, begin),
        (_, Some(address)) => initiate(address, args.receiver, begin),
        _ => bail!("neither an address to listen on nor one to connect to"),
    }
}

fn respond(address: SocketAddr, receiver: Receiver, begin: Begin) -> Result<Report> {
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    begin.announce(Some(listener.local_addr()?))?;
    let mut peer = Peer::new(accept(&listener)?, receiver)?;
    let interval = begin.interval()?;

    while peer.receive()? && peer.send()? {}
    check_complete()?;
    Ok(Report::of(&interval, None))
}

fn initiate(address: SocketAddr, receiver: Receiver, begin: Begin) -> Result<Report> {
    let mut peer = Peer::new(connect(address)?, receiver)?;
    begin.announce(None)?;
    let interval = begin.interval()?;

    // The clock is read once a round trip, which is the end of one and the start of the next.
    let mut record = Record::new(interval.end_ns())?;
    let mut started = monotonic_ns();
    while peer.send()? && peer.receive()? {
        let now = monotonic_ns();
        record.round_trip(started, now, phase());
        started = now;
    }
    record.round_trip(started, monotonic_ns(), phase());
    check_complete()?;
    Ok(Report::of(&interval, Some(record.figures())))
}

/// An interval that the peer cut short is no measurement.
fn check_complete() -> Result<()> {
    if phase() < Phase::Linger {
        bail!("the peer left before the measurement was over");
    }
    Ok(())
}

/// The round trips of the interval.
struct Record {
    end_ns: u64,
    histogram_ns: Histogram<u64>,
    /// How long the one under way at the end had taken by then: it may be the longest of all.
    unfinished_ns: u64,
}

impl Record {
    fn new(end_ns: u64) -> Result<Record> {
        // Up to a minute, to one part in a thousand.
        let histogram_ns = Histogram::new_with_bounds(1, 60_000_000_000, 3).context("no histogram")?;
        Ok(Record { end_ns, histogram_ns, unfinished_ns: 0 })
    }

    fn round_trip(&mut self, started: u64, now: u64, phase: Phase) {
        if phase == Phase::Measured {
            self.histogram_ns.saturating_record(now - started);
        } else if now >= self.end_ns && started < self.end_ns {
            self.unfinished_ns = self.end_ns - started;
        }
    }

    /// If there was none at all, the one under way is all that is known.
    fn figures(mut self) -> RoundTrips {
        let count = self.histogram_ns.len();
        if count == 0 {
            self.histogram_ns.saturating_record(self.unfinished_ns);
        }
        let us = |ns: u64| ns as f64 / 1e3;
        RoundTrips {
            count,
            p50_us: us(self.histogram_ns.value_at_quantile(0.5)),
            p99_us: us(self.histogram_ns.value_at_quantile(0.99)),
            max_us: us(self.histogram_ns.max().max(self.unfinished_ns)),
        }
    }
}

/// The other side of the connection. What ends a transfer, and is no error, is the end of this process's
/// time or of the peer's.
struct Peer {
    stream: TcpStream,
    flags: MsgFlags,
    message: [u8; MESSAGE],
}

impl Peer {
    fn new(stream: TcpStream, receiver: Receiver) -> Result<Peer> {
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        let flags = match receiver {
            Receiver::Spin => MsgFlags::MSG_DONTWAIT,
            Receiver::Block => MsgFlags::empty(),
        };
        Ok(Peer { stream, flags, message: [0; MESSAGE] })
    }

    /// False: there will be no further message.
    fn receive(&mut self) -> Result<bool> {
        let mut filled = 0;
        while filled < MESSAGE {
            match recv(self.stream.as_raw_fd(), &mut self.message[filled..], self.flags) {
                Ok(0) | Err(Errno::ECONNRESET) => return Ok(false),
                Ok(n) => filled += n,
                Err(Errno::EAGAIN | Errno::EINTR) if phase() == Phase::Stop => return Ok(false),
                Err(Errno::EAGAIN | Errno::EINTR) => {}
                Err(error) => return Err(error).context("cannot receive the token"),
            }
        }
        Ok(phase() < Phase::Stop)
    }

    /// False: the peer has left.
    fn send(&mut self) -> Result<bool> {
        match self.stream.write_all(&self.message) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(false),
            Err(error) => Err(error).context("cannot send the token"),
        }
    }
}

fn accept(listener: &TcpListener) -> Result<TcpStream> {
    let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
    let timeout = PollTimeout::try_from(MEETING).context("timeout")?;
    if poll(&mut fds, timeout).context("cannot wait for the peer")? == 0 {
        bail!("no peer connected within {} s", MEETING.as_secs());
    }
    Ok(listener.accept().context("cannot accept the peer")?.0)
}

/// The peer may still be on its way.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let deadline = Instant::now() + MEETING;
    loop {
        let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        match TcpStream::connect_timeout(&address, left) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= deadline => {
                return Err(error).with_context(|| format!("cannot connect to {address}"));
            }
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_what_ends_in_the_interval() {
        let mut record = Record::new(10_000).unwrap();
        record.round_trip(0, 1_000, Phase::WarmUp);
        record.round_trip(1_000, 3_000, Phase::Measured);
        record.round_trip(3_000, 4_000, Phase::Measured);
        record.round_trip(4_000, 12_000, Phase::Linger);
        record.round_trip(12_000, 13_000, Phase::Linger);
        let figures = record.figures();
        assert_eq!(figures.count, 2);
        assert_eq!(figures.p50_us, 1.0);
        assert_eq!(figures.max_us, 6.0, "the one under way at the end took 6 µs of the interval");
    }

    #[test]
    fn no_round_trip_at_all_is_as_long_as_the_interval() {
        let mut record = Record::new(10_000).unwrap();
        record.round_trip(0, 12_000, Phase::Linger);
        let figures = record.figures();
        assert_eq!(figures.count, 0);
        // The histogram is right to one part in a thousand.
        assert!((figures.p50_us - 10.0).abs() < 0.02 && (figures.max_us - 10.0).abs() < 0.02, "{figures:?}");
    }
}
