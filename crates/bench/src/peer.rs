// SPDX-License-Identifier: GPL-2.0-only
//! The connection that a token goes over: how its two ends meet, and how a message gets across.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{MsgFlags, recv};

use crate::interval::{Phase, phase, thread_cpu_ns};
use crate::receiver::Receiver;

/// The thesis's and Zhang's token is small; 128 bytes are a message with a header of a library.
pub const MESSAGE: usize = 128;

/// Polls whose length is taken (thesis 4.2.3): the clock is not read between them.
const SAMPLE: u64 = 200;
const SAMPLES: usize = 5;

/// For a peer that has not started yet.
pub const MEETING: Duration = Duration::from_secs(20);

/// The other side of the connection. What ends a transfer, and is no error, is the end of this thread's
/// time or of the peer's.
pub struct Peer {
    stream: TcpStream,
    /// A receive that has polled so often in vain blocks.
    polls: u64,
    /// A receive waits in poll().
    awaits: bool,
    message: [u8; MESSAGE],
}

impl Peer {
    /// The next one that comes to `listener`.
    pub fn accept(listener: &TcpListener, receiver: Receiver) -> Result<Peer> {
        let mut fds = [PollFd::new(listener.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(MEETING).context("timeout")?;
        if poll(&mut fds, timeout).context("cannot wait for the peer")? == 0 {
            bail!("no peer connected within {} s", MEETING.as_secs());
        }
        Peer::new(listener.accept().context("cannot accept the peer")?.0, receiver)
    }

    /// The one at `address`, which may still be on its way there.
    pub fn connect(address: SocketAddr, receiver: Receiver) -> Result<Peer> {
        let deadline = Instant::now() + MEETING;
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            match TcpStream::connect_timeout(&address, left) {
                Ok(stream) => return Peer::new(stream, receiver),
                Err(error) if Instant::now() >= deadline => {
                    return Err(error).with_context(|| format!("cannot connect to {address}"));
                }
                Err(_) => std::thread::sleep(Duration::from_millis(50)),
            }
        }
    }

    fn new(stream: TcpStream, receiver: Receiver) -> Result<Peer> {
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        let polls = receiver.polls(|length| polls_within(&stream, length));
        Ok(Peer { stream, polls, awaits: receiver == Receiver::Poll, message: [0; MESSAGE] })
    }

    /// False: there will be no further message.
    pub fn receive(&mut self) -> Result<bool> {
        let (mut filled, mut polls) = (0, 0);
        while filled < MESSAGE {
            if self.awaits {
                // A signal ends it too.
                let _ = poll(&mut [PollFd::new(self.stream.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE);
            }
            let flags = if polls < self.polls { MsgFlags::MSG_DONTWAIT } else { MsgFlags::empty() };
            match recv(self.stream.as_raw_fd(), &mut self.message[filled..], flags) {
                Ok(0) | Err(Errno::ECONNRESET) => return Ok(false),
                Ok(n) => filled += n,
                Err(Errno::EAGAIN | Errno::EINTR) if phase() == Phase::Stop => return Ok(false),
                Err(Errno::EAGAIN | Errno::EINTR) => polls += 1,
                Err(error) => return Err(error).context("cannot receive the token"),
            }
        }
        Ok(phase() < Phase::Stop)
    }

    /// False: the peer has left.
    pub fn send(&mut self) -> Result<bool> {
        match self.stream.write_all(&self.message) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset) => Ok(false),
            Err(error) => Err(error).context("cannot send the token"),
        }
    }
}

/// How many polls of a socket from which nothing comes yet take so much CPU time, by the fastest of some samples: a
/// hypervisor's pause counts as CPU time.
pub fn polls_within(socket: &impl AsRawFd, length: Duration) -> u64 {
    let sample_ns = || {
        let before_ns = thread_cpu_ns();
        for _ in 0..SAMPLE {
            let _ = recv(socket.as_raw_fd(), &mut [0], MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_PEEK);
        }
        thread_cpu_ns() - before_ns
    };
    let fastest_ns = (0..SAMPLES).map(|_| sample_ns()).min().unwrap_or(0);
    length.as_nanos() as u64 * SAMPLE / fastest_ns.max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_two_phase_receive_polls_for_a_while_and_sleeps() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = Peer::connect(listener.local_addr().unwrap(), Receiver::Block).unwrap();
        let mut peer = Peer::accept(&listener, Receiver::Twophase).unwrap();
        let late = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(500));
            sender.send().unwrap()
        });
        let before_ns = thread_cpu_ns();
        assert!(peer.receive().unwrap() && late.join().unwrap());
        let used_us = (thread_cpu_ns() - before_ns) / 1000;
        assert!((400..100_000).contains(&used_us), "1600 us of 500 ms, not {used_us}");
    }
}
