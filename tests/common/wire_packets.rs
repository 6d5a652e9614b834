// SPDX-License-Identifier: GPL-2.0-only
//! `bpf/wire.bpf.c` in this machine's kernel, attached to nothing, and packets for its XDP program to see.

use std::mem::MaybeUninit;
use std::time::Duration;

use cosched_rules::intf::{cosched_wire_flow, cosched_wire_key, cosched_wire_message, cosched_wire_note};
use cosched_rules::native::{NO_NEWS, wire_encode, wire_epoch_next};
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use nix::time::{ClockId, clock_gettime};
use scx_cosched::wire::key::NO_KEY;

#[allow(dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/wire_skel.rs"));
}

pub const XDP_PASS: u32 = 2;
/// How many random packets are seen.
pub const PACKETS: usize = 200_000;
/// What they are drawn from.
pub const SEED: u64 = 0x5ca1_ab1e_0ddb_a115;
/// The option that is none.
pub const NOP: u8 = 1;
const IPV4: [u8; 2] = [0x08, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];

/// From 10.77.0.1:4660 to 10.77.0.2:22136, or from fd77::1 to fd77::2.
pub fn flow(ipv6: bool) -> cosched_wire_flow {
    let address = |last: u8| match ipv6 {
        true => [u32::from_ne_bytes([0xfd, 0x77, 0, 0]), 0, 0, u32::from_ne_bytes([0, 0, 0, last])],
        false => [0, 0, u32::from_ne_bytes([0, 0, 0xff, 0xff]), u32::from_ne_bytes([10, 77, 0, last])],
    };
    let (from_port, to_port) = (0x1234u16.to_be(), 0x5678u16.to_be());
    cosched_wire_flow { from: address(1), to: address(2), from_port, to_port }
}

/// A packet with these TCP options, behind these VLAN tags and `ip_options` bytes of options of IP.
pub fn packet(tags: &[[u8; 2]], ipv6: bool, ip_options: u8, options: &[u8]) -> Vec<u8> {
    let mut packet = vec![0xaa; 12];
    for tag in tags {
        packet.extend(tag);
        packet.extend([0, 5]);
    }
    packet.extend(if ipv6 { IPV6 } else { IPV4 });
    let flow = flow(ipv6);
    let address = |words: [u32; 4]| words.map(u32::to_ne_bytes).concat();
    if ipv6 {
        packet.extend([0x60, 0, 0, 0, 0, 100, 6, 64]);
        packet.extend(address(flow.from));
        packet.extend(address(flow.to));
    } else {
        packet.extend([0x45 + ip_options / 4, 0, 0, 100, 0, 0, 0x40, 0, 64, 6, 0, 0]);
        packet.extend(&address(flow.from)[12..]);
        packet.extend(&address(flow.to)[12..]);
        packet.extend(vec![NOP; usize::from(ip_options)]);
    }
    let mut options = options.to_vec();
    options.resize(options.len().next_multiple_of(4), NOP);
    packet.extend([0x12, 0x34, 0x56, 0x78, 0, 0, 0, 1, 0, 0, 0, 2, (5 + options.len() as u8 / 4) << 4, 0x18]);
    packet.extend([1, 0, 0, 0, 0, 0]);
    packet.extend(options);
    packet.extend([7; 64]);
    packet
}

/// The programs in the kernel, attached to nothing.
pub struct Rig<'a>(pub skel::WireSkel<'a>);

impl Rig<'_> {
    /// XDP sees the packet, which it must pass on unchanged.
    pub fn see(&self, packet: &[u8]) {
        let mut out = vec![0; packet.len() + 256];
        let input = ProgramInput { data_in: Some(packet), data_out: Some(&mut out), ..Default::default() };
        let output = self.0.progs.on_xdp.test_run(input).expect("the program runs");
        assert_eq!(output.return_value, XDP_PASS, "{packet:?}");
        assert_eq!(output.data.expect("the packet comes out"), packet);
    }

    /// A connection is there, and nothing has been noted of it.
    pub fn know(&self, ipv6: bool) {
        let note = [0; size_of::<cosched_wire_note>()];
        self.0.maps.wire_notes.update(&key(&flow(ipv6)), &note, MapFlags::ANY).unwrap();
    }

    /// The epoch that is noted, if the connection is known.
    pub fn epoch(&self, ipv6: bool) -> Option<u64> {
        let note = self.0.maps.wire_notes.lookup(&key(&flow(ipv6)), MapFlags::ANY).unwrap()?;
        Some(u64::from_ne_bytes(note[..8].try_into().unwrap()))
    }

    /// Who sends is a peer, and nothing has been noted of what he sends.
    pub fn believe(&self, ipv6: bool) {
        let network = [&128u32.to_ne_bytes()[..], &flow(ipv6).from.map(u32::to_ne_bytes).concat()].concat();
        self.0.maps.wire_peers.update(&network, &1u32.to_ne_bytes(), MapFlags::ANY).unwrap();
        let _ = self.0.maps.wire_datagrams.delete(&key(&flow(ipv6)));
    }

    /// The epoch that is noted of a datagram.
    pub fn datagram_epoch(&self, ipv6: bool) -> Option<u64> {
        let note = self.0.maps.wire_datagrams.lookup(&key(&flow(ipv6)), MapFlags::ANY).unwrap()?;
        Some(u64::from_ne_bytes(note[..8].try_into().unwrap()))
    }

    /// How many notes there are.
    pub fn notes(&self) -> usize {
        self.0.maps.wire_notes.keys().count()
    }
}

/// A flow as a map's key.
pub fn key(flow: &cosched_wire_flow) -> Vec<u8> {
    // SAFETY: integers without padding.
    unsafe { std::slice::from_raw_parts((&raw const *flow).cast::<u8>(), size_of_val(flow)) }.to_vec()
}

/// Loads the programs of a cluster that has no key.
pub fn with_rig(work: impl FnOnce(&Rig<'_>)) {
    with_key(NO_KEY, work);
}

/// Loads the programs of a cluster with this key.
pub fn with_key(key: cosched_wire_key, work: impl FnOnce(&Rig<'_>)) {
    assert!(nix::unistd::geteuid().is_root(), "this test loads a BPF program: run `make test` as root");
    let mut object = MaybeUninit::uninit();
    let mut open = skel::WireSkelBuilder::default().open(&mut object).expect("the object opens");
    let rodata = open.maps.rodata_data.as_mut().expect("it has a key");
    rodata.wire_key.words = key.words;
    rodata.wire_key.is_set = key.is_set;
    work(&Rig(open.load().expect("the object loads")));
}

/// An epoch of this moment.
pub fn present() -> u64 {
    wire_epoch_next(0, 9, Duration::from(clock_gettime(ClockId::CLOCK_TAI).unwrap()).as_nanos() as u64)
}

/// The option of a segment.
pub fn option(epoch: u64) -> Vec<u8> {
    wire_encode(&cosched_wire_message { epoch, slice_ns: 0, waits_us: 0, news: NO_NEWS, job: 0 }, &flow(false), &NO_KEY)
}
