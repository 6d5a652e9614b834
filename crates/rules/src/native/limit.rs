// SPDX-License-Identifier: GPL-2.0-only
//! What a group has left of its `cpu.max`, as native functions (`policies/limit.h`). All times are in ns.

use crate::intf::{self, cosched_limit as Limit, cosched_portion as Portion};

/// Of a group without a limit.
pub const NEW_LIMIT: Limit =
    Limit { quota_ns: 0, period_ns: 0, burst_ns: 0, left_ns: 0, room_ns: 0, refill_at_ns: 0, number: 0 };
/// Of a CPU that has taken nothing.
pub const NEW_PORTION: Portion = Portion { left_ns: 0, number: 0 };

/// The group has this limit from `now_ns` on, and at first its whole quota. A quota of 0 is none.
pub fn limit_set(limit: &mut Limit, quota_ns: u64, period_ns: u64, burst_ns: u64, now_ns: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::limit_set(limit, quota_ns, period_ns, burst_ns, now_ns) }
}

/// Gives the pool back what is left of `portion`, or what it owes.
pub fn limit_return(limit: &mut Limit, portion: &mut Portion) {
    // SAFETY: changes its arguments.
    unsafe { intf::limit_return(limit, portion) }
}

/// What a CPU takes at a time with which the group counts for `counts`, of its whole `weight`.
pub fn limit_part(limit: &Limit, counts: u64, weight: u64) -> u64 {
    // SAFETY: a pure function that reads its arguments.
    unsafe { intf::limit_part(limit, counts, weight) }
}

/// Fills `portion` up to `part_ns` from the pool, which was set before, and gains what it is due by `now_ns`. Returns
/// what the portion has then.
pub fn limit_take(limit: &mut Limit, portion: &mut Portion, part_ns: u64, now_ns: u64) -> i64 {
    // SAFETY: changes its arguments.
    unsafe { intf::limit_take(limit, portion, part_ns, now_ns) }
}

/// When the group may run on the CPU that has `portion`; 0: at once.
pub fn limit_until(limit: &Limit, portion: &Portion, now_ns: u64) -> u64 {
    // SAFETY: a pure function that reads its arguments.
    unsafe { intf::limit_until(limit, portion, now_ns) }
}

/// Whether a task that has waited for so long runs whatever its limits.
pub fn limit_waited(waited_ns: u64) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::limit_waited(waited_ns) != 0 }
}

/// How long a task runs for that would have `slice_ns`, where its groups have `left_ns`.
pub fn limit_slice(slice_ns: u64, left_ns: i64) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::limit_slice(slice_ns, left_ns) }
}
