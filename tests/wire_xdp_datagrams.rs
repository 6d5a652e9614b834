// SPDX-License-Identifier: GPL-2.0-only
//! Claim: XDP finds the option behind every datagram that may have one, passes every packet on as it was, whatever is
//! in it, and believes only what comes from a peer and, if the cluster has a key, is signed with it.
//!
//! Runs `bpf/wire.bpf.c` by test_run on this machine's kernel: it needs root and BTF, not sched_ext.

use cosched_rules::intf::{cosched_wire_key, cosched_wire_message};
use cosched_rules::native::{NO_NEWS, wire_surplus_encode};
use packets::{NOP, PACKETS, SEED, flow, option, packet, present, with_key, with_rig};
use random::Random;
use scx_cosched::wire::key::{Key, NO_KEY};

#[allow(dead_code)]
#[path = "common/wire_packets.rs"]
mod packets;
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

/// What a datagram is made of.
struct Datagram<'a> {
    tags: &'a [[u8; 2]],
    ipv6: bool,
    ip_options: u8,
    data: usize,
    surplus: &'a [u8],
    /// What Ethernet fills a short frame with.
    filled: usize,
}

impl Datagram<'_> {
    fn packet(&self) -> Vec<u8> {
        let mut packet = packet(self.tags, self.ipv6, self.ip_options, &[]);
        packet.truncate(packet.len() - 64 - 20);
        let ip = 14 + 4 * self.tags.len();
        let length = 8 + self.data;
        let payload = length + self.surplus.len();
        if self.ipv6 {
            packet[ip + 4..ip + 6].copy_from_slice(&(payload as u16).to_be_bytes());
            packet[ip + 6] = 17;
        } else {
            let all = packet.len() - ip + payload;
            packet[ip + 2..ip + 4].copy_from_slice(&(all as u16).to_be_bytes());
            packet[ip + 9] = 17;
        }
        packet.extend([0x12, 0x34, 0x56, 0x78, (length >> 8) as u8, length as u8, 0, 0]);
        packet.extend(vec![7; self.data]);
        packet.extend(self.surplus);
        packet.extend(vec![0; self.filled]);
        packet
    }
}

/// A datagram of `data` bytes with these bytes behind it.
fn datagram(data: usize, surplus: &[u8]) -> Vec<u8> {
    Datagram { tags: &[], ipv6: false, ip_options: 0, data, surplus, filled: 0 }.packet()
}

/// What goes behind a datagram of `data` bytes: these options, with a checksum that is right.
fn checked(data: usize, options: &[u8]) -> Vec<u8> {
    let mut sum = (options.len() + 2 + data % 2) as u32;
    sum += options.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0))).sum::<u32>();
    sum = (sum & 0xffff) + (sum >> 16);
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    [&vec![0; data % 2][..], &checksum.to_be_bytes(), options].concat()
}

fn signed(odd: bool, ipv6: bool, epoch: u64, key: &cosched_wire_key) -> Vec<u8> {
    wire_surplus_encode(
        odd,
        &cosched_wire_message { epoch, slice_ns: 0, waits_us: 0, news: NO_NEWS, job: 0 },
        &flow(ipv6),
        key,
    )
}

fn surplus(odd: bool, ipv6: bool, epoch: u64) -> Vec<u8> {
    signed(odd, ipv6, epoch, &NO_KEY)
}

/// The option of a datagram.
fn datagram_option(epoch: u64) -> Vec<u8> {
    let mut option = option(epoch);
    option[0] = 127;
    option
}

#[test]
fn the_option_is_found_behind_any_datagram() {
    let epoch = present();
    with_rig(|rig| {
        for data in [0, 1, 2, 9, 64, 1001, 1400] {
            for (ipv6, ip_options, filled) in [(false, 0, 0), (false, 4, 7), (false, 40, 0), (true, 0, 1), (true, 0, 0)]
            {
                let surplus = surplus(data % 2 == 1, ipv6, epoch);
                rig.believe(ipv6);
                rig.see(&Datagram { tags: &[], ipv6, ip_options, data, surplus: &surplus, filled }.packet());
                assert_eq!(rig.datagram_epoch(ipv6), Some(epoch), "{data} {ipv6} {ip_options}");
            }
        }
    });
}

#[test]
fn what_is_not_ours_behind_a_datagram_notes_nothing() {
    let epoch = present();
    let ours = datagram_option(epoch);
    let good = surplus(false, false, epoch);
    let changed = |at: usize, byte: u8| {
        let mut surplus = good.clone();
        surplus[at] = byte;
        datagram(64, &surplus)
    };
    let options = |options: &[u8]| datagram(64, &checked(64, options));
    let mut padded = checked(63, &ours);
    padded[0] = 1;
    let mut longer = datagram(64, &good);
    longer[39] = 250;
    let mut shorter = datagram(64, &good);
    shorter[39] = 7;
    with_rig(|rig| {
        for (what, packet) in [
            ("no option", datagram(64, &[])),
            ("a checksum that is wrong", changed(0, good[0] ^ 1)),
            ("an option that was changed", changed(15, good[15] ^ 1)),
            ("TCP's kind", options(&[&[253], &ours[1..]].concat())),
            ("another ExID", options(&[&ours[..3], &[0x5d], &ours[4..]].concat())),
            ("another length", options(&[&[127, 18], &ours[2..], &[0; 4]].concat())),
            ("cut", options(&ours[..13])),
            ("behind the end of options", options(&[&[0, 0, 0, 0], &ours[..]].concat())),
            ("behind others", options(&[&[NOP; 4], &ours[..]].concat())),
            ("before others", options(&[&ours[..], &[NOP; 5]].concat())),
            ("no padding where there is to be one", datagram(63, &good)),
            ("a padding that is not zero", datagram(63, &padded)),
            ("longer than IP's", longer),
            ("shorter than its header", shorter),
            ("a year ago", options(&datagram_option(epoch - (((365 * 86_400 * 1_000_000_000u64) >> 14) << 16)))),
        ] {
            rig.believe(false);
            rig.see(&packet);
            assert_eq!(rig.datagram_epoch(false).unwrap_or(0), 0, "{what}");
        }
        rig.see(&datagram(64, &good));
        assert_eq!(rig.datagram_epoch(false), Some(epoch), "the same without a fault");
        rig.see(&datagram(63, &checked(63, &ours)));
        assert_eq!(rig.datagram_epoch(false), Some(epoch), "the same without a fault");
        rig.see(&datagram(64, &[]));
        assert_eq!(rig.datagram_epoch(false), Some(0), "what was noted is not of one without");
    });
    with_rig(|rig| {
        rig.see(&datagram(64, &good));
        assert_eq!(rig.datagram_epoch(false), None, "from who is no peer");
    });
}

#[test]
fn with_a_key_only_what_is_signed_with_it_is_believed() {
    let epoch = present();
    let [ours, other] = [7, 8].map(|byte| Key::new([byte; 16]).to_bpf());
    with_key(ours, |rig| {
        for ipv6 in [false, true] {
            rig.believe(ipv6);
            for (key, data) in [(&NO_KEY, 64), (&other, 64), (&NO_KEY, 65), (&other, 65)] {
                let surplus = signed(data % 2 == 1, ipv6, epoch, key);
                rig.see(&Datagram { tags: &[], ipv6, ip_options: 0, data, surplus: &surplus, filled: 0 }.packet());
                assert_eq!(rig.datagram_epoch(ipv6), None, "{data} bytes, {surplus:?}");
            }
            // Signed, but for the other flow.
            let surplus = signed(false, !ipv6, epoch, &ours);
            rig.see(&Datagram { tags: &[], ipv6, ip_options: 0, data: 64, surplus: &surplus, filled: 0 }.packet());
            assert_eq!(rig.datagram_epoch(ipv6), None);
            let surplus = signed(false, ipv6, epoch, &ours);
            rig.see(&Datagram { tags: &[], ipv6, ip_options: 0, data: 64, surplus: &surplus, filled: 0 }.packet());
            assert_eq!(rig.datagram_epoch(ipv6), Some(epoch));
        }
    });
}

#[test]
fn any_datagram_is_passed_on() {
    let mut random = Random::new(SEED);
    let epoch = present();
    let mut noted = 0;
    with_rig(|rig| {
        for n in 0..PACKETS {
            let (ipv6, data) = (n % 2 == 0, random.below(40) as usize);
            let tags = vec![[0x81, 0x00]; random.below(4) as usize];
            let surplus = surplus(data % 2 == 1, ipv6, epoch);
            let ip_options = 4 * random.below(11) as u8;
            let filled = random.below(3) as usize;
            let mut packet = Datagram { tags: &tags, ipv6, ip_options, data, surplus: &surplus, filled }.packet();
            for _ in 0..random.below(4) {
                let at = random.below(packet.len() as u64) as usize;
                packet[at] = random.next() as u8;
            }
            if random.below(4) == 0 {
                packet.truncate(14 + random.below(packet.len() as u64 - 14) as usize);
            }
            rig.believe(ipv6);
            rig.see(&packet);
            noted += usize::from(rig.datagram_epoch(ipv6) == Some(epoch));
        }
        assert!((PACKETS / 100..PACKETS * 99 / 100).contains(&noted), "{noted} of {PACKETS} were noted");
    });
}
