// SPDX-License-Identifier: GPL-2.0-only
//! The model: nodes with processes of several jobs, which come, wait for slots, run and go.
//!
//! [`dispatch`](super::dispatch) decides which process has a CPU, by Zhang's feedback queue or by the gang's rows.
//! [`steps`](super::steps) has what the process does then, [`arrivals`](super::arrivals) what a message does to its
//! receiver, and [`ticks`](super::ticks) what happens each millisecond.

use std::collections::VecDeque;

use super::gate::{Gate, Stamp};
use super::place::Slots;
use super::task::{Iteration, Task};
use super::workload::JobSpec;
use super::{Reading, Setup};
use crate::engine::{Lane, Model, Queue};
use crate::local::{Feedback, LocalScheduler, UPDATE_NS};
use crate::node::{Mode, Node};
use crate::random::Random;

pub(super) const SWITCHES: Lane = Lane(0);
pub(super) const SPINS: Lane = Lane(1);
pub(super) const TICKS: Lane = Lane(2);
pub(super) const SECONDS: Lane = Lane(3);
pub(super) const INTERRUPTS: Lane = Lane(4);
/// How many constant delays there are.
pub const LANES: usize = 5;

/// What happens. A place is a slot of a node: the node's number times the multiprogramming level, plus the slot's.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// What a CPU does is over, if `timer` is the one that counts.
    Timer { node: u32, timer: u32 },
    /// Its scheduler looks.
    Tick { node: u32 },
    /// Its second.
    Second { node: u32 },
    /// The next job comes.
    Arrives,
    /// A message comes, from the neighbour on this side.
    Message { place: u32, side: u8, stamp: Stamp },
    /// An interrupt for a process of this job has been dealt with.
    Interrupt { place: u32, job: u32 },
    /// A disk has done its part.
    IoDone { place: u32 },
    /// Another row has its turn.
    Turn,
}

/// A job that is there or was.
#[derive(Clone, Debug)]
pub struct Job {
    /// What it is.
    pub spec: JobSpec,
    /// Where its processes are.
    pub places: Vec<u32>,
    /// How many have not done all.
    pub tasks_left: u32,
    /// When it got its slots, and when it was done, in ns.
    pub began_ns: u64,
    /// When it was done, in ns.
    pub done_ns: u64,
}

/// A CPU with what the network interface and the gang know of it.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// The CPU and its scheduler.
    pub node: Node<Feedback>,
    /// Which slot it had at the last millisecond, as its network interface knows.
    pub seen: Option<u32>,
    /// When the last message that it has been given is out of its network interface, in ns.
    pub sent_ns: u64,
    /// Its scheduler was to look while it switched, and does when that is over.
    pub looks_late: bool,
}

/// All that there is.
pub struct Cluster<'a> {
    pub(super) setup: &'a Setup,
    pub(super) seed: u64,
    pub(super) cpus: Vec<Cpu>,
    /// What the policy's gate is to know, by node; nothing, if it has none.
    pub(super) gates: Vec<Gate>,
    pub(super) tasks: Vec<Option<Task>>,
    pub(super) jobs: Vec<Job>,
    pub(super) slots: Slots,
    /// Jobs that have come and have no slots.
    waiting: VecDeque<u32>,
    arrived: usize,
    jobs_left: usize,
    /// Gang: the row whose turn it is.
    pub(super) row: Option<u32>,
    /// What processes have computed, and how long their messages would have taken alone, in ns.
    pub(super) useful_ns: [u64; 2],
    /// What the CPUs spent on interrupts, queues and endpoints, in ns.
    pub(super) overhead_ns: u64,
    /// What was useful when the first job came that counts, and when the last one came, with the time; in ns.
    pub(super) marks: Vec<(u64, [u64; 2])>,
    first_counted: usize,
}

impl<'a> Cluster<'a> {
    /// No job has come yet.
    pub fn new(setup: &'a Setup, specs: &[JobSpec], seed: u64) -> Self {
        let level = setup.level as usize;
        let mut local = Feedback::new(level);
        [local.front_preempts, local.preempts_to_back, local.boosts_keep_quantum] =
            [Reading::Front, Reading::Back, Reading::Keep].map(|it| setup.readings.has(it));
        let cpu = Cpu { node: Node::new(local), seen: None, sent_ns: 0, looks_late: false };
        let job =
            |spec: &JobSpec| Job { spec: *spec, places: Vec::new(), tasks_left: spec.size, began_ns: 0, done_ns: 0 };
        Cluster {
            setup,
            seed,
            cpus: vec![cpu; setup.nodes as usize],
            gates: vec![Gate::new(&setup.policy, level); if setup.has_gate() { setup.nodes as usize } else { 0 }],
            tasks: vec![None; setup.nodes as usize * level],
            jobs: specs.iter().map(job).collect(),
            slots: Slots::new(setup.nodes, setup.level),
            waiting: VecDeque::new(),
            arrived: 0,
            jobs_left: specs.len(),
            row: None,
            useful_ns: [0; 2],
            overhead_ns: 0,
            marks: Vec::new(),
            first_counted: setup.uncounted(specs.len()),
        }
    }

    /// Starts the clocks, and has the first job come.
    pub fn start(&mut self, queue: &mut Queue<Event>) {
        let mut random = Random::new(self.seed, 0);
        if self.setup.is_gang() {
            queue.at(self.setup.policy.quantum_ns, Event::Turn);
        } else {
            let tick_ns = self.cpus[0].node.local.tick_ns();
            let mut clock = || (1 + random.below(tick_ns), 1 + random.below(UPDATE_NS));
            let together = clock();
            for node in 0..self.setup.nodes {
                let (tick, second) = if self.setup.readings.has(Reading::Clocks) { together } else { clock() };
                queue.at(tick, Event::Tick { node });
                queue.at(second, Event::Second { node });
            }
        }
        if let Some(first) = self.jobs.first() {
            queue.at(first.spec.arrival_ns, Event::Arrives);
        }
    }

    /// The jobs that count, all of which are done.
    pub fn counted(&self) -> &[Job] {
        &self.jobs[self.first_counted..]
    }

    pub(super) fn place_of(&self, node: usize, slot: u32) -> usize {
        node * self.setup.level as usize + slot as usize
    }

    pub(super) fn node_of(&self, place: u32) -> (usize, u32) {
        ((place / self.setup.level) as usize, place % self.setup.level)
    }

    pub(super) fn task(&mut self, place: usize) -> &mut Task {
        self.tasks[place].as_mut().expect("somebody is there")
    }

    /// The process that runs on a node now.
    pub(super) fn running(&self, node: usize) -> Option<u32> {
        if let Mode::Running(slot) = self.cpus[node].node.mode { Some(slot) } else { None }
    }

    fn arrives(&mut self, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        if self.arrived == self.first_counted || self.arrived + 1 == self.jobs.len() {
            self.marks.push((now_ns, self.useful_ns));
        }
        self.waiting.push_back(self.arrived as u32);
        self.arrived += 1;
        if let Some(next) = self.jobs.get(self.arrived) {
            queue.at(next.spec.arrival_ns.max(now_ns), Event::Arrives);
        }
        self.admit(queue);
    }

    /// The job that came first gets slots, as long as there are enough.
    fn admit(&mut self, queue: &mut Queue<Event>) {
        while let Some(&job) = self.waiting.front() {
            let size = self.jobs[job as usize].spec.size;
            let one_row = self.setup.is_gang() || self.setup.readings.has(Reading::Row);
            let places = self.slots.take(size, one_row);
            let Some(places) = places.or_else(|| self.slots.take(size, self.setup.is_gang())) else { return };
            self.waiting.pop_front();
            self.begin(job, places, queue);
        }
    }

    fn begin(&mut self, number: u32, places: Vec<u32>, queue: &mut Queue<Event>) {
        let job = &mut self.jobs[number as usize];
        job.began_ns = queue.now_ns();
        let iteration = Iteration::of(&job.spec, self.setup);
        let (last, talks) = (places.len() - 1, job.spec.mix.communication > 0.0);
        for (rank, &place) in places.iter().enumerate() {
            let before = (talks && rank > 0).then(|| places[rank - 1]);
            let behind = (talks && rank < last).then(|| places[rank + 1]);
            let neighbours = [before, behind];
            let random = Random::new(self.seed, (u64::from(number) + 1) << 32 | rank as u64);
            self.tasks[place as usize] = Some(Task::new(number, neighbours, iteration, random));
        }
        for &place in &places {
            let (node, slot) = self.node_of(place);
            self.enters(node, slot, queue);
        }
        self.jobs[number as usize].places = places;
    }

    /// The process in this place has done all; the CPU is no longer its own.
    pub(super) fn leaves(&mut self, place: usize, queue: &mut Queue<Event>) {
        let task = self.tasks[place].take().expect("somebody is there");
        let job = &mut self.jobs[task.job as usize];
        job.tasks_left -= 1;
        if job.tasks_left > 0 {
            return;
        }
        job.done_ns = queue.now_ns();
        self.jobs_left -= 1;
        let places = std::mem::take(&mut job.places);
        self.slots.give(&places);
        self.admit(queue);
    }
}

impl Model for Cluster<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut Queue<Event>) -> bool {
        match event {
            Event::Timer { node, timer } => return self.timer(node, timer, queue),
            Event::Tick { node } => self.tick(node as usize, queue),
            Event::Second { node } => self.second(node as usize, queue),
            Event::Arrives => self.arrives(queue),
            Event::Message { place, side, stamp } => self.message(place, usize::from(side), stamp, queue),
            Event::Interrupt { place, job } => self.interrupt(place, job, queue),
            Event::IoDone { place } => self.io_done(place, queue),
            Event::Turn => self.turn(queue),
        }
        true
    }

    fn is_over(&self) -> bool {
        self.jobs_left == 0
    }
}
