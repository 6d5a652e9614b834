// SPDX-License-Identifier: GPL-2.0-only
//! Claim: on this machine's kernel, segments between two addresses take the epoch of the CPU that sends them along, and
//! they are noted for the connection before the message is there; and who is no peer is neither told nor believed.
//!
//! It needs root, BTF and cgroup v2, not sched_ext: the scheduler's part is tested in a VM. One test, since what it
//! loads is attached to the whole machine.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::mem::offset_of;
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use common::needs_root;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::time::{ClockId, clock_gettime};
use scx_cosched::bpf::intf::{cosched_cpu_stats, cosched_wire_flow, cosched_wire_note};
use scx_cosched::bpf::types::cpu_ctx;
use scx_cosched::check::Host;
use scx_cosched::native;
use scx_cosched::wire::Wire;
use scx_cosched::wire::settings::{Interface, Key, WireSettings};
use scx_utils::NR_CPU_IDS;

const MESSAGE: &[u8; 128] = &[7; 128];
/// What is left of the slice of every CPU's task, ns.
const SLICE: u64 = 500_000_000;

/// The programs, with the state of the CPUs as a scheduler would keep it.
struct Rig {
    wire: Wire,
    maps: BTreeMap<&'static str, MapHandle>,
}

impl Rig {
    fn new(peers: &[&str], interfaces: &[&str], key: Option<Key>) -> Rig {
        let settings = WireSettings {
            peers: peers.iter().map(|peer| peer.parse().unwrap()).collect(),
            interfaces: interfaces.iter().map(|name| Interface::Named(name.to_string())).collect(),
            key,
            node_number: 0,
        };
        let root = Host::new(Path::new("/")).cgroup_root().expect("this test needs cgroup v2: mount it");
        let wire = Wire::load(&settings, Some(&root)).expect("this kernel takes the programs");
        let maps = wire.maps().unwrap().into_iter().map(|(name, fd)| (name, open(fd))).collect();
        Rig { wire, maps }
    }

    /// From now on every CPU is in `epoch`.
    fn set_epoch(&self, epoch: u64) {
        let ends_at = now(ClockId::CLOCK_MONOTONIC) + SLICE;
        let cctx = cpu_ctx { epoch, slice_ends_at: ends_at, curr_scale: 1, ..cpu_ctx::default() };
        // SAFETY: integers, and padding that is not looked at.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const cctx).cast::<u8>(), size_of::<cpu_ctx>()) };
        for cpu in 0..*NR_CPU_IDS as u32 {
            self.maps["cpu_ctxs"].update(&cpu.to_ne_bytes(), bytes, MapFlags::ANY).unwrap();
        }
    }

    fn counter(&self, name: &str) -> u64 {
        let index = native::counters().iter().position(|counter| counter.name == name).unwrap();
        let at = offset_of!(cosched_cpu_stats, counters) + 8 * index;
        let cpus = self.maps["cpu_stats"].lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        cpus.iter().map(|cpu| u64::from_ne_bytes(cpu[at..at + 8].try_into().unwrap())).sum()
    }

    /// Segments sent with an epoch, heard and refused.
    fn counters(&self) -> [u64; 3] {
        ["epochs_sent", "epochs_heard", "epochs_refused"].map(|name| self.counter(name))
    }

    /// What is noted of messages to `to`.
    fn note(&self, from: SocketAddr, to: SocketAddr) -> Option<cosched_wire_note> {
        let flow = cosched_wire_flow {
            from: words(from.ip()),
            to: words(to.ip()),
            from_port: from.port().to_be(),
            to_port: to.port().to_be(),
        };
        // SAFETY: integers without padding.
        let key = unsafe { std::slice::from_raw_parts((&raw const flow).cast::<u8>(), size_of_val(&flow)) };
        let bytes = self.maps["wire_notes"].lookup(key, MapFlags::ANY).unwrap()?;
        assert_eq!(bytes.len(), size_of::<cosched_wire_note>());
        // SAFETY: the map's values are of this type, which consists of integers.
        Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
    }
}

/// The map behind a file descriptor.
fn open(fd: BorrowedFd<'_>) -> MapHandle {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).unwrap();
    let id = info.lines().find_map(|line| line.strip_prefix("map_id:")).expect("it is a map");
    MapHandle::from_map_id(id.trim().parse().unwrap()).unwrap()
}

fn now(clock: ClockId) -> u64 {
    Duration::from(clock_gettime(clock).unwrap()).as_nanos() as u64
}

/// The epoch of this moment, shifted by some seconds.
fn epoch_now(shift_s: i64) -> u64 {
    let tai = now(ClockId::CLOCK_TAI).checked_add_signed(shift_s * 1_000_000_000).unwrap();
    native::wire_epoch_next(0, 5, tai)
}

fn words(address: IpAddr) -> [u32; 4] {
    let octets = match address {
        IpAddr::V4(ipv4) => ipv4.to_ipv6_mapped().octets(),
        IpAddr::V6(ipv6) => ipv6.octets(),
    };
    std::array::from_fn(|word| u32::from_ne_bytes(octets[4 * word..4 * word + 4].try_into().unwrap()))
}

/// A connection from one address to another.
fn connect(from: &str, to: &str) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((to, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let socket = nix::sys::socket::socket(
        if address.is_ipv4() { nix::sys::socket::AddressFamily::Inet } else { nix::sys::socket::AddressFamily::Inet6 },
        nix::sys::socket::SockType::Stream,
        nix::sys::socket::SockFlag::SOCK_CLOEXEC,
        None,
    )
    .unwrap();
    let own = SocketAddr::new(from.parse().unwrap(), 0);
    let peer = SocketAddr::new(to.parse().unwrap(), address.port());
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
    let signed = Some(Key::new([3; 16]));
    for (interfaces, key) in [(&[][..], None), (&["lo"], None), (&["lo"], signed), (&[], signed)] {
        let rig = Rig::new(&peers, interfaces, key);
        let states = rig.wire.states();
        assert!(states.missing.is_empty(), "{states:?}");
        assert_eq!(states.attached.len(), 1 + interfaces.len());
        takes_an_epoch_along(&rig, "127.77.0.1", "127.77.1.1", !interfaces.is_empty());
        takes_much_data_along(&rig, "127.77.0.1", "127.77.1.1");
        goes_on_one_way(&rig, "127.77.0.1", "127.77.1.1");
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
    assert_eq!(rig.wire.states().missing, ["on_xdp:no_such_if"]);
    takes_an_epoch_along(&rig, "127.77.0.1", "127.77.1.1", false);
}
