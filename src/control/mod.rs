// SPDX-License-Identifier: GPL-2.0-only
//! The control socket: how other processes of root talk to the running scheduler.
//!
//! A connection carries one line of JSON each way: a [`Question`], and `{"ok": ...}` or
//! `{"error": "..."}`. Lines, time and connections are bounded, so a client that stalls or floods disturbs
//! nobody else. That of a client that traces stays for as long as the trace.

pub mod commands;
pub mod hints;
pub mod recommend;
pub mod trace;

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::node::privileges;
use crate::node::socket_file::{self, SocketFile};
use crate::scheduler::requests::Owner;
use crate::trace::event::Wanted;
use crate::trace::tap::Client;
use cosched_rules::policy::PolicyChange;

/// A line has at most this many bytes, its end included. A snapshot with all jobs is longer: it is an
/// answer, which only the scheduler writes.
const QUESTION_MAX: usize = 64 << 10;
const ANSWER_MAX: usize = 64 << 20;
/// How long a client may take to ask its question or to take its answer.
const CLIENT_PATIENCE: Duration = Duration::from_secs(2);
/// How long a client waits for its answer: longer than the scheduler takes to answer or to say it cannot.
const SERVER_PATIENCE: Duration = Duration::from_secs(65);
/// How often to see whether the scheduler of a trace still runs.
const ALIVE_POLL: Duration = Duration::from_millis(250);
/// This many clients are served at once; more are turned away.
const CLIENTS_MAX: usize = 8;

/// What can be asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub enum Question {
    /// Which process is there? Answered even while the scheduler is being loaded.
    Ping {},
    /// One moment of the scheduler.
    Status {},
    /// Change the policy.
    SetPolicy {
        /// How.
        change: PolicyChange,
    },
    /// Read the configuration file again.
    Reload {},
    /// Write events for as long as this connection lasts.
    Trace {
        /// Which.
        wanted: Wanted,
    },
}

/// Asks `question` at the socket `path` and returns the answer.
///
/// # Errors
/// One line: nothing runs there, we may not ask, or what the scheduler says is wrong.
pub fn ask<T: DeserializeOwned>(path: &Path, question: &Question) -> Result<T> {
    Ok(converse(path, question)?.0)
}

/// Asks for what lasts as long as the connection.
///
/// # Errors
/// As those of [`ask`].
pub fn hold<T: DeserializeOwned>(path: &Path, question: &Question) -> Result<(T, Held)> {
    let (answer, stream) = converse(path, question)?;
    Ok((answer, Held(stream)))
}

fn converse<T: DeserializeOwned>(path: &Path, question: &Question) -> Result<(T, UnixStream)> {
    let stream = UnixStream::connect(path).map_err(|e| unreachable(path, &e))?;
    match exchange(&stream, question) {
        Ok(answer) => Ok((answer.into_result()?, stream)),
        Err(e) => bail!("the scheduler at {} does not answer: {e} (is it still running?)", path.display()),
    }
}

/// A connection on which something depends. When this is dropped, that has ended, and the next client may have it.
pub struct Held(UnixStream);

impl Held {
    /// Whether the scheduler has closed it.
    pub fn is_over(&self) -> bool {
        let read = self.0.set_nonblocking(true).and_then(|()| (&self.0).read(&mut [0]));
        !matches!(read, Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // If it does not work, the scheduler is gone.
        let _ = self.0.shutdown(Shutdown::Write);
        let _ = self.0.set_nonblocking(false);
        let _ = self.0.set_read_timeout(Some(CLIENT_PATIENCE));
        let _ = self.0.read(&mut [0]);
    }
}

fn unreachable(path: &Path, error: &io::Error) -> anyhow::Error {
    let path = path.display();
    match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused => {
            anyhow!("no scheduler is running at {path} (start one with 'run', or name its --control-socket)")
        }
        ErrorKind::PermissionDenied => anyhow!("{path} is for root only (run it as root, e.g. with sudo)"),
        _ => anyhow!("cannot connect to {path}: {error} (is it a control socket?)"),
    }
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Error(String),
}

impl Answer {
    fn of(answer: Result<Value>) -> Answer {
        answer.map_or_else(|error| Answer::Error(format!("{error:#}")), Answer::Ok)
    }

    fn into_result<T: DeserializeOwned>(self) -> Result<T> {
        match self {
            Answer::Ok(value) => {
                serde_json::from_value(value).context("the running scheduler is of another version: restart it")
            }
            Answer::Error(message) => Err(anyhow!(message)),
        }
    }
}

fn exchange(stream: &UnixStream, question: &Question) -> io::Result<Answer> {
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    // A server that turns us away does not wait for the question, but it says why.
    let asked = write_line(stream, question);
    let line = read_line(stream, ANSWER_MAX, SERVER_PATIENCE).map_err(|e| asked.err().unwrap_or(e))?;
    Ok(serde_json::from_slice(&line)?)
}

fn write_line(mut stream: &UnixStream, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    stream.write_all(&line)
}

/// Reads a line of at most `max` bytes, within `patience`.
fn read_line(mut stream: &UnixStream, max: usize, patience: Duration) -> io::Result<Vec<u8>> {
    let deadline = Instant::now() + patience;
    let mut line = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(ErrorKind::TimedOut, "it took too long"));
        }
        stream.set_read_timeout(Some(left))?;
        let n = match stream.read(&mut chunk) {
            Ok(0) => return Err(io::Error::new(ErrorKind::UnexpectedEof, "the connection was closed")),
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => continue,
            Err(e) => return Err(e),
        };
        let end = chunk[..n].iter().position(|b| *b == b'\n');
        line.extend_from_slice(&chunk[..end.unwrap_or(n)]);
        if line.len() >= max {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("a line has at most {max} bytes")));
        }
        if end.is_some() {
            return Ok(line);
        }
    }
}

/// The socket of the running scheduler. It is removed when this is dropped.
pub struct ControlSocket {
    _file: SocketFile,
    listener: UnixListener,
}

/// Makes sure that no other scheduler answers at `path`.
///
/// # Errors
/// Names the process that does.
pub fn refuse_second_instance(path: &Path) -> Result<()> {
    let Ok(stream) = UnixStream::connect(path) else { return Ok(()) };
    let pid = match exchange(&stream, &Question::Ping {}) {
        Ok(Answer::Ok(value)) => value.get("pid").and_then(Value::as_u64),
        _ => None,
    };
    match pid {
        Some(pid) => bail!("scx_cosched is already running as process {pid} (stop it first: kill {pid})"),
        None => bail!("another program listens at {} (choose another --control-socket)", path.display()),
    }
}

impl ControlSocket {
    /// Binds the socket, for root only. One that a killed scheduler has left behind is replaced. Call it
    /// before there are threads: it sets the process's umask for a moment.
    ///
    /// # Errors
    /// If another scheduler answers there, or the path cannot be used.
    pub fn bind(path: &Path) -> Result<ControlSocket> {
        refuse_second_instance(path)?;
        let (file, listener) = socket_file::bind(path, "--control-socket", 0o600, || UnixListener::bind(path))?;
        Ok(ControlSocket { _file: file, listener })
    }

    /// Serves clients on a thread of its own, for as long as the process lives.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn serve(&self, owner: Owner) -> Result<()> {
        let listener = self.listener.try_clone().context("cannot serve the control socket")?;
        let serve = move || {
            let clients = Arc::new(AtomicUsize::new(0));
            for stream in listener.incoming() {
                match stream {
                    Ok(stream) => accept(stream, &owner, &clients),
                    // Out of file descriptors, say: not at full speed, please.
                    Err(_) => std::thread::sleep(Duration::from_millis(100)),
                }
            }
        };
        privileges::thread("control", 0, serve).map(drop)
    }
}

fn accept(stream: UnixStream, owner: &Owner, clients: &Arc<AtomicUsize>) {
    if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
        clients.fetch_sub(1, Ordering::Relaxed);
        let _ = stream.set_write_timeout(Some(Duration::from_millis(10)));
        let _ = write_line(&stream, &Answer::Error("too many clients at once (try again)".into()));
        return;
    }
    let (owner, count) = (owner.clone(), clients.clone());
    let serve = move || {
        if let Err(error) = serve_client(&stream, &owner) {
            log::debug!("control socket: {error}");
        }
        count.fetch_sub(1, Ordering::Relaxed);
    };
    if std::thread::Builder::new().name("client".into()).spawn(serve).is_err() {
        clients.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve_client(stream: &UnixStream, owner: &Owner) -> io::Result<()> {
    stream.set_write_timeout(Some(CLIENT_PATIENCE))?;
    // The mode keeps others out. This holds even if somebody changes it.
    let peer = getsockopt(stream, PeerCredentials)?;
    let question = match peer.uid() {
        0 => question(stream),
        _ => Err(anyhow!("only root may ask (run it as root, e.g. with sudo)")),
    };
    let answer = match question {
        Ok(Question::Trace { wanted }) => return serve_trace(stream, Client { pid: peer.pid(), wanted }, owner),
        Ok(question) => answer(question, owner),
        Err(error) => Err(error),
    };
    write_line(stream, &Answer::of(answer))
}

fn question(stream: &UnixStream) -> Result<Question> {
    let line = read_line(stream, QUESTION_MAX, CLIENT_PATIENCE).map_err(|e| anyhow!("cannot read the request: {e}"))?;
    serde_json::from_slice(&line).map_err(|e| anyhow!("not a request: {e}"))
}

fn answer(question: Question, owner: &Owner) -> Result<Value> {
    Ok(match question {
        Question::Ping {} => json!({ "pid": std::process::id() }),
        Question::Status {} => serde_json::to_value(owner.snapshot()?)?,
        Question::SetPolicy { change } => serde_json::to_value(owner.set_policy(change)?)?,
        Question::Reload {} => serde_json::to_value(owner.reload()?)?,
        Question::Trace { .. } => bail!("a trace needs a connection of its own"),
    })
}

/// Lets `client` trace until it closes its connection, or the scheduler that it traces ends.
fn serve_trace(stream: &UnixStream, client: Client, owner: &Owner) -> io::Result<()> {
    // The trace lasts as long as this.
    let client = Arc::new(client);
    let (answer, alive) = match owner.trace(&client) {
        Ok(opened) => (Ok(serde_json::to_value(opened.outlet)?), opened.alive),
        Err(error) => (Err(error), Weak::new()),
    };
    write_line(stream, &Answer::of(answer))?;
    stream.set_read_timeout(Some(ALIVE_POLL))?;
    while alive.strong_count() > 0 {
        match (&mut &*stream).read(&mut [0]) {
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            // It has nothing more to say, so it has gone.
            _ => break,
        }
    }
    Ok(())
}
