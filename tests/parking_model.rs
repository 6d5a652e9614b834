// SPDX-License-Identifier: GPL-2.0-only
//! Claim: no message is lost on a task that is parked because it polls in vain, and no other task is parked. No boost
//! is lost either, and a task waits in the queue of its phase.
//!
//! A model of what goes on between the CPU that parks a task and the CPU where messages for it arrive (bpf/park.bpf.h,
//! bpf/demand.bpf.h, bpf/queues.bpf.h), with the names of there. Which phase follows on which is not modelled but
//! called (policies/phase.h). loom runs it in every order that the C11 memory model allows, with four involuntary
//! switches at most, or three where two messages arrive, for every `Story` and each answer of the gate.
//!
//! The main thread does what is done under the lock of a runqueue, and the CPUs take turns in it. The other thread is a
//! softirq, which holds no lock. A CPU dispatches when a slice ends: a kick only has it do so sooner, and is left out.
//! Left out are also other tasks, time with all that it brings (the recheck too), resumed boosts, tasks that are set
//! aside, and whenever the task's own CPU asks the gate.
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
const LEFT: &str = "a task is not in the queue of its phase";
const IDLE: &str = "a task that was granted a boost does not run";
const TAKEN: &str = "a CPU sorts a task that waits in none of its queues";
const FULL: &str = "an id stays in a box";

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
    Sleeps,    // and wakes up again
    RunsAgain, // after a recheck, say, and is parked again
    IsStolen,  // by another CPU, and is parked there
    IsMoved,   // to another CPU, where it takes its turn
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

/// What is done under the lock of the runqueue that the task is on.
struct Locked {
    shared: Arc<Shared>,
    leaves: bool,
    cpu: usize,
    /// Each is named as the phase of the tasks in it. A task that runs is in none.
    queue: Phase,
}

impl Locked {
    fn running(&mut self, cpu: usize) {
        (self.cpu, self.queue, self.leaves) = (cpu, Phase::Runs, false);
        write(&self.shared.cpu, cpu);
        exchange(&self.shared.phase, Phase::Runs as usize);
    }

    /// The task has its turn: it reads what has come, and polls until the pulse finds that this is in vain.
    fn run(&mut self, cpu: usize) {
        self.running(cpu);
        write(&self.shared.messages, 0);
        self.leaves = !self.shared.has_message();
    }

    fn stopping(&self, runnable: bool) {
        let phase = self.shared.phase();
        if runnable {
            self.shared.change_phase(phase, phase_stops(phase, false));
        } else {
            exchange(&self.shared.phase, Phase::Blocked as usize);
        }
    }

    fn enqueue(&mut self, cpu: usize) {
        self.cpu = cpu;
        write(&self.shared.cpu, cpu);
        let phase = self.shared.phase();
        self.shared.change_phase(phase, phase_queued(phase));
        fence(SeqCst);
        let leaves = std::mem::take(&mut self.leaves);
        self.queue = if leaves && self.park() { Phase::Parked } else { self.queue_for() };
    }

    fn queue_for(&self) -> Phase {
        let phase = self.shared.phase();
        if phase == Phase::Granted || phase == Phase::Asks { phase } else { Phase::Waits }
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

    fn waits_on(&self, cpu: usize) -> bool {
        self.queue != Phase::Runs && self.cpu == cpu
    }

    /// A slice ends on each CPU.
    fn dispatch(&mut self) {
        for cpu in [0, 1] {
            self.empty_box(cpu);
            if self.queue == Phase::Granted && self.waits_on(cpu) {
                self.running(cpu);
            }
        }
    }

    fn empty_box(&mut self, cpu: usize) {
        let shared = self.shared.clone();
        let is_posted = read(&shared.posted[cpu]) == 1 && exchange(&shared.posted[cpu], 0) == 1;
        if is_posted && read(&shared.boxes[cpu]) == 1 && exchange(&shared.boxes[cpu], 0) == 1 {
            self.sort_marked(cpu);
        }
    }

    fn sort_marked(&mut self, cpu: usize) {
        let is_here = read(&self.shared.cpu) == cpu;
        if is_here && self.queue != Phase::Runs && self.shared.phase() != Phase::Parked {
            self.move_to_queue(cpu);
        }
    }

    fn move_to_queue(&mut self, cpu: usize) {
        assert!(self.waits_on(cpu), "{TAKEN}");
        self.queue = self.queue_for();
    }

    fn leave(&mut self, story: Story, cpu: usize) {
        if [GetsBusy, Sleeps].contains(&story) && self.shared.has(BusyEndsWanted) {
            self.leaves = false;
        }
        self.stopping(story != Sleeps);
        let phase = self.shared.phase();
        assert!(phase != Phase::Runs && (phase == Phase::Blocked) == (story == Sleeps), "{LEFT}");
        self.enqueue(cpu);
        assert!(self.queue != Phase::Parked || ![GetsBusy, Sleeps].contains(&story), "{BUSY}");
    }

    fn tell(&mut self, story: Story, softirq: JoinHandle<()>) {
        let shared = self.shared.clone();
        self.leave(story, 0);
        match story {
            IsParked | GetsBusy | Sleeps => {}
            IsMoved => {
                self.enqueue(1);
                assert!(self.queue != Phase::Parked, "{BUSY}");
            }
            RunsAgain | IsStolen => {
                let cpu = if story == IsStolen { 1 } else { 0 };
                self.run(cpu);
                self.leave(story, cpu);
            }
        }
        self.dispatch();
        softirq.join().unwrap();
        self.dispatch();
        assert!(self.queue != Phase::Parked || !shared.has_message(), "{LOST}");
        assert!(self.queue == shared.phase(), "{LEFT}");
        assert!(self.queue != Phase::Granted, "{IDLE}");
        assert!(self.queue != Phase::Runs || !self.leaves, "{BUSY}");
        assert!(shared.boxes.iter().chain(&shared.posted).all(|word| read(word) == 0), "{FULL}");
    }
}

const ANSWERS: [Answer; 3] = [Answer::NotAsked, Answer::Denied, Answer::Given];

fn check(story: Story, without: Option<Rule>, arrivals: u32, preemptions: usize) {
    let mut model = Builder::new();
    model.preemption_bound = Some(preemptions);
    for answers in 0..ANSWERS.len().pow(arrivals) {
        model.check(move || {
            let shared = Arc::new(Shared { without, ..Default::default() });
            let mut task = Locked { shared: shared.clone(), leaves: false, cpu: 0, queue: Phase::Runs };
            task.run(0);
            let arrive = move |n| shared.demand_on_arrival(ANSWERS[answers / ANSWERS.len().pow(n) % ANSWERS.len()]);
            task.tell(story, spawn(move || (0..arrivals).for_each(arrive)));
        });
    }
}

#[test]
fn no_message_is_lost_and_nobody_is_parked_who_is_busy() {
    for story in [IsParked, GetsBusy, Sleeps, RunsAgain, IsStolen, IsMoved] {
        check(story, None, 1, 4);
        check(story, None, 2, 3);
    }
}

/// What fails in `story` without `rule`.
fn failure(rule: Rule, story: Story) -> String {
    let panic = catch_unwind(|| check(story, Some(rule), 2, 2)).expect_err(&format!("{rule:?} is not needed"));
    panic.downcast_ref::<String>().expect("a panic with a message").clone()
}

#[test]
fn without_any_one_of_the_rules_it_fails() {
    for rule in [LookAfterParking, BarrierAtParking, BarrierAtArrival] {
        assert_eq!(failure(rule, IsParked), LOST, "{rule:?}");
    }
    assert_eq!(failure(LookWhereItIs, IsMoved), LEFT);
    assert_eq!(failure(BusyEndsWanted, GetsBusy), BUSY);
}
