// SPDX-License-Identifier: GPL-2.0-only
//! Claim: XDP finds the option in every packet that may have one, passes every packet on as it was, whatever is in it, and
//! believes only what belongs to a connection that it knows.
//!
//! Runs `bpf/wire.bpf.c` by test_run on this machine's kernel: it needs root and BTF, not sched_ext.

use std::mem::MaybeUninit;
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{MapCore, MapFlags, ProgramInput};
use nix::time::{ClockId, clock_gettime};
use random::Random;
use scx_cosched::bpf::intf::{cosched_wire_flow, cosched_wire_message, cosched_wire_note};
use scx_cosched::native::{wire_encode, wire_epoch_next};
use scx_cosched::wire::settings::NO_KEY;

#[allow(dead_code)]
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

#[allow(dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/wire_skel.rs"));
}

const XDP_PASS: u32 = 2;
const PACKETS: usize = 200_000;
const SEED: u64 = 0x5ca1_ab1e_0ddb_a115;
const NOP: u8 = 1;
const IPV4: [u8; 2] = [0x08, 0];
const IPV6: [u8; 2] = [0x86, 0xdd];
const TIMESTAMPS: [u8; 12] = [NOP, NOP, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
const SACK: [u8; 12] = [NOP, NOP, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8];

/// From 10.77.0.1:4660 to 10.77.0.2:22136, or from fd77::1 to fd77::2.
fn flow(ipv6: bool) -> cosched_wire_flow {
    let address = |last: u8| match ipv6 {
        true => [u32::from_ne_bytes([0xfd, 0x77, 0, 0]), 0, 0, u32::from_ne_bytes([0, 0, 0, last])],
        false => [0, 0, u32::from_ne_bytes([0, 0, 0xff, 0xff]), u32::from_ne_bytes([10, 77, 0, last])],
    };
    let (from_port, to_port) = (0x1234u16.to_be(), 0x5678u16.to_be());
    cosched_wire_flow { from: address(1), to: address(2), from_port, to_port }
}

/// A packet with these TCP options, behind these VLAN tags and `ip_options` bytes of options of IP.
fn packet(tags: &[[u8; 2]], ipv6: bool, ip_options: u8, options: &[u8]) -> Vec<u8> {
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
struct Rig<'a>(skel::WireSkel<'a>);

impl Rig<'_> {
    /// XDP sees the packet, which it must pass on unchanged.
    fn see(&self, packet: &[u8]) {
        let mut out = vec![0; packet.len() + 256];
        let input = ProgramInput { data_in: Some(packet), data_out: Some(&mut out), ..Default::default() };
        let output = self.0.progs.on_xdp.test_run(input).expect("the program runs");
        assert_eq!(output.return_value, XDP_PASS, "{packet:?}");
        assert_eq!(output.data.expect("the packet comes out"), packet);
    }

    /// A connection is there, and nothing has been noted of it.
    fn know(&self, ipv6: bool) {
        let note = [0; size_of::<cosched_wire_note>()];
        self.0.maps.wire_notes.update(&key(&flow(ipv6)), &note, MapFlags::ANY).unwrap();
    }

    /// The epoch that is noted, if the connection is known.
    fn epoch(&self, ipv6: bool) -> Option<u64> {
        let note = self.0.maps.wire_notes.lookup(&key(&flow(ipv6)), MapFlags::ANY).unwrap()?;
        Some(u64::from_ne_bytes(note[..8].try_into().unwrap()))
    }

    /// How many notes there are.
    fn notes(&self) -> usize {
        self.0.maps.wire_notes.keys().count()
    }
}

fn key(flow: &cosched_wire_flow) -> Vec<u8> {
    // SAFETY: integers without padding.
    unsafe { std::slice::from_raw_parts((&raw const *flow).cast::<u8>(), size_of_val(flow)) }.to_vec()
}

fn with_rig(work: impl FnOnce(&Rig<'_>)) {
    assert!(nix::unistd::geteuid().is_root(), "this test loads a BPF program: run `make test` as root");
    let mut object = MaybeUninit::uninit();
    let open = skel::WireSkelBuilder::default().open(&mut object).expect("the object opens");
    work(&Rig(open.load().expect("the object loads")));
}

fn present() -> u64 {
    wire_epoch_next(0, 9, Duration::from(clock_gettime(ClockId::CLOCK_TAI).unwrap()).as_nanos() as u64)
}

fn option(epoch: u64) -> Vec<u8> {
    wire_encode(&cosched_wire_message { epoch, slice_ns: 0 }, &flow(false), &NO_KEY)
}

#[test]
fn the_option_is_found_wherever_it_may_be() {
    let (vlan, service) = ([0x81, 0x00], [0x88, 0xa8]);
    let epoch = present();
    let ours = option(epoch);
    let other = [254, 6, 1, 2, 3, 4];
    let behind = |before: &[u8]| [before, &ours].concat();
    with_rig(|rig| {
        for options in [
            ours.clone(),
            behind(&TIMESTAMPS),
            behind(&[TIMESTAMPS, SACK].concat()),
            behind(&other),
            behind(&[NOP; 23]),
            [behind(&other), other.to_vec()].concat(),
        ] {
            let plain = [(&[][..], 0), (&[vlan], 0), (&[service, vlan], 0), (&[], 4), (&[vlan, vlan], 40)];
            for (tags, ip_options) in plain {
                rig.know(false);
                rig.see(&packet(tags, false, ip_options, &options));
                assert_eq!(rig.epoch(false), Some(epoch), "{tags:?} {ip_options} {options:?}");
            }
            rig.know(true);
            rig.see(&packet(&[service], true, 0, &options));
            assert_eq!(rig.epoch(true), Some(epoch), "{options:?}");
        }
    });
}

#[test]
fn what_is_not_ours_notes_nothing() {
    let good = packet(&[], false, 0, &option(present()));
    let changed = |at: usize, byte: u8| {
        let mut packet = good.clone();
        packet[at] = byte;
        packet
    };
    let options = |options: &[u8]| packet(&[], false, 0, options);
    let epoch = option(present());
    with_rig(|rig| {
        for (what, packet) in [
            ("another protocol", changed(13, 0x06)),
            ("a header that is too short", changed(14, 0x44)),
            ("a fragment, the first", changed(20, 0x20)),
            ("a fragment, a later one", changed(21, 1)),
            ("UDP", changed(23, 17)),
            ("another sender", changed(29, 3)),
            ("another port", changed(35, 0)),
            ("a TCP header without options", changed(46, 0x50)),
            ("a TCP header that ends in the option", changed(46, 0x70)),
            ("a TCP header that is too short", changed(46, 0x40)),
            ("another kind", changed(54, 254)),
            ("another length", changed(55, 18)),
            ("another ExID", changed(57, 0x5d)),
            ("a year ago", options(&option(present() - (((365 * 86_400 * 1_000_000_000u64) >> 14) << 16)))),
            ("the last epoch of all", options(&option(u64::MAX))),
            ("three tags", self::packet(&[[0x81, 0]; 3], false, 0, &epoch)),
            ("behind the end of options", options(&[&[0], &epoch[..]].concat())),
            ("behind an option of no length", options(&[&[8, 0], &epoch[..]].concat())),
            ("behind an option that is too long", options(&[&[8, 255], &epoch[..]].concat())),
            ("within an option", options(&[&[8, 18, 0, 0], &epoch[..]].concat())),
        ] {
            rig.know(false);
            rig.see(&packet);
            assert_eq!(rig.epoch(false), Some(0), "{what}");
            assert_eq!(rig.notes(), 1, "{what}");
        }
        // The same without a fault, so that it is the fault that counts.
        rig.see(&good);
        assert_ne!(rig.epoch(false), Some(0));
        for length in 14..good.len() - 64 {
            rig.know(false);
            rig.see(&good[..length]);
            assert_eq!(rig.epoch(false), Some(0), "cut to {length} bytes");
        }
    });
}

#[test]
fn nothing_is_noted_of_a_connection_that_is_not_known() {
    with_rig(|rig| {
        rig.see(&packet(&[], false, 0, &option(present())));
        assert_eq!(rig.epoch(false), None);
        assert_eq!(rig.notes(), 0);
    });
}

#[test]
fn any_packet_is_passed_on() {
    let mut random = Random::new(SEED);
    let epoch = option(present());
    let mut noted = 0;
    with_rig(|rig| {
        for n in 0..PACKETS {
            rig.know(n % 2 == 0);
            let mut options: Vec<u8> = (0..random.below(30)).map(|_| random.below(16) as u8).collect();
            let at = random.below(options.len() as u64 + 1) as usize;
            options.splice(at..at, epoch.iter().copied());
            options.truncate(40);
            let tags = vec![[0x81, 0x00]; random.below(4) as usize];
            let mut packet = packet(&tags, n % 2 == 0, 4 * random.below(11) as u8, &options);
            // Some stay as they are, others are changed, or cut.
            for _ in 0..random.below(4) {
                let at = random.below(packet.len() as u64) as usize;
                packet[at] = random.next() as u8;
            }
            if random.below(4) == 0 {
                packet.truncate(14 + random.below(packet.len() as u64 - 14) as usize);
            }
            rig.see(&packet);
            noted += usize::from(rig.epoch(n % 2 == 0) != Some(0));
        }
        // Both happen, or this has tried nothing.
        assert!((PACKETS / 100..PACKETS * 99 / 100).contains(&noted), "{noted} of {PACKETS} were noted");
    });
}
