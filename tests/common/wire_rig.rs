// SPDX-License-Identifier: GPL-2.0-only
//! The programs that put epochs on the wire, attached to this machine, with the state of its CPUs as a scheduler would
//! keep it.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::fs;
use std::mem::offset_of;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::time::Duration;

use cosched_rules::intf::{cosched_cpu_stats, cosched_wire_flow, cosched_wire_note};
use cosched_rules::native;
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::time::{ClockId, clock_gettime};
use scx_cosched::bpf::types::cpu_ctx;
use scx_cosched::node::host::Host;
use scx_cosched::wire::Wire;
use scx_cosched::wire::key::Key;
use scx_cosched::wire::settings::{Interface, WireSettings};
use scx_utils::NR_CPU_IDS;

/// What is passed.
pub const MESSAGE: &[u8; 128] = &[7; 128];
/// What is left of the slice of every CPU's task, ns.
pub const SLICE: u64 = 500_000_000;

/// The programs, with the state of the CPUs as a scheduler would keep it.
pub struct Rig {
    pub wire: Wire,
    pub maps: BTreeMap<&'static str, MapHandle>,
}

impl Rig {
    pub fn new(peers: &[&str], interfaces: &[&str], key: Option<Key>) -> Rig {
        let settings = WireSettings {
            peers: peers.iter().map(|peer| peer.parse().unwrap()).collect(),
            interfaces: interfaces.iter().map(|name| Interface::Named(name.to_string())).collect(),
            key,
            node_number: 0,
            prefetch: None,
        };
        let root = Host::new(Path::new("/")).cgroup_root().expect("this test needs cgroup v2: mount it");
        let wire = Wire::load(&settings, Some(&root)).expect("this kernel takes the programs");
        let maps = wire.maps().unwrap().into_iter().map(|(name, fd)| (name, open(fd))).collect();
        Rig { wire, maps }
    }

    /// From now on every CPU is in `epoch`.
    pub fn set_epoch(&self, epoch: u64) {
        let ends_at = now(ClockId::CLOCK_MONOTONIC) + SLICE;
        self.set_cpus(&cpu_ctx { epoch, slice_ends_at: ends_at, curr_effective: 1, ..cpu_ctx::default() });
    }

    /// On all CPUs runs a task of a job that has this to tell, by a clock that is so far ahead of TAI.
    pub fn set_news(&self, theta: u32, sizes: u32, ahead_ns: u64) {
        let told = cpu_ctx {
            curr_theta: theta,
            curr_sizes: sizes,
            curr_job: 0xcafe,
            clock_ahead_ns: ahead_ns,
            ..cpu_ctx::default()
        };
        self.set_cpus(&cpu_ctx { epoch: epoch_now(0), ..told });
    }

    /// On all CPUs runs a task whose waits say this of its job's imbalance.
    pub fn set_waits(&self, epoch: u64, waits_us: u32) {
        self.set_cpus(&cpu_ctx { epoch, curr_waits_us: waits_us, curr_effective: 1, ..cpu_ctx::default() });
    }

    fn set_cpus(&self, cctx: &cpu_ctx) {
        // SAFETY: integers, and padding that is not looked at.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const *cctx).cast::<u8>(), size_of::<cpu_ctx>()) };
        for cpu in 0..*NR_CPU_IDS as u32 {
            self.maps["cpu_ctxs"].update(&cpu.to_ne_bytes(), bytes, MapFlags::ANY).unwrap();
        }
    }

    pub fn counter(&self, name: &str) -> u64 {
        let index = native::counters().iter().position(|counter| counter.name == name).unwrap();
        let at = offset_of!(cosched_cpu_stats, counters) + 8 * index;
        let cpus = self.maps["cpu_stats"].lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).unwrap().unwrap();
        cpus.iter().map(|cpu| u64::from_ne_bytes(cpu[at..at + 8].try_into().unwrap())).sum()
    }

    /// Segments sent with an epoch, heard and refused.
    pub fn counters(&self) -> [u64; 3] {
        ["epochs_sent", "epochs_heard", "epochs_refused"].map(|name| self.counter(name))
    }

    /// What is noted of messages of a connection to `to`.
    pub fn note(&self, from: SocketAddr, to: SocketAddr) -> Option<cosched_wire_note> {
        self.note_in("wire_notes", from, to)
    }

    /// What is noted in this map of messages to `to`.
    pub fn note_in(&self, map: &str, from: SocketAddr, to: SocketAddr) -> Option<cosched_wire_note> {
        let flow = cosched_wire_flow {
            from: words(from.ip()),
            to: words(to.ip()),
            from_port: from.port().to_be(),
            to_port: to.port().to_be(),
        };
        // SAFETY: integers without padding.
        let key = unsafe { std::slice::from_raw_parts((&raw const flow).cast::<u8>(), size_of_val(&flow)) };
        let bytes = self.maps[map].lookup(key, MapFlags::ANY).unwrap()?;
        assert_eq!(bytes.len(), size_of::<cosched_wire_note>());
        // SAFETY: the map's values are of this type, which consists of integers.
        Some(unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
    }
}

/// The map behind a file descriptor.
pub fn open(fd: BorrowedFd<'_>) -> MapHandle {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd())).unwrap();
    let id = info.lines().find_map(|line| line.strip_prefix("map_id:")).expect("it is a map");
    MapHandle::from_map_id(id.trim().parse().unwrap()).unwrap()
}

pub fn now(clock: ClockId) -> u64 {
    Duration::from(clock_gettime(clock).unwrap()).as_nanos() as u64
}

/// The epoch of this moment, shifted by some seconds.
pub fn epoch_now(shift_s: i64) -> u64 {
    let tai = now(ClockId::CLOCK_TAI).checked_add_signed(shift_s * 1_000_000_000).unwrap();
    native::wire_epoch_next(0, 5, tai)
}

pub fn words(address: IpAddr) -> [u32; 4] {
    let octets = match address {
        IpAddr::V4(ipv4) => ipv4.to_ipv6_mapped().octets(),
        IpAddr::V6(ipv6) => ipv6.octets(),
    };
    std::array::from_fn(|word| u32::from_ne_bytes(octets[4 * word..4 * word + 4].try_into().unwrap()))
}
