// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's own order (EEVDF, kernel/sched/fair.c of Linux 7.3), for tasks of equal nice level and slice, all in one
//! cgroup.
//!
//! It differs from ours in what a sleep does. A task that is behind the clock when it goes to sleep comes back as far
//! behind, however long it slept. For a task that is ahead the clock makes up in its sleep, so it comes back less far
//! ahead, or at the clock.
//!
//! Tasks that are ahead of the clock wait. Of the others, that task is next whose slice ends first on the clock. A slice
//! is as long as the policy says, and a task that is preempted keeps its rest. A task that wakes up preempts at once if
//! it is next, and the running task is ahead of the clock or has used its slice (RUN_TO_PARITY in pick_eevdf()).
//! Otherwise it waits until a slice ends.
//!
//! All tasks of a CPU are in one queue, whatever their cgroup. A task counts there for its part of what its cgroup
//! counts for, among those of it that are runnable (h_load). The part is reckoned when the task wakes up, when it is
//! picked, and at a tick. So a task that wakes beside four others counts for a fifth, and those that were picked while it
//! slept for a quarter each. A cgroup counts for more where more of its tasks are runnable than on the other CPUs
//! (calc_concur_shares()); here the others are taken to be like this one of late.
//!
//! A kernel thread is no part of the cgroup, and is next when it wakes up. If the running task is ahead of the clock
//! then, it loses the CPU, and any task may be picked after the kernel thread.
//!
//! The kernel lets a sleeping task count in the clock while it is ahead (DELAY_DEQUEUE). Here it does not.

use super::{Fair, Task, WEIGHT};
use crate::local::Slot;
use cosched_rules::native;

/// A tick of the kernel, in ns.
const TICK_NS: u64 = 4_000_000;
/// How long it takes the kernel to forget half of a load, in ns (PELT).
const LOAD_NS: f64 = 32_000_000.0;
/// How often a kernel thread wakes up on a CPU, in ns: kcompactd, kdamond, kworkers. In 0.72 s of a trace of the demo's
/// VM (`sched_switch`) 4 and 5 of them took the CPU from a worker.
const KERNEL_THREAD_NS: u64 = 160_000_000;

/// What there is beside the order.
#[derive(Clone, Debug)]
pub(super) struct Eevdf {
    /// How many were runnable of late.
    load: f64,
    /// For how long there was no tick of the kernel, in ns.
    since_tick_ns: u64,
    /// For how long there was no kernel thread, in ns.
    since_kernel_ns: u64,
    /// There is one, which takes the CPU from the running task.
    pub(super) interrupts: bool,
}

impl Fair {
    /// The same in the kernel's own order.
    pub fn as_eevdf(self) -> Self {
        let load = self.tasks.len() as f64;
        Fair { eevdf: Some(Eevdf { load, since_tick_ns: 0, since_kernel_ns: 0, interrupts: false }), ..self }
    }

    fn runnable(&self) -> usize {
        self.tasks.iter().filter(|task| task.place.weight > 0).count()
    }

    /// What a task counts for if so many are runnable.
    fn part(&self, runnable: usize) -> u32 {
        let load = self.eevdf.as_ref().map_or(0.0, |eevdf| eevdf.load);
        let here = load.max(runnable as f64);
        let cgroup = f64::from(WEIGHT) * self.tasks.len() as f64 * 2.0 * here / (here + load);
        (cgroup / runnable.max(1) as f64) as u32
    }

    /// A task has run for `ran_ns`: so long the load was what is runnable now.
    pub(super) fn notes_load(&mut self, ran_ns: u64) {
        let runnable = self.runnable() as f64;
        if let Some(eevdf) = &mut self.eevdf {
            eevdf.load += (runnable - eevdf.load) * (1.0 - (-(ran_ns as f64) / LOAD_NS).exp2());
        }
    }

    /// How far from the clock a sleeping task stays at most, in ns of CPU time: the longest slice and a tick, as in the
    /// kernel's entity_lag().
    fn most_lag_ns(&self) -> i64 {
        (self.policy.slice_ns + TICK_NS) as i64
    }

    /// `slot` is about to fall asleep.
    pub(super) fn notes_lag(&mut self, slot: Slot) {
        let (lead, most_ns) = (self.lead_ns(slot), self.most_lag_ns());
        let task = &mut self.tasks[slot as usize];
        task.lag_ns = (-lead * task.place.weight as i64 / i64::from(WEIGHT)).clamp(-most_ns, most_ns);
    }

    /// `slot`, which slept or is new, is runnable. It is put as far from the clock as has it where it was, once it
    /// counts itself (place_entity()).
    pub(super) fn enter_eevdf(&mut self, slot: Slot) {
        let (part, others) = (self.part(self.runnable() + 1), self.order.weight as i64);
        let ahead = self.lead_ns(slot).clamp(0, self.most_lag_ns());
        let Task { place, lag_ns, .. } = &mut self.tasks[slot as usize];
        let lag = *lag_ns * i64::from(WEIGHT) / i64::from(part) * (others + i64::from(part)) / others.max(1);
        place.vtime = self.order.clock.wrapping_add_signed(if lag > 0 { -lag } else { ahead });
        native::fair_enter(&mut self.order, place, part);
    }

    /// The slice of `slot` ends on the clock when it has run for what is left of it.
    pub(super) fn sets_deadline(&mut self, slot: Slot) {
        let rest_ns = self.rest_ns(slot);
        let task = &mut self.tasks[slot as usize];
        task.key = task.place.vtime.wrapping_add(rest_ns * u64::from(WEIGHT) / task.place.weight.max(1));
    }

    /// `slot`, which is not in the queue, counts for its part as it is now.
    fn reckons(&mut self, slot: Slot) {
        let part = self.part(self.runnable());
        native::fair_reweigh(&mut self.order, &mut self.tasks[slot as usize].place, part);
        self.sets_deadline(slot);
    }

    /// The place in the queue of the next task.
    fn first_eligible(&self) -> usize {
        self.queue.iter().position(|&slot| self.lead_ns(slot) <= 0).unwrap_or(0)
    }

    /// Takes the next out of the queue, which is not empty.
    pub(super) fn pick_eevdf(&mut self) -> Slot {
        let slot = self.queue.remove(self.first_eligible());
        self.reckons(slot);
        self.eevdf.iter_mut().for_each(|eevdf| eevdf.interrupts = false);
        slot
    }

    /// Whether a task that has just woken up is the next, beside `running`.
    pub(super) fn outranks_eevdf(&self, running: Slot) -> bool {
        let Some(&slot) = self.queue.get(self.first_eligible()) else { return false };
        self.tasks[slot as usize].woken && (self.lead_ns(running) > 0 || self.rest_ns(running) == 0)
    }

    /// The CPU looks at its running task. No task that has woken up before preempts any more.
    pub(super) fn looks_eevdf(&mut self, running: Slot) {
        self.tasks.iter_mut().for_each(|task| task.woken = false);
        let (look_ns, is_ahead) = (self.tick_ns, self.lead_ns(running) > 0);
        let Some(eevdf) = &mut self.eevdf else { return };
        (eevdf.since_tick_ns, eevdf.since_kernel_ns) = (eevdf.since_tick_ns + look_ns, eevdf.since_kernel_ns + look_ns);
        let wakes = eevdf.since_kernel_ns >= KERNEL_THREAD_NS;
        eevdf.interrupts = wakes && is_ahead;
        if wakes {
            eevdf.since_kernel_ns = 0;
        }
        if eevdf.since_tick_ns >= TICK_NS {
            eevdf.since_tick_ns = 0;
            self.reckons(running);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalScheduler;

    const MS: u64 = 1_000_000;

    /// So many tasks with slices of 4 ms, of which 0 runs, then sleeps after `ran_ns`, and 1 runs.
    fn asleep_after(tasks: u32, ran_ns: u64) -> Fair {
        let mut local = Fair::new(tasks as usize, 4 * MS).as_eevdf();
        (0..tasks).for_each(|slot| local.arrive(slot));
        assert_eq!(local.pick(), Some(0));
        local.charge(0, ran_ns);
        local.sleep(0);
        assert_eq!(local.pick(), Some(1));
        local
    }

    /// In us of CPU time.
    fn lag_us(local: &Fair, slot: Slot) -> i64 {
        let weight = local.tasks[slot as usize].place.weight as i64;
        -local.lead_ns(slot) * weight / i64::from(WEIGHT) / 1000
    }

    #[test]
    fn a_sleep_saves_up_no_credit_and_keeps_what_was_due() {
        let mut local = Fair::new(2, 4 * MS).as_eevdf();
        (0..2).for_each(|slot| local.arrive(slot));
        assert_eq!(local.pick(), Some(0));
        local.charge(0, 3 * MS);
        local.expire(0);
        assert_eq!(local.pick(), Some(1));
        // 1 is 3 ms behind 0 and so 1.5 ms behind their mean, which is what it finds again.
        local.sleep(1);
        assert_eq!(local.pick(), Some(0));
        local.charge(0, 100 * MS);
        local.wake(1, false);
        assert!((1499..=1500).contains(&lag_us(&local, 1)), "{}", lag_us(&local, 1));
        assert!(local.outranks(0), "a task that is due preempts as it wakes");
        local.tick(0);
        assert!(!local.outranks(0), "and later it waits for the end of a slice");
    }

    #[test]
    fn the_clock_makes_up_for_what_a_sleeper_was_ahead() {
        let mut local = asleep_after(3, 3 * MS);
        // 1 came when two were there, and counts for more: 3 ms of 1 of 3.5 parts.
        assert_eq!(local.tasks[0].lag_ns / 1000, -2142);
        local.charge(1, MS);
        local.wake(0, false);
        assert!((-1999..0).contains(&lag_us(&local, 0)), "{}", lag_us(&local, 0));
        assert!(!local.outranks(1), "it is ahead of the clock");
        let mut local = asleep_after(3, 3 * MS);
        local.charge(1, 20 * MS);
        local.wake(0, false);
        assert_eq!(local.lead_ns(0), 0);
    }

    #[test]
    fn the_running_task_keeps_its_slice_while_it_is_not_ahead_of_the_clock() {
        let mut local = Fair::new(3, 4 * MS).as_eevdf();
        (0..3).for_each(|slot| local.arrive(slot));
        for (slot, ran_ns) in [(0, MS), (1, 3 * MS)] {
            assert_eq!(local.pick(), Some(slot));
            local.charge(slot, ran_ns);
            local.expire(slot);
        }
        assert_eq!(local.pick(), Some(2));
        local.sleep(0);
        local.charge(2, MS);
        local.wake(0, false);
        // 0 has come back behind the clock. So is 2, though its slice ends later.
        assert!(local.lead_ns(0) < 0 && local.lead_ns(2) < 0, "{} {}", local.lead_ns(0), local.lead_ns(2));
        assert!(!local.outranks(2), "2 has not used its slice");
        local.charge(2, 3 * MS);
        assert!(local.outranks(2), "2 is ahead, and has used its slice");
    }

    #[test]
    fn the_next_is_not_ahead_of_the_clock() {
        let mut local = asleep_after(3, 0);
        local.charge(1, 3 * MS);
        local.preempt(1);
        assert_eq!(local.pick(), Some(2));
        local.charge(2, MS);
        local.expire(2);
        // 1 was cut short and keeps its place in the queue, but it is ahead.
        assert!(local.queue() == [1, 2] && local.lead_ns(1) > 0, "{:?} {}", local.queue(), local.lead_ns(1));
        assert_eq!(local.pick(), Some(2));
    }

    #[test]
    fn a_task_that_wakes_counts_for_less_than_those_that_were_picked_in_its_sleep() {
        let mut local = asleep_after(5, MS);
        for slot in [2, 3, 4] {
            local.charge(slot - 1, 4 * MS);
            local.expire(slot - 1);
            assert_eq!(local.pick(), Some(slot));
        }
        local.wake(0, false);
        let weight = |slot: usize| local.tasks[slot].place.weight as f64;
        // A fifth and a quarter, but for what more the cgroup counts for with five.
        assert!((0.8..0.86).contains(&(weight(0) / weight(4))), "{} {}", weight(0), weight(4));
        // At the next tick the running one counts for a fifth too.
        (0..4).for_each(|_| assert!(!local.tick(4)));
        assert_eq!(local.tasks[4].place.weight, local.tasks[0].place.weight);
    }

    #[test]
    fn a_kernel_thread_takes_the_cpu_from_a_task_that_is_ahead_of_the_clock() {
        for (ran_ns, interrupts) in [(0, false), (2 * MS, true)] {
            let mut local = asleep_after(3, 0);
            local.charge(1, ran_ns);
            let looks = KERNEL_THREAD_NS / local.tick_ns();
            (1..looks).for_each(|_| assert!(!local.tick(1) && !local.outranks(1)));
            local.tick(1);
            assert_eq!(local.outranks(1), interrupts, "{ran_ns}");
            local.preempt(1);
            assert_eq!(local.pick(), Some(if interrupts { 2 } else { 1 }));
            assert!(!local.outranks(2));
        }
    }
}
