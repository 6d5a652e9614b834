// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the fair order and its accounts go on alike in the kernel and natively, bit for bit.
//!
//! As tests/differential.rs does, it needs root and BTF, not sched_ext.

use std::collections::BTreeMap;

use cosched_rules::intf::{cosched_loan, cosched_order, cosched_place, cosched_presence, cosched_share_clock};
use cosched_rules::native;
use differential::assert_alike;
use random::Random;
use rules::{cosched_demand, cosched_policy};

#[path = "common/differential.rs"]
mod differential;
#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const ROWS: usize = 200_000;
const SEED: u64 = 0xfa1e_0bde_ca11_ab1e;

/// struct fair_row of tests/policy_rows.bpf.c.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Row {
    policy: cosched_policy,
    demand: cosched_demand,
    order: cosched_order,
    waits: cosched_place,
    comes: cosched_place,
    presence: cosched_presence,
    clock: cosched_share_clock,
    loan: cosched_loan,
    urgent: cosched_loan,
    lead: i64,
    ns: u64,
    effective: u64,
    sum: u64,
    now_ns: u64,
    weight: u32,
    nr: u32,
    flag: u64,
    answers: [u64; 17],
}

impl differential::Row for Row {
    /// Half of the rows are such as can be, the others anything.
    fn random(random: &mut Random) -> Row {
        let real = random.below(2) == 0;
        let mut number = |most: u64| if real { random.below(most) } else { random.number() };
        let clock = number(1 << 50);
        let waits = cosched_place {
            vtime: clock.wrapping_add(number(1 << 32)),
            weight: number(10_000) + 1,
            lag: 0,
            ahead: number(1 << 46),
        };
        let others = number(100_000);
        let weight = others.wrapping_add(waits.weight);
        let weighted = others.wrapping_mul(clock).wrapping_add(waits.weight.wrapping_mul(waits.vtime));
        let order =
            cosched_order { weight, weighted_vtime: weighted, clock, ahead: waits.ahead.wrapping_add(number(1 << 46)) };
        let lag = number(1 << 34) as i64;
        let comes = cosched_place { vtime: clock.wrapping_sub(number(1 << 34)), weight: 0, lag, ahead: 0 };
        let (at_ns, lead) = (number(1 << 40), number(1 << 34) as i64);
        let lead = if number(1 << 20).is_multiple_of(2) { lead } else { lead.wrapping_neg() };
        Row {
            order,
            waits,
            comes,
            presence: cosched_presence { mean: number(1 << 20), at_ns },
            clock: cosched_share_clock { ns: number(1 << 50), at_ns },
            loan: cosched_loan { ahead_ns: number(1 << 30), starving: number(2) as u32, reserved: 0 },
            urgent: cosched_loan { ahead_ns: number(1 << 26), starving: number(2) as u32, reserved: 0 },
            lead,
            ns: number(1 << 30),
            effective: number(1 << 24),
            sum: number(1 << 20),
            now_ns: at_ns.wrapping_add(number(1 << 30)),
            weight: number(10_000) as u32,
            nr: number(10_000) as u32,
            flag: number(2),
            answers: [0; 17],
            policy: random.policy(),
            demand: random.demand(),
        }
    }

    fn natively(mut self) -> Row {
        let Row { policy, lead, ns, effective, sum, now_ns, weight, nr, .. } = self;
        let (order, comes, flag) = (&mut self.order, &mut self.comes, self.flag != 0);
        self.answers = [
            native::fair_lead(order, comes) as u64,
            native::fair_lead_above(lead, order, effective) as u64,
            native::fair_lead_ns(lead, sum, nr) as u64,
            native::fair_slice(ns, effective, sum),
            native::fair_credit(&policy, nr, flag),
            native::fair_has_rest(ns, now_ns).into(),
            native::fair_preempts(lead, sum, nr).into(),
            native::account_share(ns, effective),
            native::account_awaited(ns, effective, sum, sum + u64::from(weight)),
            native::fair_portion(weight.into(), sum, self.presence.mean, effective),
            native::fair_portion_differs(sum, weight.into()).into(),
            native::fair_room(sum),
            native::fair_load(self.presence.mean),
            native::fair_has_had_time(ns).into(),
            native::fair_is_due(lead).into(),
            native::fair_front(lead.wrapping_mul(4)) as u64,
            native::fair_is_front(lead.wrapping_mul(4)).into(),
        ];
        native::fair_note_presence(&mut self.presence, sum, now_ns);
        comes.vtime = native::fair_place(order, lead, comes.lag, weight, ns, now_ns);
        native::fair_enter(order, comes, weight);
        native::fair_charge(order, comes, ns);
        native::fair_reweigh(order, comes, nr);
        native::fair_bound(order, comes, flag);
        native::fair_bound_credit(order, &mut self.waits, now_ns);
        native::fair_leave(order, &mut self.waits);
        native::account_advance(&mut self.clock, sum, now_ns);
        native::account_loan(&mut self.loan, &policy, flag, ns);
        native::account_urgent(&mut self.urgent, flag, ns);
        native::account_describe(&mut self.demand, lead, effective, sum, nr, flag);
        self
    }

    fn bytes(&mut self) -> &mut [u8] {
        const RULES: usize = size_of::<cosched_policy>() + size_of::<cosched_demand>();
        const { assert!(size_of::<Row>() == RULES + 4 * 8 + 8 * 8 + 2 * 8 + 2 * 8 + 4 * 8 + 7 * 8 + 17 * 8) };
        // SAFETY: Row is integers without padding, as its size says, and any bytes are a Row.
        unsafe { std::slice::from_raw_parts_mut((&raw mut *self).cast::<u8>(), size_of::<Row>()) }
    }

    fn ways(&self, before: &Row) -> Vec<(&'static str, bool)> {
        let [_, _, _, slice_ns, _, has_rest, preempts, _, _, portion, differs, ..] = self.answers;
        let ahead_of_boosts = self.answers[16];
        vec![
            ("have a slice cut", slice_ns < self.ns),
            ("have a whole slice", slice_ns == self.ns),
            ("have a rest", has_rest > 0),
            ("have none", has_rest == 0),
            ("go ahead of boosts", ahead_of_boosts > 0),
            ("do not go ahead of boosts", ahead_of_boosts == 0),
            ("preempt", preempts > 0),
            ("do not preempt", preempts == 0),
            ("count with a part", portion < u64::from(self.weight)),
            ("count in whole", portion == u64::from(self.weight)),
            ("are to be told", differs > 0),
            ("are as they were", differs == 0),
            ("lose credit", self.waits.vtime != before.waits.vtime),
            ("keep credit", self.waits.vtime == before.waits.vtime),
            ("starve", self.loan.starving > before.loan.starving),
            ("starve no more", self.loan.starving < before.loan.starving),
            ("hold kernel threads back", self.urgent.starving > before.urgent.starving),
            ("hold them back no more", self.urgent.starving < before.urgent.starving),
            ("lead", self.demand.receiver_ran_ns > self.demand.running_ran_ns),
            ("lag", self.demand.receiver_ran_ns < self.demand.running_ran_ns),
        ]
    }
}

#[test]
fn the_kernel_and_the_native_build_keep_the_same_order() {
    assert_alike::<Row>("fair_row", ROWS, SEED, BTreeMap::new());
}
