// SPDX-License-Identifier: GPL-2.0-only
//! A worker, seen from outside: it is started, told when to begin, and asked what it has measured.

use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use nix::sys::signal::Signal;

use super::child;
use crate::cgroup::Cgroup;
use crate::lines::{self, Lines};
use crate::worker::{Line, Report, Start};

/// For workers to get ready, and to report after their time is over.
const PATIENCE: Duration = Duration::from_secs(20);

/// The process of a worker, which ends with this value.
pub struct Handle {
    name: String,
    child: Child,
    stdin: ChildStdin,
    lines: Lines<ChildStdout>,
    has_reported: bool,
    _cgroup: Option<Cgroup>,
}

impl Handle {
    /// `scx_cosched` with these arguments, in a cgroup of its own below `parent` if there is one.
    pub fn start(name: &str, args: &[&str], parent: Option<&Cgroup>) -> Result<Handle> {
        let mut child = child::command(args, Signal::SIGKILL)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        let (stdin, stdout) = child.stdin.take().zip(child.stdout.take()).context("no pipes")?;
        let mut worker =
            Handle { name: name.into(), child, stdin, lines: Lines::new(stdout), has_reported: false, _cgroup: None };
        if let Some(parent) = parent {
            let cgroup = parent.child(name)?;
            cgroup.add(worker.child.id())?;
            worker._cgroup = Some(cgroup);
        }
        Ok(worker)
    }

    /// Where it waits for its peer, if it does.
    pub fn wait_ready(&mut self) -> Result<Option<SocketAddr>> {
        match self.line()? {
            Line::Ready(address) => Ok(address),
            line => Err(self.unexpected(line)),
        }
    }

    pub fn begin(&mut self, start: Start) -> Result<()> {
        lines::send(&mut self.stdin, &start).with_context(|| self.name.clone())
    }

    pub fn report(&mut self) -> Result<Report> {
        match self.line()? {
            Line::Report(report) => {
                self.has_reported = true;
                Ok(report)
            }
            line => Err(self.unexpected(line)),
        }
    }

    /// Readable when it has something to say; none if it has reported.
    pub fn waits(&self) -> Option<BorrowedFd<'_>> {
        (!self.has_reported).then(|| self.lines.source())
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    fn line(&mut self) -> Result<Line> {
        let line = self.lines.receive(Instant::now() + PATIENCE).with_context(|| self.name.clone())?;
        line.with_context(|| format!("{} ended without a word", self.name))
    }

    fn unexpected(&self, line: Line) -> anyhow::Error {
        match line {
            Line::Failed(why) => anyhow!("{}: {why}", self.name),
            line => anyhow!("{} said {line:?}", self.name),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // It has reported, or it is not wanted any more.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
