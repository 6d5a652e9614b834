// SPDX-License-Identifier: GPL-2.0-only
//! Claim: every atomic instruction of the BPF objects whose order matters fetches, so that arm64 orders it too.
//!
//! clang leaves out the fetch of an atomic operation whose result nobody uses. x86 orders all of them; the JIT of arm64
//! makes a plain atomic store of one without a fetch, which orders nothing. What only counts may go without, and is
//! named here by what its source line says. The lines are in the objects (.BTF.ext).

use std::collections::BTreeMap;

/// Both objects that are loaded into the kernel.
const OBJECTS: [(&str, &[u8]); 2] = [
    ("bpf.bpf.o", include_bytes!(concat!(env!("OUT_DIR"), "/bpf.bpf.o"))),
    ("wire.bpf.o", include_bytes!(concat!(env!("OUT_DIR"), "/wire.bpf.o"))),
];

/// What counts, and orders nothing; or has a full_barrier() on the side where order matters.
const COUNTS: [&str; 6] = ["nr_runnable", "newcomers", "hinted_threads", "told", "more_endpoints", "queued_word"];

const ATOMIC_U64: u8 = 0xdb;
const ATOMIC_U32: u8 = 0xc3;
/// Of two instructions' length.
const LOAD_U64: u8 = 0x18;
const FETCH: u32 = 0x01;
const EXECUTABLE: u64 = 4;

fn number(bytes: &[u8], at: usize, length: usize) -> usize {
    bytes[at..at + length].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

fn text(strings: &[u8], at: usize) -> &str {
    let end = strings[at..].iter().position(|byte| *byte == 0).unwrap();
    std::str::from_utf8(&strings[at..at + end]).unwrap()
}

/// Sections of a 64-bit little-endian ELF file: name, whether it is code, and what it holds.
fn sections(object: &[u8]) -> Vec<(&str, bool, &[u8])> {
    let (headers, size, count) = (number(object, 40, 8), number(object, 58, 2), number(object, 60, 2));
    let header = |section: usize| &object[headers + section * size..][..size];
    let contents = |header: &[u8]| match number(header, 4, 4) {
        8 => &[][..], // SHT_NOBITS
        _ => &object[number(header, 24, 8)..][..number(header, 32, 8)],
    };
    let names = contents(header(number(object, 62, 2)));
    (0..count)
        .map(header)
        .map(|header| {
            (text(names, number(header, 0, 4)), number(header, 8, 8) as u64 & EXECUTABLE != 0, contents(header))
        })
        .collect()
}

/// The source line of each instruction that begins one, by section and offset.
fn lines<'a>(btf: &'a [u8], ext: &[u8]) -> BTreeMap<(&'a str, usize), &'a str> {
    let strings = &btf[number(btf, 4, 4) + number(btf, 16, 4)..];
    let from = number(ext, 4, 4) + number(ext, 16, 4);
    let info = &ext[from..from + number(ext, 20, 4)];
    let size = number(info, 0, 4);
    let (mut lines, mut at) = (BTreeMap::new(), 4);
    while at < info.len() {
        let section = text(strings, number(info, at, 4));
        let count = number(info, at + 4, 4);
        at += 8;
        for record in info[at..at + count * size].chunks(size) {
            lines.insert((section, number(record, 0, 4)), text(strings, number(record, 8, 4)).trim());
        }
        at += count * size;
    }
    lines
}

/// Atomic instructions of a section that do not fetch: their offsets. Also how many there are that do.
fn unordered(code: &[u8]) -> (Vec<usize>, usize) {
    let (mut without, mut fetching, mut at) = (Vec::new(), 0, 0);
    while at < code.len() {
        let opcode = code[at];
        if matches!(opcode, ATOMIC_U64 | ATOMIC_U32) {
            match number(code, at + 4, 4) as u32 & FETCH {
                0 => without.push(at),
                _ => fetching += 1,
            }
        }
        at += if opcode == LOAD_U64 { 16 } else { 8 };
    }
    (without, fetching)
}

#[test]
fn every_atomic_that_orders_fetches() {
    let mut fetching = 0;
    for (name, object) in OBJECTS {
        let sections = sections(object);
        let section = |wanted| sections.iter().find(|(name, ..)| *name == wanted).expect("it has types").2;
        let lines = lines(section(".BTF"), section(".BTF.ext"));
        for (section, _, code) in sections.iter().filter(|(_, is_code, _)| *is_code) {
            let (without, with) = unordered(code);
            fetching += with;
            for at in without {
                let (_, line) = lines.range((*section, 0)..=(*section, at)).next_back().expect("it has lines");
                assert!(
                    COUNTS.iter().any(|count| line.contains(count)),
                    "{name}, {section}+{at:#x}: no fetch, so arm64 does not order it: {line}"
                );
            }
        }
    }
    // Barriers, states and parking are exchanges.
    assert!(fetching > 20, "only {fetching} atomics that fetch are found");
}

#[test]
fn one_without_a_fetch_is_found() {
    let (load, fetch_add, add) = (
        [LOAD_U64, 0, 0, 0, ATOMIC_U32, 0, 0, 0, 0, 0, 0, 0, ATOMIC_U64, 0, 0, 0],
        [ATOMIC_U64, 0x1a, 0, 0, 1, 0, 0, 0],
        [ATOMIC_U64, 0x1a, 0, 0, 0, 0, 0, 0],
    );
    let code = [&load[..], &fetch_add, &add].concat();
    assert_eq!(unordered(&code), (vec![24], 1));
}
