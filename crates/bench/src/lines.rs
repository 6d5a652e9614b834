// SPDX-License-Identifier: GPL-2.0-only
//! Messages as lines of JSON, received with a deadline.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::interrupt;

/// The longest message is a report of a few workers.
const LONGEST: usize = 1 << 20;

/// Receives from `source`.
pub struct Lines<R> {
    source: R,
    buffer: Vec<u8>,
}

impl<R: Read + AsFd> Lines<R> {
    pub fn new(source: R) -> Lines<R> {
        Lines { source, buffer: Vec::new() }
    }

    pub fn source(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }

    /// The next message; none if the other side has closed.
    pub fn receive<T: DeserializeOwned>(&mut self, deadline: Instant) -> Result<Option<T>> {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Ok(Some(parse(&line)?));
            }
            if !interrupt::wait_readable(&[self.source.as_fd()], deadline)? {
                bail!("no answer in time");
            }
            let mut chunk = [0; 4096];
            match self.source.read(&mut chunk) {
                Ok(0) => return Ok(None),
                Ok(n) => self.buffer.extend_from_slice(&chunk[..n]),
                Err(error) if error.kind() == ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error).context("cannot read a message"),
            }
            if self.buffer.len() > LONGEST {
                bail!("a message is too long");
            }
        }
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> Result<T> {
    serde_json::from_slice(line)
        .with_context(|| format!("not a message: '{}'", String::from_utf8_lossy(line).trim_end()))
}

/// Sends one message in one write.
pub fn send<T: Serialize>(sink: &mut impl Write, message: &T) -> Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    sink.write_all(&line).and_then(|()| sink.flush()).context("cannot send a message")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn receives_whole_lines_only() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        let mut lines = Lines::new(theirs);
        ours.write_all(b"[1]\n[2").unwrap();
        assert_eq!(lines.receive::<Vec<u8>>(soon()).unwrap(), Some(vec![1]));
        assert!(lines.receive::<Vec<u8>>(soon()).is_err(), "half a line must time out");
        ours.write_all(b"]\n").unwrap();
        assert_eq!(lines.receive::<Vec<u8>>(soon()).unwrap(), Some(vec![2]));
        drop(ours);
        assert_eq!(lines.receive::<Vec<u8>>(soon()).unwrap(), None);
    }

    #[test]
    fn names_what_is_not_a_message() {
        let (mut ours, theirs) = UnixStream::pair().unwrap();
        ours.write_all(b"hello\n").unwrap();
        let error = Lines::new(theirs).receive::<Vec<u8>>(soon()).unwrap_err();
        assert!(error.to_string().contains("hello"), "{error:#}");
    }
}
