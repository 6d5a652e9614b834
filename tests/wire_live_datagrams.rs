// SPDX-License-Identifier: GPL-2.0-only
//! Claim: on this machine's kernel, datagrams between two addresses take the epoch of the CPU that sends them along,
//! and it is noted before they are there; they come as they were sent, with checksums that are right; and who is no
//! peer, or does not answer, is neither told nor believed.
//!
//! It needs root, BTF and cgroup v2, not sched_ext: the scheduler's part is tested in a VM. One test, since what it
//! loads is attached to the whole machine.

#[path = "common/checksum.rs"]
mod checksum;
mod common;
#[path = "common/wire_rig.rs"]
mod rig;

use std::io::Read;
use std::net::UdpSocket;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use checksum::sum;
use common::needs_root;
use rig::{MESSAGE, Rig, SLICE, epoch_now};
use scx_cosched::wire::key::Key;

/// Two sockets at these addresses that know each other.
fn sockets(from: &str, to: &str) -> (UdpSocket, UdpSocket) {
    let [a, b] = [from, to].map(|address| UdpSocket::bind((address, 0)).unwrap());
    a.connect(b.local_addr().unwrap()).unwrap();
    b.connect(a.local_addr().unwrap()).unwrap();
    b.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    a.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    (a, b)
}

fn send(from: &UdpSocket, to: &UdpSocket, data: &[u8]) {
    from.send(data).unwrap();
    let mut came = vec![0; 65_536];
    let length = to.recv(&mut came).unwrap();
    assert!(came[..length] == *data, "{} bytes came as {length}", data.len());
}

/// Datagrams of any length arrive as they were, and those that are short enough take an epoch along.
fn a_datagram_takes_an_epoch_along(rig: &Rig, from: &str, to: &str, option: usize) {
    let (a, b) = sockets(from, to);
    let (here, there) = (a.local_addr().unwrap(), b.local_addr().unwrap());
    let headers = 28;
    let noted = |from, to| rig.note_in("wire_datagrams", from, to).map(|note| note.epoch);
    for length in
        [0, 1, 2, 3, 100, 101, 1280 - headers - option - 1, 1280 - headers - option, 1280 - headers, 1401, 9000]
    {
        let epoch = epoch_now(0);
        rig.set_epoch(epoch);
        let data: Vec<u8> = (0..length).map(|i| (i * 7) as u8).collect();
        let fits = headers + length + length % 2 + option <= 1280;
        // And back, so that it goes on. What is too long takes nothing along, and erases what was noted.
        for (from, to, way) in [(&a, &b, (here, there)), (&b, &a, (there, here))] {
            send(from, to, &data);
            assert_eq!(noted(way.0, way.1), Some(if fits { epoch } else { 0 }), "{length} bytes");
        }
    }
    send(&a, &b, MESSAGE);
    let note = rig.note_in("wire_datagrams", here, there).unwrap();
    assert!(note.epoch > 0 && (1..=SLICE + (1 << 14)).contains(&note.slice_ns), "{}", note.slice_ns);

    // Options of IP, and several in one, go without.
    let before = rig.counters()[0];
    set(&a, libc::IPPROTO_IP, libc::IP_OPTIONS, &[1; 4]);
    send(&a, &b, MESSAGE);
    set(&a, libc::IPPROTO_IP, libc::IP_OPTIONS, &[]);
    set(&a, libc::SOL_UDP, libc::UDP_SEGMENT, &100i32.to_ne_bytes());
    a.send(&[9; 1000]).unwrap();
    let mut came = [0; 2000];
    for _ in 0..10 {
        assert_eq!(b.recv(&mut came).unwrap(), 100);
    }
    assert_eq!(rig.counters()[0], before);
}

fn set(socket: &UdpSocket, level: i32, option: i32, value: &[u8]) {
    // SAFETY: bytes, and how many they are.
    let set = unsafe { libc::setsockopt(socket.as_raw_fd(), level, option, value.as_ptr().cast(), value.len() as u32) };
    assert_eq!(set, 0, "{}", std::io::Error::last_os_error());
}

/// What leaves is a good IP packet, and the checksum that a device would compute is that of the datagram alone.
fn checksums_are_right(rig: &Rig, from: &str, to: &str) {
    // SAFETY: it takes three integers.
    let tap = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW, i32::from((libc::ETH_P_ALL as u16).to_be())) };
    assert!(tap >= 0, "this test needs root");
    // SAFETY: nobody else has it.
    let mut tap = std::fs::File::from(unsafe { OwnedFd::from_raw_fd(tap) });
    let (a, b) = sockets(from, to);
    rig.set_epoch(epoch_now(0));
    for length in [0usize, 1, 2, 77, 500] {
        let data: Vec<u8> = (0..length).map(|i| (i * 31 + 5) as u8).collect();
        send(&a, &b, &data);
        let port = |socket: &UdpSocket| socket.local_addr().unwrap().port().to_be_bytes();
        // It is seen as it leaves and as it comes, and so may be the one before.
        let udp = [port(&a), port(&b), (8 + length as u16).to_be_bytes()].concat();
        let mut packet = vec![0; 2000];
        let ip = loop {
            let size = tap.read(&mut packet).unwrap();
            if size > 42 && packet[12..14] == [8, 0] && packet[23] == 17 && packet[34..40] == udp {
                break packet[14..size].to_vec();
            }
        };
        assert_eq!(sum(&ip[..20]), 0xffff, "the checksum of the IP header");
        let (all, udp) = (usize::from(u16::from_be_bytes([ip[2], ip[3]])), &ip[20..]);
        assert_eq!(all, ip.len());
        assert!(ip.len() > 28 + length, "there is an option");
        let device = !(sum(udp) as u16);
        let pseudo = [&ip[12..20], &[0, 17], &udp[4..6]].concat();
        let alone = !(sum(&[&pseudo, &udp[..6], &udp[8..8 + length]].concat()) as u16);
        assert_eq!(device, alone, "{length} bytes");
    }
}

/// So do news of a job's turns, and the next datagram without an option brings none.
fn datagrams_take_news_along(rig: &Rig, from: &str, to: &str) {
    let (a, b) = sockets(from, to);
    let noted = || rig.note_in("wire_datagrams", a.local_addr().unwrap(), b.local_addr().unwrap()).unwrap();
    rig.set_news(0x1234_0001, 0x0302_0101, 0);
    send(&a, &b, MESSAGE);
    let note = noted();
    assert_eq!((note.epoch, note.news.theta, note.news.sizes), (0, 0x1234_0001, 0x0302_0101));
    assert!(rig.counter("news_sent") > 0 && rig.counter("news_heard") > 0);
    rig.set_epoch(0);
    send(&a, &b, MESSAGE);
    assert_eq!(noted().news.sizes, 0);
}

/// Who does not answer is told no more after a while, and who is no peer nothing.
fn datagrams_cease_without_an_answer(from: &str, to: &str) {
    let rig = Rig::new(&[&format!("{to}/32")], &["lo"], None);
    let (a, b) = sockets(from, to);
    rig.set_epoch(epoch_now(0));
    for _ in 0..100 {
        send(&a, &b, MESSAGE);
        send(&b, &a, MESSAGE);
    }
    assert_eq!(rig.counters(), [16, 0, 16], "nobody believes, and nobody answers");
    assert!(rig.note_in("wire_datagrams", a.local_addr().unwrap(), b.local_addr().unwrap()).is_none());
}

#[test]
fn datagrams_take_epochs_along() {
    needs_root();
    datagrams_cease_without_an_answer("127.77.0.1", "127.77.1.1");

    for key in [None, Some(Key::new([3; 16]))] {
        let option = 2 + if key.is_some() { 18 } else { 14 };
        let rig = Rig::new(&["127.77.0.0/16"], &["lo"], key);
        let states = rig.wire.states();
        assert!(states.missing.is_empty(), "{states:?}");
        datagrams_take_news_along(&rig, "127.77.0.1", "127.77.1.1");
        a_datagram_takes_an_epoch_along(&rig, "127.77.0.1", "127.77.1.1", option);
        checksums_are_right(&rig, "127.77.0.1", "127.77.1.1");

        // Nobody is told who is no peer, nor who is this node itself.
        for (from, to) in [("127.78.0.1", "127.78.0.2"), ("127.77.0.1", "127.77.0.1")] {
            let before = rig.counters();
            let (a, b) = sockets(from, to);
            send(&a, &b, MESSAGE);
            assert_eq!(rig.counters(), before);
        }
    }
}
