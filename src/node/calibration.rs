// SPDX-License-Identifier: GPL-2.0-only
//! What messages and switches cost on this node: the parameters of the rules for spinning.
//!
//! A process that waits should spin for 2L + 2o + W, the time until the answer comes if the message has to wake
//! the peer, and go on while messages arrive at least every 3W + 2o (A. C. Arpaci-Dusseau and D. E. Culler, *A
//! Cooperative Approach to Two-Phase Waiting*, section 3). L is the latency of a message, o what it takes of a
//! CPU to send or to receive one, W the time to wake and schedule a task that is blocked on one.
//!
//! Here a byte goes back and forth over a TCP connection of the loopback interface, in three ways:
//!
//! | a round trip between | takes |
//! |---|---|
//! | the two ends of one thread, where each message is there when it is received | 4o |
//! | two threads that spin, on two CPUs | 4o + 2L |
//! | two threads that sleep until a message comes, on two CPUs that other processes keep busy | 4o + 2L + 2W |
//!
//! A shared machine only ever adds time, so of the many round trips of a fixed time a quick one counts. The
//! threads run at the highest nice level: on a busy machine two that spin would hardly run at the same time else.
//! They end with the measurement, and the caller's CPUs and nice level stay as they are.
//!
//! The other processes make W what it is on a shared node: the task that is woken finds another address space on its
//! CPU and other data in the caches. Between two threads that hand one CPU to each other it looks several times
//! smaller, and receivers that spin for so long have their answer just after they fell asleep, every time.
//!
//! Where it lies:
//! - Loopback's L is not the network's, which is to be set by hand. It is the way from one CPU to another, without
//!   what the sender's call still does after the message is through; where that is more, L comes out as 0.
//! - Loopback's o is more than a wire's: the send does the receiver's interrupt work as well.
//! - W is longer where tasks use more of the caches than these do. To wake an idle CPU from deep sleep is not in it. On
//!   a machine with one CPU it is how late a thread wakes there that has slept for a while.
//! - The two CPUs are the first and the last that may be used, as a rule not of one core; others may be nearer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use cosched_rules::costs::Costs;
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::sys::prctl::set_timerslack;
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork};

/// For this long each of the three ways is tried.
const BUDGET: Duration = Duration::from_millis(150);
/// Of the round trips, one in so many may be quicker than the one that counts. The very quickest is no measure: a
/// sender that is preempted by the receiver has its answer without having slept.
const ONE_IN: usize = 10;
/// A message that takes longer will not come.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long a thread sleeps whose waking up is timed.
const NAP: Duration = Duration::from_millis(1);
/// No machine wakes and switches in less.
const LEAST_SWITCH_US: f64 = 0.05;

const NO_PANIC: &str = "a measurement does not panic";

type Working<T> = JoinHandle<Result<T>>;

/// What follows from the time of a round trip in one thread, between two that spin and between two that sleep.
fn from_round_trips(alone_us: f64, spinning_us: f64, sleeping_us: f64) -> Costs {
    // More latency than a switch takes would mean that the two that spin never ran at the same time.
    let spinning_us = spinning_us.min(f64::midpoint(alone_us, sleeping_us)).max(alone_us);
    let switch_us = ((sleeping_us - spinning_us) / 2.0).max(LEAST_SWITCH_US);
    // What has been rounded may differ by a bit.
    let latency_us = ((spinning_us - alone_us) / 2.0).min(switch_us);
    Costs { latency_us, overhead_us: alone_us / 4.0, switch_us }
}

/// What follows, on one CPU, from a round trip in one thread and the time that a task takes to wake.
fn on_one_cpu(alone_us: f64, wake_us: f64) -> Costs {
    Costs { latency_us: 0.0, overhead_us: alone_us / 4.0, switch_us: wake_us.max(LEAST_SWITCH_US) }
}

/// Measures the costs on the CPUs that the caller may use, in about half a second.
///
/// # Errors
///
/// The loopback interface is down, a CPU cannot be used, no message comes through, or the clock is too coarse.
pub fn measure() -> Result<Costs> {
    measure_on(&allowed_cpus()?)
}

fn allowed_cpus() -> Result<Vec<usize>> {
    let set = sched_getaffinity(Pid::from_raw(0)).context("cannot ask which CPUs may be used")?;
    Ok((0..CpuSet::count()).filter(|&cpu| set.is_set(cpu).unwrap_or(false)).collect())
}

fn measure_on(cpus: &[usize]) -> Result<Costs> {
    let (&cpu, others) = cpus.split_first().context("there is no CPU that may be used")?;
    let alone_us = alone_us(cpu)?;
    let Some(&other) = others.last() else {
        let _competitor = Competitor::start(cpu)?;
        return Ok(on_one_cpu(alone_us, wake_us(cpu)?));
    };
    let spinning_us = pair_us(cpu, other, true)?;
    let _competitors = [Competitor::start(cpu)?, Competitor::start(other)?];
    Ok(from_round_trips(alone_us, spinning_us, pair_us(cpu, other, false)?))
}

/// A round trip between the two ends of one thread.
fn alone_us(cpu: usize) -> Result<f64> {
    let (near, far) = connection(false)?;
    let trip = move || near.send().and_then(|()| far.answer()).and_then(|()| near.receive());
    on_cpu(cpu, || round_trip_us(trip))?.join().expect(NO_PANIC)
}

/// A round trip between two threads, which spin until a message comes or sleep.
fn pair_us(cpu: usize, other: usize, spins: bool) -> Result<f64> {
    let (near, far) = connection(spins)?;
    // It ends when the timer closes its end; if that was too early, the timer says why.
    let echo = on_cpu(other, move || {
        while far.answer().is_ok() {}
        Ok(())
    })?;
    let trip = move || near.send().and_then(|()| near.receive());
    let trip_us = on_cpu(cpu, || round_trip_us(trip))?.join().expect(NO_PANIC);
    echo.join().expect(NO_PANIC)?;
    trip_us
}

/// How late a thread wakes that has slept for a while.
fn wake_us(cpu: usize) -> Result<f64> {
    let late = || {
        // The kernel may have a sleep last longer by 50 us, to save interrupts.
        set_timerslack(1).context("cannot ask for sharp timers")?;
        let nap = || {
            thread::sleep(NAP);
            Ok(())
        };
        quick_us(repeat(nap)?.into_iter().map(|slept| slept.saturating_sub(NAP)).collect())
    };
    on_cpu(cpu, late)?.join().expect(NO_PANIC)
}

fn round_trip_us(trip: impl Fn() -> Result<()>) -> Result<f64> {
    quick_us(repeat(trip)?)
}

/// Does `what` until the time is over. How long it took each time.
fn repeat(what: impl Fn() -> Result<()>) -> Result<Vec<Duration>> {
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.is_empty() || begin.elapsed() < BUDGET {
        let start = Instant::now();
        what()?;
        times.push(start.elapsed());
    }
    Ok(times)
}

/// The time that counts.
fn quick_us(mut trips: Vec<Duration>) -> Result<f64> {
    let rank = trips.len() / ONE_IN;
    let quick = *trips.select_nth_unstable(rank).1;
    ensure!(!quick.is_zero(), "the clock is too coarse to time a message: give the costs by hand");
    Ok(quick.as_secs_f64() * 1e6)
}

/// Does `work` in a thread of its own, which stays on `cpu`.
fn on_cpu<T: Send + 'static>(cpu: usize, work: impl FnOnce() -> Result<T> + Send + 'static) -> Result<Working<T>> {
    let pinned = move || {
        let mut set = CpuSet::new();
        let pin = set.set(cpu).and_then(|()| sched_setaffinity(Pid::from_raw(0), &set));
        pin.with_context(|| format!("cannot run on CPU {cpu}: give the costs by hand"))?;
        // SAFETY: no memory is passed. It is of this thread alone, and without the right to it nothing changes.
        unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, -20) };
        work()
    };
    thread::Builder::new().name("calibration".into()).spawn(pinned).context("cannot start a thread")
}

/// A process that keeps a CPU busy, for as long as this lives.
struct Competitor(Pid);

impl Competitor {
    /// Of the class that everybody else preempts at once: what is measured is a switch, and not whose turn it is.
    fn start(cpu: usize) -> Result<Self> {
        let mut set = CpuSet::new();
        set.set(cpu).with_context(|| format!("cannot run on CPU {cpu}: give the costs by hand"))?;
        // SAFETY: other threads may hold locks, so until it ends the child only makes system calls.
        match unsafe { fork() }.context("cannot start a process")? {
            ForkResult::Parent { child } => Ok(Self(child)),
            ForkResult::Child => Self::compute(&set),
        }
    }

    fn compute(set: &CpuSet) -> ! {
        // SAFETY: about this process alone. Should it fail, W comes out smaller, which is no reason to measure nothing.
        unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
        set_class(0, libc::SCHED_IDLE);
        let _ = sched_setaffinity(Pid::from_raw(0), set);
        loop {
            std::hint::spin_loop();
        }
    }
}

impl Drop for Competitor {
    fn drop(&mut self) {
        // It takes CPU time to end, too, for which this class waits many seconds on a busy CPU.
        set_class(self.0.as_raw(), libc::SCHED_OTHER);
        let _ = kill(self.0, Signal::SIGKILL);
        let _ = waitpid(self.0, None);
    }
}

/// Puts a process, or with 0 this one, into a class without real-time priorities, if that is allowed.
fn set_class(pid: libc::pid_t, class: libc::c_int) {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: param outlives the call.
    unsafe { libc::sched_setscheduler(pid, class, &raw const param) };
}

/// One end of a connection, for messages of one byte.
struct End(TcpStream);

impl End {
    fn send(&self) -> Result<()> {
        (&self.0).write_all(&[0]).context("cannot send over the loopback interface")
    }

    /// The other end's part of a round trip.
    fn answer(&self) -> Result<()> {
        self.receive()?;
        self.send()
    }

    fn receive(&self) -> Result<()> {
        let mut since = None;
        loop {
            match (&self.0).read(&mut [0]) {
                Ok(0) => bail!("a connection over the loopback interface has ended early"),
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // The clock is read only when nothing is there: what is timed is the way of a message.
                    let waited = since.get_or_insert_with(Instant::now).elapsed();
                    ensure!(waited < PATIENCE, "no message came over the loopback interface: give the costs by hand");
                }
                Err(error) => return Err(error).context("cannot receive over the loopback interface"),
            }
        }
    }
}

fn connection(spins: bool) -> Result<(End, End)> {
    let connect = || -> io::Result<(End, End)> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let near = TcpStream::connect_timeout(&listener.local_addr()?, PATIENCE)?;
        let (far, _) = listener.accept()?;
        for end in [&near, &far] {
            end.set_nodelay(true)?;
            end.set_read_timeout(Some(PATIENCE))?;
            end.set_nonblocking(spins)?;
        }
        Ok((End(near), End(far)))
    };
    connect().context("cannot connect to 127.0.0.1: the loopback interface must be up")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_sensible(costs: Costs) {
        assert!(costs.overhead_us > 0.0 && costs.overhead_us.is_finite(), "{costs:?}");
        assert!(costs.switch_us >= LEAST_SWITCH_US && costs.switch_us.is_finite(), "{costs:?}");
        assert!((0.0..=costs.switch_us).contains(&costs.latency_us), "{costs:?}");
    }

    #[test]
    fn measures_soon_and_leaves_the_caller_where_it_was() {
        let before = allowed_cpus().unwrap();
        let begin = Instant::now();
        assert_sensible(measure().unwrap());
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert_eq!(allowed_cpus().unwrap(), before);
    }

    #[test]
    fn one_cpu_has_no_latency() {
        let costs = measure_on(&allowed_cpus().unwrap()[..1]).unwrap();
        assert_sensible(costs);
        assert_eq!(costs.latency_us, 0.0);
    }

    #[test]
    fn costs_follow_from_round_trips() {
        let costs = from_round_trips(8.0, 10.0, 16.0);
        assert_eq!(costs, Costs { latency_us: 1.0, overhead_us: 2.0, switch_us: 3.0 });
        let of = |spinning_us| {
            let Costs { latency_us, switch_us, .. } = from_round_trips(8.0, spinning_us, 14.0);
            (latency_us, switch_us)
        };
        assert_eq!([7.0, 10.0, 40_000.0].map(of), [(0.0, 3.0), (1.0, 2.0), (1.5, 1.5)]);
        assert_eq!(from_round_trips(8.0, 8.0, 7.0).switch_us, LEAST_SWITCH_US);
    }

    #[test]
    fn neither_the_quickest_nor_a_disturbed_round_trip_counts() {
        let quick_us_of = |us: &[u64]| quick_us(us.iter().copied().map(Duration::from_micros).collect()).unwrap();
        assert_eq!(quick_us_of(&[9, 4000, 2, 8, 7, 6, 5, 7, 7, 7]), 5.0);
        assert_eq!(quick_us_of(&[3]), 3.0);
        assert!(quick_us(vec![Duration::ZERO]).unwrap_err().to_string().contains("too coarse"));
    }

    #[test]
    fn errors_name_the_cause() {
        let no_cpu = format!("{:#}", measure_on(&[CpuSet::count()]).unwrap_err());
        assert!(no_cpu.starts_with("cannot run on CPU "), "{no_cpu}");
        let (near, far) = connection(true).unwrap();
        drop(far);
        assert!(near.receive().unwrap_err().to_string().contains("ended early"));
    }
}
