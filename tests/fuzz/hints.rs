// SPDX-License-Identifier: GPL-2.0-only
//! What programs say on the socket for hints, to the server that the scheduler has.
//!
//! An input is a list of steps, three bytes and what they need: which of four connections, what to do, and a number.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use cosched_rules::intf::{COSCHED_HINT_MAGIC, COSCHED_HINT_THREADS};
use libbpf_rs::MapHandle;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, send};
use scx_cosched::hints::{Change, kernel};
use scx_cosched::scheduler::requests::Request;

use super::common::hints::{Server, answer, dial, request, server};

const REQUEST: usize = 16;

/// A scheduler that takes notes, and fails if it is told what cannot be.
#[derive(Default)]
struct Notes {
    alive: Arc<()>,
    pages: BTreeMap<u64, MapHandle>,
    given: BTreeSet<u64>,
}

impl Notes {
    fn take(&mut self, change: Change) {
        match change {
            Change::Add(page, map) => {
                assert!(self.given.insert(page), "a number that was given before");
                self.pages.insert(page, map);
            }
            Change::Place(place) => {
                assert!(place.is_over != 0 || self.pages.contains_key(&place.page), "a page that is not there");
                assert_eq!(place.process, std::process::id(), "a thread of another process");
                assert!(place.slot < COSCHED_HINT_THREADS);
            }
            Change::Remove(page) => assert!(self.pages.remove(&page).is_some(), "a page that was not there"),
        }
    }
}

/// A server with such a scheduler behind it.
struct Scene {
    notes: Arc<Mutex<Notes>>,
    server: Server,
}

fn scene() -> Scene {
    let notes = Arc::new(Mutex::new(Notes::default()));
    let theirs = notes.clone();
    let server = server(move |request| {
        let mut notes = theirs.lock().unwrap();
        match request {
            Request::Hint(change, answer) => {
                notes.take(change);
                drop(answer.send(Ok(Arc::downgrade(&notes.alive))));
            }
            Request::Freed(maps, answer) => drop(answer.send(Ok(kernel::freed(maps)))),
            _ => panic!("it was asked for something else"),
        }
    });
    Scene { notes, server }
}

/// A request is answered, and only what is one by `hint.h` with success. Whatever is none ends its connection, and
/// nothing is left of connections that have ended.
pub fn talk(bytes: &[u8]) {
    static SCENE: OnceLock<Scene> = OnceLock::new();
    let scene = SCENE.get_or_init(scene);
    let dial = || dial(&scene.server.path);
    let mut connections: [Option<OwnedFd>; 4] = Default::default();
    let mut rest = bytes;
    while let [which, what, number, tail @ ..] = rest {
        let place = &mut connections[usize::from(which % 4)];
        let (message, used) = message(*what, *number, tail);
        rest = &tail[used..];
        match message {
            None => *place = None,
            Some(message) => {
                let fd = place.get_or_insert_with(dial);
                if !is_heard(fd, &message) {
                    *place = None;
                }
            }
        }
    }
    drop(connections);
    // Once this one is heard, the server has seen that the others have ended.
    let mut last = dial();
    while !is_heard(&last, &own_request(0, 0)) {
        last = dial();
    }
    assert_eq!(scene.notes.lock().unwrap().pages.len(), 1);
}

/// What a step says, if it does not hang up, and how many bytes of `tail` it is made of.
fn message(what: u8, number: u8, tail: &[u8]) -> (Option<Vec<u8>>, usize) {
    match what % 8 {
        0 => (None, 0),
        1 => (Some(own_request(u32::from(number), 0)), 0),
        2 => (Some(request(COSCHED_HINT_MAGIC, u32::from(number), 0, 0)), 0),
        3 => (Some(own_request(0, u32::from(number))), 0),
        // A request that is too short or too long, or is damaged at one place.
        4 => (Some(own_request(0, 0).into_iter().cycle().take(1 + usize::from(number)).collect()), 0),
        5 => {
            let mut message = own_request(0, 0);
            message[usize::from(number) % REQUEST] ^= tail.first().copied().unwrap_or(1);
            (Some(message), tail.len().min(1))
        }
        _ => {
            let length = usize::from(number).min(tail.len());
            (Some(tail[..length].to_vec()).filter(|message| !message.is_empty()), length)
        }
    }
}

fn own_request(slot: u32, reserved: u32) -> Vec<u8> {
    request(COSCHED_HINT_MAGIC, std::process::id(), slot, reserved)
}

/// Sends `message` and holds the answer against what it says. False if the connection has ended, which it may also
/// since the kernel has yet to free pages of ended ones.
fn is_heard(fd: &OwnedFd, message: &[u8]) -> bool {
    send(fd.as_raw_fd(), message, MsgFlags::MSG_NOSIGNAL).expect("it is connected");
    let Some(error) = answer(fd) else { panic!("no answer to {message:?}") };
    let word = |at: usize| u32::from_ne_bytes(message[4 * at..4 * at + 4].try_into().unwrap());
    let is_request =
        message.len() == REQUEST && word(0) == COSCHED_HINT_MAGIC && word(2) < COSCHED_HINT_THREADS && word(3) == 0;
    let is_own = is_request && PathBuf::from(format!("/proc/self/task/{}", word(1))).exists();
    let wanted = match (is_request, is_own) {
        (false, _) => Errno::EPROTO,
        (true, false) => Errno::ESRCH,
        (true, true) => Errno::UnknownErrno,
    };
    if Errno::from_raw(error) == Errno::EUSERS && wanted == Errno::UnknownErrno {
        return false;
    }
    assert_eq!(Errno::from_raw(error), wanted, "{message:?}");
    if wanted == Errno::EPROTO {
        assert_eq!(answer(fd), None, "{message:?}");
    }
    is_request
}
