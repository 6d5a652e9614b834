// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the rules answer the same in the kernel and natively, bit for bit. The same random rows go through a BPF
//! program, by test_run on this machine's kernel, and through the native functions.
//!
//! It needs root and BTF, not sched_ext.

use std::collections::BTreeMap;

use cosched_rules::intf::{COSCHED_LOAD_PARTS, COSCHED_WAKES_PARTS};
use cosched_rules::native;
use differential::assert_alike;
use random::Random;
use rules::{cosched_candidate, cosched_demand, cosched_policy, cosched_wait_history, cosched_window};

#[path = "common/differential.rs"]
mod differential;
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const ROWS: usize = 500_000;
const SEED: u64 = 0x5ca1_ab1e_0ddb_a115;

/// struct policy_answers of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq)]
struct Answers {
    reason: u64,
    slice_ns: u64,
    begin_ns: u64,
    spin_ns: u64,
    goes_on: u64,
    interval_ns: u64,
    parks: u64,
    epoch_next: u64,
    epoch_adopted: u64,
    rank: u64,
    prefers: u64,
    row_at: u64,
    rest_ns: u64,
    row_of: u64,
    wakes_parts: u64,
    load_differs: u64,
    move_pays: u64,
    has_rested: u64,
}

impl Answers {
    /// So that an answer that the program did not write is not taken for one.
    fn garbage(random: &mut Random) -> Answers {
        let words: [u64; size_of::<Answers>() / 8] = std::array::from_fn(|_| random.next());
        // SAFETY: Answers is so many words, and any words are Answers.
        unsafe { std::mem::transmute(words) }
    }
}

/// struct policy_row of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Row {
    policy: cosched_policy,
    demand: cosched_demand,
    candidate: cosched_candidate,
    best: cosched_candidate,
    window: cosched_window,
    history: cosched_wait_history,
    heard_us: u32,
    message_came: u64,
    time_ns: u64,
    number: u64,
    load_here: u64,
    load_there: u64,
    share_here: u64,
    share_there: u64,
    answers: Answers,
}

impl Row {
    /// Random numbers are far apart, and what the rules decide is near where two of them are equal.
    fn bring_together(&mut self, random: &mut Random) {
        let Row { policy, demand, .. } = self;
        let lag = demand.running_ran_ns.wrapping_sub(demand.receiver_ran_ns);
        if random.below(4) == 0 {
            // h: near the lag, and after a denial near twice the lag.
            policy.h_ns = lag.wrapping_mul(1 + random.below(2) as i64).wrapping_add(random.below(5) as i64 - 2);
        }
        if random.below(2) == 0 {
            let bound = u128::from(demand.fair_ns) * u128::from(policy.target_permille) / 1000;
            let off = u128::from(1000 + random.below(80)) * bound / 1040;
            demand.cpu_ns = u64::try_from(off).unwrap_or(u64::MAX);
        }
        if random.below(2) == 0 {
            demand.message_epoch = demand.node_epoch.wrapping_add(random.below(3)).wrapping_sub(1);
        }
        if random.below(2) == 0 {
            policy.switch_ns = u64::from(self.history.waits_us[0]) * 100 + random.below(3);
        }
        if random.below(2) == 0 {
            self.time_ns = policy.switch_ns.wrapping_mul(3).wrapping_add(policy.overhead_ns.wrapping_mul(2));
            self.time_ns = self.time_ns.wrapping_add(random.below(3)).wrapping_sub(1);
        }
        if random.below(2) == 0 {
            demand.now_ns = self.window.stepped_ns.wrapping_add(random.below(50 * 125_000_000));
        }
        if random.below(2) == 0 {
            // What a task waiting or woken makes of a difference, near or far.
            self.number = 16 + random.below(160_000);
            let eighths = 2 + 4 * random.below(2) + 8 * random.below(2);
            let apart = self.number * eighths / 8 + random.below(3) - 1;
            self.load_there = self.load_here.wrapping_add(apart);
        }
        if random.below(2) == 0 {
            let kept = self.share_there - self.share_there / 16;
            self.share_here = kept.wrapping_add(random.below(3)).wrapping_sub(1);
        }
    }

    fn parts(&self) -> u32 {
        self.share_here as u32 % COSCHED_LOAD_PARTS
    }

    fn takes_if_near(&self) -> bool {
        native::load_differs(self.load_here, self.load_there, self.number as u32, self.parts(), false)
    }
}

impl differential::Row for Row {
    fn random(random: &mut Random) -> Row {
        let (policy, demand, window) = (random.policy(), random.demand(), random.window());
        let mut row = Row {
            policy,
            demand,
            candidate: random.candidate(),
            best: random.candidate(),
            window,
            history: random.history(),
            heard_us: random.number() as u32,
            message_came: random.below(2),
            time_ns: random.number(),
            number: random.number(),
            load_here: random.number(),
            load_there: random.number(),
            share_here: random.number(),
            share_there: random.number(),
            answers: Answers::garbage(random),
        };
        row.bring_together(random);
        row
    }

    /// What the native functions make of it.
    fn natively(mut self) -> Row {
        let Row { policy, demand, candidate, best, .. } = self;
        let (history, window) = (&mut self.history, &mut self.window);
        let begin_ns = native::wait_begin(&policy, history);
        native::wait_end(&policy, history, self.message_came != 0);
        native::spin_learn(&policy, history, self.time_ns);
        native::spin_hear(history, self.heard_us);
        native::window_add(window, &policy, demand.now_ns, demand.cpu_ns, demand.fair_ns);
        self.answers = Answers {
            reason: native::decide(&policy, &demand).into(),
            slice_ns: native::slice(&policy, &demand),
            begin_ns,
            spin_ns: native::spin_ns(&policy, history),
            goes_on: native::spin_goes_on(&policy, self.time_ns).into(),
            interval_ns: native::spin_interval_ns(&policy),
            parks: native::wait_parks(&policy).into(),
            epoch_next: native::epoch_next(demand.node_epoch, self.number as u32),
            epoch_adopted: native::epoch_adopt(demand.node_epoch, demand.message_epoch),
            rank: native::choice_rank(policy.choice, &candidate).into(),
            prefers: native::choice_prefers(policy.choice, &candidate, &best).into(),
            row_at: native::gang_row_at(&policy, self.time_ns).into(),
            rest_ns: native::gang_rest_ns(&policy, self.time_ns),
            row_of: native::gang_row_of(&policy, self.number).into(),
            wakes_parts: native::wakes_parts(self.share_here, self.share_there).into(),
            load_differs: native::load_differs(
                self.load_here,
                self.load_there,
                self.number as u32,
                self.parts(),
                self.message_came != 0,
            )
            .into(),
            move_pays: native::move_pays(self.share_here, self.share_there).into(),
            has_rested: native::has_rested(self.time_ns).into(),
        };
        self
    }

    fn bytes(&mut self) -> &mut [u8] {
        const RULES: usize = size_of::<cosched_policy>() + size_of::<cosched_demand>() + size_of::<Answers>();
        const TASK: usize = 2 * size_of::<cosched_candidate>() + size_of::<cosched_window>();
        const WAIT: usize = size_of::<cosched_wait_history>() + 4 + 3 * 8;
        const CPUS: usize = 4 * 8;
        const { assert!(size_of::<Row>() == RULES + TASK + WAIT + CPUS) };
        // SAFETY: Row is integers without padding, as its size says, and any bytes are a Row.
        unsafe { std::slice::from_raw_parts_mut((&raw mut *self).cast::<u8>(), size_of::<Row>()) }
    }

    fn ways(&self, before: &Row) -> Vec<(&'static str, bool)> {
        let Answers { slice_ns, begin_ns, spin_ns, goes_on, rank, prefers, parks, .. } = self.answers;
        let Answers { wakes_parts, load_differs, move_pays, has_rested, .. } = self.answers;
        let first_asked = cosched_demand { denied: 0, ..self.demand };
        let baseline = cosched_policy { spin: 2, ..self.policy };
        let (window, was) = (&self.window, &before.window);
        let reason = native::reasons()[self.answers.reason as usize].name;
        vec![
            (reason, true),
            ("are cut short", slice_ns > 0 && slice_ns < self.policy.slice_ns),
            (
                "are denied for an earlier denial",
                self.answers.reason != u64::from(native::decide(&self.policy, &first_asked)),
            ),
            ("spin", begin_ns > 0),
            ("skip a spin", begin_ns == 0 && spin_ns > 0),
            ("spin for an imbalance", self.policy.spin > 3 && spin_ns > native::spin_ns(&baseline, &self.history)),
            ("spin on", goes_on > 0),
            ("do not spin on under the rule that could", goes_on == 0 && self.policy.spin == 3),
            (
                "learn in an old place",
                self.history.nr_waits == before.history.nr_waits + 1 && before.history.nr_waits > 20,
            ),
            (
                "forget a part",
                window.stepped_ns > was.stepped_ns && was.cpu_ns > 0 && window.cpu_ns > self.demand.cpu_ns,
            ),
            ("lose credit", window.fair_ns < self.demand.fair_ns),
            ("are preferred", rank > 0 && prefers > 0),
            ("are not preferred", rank > 0 && prefers == 0),
            ("have no rank", rank == 0),
            ("park", parks > 0),
            ("do not park", parks == 0),
            ("wake for a part of the time", wakes_parts < u64::from(COSCHED_WAKES_PARTS)),
            ("wake for most of the time", wakes_parts == u64::from(COSCHED_WAKES_PARTS)),
            ("take from a near CPU", load_differs > 0 && self.message_came == 0),
            ("take from a far CPU", load_differs > 0 && self.message_came > 0),
            ("take from near CPUs only", load_differs == 0 && self.takes_if_near()),
            ("do not take", load_differs == 0),
            ("move and lose by it", move_pays > 0 && self.share_here < self.share_there),
            ("move", move_pays > 0),
            ("do not move", move_pays == 0),
            ("may move again", has_rested > 0),
            ("stay for a while", has_rested == 0),
        ]
    }
}

#[test]
fn the_kernel_and_the_native_build_answer_alike() {
    let mut ways: BTreeMap<&str, usize> = native::reasons().iter().map(|r| (r.name, 0)).collect();
    ways.remove("starving"); // the scheduler's, not a gate's
    assert_alike::<Row>("decide_row", ROWS, SEED, ways);
}
