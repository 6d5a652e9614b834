// SPDX-License-Identifier: GPL-2.0-only
//! What the other threads ask of the one that owns the scheduler.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};

use crate::hints::{Change, Done};
use crate::settings::Reloaded;
use crate::snapshot::Snapshot;
use crate::trace::tap::{Client, Opened};
use cosched_rules::policy::{PolicyChange, PolicyView};

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long if hooks may have to be attached first, which takes so long on a busy machine that is emulated.
const POLICY_PATIENCE: Duration = Duration::from_secs(60);

/// How long until a client looks whether the scheduler is being loaded by now.
const GLANCE: Duration = Duration::from_millis(100);

const LOADING: &str = "the scheduler is being loaded (try again in a few seconds)";
const ENDING: &str = "the scheduler is ending";

/// What was asked for, or one line that says why not.
type Answer<T> = Result<T, String>;

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
pub struct Owner {
    requests: Sender<Request>,
    /// It is being loaded. That takes many seconds on a slow machine, and there is nothing to tell of meanwhile.
    loading: Arc<AtomicBool>,
}

/// What the thread that owns the scheduler is asked, in the order in which it was asked.
pub struct Inbox {
    requests: Receiver<Request>,
    /// Taken out, and not answered yet.
    waiting: VecDeque<Request>,
}

impl Inbox {
    /// Of what comes by `requests`.
    pub fn new(requests: Receiver<Request>) -> Inbox {
        Inbox { requests, waiting: VecDeque::new() }
    }

    /// The next request, if one comes in time.
    ///
    /// # Errors
    /// If none comes, or nobody can ask any more.
    pub fn next(&mut self, patience: Duration) -> Result<Request, RecvTimeoutError> {
        self.waiting.pop_front().map_or_else(|| self.requests.recv_timeout(patience), Ok)
    }

    /// For use amid other work: a question for a snapshot, if there is one. It changes nothing, so it need not wait for
    /// the requests before it. All others keep their order.
    pub fn next_question(&mut self) -> Option<Sender<Result<Snapshot, String>>> {
        while let Ok(request) = self.requests.try_recv() {
            match request {
                Request::Snapshot(answer) => return Some(answer),
                other => self.waiting.push_back(other),
            }
        }
        None
    }
}

impl Owner {
    /// A way to ask, and what the owner has to answer.
    pub fn new() -> (Owner, Receiver<Request>) {
        let (sender, receiver) = channel();
        (Owner { requests: sender, loading: Arc::default() }, receiver)
    }

    /// While it is set, [`Owner::snapshot`] says at once that the scheduler is being loaded, and does not wait for it.
    pub fn set_loading(&self, loading: bool) {
        self.loading.store(loading, Ordering::Relaxed);
    }

    /// One moment of the scheduler.
    ///
    /// # Errors
    /// If the scheduler is being loaded, ends, or does not answer in time.
    pub fn snapshot(&self) -> Result<Snapshot> {
        if self.loading.load(Ordering::Relaxed) {
            bail!(LOADING);
        }
        let (receiver, asked) = (self.send(Request::Snapshot)?, Instant::now());
        while !self.loading.load(Ordering::Relaxed) {
            // The kernel may ask for another load before there is an answer.
            match receiver.recv_timeout(GLANCE) {
                Err(RecvTimeoutError::Timeout) if asked.elapsed() < PATIENCE => {}
                answer => return received(answer, PATIENCE),
            }
        }
        bail!(LOADING);
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

    /// Has a page of hints taken away that may be there or not: who asked for it has not waited long enough to know.
    /// Comes after what was asked before, and waits for no answer.
    pub fn take_back(&self, page: u64) {
        let (sender, _) = channel();
        // If nobody listens, it is gone already.
        let _ = self.requests.send(Request::Hint(Change::Remove(page), sender));
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
        let _ = self.requests.send(Request::Stop);
    }

    fn ask<T>(&self, patience: Duration, request: impl FnOnce(Sender<Answer<T>>) -> Request) -> Result<T> {
        received(self.send(request)?.recv_timeout(patience), patience)
    }

    fn send<T>(&self, request: impl FnOnce(Sender<Answer<T>>) -> Request) -> Result<Receiver<Answer<T>>> {
        let (sender, receiver) = channel();
        self.requests.send(request(sender)).map_err(|_| anyhow!(ENDING))?;
        Ok(receiver)
    }
}

/// What has come within `patience`.
fn received<T>(answer: Result<Answer<T>, RecvTimeoutError>, patience: Duration) -> Result<T> {
    match answer {
        Ok(answer) => answer.map_err(|e| anyhow!(e)),
        Err(RecvTimeoutError::Disconnected) => Err(anyhow!(ENDING)),
        Err(RecvTimeoutError::Timeout) => Err(anyhow!("the scheduler has not answered for {} s", patience.as_secs())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How long nobody needs to wait.
    const SOON: Duration = Duration::from_millis(10);

    #[test]
    fn questions_are_answered_amid_other_work_and_the_rest_keeps_its_order() {
        let (owner, requests) = Owner::new();
        let mut inbox = Inbox::new(requests);
        owner.take_back(1);
        let asked = owner.clone();
        let asking = std::thread::spawn(move || asked.snapshot());
        let answer = loop {
            match inbox.next_question() {
                Some(answer) => break answer,
                None => std::thread::yield_now(),
            }
        };
        answer.send(Err("amid other work".into())).unwrap();
        assert_eq!(asking.join().unwrap().unwrap_err().to_string(), "amid other work");

        owner.take_back(2);
        owner.stop();
        assert!(inbox.next_question().is_none());
        for page in [1, 2] {
            let next = inbox.next(SOON);
            assert!(matches!(next, Ok(Request::Hint(Change::Remove(found), _)) if found == page), "{page}");
        }
        assert!(matches!(inbox.next(SOON), Ok(Request::Stop)));
        assert!(matches!(inbox.next(SOON), Err(RecvTimeoutError::Timeout)));
    }

    #[test]
    fn a_load_is_said_within_a_second_whether_it_has_begun_or_begins_now() {
        let (owner, requests) = Owner::new();
        let loads = owner.clone();
        let began = Instant::now();
        let loading = std::thread::spawn(move || {
            let asked = requests.recv();
            loads.set_loading(true);
            (requests, asked)
        });
        for _ in 0..2 {
            let error = owner.snapshot().unwrap_err().to_string();
            assert!(error.contains("being loaded") && error.contains("try again"), "{error}");
        }
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
        assert!(matches!(loading.join().unwrap().1, Ok(Request::Snapshot(_))));
    }
}
