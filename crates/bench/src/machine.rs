// SPDX-License-Identifier: GPL-2.0-only
//! What the benchmark asks of the machine, and what it says of it.

use std::fs::read_to_string;

use anyhow::{Context, Result};
use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;

/// Keeps this process on `cpu`.
pub fn pin(cpu: Option<usize>) -> Result<()> {
    cpu.map_or(Ok(()), |cpu| pin_process(0, cpu))
}

/// Keeps another one there; 0 is this one.
pub fn pin_process(pid: u32, cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    set.set(cpu).with_context(|| format!("there can be no CPU {cpu}"))?;
    sched_setaffinity(Pid::from_raw(pid as i32), &set).with_context(|| format!("cannot run on CPU {cpu}"))
}

/// Makes this process run as soon as it wakes up, whatever competes, but not its children. What leads an
/// experiment sleeps in it and must come through when it is over. Without the right to, it waits its turn.
pub fn lead() {
    let param = libc::sched_param { sched_priority: 1 };
    // SAFETY: the kernel only reads `param`.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &param) };
}

/// Makes this process take only what nothing else wants.
pub fn idle() -> Result<()> {
    let param = libc::sched_param { sched_priority: 0 };
    // SAFETY: the kernel only reads `param`.
    let result = unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &param) };
    Errno::result(result).map(drop).context("cannot join the idle class")
}

/// Gives this process a nice level.
pub fn nice(level: u8) -> Result<()> {
    // SAFETY: there is no memory in it.
    let result = unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, level.into()) };
    Errno::result(result).map(drop).with_context(|| format!("cannot have the nice level {level}"))
}

/// Whether this machine's clock is its instructions (`tests/vm/run --virtual`), and what they do not show.
pub fn time() -> Time {
    let of = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    Time {
        is_virtual: of("VIRTUAL") == Some(1),
        switch_price_ns: of("SWITCH_NS").unwrap_or(0),
        ipi_price_ns: of("IPI_NS").unwrap_or(0),
    }
}

/// What a second of this machine is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Time {
    pub is_virtual: bool,
    /// What a switch to another address space takes in virtual time, besides its instructions.
    pub switch_price_ns: u64,
    /// What an interrupt from another CPU takes, besides its instructions.
    pub ipi_price_ns: u64,
}

impl Time {
    pub fn name(self) -> &'static str {
        if self.is_virtual { "virtual" } else { "real" }
    }
}

/// The kernel's release.
pub fn kernel() -> String {
    nix::sys::utsname::uname().map_or_else(|_| "?".into(), |name| name.release().to_string_lossy().into_owned())
}

/// The clock source: one that is slow to read makes every measurement slow.
pub fn clocksource() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Some(read_to_string(path).ok()?.trim().to_owned())
}

/// The CPU as it calls itself.
pub fn cpu_model() -> Option<String> {
    cpu_model_in(&read_to_string("/proc/cpuinfo").ok()?)
}

fn cpu_model_in(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_cpu_model() {
        let cpuinfo = "processor\t: 0\nmodel name\t: QEMU TCG CPU version 2.5+\nflags\t: fpu\n";
        assert_eq!(cpu_model_in(cpuinfo).as_deref(), Some("QEMU TCG CPU version 2.5+"));
        assert_eq!(cpu_model_in("processor : 0\n"), None);
    }
}
