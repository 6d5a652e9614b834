// SPDX-License-Identifier: GPL-2.0-only
//! The rules of `policies/` as native functions, and the names of everything that is counted.
//!
//! Names and helps are declared once, in C (`bpf/counters.h`, `policies/policy.h`). From here they reach
//! `status`, the `scx_stats` server and the metrics.

use std::ffi::{CStr, c_char};
use std::sync::LazyLock;

use crate::bpf::intf;

const NR_COUNTERS: usize = intf::cosched_counter_COSCHED_NR_COUNTERS as usize;
const NR_REASONS: usize = intf::cosched_reason_COSCHED_NR_REASONS as usize;

unsafe extern "C" {
    static cosched_counter_names: [*const c_char; NR_COUNTERS];
    static cosched_counter_helps: [*const c_char; NR_COUNTERS];
    static cosched_reason_names: [*const c_char; NR_REASONS];
    static cosched_reason_helps: [*const c_char; NR_REASONS];
    fn cosched_native_gate_decide(policy: *const intf::cosched_policy, demand: *const intf::cosched_demand) -> u32;
    fn cosched_native_gate_slice(policy: *const intf::cosched_policy, demand: *const intf::cosched_demand) -> u64;
    fn cosched_native_wait_begin(policy: *const intf::cosched_policy, history: *mut intf::cosched_wait_history) -> u64;
    fn cosched_native_wait_end(
        policy: *const intf::cosched_policy,
        history: *mut intf::cosched_wait_history,
        message_came: i32,
    );
    fn cosched_native_reason_grants(reason: u32) -> i32;
}

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

/// Asks the gate whether a boost is fair: the index of a reason in [`reasons`]. Any input is allowed; a
/// rule that nobody knows denies.
pub fn decide(policy: &intf::cosched_policy, demand: &intf::cosched_demand) -> u32 {
    // SAFETY: a pure function that reads its two arguments.
    unsafe { cosched_native_gate_decide(policy, demand) }
}

/// For how long a boost lasts if [`decide`] grants it: in ns on the fair clock of the receiver's CPU, from 0 to
/// `policy.slice_ns`. Under the equalizing gate it ends no later than the receiver's lead reaches -h, so it is 0
/// where that gate is closed and, for a slice of at least 1 ns, at least 1 where it grants. Any input is allowed.
/// The number says nothing of whether the boost is granted: the other gates, and one that nobody knows, yield a
/// whole slice always.
pub fn slice(policy: &intf::cosched_policy, demand: &intf::cosched_demand) -> u64 {
    // SAFETY: a pure function that reads its two arguments.
    unsafe { cosched_native_gate_slice(policy, demand) }
}

/// For how long the wait that begins now may spin before it sleeps: in ns, `policy.spin_ns` or 0, which means not at
/// all. `history` is what the waits of this task have taught, zeroes at first; any value is allowed.
pub fn wait_begin(policy: &intf::cosched_policy, history: &mut intf::cosched_wait_history) -> u64 {
    // SAFETY: a function of its two arguments, of which it may change the second.
    unsafe { cosched_native_wait_begin(policy, history) }
}

/// A wait that [`wait_begin`] let spin has ended: the message came meanwhile, or all the time passed in vain.
pub fn wait_end(policy: &intf::cosched_policy, history: &mut intf::cosched_wait_history, message_came: bool) {
    // SAFETY: a function of its arguments, of which it may change the second.
    unsafe { cosched_native_wait_end(policy, history, i32::from(message_came)) }
}

/// Whether `reason` grants. A number that is no reason does not.
pub fn grants(reason: u32) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { cosched_native_reason_grants(reason) != 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_and_reason_has_a_name_and_a_help() {
        assert_eq!(counters().len(), NR_COUNTERS);
        assert_eq!(reasons().len(), NR_REASONS);
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
