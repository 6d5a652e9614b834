// SPDX-License-Identifier: GPL-2.0-only
//! Claim: no message is lost on a task that is parked because it polls in vain, and nobody else is parked.
//!
//! A model of what goes on between the CPU that parks a task and the CPU where messages for it arrive (bpf/park.bpf.h,
//! bpf/demand.bpf.h, bpf/queues.bpf.h), with the names of there. loom runs it in every order that the C11 memory model allows, with four
//! involuntary switches at most, or three where two messages arrive, for every `Story` and both answers of the gate.
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
use loom::model::Builder;
use loom::sync::atomic::Ordering::{AcqRel, Relaxed, SeqCst};
use loom::sync::atomic::{AtomicUsize, fence};
use loom::thread::{JoinHandle, spawn};

const TASK_QUEUED: usize = 1;
const TASK_RUNNING: usize = 2;

const PARK_NONE: usize = 0;
const PARK_WANTED: usize = 1;
const PARK_PARKED: usize = 2;
const PARK_UNPARK: usize = 3;

const LOST: &str = "a parked task has a message, and its CPU does not look";
const BUSY: &str = "a task is parked that does not poll in vain";
const LEFT: &str = "a running task still has a mark from the queue";

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
    state: AtomicUsize,
    park: AtomicUsize,
    boost: AtomicUsize,
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

    fn demand_on_arrival(&self, granted: bool) {
        self.messages.fetch_add(1, Relaxed);
        let cpu = read(&self.cpu);
        self.full_barrier(BarrierAtArrival);
        if read(&self.state) != TASK_QUEUED || read(&self.boost) == 1 {
            return;
        }
        let parked = self.park.compare_exchange(PARK_PARKED, PARK_UNPARK, AcqRel, Relaxed).is_ok();
        if granted {
            write(&self.boost, 1);
        }
        if granted || parked {
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
    queue: Option<usize>,
    /// It is in the queue of those that go first.
    granted: bool,
}

impl Locked {
    fn running(&mut self, cpu: usize) {
        let shared = &self.shared;
        (self.queue, self.granted) = (None, false);
        write(&shared.cpu, cpu);
        write(&shared.boost, 0);
        write(&shared.park, PARK_NONE);
        exchange(&shared.state, TASK_RUNNING);
    }

    /// The task has its turn: it reads what has come, and polls until the pulse finds that this is in vain.
    fn run(&mut self, cpu: usize) {
        self.running(cpu);
        write(&self.shared.messages, 0);
        if !self.shared.has_message() {
            write(&self.shared.park, PARK_WANTED);
        }
    }

    fn stopping(&mut self) {
        write(&self.shared.boost, 0);
        exchange(&self.shared.state, TASK_QUEUED);
    }

    fn enqueue(&mut self, cpu: usize) {
        self.queue = Some(cpu);
        self.granted = read(&self.shared.boost) == 1;
        write(&self.shared.cpu, cpu);
        if read(&self.shared.park) != PARK_WANTED || !self.park() {
            write(&self.shared.park, PARK_NONE);
        }
    }

    fn park(&self) -> bool {
        let shared = &self.shared;
        let has_message = !shared.has(LookAfterParking) && shared.has_message();
        write(&shared.park, PARK_PARKED);
        shared.full_barrier(BarrierAtParking);
        !(has_message || shared.has(LookAfterParking) && shared.has_message())
    }

    /// A slice ends on the CPU in whose queue the task is.
    fn dispatch(&mut self) {
        let shared = self.shared.clone();
        let Some(cpu) = self.queue else { return };
        if exchange(&shared.posted[cpu], 0) == 1 && exchange(&shared.boxes[cpu], 0) == 1 {
            self.sort_marked(cpu);
        }
        if self.granted {
            self.running(cpu);
        }
    }

    fn sort_marked(&mut self, cpu: usize) {
        let shared = &self.shared;
        if read(&shared.state) != TASK_QUEUED || read(&shared.cpu) != cpu {
            return;
        }
        write(&shared.park, PARK_NONE);
        self.granted = read(&shared.boost) == 1;
    }

    fn tell(&mut self, story: Story, softirq: JoinHandle<()>) {
        let shared = self.shared.clone();
        if story == GetsBusy && shared.has(BusyEndsWanted) {
            write(&shared.park, PARK_NONE);
        }
        self.stopping();
        self.enqueue(0);
        assert!(story != GetsBusy || read(&shared.park) == PARK_NONE, "{BUSY}");
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
        let marked = read(&shared.park) != PARK_NONE;
        assert!(!marked || !shared.has_message(), "{LOST}");
        assert!(!marked || self.queue.is_some(), "{LEFT}");
    }
}

fn check(without: Option<Rule>, arrivals: usize, preemptions: usize) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    for story in [IsParked, GetsBusy, RunsAgain, IsStolen, IsMoved] {
        for grants in 0..1 << arrivals {
            model.check(move || {
                let shared = Arc::new(Shared { without, ..Default::default() });
                let mut task = Locked { shared: shared.clone(), queue: None, granted: false };
                task.run(0);
                let arrive = move |n| shared.demand_on_arrival(grants >> n & 1 == 1);
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
fn failure(rule: Rule, arrivals: usize) -> String {
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
