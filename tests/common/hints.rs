// SPDX-License-Identifier: GPL-2.0-only
//! A server of hints with a scheduler behind it, and what a program says to it.

#![allow(dead_code)]

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;

use cosched_rules::intf::COSCHED_HINT_MAGIC;
use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockType, UnixAddr, connect, recv, socket};
use scx_cosched::control::hints::HintSocket;
use scx_cosched::scheduler::requests::{Owner, Request};
use tempfile::TempDir;

use super::needs_root;

/// A server at `path`, which is there for as long as this.
pub struct Server {
    pub path: PathBuf,
    _socket: HintSocket,
    _dir: TempDir,
}

/// A server whose scheduler does `work` with each request.
pub fn server(mut work: impl FnMut(Request) + Send + 'static) -> Server {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hints.sock");
    let socket = HintSocket::bind(&path).unwrap();
    let (owner, requests) = Owner::new();
    socket.serve(owner).unwrap();
    thread::spawn(move || requests.into_iter().for_each(&mut work));
    Server { path, _socket: socket, _dir: dir }
}

/// A connection to the server at `path`.
pub fn dial(path: &Path) -> OwnedFd {
    let fd = socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None).unwrap();
    connect(fd.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    fd
}

/// A request, as `hint.h` has it.
pub fn request(magic: u32, thread: u32, slot: u32, reserved: u32) -> Vec<u8> {
    [magic, thread, slot, reserved].iter().flat_map(|word| word.to_ne_bytes()).collect()
}

/// The error that the server answers; None if it has hung up.
pub fn answer(fd: &OwnedFd) -> Option<i32> {
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
