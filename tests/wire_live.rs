// SPDX-License-Identifier: GPL-2.0-only
//! Claim: on this machine's kernel, segments between two addresses take the epoch of the CPU that sends them along, and
//! they are noted for the connection before the message is there; and who is no peer, or in another network namespace,
//! is neither told nor believed.
//!
//! It needs root, BTF and cgroup v2, not sched_ext: the scheduler's part is tested in a VM. One test, since what it
//! loads is attached to the whole machine.

mod common;
#[path = "common/wire_rig.rs"]
mod rig;

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::process::Command;
use std::time::Duration;

use common::needs_root;
use cosched_rules::intf::cosched_wire_note;
use nix::time::ClockId;
use rig::{MESSAGE, Rig, SLICE, epoch_now, now};
use scx_cosched::wire::key::Key;

/// A connection from one address to another.
fn connect(from: &str, to: &str) -> (TcpStream, TcpStream) {
    connect_ports((from, 0), (to, 0))
}

/// The same from one port to another; 0: any.
fn connect_ports(from: (&str, u16), to: (&str, u16)) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind(to).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = nix::sys::socket::socket(
        if address.is_ipv4() { nix::sys::socket::AddressFamily::Inet } else { nix::sys::socket::AddressFamily::Inet6 },
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    let own = SocketAddr::new(from.0.parse().unwrap(), from.1);
    let peer = SocketAddr::new(to.0.parse().unwrap(), address.port());
    nix::sys::socket::bind(socket.as_raw_fd(), &nix::sys::socket::SockaddrStorage::from(own)).unwrap();
    nix::sys::socket::connect(socket.as_raw_fd(), &nix::sys::socket::SockaddrStorage::from(peer)).unwrap();
    let (accepted, _) = listener.accept().unwrap();
    let connected = TcpStream::from(socket);
    connected.set_nodelay(true).unwrap();
    accepted.set_nodelay(true).unwrap();
    (connected, accepted)
}

fn pass(from: &mut TcpStream, to: &mut TcpStream) {
    from.write_all(MESSAGE).unwrap();
    let mut came = [0; MESSAGE.len()];
    to.read_exact(&mut came).unwrap();
    assert_eq!(&came, MESSAGE);
}

fn noted(rig: &Rig, to: &TcpStream) -> Option<cosched_wire_note> {
    rig.note(to.peer_addr().unwrap(), to.local_addr().unwrap())
}

/// A message is noted at its receiver, with what was left of the slice.
fn takes_an_epoch_along(rig: &Rig, from: &str, to: &str, by_xdp: bool) {
    let (mut a, mut b) = connect(from, to);
    for shift_s in [0, 50, -50] {
        let epoch = epoch_now(shift_s);
        rig.set_epoch(epoch);
        pass(&mut a, &mut b);
        let note = noted(rig, &b).expect("the connection is to a peer");
        assert_eq!(note.epoch, epoch, "{from} to {to}");
        assert!((1..=SLICE + (1 << 14)).contains(&note.slice_ns), "{}", note.slice_ns);
        assert_eq!(note.xdp_at > 0, by_xdp, "{from} to {to}");
        // And back.
        pass(&mut b, &mut a);
        assert_eq!(noted(rig, &a).expect("so is the other way").epoch, epoch);
    }
    // Out of the window it is not believed, and what was before is of no use.
    let before = rig.counter("epochs_refused");
    for shift_s in [70, -70] {
        rig.set_epoch(epoch_now(shift_s));
        pass(&mut a, &mut b);
        assert_eq!(noted(rig, &b).unwrap().epoch, 0, "{shift_s}");
    }
    rig.set_epoch(u64::MAX);
    pass(&mut a, &mut b);
    assert_eq!(noted(rig, &b).unwrap().epoch, 0);
    assert!(rig.counter("epochs_refused") >= before + 3);
    rig.set_epoch(epoch_now(0));
    pass(&mut a, &mut b);
    assert_ne!(noted(rig, &b).unwrap().epoch, 0);

    // The notes go with the connection.
    let (from, to) = (b.peer_addr().unwrap(), b.local_addr().unwrap());
    assert!(rig.note(to, from).is_some());
    a.shutdown(Shutdown::Both).unwrap();
    drop((a, b));
    for _ in 0..100 {
        if rig.note(from, to).is_none() && rig.note(to, from).is_none() {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("a note outlives its connection");
}

/// A message tells of its job's turns in place of an epoch, and the next epoch is not mistaken for more of that.
fn takes_news_along(rig: &Rig, from: &str, to: &str) {
    let (mut a, mut b) = connect(from, to);
    for (theta, ahead_ns) in [(0x1234_0001, 0), (0x1234_0000, 70_000_000)] {
        rig.set_news(theta, 0x0302_0101, ahead_ns);
        let before = now(ClockId::CLOCK_TAI);
        pass(&mut a, &mut b);
        let note = noted(rig, &b).unwrap();
        assert_eq!((note.epoch, note.news.theta, note.news.sizes), (0, theta, 0x0302_0101), "{from} to {to}");
        assert_eq!(note.job, 0xcafe);
        let clock_ns = before - (1 << 14) + ahead_ns..=now(ClockId::CLOCK_TAI) + ahead_ns;
        assert!(clock_ns.contains(&note.news.tai_ns), "{clock_ns:?} {}", note.news.tai_ns);
    }
    let (sent, heard) = (rig.counter("news_sent"), rig.counter("news_heard"));
    assert!(sent >= 2 && heard >= 2, "{sent} {heard}");
    rig.set_epoch(epoch_now(0));
    pass(&mut a, &mut b);
    let note = noted(rig, &b).unwrap();
    assert!(note.epoch != 0 && note.news.sizes == 0);
}

/// A message tells what its sender's waits took, and the next one, of a task that has not waited, takes that back.
fn takes_waits_along(rig: &Rig, from: &str, to: &str) {
    let (mut a, mut b) = connect(from, to);
    for (waits_us, told_us) in [(120, 120), (1_000_000, 65_535), (0, 0)] {
        let epoch = epoch_now(0);
        rig.set_waits(epoch, waits_us);
        pass(&mut a, &mut b);
        let note = noted(rig, &b).unwrap();
        assert_eq!((note.epoch, note.waits_us, note.slice_ns), (epoch, told_us, 0), "{from} to {to}");
    }
}

/// A connection that was there before takes an epoch along, too, and both ends go on: under the first scheduler, and
/// under a second that starts when the first has ended.
fn takes_up_what_was_there_before(peers: &[&str], from: &str, to: &str) {
    let (mut a, mut b) = connect(from, to);
    pass(&mut a, &mut b);
    for round in 0..2 {
        let rig = Rig::new(peers, &["lo"], None);
        for _ in 0..200 {
            let epoch = epoch_now(0);
            rig.set_epoch(epoch);
            pass(&mut a, &mut b);
            assert_eq!(noted(&rig, &b).expect("it is to a peer").epoch, epoch, "{from}, round {round}");
            pass(&mut b, &mut a);
            assert_eq!(noted(&rig, &a).expect("so is the other end").epoch, epoch, "{from}, round {round}");
        }
    }
    let rig = Rig::new(&["10.99.0.0/16"], &["lo"], None);
    rig.set_epoch(epoch_now(0));
    pass(&mut a, &mut b);
    assert_eq!(rig.counters(), [0; 3], "it is to no peer any more");
}

/// Bulk data arrives whole, some of it sent by softirqs.
fn takes_much_data_along(rig: &Rig, from: &str, to: &str) {
    let (mut a, mut b) = connect(from, to);
    rig.set_epoch(epoch_now(0));
    let data: Vec<u8> = (0..8 << 20).map(|i: u32| (i / 7) as u8).collect();
    let expected = data.clone();
    let writer = std::thread::spawn(move || {
        a.write_all(&data).unwrap();
        a
    });
    let mut came = vec![0; expected.len()];
    b.read_exact(&mut came).unwrap();
    assert!(came == expected, "the data came altered");
    drop(writer.join().unwrap());
}

/// Sockets of another network namespace, in which any user may own these addresses, are told nothing. Their end leaves
/// alone what is noted of a connection here.
fn leaves_other_namespaces_alone(rig: &Rig, from: &str, to: &str) {
    let (mut a, mut b) = connect(from, to);
    rig.set_epoch(epoch_now(0));
    pass(&mut a, &mut b);
    let before = rig.counters();
    let (here, there) = (a.local_addr().unwrap(), a.peer_addr().unwrap());
    let elsewhere = || {
        // SAFETY: it touches no memory, and the thread ends with this function.
        assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNET) }, 0, "{}", std::io::Error::last_os_error());
        assert!(Command::new("ip").args(["link", "set", "lo", "up"]).status().unwrap().success());
        let (mut c, mut d) = connect_ports((from, here.port()), (to, there.port()));
        pass(&mut c, &mut d);
        pass(&mut d, &mut c);
        c.shutdown(Shutdown::Both).unwrap();
        drop((c, d));
    };
    std::thread::scope(|scope| scope.spawn(elsewhere).join().unwrap());
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(rig.counters(), before);
    assert_ne!(noted(rig, &b).expect("the note of the connection here stays").epoch, 0);
}

/// An end that is told nothing ceases to tell.
fn ceases_without_an_answer(from: &str, to: &str) {
    let rig = Rig::new(&[&format!("{to}/32")], &[], None);
    let (mut a, mut b) = connect(from, to);
    rig.set_epoch(epoch_now(0));
    for _ in 0..200 {
        pass(&mut a, &mut b);
        pass(&mut b, &mut a);
    }
    let [sent, heard, refused] = rig.counters();
    assert_eq!((sent, heard, refused), (64, 0, 0), "the other end believes nobody, and tells nothing");
    assert!(noted(&rig, &b).is_none());
}

/// One that only receives answers now and then, so the other does not cease.
fn goes_on_one_way(rig: &Rig, from: &str, to: &str) {
    let (mut a, mut b) = connect(from, to);
    rig.set_epoch(epoch_now(0));
    let [before, ..] = rig.counters();
    for _ in 0..400 {
        pass(&mut a, &mut b);
    }
    let [after, ..] = rig.counters();
    assert!(after - before >= 400, "{} of 400", after - before);
}

#[test]
fn epochs_cross_the_loopback() {
    needs_root();
    ceases_without_an_answer("127.77.0.1", "127.77.1.1");

    let peers = ["127.77.0.0/16", "fd77::/64"];
    takes_up_what_was_there_before(&peers, "127.77.0.1", "127.77.1.1");
    let signed = Some(Key::new([3; 16]));
    for (interfaces, key) in [(&[][..], None), (&["lo"], None), (&["lo"], signed), (&[], signed)] {
        let rig = Rig::new(&peers, interfaces, key);
        let states = rig.wire.states();
        assert!(states.missing.is_empty(), "{states:?}");
        assert_eq!(states.attached.len(), 1 + 2 * interfaces.len());
        takes_an_epoch_along(&rig, "127.77.0.1", "127.77.1.1", !interfaces.is_empty());
        takes_news_along(&rig, "127.77.0.1", "127.77.1.1");
        takes_waits_along(&rig, "127.77.0.1", "127.77.1.1");
        takes_much_data_along(&rig, "127.77.0.1", "127.77.1.1");
        goes_on_one_way(&rig, "127.77.0.1", "127.77.1.1");
        leaves_other_namespaces_alone(&rig, "127.77.0.1", "127.77.1.1");
        let [sent, heard, _] = rig.counters();
        assert!(sent > 0 && heard > 0);

        // Nobody is told who is no peer, nor who is this node itself.
        for (from, to) in [("127.78.0.1", "127.78.0.2"), ("127.77.0.1", "127.77.0.1")] {
            let before = rig.counters();
            let (mut a, mut b) = connect(from, to);
            pass(&mut a, &mut b);
            assert_eq!(rig.counters(), before);
            assert!(noted(&rig, &b).is_none());
        }
    }

    // An interface that is not there is missing, and the rest works.
    let rig = Rig::new(&peers, &["no_such_if"], None);
    assert_eq!(rig.wire.states().missing, ["on_xdp:no_such_if", "on_udp:no_such_if"]);
    takes_an_epoch_along(&rig, "127.77.0.1", "127.77.1.1", false);
    drop(rig);

    // So is one whose packets begin with no Ethernet header.
    let tunnel = |action| Command::new("ip").args(["tuntap", action, "dev", "cosched_tun", "mode", "tun"]).status();
    assert!(tunnel("add").unwrap().success());
    let missing = Rig::new(&peers, &["cosched_tun"], None).wire.states().missing;
    assert!(tunnel("del").unwrap().success());
    assert_eq!(missing, ["on_xdp:cosched_tun", "on_udp:cosched_tun"]);
}
