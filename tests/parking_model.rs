// SPDX-License-Identifier: GPL-2.0-only
//! Claim: no message is lost on a task that is parked because it polls in vain, and nobody else is parked.
//!
//! A model of what goes on between the CPU that parks a task and the CPU where messages for it arrive (bpf/park.bpf.h,
//! bpf/demand.bpf.h, bpf/queues.bpf.h), with the names of there. Which phase follows on which is not modelled but
//! called (policies/phase.h). loom runs it in every order that the C11 memory model allows, with four involuntary
//! switches at most, or three where two messages arrive, for every `Story` and each answer of the gate.
//!
//! The main thread does what is done under the lock of the runqueue that the task is on. The other thread is a softirq,
//! which holds no lock. A CPU with a queue dispatches when a slice ends: a kick only has it do so sooner, and is left
//! out, as are other tasks, time with all that it brings (the recheck too), resumed boosts, sleep, and a gate that is
//! asked again.
//!
//! loom keeps no order between plain stores of two threads to the same word. A machine does: hence `write`.

use std::panic::catch_unwind;
use std::sync::Arc;

use Rule::*;
use Story::*;
use cosched_rules::native::{Answer, Phase, phase_calms, phase_message, phase_parks, phase_queued, phase_stops};
use loom::model::Builder;
use loom::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use loom::sync::atomic::{AtomicUsize, fence};
use loom::thread::{JoinHandle, spawn};

const LOST: &str = "a parked task has a message, and its CPU does not look";
const BUSY: &str = "a task is parked that does not poll in vain";
const LEFT: &str = "a task runs in a phase in which it would wait, or the other way round";

/// What the claim rests on: without any one of them it fails.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Rule {
    LookAfterParking, // park: the message is looked for after the task is parked...
    BarrierAtParking, // ...with a full barrier in between
    BarrierAtArrival, // arrival: a full barrier between the message and the look at the state
    LookWhereItIs,    // arrival: the task may be on another CPU when it is marked than it was before
    BusyEndsWanted,   // who reads a message, is kept running or sleeps before it leaves its CPU is not parked
}

/// What becomes of a task that has polled in vain.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Story {
    IsParked,
    GetsBusy,  // before it leaves its CPU
    RunsAgain, // after a recheck, say, and is parked again
    IsStolen,  // by another CPU, and is parked there
    IsMoved,   // to the queue of another CPU
}

fn read(word: &AtomicUsize) -> usize {
    word.load(Relaxed)
}

fn write(word: &AtomicUsize, value: usize) {
    word.swap(value, Relaxed);
}

fn exchange(word: &AtomicUsize, value: usize) -> usize {
    let old = word.swap(value, AcqRel);
    fence(SeqCst);
    old
}

/// The context of the task, its socket, and of the two CPUs that it may be on what arrivals write.
#[derive(Default)]
struct Shared {
    without: Option<Rule>,
    messages: AtomicUsize,
    phase: AtomicUsize,
    cpu: AtomicUsize,
    /// A place in it is the task's, or empty.
    boxes: [AtomicUsize; 2],
    posted: [AtomicUsize; 2],
}

impl Shared {
    fn has(&self, rule: Rule) -> bool {
        self.without != Some(rule)
    }

    fn full_barrier(&self, rule: Rule) {
        if self.has(rule) {
            fence(SeqCst);
        }
    }

    fn has_message(&self) -> bool {
        read(&self.messages) > 0
    }

    fn phase(&self) -> Phase {
        Phase::of(read(&self.phase) as u32)
    }

    /// On a machine it is a full barrier as well: each caller says which rule that is.
    fn change_phase(&self, from: Phase, to: Phase) -> bool {
        self.phase.compare_exchange(from as usize, to as usize, AcqRel, Relaxed).is_ok()
    }

    fn demand_on_arrival(&self, answer: Answer) {
        self.messages.fetch_add(1, Relaxed);
        self.full_barrier(BarrierAtArrival);
        let (cpu, phase) = (read(&self.cpu), self.phase());
        self.mark(phase, phase_message(phase, answer), cpu);
    }

    fn mark(&self, from: Phase, to: Phase, cpu: usize) {
        if from != to && self.change_phase(from, to) {
            self.post(self.cpu_now(cpu));
        }
    }

    fn post(&self, cpu: usize) {
        if read(&self.boxes[cpu]) == 0 {
            exchange(&self.boxes[cpu], 1);
        }
        exchange(&self.posted[cpu], 1);
    }

    /// Where the task is that has just been marked. It was on `cpu`.
    fn cpu_now(&self, cpu: usize) -> usize {
        self.full_barrier(LookWhereItIs);
        if self.has(LookWhereItIs) { read(&self.cpu) } else { cpu }
    }
}

/// What is done under the lock of the runqueue that the task is on. It runs if it is in no queue.
#[derive(Default)]
struct Locked {
    shared: Arc<Shared>,
    leaves: bool,
    cpu: Option<usize>,
    queue: Queue,
}

#[derive(Default, PartialEq)]
enum Queue {
    #[default]
    Fair,
    Granted,
    Parked,
}

impl Locked {
    fn running(&mut self, cpu: usize) {
        (self.cpu, self.leaves) = (None, false);
        write(&self.shared.cpu, cpu);
        exchange(&self.shared.phase, Phase::Runs as usize);
    }

    /// The task has its turn: it reads what has come, and polls until the pulse finds that this is in vain.
    fn run(&mut self, cpu: usize) {
        self.running(cpu);
        write(&self.shared.messages, 0);
        self.leaves = !self.shared.has_message();
    }

    fn stopping(&mut self) {
        let phase = self.shared.phase();
        self.shared.change_phase(phase, phase_stops(phase, false));
        fence(SeqCst);
    }

    fn enqueue(&mut self, cpu: usize) {
        self.cpu = Some(cpu);
        write(&self.shared.cpu, cpu);
        let phase = self.shared.phase();
        self.shared.change_phase(phase, phase_queued(phase));
        fence(SeqCst);
        self.queue = if self.leaves && self.park() { Queue::Parked } else { self.queue_for() };
        self.leaves = false;
    }

    fn queue_for(&self) -> Queue {
        if self.shared.phase() == Phase::Granted { Queue::Granted } else { Queue::Fair }
    }

    fn park(&self) -> bool {
        let shared = &self.shared;
        let has_message = !shared.has(LookAfterParking) && shared.has_message();
        let phase = shared.phase();
        let parked = phase_parks(phase);
        if parked == phase || !shared.change_phase(phase, parked) {
            return false;
        }
        shared.full_barrier(BarrierAtParking);
        if has_message || shared.has(LookAfterParking) && shared.has_message() {
            shared.change_phase(parked, phase_calms(parked));
            return false;
        }
        true
    }

    /// A slice ends on the CPU in whose queue the task is.
    fn dispatch(&mut self) {
        let shared = self.shared.clone();
        let Some(cpu) = self.cpu else { return };
        if exchange(&shared.posted[cpu], 0) == 1 && exchange(&shared.boxes[cpu], 0) == 1 {
            self.sort_marked(cpu);
        }
        if self.queue == Queue::Granted {
            self.running(cpu);
        }
    }

    fn sort_marked(&mut self, cpu: usize) {
        let phase = self.shared.phase();
        if read(&self.shared.cpu) == cpu && phase != Phase::Blocked && phase != Phase::Parked {
            self.queue = self.queue_for();
        }
    }

    fn tell(&mut self, story: Story, softirq: JoinHandle<()>) {
        let shared = self.shared.clone();
        if story == GetsBusy && shared.has(BusyEndsWanted) {
            self.leaves = false;
        }
        self.stopping();
        self.enqueue(0);
        assert!(story != GetsBusy || self.queue != Queue::Parked, "{BUSY}");
        match story {
            IsParked | GetsBusy => {}
            IsMoved => self.enqueue(1),
            RunsAgain | IsStolen => {
                let cpu = if story == IsStolen { 1 } else { 0 };
                self.run(cpu);
                self.stopping();
                self.enqueue(cpu);
            }
        }
        self.dispatch();
        softirq.join().unwrap();
        self.dispatch();
        let waits = self.cpu.is_some();
        assert!(!waits || self.queue != Queue::Parked || !shared.has_message(), "{LOST}");
        assert_eq!(waits, shared.phase() != Phase::Runs, "{LEFT}");
    }
}

const ANSWERS: [Answer; 3] = [Answer::NotAsked, Answer::Denied, Answer::Given];

fn check(without: Option<Rule>, arrivals: u32, preemptions: usize) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    for story in [IsParked, GetsBusy, RunsAgain, IsStolen, IsMoved] {
        for answers in 0..ANSWERS.len().pow(arrivals) {
            model.check(move || {
                let shared = Arc::new(Shared { without, ..Default::default() });
                let mut task = Locked { shared: shared.clone(), ..Default::default() };
                task.run(0);
                let arrive = move |n| shared.demand_on_arrival(ANSWERS[answers / ANSWERS.len().pow(n) % ANSWERS.len()]);
                task.tell(story, spawn(move || (0..arrivals).for_each(arrive)));
            });
        }
    }
}

#[test]
fn no_message_is_lost_and_nobody_is_parked_who_is_busy() {
    check(None, 1, 4);
    check(None, 2, 3);
}

/// What fails without `rule`.
fn failure(rule: Rule, arrivals: u32) -> String {
    let panic = catch_unwind(|| check(Some(rule), arrivals, 2)).expect_err(&format!("{rule:?} is not needed"));
    panic.downcast_ref::<String>().expect("a panic with a message").clone()
}

#[test]
fn without_any_one_of_the_rules_it_fails() {
    for rule in [LookAfterParking, BarrierAtParking, BarrierAtArrival, LookWhereItIs] {
        assert_eq!(failure(rule, 2), LOST, "{rule:?}");
    }
    assert_eq!(failure(BusyEndsWanted, 1), BUSY);
}
