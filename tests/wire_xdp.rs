// SPDX-License-Identifier: GPL-2.0-only
//! Claim: XDP finds the option in every packet that may have one, passes every packet on as it was, whatever is in it,
//! and believes only what belongs to a connection that it knows.
//!
//! Runs `bpf/wire.bpf.c` by test_run on this machine's kernel: it needs root and BTF, not sched_ext.

use packets::{NOP, PACKETS, SEED, option, packet, present, with_rig};
use random::Random;

#[allow(dead_code)]
#[path = "common/wire_packets.rs"]
mod packets;
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const TIMESTAMPS: [u8; 12] = [NOP, NOP, 8, 10, 1, 2, 3, 4, 5, 6, 7, 8];
const SACK: [u8; 12] = [NOP, NOP, 5, 10, 1, 2, 3, 4, 5, 6, 7, 8];

#[test]
fn the_option_is_found_wherever_it_may_be() {
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
            for ip_options in [0, 4, 40] {
                rig.know(false);
                rig.see(&packet(&[], false, ip_options, &options));
                assert_eq!(rig.epoch(false), Some(epoch), "{ip_options} {options:?}");
            }
            rig.know(true);
            rig.see(&packet(&[], true, 0, &options));
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
            ("of a VLAN", self::packet(&[[0x81, 0]], false, 0, &epoch)),
            ("of a VLAN in a provider's", self::packet(&[[0x88, 0xa8], [0x81, 0]], false, 0, &epoch)),
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
