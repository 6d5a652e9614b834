// SPDX-License-Identifier: GPL-2.0-only
//! `sim cluster`: jobs come, wait for slots on as many nodes as they need, run beside others and go (Zhang 2000).
//!
//! Ten strategies: no coordination, gang scheduling, and what a process does that waits times what a message does that
//! comes (Table 1). They are the presets of `policies/presets.toml` with what the paper leaves out taken away: see
//! [`policy_of`].

mod arrivals;
mod dispatch;
mod gate;
mod model;
pub mod place;
mod readings;
mod steps;
pub mod swf;
mod task;
mod ticks;
pub mod workload;

use crate::engine::{self, Queue};
use cosched_rules::costs;
use cosched_rules::intf::{self, cosched_policy};
use cosched_rules::native;
use cosched_rules::presets;
use model::{Cluster, Job, LANES};
pub use readings::{Reading, Readings};
use workload::JobSpec;

/// What everything costs, in ns (Table 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// A context switch; under gang scheduling of all nodes together.
    pub switch_ns: u64,
    /// An interrupt.
    pub interrupt_ns: u64,
    /// A message of 4096 bytes, one way.
    pub latency_ns: u64,
    /// A move from one queue to another.
    pub move_ns: u64,
    /// A look at an endpoint.
    pub check_ns: u64,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many nodes there are, with a CPU each.
    pub nodes: u32,
    /// The multiprogramming level: slots of each node, which is rows of the gang's matrix.
    pub level: u32,
    /// The strategy.
    pub policy: cosched_policy,
    /// What everything costs.
    pub costs: Costs,
    /// How the paper is read.
    pub readings: Readings,
    /// s, by how much computation and I/O differ, as a share: 0 to 2.
    pub skew: f64,
    /// The share of jobs, the first to come, that count for nothing: the cluster is still too empty.
    pub warmup: f64,
}

impl Setup {
    /// For how long a message keeps its sender's interface busy, in ns.
    fn interface_ns(&self) -> u64 {
        (self.costs.latency_ns as f64 * self.readings.interface).round() as u64
    }

    /// Whether rows take turns by the clock.
    pub fn is_gang(&self) -> bool {
        self.policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_GANG
    }

    /// Whether a boost may be denied, or be a short one.
    fn has_gate(&self) -> bool {
        let policy = &self.policy;
        policy.gate != intf::cosched_gate_COSCHED_GATE_ALWAYS || policy.epochs != 0 || policy.residual_slice != 0
    }

    /// Whether a process that waits leaves its CPU after a while. Programs poll their endpoints here, so who "spins
    /// before it sleeps" spins.
    fn leaves_cpu(&self) -> bool {
        native::wait_parks(&self.policy)
    }

    /// How many of so many jobs count.
    pub fn counted(&self, jobs: usize) -> usize {
        jobs - self.uncounted(jobs)
    }

    fn uncounted(&self, jobs: usize) -> usize {
        ((jobs as f64 * self.warmup) as usize).min(jobs.saturating_sub(1))
    }
}

/// The preset `name` as the paper has it: without a gate, and with a fixed spin of `spin_ns` where the paper has the
/// strategy. Presets that it has not, `implicit` and `cc`, keep their spin rules, which reckon with `costs`.
///
/// # Errors
/// One line that has the names of all, if there is no such preset.
pub fn policy_of(name: &str, costs: &Costs, spin_ns: u64, quantum_ns: u64) -> Result<cosched_policy, String> {
    const OWN_SPIN: [&str; 2] = ["implicit", "cc"];
    let preset = drawn_nowhere(name, presets::find(name)?.policy.to_bpf(&node_costs(costs)))?;
    let spin = if OWN_SPIN.contains(&name) { preset.spin } else { intf::cosched_spin_COSCHED_SPIN_FIXED };
    let gate = intf::cosched_gate_COSCHED_GATE_ALWAYS;
    Ok(cosched_policy { spin, spin_ns, gate, epochs: 0, residual_slice: 0, quantum_ns, ..preset })
}

/// The policy called `name`, a preset with changes if need be (`dcs-sb+gate=rate`), as the kernel has it: with its
/// gate, its epochs and its own spin rule, which reckons with `costs`.
///
/// # Errors
/// One line, if the loader would refuse it.
pub fn kernel_policy_of(name: &str, costs: &Costs, quantum_ns: u64) -> Result<cosched_policy, String> {
    let policy = drawn_nowhere(name, presets::changed(name)?.to_bpf(&node_costs(costs)))?;
    Ok(cosched_policy { quantum_ns, ..policy })
}

/// The policy, unless its turns are drawn: this model has none of those.
fn drawn_nowhere(name: &str, policy: cosched_policy) -> Result<cosched_policy, String> {
    match policy.arrival {
        intf::cosched_arrival_COSCHED_ARRIVAL_BEAT => {
            Err(format!("'{name}' draws turns, which this model does not have (choose sim shared, or another policy)"))
        }
        _ => Ok(policy),
    }
}

fn node_costs(costs: &Costs) -> costs::Costs {
    let us = |ns: u64| ns as f64 / 1e3;
    costs::Costs { latency_us: us(costs.latency_ns), overhead_us: 0.0, switch_us: us(costs.switch_ns) }
}

/// What one run has found. Means are over the jobs that count.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outcome {
    /// From a job's arrival to its end, in s.
    pub response_s: f64,
    /// From its arrival until it gets its slots, in s.
    pub wait_s: f64,
    /// The rest.
    pub execution_s: f64,
    /// The share of the CPUs' time that went to useful work while jobs came: computing, and for each exchange of
    /// messages as long as it takes alone.
    pub utilization: f64,
    /// Without the messages.
    pub compute: f64,
    /// Jobs that are done per second, from the first arrival that counts to the last end.
    pub throughput_per_s: f64,
    /// The longest response over the mean.
    pub slowdown: f64,
    /// Shares of the CPUs' time over the whole run: spinning, switching, idle, and interrupts, queues and endpoints.
    pub spin: f64,
    /// Switching.
    pub switch: f64,
    /// Idle.
    pub idle: f64,
    /// Interrupts, queues and endpoints.
    pub overhead: f64,
    /// When the last job was done, in s.
    pub end_s: f64,
    /// How many events there were.
    pub events: u64,
}

/// Simulates a run with these jobs, of which there must be one at least, in the order in which they come. `seed`
/// decides all else that is random.
pub fn simulate(setup: &Setup, jobs: &[JobSpec], seed: u64) -> Outcome {
    let mut queue = Queue::new(LANES);
    let mut model = Cluster::new(setup, jobs, seed);
    model.start(&mut queue);
    let events = engine::run(&mut model, &mut queue, |_, _| {});
    outcome(&mut model, queue.now_ns(), events)
}

fn outcome(model: &mut Cluster<'_>, end_ns: u64, events: u64) -> Outcome {
    let seconds = |ns: u64| ns as f64 / 1e9;
    let counted = model.counted();
    let mean =
        |of: &dyn Fn(&Job) -> u64| -> f64 { seconds(counted.iter().map(of).sum::<u64>()) / counted.len() as f64 };
    let response_s = mean(&|job| job.done_ns - job.spec.arrival_ns);
    let wait_s = mean(&|job| job.began_ns - job.spec.arrival_ns);
    let slowdown = counted
        .iter()
        .map(|job| (job.done_ns - job.spec.arrival_ns) as f64 / job.spec.execution_ns as f64)
        .sum::<f64>()
        / counted.len() as f64;
    let last_ns = counted.iter().map(|job| job.done_ns).max().unwrap_or(end_ns);
    let first_ns = counted[0].spec.arrival_ns;
    let throughput_per_s = counted.len() as f64 / seconds(last_ns - first_ns).max(1e-9);
    let (begin, end) = (model.marks[0], *model.marks.last().expect("the last job has come"));
    // One job alone has no time in which others come.
    let end = if end.0 > begin.0 { end } else { (end_ns, model.useful_ns) };
    let all = (end.0 - begin.0).max(1) as f64 * model.cpus.len() as f64;
    let [compute, messages] = [0, 1].map(|i| (end.1[i] - begin.1[i]) as f64 / all);
    let cpus_ns = end_ns.max(1) as f64 * model.cpus.len() as f64;
    let mut used_ns = [0; 5];
    for cpu in &mut model.cpus {
        cpu.node.used_ns(end_ns).iter().zip(&mut used_ns).for_each(|(used, sum)| *sum += used);
    }
    let [_, spin, _, switch, idle] = used_ns.map(|ns| ns as f64 / cpus_ns);
    Outcome {
        response_s,
        wait_s,
        execution_s: response_s - wait_s,
        utilization: compute + messages,
        compute,
        throughput_per_s,
        slowdown,
        spin,
        switch,
        idle,
        overhead: model.overhead_ns as f64 / cpus_ns,
        end_s: seconds(end_ns),
        events,
    }
}
