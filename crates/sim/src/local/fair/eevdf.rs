// SPDX-License-Identifier: GPL-2.0-only
//! The kernel's own order (EEVDF, kernel/sched/fair.c of Linux 6.18), for tasks of equal weight and slice.
//!
//! It differs from ours in what a sleep does. A task that is behind the clock when it goes to sleep comes back as far
//! behind, however long it slept. For a task that is ahead the clock makes up in its sleep, so it comes back less far
//! ahead, or at the clock.
//!
//! Tasks that are ahead of the clock wait. Of the others, that task is next whose slice began first. A slice is as long
//! as the policy says, and a task that is preempted keeps its rest. A task that wakes up preempts at once if it is
//! next, and the running task is ahead of the clock or has used its slice (RUN_TO_PARITY in __pick_eevdf()). Otherwise
//! it waits until a slice ends.
//!
//! The kernel lets a sleeping task count in the clock while it is ahead (DELAY_DEQUEUE). Here it does not.

use super::{Fair, WEIGHT};
use crate::local::Slot;
use cosched_rules::native;

/// A tick of the kernel, in ns.
const TICK_NS: u64 = 4_000_000;

impl Fair {
    /// The same in the kernel's own order.
    pub fn as_eevdf(self) -> Self {
        Fair { is_eevdf: true, ..self }
    }

    /// `slot`, which slept, is runnable.
    pub(super) fn enter_eevdf(&mut self, slot: Slot) {
        // The kernel's entity_lag() keeps no more than the longest slice and a tick.
        let most_ns = (self.policy.slice_ns + TICK_NS) as i64;
        let ahead_ns = self.lead_ns(slot).clamp(0, most_ns);
        let place = &mut self.tasks[slot as usize].place;
        let lead_ns = if place.lag > 0 { -place.lag.min(most_ns) } else { ahead_ns };
        place.vtime = self.order.clock.wrapping_add_signed(lead_ns);
        native::fair_enter(&mut self.order, place, WEIGHT);
    }

    /// The place in the queue of the next task.
    pub(super) fn first_eligible(&self) -> usize {
        self.queue.iter().position(|&slot| self.lead_ns(slot) <= 0).unwrap_or(0)
    }

    /// Whether a task that has just woken up is the next, beside `running`.
    pub(super) fn outranks_eevdf(&self, running: Slot) -> bool {
        let Some(&slot) = self.queue.get(self.first_eligible()) else { return false };
        self.tasks[slot as usize].woken && (self.lead_ns(running) > 0 || self.rest_ns(running) == 0)
    }

    /// No task that has woken up before preempts any more.
    pub(super) fn keeps_running(&mut self) {
        self.tasks.iter_mut().for_each(|task| task.woken = false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalScheduler;

    const MS: u64 = 1_000_000;

    /// Three tasks, of which 0 runs, then sleeps after `ran_ns`, and 1 runs.
    fn asleep_after(ran_ns: u64) -> Fair {
        let mut local = Fair::new(3, 4 * MS).as_eevdf();
        (0..3).for_each(|slot| local.arrive(slot));
        assert_eq!(local.pick(), Some(0));
        local.charge(0, ran_ns);
        local.sleep(0);
        assert_eq!(local.pick(), Some(1));
        local
    }

    #[test]
    fn a_sleep_saves_up_no_credit_and_keeps_what_was_due() {
        let mut local = Fair::new(2, 4 * MS).as_eevdf();
        (0..2).for_each(|slot| local.arrive(slot));
        assert_eq!(local.pick(), Some(0));
        local.charge(0, 3 * MS);
        local.expire(0);
        assert_eq!(local.pick(), Some(1));
        // 1 is 3 ms behind 0, which is what it finds again.
        local.sleep(1);
        assert_eq!(local.pick(), Some(0));
        local.charge(0, 100 * MS);
        local.wake(1, false);
        assert_eq!(local.lead_ns(0) - local.lead_ns(1), 3 * MS as i64);
        assert!(local.outranks(0), "a task that is due preempts as it wakes");
        local.tick(0);
        assert!(!local.outranks(0), "and later it waits for the end of a slice");
    }

    #[test]
    fn the_clock_makes_up_for_what_a_sleeper_was_ahead() {
        let mut local = asleep_after(3 * MS);
        local.charge(1, MS);
        local.wake(0, false);
        // It is at 3 ms and the others are at 1 and 0 ms: 2.5 ms ahead of their mean. Once it counts itself, the mean
        // of all three is at 1.333 ms.
        assert!((1_666_666..=1_666_667).contains(&local.lead_ns(0)), "{}", local.lead_ns(0));
        assert!(!local.outranks(1), "it is ahead of the clock");
        let mut local = asleep_after(3 * MS);
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
        // 0 has come back behind the clock. So is 2, though its slice began later.
        assert!(local.lead_ns(0) < 0 && local.lead_ns(2) < 0, "{} {}", local.lead_ns(0), local.lead_ns(2));
        assert!(!local.outranks(2), "2 has not used its slice");
        local.charge(2, 3 * MS);
        assert!(local.outranks(2), "2 is ahead, and has used its slice");
    }

    #[test]
    fn the_next_is_not_ahead_of_the_clock() {
        let mut local = asleep_after(0);
        local.charge(1, 3 * MS);
        local.preempt(1);
        assert_eq!(local.pick(), Some(2));
        local.charge(2, MS);
        local.expire(2);
        // 1 was cut short and keeps its place in the queue, but it is a millisecond ahead.
        assert_eq!((local.queue(), local.lead_ns(1)), (&[1, 2][..], MS as i64));
        assert_eq!(local.pick(), Some(2));
    }
}
