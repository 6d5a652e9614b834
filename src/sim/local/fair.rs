// SPDX-License-Identifier: GPL-2.0-only
//! The fair order of the kernel's side, `bpf/fair.bpf.h`, for tasks of equal weight.
//!
//! The queue is ordered by vtime, which is CPU time; the clock is the least vtime of what is runnable. A task that sleeps
//! loses its credit beyond one slice and keeps its debt, up to what the others catch up with in 1.5 s; one that is preempted
//! keeps its place and the rest of its slice; one that wakes preempts who is ahead of it by more than a millisecond and has
//! run for two of its slice, else at the next tick. Slices end at ticks, of 1 ms unless said otherwise. Who is parked stays
//! runnable, behind everybody else (`bpf/park.bpf.h`).

mod standing;

use super::{LocalScheduler, Slot};
use crate::bpf::intf::{self, COSCHED_WINDOW_CREDIT, cosched_policy};

const TICK_NS: u64 = 1_000_000;
const MAX_WAIT_NS: i64 = 1_500_000_000;
/// A slice, or the rest of one, that is shorter is not worth a switch, in ns (`bpf/fair.bpf.h`).
pub const MIN_REST_NS: i64 = 1_000_000;
const WAKE_MARGIN_NS: i64 = 1_000_000;
const MIN_RUN_NS: i64 = 2_000_000;

/// Of somebody who is parked: behind everything else (`bpf/park.bpf.h`).
const PARKED: i64 = i64::MAX;

#[derive(Clone, Debug, Default)]
struct Task {
    vtime: i64,
    /// The vtime at which the slice began: the key in the queue.
    slice_vtime: i64,
    used_ns: i64,
    slice_ns: i64,
    runnable: bool,
    woken: bool,
    parked: bool,
}

impl Task {
    fn key(&self) -> i64 {
        if self.parked { PARKED } else { self.slice_vtime }
    }

    fn has_rest(&self) -> bool {
        self.used_ns > 0 && self.used_ns + MIN_REST_NS <= self.slice_ns
    }
}

/// The scheduler of one CPU.
#[derive(Clone, Debug)]
pub struct Fair {
    tasks: Vec<Task>,
    slice_ns: i64,
    tick_ns: i64,
    /// How many slices of credit one keeps that slept.
    credit: i64,
    clock: i64,
    /// In the order of their keys, and of their coming among equals.
    queue: Vec<Slot>,
}

impl Fair {
    /// Of a CPU with this many slots under `policy`: with the gate `auto` the kernel lets one that waited for a message keep
    /// `COSCHED_WINDOW_CREDIT` slices of credit, else one.
    pub fn under(policy: &cosched_policy, slots: usize) -> Self {
        let is_auto = policy.gate == intf::cosched_gate_COSCHED_GATE_AUTO;
        let credit = if is_auto { i64::from(COSCHED_WINDOW_CREDIT) } else { 1 };
        Fair { credit, ..Fair::new(slots, policy.slice_ns) }
    }

    /// Of a CPU with this many slots.
    pub fn new(slots: usize, slice_ns: u64) -> Self {
        let slice_ns = slice_ns as i64;
        let task = Task { slice_ns, ..Task::default() };
        let (tasks, queue) = (vec![task; slots], Vec::with_capacity(slots));
        Fair { tasks, slice_ns, tick_ns: TICK_NS as i64, credit: 1, clock: 0, queue }
    }

    /// The same with ticks of so many ns.
    pub fn with_ticks(self, tick_ns: u64) -> Self {
        Fair { tick_ns: tick_ns as i64, ..self }
    }

    /// Who waits, in the order in which they run.
    pub fn queue(&self) -> &[Slot] {
        &self.queue
    }

    /// Whether somebody waits who is not parked.
    pub fn is_wanted(&self) -> bool {
        self.queue.first().is_some_and(|&first| !self.tasks[first as usize].parked)
    }

    /// How far `slot` is ahead of the clock, in ns.
    pub fn lead_ns(&self, slot: Slot) -> i64 {
        self.tasks[slot as usize].vtime - self.clock
    }

    /// How far the other runnable tasks are ahead of the clock, on the average, in ns: from 0 to [`max_lead_ns`](Self::max_lead_ns)
    /// of one.
    pub fn others_lead_ns(&self, slot: Slot) -> i64 {
        let others = self.tasks.iter().enumerate().filter(|(it, task)| task.runnable && *it != slot as usize);
        let (sum, count) = others.fold((0, 0), |(sum, count), (_, task)| (sum + task.vtime - self.clock, count + 1));
        if count == 0 { 0 } else { (sum / count).clamp(0, MAX_WAIT_NS) }
    }

    /// How far a task may be ahead of the clock where so many are runnable, in ns; the rest of a debt is forgiven.
    pub fn max_lead_ns(runnable: u32) -> u64 {
        MAX_WAIT_NS as u64 / u64::from(runnable.max(1))
    }

    /// What is left of the slice of `slot`, in ns; 0: nothing.
    pub fn rest_ns(&self, slot: Slot) -> u64 {
        let task = &self.tasks[slot as usize];
        (task.slice_ns - task.used_ns).max(0) as u64
    }

    /// Whether `slot` was cut short, with enough left of its slice to be worth a switch.
    pub fn has_rest(&self, slot: Slot) -> bool {
        self.tasks[slot as usize].has_rest()
    }

    /// Puts `slot`, which is in the queue, before all others. `slice_ns`: for a slice of that length, else for what is left.
    pub fn boost(&mut self, slot: Slot, slice_ns: Option<u64>) {
        if let Some(slice_ns) = slice_ns {
            self.begin_slice(slot);
            self.tasks[slot as usize].slice_ns = slice_ns as i64;
        }
        self.tasks[slot as usize].parked = false;
        self.queue.retain(|&other| other != slot);
        self.queue.insert(0, slot);
    }

    /// `slot`, which is in the queue, goes behind everybody until [`unpark`](Self::unpark), or until nobody else is there.
    pub fn park(&mut self, slot: Slot) {
        self.queue.retain(|&other| other != slot);
        self.tasks[slot as usize].parked = true;
        self.enqueue(slot);
    }

    /// `slot`, which is parked, takes its turn again.
    pub fn unpark(&mut self, slot: Slot) {
        let floor = self.floor();
        let task = &mut self.tasks[slot as usize];
        (task.parked, task.woken, task.vtime) = (false, true, task.vtime.max(floor));
        if !task.has_rest() {
            self.begin_slice(slot);
        }
        self.queue.retain(|&other| other != slot);
        self.enqueue(slot);
    }

    /// `slot`, which is in the queue, lets all go first who are there now.
    pub fn fall_behind(&mut self, slot: Slot) {
        self.queue.retain(|&other| other != slot);
        let last = self.queue.iter().rposition(|&other| !self.tasks[other as usize].parked);
        self.queue.insert(last.map_or(0, |last| last + 1), slot);
    }

    fn floor(&self) -> i64 {
        self.clock - self.credit * self.slice_ns
    }

    fn begin_slice(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot as usize];
        (task.slice_ns, task.used_ns, task.slice_vtime) = (self.slice_ns, 0, task.vtime);
    }

    fn enqueue(&mut self, slot: Slot) {
        let runnable = self.tasks.iter().filter(|task| task.runnable).count().max(1) as i64;
        let ceiling = self.clock + MAX_WAIT_NS / runnable + self.slice_ns;
        let task = &mut self.tasks[slot as usize];
        (task.vtime, task.slice_vtime) = (task.vtime.min(ceiling), task.slice_vtime.min(ceiling));
        let key = task.key();
        let place = self.queue.iter().position(|&other| self.tasks[other as usize].key() > key);
        self.queue.insert(place.unwrap_or(self.queue.len()), slot);
    }
}

impl LocalScheduler for Fair {
    fn tick_ns(&self) -> u64 {
        self.tick_ns as u64
    }

    fn arrive(&mut self, slot: Slot) {
        let clock = self.clock;
        let task = &mut self.tasks[slot as usize];
        (task.vtime, task.runnable) = (clock, true);
        self.begin_slice(slot);
        self.enqueue(slot);
    }

    fn sleep(&mut self, slot: Slot) {
        self.tasks[slot as usize].runnable = false;
    }

    fn wake(&mut self, slot: Slot, urgent: bool) {
        let floor = self.floor();
        let task = &mut self.tasks[slot as usize];
        (task.vtime, task.runnable, task.woken) = (task.vtime.max(floor), true, true);
        self.begin_slice(slot);
        self.enqueue(slot);
        if urgent {
            // A boost: before all others, at its own vtime.
            self.queue.retain(|&other| other != slot);
            self.queue.insert(0, slot);
        }
    }

    fn unblock(&mut self, slot: Slot) {
        self.enqueue(slot);
    }

    fn preempt(&mut self, slot: Slot) {
        if !self.has_rest(slot) {
            self.begin_slice(slot);
        }
        self.enqueue(slot);
    }

    fn expire(&mut self, slot: Slot) {
        self.begin_slice(slot);
        self.enqueue(slot);
    }

    fn charge(&mut self, slot: Slot, ran_ns: u64) {
        let task = &mut self.tasks[slot as usize];
        task.vtime += ran_ns as i64;
        task.used_ns += ran_ns as i64;
    }

    fn pick(&mut self) -> Option<Slot> {
        if self.queue.is_empty() {
            return None;
        }
        let slot = self.queue.remove(0);
        let task = &mut self.tasks[slot as usize];
        (task.woken, task.parked) = (false, false);
        let first = self.queue.first().map(|&other| self.tasks[other as usize].key());
        let own = self.tasks[slot as usize].slice_vtime;
        self.clock = self.clock.max(first.map_or(own, |first| first.min(own)));
        Some(slot)
    }

    fn outranks(&self, running: Slot) -> bool {
        let Some(&first) = self.queue.first() else { return false };
        let (first, it) = (&self.tasks[first as usize], &self.tasks[running as usize]);
        first.woken && it.used_ns >= MIN_RUN_NS && first.vtime + WAKE_MARGIN_NS < it.vtime
    }

    fn tick(&mut self, running: Slot) -> bool {
        let task = &self.tasks[running as usize];
        // A tick ends what would be over within half of one.
        task.used_ns + self.tick_ns / 2 >= task.slice_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn all_have_the_same_in_the_long_run() {
        let mut local = Fair::new(3, 20 * MS);
        (0..3).for_each(|slot| local.arrive(slot));
        let mut ran = [0; 3];
        for _ in 0..600 {
            let slot = local.pick().unwrap();
            loop {
                local.charge(slot, MS);
                ran[slot as usize] += 1;
                if local.tick(slot) {
                    break;
                }
            }
            local.expire(slot);
        }
        assert_eq!(ran, [4000; 3]);
    }

    #[test]
    fn a_sleeper_comes_back_with_a_slice_of_credit_and_no_more() {
        let mut local = Fair::new(2, 20 * MS);
        local.arrive(0);
        local.arrive(1);
        assert_eq!(local.pick(), Some(0));
        local.sleep(0);
        for _ in 0..100 {
            assert_eq!(local.pick(), Some(1));
            local.charge(1, 20 * MS);
            local.expire(1);
        }
        assert_eq!(local.pick(), Some(1));
        local.charge(1, 5 * MS);
        local.wake(0, false);
        assert!(local.outranks(1));
        assert_eq!(local.tasks[0].vtime, local.clock - 20 * MS as i64);
    }
}
