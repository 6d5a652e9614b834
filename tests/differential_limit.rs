// SPDX-License-Identifier: GPL-2.0-only
//! Claim: what a group has left of its `cpu.max` goes on alike in the kernel and natively, bit for bit.
//!
//! As tests/differential.rs does, it needs root and BTF, not sched_ext.

use std::collections::BTreeMap;

use cosched_rules::intf::{LIMIT_LEAST_NS, LIMIT_PORTION_NS, cosched_limit, cosched_portion};
use cosched_rules::native;
use differential::assert_alike;
use random::Random;

#[path = "common/differential.rs"]
mod differential;
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const ROWS: usize = 100_000;
const SEED: u64 = 0xc0de_11a1_7000_0001;

/// struct limit_row of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Row {
    limit: cosched_limit,
    fresh: cosched_limit,
    takes: cosched_portion,
    returns: cosched_portion,
    now_ns: u64,
    ns: u64,
    answers: [u64; 5],
}

impl differential::Row for Row {
    /// Half of the rows are such as can be, the others anything but a period of 0.
    fn random(random: &mut Random) -> Row {
        let real = random.below(2) == 0;
        let mut number = |most: u64| if real { random.below(most) } else { random.number() };
        let (period_ns, quota_ns) = (number(1 << 30).max(1), number(1 << 30));
        let burst_ns = if quota_ns > 0 { number(quota_ns) } else { 0 };
        let now_ns = number(1 << 50);
        // As much debt as anything left, of this period or of another one.
        let mut left = |most: u64| (number(most) as i64).wrapping_sub((most / 2) as i64);
        let (left_ns, taken_ns, returned_ns) = (left(1 << 22), left(1 << 23), left(1 << 24));
        let mut of_period = || number(3);
        let takes = cosched_portion { left_ns: taken_ns, number: of_period() };
        let returns = cosched_portion { left_ns: returned_ns, number: of_period() };
        let late = of_period();
        let refill_at_ns = now_ns.wrapping_add(period_ns).wrapping_sub(late.wrapping_mul(period_ns));
        let limit =
            cosched_limit { quota_ns, period_ns, burst_ns, left_ns, room_ns: burst_ns / 2, refill_at_ns, number: 1 };
        Row { limit, fresh: limit, takes, returns, now_ns, ns: number(1 << 34), answers: [0; 5] }
    }

    fn natively(mut self) -> Row {
        let Row { takes, now_ns, ns, .. } = self;
        self.answers[0] = native::limit_until(&self.limit, &takes, now_ns);
        self.answers[1] = u64::from(native::limit_waited(ns));
        native::limit_return(&mut self.limit, &mut self.returns);
        self.answers[4] = native::limit_part(&self.limit, ns, self.limit.burst_ns);
        self.answers[2] = native::limit_take(&mut self.limit, &mut self.takes, self.answers[4], now_ns) as u64;
        self.answers[3] = native::limit_slice(ns, self.takes.left_ns);
        native::limit_set(&mut self.fresh, ns, self.limit.period_ns, self.limit.burst_ns, now_ns);
        self
    }

    fn bytes(&mut self) -> &mut [u8] {
        const { assert!(size_of::<Row>() == 2 * 7 * 8 + 2 * 2 * 8 + 2 * 8 + 5 * 8) };
        // SAFETY: Row is integers without padding, as its size says, and any bytes are a Row.
        unsafe { std::slice::from_raw_parts_mut((&raw mut *self).cast::<u8>(), size_of::<Row>()) }
    }

    fn ways(&self, before: &Row) -> Vec<(&'static str, bool)> {
        let [until, waited, taken, _, part] = self.answers;
        vec![
            ("may run", until == 0),
            ("are held", until > 0),
            ("have waited for too long", waited > 0),
            ("refill", self.limit.number != before.limit.number),
            ("take something", taken as i64 > 0),
            ("get nothing", taken as i64 <= 0),
            ("take a part", part > u64::from(LIMIT_LEAST_NS) && part < u64::from(LIMIT_PORTION_NS)),
            ("use up room", self.limit.room_ns < before.limit.room_ns),
        ]
    }
}

#[test]
fn the_kernel_and_the_native_build_keep_the_same_limits() {
    assert_alike::<Row>("limit_row", ROWS, SEED, BTreeMap::new());
}
