// SPDX-License-Identifier: GPL-2.0-only
//! The model: nodes with one CPU or several, on which processes of several jobs and competitors take turns.
//!
//! [`dispatch`](super::dispatch) decides which task has a CPU, and [`cpus`](super::cpus) on which CPU a task is.
//! [`demand`](super::demand) has what an arriving message does, [`pulse`](super::pulse) what ticks and timers do, and
//! [`steps`](super::steps) what a process does while it runs.

use super::beat::{self, Beat, is_beat};
use super::program::Pattern;
use super::task::{Spends, Step, Task};
use super::uneven::{self, Span};
use super::{Setup, is_gang};
use crate::engine::{Lane, Model, Queue};
use crate::local::{Fair, LocalScheduler};
use crate::node::{Mode, Node};
use crate::random::Random;
use cosched_rules::intf::{FAIR_MEAN_SHIFT, cosched_loan, cosched_policy, cosched_presence, cosched_share_clock};
use cosched_rules::native;

pub(super) const MESSAGES: Lane = Lane(0);
pub(super) const SWITCHES: Lane = Lane(1);
pub(super) const TICKS: Lane = Lane(2);
pub(super) const PULSES: Lane = Lane(3);
/// How many constant delays there are.
pub const LANES: usize = 4;

/// The clocks of gangs are this far from the simulation's, in ns, so that one that is behind is no negative number.
const TAI_NS: u64 = 1 << 62;

/// What happens. A place is a slot of a node: the node's number times the tasks on each, plus the slot's.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// What a CPU does is over, if `timer` is the one that counts.
    Timer { cpu: u32, timer: u32 },
    /// The kernel's clock on a CPU ticks.
    Tick { cpu: u32 },
    /// The scheduler's own timer.
    Pulse { cpu: u32 },
    /// Gang, beat: another turn begins.
    Turn { cpu: u32 },
    /// A job comes, or goes.
    Stay { job: u32 },
    /// A kernel thread has run.
    KernelThread { cpu: u32 },
    /// A message comes: of this epoch, and of a sender with so much left of its slice, in us. Under beat, with the
    /// sender's clock, theta and sizes.
    Message { place: u32, channel: u8, epoch: u64, rest_us: u32, sizes: u32 },
    /// A correspondent of the task in this place has begun a slice, of which so much is left, in us.
    Ahead { place: u32, epoch: u64, rest_us: u32 },
    /// What is counted begins.
    Begin,
    /// It is over.
    End,
}

/// A CPU and what `bpf/cpu.bpf.h` has of it.
#[derive(Clone, Debug)]
pub struct Cpu {
    /// The CPU, and its fair order.
    pub node: Node<Fair>,
    /// Somebody in the queue has a boost, or was denied one.
    pub demand: bool,
    /// A message has come for somebody who is parked.
    pub unpark: bool,
    /// Who runs is to make way as soon as it can.
    pub resched: bool,
    /// Gang: who comes next, whatever row has its turn: it has woken up and may preempt, or was cut short in its moment.
    pub front: Option<u32>,
    /// Somebody is parked, and this is when they were last looked at, in ns.
    pub parked_looked_ns: Option<u64>,
    /// What boosts are ahead of the fair order.
    pub loan: cosched_loan,
    /// Of the node (thesis 3.3); CPUs of one node count as nodes here, as in the kernel.
    pub epoch: u64,
    /// Whose turn that is.
    pub epoch_slot: Option<u32>,
    /// How much room there was of late (`policies/fair.h`).
    pub presence: cosched_presence,
    /// The mean number of tasks that waited for the CPU, as of the last tick.
    pub waiting: cosched_presence,
    /// When the CPU looks for a busier one next, in ns.
    pub balance_ns: u64,
    /// What the share of each has been so far.
    pub shares: cosched_share_clock,
    /// Gang, beat: what its clock says at time 0.
    pub tai_ns: u64,
    /// By how much that goes too fast, in parts per million.
    pub drift_ppm: f64,
    /// Beat: the turn.
    pub beat: Beat,
}

impl Cpu {
    /// What weight leaves so much, as of the last tick (`policies/balance.h`).
    pub fn load(&self) -> u64 {
        native::fair_load(self.presence.mean >> FAIR_MEAN_SHIFT)
    }
}

/// All that there is.
pub struct Shared<'a> {
    pub(super) setup: &'a Setup,
    pub(super) cpus: Vec<Cpu>,
    pub(super) tasks: Vec<Task>,
    pub(super) slots: u32,
    /// Boosts, in the time that counts.
    pub(super) boosts: u64,
    /// Moves from one CPU to another, in the time that counts.
    pub(super) moves: u64,
    /// Prefetches that were sent, and those that were granted, in the time that counts.
    pub(super) prefetches: [u64; 2],
    /// Which messages are lost.
    pub(super) losses: Random,
    /// When CPUs look for busier ones, and what looks at a task that polls find.
    pub(super) looks: Random,
    /// Where the jobs are.
    pub(super) spans: Vec<Span>,
    /// How many compete, by node.
    pub(super) competitors: Vec<u32>,
    /// How long jobs stay.
    pub(super) stays: Random,
    /// When kernel threads wake up.
    pub(super) kernel_threads: Random,
    /// What was due to each job in the time that counts, in ns, and up to when that is.
    pub(super) dues_ns: Vec<f64>,
    pub(super) dues_at_ns: u64,
    over: bool,
}

impl<'a> Shared<'a> {
    /// All are there, and nobody runs yet.
    pub fn new(setup: &'a Setup, seed: u64) -> Self {
        let slots = setup.slots();
        let (mut random, mut drifts) = (Random::new(seed, 0), Random::new(seed, u64::MAX - 2));
        let names = beat::names(setup.jobs, seed);
        let cpus_of = |node: u32| {
            let skew_ns = random.below(setup.faults.skew_ns + 1);
            let drift_ppm = setup.uneven.drift_ppm * drifts.unit();
            std::iter::repeat_n(cpu(setup, node, skew_ns, drift_ppm, &names), setup.cpus as usize)
        };
        let cpus = (0..setup.nodes).flat_map(cpus_of).collect();
        let task = |place: u32| {
            let (job, rank) = setup.who_is(place / slots, place % slots);
            let waits_first = setup.program.pattern == Pattern::Token && rank % 2 == 1;
            let step = if waits_first && job < setup.jobs { Step::Receive(0, 0) } else { Step::Compute };
            Task::new(job < setup.jobs, step, Random::new(seed, 2 + u64::from(place)))
        };
        let tasks = (0..setup.nodes * slots).map(task).collect();
        Shared {
            setup,
            cpus,
            tasks,
            slots,
            boosts: 0,
            moves: 0,
            prefetches: [0; 2],
            losses: Random::new(seed, 1),
            looks: Random::new(seed, u64::MAX),
            spans: uneven::spans(setup, seed),
            competitors: (0..setup.nodes).map(|node| uneven::competitors(setup, seed, node)).collect(),
            stays: Random::new(seed, u64::MAX - 3),
            kernel_threads: Random::new(seed, u64::MAX - 5),
            dues_ns: vec![0.0; setup.jobs as usize],
            dues_at_ns: 0,
            over: false,
        }
    }

    /// Starts the clocks and the tasks, on each node in another order.
    pub fn start(&mut self, queue: &mut Queue<Event>) {
        let mut random = Random::new(self.setup.faults.skew_ns ^ self.losses.number(), 0);
        let common_ns = random.below(self.setup.tick_ns);
        let mut order: Vec<u32> = (0..self.slots).collect();
        for node in 0..self.setup.nodes {
            let phase_ns = if self.setup.aligned { common_ns } else { random.below(self.setup.tick_ns) };
            let policy = *self.setup.policy_of(node);
            let cpus = node * self.setup.cpus..(node + 1) * self.setup.cpus;
            for cpu in cpus.clone() {
                queue.at(1 + phase_ns, Event::Tick { cpu });
                if self.pulse_ns(cpu as usize).is_some() {
                    queue.at(1 + random.below(policy.interval_ns.max(1)), Event::Pulse { cpu });
                }
                if is_gang(&policy) {
                    queue.at(native::gang_rest_ns(&policy, self.cpus[cpu as usize].tai_ns), Event::Turn { cpu });
                }
            }
            random.shuffle(&mut order);
            self.deal(cpus, &order);
        }
        self.leads(&mut Random::new(random.number(), 1));
        (0..self.cpus.len())
            .filter(|&on| is_beat(self.policy(on)))
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|on| self.beat_starts(on, queue));
        (0..self.setup.jobs).for_each(|job| self.schedules_stay(job, queue));
        (0..self.cpus.len()).for_each(|on| self.schedules_kernel_thread(on, queue));
        for cpu in 0..self.cpus.len() {
            self.dispatch(cpu, queue);
        }
        self.first_slices(&mut Random::new(random.number(), 2));
        queue.at(self.setup.warmup_ns, Event::Begin);
        queue.at(self.setup.warmup_ns + self.setup.length_ns, Event::End);
    }

    /// Where the task is that has this slot of the node of the CPU `on`.
    pub(super) fn place_of(&self, on: usize, slot: u32) -> usize {
        self.node_of(on) as usize * self.slots as usize + slot as usize
    }

    /// On which CPU the task in this place is. Of a node with one, that is known before the task is looked at, which
    /// takes long.
    pub(super) fn cpu_of(&self, place: u32) -> usize {
        match self.setup.cpus {
            1 => (place / self.slots) as usize,
            _ => self.tasks[place as usize].cpu as usize,
        }
    }

    /// Of which node the CPU `on` is one.
    pub(super) fn node_of(&self, on: usize) -> u32 {
        match self.setup.cpus {
            1 => on as u32,
            cpus => on as u32 / cpus,
        }
    }

    /// The rank of the process that has this slot of the node of the CPU `on`.
    pub(super) fn rank_of(&self, on: usize, slot: u32) -> u32 {
        let (span, node) = (self.span_of(slot), self.node_of(on));
        let index = span.index(node, self.setup.nodes).unwrap_or(0);
        slot % self.setup.ranks * span.nodes + index
    }

    fn span_of(&self, slot: u32) -> Span {
        self.spans[(slot / self.setup.ranks) as usize]
    }

    /// How many processes the job has that `slot` is one of.
    pub(super) fn processes_of(&self, slot: u32) -> u32 {
        self.span_of(slot).nodes * self.setup.ranks
    }

    /// Where the process with this rank is of the job that `slot` is one of.
    pub(super) fn place_of_rank(&self, slot: u32, rank: u32) -> u32 {
        let (span, Setup { nodes, ranks, .. }) = (self.span_of(slot), self.setup);
        let node = (span.first + rank % span.nodes) % nodes;
        node * self.slots + slot - slot % ranks + rank / span.nodes
    }

    pub(super) fn task(&mut self, on: usize, slot: u32) -> &mut Task {
        let place = self.place_of(on, slot);
        &mut self.tasks[place]
    }

    /// The task that runs on a CPU now.
    pub(super) fn running(&self, on: usize) -> Option<u32> {
        if let Mode::Running(slot) = self.cpus[on].node.mode { Some(slot) } else { None }
    }

    pub(super) fn policy(&self, on: usize) -> &'a cosched_policy {
        self.setup.policy_of(self.node_of(on))
    }

    /// Tasks begin ahead of the fair order, by any part of what they may.
    fn leads(&mut self, random: &mut Random) {
        let most_ns = self.setup.uneven.lead_ns;
        for place in (0..self.tasks.len()).filter(|_| most_ns > 0) {
            let (on, slot) = (self.tasks[place].cpu as usize, place as u32 % self.slots);
            if self.cpus[on].node.local.queue().contains(&slot) {
                self.cpus[on].node.local.charge(slot, random.below(most_ns + 1));
                self.cpus[on].node.local.restarts(slot);
            }
        }
    }

    /// On each CPU a slice is under way, of which any part is over.
    fn first_slices(&mut self, random: &mut Random) {
        for cpu in self.cpus.iter_mut().filter(|_| self.setup.uneven.amid_slices) {
            if let Mode::Running(slot) | Mode::Switching(slot) = cpu.node.mode {
                let rest_ns = cpu.node.local.rest_ns(slot);
                cpu.node.local.charge(slot, random.below(rest_ns + 1));
            }
        }
    }

    /// What is counted begins, or ends.
    fn settle_all(&mut self, queue: &Queue<Event>) {
        (0..self.cpus.len()).for_each(|on| self.settle(on, queue.now_ns()));
        self.tasks.iter_mut().for_each(|task| task.spends(task.spends, queue.now_ns()));
    }

    /// From now on the time of `slot` goes to this.
    pub(super) fn spends(&mut self, on: usize, slot: u32, spends: Spends, now_ns: u64) {
        self.task(on, slot).spends(spends, now_ns);
    }
}

/// One of a node whose clock is ahead by so much of one that is as far behind as a clock can be.
fn cpu(setup: &Setup, node: u32, skew_ns: u64, drift_ppm: f64, names: &[u64]) -> Cpu {
    let policy = setup.policy_of(node);
    let fair = Fair::under(policy, setup.slots() as usize).with_ticks(setup.tick_ns);
    let fair = if setup.is_eevdf { fair.as_eevdf() } else { fair };
    Cpu {
        node: Node::new(fair),
        demand: false,
        unpark: false,
        resched: false,
        front: None,
        parked_looked_ns: None,
        loan: native::NEW_LOAN,
        epoch: 0,
        epoch_slot: None,
        presence: native::NEW_PRESENCE,
        waiting: native::NEW_PRESENCE,
        balance_ns: 0,
        shares: native::NEW_SHARE_CLOCK,
        tai_ns: TAI_NS - setup.faults.skew_ns / 2 + skew_ns,
        drift_ppm,
        beat: Beat::new(node, names),
    }
}

impl Model for Shared<'_> {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut Queue<Event>) -> bool {
        match event {
            Event::Timer { cpu, timer } => return self.timer(cpu as usize, timer, queue),
            Event::Tick { cpu } => self.tick(cpu as usize, queue),
            Event::Pulse { cpu } => self.pulse(cpu as usize, queue),
            Event::Turn { cpu } => return self.turn(cpu as usize, queue),
            Event::Stay { job } => self.stay_over(job, queue),
            Event::KernelThread { cpu } => self.kernel_thread(cpu as usize, queue),
            Event::Message { place, channel, epoch, rest_us, sizes } => {
                return self.message(place, channel, (epoch, rest_us, sizes), queue);
            }
            Event::Ahead { place, epoch, rest_us } => return self.asked_ahead(place, epoch, rest_us, queue),
            Event::Begin => {
                self.settle_all(queue);
                self.notes_dues(queue.now_ns());
                self.dues_ns.fill(0.0);
                self.tasks.iter_mut().for_each(Task::reset);
                (self.boosts, self.moves, self.prefetches) = (0, 0, [0; 2]);
            }
            Event::End => {
                self.settle_all(queue);
                self.notes_dues(queue.now_ns());
                self.over = true;
            }
        }
        true
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
