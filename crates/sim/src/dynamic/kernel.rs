// SPDX-License-Identifier: GPL-2.0-only
//! What a gate is to know under a preset as the kernel has it (`bpf/demand.bpf.h`), where both processes of a node can
//! always run.
//!
//! Spontaneous switches end time slices here, so the policy's own slice is as long as the mean of those, and every time
//! is taken in its unit: an h of -60 ms with slices of 20 ms lets a process run ahead by three of them. How long a
//! boost lasts is no part of the model: it ends with the time slice.

use super::{CYCLE_NS, Node};
use cosched_rules::intf::{FAIR_WAIT_NS, cosched_demand, cosched_policy, cosched_window};
use cosched_rules::native;

/// What the kernel keeps of both processes of a node.
#[derive(Clone, Debug)]
pub(super) struct Account {
    windows: [cosched_window; 2],
    last_boost_ns: [u64; 2],
    denied: [bool; 2],
}

impl Account {
    pub(super) const NEW: Account = Account {
        windows: [cosched_window { cpu_ns: 0, fair_ns: 0, stepped_ns: 0 }; 2],
        last_boost_ns: [0; 2],
        denied: [false; 2],
    };

    /// The gate has answered for the process of this job, at `now_ns` of the kernel's time.
    pub(super) fn asked(&mut self, job: usize, granted: bool, now_ns: u64) {
        self.denied[job] = !granted;
        if granted {
            self.last_boost_ns[job] = now_ns;
        }
    }
}

fn scaled(ns: u64, cycle_ns: f64) -> u64 {
    (ns as f64 / CYCLE_NS as f64 * cycle_ns) as u64
}

/// The process that runs on a node has run until `now_ns`, and another is next.
pub(super) fn ran(node: &mut Node, policy: &cosched_policy, now_ns: u64, cycle_ns: f64) {
    let (ran_ns, now_ns) = (scaled(now_ns - node.since_ns, cycle_ns), scaled(now_ns, cycle_ns));
    for job in 0..2 {
        let cpu_ns = if job == node.job { ran_ns } else { 0 };
        native::window_add(&mut node.account.windows[job], policy, now_ns, cpu_ns, ran_ns / 2);
    }
    // The other is next: it had to wait no longer than that.
    node.account.denied[1 - node.job] = false;
}

/// The demand for the process that waits on `node`, in the kernel's time and with all that the kernel knows.
pub(super) fn demand(node: &Node, policy: &cosched_policy, demand: cosched_demand, cycle_ns: f64) -> cosched_demand {
    let receiver = 1 - node.job;
    let now_ns = scaled(demand.now_ns, cycle_ns);
    let ahead_ns = scaled(demand.receiver_ran_ns.abs_diff(demand.running_ran_ns), cycle_ns) as i64;
    let leads = demand.receiver_ran_ns > demand.running_ran_ns;
    let mut window = node.account.windows[receiver];
    let waited_ns = scaled(demand.now_ns - node.since_ns, cycle_ns);
    native::window_add(&mut window, policy, now_ns, 0, waited_ns / 2);
    cosched_demand {
        now_ns,
        last_boost_ns: node.account.last_boost_ns[receiver],
        // From the one that is behind, which is where the clock is.
        receiver_ran_ns: if leads { ahead_ns } else { 0 },
        running_ran_ns: if leads { 0 } else { ahead_ns },
        denied: u32::from(node.account.denied[receiver]),
        max_lead_ns: u64::from(FAIR_WAIT_NS) / 2,
        cpu_ns: window.cpu_ns,
        fair_ns: window.fair_ns,
        ..demand
    }
}
