// SPDX-License-Identifier: GPL-2.0-only
//! Child processes, mostly `scx_cosched` with some command, which never outlive this process.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cosched_rules::NAME;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::interrupt;

/// The program `scx_cosched`, which is beside this one.
pub fn scx_cosched() -> Result<PathBuf> {
    Ok(std::env::current_exe().context("cannot find this program")?.with_file_name(NAME))
}

/// `scx_cosched` with `args`. If this process ends in any way, the child gets `last`.
pub fn command<S: AsRef<OsStr>>(args: impl IntoIterator<Item = S>, last: Signal) -> Result<Command> {
    let mut command = other_command(scx_cosched()?, last);
    command.args(args);
    Ok(command)
}

/// Another program. If this process ends in any way, the child gets `last`.
pub fn other_command(program: impl AsRef<OsStr>, last: Signal) -> Command {
    let mut command = Command::new(program);
    // SAFETY: prctl is one system call, which is safe between fork and exec.
    unsafe { command.pre_exec(move || set_pdeathsig(last).map_err(io::Error::from)) };
    command
}

/// Asks a child to end by `signal`, and makes it end after `patience`. Not to be interrupted.
pub fn end(child: &mut Child, signal: Signal, patience: Duration) {
    let deadline = Instant::now() + patience;
    let _ = kill(Pid::from_raw(child.id() as i32), signal);
    while Instant::now() < deadline {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let _ = child.kill();
    let _ = child.wait();
}

/// Looks every 20 ms whether something is so.
pub fn wait_until(deadline: Instant, mut is_so: impl FnMut() -> Result<bool>) -> Result<bool> {
    while !is_so()? {
        if Instant::now() >= deadline {
            return Ok(false);
        }
        interrupt::sleep_until(Instant::now() + Duration::from_millis(20))?;
    }
    Ok(true)
}
