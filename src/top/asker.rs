// SPDX-License-Identifier: GPL-2.0-only
//! Asks the scheduler on a thread of its own. One answer may be late by a minute; keys are not.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::thread;

use anyhow::{Context, Result, bail};

use crate::control::{self, Held, Question};
use crate::snapshot::Snapshot;
use crate::trace::event::Wanted;
use crate::trace::tap::Outlet;
use cosched_rules::policy::{PolicyChange, PolicyView};

/// What to ask for.
pub enum Request {
    /// A snapshot.
    Look,
    /// Another policy: the preset of this name.
    SetPolicy(String),
    /// The switches, for as long as the answer is kept.
    Trace,
}

/// What came of it.
pub enum Answer {
    Look(Result<Box<Snapshot>>),
    Policy(Result<PolicyView>),
    Trace(Result<(Outlet, Held)>),
}

/// The thread that asks: one request after the other.
pub struct Asker {
    requests: Sender<Request>,
    answers: Receiver<Answer>,
}

/// Asks for a snapshot.
pub fn look(socket: &Path) -> Result<Snapshot> {
    control::ask(socket, &Question::Status {})
}

impl Asker {
    /// Starts the thread. It ends when this is dropped, and the answer has come that it waits for.
    pub fn start(socket: &Path) -> Result<Asker> {
        let (requests, asked) = channel();
        let (tell, answers) = channel();
        let socket = socket.to_path_buf();
        let work = move || {
            for request in asked {
                if tell.send(answer(&socket, request)).is_err() {
                    break;
                }
            }
        };
        thread::Builder::new().name("asker".into()).spawn(work).context("cannot start a thread")?;
        Ok(Asker { requests, answers })
    }

    /// Has `request` asked when all before it are answered.
    pub fn ask(&self, request: Request) {
        // If the thread has ended, the next look at its answers says so.
        let _ = self.requests.send(request);
    }

    /// An answer, if one has come.
    pub fn answer(&self) -> Result<Option<Answer>> {
        match self.answers.try_recv() {
            Ok(answer) => Ok(Some(answer)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => bail!("the thread that asks the scheduler has ended (start top again)"),
        }
    }
}

fn answer(socket: &Path, request: Request) -> Answer {
    match request {
        Request::Look => Answer::Look(look(socket).map(Box::new)),
        Request::SetPolicy(name) => {
            let change = PolicyChange { name: Some(name), ..PolicyChange::default() };
            Answer::Policy(control::ask(socket, &Question::SetPolicy { change }))
        }
        Request::Trace => {
            let wanted = Wanted { switches: true, ..Wanted::default() };
            Answer::Trace(control::hold(socket, &Question::Trace { wanted }))
        }
    }
}
