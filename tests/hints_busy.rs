// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a program that gives hints does not wait for a scheduler that has no time to accept it.

use std::os::fd::{AsRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, Backlog, SockFlag, SockType, UnixAddr, bind, connect, listen, socket};
use scx_cosched::hints::client::Waits;

#[test]
fn a_wait_takes_no_time_where_nobody_accepts() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("hints.sock");
    let address = UnixAddr::new(&path).unwrap();
    let new = || socket(AddressFamily::Unix, SockType::SeqPacket, SockFlag::SOCK_NONBLOCK, None).unwrap();
    let listener = new();
    bind(listener.as_raw_fd(), &address).unwrap();
    listen(&listener, Backlog::new(1).unwrap()).unwrap();
    let mut waiting: Vec<OwnedFd> = Vec::new();
    loop {
        let next = new();
        match connect(next.as_raw_fd(), &address) {
            Ok(()) => waiting.push(next),
            Err(error) => {
                assert_eq!(error, Errno::EAGAIN);
                break;
            }
        }
    }

    // SAFETY: the only test in this program.
    unsafe { std::env::set_var("COSCHED_HINTS_SOCKET", &path) };
    for _ in 0..3 {
        let began = Instant::now();
        drop(Waits::begin());
        assert!(began.elapsed() < Duration::from_millis(500), "a wait began after {:?}", began.elapsed());
        // It looks for a scheduler once a second.
        thread::sleep(Duration::from_millis(1100));
    }
}
