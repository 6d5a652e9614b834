// SPDX-License-Identifier: GPL-2.0-only
//! The fair order and its accounts as native functions (`policies/fair.h`, `policies/account.h`).

use crate::intf::cosched_share_clock as ShareClock;
use crate::intf::{self, cosched_demand as Demand, cosched_loan as Loan, cosched_order as Order};
use crate::intf::{cosched_place as Place, cosched_policy as Policy, cosched_presence as Presence};

/// Of nobody.
pub const NEW_ORDER: Order = Order { weight: 0, weighted_vtime: 0, clock: 0, ahead: 0 };
/// Of one that is not runnable.
pub const NEW_PLACE: Place = Place { vtime: 0, weight: 0, lag: 0, ahead: 0 };
/// Of a group that has never run there.
pub const NEW_PRESENCE: Presence = Presence { mean: 0, at_ns: 0 };
/// At time 0.
pub const NEW_SHARE_CLOCK: ShareClock = ShareClock { ns: 0, at_ns: 0 };
/// Nothing was borrowed.
pub const NEW_LOAN: Loan = Loan { ahead_ns: 0, starving: 0, reserved: 0 };

/// `place` is runnable from now on, where it stands, with this weight, of which 0 counts as 1. It must not be in the
/// order yet.
pub fn fair_enter(order: &mut Order, place: &mut Place, weight: u32) {
    // SAFETY: changes its arguments.
    unsafe { intf::fair_enter(order, place, weight) }
}

/// `place` is not runnable any more, and keeps its vtime. It must be in the order.
pub fn fair_leave(order: &mut Order, place: &mut Place) {
    // SAFETY: changes its arguments.
    unsafe { intf::fair_leave(order, place) }
}

/// `place`, which is in the order, counts with this weight from now on, of which 0 counts as 1.
pub fn fair_reweigh(order: &mut Order, place: &mut Place, weight: u32) {
    // SAFETY: changes its arguments.
    unsafe { intf::fair_reweigh(order, place, weight) }
}

/// Brings `presence` up to `now_ns`, among weights that summed up to `weight` until then.
pub fn fair_note_presence(presence: &mut Presence, weight: u64, now_ns: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::fair_note_presence(presence, weight, now_ns) }
}

/// A limit keeps the group from running from `now_ns` on, of which the last to leave had this weight: its presence
/// stays, for `FAIR_HOLD_NS` at most.
pub fn fair_hold_presence(presence: &mut Presence, weight: u64, now_ns: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::fair_hold_presence(presence, weight, now_ns) }
}

/// The share of a CPU that a task of `FAIR_ROOM_WEIGHT` would have beside others of this weight, in
/// 2^-`FAIR_ROOM_SHIFT`.
pub fn fair_room(weight: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_room(weight) }
}

/// The load of a CPU with so much room: the weight that leaves it.
pub fn fair_load(room: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_load(room) }
}

/// The part of its `weight`, from 1 on, with which a group counts on a CPU. The weights in it sum up to `here` there,
/// to `mean` of late, and to `all` on all CPUs.
pub fn fair_portion(weight: u64, here: u64, mean: u64, all: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_portion(weight, here, mean, all) }
}

/// Whether a portion is so far from what it was that the order is to know it.
pub fn fair_portion_differs(was: u64, portion: u64) -> bool {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_portion_differs(was, portion) != 0 }
}

/// Something of `place`, which is in the order, has run for `ran_ns`.
pub fn fair_charge(order: &mut Order, place: &mut Place, ran_ns: u64) {
    // SAFETY: changes its arguments.
    unsafe { intf::fair_charge(order, place, ran_ns) }
}

/// Brings a debt of `place`, which is in the order, back to what the others catch up with in `FAIR_WAIT_NS`, or to
/// none.
pub fn fair_bound(order: &mut Order, place: &mut Place, forgives: bool) {
    // SAFETY: changes its arguments.
    unsafe { intf::fair_bound(order, place, i32::from(forgives)) }
}

/// Leaves `place`, which is in the order, no more credit than this, in ns of its CPU time.
pub fn fair_bound_credit(order: &mut Order, place: &mut Place, credit_ns: u64) {
    // SAFETY: changes its arguments.
    unsafe { intf::fair_bound_credit(order, place, credit_ns) }
}

/// How far `place` is ahead of the clock of its order, in ns at `FAIR_WEIGHT_DEFAULT`; less than 0: behind.
pub fn fair_lead(order: &Order, place: &Place) -> i64 {
    // SAFETY: a pure function that reads its arguments.
    unsafe { intf::fair_lead(order, place) }
}

/// `lead` in the order of a group, on the clock of the order above, in which the group has that weight.
pub fn fair_lead_above(lead: i64, order: &Order, group_weight: u64) -> i64 {
    // SAFETY: a pure function that reads its second argument.
    unsafe { intf::fair_lead_above(lead, order, group_weight) }
}

/// `lead` on the root's clock as CPU time of one of `nr` equal tasks, in ns, where weights sum up to `sum`.
pub fn fair_lead_ns(lead: i64, sum: u64, nr: u32) -> i64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_lead_ns(lead, sum, nr) }
}

/// The vtime at which a place of `weight` is runnable again that has a `lead`, and had a `lag` when it left: with no
/// more than this credit, or than what it had waited for.
pub fn fair_place(order: &Order, lead: i64, lag: i64, weight: u32, credit_ns: u64, slice_ns: u64) -> u64 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::fair_place(order, lead, lag, weight, credit_ns, slice_ns) }
}

/// How long a task of `effective` weight (in 2^-`FAIR_WEIGHT_SHIFT`) runs for at a time where weights sum up to `sum`,
/// in ns: from `FAIR_LEAST_SLICE_NS` to `slice_ns`.
pub fn fair_slice(slice_ns: u64, effective: u64, sum: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_slice(slice_ns, effective, sum) }
}

/// How much of its CPU time a task may be behind the order that comes when `others` have come and not run yet, and that
/// awaited a message or not, in ns.
pub fn fair_credit(policy: &Policy, others: u32, awaited: bool) -> u64 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::fair_credit(policy, others, i32::from(awaited)) }
}

/// Whether enough is left of a slice to be worth a switch, if it was cut short at all.
pub fn fair_has_rest(slice_ns: u64, used_ns: u64) -> bool {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_has_rest(slice_ns, used_ns) != 0 }
}

/// Whether a task that wakes runs instead of the running one, which is `ahead` of it on the root's clock.
pub fn fair_preempts(ahead: i64, sum: u64, nr: u32) -> bool {
    // SAFETY: a pure function of numbers.
    unsafe { intf::fair_preempts(ahead, sum, nr) != 0 }
}

/// Whether a task that wakes, which has this `lead` on the root's clock, has had no more than its share.
pub fn fair_is_due(lead: i64) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::fair_is_due(lead) != 0 }
}

/// Where in the queue one with this `lead` on the root's clock stands that goes ahead of boosts, on that clock.
pub fn fair_front(lead: i64) -> i64 {
    // SAFETY: a pure function of a number.
    unsafe { intf::fair_front(lead) }
}

/// Whether the one that stands there goes ahead of boosts.
pub fn fair_is_front(place: i64) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::fair_is_front(place) != 0 }
}

/// Whether the running task, which has run for `ran_ns` at a stretch, has had the time to sleep, as it promised the
/// task that it woke.
pub fn fair_has_had_time(ran_ns: u64) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::fair_has_had_time(ran_ns) != 0 }
}

/// Brings `clock` up to `now_ns`, among weights that summed up to `sum` until then.
pub fn account_advance(clock: &mut ShareClock, sum: u64, now_ns: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::account_advance(clock, sum, now_ns) }
}

/// Of the time since `clock` was last set `ns` do not count, or all of it up to `now_ns` if that is less.
pub fn account_skip(clock: &mut ShareClock, ns: u64, now_ns: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::account_skip(clock, ns, now_ns) }
}

/// What one of `effective` weight is due while the share clock goes on by `ns`, in ns.
pub fn account_share(ns: u64, effective: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::account_share(ns, effective) }
}

/// The same while it awaited a message, so that the clock went on among `others`, whose sum with it is `all`.
pub fn account_awaited(ns: u64, effective: u64, others: u64, all: u64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::account_awaited(ns, effective, others, all) }
}

/// A task has run for `ran_ns` because of a boost, or in the fair order.
pub fn account_loan(loan: &mut Loan, policy: &Policy, boosted: bool, ran_ns: u64) {
    // SAFETY: changes its first argument and reads the second.
    unsafe { intf::account_loan(loan, policy, i32::from(boosted), ran_ns) }
}

/// A kernel thread has run for `ran_ns`, or a task of a user.
pub fn account_urgent(loan: &mut Loan, kthread: bool, ran_ns: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::account_urgent(loan, i32::from(kthread), ran_ns) }
}

/// Tells a gate how the receiver stands; `counts`: its weight is among those that sum up to `sum`.
pub fn account_describe(demand: &mut Demand, lead: i64, effective: u64, sum: u64, nr: u32, counts: bool) {
    // SAFETY: changes its first argument.
    unsafe { intf::account_describe(demand, lead, effective, sum, nr, i32::from(counts)) }
}
