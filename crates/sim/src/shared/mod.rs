// SPDX-License-Identifier: GPL-2.0-only
//! `sim shared`: parallel jobs and busy competitors that share nodes for good, under a preset as the kernel has it: its
//! gate, its wait rule and its slices.
//!
//! Each node has a CPU with a process of each job and with the competitors, in the fair order of
//! [`Fair`](super::local::Fair); or it has several, each with an order of its own, and the tasks move between them as
//! in the kernel (`cpus.rs`). A message that comes for a process which does not run asks the gate of `policies/` as
//! `bpf/demand.bpf.h` does, with the same snapshot; a process that waits is parked, yields or sleeps as in
//! `bpf/park.bpf.h` and `bpf/waits.bpf.h`; epochs go along with the messages. So this is what the scheduler's files
//! together make of a load, where weights are equal and all CPUs of a node share a cache.

pub mod beat;
mod cpus;
mod demand;
mod dispatch;
pub mod messages;
mod model;
pub mod program;
mod pulse;
pub mod slices;
mod stays;
mod steps;
mod task;
mod turns;
pub mod uneven;

use serde::Serialize;

use self::messages::Messages;
use self::model::{LANES, Shared};
use self::program::{Program, Receiver};
use self::task::SPENDS;
use self::uneven::Uneven;
use crate::engine::{self, Queue};
use cosched_rules::costs;
use cosched_rules::intf::{self, cosched_policy};
use cosched_rules::presets;

/// What messages and switches cost, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Costs {
    /// L: from the end of a send until the message can be received.
    pub latency_ns: u64,
    /// o: of the CPU, to send or to receive.
    pub overhead_ns: u64,
    /// W: from a message's arrival, or the end of a slice, until another task runs. It is charged to that one.
    pub switch_ns: u64,
    /// The same on an idle CPU.
    pub idle_switch_ns: u64,
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Faults {
    /// The share of messages that are lost, 0 to 0.5, independently. The sender's kernel sends them again.
    pub loss: f64,
    /// After how long, in ns, each time that one is lost.
    pub resend_ns: u64,
    /// Gang, beat: by how much the clocks of the nodes are wrong, in ns: uniform from half of that behind to half of it
    /// ahead.
    pub skew_ns: u64,
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many nodes there are, from 1 on.
    pub nodes: u32,
    /// CPUs of each, from 1 on. Of all nodes together there are [`program::MOST_NODES`] at most.
    pub cpus: u32,
    /// Parallel jobs, with processes on each node.
    pub jobs: u32,
    /// How many of each job, from 1 to `cpus`. Ranks go round the nodes, so that neighbours are on different ones.
    pub ranks: u32,
    /// Processes on each node that only compute.
    pub competitors: u32,
    /// What each job does.
    pub program: Program,
    /// The policy of the nodes.
    pub policy: cosched_policy,
    /// Whether tasks stand in the order of EEVDF, and not in ours.
    pub is_eevdf: bool,
    /// That of the first node, if somebody has mistuned it.
    pub first: Option<cosched_policy>,
    /// What everything costs.
    pub costs: Costs,
    /// What goes wrong.
    pub faults: Faults,
    /// What is not the same everywhere and always.
    pub uneven: Uneven,
    /// How messages are treated.
    pub messages: Messages,
    /// Between two ticks of a CPU, in ns.
    pub tick_ns: u64,
    /// Whether all CPUs tick together, as those of one kernel.
    pub aligned: bool,
    /// How long it runs before anything counts, in ns.
    pub warmup_ns: u64,
    /// And how long then, in ns.
    pub length_ns: u64,
}

impl Setup {
    /// The policy of a node.
    pub fn policy_of(&self, node: u32) -> &cosched_policy {
        let every = self.uneven.mistuned_every;
        let is_other = if every > 0 { node % every == every - 1 } else { node == 0 };
        self.first.as_ref().filter(|_| is_other).unwrap_or(&self.policy)
    }

    /// Tasks on each node, at most.
    pub fn slots(&self) -> u32 {
        self.jobs * self.ranks + self.competitors + self.uneven.competitors_more
    }

    /// Processes of each job.
    pub fn processes(&self) -> u32 {
        self.nodes * self.ranks
    }

    /// Whose slot this is of a node: the number of his job, and his rank there. Competitors are counted on behind the
    /// jobs.
    fn who_is(&self, node: u32, slot: u32) -> (u32, u32) {
        match slot.checked_sub(self.jobs * self.ranks) {
            _ if self.ranks == 1 => (slot, node),
            None => (slot / self.ranks, slot % self.ranks * self.nodes + node),
            Some(competitor) => (self.jobs + competitor, node),
        }
    }

    /// By how much the jobs are slower than they would be if each had its fair share of all its nodes at the same time,
    /// as much as it has of the node where that is least, undisturbed; `alone_per_s`: what one makes that has the nodes
    /// to itself.
    pub fn slowdown(&self, outcome: &Outcome, alone_per_s: f64) -> f64 {
        alone_per_s * outcome.mean(|job| job.due_share) / outcome.mean(|job| job.iterations_per_s).max(1e-9)
    }

    /// The same of the job that is slowed down most.
    pub fn slowdown_most(&self, outcome: &Outcome, alone_per_s: f64) -> f64 {
        let of = |job: &Job| alone_per_s * job.due_share / job.iterations_per_s.max(1e-9);
        outcome.jobs.iter().map(of).fold(0.0, f64::max)
    }
}

/// Whether rows take turns by the clock.
pub fn is_gang(policy: &cosched_policy) -> bool {
    policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_GANG
}

/// What the time of a job's processes goes to: shares of the time that it is there.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Time {
    /// Computing, with what messages take to send and to receive.
    pub compute: f64,
    /// Spinning for messages of neighbours.
    pub communicate: f64,
    /// Spinning for messages of a meeting.
    pub synchronize: f64,
    /// Being switched to.
    pub switch: f64,
    /// Waiting for the CPU.
    pub queue: f64,
    /// Off the CPU until a message comes: asleep, or parked.
    pub off: f64,
}

impl Time {
    /// The parts, in this order.
    pub fn parts(&self) -> [f64; SPENDS] {
        [self.compute, self.communicate, self.synchronize, self.switch, self.queue, self.off]
    }
}

impl From<[f64; SPENDS]> for Time {
    fn from([compute, communicate, synchronize, switch, queue, off]: [f64; SPENDS]) -> Time {
        Time { compute, communicate, synchronize, switch, queue, off }
    }
}

/// What became of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Job {
    /// Iterations of a process per second, the mean over all; of [`Pattern::Token`](program::Pattern::Token) these are
    /// round trips.
    pub iterations_per_s: f64,
    /// The mean share of a CPU.
    pub cpu_share: f64,
    /// F = N T_C / T_E (thesis 5.1), the mean over the nodes; N: the tasks that share a CPU, all CPUs of a node being
    /// alike.
    pub fairness: f64,
    /// Of the node where it has the least.
    pub fairness_min: f64,
    /// The share of its messages that found their receiver running.
    pub coscheduled: f64,
    /// What was due to it on the node where that is least, as a share of the time; 0 while it was away.
    pub due_share: f64,
    /// How long its longest iteration took, in ms.
    pub longest_ms: f64,
    /// What the time of its processes went to.
    pub time: Time,
}

/// What one run has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// By job.
    pub jobs: Vec<Job>,
    /// F of the competitor that got the least; none without competitors.
    pub competitor_fairness_min: Option<f64>,
    /// Boosts, per second and node.
    pub boosts_per_s: f64,
    /// Moves of a task to another CPU, per second and node.
    pub moves_per_s: f64,
    /// Prefetches that were sent, and those that were granted, per second and node.
    pub prefetches_per_s: [f64; 2],
    /// How many events there were.
    pub events: u64,
}

impl Outcome {
    /// The mean over the jobs.
    pub fn mean(&self, of: impl Fn(&Job) -> f64) -> f64 {
        self.jobs.iter().map(of).sum::<f64>() / self.jobs.len() as f64
    }
}

/// Simulates one run. `seed` decides all that is random.
pub fn simulate(setup: &Setup, seed: u64) -> Outcome {
    let mut queue = Queue::new(LANES);
    let mut model = Shared::new(setup, seed);
    model.start(&mut queue);
    let events = engine::run(&mut model, &mut queue, |_, _| {});
    outcome(&model, events)
}

/// How many iterations per second a job makes that has the nodes to itself, spins, and loses no message. Of more than
/// 1024 processes it is that of 1024: neighbours wait for one another no more, and a meeting takes some rounds more.
pub fn alone_per_s(setup: &Setup, seed: u64) -> f64 {
    let local = presets::find("local").expect("it is a preset").policy;
    let policy = local.to_bpf(&costs::Costs { latency_us: 0.0, overhead_us: 0.0, switch_us: 0.0 });
    let nodes = setup.nodes.min(1024 / setup.ranks.next_power_of_two()).max(1);
    let alone = Setup {
        nodes,
        jobs: 1,
        competitors: 0,
        program: Program { receiver: Receiver::Spin, ..setup.program },
        policy,
        first: None,
        faults: Faults { loss: 0.0, resend_ns: 0, skew_ns: 0 },
        uneven: Uneven::default(),
        messages: Messages::default(),
        length_ns: setup.length_ns.min(1_000_000_000),
        ..setup.clone()
    };
    simulate(&alone, seed).mean(|job| job.iterations_per_s)
}

/// Of the processes of a job.
fn time<'a>(of_job: impl Iterator<Item = &'a task::Task> + Clone, length_ns: u64) -> Time {
    let away = |task: &task::Task| task.spent_ns[task::Spends::Away as usize];
    let here_ns: u64 = of_job.clone().map(|task| length_ns - away(task)).sum();
    let spent = |part: usize| of_job.clone().map(|task| task.spent_ns[part]).sum::<u64>();
    Time::from(std::array::from_fn(|part| spent(part) as f64 / here_ns.max(1) as f64))
}

fn outcome(model: &Shared<'_>, events: u64) -> Outcome {
    let setup = model.setup;
    let (nodes, slots, seconds) = (setup.nodes as usize, model.slots as usize, setup.length_ns as f64 / 1e9);
    let ranks = setup.ranks as usize;
    let of_slots = |slots_of: std::ops::Range<usize>| {
        let tasks =
            (0..nodes).flat_map(move |node| slots_of.clone().map(move |slot| &model.tasks[node * slots + slot]));
        tasks.filter(|task| task.due_ns > 0.0)
    };
    let fairness = |task: &task::Task| task.cpu_ns as f64 / task.due_ns;
    let job = |number: usize| {
        let of_job = || of_slots(number * ranks..(number + 1) * ranks);
        let processes = of_job().count().max(1) as f64;
        let mean = |of: &dyn Fn(&task::Task) -> f64| of_job().map(of).sum::<f64>() / processes;
        let [arrived, running] = [0, 1].map(|i| of_job().map(|task| task.arrivals[i]).sum::<u64>() as f64);
        Job {
            iterations_per_s: mean(&|task| task.iterations as f64) / seconds,
            cpu_share: mean(&|task| task.cpu_ns as f64) / setup.length_ns as f64,
            fairness: mean(&fairness),
            fairness_min: of_job().map(fairness).fold(f64::INFINITY, f64::min),
            coscheduled: if arrived > 0.0 { running / arrived } else { 1.0 },
            due_share: model.dues_ns[number] / setup.length_ns as f64,
            time: time(of_job(), setup.length_ns),
            longest_ms: of_job().map(|task| task.longest_ns as f64 / 1e6).fold(0.0, f64::max),
        }
    };
    Outcome {
        jobs: (0..setup.jobs as usize).map(job).collect(),
        competitor_fairness_min: of_slots(setup.jobs as usize * ranks..slots).map(fairness).reduce(f64::min),
        boosts_per_s: model.boosts as f64 / nodes as f64 / seconds,
        moves_per_s: model.moves as f64 / nodes as f64 / seconds,
        prefetches_per_s: model.prefetches.map(|count| count as f64 / nodes as f64 / seconds),
        events,
    }
}
