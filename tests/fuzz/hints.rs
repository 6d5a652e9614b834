// SPDX-License-Identifier: GPL-2.0-only
//! What programs say on the socket for hints, to the server that the scheduler has.
//!
//! An input is a list of steps, three bytes and what they need: which of four connections, what to do, and a number.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread;

use cosched_rules::intf::{COSCHED_HINT_MAGIC, COSCHED_HINT_THREADS};
use libbpf_rs::MapHandle;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, send, socket};
use scx_cosched::control::hints::HintSocket;
use scx_cosched::hints::{Change, kernel};
use scx_cosched::scheduler::requests::{Owner, Request};
use tempfile::TempDir;

use super::common::needs_root;

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

struct Server {
    path: PathBuf,
    notes: Arc<Mutex<Notes>>,
    _socket: HintSocket,
    _dir: TempDir,
}

fn server() -> Server {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hints.sock");
    let socket = HintSocket::bind(&path).unwrap();
    let (owner, requests) = Owner::new();
    socket.serve(owner).unwrap();
    let notes = Arc::new(Mutex::new(Notes::default()));
    let theirs = notes.clone();
    thread::spawn(move || {
        for request in requests {
            let mut notes = theirs.lock().unwrap();
            match request {
                Request::Hint(change, answer) => {
                    notes.take(change);
                    drop(answer.send(Ok(Arc::downgrade(&notes.alive))));
                }
                Request::Freed(maps, answer) => drop(answer.send(Ok(kernel::freed(maps)))),
                _ => panic!("it was asked for something else"),
            }
        }
    });
    Server { path, notes, _socket: socket, _dir: dir }
}

impl Server {
    fn dial(&self) -> OwnedFd {
        let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
        connect(fd.as_raw_fd(), &UnixAddr::new(&self.path).unwrap()).unwrap();
        fd
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap()
    }
}

/// A request is answered, and only what is one by `hint.h` with success. Whatever is none ends its connection, and
/// nothing is left of connections that have ended.
pub fn talk(bytes: &[u8]) {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(server);
    let mut connections: [Option<OwnedFd>; 4] = Default::default();
    let mut rest = bytes;
    while let [which, what, number, tail @ ..] = rest {
        let place = &mut connections[usize::from(which % 4)];
        let (message, used) = message(*what, *number, tail);
        rest = &tail[used..];
        match message {
            None => *place = None,
            Some(message) => {
                let fd = place.get_or_insert_with(|| server.dial());
                if !is_heard(fd, &message) {
                    *place = None;
                }
            }
        }
    }
    drop(connections);
    // Once this one is heard, the server has seen that the others have ended.
    let mut last = server.dial();
    while !is_heard(&last, &request(std::process::id(), 0, 0)) {
        last = server.dial();
    }
    assert_eq!(server.notes().pages.len(), 1);
}

/// What a step says, if it does not hang up, and how many bytes of `tail` it is made of.
fn message(what: u8, number: u8, tail: &[u8]) -> (Option<Vec<u8>>, usize) {
    let own = std::process::id();
    match what % 8 {
        0 => (None, 0),
        1 => (Some(request(own, u32::from(number), 0)), 0),
        2 => (Some(request(u32::from(number), 0, 0)), 0),
        3 => (Some(request(own, 0, u32::from(number))), 0),
        // A request that is too short or too long, or is damaged at one place.
        4 => (Some(request(own, 0, 0).into_iter().cycle().take(1 + usize::from(number)).collect()), 0),
        5 => {
            let mut message = request(own, 0, 0);
            message[usize::from(number) % REQUEST] ^= tail.first().copied().unwrap_or(1);
            (Some(message), tail.len().min(1))
        }
        _ => {
            let length = usize::from(number).min(tail.len());
            (Some(tail[..length].to_vec()).filter(|message| !message.is_empty()), length)
        }
    }
}

fn request(thread: u32, slot: u32, reserved: u32) -> Vec<u8> {
    [COSCHED_HINT_MAGIC, thread, slot, reserved].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// Sends `message` and holds the answer against what it says. False if the connection has ended, which it may also since
/// the kernel has yet to free pages of ended ones.
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

/// The error that the server answers; None if it has hung up.
fn answer(fd: &OwnedFd) -> Option<i32> {
    let mut bytes = [0; 64];
    match recv(fd.as_raw_fd(), &mut bytes, MsgFlags::empty()) {
        Ok(8) => {
            assert_eq!(bytes[..4], COSCHED_HINT_MAGIC.to_ne_bytes());
            Some(i32::from_ne_bytes(bytes[4..8].try_into().unwrap()))
        }
        other => {
            assert!(matches!(other, Ok(0) | Err(Errno::ECONNRESET)), "{other:?}");
            None
        }
    }
}
