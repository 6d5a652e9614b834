// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's fair order (`policies/fair.h`, `bpf/fair.bpf.h`) for tasks of equal weight, in one group.
//!
//! The queue is ordered by where tasks stood when their slice began. A task that is preempted keeps its place and the
//! rest of its slice. Slices end at ticks, of 1 ms unless said otherwise. A parked task stays in the order, and runs
//! when there is no other (`bpf/park.bpf.h`).

mod eevdf;
mod standing;

use self::eevdf::Eevdf;
use super::{LocalScheduler, Slot};
use crate::policy::NOTHING;
use cosched_rules::intf::{self, cosched_demand, cosched_order, cosched_place, cosched_policy};
use cosched_rules::native;

const TICK_NS: u64 = 1_000_000;
/// Of each task.
pub const WEIGHT: u32 = intf::FAIR_WEIGHT_DEFAULT;
/// Of each task, in the unit of effective weights.
pub const EFFECTIVE: u64 = (WEIGHT as u64) << intf::FAIR_WEIGHT_SHIFT;

#[derive(Clone, Debug)]
struct Task {
    place: cosched_place,
    /// Where it stood when its slice began; under EEVDF, where it will stand at the end.
    key: u64,
    used_ns: u64,
    slice_ns: u64,
    woken: bool,
    parked: bool,
    /// EEVDF: how far it was behind the clock when it fell asleep, in CPU time.
    lag_ns: i64,
}

const NEW: Task =
    Task { place: native::NEW_PLACE, key: 0, used_ns: 0, slice_ns: 0, woken: false, parked: false, lag_ns: 0 };

impl Task {
    fn is_before(&self, other: &Task) -> bool {
        (self.parked, self.key.wrapping_sub(other.key) as i64) < (other.parked, 0)
    }
}

/// The scheduler of one CPU.
#[derive(Clone, Debug)]
pub struct Fair {
    tasks: Vec<Task>,
    order: cosched_order,
    policy: cosched_policy,
    tick_ns: u64,
    /// It is the kernel's own order (`fair/eevdf.rs`).
    eevdf: Option<Eevdf>,
    /// In the order of their keys, and of their coming among equals.
    queue: Vec<Slot>,
}

impl Fair {
    /// Of a CPU with this many slots under `policy`.
    pub fn under(policy: &cosched_policy, slots: usize) -> Self {
        let (tasks, queue) = (vec![NEW; slots], Vec::with_capacity(slots));
        Fair { tasks, order: native::NEW_ORDER, policy: *policy, tick_ns: TICK_NS, eevdf: None, queue }
    }

    /// Of a CPU with this many slots, and without a gate.
    pub fn new(slots: usize, slice_ns: u64) -> Self {
        Fair::under(&cosched_policy { slice_ns, ..NOTHING }, slots)
    }

    /// The same with ticks of so many ns.
    pub fn with_ticks(self, tick_ns: u64) -> Self {
        Fair { tick_ns, ..self }
    }

    /// Who waits, in the order in which they run.
    pub fn queue(&self) -> &[Slot] {
        &self.queue
    }

    /// Whether somebody waits who is not parked.
    pub fn is_wanted(&self) -> bool {
        self.queue.first().is_some_and(|&first| !self.tasks[first as usize].parked)
    }

    /// How many are runnable.
    pub fn nr_runnable(&self) -> u32 {
        (self.order.weight / u64::from(WEIGHT)) as u32
    }

    /// How many tasks wait beside the running one.
    pub fn nr_waiting(&self) -> u64 {
        u64::from(self.nr_runnable().saturating_sub(1))
    }

    /// How many of the runnable have come and not run yet.
    fn newcomers(&self) -> u32 {
        self.tasks.iter().filter(|task| task.woken).count() as u32
    }

    /// The sum of the weights of those.
    pub fn weight(&self) -> u64 {
        self.order.weight
    }

    /// How far `slot` is ahead of the clock, in ns.
    pub fn lead_ns(&self, slot: Slot) -> i64 {
        native::fair_lead(&self.order, &self.tasks[slot as usize].place)
    }

    /// What a gate is to know of how `slot` stands.
    pub fn describe(&self, demand: &mut cosched_demand, slot: Slot) {
        let counts = self.tasks[slot as usize].place.weight > 0;
        let (sum, nr) = (self.weight(), self.nr_runnable());
        native::account_describe(demand, self.lead_ns(slot), EFFECTIVE, sum, nr, counts);
    }

    /// What is left of the slice of `slot`, in ns; 0: nothing.
    pub fn rest_ns(&self, slot: Slot) -> u64 {
        let task = &self.tasks[slot as usize];
        task.slice_ns.saturating_sub(task.used_ns)
    }

    /// What `slot` has used of its slice, in ns.
    pub fn used_ns(&self, slot: Slot) -> u64 {
        self.tasks[slot as usize].used_ns
    }

    /// Whether `slot` has used nothing of its slice.
    pub fn is_new_slice(&self, slot: Slot) -> bool {
        self.tasks[slot as usize].used_ns == 0
    }

    /// Whether `slot` was cut short, with enough left of its slice to be worth a switch.
    pub fn has_rest(&self, slot: Slot) -> bool {
        let task = &self.tasks[slot as usize];
        match self.eevdf {
            None => native::fair_has_rest(task.slice_ns, task.used_ns),
            Some(_) => task.used_ns < task.slice_ns,
        }
    }

    /// `slot`, which is in the queue, takes the place there that it has by now, with a whole slice.
    pub fn restarts(&mut self, slot: Slot) {
        self.queue.retain(|&other| other != slot);
        self.begin_slice(slot);
        self.enqueue(slot);
    }

    /// Puts `slot`, which is in the queue, before all others. `slice_ns`: for a slice of that length, else for what is
    /// left.
    pub fn boost(&mut self, slot: Slot, slice_ns: Option<u64>) {
        if let Some(slice_ns) = slice_ns {
            self.begin_slice(slot);
            self.tasks[slot as usize].slice_ns = slice_ns;
        }
        self.tasks[slot as usize].parked = false;
        self.goes_first(slot);
    }

    /// `slot`, which is in the queue, goes behind everybody until [`unpark`](Self::unpark), or until nobody else is
    /// there.
    pub fn park(&mut self, slot: Slot) {
        self.queue.retain(|&other| other != slot);
        self.tasks[slot as usize].parked = true;
        self.insert(slot);
    }

    /// Whether `slot` has woken up and is before `running` by so much that it preempts.
    fn wakes_before(&self, slot: Slot, running: Slot) -> bool {
        let [it, other] = [slot, running].map(|slot| &self.tasks[slot as usize]);
        let ahead = other.place.vtime.wrapping_sub(it.key) as i64;
        it.woken && native::fair_preempts(ahead, self.weight(), self.nr_runnable())
    }

    /// The same, or whether it has woken up and is not ahead of the clock; whoever else waits.
    pub fn precedes(&self, slot: Slot, running: Slot) -> bool {
        let due = self.tasks[slot as usize].woken && native::fair_is_due(self.lead_ns(slot));
        due || self.wakes_before(slot, running)
    }

    /// `slot`, which is parked, takes its turn again.
    pub fn unpark(&mut self, slot: Slot) {
        let credit_ns = native::fair_credit(&self.policy, self.newcomers(), true);
        let task = &mut self.tasks[slot as usize];
        native::fair_bound_credit(&mut self.order, &mut task.place, credit_ns);
        (task.parked, task.woken) = (false, true);
        if !self.has_rest(slot) {
            self.begin_slice(slot);
        }
        self.queue.retain(|&other| other != slot);
        self.enqueue(slot);
    }

    /// `slot`, which is in the queue, lets the next one go first.
    pub fn lets_one_go_first(&mut self, slot: Slot) {
        let is_next = |&next: &Slot| !self.tasks[next as usize].parked;
        if self.queue.first() == Some(&slot) && self.queue.get(1).is_some_and(is_next) {
            self.queue.swap(0, 1);
        }
    }

    fn goes_first(&mut self, slot: Slot) {
        self.queue.retain(|&other| other != slot);
        self.queue.insert(0, slot);
    }

    /// `slot` is runnable from now on, with its lead but for the credit beyond `credit_ns`.
    fn enter(&mut self, slot: Slot, lead: i64, credit_ns: u64) {
        let place = &mut self.tasks[slot as usize].place;
        place.vtime = native::fair_place(&self.order, lead, place.lag, WEIGHT, credit_ns, self.policy.slice_ns);
        native::fair_enter(&mut self.order, place, WEIGHT);
    }

    /// A slice as long as is due, which begins where `slot` stands.
    fn begin_slice(&mut self, slot: Slot) {
        let slice_ns = match self.eevdf {
            None => native::fair_slice(self.policy.slice_ns, EFFECTIVE, self.order.weight),
            Some(_) => self.policy.slice_ns,
        };
        let task = &mut self.tasks[slot as usize];
        (task.slice_ns, task.used_ns, task.key) = (slice_ns, 0, task.place.vtime);
        if self.eevdf.is_some() {
            self.sets_deadline(slot);
        }
    }

    fn enqueue(&mut self, slot: Slot) {
        native::fair_bound(&mut self.order, &mut self.tasks[slot as usize].place, false);
        self.insert(slot);
    }

    fn insert(&mut self, slot: Slot) {
        let task = &self.tasks[slot as usize];
        let place = self.queue.iter().position(|&other| task.is_before(&self.tasks[other as usize]));
        self.queue.insert(place.unwrap_or(self.queue.len()), slot);
    }
}

impl LocalScheduler for Fair {
    fn tick_ns(&self) -> u64 {
        self.tick_ns
    }

    fn arrive(&mut self, slot: Slot) {
        match self.eevdf {
            None => self.enter(slot, 0, 0),
            Some(_) => self.enter_eevdf(slot),
        }
        self.begin_slice(slot);
        self.enqueue(slot);
    }

    fn sleep(&mut self, slot: Slot) {
        if self.eevdf.is_some() {
            self.notes_lag(slot);
        }
        native::fair_leave(&mut self.order, &mut self.tasks[slot as usize].place);
    }

    fn wake(&mut self, slot: Slot, urgent: bool) {
        let credit_ns = native::fair_credit(&self.policy, self.newcomers(), true);
        match self.eevdf {
            None => self.enter(slot, self.lead_ns(slot), credit_ns),
            Some(_) => self.enter_eevdf(slot),
        }
        self.tasks[slot as usize].woken = true;
        self.begin_slice(slot);
        self.enqueue(slot);
        if urgent {
            // A boost: before all others, at its own vtime.
            self.goes_first(slot);
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
        native::fair_charge(&mut self.order, &mut task.place, ran_ns);
        task.used_ns += ran_ns;
        if self.eevdf.is_some() {
            self.notes_load(ran_ns);
        }
    }

    fn pick(&mut self) -> Option<Slot> {
        if self.queue.is_empty() {
            return None;
        }
        let slot = match self.eevdf {
            None => self.queue.remove(0),
            Some(_) => self.pick_eevdf(),
        };
        let task = &mut self.tasks[slot as usize];
        (task.woken, task.parked) = (false, false);
        Some(slot)
    }

    fn outranks(&self, running: Slot) -> bool {
        if let Some(eevdf) = &self.eevdf {
            return eevdf.interrupts || self.outranks_eevdf(running);
        }
        self.queue.first().is_some_and(|&first| self.wakes_before(first, running))
    }

    fn tick(&mut self, running: Slot) -> bool {
        if self.eevdf.is_some() {
            self.looks_eevdf(running);
        }
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
    fn a_task_that_yields_lets_one_go_first_that_is_not_parked() {
        let mut local = Fair::new(3, 20 * MS);
        (0..3).for_each(|slot| local.arrive(slot));
        assert_eq!(local.queue(), [0, 1, 2]);
        local.lets_one_go_first(1);
        assert_eq!(local.queue(), [0, 1, 2], "it was not the next");
        local.lets_one_go_first(0);
        assert_eq!(local.queue(), [1, 0, 2]);
        (0..=2).for_each(|slot| local.park(slot));
        local.unpark(0);
        local.lets_one_go_first(0);
        assert_eq!(local.queue()[0], 0, "nobody else is to run");
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
        // Of the clock as it was before it came, which is the mean of both now.
        assert_eq!(local.lead_ns(0), -10 * MS as i64);
    }
}
