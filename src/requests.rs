// SPDX-License-Identifier: GPL-2.0-only
//! What the other threads ask of the one that owns the scheduler.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::hints::{Change, Done};
use crate::policy::{PolicyChange, PolicyView};
use crate::settings::Reloaded;
use crate::snapshot::Snapshot;
use crate::trace::tap::{Client, Opened};

/// How long to wait for an answer. Loading the scheduler again, when the kernel asks for it, takes a second
/// or two, and requests wait meanwhile.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long if hooks may have to be attached first, which takes so long on a busy machine that is emulated.
const POLICY_PATIENCE: Duration = Duration::from_secs(60);

/// A question, and where the answer goes. An answer that nobody waits for any more is dropped.
pub enum Request {
    /// What is going on?
    Snapshot(Sender<Result<Snapshot, String>>),
    /// Change the policy: the one in force afterwards, or one line that says why not.
    SetPolicy(PolicyChange, Sender<Result<PolicyView, String>>),
    /// Read the configuration file again: what is in force afterwards, or one line that says why nothing has changed.
    Reload(Sender<Result<Reloaded, String>>),
    /// Write events for this client: where, or one line that says why not.
    Trace(Arc<Client>, Sender<Result<Opened, String>>),
    /// Take note of who gives hints, or one line that says why not.
    Hint(Change, Sender<Result<Done, String>>),
    /// Of these maps, which are gone for good?
    Freed(Vec<u32>, Sender<Result<Vec<u32>, String>>),
    /// Unload the scheduler and end.
    Stop,
}

/// Asks the thread that owns the scheduler.
#[derive(Clone, Debug)]
pub struct Owner(Sender<Request>);

impl Owner {
    /// A way to ask, and what the owner has to answer.
    pub fn new() -> (Owner, Receiver<Request>) {
        let (sender, receiver) = channel();
        (Owner(sender), receiver)
    }

    /// One moment of the scheduler.
    ///
    /// # Errors
    /// If the scheduler ends or does not answer in time.
    pub fn snapshot(&self) -> Result<Snapshot> {
        self.ask(PATIENCE, Request::Snapshot)
    }

    /// Changes the policy and returns the one that is in force.
    ///
    /// # Errors
    /// One line that says why the change is refused; nothing has changed then.
    pub fn set_policy(&self, change: PolicyChange) -> Result<PolicyView> {
        self.ask(POLICY_PATIENCE, |answer| Request::SetPolicy(change, answer))
    }

    /// Has the configuration file read again, and its policy put in force.
    ///
    /// # Errors
    /// One line that says what is wrong with the file; nothing has changed then.
    pub fn reload(&self) -> Result<Reloaded> {
        self.ask(POLICY_PATIENCE, Request::Reload)
    }

    /// Has events written for as long as somebody holds `client`.
    ///
    /// # Errors
    /// One line that says who traces already, or what is wrong.
    pub fn trace(&self, client: &Arc<Client>) -> Result<Opened> {
        self.ask(PATIENCE, |answer| Request::Trace(client.clone(), answer))
    }

    /// Has a process or thread that gives hints heard, or not any more.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn hint(&self, change: Change) -> Result<Done> {
        self.ask(PATIENCE, |answer| Request::Hint(change, answer))
    }

    /// Has a page of hints taken away that may be there or not: who asked for it has not waited long enough to know. Comes
    /// after what was asked before, and waits for no answer.
    pub fn take_back(&self, page: u64) {
        let (sender, _) = channel();
        // If nobody listens, it is gone already.
        let _ = self.0.send(Request::Hint(Change::Remove(page), sender));
    }

    /// Which of these maps, by their ids, the kernel has freed. To ask for maps of others takes the owner's privileges.
    ///
    /// # Errors
    /// If the scheduler ends or does not answer in time.
    pub fn freed(&self, maps: Vec<u32>) -> Result<Vec<u32>> {
        self.ask(PATIENCE, |answer| Request::Freed(maps, answer))
    }

    /// Has the scheduler unloaded.
    pub fn stop(&self) {
        // If nobody listens, it has ended already.
        let _ = self.0.send(Request::Stop);
    }

    fn ask<T>(&self, patience: Duration, request: impl FnOnce(Sender<Result<T, String>>) -> Request) -> Result<T> {
        let (sender, receiver) = channel();
        self.0.send(request(sender)).map_err(|_| anyhow!("the scheduler is ending"))?;
        match receiver.recv_timeout(patience) {
            Ok(answer) => answer.map_err(|e| anyhow!(e)),
            Err(RecvTimeoutError::Disconnected) => Err(anyhow!("the scheduler is ending")),
            Err(RecvTimeoutError::Timeout) => {
                Err(anyhow!("the scheduler has not answered for {} s", patience.as_secs()))
            }
        }
    }
}
