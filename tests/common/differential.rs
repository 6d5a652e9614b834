// SPDX-License-Identifier: GPL-2.0-only
//! The same random rows through a program of tests/policy_rows.bpf.c, by test_run, and through native functions.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::mem::MaybeUninit;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, Skel, SkelBuilder};

use crate::random::Random;

#[allow(dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/policy_rows_skel.rs"));
}

/// What goes in, and what has become of it.
pub trait Row: Copy + Debug {
    fn random(random: &mut Random) -> Self;

    /// What becomes of it natively.
    fn natively(self) -> Self;

    /// As bytes, of which all mean something: there is no padding.
    fn bytes(&mut self) -> &mut [u8];

    /// The ways that a row can take, and whether it took them, `self` being what became of `before`.
    fn ways(&self, before: &Self) -> Vec<(&'static str, bool)>;
}

/// So many rows come out of `program` as they do natively, bit for bit, and each way is taken by some of them: by those
/// in
/// `ways` too.
pub fn assert_alike<R: Row>(program: &str, rows: usize, seed: u64, mut ways: BTreeMap<&'static str, usize>) {
    assert!(nix::unistd::geteuid().is_root(), "this test loads a BPF program: run `make test` as root");
    let mut object = MaybeUninit::uninit();
    let mut open = skel::PolicyRowsSkelBuilder::default().open(&mut object).expect("the object opens");
    for mut other in open.open_object_mut().progs_mut() {
        // The scx library brings a program along that needs a kernel with sched_ext.
        let wanted = other.name() == program;
        other.set_autoload(wanted);
    }
    let mut skel = open.load().expect("the object loads");
    let program = skel.object_mut().progs_mut().find(|it| it.name() == program).expect("the object has it");

    let mut random = Random::new(seed);
    for n in 0..rows {
        let mut row = R::random(&mut random);
        let before = row;
        let mut natively = row.natively();
        let input = ProgramInput { context_in: Some(row.bytes()), ..Default::default() };
        program.test_run(input).expect("the program runs");
        let alike = row.bytes() == natively.bytes();
        assert!(alike, "row {n}, before: {before:?}\nkernel: {row:?}\nnatively: {natively:?}");
        for (way, took) in row.ways(&before) {
            *ways.entry(way).or_default() += usize::from(took);
        }
    }
    // Rows that all took the same way would prove little.
    for (way, taken) in &ways {
        assert!(*taken > rows / 200, "only {taken} rows of {rows}: {way}");
    }
}
