// SPDX-License-Identifier: GPL-2.0-only
//! The rules of `policies/` as native functions, and the names of everything that is counted.
//!
//! Names and helps are declared once, in C (`bpf/counters.h`, `policies/policy.h`). From here they reach
//! `status`, the `scx_stats` server and the metrics.

use std::ffi::{CStr, c_char};
use std::sync::LazyLock;

use crate::intf::{self, cosched_candidate as Candidate, cosched_demand as Demand, cosched_policy as Policy};
use crate::intf::{cosched_wait_history as History, cosched_window as Window};

pub use beat::{
    NEW_BEAT_CLOCK, NEW_BEAT_HOLD, NO_NEWS, beat_charge, beat_clock_hear, beat_clock_ns, beat_clock_turn, beat_draws,
    beat_first, beat_follows, beat_gather, beat_hear, beat_hear_nothing, beat_is_before, beat_is_silent, beat_job,
    beat_may_demand, beat_may_lead, beat_renew, beat_settle, beat_size, beat_sketch, beat_sketch_merge, beat_tell,
    beat_theta, beat_weight, beat_wins,
};
pub use fair::{
    NEW_LOAN, NEW_ORDER, NEW_PLACE, NEW_PRESENCE, NEW_SHARE_CLOCK, account_advance, account_awaited, account_describe,
    account_loan, account_share, account_skip, account_urgent, fair_bound, fair_bound_credit, fair_charge, fair_credit,
    fair_enter, fair_front, fair_has_had_time, fair_has_rest, fair_hold_presence, fair_is_due, fair_is_front,
    fair_lead, fair_lead_above, fair_lead_ns, fair_leave, fair_load, fair_note_presence, fair_place, fair_portion,
    fair_portion_differs, fair_preempts, fair_reweigh, fair_room, fair_slice,
};
pub use limit::{
    NEW_LIMIT, NEW_PORTION, limit_part, limit_return, limit_set, limit_slice, limit_take, limit_until, limit_waited,
};
pub use phase::{Answer, Phase, phase_calms, phase_message, phase_parks, phase_queued, phase_stops};
pub use wire::{
    PREFETCH_LENGTH, WIRE_OPTION_MAX, prefetch_credible, prefetch_decode, prefetch_encode, wire_credible, wire_decode,
    wire_encode, wire_epoch_next, wire_surplus_encode, wire_time,
};

mod beat;
mod fair;
mod limit;
mod phase;
mod wire;

const NR_COUNTERS: usize = intf::cosched_counter_COSCHED_NR_COUNTERS as usize;
const NR_REASONS: usize = intf::cosched_reason_COSCHED_NR_REASONS as usize;
const NR_ENDPOINTS: usize = intf::cosched_endpoint_COSCHED_NR_ENDPOINTS as usize;

unsafe extern "C" {
    static cosched_counter_names: [*const c_char; NR_COUNTERS];
    static cosched_counter_helps: [*const c_char; NR_COUNTERS];
    static cosched_reason_names: [*const c_char; NR_REASONS];
    static cosched_reason_helps: [*const c_char; NR_REASONS];
    static cosched_endpoint_names: [*const c_char; NR_ENDPOINTS];
}

/// The demand of a task that has never run, on a CPU where nobody has.
pub const IDLE_DEMAND: Demand = Demand {
    now_ns: 0,
    last_boost_ns: 0,
    receiver_ran_ns: 0,
    running_ran_ns: 0,
    nr_runnable: 0,
    denied: 0,
    scale: 1 << intf::COSCHED_SCALE_SHIFT,
    node_quiet: 0,
    max_lead_ns: u64::MAX,
    cpu_ns: 0,
    fair_ns: 0,
    message_epoch: 0,
    node_epoch: 0,
    mean_waiting: 0,
};

/// An event counter of the scheduler (`bpf/counters.h`).
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The name in metrics, without prefix and suffix.
    pub name: &'static str,
    /// One line that says what is counted.
    pub help: &'static str,
}

/// Why a demand was granted or denied (`policies/policy.h`).
#[derive(Clone, Copy, Debug)]
pub struct Reason {
    /// The value of the metrics' label `reason`.
    pub name: &'static str,
    /// One line that says what it means.
    pub help: &'static str,
    /// Whether this reason grants the boost.
    pub grants: bool,
}

static COUNTERS: LazyLock<Vec<Counter>> = LazyLock::new(|| {
    // SAFETY: the tables are constants with one entry for each counter, see text().
    (0..NR_COUNTERS)
        .map(|i| unsafe { Counter { name: text(cosched_counter_names[i]), help: text(cosched_counter_helps[i]) } })
        .collect()
});

static REASONS: LazyLock<Vec<Reason>> = LazyLock::new(|| {
    (0..NR_REASONS)
        .map(|i| Reason {
            // SAFETY: the tables are constants with one entry for each reason, see text().
            name: unsafe { text(cosched_reason_names[i]) },
            help: unsafe { text(cosched_reason_helps[i]) },
            grants: grants(i as u32),
        })
        .collect()
});

static ENDPOINTS: LazyLock<Vec<&'static str>> = LazyLock::new(|| {
    // SAFETY: the table is a constant with one entry for each kind of endpoint, see text().
    (0..NR_ENDPOINTS).map(|i| unsafe { text(cosched_endpoint_names[i]) }).collect()
});

/// # Safety
/// `string` must be a C string literal: valid for ever, NUL-terminated.
unsafe fn text(string: *const c_char) -> &'static str {
    // SAFETY: by the caller's promise.
    let string = unsafe { CStr::from_ptr(string) };
    string.to_str().expect("the C side's names are UTF-8")
}

/// Every counter, in the order of `cosched_cpu_stats.counters`.
pub fn counters() -> &'static [Counter] {
    &COUNTERS
}

/// Every reason, in the order of `cosched_cpu_stats.decisions`.
pub fn reasons() -> &'static [Reason] {
    &REASONS
}

/// Every kind of endpoint, in the order of `cosched_cpu_stats.endpoint_arrivals`: the values of the metrics' label
/// `endpoint`.
pub fn endpoints() -> &'static [&'static str] {
    &ENDPOINTS
}

/// Asks the gate whether a boost is fair: the index of a reason in [`reasons`]. Any input is allowed; a
/// rule that nobody knows denies.
pub fn decide(policy: &Policy, demand: &Demand) -> u32 {
    // SAFETY: a pure function that reads its two arguments.
    unsafe { intf::cosched_gate_decide(policy, demand) }
}

/// For how long a boost lasts if [`decide`] grants it: in ns of CPU time, from 0 to `policy.slice_ns`. Under the gates
/// `equalizing` and `epochs` it ends where the receiver's lead reaches -h, under `auto` where its F reaches the upper
/// end of the band: it is 0 where such a gate is closed. Any input is allowed. The number says nothing of
/// whether the boost is granted: the other gates, and one that nobody knows, yield a whole slice always.
pub fn slice(policy: &Policy, demand: &Demand) -> u64 {
    // SAFETY: a pure function that reads its two arguments.
    unsafe { intf::cosched_gate_slice(policy, demand) }
}

/// For how long the wait that begins now may spin before it sleeps: in ns, [`spin_ns`] or 0, which means not at
/// all. `history` is what the waits of this task have taught, zeroes at first; any value is allowed.
pub fn wait_begin(policy: &Policy, history: &mut History) -> u64 {
    // SAFETY: a function of its two arguments, of which it may change the second.
    unsafe { intf::wait_begin(policy, history) }
}

/// A wait that [`wait_begin`] let spin has ended: the message came meanwhile, or all the time passed in vain.
pub fn wait_end(policy: &Policy, history: &mut History, message_came: bool) {
    // SAFETY: a function of its arguments, of which it may change the second.
    unsafe { intf::wait_end(policy, history, i32::from(message_came)) }
}

/// Whether a task that polls in vain leaves its CPU to others.
pub fn wait_parks(policy: &Policy) -> bool {
    // SAFETY: a pure function that reads its argument.
    unsafe { intf::cosched_wait_parks(policy) != 0 }
}

/// The spin rule's time for a task with this history, in ns; 0 means not at all, which is also the answer of a rule
/// that nobody knows. Times that do not fit are as long as can be (`policies/spin.h`; Arpaci-Dusseau 3.3, Dusseau 6).
pub fn spin_ns(policy: &Policy, history: &History) -> u64 {
    // SAFETY: a pure function that reads its two arguments.
    unsafe { intf::cosched_spin_ns(policy, history) }
}

/// Whether a wait whose time is over may go on, the last message for the task having come `since_arrival_ns` ago: only
/// under the rule `conditional`, within 3W + 2o (Arpaci-Dusseau 3.4).
pub fn spin_goes_on(policy: &Policy, since_arrival_ns: u64) -> bool {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::cosched_spin_goes_on(policy, since_arrival_ns) != 0 }
}

/// The 3W + 2o within which [`spin_goes_on`] lets a wait go on, in ns: until when it may do so if no message comes.
pub fn spin_interval_ns(policy: &Policy) -> u64 {
    // SAFETY: a pure function that reads its argument.
    unsafe { intf::spin_conditional_interval_ns(policy) }
}

/// A wait of the task took `waited_ns`. The adaptive rules keep it, in us (Dusseau 6.2); the others do nothing.
pub fn spin_learn(policy: &Policy, history: &mut History, waited_ns: u64) {
    // SAFETY: a function of its arguments, of which it may change the second.
    unsafe { intf::cosched_spin_learn(policy, history, waited_ns) }
}

/// A message has come with its sender's estimate of the job's imbalance, in us (Dusseau 6.3).
pub fn spin_hear(history: &mut History, estimate_us: u32) {
    // SAFETY: a function of its arguments, of which it may change the first.
    unsafe { intf::spin_adaptive_hear(history, estimate_us) }
}

/// A task has used `cpu_ns`, and its fair share of the same time was `fair_ns`: both are added to the window, which
/// first forgets what is due at `now_ns` (`policies/window.h`). The window starts as zeroes. The share never exceeds
/// the time used by more than a credit of some slices.
pub fn window_add(window: &mut Window, policy: &Policy, now_ns: u64, cpu_ns: u64, fair_ns: u64) {
    // SAFETY: a function of its arguments, of which it may change the first.
    unsafe { intf::cosched_window_add(window, policy, now_ns, cpu_ns, fair_ns) }
}

/// The epoch of `node` after a spontaneous switch in `epoch`: a later one, with the node's number as its low 16 bits
/// (thesis 3.3). Of a node's number only those bits count.
pub fn epoch_next(epoch: u64, node: u32) -> u64 {
    // SAFETY: a pure function of two numbers.
    unsafe { intf::cosched_epoch_next(epoch, node) }
}

/// The epoch of a node in `epoch` that has switched for a message of `message_epoch`: the later one (thesis 3.3).
pub fn epoch_adopt(epoch: u64, message_epoch: u64) -> u64 {
    // SAFETY: a pure function of two numbers.
    unsafe { intf::cosched_epoch_adopt(epoch, message_epoch) }
}

/// How much rather the rule `choice` boosts the candidate: 0 means not at all (Zhang 2.4.4).
pub fn choice_rank(choice: u32, candidate: &Candidate) -> u32 {
    // SAFETY: a pure function that reads its second argument.
    unsafe { intf::cosched_choice_rank(choice, candidate) }
}

/// Whether the rule `choice` boosts `candidate` rather than `best`, both of which have a [`choice_rank`] above 0. An
/// order without cycles; only candidates at the same distance can be equals.
pub fn choice_prefers(choice: u32, candidate: &Candidate, best: &Candidate) -> bool {
    // SAFETY: a pure function that reads its arguments.
    unsafe { intf::cosched_choice_prefers(choice, candidate, best) != 0 }
}

/// Whom the rule `choice` boosts of these candidates, if anybody: one after the other is held against the best, as in
/// `bpf/`.
pub fn choose<T>(choice: u32, candidates: impl Iterator<Item = (T, Candidate)>) -> Option<T> {
    let ranked = candidates.filter(|(_, candidate)| choice_rank(choice, candidate) > 0);
    let better = |best: (T, Candidate), next: (T, Candidate)| {
        if choice_prefers(choice, &next.1, &best.1) { next } else { best }
    };
    ranked.reduce(better).map(|(chosen, _)| chosen)
}

/// The row of the gang's matrix whose turn it is at `tai_ns`, ns since the epoch of TAI: from 0 to `policy.rows` - 1
/// (Zhang 2.2).
pub fn gang_row_at(policy: &Policy, tai_ns: u64) -> u32 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::gang_row_at(policy, tai_ns) }
}

/// The time in ns from `tai_ns` until the next row has its turn: from 1 to `policy.quantum_ns`.
pub fn gang_rest_ns(policy: &Policy, tai_ns: u64) -> u64 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::gang_rest_ns(policy, tai_ns) }
}

/// By how many parts of its weight loads have to differ for a task that wakes, and has run for so much of this time.
pub fn wakes_parts(ran_ns: u64, passed_ns: u64) -> u32 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::cosched_wakes_parts(ran_ns, passed_ns) }
}

/// Whether a CPU of load `here`, a sum of weights, is to take a task of `weight` that waits or wakes on a CPU of load
/// `there`, if they have to differ by so many `parts` of its weight. CPUs that are `far` do not share their memory
/// (`policies/balance.h`).
pub fn load_differs(here: u64, there: u64, weight: u32, parts: u32, far: bool) -> bool {
    // SAFETY: a pure function of numbers.
    unsafe { intf::cosched_load_differs(here, there, weight, parts, i32::from(far)) != 0 }
}

/// How far apart the loads `here` and `there` of two CPUs are, sums of weights, once a task of `weight` has come here.
pub fn left_apart(here: u64, there: u64, weight: u32) -> u64 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::cosched_left_apart(here, there, weight) }
}

/// Whether a task that has `share_there` of its CPU may move to one where it would have `share_here`, in 2^-20 CPUs.
pub fn move_pays(share_here: u64, share_there: u64) -> bool {
    // SAFETY: a pure function of numbers.
    unsafe { intf::cosched_move_pays(share_here, share_there) != 0 }
}

/// Whether a task that waits may move again, `since_ns` after it moved from one busy CPU to another.
pub fn has_rested(since_ns: u64) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::cosched_has_rested(since_ns) != 0 }
}

/// The row of a job that nobody has given one, from 0 to `policy.rows` - 1: the same on all nodes.
pub fn gang_row_of(policy: &Policy, job: u64) -> u32 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::gang_row_of(policy, job) }
}

/// Whether `reason` grants. A number that is no reason does not.
pub fn grants(reason: u32) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::cosched_reason_grants(reason) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_and_reason_has_a_name_and_a_help() {
        assert_eq!(counters().len(), NR_COUNTERS);
        assert_eq!(reasons().len(), NR_REASONS);
        assert_eq!(endpoints(), ["tcp", "udp", "unix", "rdma", "futex", "pipe", "eventfd", "other"]);
        for (name, help) in
            counters().iter().map(|c| (c.name, c.help)).chain(reasons().iter().map(|r| (r.name, r.help)))
        {
            assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
            assert!(!help.is_empty() && !help.ends_with('.'), "{name}: {help}");
        }
    }

    #[test]
    fn a_number_that_is_no_reason_denies() {
        assert!(!grants(NR_REASONS as u32));
        assert!(!grants(u32::MAX));
    }
}
