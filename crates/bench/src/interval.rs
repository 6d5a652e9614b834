// SPDX-License-Identifier: GPL-2.0-only
//! The measured interval of a thread, at no cost to what it measures.
//!
//! A worker warms up, is measured, and goes on as a load for the others until all of them have been
//! measured. It must not read the clock as it works: in an emulated machine that costs more than the work.
//! So timers send a signal at each boundary and the handler samples. A thread that is off the CPU at a
//! boundary gets the signal when it runs next, which is exact all the same: meanwhile it has neither used
//! CPU time nor made progress. That holds for one thread and not for a process of several, so each has an
//! interval of its own, and what they measured is added up.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;

/// How long a worker goes on as a load after its interval: longer than two nodes' intervals are apart.
pub const LINGER: Duration = Duration::from_millis(250);

/// A worker that blocks just after it looked at its phase gets the last signal again.
const STOP_AGAIN: Duration = Duration::from_millis(50);

/// Where a worker is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Phase {
    WarmUp,
    Measured,
    Linger,
    Stop,
}

/// When workers are measured (`CLOCK_MONOTONIC`).
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl Bounds {
    pub fn new(start_ns: u64, length: Duration) -> Bounds {
        Bounds { start_ns, end_ns: start_ns + length.as_nanos() as u64 }
    }

    fn stop_ns(self) -> u64 {
        self.end_ns + LINGER.as_nanos() as u64
    }
}

/// What the signal handler works on. It reaches only statics, and a thread has one interval.
struct State {
    phase: AtomicU8,
    start_ns: AtomicU64,
    end_ns: AtomicU64,
    stop_ns: AtomicU64,
    cpu_at_start_ns: AtomicU64,
    cpu_at_end_ns: AtomicU64,
}

thread_local! {
    // A constant that nothing has to drop is in memory from the thread's first moment, so a handler may use it.
    static STATE: State = const {
        State {
            phase: AtomicU8::new(Phase::WarmUp as u8),
            start_ns: AtomicU64::new(u64::MAX),
            end_ns: AtomicU64::new(u64::MAX),
            stop_ns: AtomicU64::new(u64::MAX),
            cpu_at_start_ns: AtomicU64::new(0),
            cpu_at_end_ns: AtomicU64::new(0),
        }
    };
}

/// The interval of the thread that began it, which lasts as long as this value.
pub struct Interval {
    bounds: Bounds,
    // They also keep the value in its thread, which alone can read what was sampled.
    _timers: Vec<Timer>,
}

impl Interval {
    /// Measures this thread between `bounds`.
    pub fn begin(bounds: Bounds) -> Result<Interval> {
        STATE.with(|state| {
            state.start_ns.store(bounds.start_ns, Relaxed);
            state.end_ns.store(bounds.end_ns, Relaxed);
            state.stop_ns.store(bounds.stop_ns(), Relaxed);
        });

        // Without SA_RESTART, so that a signal ends a receive that would wait for ever.
        let action = SigAction::new(SigHandler::Handler(on_boundary), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler reads clocks and stores to atomics, both of which a handler may do.
        unsafe { sigaction(Signal::SIGALRM, &action) }.context("cannot handle SIGALRM")?;

        let (once, again) = (Duration::ZERO, STOP_AGAIN);
        let alarms = [(bounds.start_ns, once), (bounds.end_ns, once), (bounds.stop_ns(), again)];
        let timers = alarms.into_iter().map(|(at_ns, again)| alarm(at_ns, again)).collect::<Result<_>>()?;
        Ok(Interval { bounds, _timers: timers })
    }

    /// Its length.
    pub fn seconds(&self) -> f64 {
        Duration::from_nanos(self.bounds.end_ns - self.bounds.start_ns).as_secs_f64()
    }

    /// The CPU time of this thread in it, system and user. Complete from [`Phase::Linger`] on.
    pub fn cpu_seconds(&self) -> f64 {
        let cpu_ns = STATE.with(|s| s.cpu_at_end_ns.load(Relaxed).saturating_sub(s.cpu_at_start_ns.load(Relaxed)));
        cpu_ns as f64 / 1e9
    }
}

/// The phase that this thread is in: one load from memory.
pub fn phase() -> Phase {
    STATE.with(State::phase)
}

impl State {
    fn phase(&self) -> Phase {
        match self.phase.load(Relaxed) {
            0 => Phase::WarmUp,
            1 => Phase::Measured,
            2 => Phase::Linger,
            _ => Phase::Stop,
        }
    }

    /// One signal may stand for several boundaries, so the clock says which have passed.
    fn sample(&self, now_ns: u64, cpu_ns: u64) {
        if self.phase() == Phase::WarmUp && now_ns >= self.start_ns.load(Relaxed) {
            self.cpu_at_start_ns.store(cpu_ns, Relaxed);
            self.phase.store(Phase::Measured as u8, Relaxed);
        }
        if self.phase() == Phase::Measured && now_ns >= self.end_ns.load(Relaxed) {
            self.cpu_at_end_ns.store(cpu_ns, Relaxed);
            self.phase.store(Phase::Linger as u8, Relaxed);
        }
        if self.phase() == Phase::Linger && now_ns >= self.stop_ns.load(Relaxed) {
            self.phase.store(Phase::Stop as u8, Relaxed);
        }
    }
}

/// `CLOCK_MONOTONIC` in ns.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

/// The CPU time of this thread in ns.
pub fn thread_cpu_ns() -> u64 {
    clock_ns(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn clock_ns(clock: ClockId) -> u64 {
    // The two clocks read here exist on every Linux.
    clock_gettime(clock).map_or(0, |t| Duration::from(t).as_nanos() as u64)
}

/// A signal to this thread at `at_ns`, and then again and again unless that is zero.
fn alarm(at_ns: u64, again: Duration) -> Result<Timer> {
    let notify = SigevNotify::SigevThreadId { signal: Signal::SIGALRM, thread_id: gettid().as_raw(), si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify)).context("cannot create a timer")?;
    let first = TimeSpec::from_duration(Duration::from_nanos(at_ns));
    let expiration = match again {
        Duration::ZERO => Expiration::OneShot(first),
        _ => Expiration::IntervalDelayed(first, TimeSpec::from_duration(again)),
    };
    timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME).context("cannot set a timer")?;
    Ok(timer)
}

extern "C" fn on_boundary(_: libc::c_int) {
    let (now_ns, cpu_ns) = (monotonic_ns(), thread_cpu_ns());
    STATE.with(|state| state.sample(now_ns, cpu_ns));
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::pause;
    use std::thread;

    #[test]
    fn each_thread_gets_its_own_signals() {
        let bounds = Bounds::new(monotonic_ns(), Duration::from_millis(1));
        let sleep_through_it = move || {
            let interval = Interval::begin(bounds).unwrap();
            // The last signal comes again, so it cannot be missed just before the pause.
            while phase() < Phase::Stop {
                pause();
            }
            interval.seconds()
        };
        let threads = [thread::spawn(sleep_through_it), thread::spawn(sleep_through_it)];
        assert_eq!(threads.map(|thread| thread.join().unwrap()), [0.001; 2]);
        assert_eq!(phase(), Phase::WarmUp, "this thread has not begun");
    }

    #[test]
    fn one_signal_may_stand_for_all_boundaries() {
        STATE.with(|state| {
            for (at, value) in [(&state.start_ns, 10), (&state.end_ns, 20), (&state.stop_ns, 30)] {
                at.store(value, Relaxed);
            }
            state.sample(9, 1);
            assert_eq!(state.phase(), Phase::WarmUp);
            state.sample(35, 7);
            assert_eq!(state.phase(), Phase::Stop);
            assert_eq!((state.cpu_at_start_ns.load(Relaxed), state.cpu_at_end_ns.load(Relaxed)), (7, 7));
        });
    }
}
