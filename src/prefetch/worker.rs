// SPDX-License-Identifier: GPL-2.0-only
//! The thread that sends what the BPF side asks for, and hears what others send.
//!
//! It is a real-time thread, of the lowest priority: what it has to say is of use for a part of a slice, and in the
//! order of the tasks that are scheduled here it would have its turn when that is over. It takes some tens of us at the
//! start of a slice. So that nobody who sends datagrams can have the CPU by it, it has a [`Budget`].

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::thread::{JoinHandle, sleep};
use std::time::Duration;

use anyhow::Result;
use libbpf_rs::libbpf_sys::{bpf_prog_test_run_opts, bpf_test_run_opts};
use libbpf_rs::{MapHandle, ProgramMut, RingBufferBuilder};
use log::{debug, warn};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::time::{ClockId, clock_gettime};

use super::ear::Ear;
use super::{Port, read, to_address};
use crate::node::privileges;
use cosched_rules::intf::{self, cosched_prefetch, cosched_prefetch_news, cosched_wire_key};
use cosched_rules::native;

/// So many datagrams are heard at once.
const BATCH: usize = 16;
/// What of a period the thread may have of its CPU: for some hundred prefetches, where the nodes of a job send a few.
const ALLOWANCE: Duration = Duration::from_millis(2);
const PERIOD: Duration = Duration::from_millis(40);
/// So many periods it rests at most: who ends the scheduler waits for it.
const PERIODS_MAX: u32 = 10;
/// Longer than what is heard, so that a longer one shows.
const LONGEST: usize = native::PREFETCH_LENGTH + 1;

/// The thread of one run of the scheduler. It ends when this is dropped.
pub struct Worker {
    /// Closed, it says stop.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts it, with the map `prefetch_ring` and the program `tell_prefetch`.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(port: &Port, ring: MapHandle, tell: &ProgramMut<'_>) -> Result<Worker> {
        let voice = Voice {
            tell: tell.as_fd().try_clone_to_owned()?,
            port: port.settings.port,
            key: port.key.to_bpf(),
            sockets: BTreeMap::new(),
            last_ns: 0,
        };
        let hands = Hands { voice, ear: Ear::new(port.peers.clone(), port.key), socket: port.socket.try_clone()? };
        let (stop, stopped) = UnixStream::pair()?;
        let work = move || {
            if let Err(error) = hands.work(&ring, &stopped) {
                warn!("prefetches are no longer sent nor heard: {error:#}");
            }
        };
        let thread = privileges::thread("prefetch", privileges::SYS_NICE, work)?;
        Ok(Worker { stop: Some(stop), thread: Some(thread) })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread has.
struct Hands {
    voice: Voice,
    ear: Ear,
    socket: UdpSocket,
}

impl Hands {
    /// Until `stopped` says so.
    fn work(mut self, ring: &MapHandle, stopped: &UnixStream) -> Result<()> {
        become_urgent();
        let mut budget = Budget { period: now(ClockId::CLOCK_MONOTONIC), had: now(ClockId::CLOCK_THREAD_CPUTIME_ID) };
        let wanted = RefCell::new(Vec::new());
        let mut builder = RingBufferBuilder::new();
        builder.add(ring, |bytes| {
            wanted.borrow_mut().extend(read(bytes));
            0
        })?;
        let entries = builder.build()?;
        loop {
            let mut fds =
                [ring.as_fd(), self.socket.as_fd(), stopped.as_fd()].map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            match poll(&mut fds, PollTimeout::NONE) {
                Ok(_) if fds[2].any().unwrap_or(true) => return Ok(()),
                Ok(_) | Err(nix::errno::Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
            entries.consume()?;
            for prefetch in wanted.take() {
                self.voice.send(prefetch);
            }
            self.hear();
            sleep(budget.rest(now(ClockId::CLOCK_MONOTONIC), now(ClockId::CLOCK_THREAD_CPUTIME_ID)));
        }
    }

    /// Hears what has come, up to [`BATCH`].
    fn hear(&mut self) {
        for _ in 0..BATCH {
            let mut datagram = [0; LONGEST];
            // What is told of one that could not be sent is not of interest here.
            let Ok((length, source)) = self.socket.recv_from(&mut datagram) else { return };
            let heard = self.ear.hear(&datagram[..length], source.ip(), tai_ns());
            self.voice.tell(match heard {
                Some(prefetch) => news(intf::cosched_prefetch_kind_COSCHED_PREFETCH_HEARD, prefetch),
                None => news(intf::cosched_prefetch_kind_COSCHED_PREFETCH_REFUSED, nothing()),
            });
        }
    }
}

/// Bounds the CPU time of a thread that others can wake: [`ALLOWANCE`] in a [`PERIOD`]. What the thread has had beyond
/// that counts in the periods that follow.
struct Budget {
    /// When the period began, on the clock of the system.
    period: Duration,
    /// What the thread had had by then and is counted for, on its own clock.
    had: Duration,
}

impl Budget {
    /// For how long to sleep at this moment, by either clock.
    fn rest(&mut self, now: Duration, taken: Duration) -> Duration {
        let passed = now.saturating_sub(self.period);
        if passed >= PERIOD {
            let periods = u32::try_from(passed.as_nanos() / PERIOD.as_nanos()).unwrap_or(u32::MAX);
            self.period = now;
            self.had = taken.min(self.had.saturating_add(ALLOWANCE.saturating_mul(periods)));
        }
        let owed = taken.saturating_sub(self.had).as_nanos() / ALLOWANCE.as_nanos();
        let rest = PERIOD * u32::try_from(owed).map_or(PERIODS_MAX, |periods| periods.min(PERIODS_MAX));
        rest.saturating_sub(now.saturating_sub(self.period))
    }
}

/// What goes out, to other nodes and to the BPF side.
struct Voice {
    tell: OwnedFd,
    port: u16,
    key: cosched_wire_key,
    /// By the address of this node that they send from.
    sockets: BTreeMap<IpAddr, UdpSocket>,
    /// The time of the last datagram, ns of TAI. No two have the same.
    last_ns: u64,
}

impl Voice {
    fn send(&mut self, mut prefetch: cosched_prefetch) {
        self.last_ns = tai_ns().max(self.last_ns + 1);
        prefetch.time_ns = self.last_ns;
        let datagram = native::prefetch_encode(&prefetch, &self.key);
        let to = (to_address(prefetch.flow.to), self.port);
        let sent = self.socket(to_address(prefetch.flow.from)).and_then(|socket| socket.send_to(&datagram, to));
        self.tell(match sent {
            Ok(_) => news(intf::cosched_prefetch_kind_COSCHED_PREFETCH_SENT, nothing()),
            Err(error) => {
                debug!("a prefetch to {} is lost: {error}", to.0);
                news(intf::cosched_prefetch_kind_COSCHED_PREFETCH_LOST, nothing())
            }
        });
    }

    /// One that sends from this address. The peer holds it against that of the connection.
    fn socket(&mut self, from: IpAddr) -> io::Result<&UdpSocket> {
        Ok(match self.sockets.entry(from) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => {
                let socket = UdpSocket::bind((from, 0))?;
                socket.set_nonblocking(true)?;
                place.insert(socket)
            }
        })
    }

    /// Runs the program `tell_prefetch`.
    fn tell(&self, mut news: cosched_prefetch_news) {
        let mut opts = bpf_test_run_opts {
            sz: size_of::<bpf_test_run_opts>() as u64,
            ctx_in: (&raw mut news).cast(),
            ctx_size_in: size_of::<cosched_prefetch_news>() as u32,
            ..Default::default()
        };
        // SAFETY: what the options point to is valid for the call.
        let code = unsafe { bpf_prog_test_run_opts(self.tell.as_raw_fd(), &mut opts) };
        if code != 0 {
            debug!("cannot run tell_prefetch: {}", io::Error::from_raw_os_error(-code));
        }
    }
}

fn news(kind: intf::cosched_prefetch_kind, prefetch: cosched_prefetch) -> cosched_prefetch_news {
    cosched_prefetch_news { prefetch, kind, reserved: 0 }
}

fn nothing() -> cosched_prefetch {
    // SAFETY: integers.
    unsafe { std::mem::zeroed() }
}

/// The time, ns of TAI.
fn tai_ns() -> u64 {
    u64::try_from(now(ClockId::CLOCK_TAI).as_nanos()).unwrap_or(u64::MAX)
}

fn now(clock: ClockId) -> Duration {
    clock_gettime(clock).map(Duration::from).unwrap_or_default()
}

/// Makes the calling thread a real-time one.
fn become_urgent() {
    let lowest = libc::sched_param { sched_priority: 1 };
    // SAFETY: reads its arguments. 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest) } != 0 {
        warn!("prefetches are sent and heard late: no real-time thread: {}", io::Error::last_os_error());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a thread has of 10 s that has something to do all the time, a turn of which takes `turn`.
    fn had(turn: Duration) -> Duration {
        let (mut time, mut taken) = (Duration::from_secs(100), Duration::from_secs(3));
        let mut budget = Budget { period: time, had: taken };
        let (began, before) = (time, taken);
        while time - began < Duration::from_secs(10) {
            time += turn;
            taken += turn;
            time += budget.rest(time, taken);
        }
        taken - before
    }

    #[test]
    fn a_flood_has_a_twentieth_of_the_cpu_and_no_more() {
        for turn_us in [10, 150, 1900, 2100, 15_000] {
            let had = had(Duration::from_micros(turn_us)).as_secs_f64() / 10.0;
            assert!((0.045..=0.055).contains(&had), "{had} of the CPU with turns of {turn_us} us");
        }
    }

    #[test]
    fn who_has_little_to_do_never_rests_and_saves_nothing_up() {
        let (mut time, mut taken) = (Duration::ZERO, Duration::ZERO);
        let mut budget = Budget { period: time, had: taken };
        for _ in 0..1000 {
            time += Duration::from_millis(20);
            taken += Duration::from_micros(500);
            assert_eq!(budget.rest(time, taken), Duration::ZERO);
        }
        taken += Duration::from_millis(3);
        assert!(budget.rest(time, taken) > Duration::ZERO, "it has saved an allowance up");
    }
}
