// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the rules decide the same in the kernel and natively, grant for as long, and let wait for as long, bit for
//! bit. The same random rows go through a BPF program, by test_run on this machine's kernel, and through the native functions.
//!
//! It needs root and BTF, not sched_ext.

use std::mem::MaybeUninit;

use libbpf_rs::ProgramInput;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use scx_cosched::bpf::intf::{cosched_demand, cosched_policy, cosched_wait_history};
use scx_cosched::native;

#[allow(dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/policy_rows_skel.rs"));
}

const ROWS: usize = 500_000;
const SEED: u64 = 0x5ca1_ab1e_0ddb_a115;

/// struct policy_row of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Row {
    policy: cosched_policy,
    demand: cosched_demand,
    /// Before a wait; the program answers with that after it.
    history: cosched_wait_history,
    /// 0 or 1: at the end of that wait.
    message_came: u64,
    /// For how long it would spin: the program's second answer.
    spin_ns: u64,
    /// For how long the boost would last: the program's third answer.
    slice_ns: u64,
}

/// splitmix64: the rows are the same on every machine.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number of any size, or one at an end of a range: there the arithmetic has its corners.
    fn number(&mut self) -> u64 {
        const CORNERS: [u64; 9] =
            [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 1 << 32, (1 << 32) - 1, u64::MAX - 1, 1 << 62];
        match self.below(4) {
            0 => CORNERS[self.below(CORNERS.len() as u64) as usize],
            1 => self.below(1 << 30),
            _ => {
                let shift = self.below(64);
                self.next() >> shift
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let number = self.number() as i64;
        if self.below(2) == 0 { number } else { number.wrapping_neg() }
    }

    fn row(&mut self) -> Row {
        let exponent = match self.below(4) {
            0 => self.next() as i32,
            1 => [i32::MIN, i32::MAX, -64, 64, -63, 63][self.below(6) as usize],
            _ => self.below(140) as i32 - 70,
        };
        let (receiver_ran_ns, running_ran_ns) = (self.signed(), self.signed());
        // Random times are far apart. What h decides is near the lag, and after a denial near twice the lag.
        let lag = running_ran_ns.wrapping_sub(receiver_ran_ns);
        let h_ns = match self.below(4) {
            0 => lag.wrapping_mul(1 + self.below(2) as i64).wrapping_add(self.below(5) as i64 - 2),
            _ => self.signed(),
        };
        Row {
            policy: cosched_policy {
                arrival: if self.below(16) == 0 { self.below(4) as u32 } else { 1 },
                gate: self.below(4) as u32,
                slice_ns: self.number(),
                h_ns,
                rate_constant_ns: self.signed(),
                rate_exponent: exponent,
                wait: self.below(3) as u32,
                spin_ns: self.number(),
            },
            demand: cosched_demand {
                now_ns: self.number(),
                last_boost_ns: self.number(),
                receiver_ran_ns,
                running_ran_ns,
                nr_runnable: self.number() as u32,
                max_lead_ns: if self.below(2) == 0 { u64::MAX } else { self.number() },
                denied: if self.below(2) == 0 { 0 } else { self.number() as u32 },
            },
            history: cosched_wait_history {
                skips: if self.below(2) == 0 { self.below(300) as u32 } else { self.number() as u32 },
                skips_left: if self.below(2) == 0 { 0 } else { self.number() as u32 },
            },
            message_came: self.below(2),
            // Garbage, so that an answer that the program did not write is not taken for one.
            spin_ns: self.next(),
            slice_ns: self.next(),
        }
    }
}

fn fields(history: &cosched_wait_history) -> (u32, u32) {
    (history.skips, history.skips_left)
}

#[test]
fn the_kernel_and_the_native_build_decide_alike() {
    assert!(nix::unistd::geteuid().is_root(), "this test loads a BPF program: run `make test` as root");
    let mut object = MaybeUninit::uninit();
    let mut open = skel::PolicyRowsSkelBuilder::default().open(&mut object).expect("the object opens");
    for mut program in open.open_object_mut().progs_mut() {
        // The scx library brings a program along that needs a kernel with sched_ext.
        let wanted = program.name() == "decide_row";
        program.set_autoload(wanted);
    }
    let skel = open.load().expect("the object loads");

    let mut random = Random(SEED);
    let mut seen = vec![0u32; native::reasons().len()];
    let (mut cut_short, mut held_back, mut spun) = (0u32, 0u32, 0u32);
    for n in 0..ROWS {
        let row = random.row();
        let mut context = row;
        // SAFETY: Row is integers without padding, and context outlives the slice.
        let bytes = unsafe { std::slice::from_raw_parts_mut((&raw mut context).cast::<u8>(), size_of::<Row>()) };
        let input = ProgramInput { context_in: Some(bytes), ..Default::default() };
        let kernel = skel.progs.decide_row.test_run(input).expect("the program runs").return_value;
        let native = native::decide(&row.policy, &row.demand);
        let slice_ns = native::slice(&row.policy, &row.demand);
        let mut history = row.history;
        let spin_ns = native::wait_begin(&row.policy, &mut history);
        native::wait_end(&row.policy, &mut history, row.message_came != 0);
        assert_eq!((kernel, context.slice_ns), (native, slice_ns), "row {n}: {row:?}");
        assert_eq!((context.spin_ns, fields(&context.history)), (spin_ns, fields(&history)), "row {n}: {row:?}");

        let first_asked = cosched_demand { denied: 0, ..row.demand };
        seen[native as usize] += 1;
        spun += u32::from(spin_ns > 0);
        cut_short += u32::from(slice_ns > 0 && slice_ns < row.policy.slice_ns);
        held_back += u32::from(native != native::decide(&row.policy, &first_asked));
    }

    // Rows that all took the same way would prove little. "starving" is the scheduler's, not a gate's.
    for (reason, count) in native::reasons().iter().zip(&seen).filter(|(r, _)| r.name != "starving") {
        assert!(*count > ROWS as u32 / 200, "only {count} rows of {ROWS} were decided by {}", reason.name);
    }
    assert!(cut_short > ROWS as u32 / 200, "only {cut_short} rows of {ROWS} had less than a slice");
    assert!(spun > ROWS as u32 / 200, "only {spun} rows of {ROWS} spun");
    assert!(held_back > ROWS as u32 / 200, "only {held_back} rows of {ROWS} were denied for an earlier denial");
}
