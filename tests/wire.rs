// SPDX-License-Identifier: GPL-2.0-only
//! Claim: what a message takes along over the network comes out as it went in, nothing else is believed, and nobody can
//! drive a node's epoch further from its clock than the window (docs/wire-format.md; thesis 3.3).

#[path = "common/checksum.rs"]
mod checksum;

use std::hash::Hasher;

use checksum::sum;
use cosched_rules::intf::{cosched_beat_news, cosched_wire_flow, cosched_wire_key, cosched_wire_message};
use cosched_rules::native::{
    NO_NEWS, WIRE_OPTION_MAX, beat_sketch, beat_sketch_merge, epoch_adopt, epoch_next, wire_credible, wire_decode,
    wire_encode, wire_epoch_next, wire_surplus_encode, wire_time,
};
use proptest::prelude::*;
use scx_cosched::wire::key::{Key, NO_KEY};

/// One unit of time on the wire, ns.
const UNIT: u64 = 1 << 14;
/// Half of the time after which clocks on the wire begin anew, ns.
const HALF: i64 = 1 << 45;
/// The window, ns.
const WINDOW: u64 = 60_000_000_000;
/// 2026-01-01 in TAI, ns.
const NOW: u64 = 1_767_225_637_000_000_000;
/// Addresses as they are in memory: 10.1.0.1:4660 to 10.1.0.2:22136.
const FLOW: cosched_wire_flow = cosched_wire_flow {
    from: [0, 0, 0xffff_0000, u32::from_le_bytes([10, 1, 0, 1])],
    to: [0, 0, 0xffff_0000, u32::from_le_bytes([10, 1, 0, 2])],
    from_port: 0x1234u16.to_be(),
    to_port: 0x5678u16.to_be(),
};

fn key(byte: u8) -> cosched_wire_key {
    Key::new([byte; 16]).to_bpf()
}

fn message(epoch: u64, slice_ns: u64) -> cosched_wire_message {
    cosched_wire_message { epoch, slice_ns, waits_us: 0, news: NO_NEWS, job: 0 }
}

fn decoded(option: &[u8], flow: &cosched_wire_flow, key: &cosched_wire_key) -> Option<(u64, u64)> {
    wire_decode(option, flow, key).map(|message| (message.epoch, message.slice_ns))
}

/// The MAC as the document has it, by another implementation of SipHash-2-4.
#[allow(deprecated)]
fn mac(option: &[u8], key: &cosched_wire_key) -> u32 {
    let mut text = Vec::new();
    for address in [[10, 1, 0, 1], [10, 1, 0, 2]] {
        text.extend([0; 10]);
        text.extend([0xff, 0xff]);
        text.extend(address);
    }
    text.extend([0x12, 0x34, 0x56, 0x78]);
    text.extend(&option[4..14]);
    text.push(option[0]);
    assert_eq!(text.len(), 47);
    let mut hasher = std::hash::SipHasher::new_with_keys(key.words[0], key.words[1]);
    hasher.write(&text);
    hasher.finish() as u32
}

#[test]
fn an_option_has_the_bytes_of_the_document() {
    for (epoch, slice_ns, bytes) in [
        (0, 0, [253, 14, 0xc0, 0x5c, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
        (0x0102_0304_0506_0708, 0x0a0b * UNIT, [253, 14, 0xc0, 0x5c, 1, 2, 3, 4, 5, 6, 7, 8, 0x0a, 0x0b]),
        // What is left is rounded up, so that a little is not nothing, and cut to the longest.
        (u64::MAX, 1, [253, 14, 0xc0, 0x5c, 255, 255, 255, 255, 255, 255, 255, 255, 0, 1]),
        (1, UNIT, [253, 14, 0xc0, 0x5c, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1]),
        (1, UNIT + 1, [253, 14, 0xc0, 0x5c, 0, 0, 0, 0, 0, 0, 0, 1, 0, 2]),
        (1, u64::MAX, [253, 14, 0xc0, 0x5c, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255]),
    ] {
        assert_eq!(wire_encode(&message(epoch, slice_ns), &FLOW, &NO_KEY), bytes, "{epoch:#x} {slice_ns}");
    }
}

fn of_news(tai_ns: u64, theta: u32, sizes: u32) -> cosched_wire_message {
    cosched_wire_message { news: cosched_beat_news { tai_ns, theta, sizes }, job: 0xcafe, ..message(0, 0) }
}

fn news_of(option: &[u8], key: &cosched_wire_key) -> Option<(u64, u32, u32)> {
    let message = wire_decode(option, &FLOW, key)?;
    assert_eq!((message.epoch, message.slice_ns, message.waits_us, message.job), (0, 0, 0, 0xcafe));
    Some((message.news.tai_ns, message.news.theta, message.news.sizes))
}

#[test]
fn news_have_the_bytes_of_the_document() {
    for (tai_ns, theta, sizes, bytes) in [
        (0x0102_0304_0506 * UNIT, 0x0708_0001, 0x0a0b_0c0d, [3, 4, 5, 6, 7, 9, 0xab, 0xcd]),
        (0x0102_0304_0506 * UNIT + UNIT - 1, 0x0709_ffff, 0x0f00_0000, [3, 4, 5, 6, 7, 9, 0xf0, 0]),
        // The lowest bit of theta says that the job is astray, the others are cut off.
        (u64::MAX, u32::MAX - 1, 1, [255, 255, 255, 255, 255, 254, 0, 1]),
        (0, 1, 0x0f0f_0f0f, [0, 0, 0, 0, 0, 1, 255, 255]),
    ] {
        let message = of_news(tai_ns, theta, sizes);
        let option = wire_encode(&message, &FLOW, &NO_KEY);
        let bytes = [&bytes[..], &[0xca, 0xfe]].concat();
        assert_eq!(option, [&[253, 14, 0xc0, 0x5d][..], &bytes].concat());
        let cut = (theta & !0x1ffff) | (theta & 1);
        assert_eq!(news_of(&option, &NO_KEY), Some(((tai_ns / UNIT % (1 << 32)) * UNIT, cut, sizes)));
        for kind in [253, 127] {
            let signed = match kind {
                253 => wire_encode(&message, &FLOW, &key(7)),
                _ => wire_surplus_encode(false, &message, &FLOW, &key(7))[2..].to_vec(),
            };
            assert_eq!(signed[..14], [&[kind, 18, 0xc0, 0x5d][..], &bytes].concat());
            // It is signed as of the kind that follows, so it is not believed as an epoch, nor as the other kind.
            let as_signed = [&[kind + 1], &signed[1..]].concat();
            assert_eq!(signed[14..], mac(&as_signed, &key(7)).to_be_bytes());
            assert_eq!(news_of(&signed, &key(7)), Some(((tai_ns / UNIT % (1 << 32)) * UNIT, cut, sizes)));
            assert_eq!(decoded(&[&signed[..3], &[0x5c], &signed[4..]].concat(), &FLOW, &key(7)), None);
        }
    }
}

#[test]
fn waits_have_the_bytes_of_the_document() {
    for (waits_us, bytes) in [(1, [0, 1]), (0x0a0b, [0x0a, 0x0b]), (u64::MAX, [255, 255])] {
        let message = cosched_wire_message { waits_us, ..message(0x0102_0304_0506_0708, UNIT) };
        let option = wire_encode(&message, &FLOW, &NO_KEY);
        assert_eq!(option, [&[253, 14, 0xc0, 0x5e, 1, 2, 3, 4, 5, 6, 7, 8][..], &bytes].concat());
        for key in [NO_KEY, key(7)] {
            let option = wire_encode(&message, &FLOW, &key);
            let came = wire_decode(&option, &FLOW, &key).unwrap();
            let waits_us = waits_us.min(0xffff);
            assert_eq!((came.epoch, came.slice_ns, came.waits_us), (message.epoch, 0, waits_us), "a slice does not go");
        }
        // It is signed as of the kind after next, so it is not believed to be a slice.
        let signed = wire_encode(&message, &FLOW, &key(7));
        assert_eq!(signed[14..], mac(&[&[255], &signed[1..]].concat(), &key(7)).to_be_bytes());
        assert_eq!(decoded(&[&signed[..3], &[0x5c], &signed[4..]].concat(), &FLOW, &key(7)), None);
    }
}

#[test]
fn no_waits_are_no_option() {
    let mut option = wire_encode(&cosched_wire_message { waits_us: 5, ..message(1, 0) }, &FLOW, &NO_KEY);
    assert_eq!(decoded(&option, &FLOW, &NO_KEY), Some((1, 0)));
    option[13] = 0;
    assert_eq!(decoded(&option, &FLOW, &NO_KEY), None);
}

#[test]
fn a_clock_is_the_nearest_time_of_those_that_it_may_be() {
    let lower = |ns: u64| ns & ((1 << 46) - 1);
    for (apart, is) in
        [(0, 0), (1, 1), (-1, -1), (HALF - 1, HALF - 1), (-HALF, -HALF), (HALF, -HALF), (3 * HALF, -HALF)]
    {
        assert_eq!(wire_time(lower(NOW.wrapping_add_signed(apart)), NOW), NOW.wrapping_add_signed(is), "{apart}");
    }
    assert_eq!(wire_time(5, 0), 5);
}

#[test]
fn news_of_no_node_are_not_believed() {
    let mut option = wire_encode(&of_news(NOW, 1, 1), &FLOW, &NO_KEY);
    option[11] = 0;
    assert_eq!(news_of(&option, &NO_KEY), None);
}

#[test]
fn all_sizes_come_as_they_were() {
    let mut sizes = 0;
    for node in 0..100_000 {
        let message = of_news(NOW, 1, beat_sketch(node));
        assert_eq!(news_of(&wire_encode(&message, &FLOW, &NO_KEY), &NO_KEY).unwrap().2, beat_sketch(node));
        sizes = beat_sketch_merge(sizes, beat_sketch(node));
    }
    let message = of_news(NOW, 1, sizes);
    assert_eq!(news_of(&wire_encode(&message, &FLOW, &NO_KEY), &NO_KEY).unwrap().2, sizes);
}

#[test]
fn a_longest_slice_fits() {
    // --slice-us takes up to a second.
    let option = wire_encode(&message(1, 1_000_000_000), &FLOW, &NO_KEY);
    let (_, slice_ns) = decoded(&option, &FLOW, &NO_KEY).unwrap();
    assert!((1_000_000_000..1_000_000_000 + UNIT).contains(&slice_ns), "{slice_ns}");
}

#[test]
fn the_mac_is_the_lower_half_of_siphash() {
    // Of the second key the halves differ.
    for key in [key(7), Key::new(std::array::from_fn(|byte| byte as u8)).to_bpf()] {
        let option = wire_encode(&message(0x0102_0304_0506_0708, 3 * UNIT), &FLOW, &key);
        assert_eq!(option.len(), WIRE_OPTION_MAX);
        assert_eq!(option[1], 18);
        assert_eq!(option[14..], mac(&option, &key).to_be_bytes());
    }
}

#[test]
fn what_goes_behind_a_datagram_has_the_bytes_of_the_document() {
    for key in [NO_KEY, key(7)] {
        for odd in [false, true] {
            let message = message(0x0102_0304_0506_0708, 3 * UNIT);
            let surplus = wire_surplus_encode(odd, &message, &FLOW, &key);
            let option = &surplus[usize::from(odd) + 2..];
            assert_eq!(option[0], 127);
            assert_eq!(option[1..14], wire_encode(&message, &FLOW, &key)[1..14]);
            if option.len() > 14 {
                assert_eq!(option[14..], mac(option, &key).to_be_bytes());
                // Nor is it believed as the other kind: a device in between can turn one into the other.
                assert_eq!(decoded(&[&[253], &option[1..]].concat(), &FLOW, &key), None);
            }
            assert_eq!(decoded(option, &FLOW, &key), Some((message.epoch, message.slice_ns)));
            assert!(!odd || surplus[0] == 0);
            // As it stands on an even place, with its length.
            let length = surplus.len() as u16;
            let placed = [&surplus[usize::from(odd)..], &length.to_be_bytes()].concat();
            assert_eq!(sum(&placed), 0xffff, "{surplus:?}");
        }
    }
}

#[test]
fn the_checksum_behind_a_datagram_is_right_whatever_the_sum_carries_and_never_0() {
    // All values of one word bring the sum to each of its own. A checksum of 0 would mean that there is none.
    for word in 0..=0xffff {
        for epoch in [word, u64::MAX << 16 | word] {
            let surplus = wire_surplus_encode(false, &message(epoch, 3 * UNIT), &FLOW, &NO_KEY);
            let placed = [&surplus[..], &(surplus.len() as u16).to_be_bytes()].concat();
            assert_eq!(sum(&placed), 0xffff, "{epoch:#x}");
            assert_ne!(surplus[..2], [0, 0], "{epoch:#x}");
        }
    }
}

#[test]
fn an_option_fits_beside_timestamps_and_a_block_of_sack() {
    // A TCP header has 40 bytes of options; timestamps take 12 with their padding, a block of SACK 12. Options are
    // padded to a multiple of 4.
    for key in [NO_KEY, key(1)] {
        let length = wire_encode(&message(1, 1), &FLOW, &key).len();
        assert!(12 + length.next_multiple_of(4) <= 40 && length.next_multiple_of(4) <= 20, "{length}");
    }
}

#[test]
fn what_is_not_ours_is_not_believed() {
    let good = wire_encode(&message(5, UNIT), &FLOW, &NO_KEY);
    assert_eq!(decoded(&good, &FLOW, &NO_KEY), Some((5, UNIT)));
    for (at, byte) in
        [(0, 254), (0, 0), (1, 13), (1, 15), (1, 18), (1, 0), (1, 255), (2, 0xc1), (3, 0), (3, 0x5b), (3, 0x5f)]
    {
        let mut bad = good.clone();
        bad[at] = byte;
        assert_eq!(decoded(&bad, &FLOW, &NO_KEY), None, "{bad:?}");
    }
    assert_eq!(decoded(&[], &FLOW, &NO_KEY), None);
}

#[test]
fn without_the_key_nothing_is_believed_that_has_one_and_the_other_way_round() {
    let plain = wire_encode(&message(5, UNIT), &FLOW, &NO_KEY);
    let signed = wire_encode(&message(5, UNIT), &FLOW, &key(1));
    assert_eq!(decoded(&plain, &FLOW, &key(1)), None);
    assert_eq!(decoded(&signed, &FLOW, &NO_KEY), None);
    assert_eq!(decoded(&signed, &FLOW, &key(2)), None);
    assert_eq!(decoded(&signed, &FLOW, &key(1)), Some((5, UNIT)));
}

#[test]
fn an_epoch_is_believed_within_a_minute_of_the_clock() {
    let at = |ns: u64| (ns >> 14) << 16 | 0xffff;
    for (epoch, believed) in [
        (at(NOW), true),
        (at(NOW + WINDOW - UNIT), true),
        (at(NOW - WINDOW + UNIT), true),
        (at(NOW + WINDOW + 2 * UNIT), false),
        (at(NOW - WINDOW - 2 * UNIT), false),
        (0, false),
        (u64::MAX, false),
        // A count of switches, as nodes have it that send nothing.
        (1000 << 16, false),
    ] {
        assert_eq!(wire_credible(epoch, NOW), believed, "{epoch:#x}");
    }
    // A clock that has not been set yet.
    assert!(wire_credible(0, 0) && !wire_credible(u64::MAX, 0) && wire_credible(at(WINDOW - UNIT), 0));
}

#[test]
fn an_epoch_is_believed_up_to_the_last_unit_of_the_window() {
    let (clock, window) = (NOW >> 14, WINDOW >> 14);
    for (count, believed) in
        [(clock + window, true), (clock + window + 1, false), (clock - window, true), (clock - window - 1, false)]
    {
        assert_eq!(wire_credible(count << 16, NOW), believed, "{count}");
    }
}

#[test]
fn a_switch_makes_the_epoch_the_present_one() {
    let clock = NOW >> 14;
    for (before, after) in [
        (0, clock),
        ((clock - 1) << 16 | 9, clock),
        // Twice within a unit, or ahead of the clock: the next one.
        (clock << 16 | 9, clock + 1),
        ((clock + 1000) << 16, clock + 1001),
    ] {
        assert_eq!(wire_epoch_next(before, 0x5_0003, NOW), after << 16 | 3, "{before:#x}");
    }
    // The last epoch of all does not wrap.
    assert_eq!(wire_epoch_next(u64::MAX, 3, u64::MAX), epoch_next(u64::MAX, 3));
}

#[test]
fn a_node_whose_clock_is_set_back_follows_it() {
    let clock = NOW >> 14;
    for ahead in [2 * (WINDOW >> 14), (u64::MAX >> 16) - clock] {
        assert_eq!(wire_epoch_next((clock + ahead) << 16, 3, NOW), clock << 16 | 3, "{ahead}");
    }
    let still_ahead = clock + 2 * (WINDOW >> 14) - 1;
    assert_eq!(wire_epoch_next(still_ahead << 16, 3, NOW), (still_ahead + 1) << 16 | 3);
}

#[test]
fn a_hostile_peer_gets_a_node_no_further_than_the_window() {
    let (mut node, mut now) = (wire_epoch_next(0, 1, NOW), NOW);
    for step in 0..100_000u64 {
        now += 1_000_000;
        // It sends the latest epoch that is believed, found by halving.
        let (mut low, mut high) = (now >> 14, u64::MAX >> 16);
        while low + 1 < high {
            let middle = low + (high - low) / 2;
            *(if wire_credible(middle << 16, now) { &mut low } else { &mut high }) = middle;
        }
        node = epoch_adopt(node, low << 16);
        if step % 20 == 0 {
            node = wire_epoch_next(node, 1, now);
        }
        let ahead = (node >> 16) - (now >> 14);
        assert!(ahead <= (WINDOW >> 14) + 1, "{ahead}");
    }
    // Once it is silent, the clock catches up.
    assert_eq!(wire_epoch_next(node, 1, now + 2 * WINDOW) >> 16, (now + 2 * WINDOW) >> 14);
}

fn any_flow() -> impl Strategy<Value = cosched_wire_flow> {
    let ends = (any::<[u32; 4]>(), any::<[u32; 4]>(), any::<u16>(), any::<u16>());
    ends.prop_map(|(from, to, from_port, to_port)| cosched_wire_flow { from, to, from_port, to_port })
}

fn any_key() -> impl Strategy<Value = cosched_wire_key> {
    prop_oneof![Just(NO_KEY), any::<[u8; 16]>().prop_map(|bytes| Key::new(bytes).to_bpf())]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_goes_in_comes_out(epoch: u64, slice_ns: u64, flow in any_flow(), key in any_key()) {
        let option = wire_encode(&message(epoch, slice_ns), &flow, &key);
        let (came, came_ns) = decoded(&option, &flow, &key).expect("it is ours");
        prop_assert_eq!(came, epoch);
        let longest = 0xffff * UNIT;
        prop_assert!(came_ns == longest && slice_ns >= longest - UNIT || (slice_ns..slice_ns + UNIT).contains(&came_ns));
        prop_assert_eq!(came_ns == 0, slice_ns == 0);
    }

    #[test]
    fn any_bytes_can_be_read(bytes in prop::collection::vec(any::<u8>(), 0..40), flow in any_flow(), key in any_key()) {
        let length = if key.is_set == 0 { 14 } else { 18 };
        let starts = |kind, exid| bytes.starts_with(&[kind, length, 0xc0, exid]);
        let ours = [253, 127].iter().any(|&kind| [0x5c, 0x5d, 0x5e].iter().any(|&exid| starts(kind, exid)));
        prop_assert!(ours || decoded(&bytes, &flow, &key).is_none());
    }

    #[test]
    fn a_signed_option_that_was_changed_is_not_believed(
        epoch: u64, slice_ns in 0..1u64 << 30, flow in any_flow(), bytes: [u8; 16], at in 0..18usize, bit in 0..8u32,
    ) {
        let key = Key::new(bytes).to_bpf();
        let mut option = wire_encode(&message(epoch, slice_ns), &flow, &key);
        option[at] ^= 1 << bit;
        prop_assert!(decoded(&option, &flow, &key).is_none());
    }

    #[test]
    fn a_signed_option_is_not_believed_from_another_flow(
        epoch: u64, flow in any_flow(), bytes: [u8; 16], word in 0..4usize, bit in 0..32u32, end in 0..4u32,
    ) {
        let key = Key::new(bytes).to_bpf();
        let option = wire_encode(&message(epoch, 0), &flow, &key);
        let mut other = flow;
        match end {
            0 => other.from[word] ^= 1 << bit,
            1 => other.to[word] ^= 1 << bit,
            2 => other.from_port ^= 1 << (bit % 16),
            _ => other.to_port ^= 1 << (bit % 16),
        }
        prop_assert!(decoded(&option, &other, &key).is_none());
    }

    #[test]
    fn a_time_takes_an_epoch_back_only_if_no_peer_can_have_brought_it(
        off in -3 * (WINDOW as i64 >> 14)..3 * (WINDOW as i64 >> 14), any_before: u64, is_near: bool, node: u32, tai_ns: u64,
    ) {
        // Counts have 48 bits, which is until 2116.
        let clock = (tai_ns >> 14).min((1 << 48) - 1);
        let near = clock.saturating_add_signed(off).min((1 << 48) - 1) << 16;
        let before = if is_near { near } else { any_before };
        let after = wire_epoch_next(before, node, tai_ns);
        let is_set_back = epoch_next(before, node) >> 16 > clock + 2 * (WINDOW >> 14);
        prop_assert_eq!(after < epoch_next(before, node), is_set_back);
        prop_assert_eq!(after & 0xffff, u64::from(node) & 0xffff);
        prop_assert!(after >> 16 >= clock);
    }

    #[test]
    fn a_device_that_takes_the_option_for_data_finds_the_checksum_right(
        data in prop::collection::vec(any::<u8>(), 0..64), epoch: u64, slice_ns in 0..1u64 << 30, key in any_key(),
    ) {
        // The addresses are left out: they are the same in both.
        let length = 8 + data.len() as u16;
        let header = |checksum: u16| [0x12, 0x34, 0x56, 0x78, (length >> 8) as u8, length as u8, (checksum >> 8) as u8, checksum as u8];
        let text = |pseudo: u16, checksum: u16| [&pseudo.to_be_bytes()[..], &header(checksum), &data].concat();
        let checksum = !(sum(&text(length, 0)) as u16);
        prop_assert_eq!(sum(&text(length, checksum)), 0xffff);
        let surplus = wire_surplus_encode(data.len() % 2 == 1, &message(epoch, slice_ns), &FLOW, &key);
        let all = [text(length + surplus.len() as u16, checksum), surplus].concat();
        prop_assert_eq!(sum(&all), 0xffff);
    }

    #[test]
    fn nodes_whose_clocks_agree_believe_each_other(skew_ns in 0..WINDOW - 2 * UNIT, node: u32, tai_ns in 0..1u64 << 62) {
        let epoch = wire_epoch_next(0, node, tai_ns + skew_ns);
        prop_assert!(wire_credible(epoch, tai_ns));
        prop_assert!(wire_credible(wire_epoch_next(0, node, tai_ns), tai_ns + skew_ns));
    }
}
