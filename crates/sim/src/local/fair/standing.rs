// SPDX-License-Identifier: GPL-2.0-only
//! A task moves to another CPU of its node (`enter_order` in `bpf/fair.bpf.h`): each CPU has a clock of its own, so
//! what counts is how far the task was from that which it leaves.

use super::{Fair, NEW, Task};
use crate::local::Slot;
use cosched_rules::native;

/// What a task takes along to another CPU of its node.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// How far it was ahead of the clock, in ns.
    lead_ns: i64,
    used_ns: u64,
    slice_ns: u64,
    runnable: bool,
}

impl Fair {
    /// Takes `slot`, which waits or sleeps, off this CPU. Returns how it stood.
    pub fn leave(&mut self, slot: Slot) -> Standing {
        let (lead_ns, task) = (self.lead_ns(slot), &mut self.tasks[slot as usize]);
        let (used_ns, slice_ns, runnable) = (task.used_ns, task.slice_ns, task.place.weight > 0);
        if runnable {
            native::fair_leave(&mut self.order, &mut task.place);
        }
        self.queue.retain(|&other| other != slot);
        self.tasks[slot as usize] = NEW;
        Standing { lead_ns, used_ns, slice_ns, runnable }
    }

    /// `slot` comes from another CPU, with its distance to the clock but for the credit beyond one slice, and with what
    /// is left of its slice. It is queued if it was runnable.
    pub fn join(&mut self, slot: Slot, standing: Standing) {
        let Standing { lead_ns, used_ns, slice_ns, runnable } = standing;
        self.tasks[slot as usize] = Task { used_ns, slice_ns, ..NEW };
        if !runnable {
            self.tasks[slot as usize].place.vtime = self.order.clock.wrapping_add_signed(lead_ns);
            return;
        }
        let credit_ns = native::fair_credit(&self.policy, 0, false);
        self.enter(slot, lead_ns, credit_ns);
        self.tasks[slot as usize].key = self.tasks[slot as usize].place.vtime;
        self.enqueue(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::LocalScheduler;

    const MS: u64 = 1_000_000;

    /// Two CPUs: on the first, slot 0 has run for 1 s and slot 1 for half of that; on the second there is slot 2.
    fn two() -> [Fair; 2] {
        let [mut here, mut there] = [Fair::new(3, 20 * MS), Fair::new(3, 20 * MS)];
        (0..2).for_each(|slot| here.arrive(slot));
        here.charge(0, 1000 * MS);
        here.charge(1, 500 * MS);
        there.arrive(2);
        [here, there]
    }

    #[test]
    fn a_debt_goes_along_and_the_clock_does_not() {
        let [mut here, mut there] = two();
        assert_eq!(here.lead_ns(0), 250 * MS as i64);
        there.join(0, here.leave(0));
        // It was ahead of the clock of the other, which is the mean of both now.
        assert_eq!(there.lead_ns(0), 125 * MS as i64);
        assert_eq!((there.pick(), there.pick()), (Some(2), Some(0)));
    }

    #[test]
    fn of_a_credit_one_slice_goes_along() {
        for sleeps in [false, true] {
            let [mut here, mut there] = two();
            if sleeps {
                here.sleep(1);
            }
            there.join(1, here.leave(1));
            if sleeps {
                there.wake(1, false);
            }
            assert_eq!(there.lead_ns(1), -10 * MS as i64, "{sleeps}");
        }
    }
}
