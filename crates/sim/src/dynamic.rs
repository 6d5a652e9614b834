// SPDX-License-Identifier: GPL-2.0-only
//! The thesis's simulation of dynamic coscheduling (3.1 to 3.3): two jobs on N nodes that switch spontaneously and for
//! messages, if the gate of `policies/` allows.
//!
//! The unit of time is the scheduler cycle, and rates are per cycle. A node leaves what it runs after an exponential
//! time, and sends messages at exponential intervals, each to one of the other processes of its job, all alike; a
//! message arrives at once. A waiting process lags or leads the running process by the difference of the times that
//! both have run since the start, r in thesis 3.2. What is reported is for how much of the time so many nodes ran job
//! B.
//!
//! Under a preset as the kernel has it the gate is told what the kernel would tell it, a mean time slice being as long
//! as the policy's: see [`kernel`].
//!
//! The thesis counts iterations in which the simulator was in a state; here time is continuous, so that the gate
//! `always` is exactly the Markov chain of [`markov`](super::markov).

mod kernel;

use self::kernel::Account;
use crate::engine::{self, Model, Queue};
use crate::markov::Rates;
use crate::policy::NOTHING;
use crate::random::Random;
use cosched_rules::intf::{self, cosched_demand, cosched_policy};
use cosched_rules::native;

/// A scheduler cycle, in ns: fine enough that rounding to whole ns is lost in the noise.
pub const CYCLE_NS: u64 = 1_000_000;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// N, from 1 on.
    pub nodes: u32,
    /// For how long, in cycles.
    pub cycles: u64,
    /// How much of that passes before anything is counted, in cycles.
    pub warmup: u64,
    /// Of the jobs A and B, per cycle.
    pub rates: [Rates; 2],
    /// The gate and h: see [`policy`].
    pub policy: cosched_policy,
    /// Whether the low bits of an epoch are the number of the node that counted it. The thesis's simulation has bare
    /// counters, and says that an implementation must not (3.3).
    pub node_numbers: bool,
    /// The policy is the kernel's: so many of its ns are a cycle.
    pub kernel_cycle_ns: Option<f64>,
}

/// A policy that takes each arrival as a demand, with this gate of `policies/policy.h` and h in cycles.
pub fn policy(gate: u32, h_cycles: f64) -> cosched_policy {
    cosched_policy {
        arrival: intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND,
        gate,
        h_ns: (h_cycles * CYCLE_NS as f64).round() as i64,
        slice_ns: CYCLE_NS,
        ..NOTHING
    }
}

/// What one run has found.
#[derive(Clone, Debug, PartialEq)]
pub struct Occupancy {
    /// For each number of nodes that ran job B, from 0 on, the share of the time.
    pub states: Vec<f64>,
    /// The share of the CPU time that job A had.
    pub share_a: f64,
    /// How many switches were spontaneous, and how many for messages.
    pub switches: [u64; 2],
    /// How many events there were.
    pub events: u64,
}

impl Occupancy {
    /// The share of the time in which all nodes ran the same job.
    pub fn coscheduled(&self) -> f64 {
        self.states[0] + self.states[self.states.len() - 1]
    }
}

/// A node leaves its job or sends a message; void if it has switched since.
#[derive(Clone, Copy, Debug)]
struct Acts {
    node: u32,
    turn: u32,
}

#[derive(Clone, Debug)]
struct Node {
    /// 0 is A, 1 is B.
    job: usize,
    turn: u32,
    epoch: u64,
    since_ns: u64,
    ran_ns: [u64; 2],
    account: Account,
}

struct Dynamic<'a> {
    setup: &'a Setup,
    random: Random,
    nodes: Vec<Node>,
    on_b: usize,
    in_state_ns: Vec<u64>,
    since_ns: u64,
    switches: [u64; 2],
    over: bool,
}

impl Dynamic<'_> {
    fn new(setup: &Setup, seed: u64) -> Dynamic<'_> {
        let mut random = Random::new(seed, 0);
        let node = |_| Node {
            job: random.below(2) as usize,
            turn: 0,
            epoch: 0,
            since_ns: 0,
            ran_ns: [0; 2],
            account: Account::NEW,
        };
        let nodes: Vec<Node> = (0..setup.nodes).map(node).collect();
        let on_b = nodes.iter().filter(|node| node.job == 1).count();
        let in_state_ns = vec![0; nodes.len() + 1];
        Dynamic { setup, random, nodes, on_b, in_state_ns, since_ns: 0, switches: [0; 2], over: false }
    }

    fn rates(&self, node: usize) -> Rates {
        self.setup.rates[self.nodes[node].job]
    }

    /// Schedules what the node does next. Both of its processes are memoryless, so they are one.
    fn next(&mut self, node: usize, queue: &mut Queue<Acts>) {
        let Rates { switches, messages } = self.rates(node);
        if switches + messages > 0.0 {
            let delay_ns = self.random.exponential_ns(CYCLE_NS as f64 / (switches + messages));
            queue.at(queue.now_ns() + delay_ns, Acts { node: node as u32, turn: self.nodes[node].turn });
        }
    }

    /// What was in force until now is counted, as far as it is after the warm-up.
    fn count(&mut self, now_ns: u64) {
        let begin_ns = self.since_ns.max(self.setup.warmup * CYCLE_NS);
        self.in_state_ns[self.on_b] += now_ns.saturating_sub(begin_ns);
        self.since_ns = now_ns;
    }

    fn switch(&mut self, node: usize, for_message: bool, queue: &mut Queue<Acts>) {
        let now_ns = queue.now_ns();
        self.count(now_ns);
        if let Some(cycle_ns) = self.setup.kernel_cycle_ns {
            kernel::ran(&mut self.nodes[node], &self.setup.policy, now_ns, cycle_ns);
        }
        let it = &mut self.nodes[node];
        it.ran_ns[it.job] += now_ns - it.since_ns;
        (it.since_ns, it.job, it.turn) = (now_ns, 1 - it.job, it.turn.wrapping_add(1));
        self.on_b = if it.job == 1 { self.on_b + 1 } else { self.on_b - 1 };
        self.switches[usize::from(for_message)] += 1;
        self.next(node, queue);
    }

    /// The slice of what a node runs is over, or it blocks.
    fn leave(&mut self, node: usize, queue: &mut Queue<Acts>) {
        let number = if self.setup.node_numbers { node as u32 } else { 0 };
        let epoch = native::epoch_next(self.nodes[node].epoch, number);
        self.nodes[node].epoch = epoch;
        self.switch(node, false, queue);
    }

    /// A node sends to one of the others, which may switch for it.
    fn send(&mut self, node: usize, queue: &mut Queue<Acts>) {
        let to = self.random.below(self.nodes.len() as u64 - 1) as usize;
        let to = to + usize::from(to >= node);
        let (sender, it) = (&self.nodes[node], &self.nodes[to]);
        if sender.job == it.job {
            return;
        }
        let demand = cosched_demand {
            now_ns: queue.now_ns(),
            receiver_ran_ns: it.ran_ns[sender.job] as i64,
            running_ran_ns: (it.ran_ns[it.job] + queue.now_ns() - it.since_ns) as i64,
            nr_runnable: 2,
            mean_waiting: 1 << intf::FAIR_MEAN_SHIFT,
            message_epoch: sender.epoch,
            node_epoch: it.epoch,
            ..native::IDLE_DEMAND
        };
        let demand = match self.setup.kernel_cycle_ns {
            Some(cycle_ns) => kernel::demand(it, &self.setup.policy, demand, cycle_ns),
            None => demand,
        };
        let granted = native::grants(native::decide(&self.setup.policy, &demand));
        let waits = self.nodes[node].job;
        self.nodes[to].account.asked(waits, granted, demand.now_ns);
        if granted {
            self.nodes[to].epoch = native::epoch_adopt(demand.node_epoch, demand.message_epoch);
            self.switch(to, true, queue);
        }
    }
}

impl Model for Dynamic<'_> {
    type Event = Acts;

    fn handle(&mut self, acts: Acts, queue: &mut Queue<Acts>) -> bool {
        let node = acts.node as usize;
        if queue.now_ns() >= self.setup.cycles * CYCLE_NS {
            self.over = true;
            return false;
        }
        if self.nodes[node].turn != acts.turn {
            return false;
        }
        let Rates { switches, messages } = self.rates(node);
        if self.random.unit() * (switches + messages) <= switches {
            self.leave(node, queue);
        } else {
            if self.nodes.len() > 1 {
                self.send(node, queue);
            }
            self.next(node, queue);
        }
        true
    }

    fn is_over(&self) -> bool {
        self.over
    }
}

/// Simulates one run. `seed` decides all that is random.
pub fn simulate(setup: &Setup, seed: u64) -> Occupancy {
    let mut queue = Queue::new(0);
    let mut model = Dynamic::new(setup, seed);
    for node in 0..model.nodes.len() {
        model.next(node, &mut queue);
    }
    let events = engine::run(&mut model, &mut queue, |_, _| {});
    let end_ns = setup.cycles * CYCLE_NS;
    model.count(end_ns);
    let counted_ns = (end_ns - setup.warmup * CYCLE_NS) as f64;
    let states: Vec<f64> = model.in_state_ns.iter().map(|&ns| ns as f64 / counted_ns).collect();
    let on_b: f64 = states.iter().enumerate().map(|(i, share)| i as f64 * share).sum();
    let share_a = 1.0 - on_b / f64::from(setup.nodes);
    Occupancy { states, share_a, switches: model.switches, events }
}
