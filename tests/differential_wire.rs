// SPDX-License-Identifier: GPL-2.0-only
//! Claim: what goes over the wire is written, read and believed alike in the kernel and natively, bit for bit: the
//! option of TCP and UDP, its epochs, and the datagrams that prefetch.
//!
//! As tests/differential.rs does, it needs root and BTF, not sched_ext.

use std::collections::BTreeMap;

use cosched_rules::intf::{
    cosched_beat_news, cosched_prefetch, cosched_wire_flow, cosched_wire_key, cosched_wire_message,
};
use cosched_rules::native::{self, NO_NEWS, PREFETCH_LENGTH};
use differential::assert_alike;
use random::Random;

#[path = "common/differential.rs"]
mod differential;
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const ROWS: usize = 200_000;
const SEED: u64 = 0x0dd5_0c7e_75ca_1ab1;
/// Of epochs and prefetches, ns.
const WINDOW_NS: u64 = 60_000_000_000;
const NO_MESSAGE: cosched_wire_message =
    cosched_wire_message { epoch: 0, slice_ns: 0, waits_us: 0, news: NO_NEWS, job: 0 };
const NO_FLOW: cosched_wire_flow = cosched_wire_flow { from: [0; 4], to: [0; 4], from_port: 0, to_port: 0 };
const NO_PREFETCH: cosched_prefetch =
    cosched_prefetch { flow: NO_FLOW, reserved: 0, time_ns: 0, epoch: 0, slice_ns: 0 };

/// struct wire_answers of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Answers {
    came: cosched_wire_message,
    heard: cosched_prefetch,
    length: u64,
    surplus_length: u64,
    ours: u64,
    credible: u64,
    epoch_next: u64,
    time_ns: u64,
    heard_ours: u64,
    heard_credible: u64,
    option: [u8; 20],
    surplus: [u8; 20],
    datagram: [u8; PREFETCH_LENGTH],
    zero: [u8; 4],
}

/// struct wire_row of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Row {
    flow: cosched_wire_flow,
    pad: u32,
    key: cosched_wire_key,
    message: cosched_wire_message,
    prefetch: cosched_prefetch,
    epoch: u64,
    tai_ns: u64,
    newest_ns: u64,
    source: [u32; 4],
    node: u32,
    length: u32,
    option: [u8; 20],
    datagram: [u8; PREFETCH_LENGTH],
    answers: Answers,
}

fn padded(bytes: &[u8]) -> [u8; 20] {
    std::array::from_fn(|at| bytes.get(at).copied().unwrap_or(0))
}

/// An epoch with a slice or waits, or news of nodes with any ranks.
fn any_message(random: &mut Random) -> cosched_wire_message {
    let sizes = if random.below(2) == 0 { 0 } else { random.number() as u32 };
    let news = cosched_beat_news { tai_ns: random.number(), theta: random.number() as u32, sizes };
    let waits_us = if random.below(2) == 0 { 0 } else { random.number() };
    cosched_wire_message { epoch: random.number(), slice_ns: random.number(), waits_us, news, job: random.number() }
}

impl Row {
    /// `ns` or what is near it, where the window ends above all.
    fn near(random: &mut Random, ns: u64) -> u64 {
        let apart = match random.below(4) {
            0 => random.below(WINDOW_NS),
            1 => 0,
            _ => WINDOW_NS,
        };
        let apart = apart.wrapping_add(random.below(3)).wrapping_sub(1);
        if random.below(2) == 0 { ns.wrapping_add(apart) } else { ns.wrapping_sub(apart) }
    }

    fn make_times(&mut self, random: &mut Random) {
        self.tai_ns = random.number();
        // The count of an epoch is the clock in units of 2^14 ns, above 16 bits for the node.
        let ns = Row::near(random, self.tai_ns);
        let count = (ns >> 14).wrapping_add(random.below(3)) << 16;
        self.epoch = if random.below(4) == 0 { random.number() } else { count };
        let prefetch = &mut self.prefetch;
        prefetch.time_ns = if random.below(8) == 0 { random.number() } else { Row::near(random, self.tai_ns) };
        prefetch.epoch = if random.below(2) == 0 { 0 } else { self.epoch };
        self.newest_ns = match random.below(3) {
            0 => 0,
            1 => random.number(),
            _ => prefetch.time_ns.wrapping_add(random.below(3)).wrapping_sub(2),
        };
    }

    fn make_flow_of_prefetch(&mut self, random: &mut Random) {
        let flow = &mut self.prefetch.flow;
        if random.below(2) == 0 {
            flow.to = flow.from;
        }
        if random.below(2) == 0 {
            flow.to[random.below(4) as usize] ^= 1 << random.below(32);
        }
        self.source = flow.from;
        if random.below(4) == 0 {
            self.source[random.below(4) as usize] ^= 1 << random.below(32);
        }
    }

    /// Any bytes, or what a peer has written, with the same key or none, of which a bit has changed now and then.
    fn make_what_comes(&mut self, random: &mut Random) {
        let signs = if random.below(8) == 0 { cosched_wire_key { is_set: 0, ..self.key } } else { self.key };
        let message = any_message(random);
        match random.below(4) {
            0 => {}
            1 => self.option = padded(&native::wire_surplus_encode(false, &message, &self.flow, &signs)[2..]),
            _ => self.option = padded(&native::wire_encode(&message, &self.flow, &signs)),
        }
        if random.below(4) > 0 {
            self.datagram = native::prefetch_encode(&self.prefetch, &self.key);
        }
        if random.below(4) == 0 {
            self.option[random.below(20) as usize] ^= 1 << random.below(8);
            self.datagram[random.below(PREFETCH_LENGTH as u64) as usize] ^= 1 << random.below(8);
        }
        let all = PREFETCH_LENGTH as u64;
        self.length = if random.below(8) == 0 { random.below(all) } else { all } as u32;
    }
}

impl differential::Row for Row {
    fn random(random: &mut Random) -> Row {
        let words: [u64; size_of::<Row>() / 8] = std::array::from_fn(|_| random.next());
        // SAFETY: Row is so many words without padding, as bytes() sees to, and any words are a Row.
        let mut row: Row = unsafe { std::mem::transmute(words) };
        row.pad = random.below(2) as u32;
        row.key.is_set = if random.below(4) == 0 { 0 } else { row.key.is_set.max(1) };
        row.message = any_message(random);
        let slice_ns = if random.below(2) == 0 { random.below(1 << 32) } else { random.number() };
        row.prefetch = cosched_prefetch { reserved: 0, epoch: random.number(), slice_ns, ..row.prefetch };
        row.make_times(random);
        row.make_flow_of_prefetch(random);
        row.make_what_comes(random);
        row
    }

    /// What the native functions make of it.
    fn natively(mut self) -> Row {
        let Row { message, flow, key, prefetch, .. } = &self;
        let option = native::wire_encode(message, flow, key);
        let surplus = native::wire_surplus_encode(self.pad == 1, message, flow, key);
        let surplus = &surplus[self.pad as usize..];
        let came = native::wire_decode(&self.option, flow, key);
        let heard = native::prefetch_decode(&self.datagram[..self.length as usize], key);
        let credible = native::prefetch_credible(prefetch, &self.source, self.newest_ns, self.tai_ns);
        self.answers = Answers {
            length: option.len() as u64,
            surplus_length: surplus.len() as u64,
            ours: came.is_some().into(),
            credible: native::wire_credible(self.epoch, self.tai_ns).into(),
            epoch_next: native::wire_epoch_next(self.epoch, self.node, self.tai_ns),
            time_ns: native::wire_time(self.epoch, self.tai_ns),
            heard_ours: heard.is_some().into(),
            heard_credible: credible.into(),
            came: came.unwrap_or(NO_MESSAGE),
            heard: heard.unwrap_or(NO_PREFETCH),
            option: padded(&option),
            surplus: padded(surplus),
            datagram: native::prefetch_encode(prefetch, key),
            zero: [0; 4],
        };
        self
    }

    fn bytes(&mut self) -> &mut [u8] {
        const MESSAGE: usize = 3 * 8 + 8 + 2 * 4 + 8;
        const WIRE: usize = size_of::<cosched_wire_flow>() + 4 + size_of::<cosched_wire_key>() + MESSAGE;
        const TIMES: usize = size_of::<cosched_prefetch>() + 3 * 8 + 6 * 4;
        const ANSWERS: usize = MESSAGE + size_of::<cosched_prefetch>() + 8 * 8 + 2 * 20 + PREFETCH_LENGTH + 4;
        const { assert!(size_of::<Answers>() == ANSWERS) };
        const { assert!(size_of::<Row>() == WIRE + TIMES + 20 + PREFETCH_LENGTH + ANSWERS) };
        // SAFETY: Row is integers without padding, as its size says, and any bytes are a Row.
        unsafe { std::slice::from_raw_parts_mut((&raw mut *self).cast::<u8>(), size_of::<Row>()) }
    }

    fn ways(&self, _before: &Row) -> Vec<(&'static str, bool)> {
        let Answers { ours, credible, heard_ours, heard_credible, .. } = self.answers;
        let (count, clock) = (self.epoch >> 16, self.tai_ns >> 14);
        let signed = self.key.is_set != 0;
        let believed = |prefetch: &cosched_prefetch, newest_ns| {
            native::prefetch_credible(prefetch, &self.prefetch.flow.from, newest_ns, self.tai_ns)
        };
        let prefetch = &self.prefetch;
        vec![
            ("are ours and signed", ours > 0 && signed),
            ("are ours without a key", ours > 0 && !signed),
            ("are ours of UDP", ours > 0 && self.option[0] == 127),
            ("tell of waits", ours > 0 && self.answers.came.waits_us > 0),
            ("have waits that are cut", self.message.waits_us > 0xffff),
            ("are not ours", ours == 0),
            ("are not ours for their MAC", ours == 0 && signed && self.option[..4] == [253, 18, 0xc0, 0x5c]),
            ("have a slice that is cut", self.message.slice_ns >> 14 > 0xffff),
            ("have a slice that is not", (1..1 << 30).contains(&self.message.slice_ns)),
            ("are behind an odd datagram", self.pad == 1),
            ("have a credible epoch", credible > 0 && count != clock),
            ("have an epoch too far ahead", credible == 0 && count > clock),
            ("have an epoch too far behind", credible == 0 && count < clock),
            ("count on", self.answers.epoch_next >> 16 == count + 1 && clock <= count),
            ("go on to the clock", self.answers.epoch_next >> 16 == clock && clock > count + 1),
            ("prefetch", heard_ours > 0),
            ("prefetch without a key", heard_ours == 0 && !signed),
            ("prefetch at the wrong length", heard_ours == 0 && self.length != PREFETCH_LENGTH as u32),
            ("prefetch and lie", heard_ours == 0 && signed && self.length == PREFETCH_LENGTH as u32),
            ("prefetch credibly", heard_credible > 0 && prefetch.epoch == 0),
            ("prefetch credibly with an epoch", heard_credible > 0 && prefetch.epoch != 0),
            ("prefetch for another", heard_credible == 0 && believed(prefetch, self.newest_ns)),
            ("prefetch again", !believed(prefetch, self.newest_ns) && believed(prefetch, 0)),
            (
                "prefetch with an incredible epoch",
                !believed(prefetch, 0) && believed(&cosched_prefetch { epoch: 0, ..*prefetch }, 0),
            ),
            ("prefetch for itself", prefetch.flow.from == prefetch.flow.to),
        ]
    }
}

#[test]
fn the_kernel_and_the_native_build_write_read_and_believe_alike() {
    assert_alike::<Row>("wire_row", ROWS, SEED, BTreeMap::new());
}
