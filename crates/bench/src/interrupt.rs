// SPDX-License-Identifier: GPL-2.0-only
//! Waiting that Ctrl-C ends at once, so that who leads an experiment gets to clean up after it.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Readable once a signal has come. A pipe, unlike a flag, cannot be missed just before a wait.
static INTERRUPTED: OnceLock<UnixStream> = OnceLock::new();

/// From here on a request to end is an error of the wait under way, or of the next.
pub fn catch() -> Result<()> {
    let (reader, writer) = UnixStream::pair().context("cannot create a socket pair")?;
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        let writer = writer.try_clone().context("cannot clone a socket")?;
        signal_hook::low_level::pipe::register(signal, writer).context("cannot handle signals")?;
    }
    INTERRUPTED.set(reader).map_err(|_| io::Error::other("signals are handled twice"))?;
    Ok(())
}

/// Waits until one of `fds` is readable or at its end; false at the deadline.
pub fn wait_readable(fds: &[BorrowedFd], deadline: Instant) -> Result<bool> {
    let interrupted = INTERRUPTED.get().map(AsFd::as_fd);
    let mut polled: Vec<PollFd> = interrupted.iter().chain(fds).map(|fd| PollFd::new(*fd, PollFlags::POLLIN)).collect();
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        // Rounded up, or the last millisecond would be spent polling.
        let timeout = PollTimeout::try_from(left.as_millis() + 1).unwrap_or(PollTimeout::MAX);
        match poll(&mut polled, timeout) {
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error).context("cannot wait"),
            Ok(0) if Instant::now() >= deadline => return Ok(false),
            Ok(0) => {}
            Ok(_) if interrupted.is_some() && polled[0].any().unwrap_or(false) => bail!("interrupted"),
            Ok(_) => return Ok(true),
        }
    }
}

/// Whether `fd` is readable or at its end now.
pub fn is_readable(fd: BorrowedFd) -> Result<bool> {
    let n = poll(&mut [PollFd::new(fd, PollFlags::POLLIN)], PollTimeout::ZERO).context("cannot look")?;
    Ok(n > 0)
}

/// Whether a signal has come.
pub fn happened() -> bool {
    wait_readable(&[], Instant::now()).is_err()
}

/// Sleeps until `deadline`.
pub fn sleep_until(deadline: Instant) -> Result<()> {
    wait_readable(&[], deadline).map(drop)
}
