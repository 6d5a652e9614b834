// SPDX-License-Identifier: GPL-2.0-only
//! Datagrams between the processes of a job, of which each has one socket for all of its peers.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use serde::{Deserialize, Serialize};

use crate::peer::{MEETING, polls_within};

/// Of a message: what it says, its sender's rank, and how many processes the job has.
const HEADER: usize = 3;

/// The list of all processes has to fit into one datagram.
const LONGEST_LIST: usize = 4096;

/// What a message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Give me what I read from you.
    Read,
    Answer,
    /// I have come to the barrier.
    Arrived,
    /// All have.
    Over,
    /// What a process tells its neighbour after its computing.
    News,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Read, Kind::Answer, Kind::Arrived, Kind::Over, Kind::News];
}

/// What the first process tells each other one.
#[derive(Serialize, Deserialize)]
struct Job {
    rank: usize,
    /// Of the processes after the first, which is where this comes from.
    others: Vec<SocketAddr>,
}

/// The socket of a process, and its peers.
pub struct Datagrams {
    socket: UdpSocket,
    rank: usize,
    /// By rank, this process included.
    addresses: Vec<SocketAddr>,
    /// What is sent, and where what comes goes.
    message: Vec<u8>,
}

impl Datagrams {
    fn new(socket: UdpSocket, rank: usize, addresses: Vec<SocketAddr>) -> Datagrams {
        Datagrams { socket, rank, addresses, message: vec![0; HEADER] }
    }

    /// Messages have so many bytes, but no fewer than they need.
    pub fn with_bytes(mut self, bytes: u16) -> Datagrams {
        self.message.resize(usize::from(bytes).max(HEADER), 0);
        self
    }

    /// Waits at `address` for the first process of the job; `announce` hears where that is, since port 0 takes a free
    /// one.
    pub fn listen(address: SocketAddr, announce: impl FnOnce(SocketAddr) -> Result<()>) -> Result<Datagrams> {
        let socket = UdpSocket::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        announce(socket.local_addr()?)?;
        socket.set_read_timeout(Some(MEETING)).context("cannot set a timeout")?;
        let mut list = [0; LONGEST_LIST];
        let (length, first) = match socket.recv_from(&mut list) {
            Ok(came) => came,
            Err(_) => bail!("no first process came within {} s", MEETING.as_secs()),
        };
        socket.set_read_timeout(None).context("cannot set a timeout")?;
        let Job { rank, others } = serde_json::from_slice(&list[..length]).context("the first message is no job's")?;
        ensure!((1..=others.len()).contains(&rank), "a job of {} processes has no number {rank}", others.len() + 1);
        Ok(Datagrams::new(socket, rank, [first].into_iter().chain(others).collect()))
    }

    /// The first process of a job whose others, if it has any, wait at these addresses.
    pub fn connect(others: &[SocketAddr]) -> Result<Datagrams> {
        let is_ipv4 = others.first().is_none_or(SocketAddr::is_ipv4);
        let unbound: SocketAddr = if is_ipv4 { ([0, 0, 0, 0], 0).into() } else { ([0u16; 8], 0).into() };
        let socket = UdpSocket::bind(unbound).context("cannot have a socket")?;
        for (place, other) in others.iter().enumerate() {
            let job = serde_json::to_vec(&Job { rank: place + 1, others: others.to_vec() })?;
            ensure!(job.len() <= LONGEST_LIST, "these are too many processes");
            socket.send_to(&job, other).with_context(|| format!("cannot send to {other}"))?;
        }
        ensure!(others.len() < usize::from(u8::MAX), "a job has 255 processes at most");
        let addresses = [socket.local_addr()?].into_iter().chain(others.iter().copied()).collect();
        Ok(Datagrams::new(socket, 0, addresses))
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many processes the job has.
    pub fn number(&self) -> usize {
        self.addresses.len()
    }

    pub fn send(&mut self, to: usize, kind: Kind) -> Result<()> {
        self.message[..HEADER].copy_from_slice(&[kind as u8, self.rank as u8, self.addresses.len() as u8]);
        loop {
            match self.socket.send_to(&self.message, self.addresses[to]) {
                Ok(_) => return Ok(()),
                // A peer whose time was over first.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error).with_context(|| format!("cannot send to {}", self.addresses[to])),
            }
        }
    }

    /// The next message and its sender, if there is one.
    pub fn poll(&mut self) -> Result<Option<(usize, Kind)>> {
        self.next(MsgFlags::MSG_DONTWAIT)
    }

    /// The next message and its sender; waits for it, but no longer than for a signal.
    pub fn receive(&mut self) -> Result<Option<(usize, Kind)>> {
        self.next(MsgFlags::empty())
    }

    fn next(&mut self, flags: MsgFlags) -> Result<Option<(usize, Kind)>> {
        let length = match recv(self.socket.as_raw_fd(), &mut self.message, flags) {
            Ok(length) => length,
            Err(Errno::EAGAIN | Errno::EINTR | Errno::ECONNREFUSED) => return Ok(None),
            Err(error) => return Err(error).context("cannot receive"),
        };
        let &[kind, from, number, ..] = &self.message[..length] else { return Ok(None) };
        // Anybody can send to the port.
        let is_ours = usize::from(number) == self.addresses.len() && usize::from(from) < self.addresses.len();
        Ok(Kind::ALL.get(usize::from(kind)).filter(|_| is_ours).map(|kind| (from.into(), *kind)))
    }

    /// How many polls in vain take so long.
    pub fn polls_within(&self, length: Duration) -> u64 {
        polls_within(&self.socket, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::thread;

    #[test]
    fn processes_of_a_job_know_each_other() {
        let (found, addresses) = mpsc::channel();
        let others: Vec<_> = (0..2)
            .map(|_| {
                let found = found.clone();
                thread::spawn(move || {
                    let announce = |address| found.send(address).context("nobody takes it");
                    Datagrams::listen(([127, 0, 0, 1], 0).into(), announce).unwrap()
                })
            })
            .collect();
        let addresses: Vec<SocketAddr> = addresses.iter().take(2).collect();
        let mut first = Datagrams::connect(&addresses).unwrap().with_bytes(4096);
        let mut others: Vec<Datagrams> = others.into_iter().map(|other| other.join().unwrap()).collect();
        others.sort_by_key(Datagrams::rank);
        let [second, third] = &mut others[..] else { panic!("two") };

        assert_eq!((first.rank(), first.number()), (0, 3));
        third.send(1, Kind::Read).unwrap();
        assert_eq!(second.receive().unwrap(), Some((2, Kind::Read)));
        second.send(0, Kind::Arrived).unwrap();
        assert_eq!(first.receive().unwrap(), Some((1, Kind::Arrived)));
        assert_eq!(first.poll().unwrap(), None);
        first.send(2, Kind::Over).unwrap();
        assert_eq!(third.receive().unwrap(), Some((0, Kind::Over)), "of a long message the beginning is enough");
    }

    #[test]
    fn what_is_not_of_the_job_is_dropped() {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let mut process = Datagrams::new(socket, 0, vec![address; 3]);
        let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
        for message in [&[9, 1, 3][..], &[0, 3, 3], &[0, 1, 4], &[0, 1], &[]] {
            stranger.send_to(message, address).unwrap();
            assert_eq!(process.receive().unwrap(), None, "{message:?}");
        }
        stranger.send_to(&[3, 2, 3], address).unwrap();
        assert_eq!(process.receive().unwrap(), Some((2, Kind::Over)));
    }
}
