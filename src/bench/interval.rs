// SPDX-License-Identifier: GPL-2.0-only
//! The measured interval of a process, at no cost to what it measures.
//!
//! A worker warms up, is measured, and goes on as a load for the others until all of them have been
//! measured. It must not read the clock as it works: in an emulated machine that costs more than the work.
//! So timers send it a signal at each boundary and the handler samples. A process that is off the CPU at a
//! boundary gets the signal when it runs next, which is exact all the same: meanwhile it has neither used
//! CPU time nor made progress.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::{SaFlags, SigAction, SigEvent, SigHandler, SigSet, SigevNotify, Signal, sigaction};
use nix::sys::time::TimeSpec;
use nix::sys::timer::{Expiration, Timer, TimerSetTimeFlags};
use nix::time::{ClockId, clock_gettime};

/// How long a worker goes on as a load after its interval. Longer than a round of all tasks of its CPU, in
/// which everyone gets to sample, and longer than two nodes' intervals are apart.
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

// A signal handler reaches only statics; a process has one interval.
static PHASE: AtomicU8 = AtomicU8::new(Phase::WarmUp as u8);
static START_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static END_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static STOP_NS: AtomicU64 = AtomicU64::new(u64::MAX);
static CPU_AT_START_NS: AtomicU64 = AtomicU64::new(0);
static CPU_AT_END_NS: AtomicU64 = AtomicU64::new(0);

/// The interval of this process, which lasts as long as this value.
pub struct Interval {
    seconds: f64,
    _timers: Vec<Timer>,
}

impl Interval {
    /// Measures for `length` from `start_ns` on (`CLOCK_MONOTONIC`).
    pub fn begin(start_ns: u64, length: Duration) -> Result<Interval> {
        let end_ns = start_ns + length.as_nanos() as u64;
        let stop_ns = end_ns + LINGER.as_nanos() as u64;
        START_NS.store(start_ns, Relaxed);
        END_NS.store(end_ns, Relaxed);
        STOP_NS.store(stop_ns, Relaxed);

        // Without SA_RESTART, so that a signal ends a receive that would wait for ever.
        let action = SigAction::new(SigHandler::Handler(on_boundary), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler reads clocks and stores to atomics, both of which a handler may do.
        unsafe { sigaction(Signal::SIGALRM, &action) }.context("cannot handle SIGALRM")?;

        let timers = [start_ns, end_ns, stop_ns].into_iter().map(alarm_at).collect::<Result<_>>()?;
        Ok(Interval { seconds: length.as_secs_f64(), _timers: timers })
    }

    /// Its length.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The CPU time of this process in it, system and user. Complete from [`Phase::Linger`] on.
    pub fn cpu_seconds(&self) -> f64 {
        CPU_AT_END_NS.load(Relaxed).saturating_sub(CPU_AT_START_NS.load(Relaxed)) as f64 / 1e9
    }

    /// Its end (`CLOCK_MONOTONIC`).
    pub fn end_ns(&self) -> u64 {
        END_NS.load(Relaxed)
    }
}

/// The phase that this process is in: one load from memory.
pub fn phase() -> Phase {
    match PHASE.load(Relaxed) {
        0 => Phase::WarmUp,
        1 => Phase::Measured,
        2 => Phase::Linger,
        _ => Phase::Stop,
    }
}

/// `CLOCK_MONOTONIC` in ns.
pub fn monotonic_ns() -> u64 {
    clock_ns(ClockId::CLOCK_MONOTONIC)
}

fn clock_ns(clock: ClockId) -> u64 {
    // The two clocks read here exist on every Linux.
    clock_gettime(clock).map_or(0, |t| Duration::from(t).as_nanos() as u64)
}

fn alarm_at(at_ns: u64) -> Result<Timer> {
    let notify = SigevNotify::SigevSignal { signal: Signal::SIGALRM, si_value: 0 };
    let mut timer = Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(notify)).context("cannot create a timer")?;
    let first = TimeSpec::from_duration(Duration::from_nanos(at_ns));
    let expiration = Expiration::IntervalDelayed(first, TimeSpec::from_duration(STOP_AGAIN));
    let expiration = if at_ns == STOP_NS.load(Relaxed) { expiration } else { Expiration::OneShot(first) };
    timer.set(expiration, TimerSetTimeFlags::TFD_TIMER_ABSTIME).context("cannot set a timer")?;
    Ok(timer)
}

/// One signal may stand for several boundaries, so the clock says which have passed.
extern "C" fn on_boundary(_: libc::c_int) {
    let now = monotonic_ns();
    let cpu = clock_ns(ClockId::CLOCK_PROCESS_CPUTIME_ID);

    if phase() == Phase::WarmUp && now >= START_NS.load(Relaxed) {
        CPU_AT_START_NS.store(cpu, Relaxed);
        PHASE.store(Phase::Measured as u8, Relaxed);
    }
    if phase() == Phase::Measured && now >= END_NS.load(Relaxed) {
        CPU_AT_END_NS.store(cpu, Relaxed);
        PHASE.store(Phase::Linger as u8, Relaxed);
    }
    if phase() == Phase::Linger && now >= STOP_NS.load(Relaxed) {
        PHASE.store(Phase::Stop as u8, Relaxed);
    }
}
