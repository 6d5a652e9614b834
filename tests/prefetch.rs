// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a datagram that prefetches is believed once, if a peer with the key has written it for this flow and lately,
//! and no other is (docs/wire-format.md; thesis 6.2.6).

use std::hash::Hasher;

use cosched_rules::intf::{self, cosched_prefetch, cosched_wire_flow, cosched_wire_key};
use cosched_rules::native::{PREFETCH_LENGTH, prefetch_credible, prefetch_decode, prefetch_encode, wire_epoch_next};
use proptest::prelude::*;
use scx_cosched::wire::key::{Key, NO_KEY};

/// One unit of slices on the wire, ns.
const UNIT: u64 = 1 << 14;
/// The window, ns.
const WINDOW: u64 = 60_000_000_000;
/// 2026-01-01 in TAI, ns.
const NOW: u64 = 1_767_225_637_000_000_000;
/// 10.1.0.1 and 10.1.0.2 as they are in memory.
const SENDER: [u32; 4] = [0, 0, 0xffff_0000, u32::from_le_bytes([10, 1, 0, 1])];
const RECEIVER: [u32; 4] = [0, 0, 0xffff_0000, u32::from_le_bytes([10, 1, 0, 2])];

fn key(byte: u8) -> cosched_wire_key {
    Key::new([byte; 16]).to_bpf()
}

/// Ports 4660 and 22136.
fn prefetch(time_ns: u64, epoch: u64, slice_ns: u64) -> cosched_prefetch {
    let (from_port, to_port) = (0x1234u16.to_be(), 0x5678u16.to_be());
    let flow = cosched_wire_flow { from: SENDER, to: RECEIVER, from_port, to_port };
    cosched_prefetch { flow, reserved: 0, time_ns, epoch, slice_ns }
}

fn same(a: &cosched_prefetch, b: &cosched_prefetch) -> bool {
    let all = |p: &cosched_prefetch| {
        (p.flow.from, p.flow.to, p.flow.from_port, p.flow.to_port, p.time_ns, p.epoch, p.slice_ns)
    };
    all(a) == all(b)
}

/// Whether one of this time, without an epoch, is believed.
fn believed(time_ns: u64, newest_ns: u64) -> bool {
    prefetch_credible(&prefetch(time_ns, 0, 0), &SENDER, newest_ns, NOW)
}

#[test]
#[allow(deprecated)]
fn a_datagram_has_the_bytes_of_the_document() {
    let key = key(7);
    let datagram = prefetch_encode(&prefetch(0x0102_0304_0506_0708, 0x1112_1314_1516_1718, 0x0a0b * UNIT), &key);
    let mut wanted = vec![0xc0, 0x5c, 0xf0, 0x01];
    for address in [[10, 1, 0, 1], [10, 1, 0, 2]] {
        wanted.extend([0; 10]);
        wanted.extend([0xff, 0xff]);
        wanted.extend(address);
    }
    wanted.extend([0x12, 0x34, 0x56, 0x78]);
    wanted.extend([1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18, 0x0a, 0x0b, 0, 0]);
    assert_eq!(wanted.len(), 60);
    // By another implementation.
    let mut hasher = std::hash::SipHasher::new_with_keys(key.words[0], key.words[1]);
    hasher.write(&wanted);
    wanted.extend(hasher.finish().to_be_bytes());
    assert_eq!(datagram[..], wanted[..]);
}

#[test]
fn what_was_sent_is_believed() {
    let epoch = wire_epoch_next(0, 7, NOW);
    let sent = prefetch(NOW, epoch, 3 * UNIT);
    let came = prefetch_decode(&prefetch_encode(&sent, &key(7)), &key(7)).expect("it is ours");
    assert!(same(&came, &sent));
    assert!(prefetch_credible(&came, &SENDER, NOW - 1, NOW));
}

#[test]
fn another_key_or_none_is_not_believed() {
    let datagram = prefetch_encode(&prefetch(NOW, 0, 0), &key(7));
    assert!(prefetch_decode(&datagram, &key(8)).is_none());
    assert!(prefetch_decode(&datagram, &NO_KEY).is_none());
    // Nor what is signed with no key: everybody can do that.
    assert!(prefetch_decode(&prefetch_encode(&prefetch(NOW, 0, 0), &NO_KEY), &NO_KEY).is_none());
}

#[test]
fn another_length_is_not_believed() {
    let datagram = prefetch_encode(&prefetch(NOW, 0, 0), &key(7));
    for length in 0..PREFETCH_LENGTH {
        assert!(prefetch_decode(&datagram[..length], &key(7)).is_none(), "{length}");
    }
    assert!(prefetch_decode(&[&datagram[..], &[0]].concat(), &key(7)).is_none());
}

#[test]
fn another_time_is_not_believed() {
    for (time_ns, is_believed) in [
        (NOW - WINDOW, true),
        (NOW + WINDOW, true),
        (NOW - WINDOW - 1, false),
        (NOW + WINDOW + 1, false),
        (0, false),
        (u64::MAX, false),
    ] {
        assert_eq!(believed(time_ns, 0), is_believed, "{time_ns}");
    }
}

#[test]
fn what_was_heard_is_not_believed_again() {
    assert!(believed(NOW, NOW - 1));
    assert!(!believed(NOW, NOW));
    assert!(!believed(NOW - 1, NOW));
}

#[test]
fn who_speaks_for_another_node_is_not_believed() {
    let good = prefetch(NOW, 0, 0);
    for word in 0..4 {
        let mut source = SENDER;
        source[word] ^= 1 << 24;
        assert!(!prefetch_credible(&good, &source, 0, NOW));
    }
    // Nor who speaks for this one.
    let mut own = prefetch(NOW, 0, 0);
    own.flow.from = RECEIVER;
    assert!(!prefetch_credible(&own, &RECEIVER, 0, NOW));
}

#[test]
fn an_epoch_beyond_the_window_is_not_believed() {
    for (at_ns, is_believed) in [
        (NOW, true),
        (NOW + WINDOW - 2 * UNIT, true),
        (NOW + WINDOW + 2 * UNIT, false),
        (NOW - WINDOW - 2 * UNIT, false),
    ] {
        let came = prefetch(NOW, wire_epoch_next(0, 7, at_ns), 0);
        assert_eq!(prefetch_credible(&came, &SENDER, 0, NOW), is_believed, "{at_ns}");
    }
}

#[test]
fn what_is_written_and_read_leaves_nothing_of_what_was_there_before() {
    let (key, sent) = (key(7), prefetch(NOW, 5, UNIT));
    let mut datagram = [0xff; PREFETCH_LENGTH];
    // Not by native::prefetch_encode(), which hands in zeroes.
    // SAFETY: there is place for all of it, and the rest is read.
    unsafe { intf::cosched_prefetch_encode(datagram.as_mut_ptr(), &sent, &key) };
    assert_eq!(datagram, prefetch_encode(&sent, &key));
    let mut came = cosched_prefetch { reserved: u32::MAX, ..prefetch(1, 1, 1) };
    // SAFETY: no more is read than there is, and the prefetch is written.
    let ours = unsafe { intf::cosched_prefetch_decode(&mut came, datagram.as_ptr(), datagram.len() as u32, &key) };
    assert!(ours != 0 && same(&came, &sent) && came.reserved == 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out(
        from: [u32; 4], to: [u32; 4], from_port: u16, to_port: u16, time_ns: u64, epoch: u64, units in 0..=0xffffu64,
        bytes: [u8; 16],
    ) {
        let flow = cosched_wire_flow { from, to, from_port, to_port };
        let sent = cosched_prefetch { flow, reserved: 0, time_ns, epoch, slice_ns: units * UNIT };
        let key = Key::new(bytes).to_bpf();
        let came = prefetch_decode(&prefetch_encode(&sent, &key), &key).expect("it is ours");
        prop_assert!(same(&came, &sent));
    }

    #[test]
    fn one_that_was_changed_is_not_believed(
        time_ns: u64, epoch: u64, bytes: [u8; 16], at in 0..PREFETCH_LENGTH, bit in 0..8u32,
    ) {
        let key = Key::new(bytes).to_bpf();
        let mut datagram = prefetch_encode(&prefetch(time_ns, epoch, 0), &key);
        datagram[at] ^= 1 << bit;
        prop_assert!(prefetch_decode(&datagram, &key).is_none());
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..100), key: [u8; 16]) {
        prop_assert!(prefetch_decode(&bytes, &Key::new(key).to_bpf()).is_none());
    }
}
