// SPDX-License-Identifier: GPL-2.0-only
//! The model: bulk-synchronous jobs on nodes with local schedulers (Dusseau 3).
//!
//! A running process handles a message at once, and that costs nothing. A message for a process that waits for its CPU
//! is kept until the process runs. A message for a sleeping process wakes it, and the process handles the message
//! before all others on its CPU run. If its wait is not over then, the process sleeps again. Else it has its own
//! priority again, and the local scheduler says which process goes on (3.3).

use super::process::{Barrier, Process};
use super::{Setup, Wakeup};
use crate::engine::{Lane, Model, NEVER_NS, Queue};
use crate::jobs::Step;
use crate::local::{LocalScheduler, UPDATE_NS};
use crate::network::Network;
use crate::node::{Mode, Node, USES};
use crate::policy::Waits;
use crate::random::Random;

const MESSAGES: Lane = Lane(0);
const SWITCHES: Lane = Lane(1);
pub(super) const SPINS: Lane = Lane(2);
pub(super) const GAPS: Lane = Lane(3);
const TICKS: Lane = Lane(4);
const UPDATES: Lane = Lane(5);
/// How many constant delays there are.
pub const LANES: usize = 6;

/// What happens. A process is the number of its node times that of the jobs plus its job's.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// What a CPU does is over, if `timer` is the one that counts.
    Timer { node: u32, timer: u32 },
    /// The clock of a CPU.
    Tick { node: u32 },
    /// Its second.
    Update { node: u32 },
    /// A process of the job has told the root that it is at the barrier.
    Arrived { job: u32 },
    /// The root has told a process that all are, and what it knows of the imbalance.
    Released { process: u32, estimate_us: u32 },
    /// A process is asked for its data.
    Asked { process: u32, by: u32 },
    /// A process gets what it asked for.
    Answered { process: u32 },
}

/// All that there is.
pub struct Bsp<'a, S> {
    pub(super) setup: &'a Setup,
    pub(super) waits: Waits,
    pub(super) network: Network,
    pub(super) nodes: Vec<Node<S>>,
    pub(super) processes: Vec<Process>,
    pub(super) barriers: Vec<Barrier>,
    pub(super) jobs_left: usize,
    /// Waits that ended while their process spun, and all, in the order of [`WaitFor`](crate::policy::WaitFor).
    pub successes: [[u64; 2]; 3],
}

impl<'a, S: LocalScheduler + Clone> Bsp<'a, S> {
    /// Nodes with `local`, and the jobs from `first_job` on. With `ticks` the clocks of all CPUs go.
    pub fn new(setup: &'a Setup, first_job: u32, seed: u64, local: &S) -> Self {
        let jobs = setup.jobs as usize;
        let process = |i: usize| {
            let (rank, job) = (i / jobs, first_job as usize + i % jobs);
            Process::new(setup.program.iterations, Random::new(seed, 1 + ((job as u64) << 32 | rank as u64)))
        };
        let processes: Vec<Process> = (0..setup.nodes as usize * jobs).map(process).collect();
        let barrier = Barrier { running: setup.nodes, ..Barrier::default() };
        Bsp {
            setup,
            waits: Waits::new(setup.wait, setup.costs),
            network: Network { latency_ns: setup.costs.latency_ns, lane: MESSAGES },
            nodes: vec![Node::new(local.clone()); setup.nodes as usize],
            processes,
            barriers: vec![barrier; jobs],
            jobs_left: jobs,
            successes: [[0; 2]; 3],
        }
    }

    /// Starts all processes, in any order on each node, and the clocks.
    pub fn start(&mut self, queue: &mut Queue<Event>, seed: u64) {
        let mut random = Random::new(seed, 0);
        let mut slots: Vec<u32> = (0..self.setup.jobs).collect();
        for node in 0..self.setup.nodes {
            random.shuffle(&mut slots);
            slots.iter().for_each(|&slot| self.nodes[node as usize].local.arrive(slot));
            self.next(node as usize, queue);
            if self.setup.has_clocks {
                let tick_ns = self.nodes[node as usize].local.tick_ns();
                let phase = |random: &mut Random, ns| if self.setup.aligned { ns } else { 1 + random.below(ns) };
                queue.at(phase(&mut random, tick_ns), Event::Tick { node });
                queue.at(phase(&mut random, UPDATE_NS), Event::Update { node });
            }
        }
    }

    /// When the last job was done, in ns.
    pub fn done_ns(&self) -> u64 {
        self.barriers.iter().map(|barrier| barrier.done_ns).max().unwrap_or(0)
    }

    /// What the CPUs' time went to, all together, in ns, in the order of
    /// [`Use`](crate::node::Use).
    pub fn used_ns(&mut self) -> [u64; USES] {
        let done_ns = self.done_ns();
        let mut sum = [0; USES];
        for node in &mut self.nodes {
            node.used_ns(done_ns).iter().zip(&mut sum).for_each(|(used, sum)| *sum += used);
        }
        sum
    }

    pub(super) fn process_on(&self, node: usize, slot: u32) -> usize {
        node * self.setup.jobs as usize + slot as usize
    }

    pub(super) fn place_of(&self, process: usize) -> (usize, u32) {
        let jobs = self.setup.jobs as usize;
        (process / jobs, (process % jobs) as u32)
    }

    pub(super) fn root_of(&self, job: u32) -> usize {
        let node = if self.setup.spread_roots { job % self.setup.nodes } else { 0 };
        self.process_on(node as usize, job)
    }

    /// The CPU is free: the next process has it.
    pub(super) fn next(&mut self, node: usize, queue: &mut Queue<Event>) {
        let (it, switch_ns) = (&mut self.nodes[node], self.setup.costs.switch_ns);
        // "Waking a process on a message arrival" may take W there too, whoever ran last (Arpaci-Dusseau 4; 3.3 of an
        // idle processor).
        let wakes = it.mode == Mode::Idle && self.setup.wakeup == Wakeup::Charged;
        let timer = it.take_next(queue.now_ns(), switch_ns).or_else(|| match it.mode {
            Mode::Running(slot) if wakes => Some(it.switch_to(slot, queue.now_ns(), switch_ns)),
            _ => None,
        });
        if let Some(timer) = timer {
            queue.after(SWITCHES, switch_ns, Event::Timer { node: node as u32, timer });
        } else if let Mode::Running(slot) = it.mode {
            self.resume(node, slot, queue);
        }
    }

    /// A switch is over.
    fn switched(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let it = &mut self.nodes[node];
        it.begin(slot, queue.now_ns());
        if it.local.outranks(slot) {
            it.local.preempt(slot);
            self.next(node, queue);
        } else {
            self.resume(node, slot, queue);
        }
    }

    /// The running process makes way, with what is left of its step.
    fn stop(&mut self, node: usize, slot: u32, now_ns: u64) {
        let process = self.process_on(node, slot);
        let it = &mut self.nodes[node];
        it.charge(now_ns);
        if it.until_ns != NEVER_NS {
            self.processes[process].left_ns = it.until_ns - now_ns;
        }
    }

    /// Somebody in the queue may have to run instead of who does.
    pub(super) fn preempt_if_due(&mut self, node: usize, queue: &mut Queue<Event>) {
        let Mode::Running(slot) = self.nodes[node].mode else { return };
        if self.nodes[node].local.outranks(slot) {
            self.stop(node, slot, queue.now_ns());
            self.nodes[node].local.preempt(slot);
            self.next(node, queue);
        }
    }

    fn timer(&mut self, node: usize, queue: &mut Queue<Event>) {
        match self.nodes[node].mode {
            Mode::Idle => {}
            Mode::Switching(slot) => self.switched(node, slot, queue),
            Mode::Running(slot) => match self.processes[self.process_on(node, slot)].step {
                Step::Wait(..) => self.spin_over(node, slot, queue),
                _ => self.go_on(node, slot, queue),
            },
        }
    }

    fn tick(&mut self, node: usize, queue: &mut Queue<Event>) {
        let it = &mut self.nodes[node];
        queue.after(TICKS, it.local.tick_ns(), Event::Tick { node: node as u32 });
        it.local.clock_ticks();
        it.charge(queue.now_ns());
        let Mode::Running(slot) = it.mode else { return };
        if it.local.tick(slot) {
            self.stop(node, slot, queue.now_ns());
            self.nodes[node].local.expire(slot);
            self.next(node, queue);
        } else {
            self.preempt_if_due(node, queue);
        }
    }

    fn update(&mut self, node: usize, queue: &mut Queue<Event>) {
        queue.after(UPDATES, UPDATE_NS, Event::Update { node: node as u32 });
        let it = &mut self.nodes[node];
        let running = if let Mode::Running(slot) = it.mode { Some(slot) } else { None };
        it.local.update(running);
        self.preempt_if_due(node, queue);
    }
}

impl<S: LocalScheduler + Clone> Model for Bsp<'_, S> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut Queue<Event>) -> bool {
        match event {
            Event::Timer { node, timer } if self.nodes[node as usize].timer == timer => {
                self.timer(node as usize, queue)
            }
            Event::Timer { .. } => return false,
            Event::Tick { node } => self.tick(node as usize, queue),
            Event::Update { node } => self.update(node as usize, queue),
            Event::Arrived { job } => {
                let sent_ns = queue.now_ns() - self.setup.costs.latency_ns;
                let barrier = &mut self.barriers[job as usize];
                if barrier.counted + barrier.buffered == 0 {
                    barrier.first_ns = sent_ns;
                }
                barrier.buffered += 1;
                self.deliver(self.root_of(job), queue);
            }
            Event::Released { process, estimate_us } => {
                let it = &mut self.processes[process as usize];
                (it.satisfied, it.heard_us) = (true, estimate_us);
                self.deliver(process as usize, queue);
            }
            Event::Asked { process, by } => {
                let first = std::mem::replace(&mut self.processes[process as usize].first_asker, by);
                self.processes[by as usize].next_asker = first;
                self.deliver(process as usize, queue);
            }
            Event::Answered { process } => {
                self.processes[process as usize].satisfied = true;
                self.deliver(process as usize, queue);
            }
        }
        true
    }

    fn is_over(&self) -> bool {
        self.jobs_left == 0
    }
}
