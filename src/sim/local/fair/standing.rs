// SPDX-License-Identifier: GPL-2.0-only
//! A task moves to another CPU of its node (`place_on_cpu` in `bpf/fair.bpf.h`): each CPU has a clock of its own, so what counts is how
//! far the task was from that which it leaves.

use super::{Fair, Task};
use crate::sim::local::Slot;

/// What a task takes along to another CPU of its node.
#[derive(Clone, Copy, Debug)]
pub struct Standing {
    /// How far it was ahead of the clock, in ns.
    lead_ns: i64,
    used_ns: i64,
    slice_ns: i64,
    runnable: bool,
}

impl Fair {
    /// Takes `slot`, which waits or sleeps, off this CPU. Returns how it stood.
    pub fn leave(&mut self, slot: Slot) -> Standing {
        let Task { vtime, used_ns, slice_ns, runnable, .. } = self.tasks[slot as usize];
        self.queue.retain(|&other| other != slot);
        self.tasks[slot as usize] = Task { slice_ns: self.slice_ns, ..Task::default() };
        Standing { lead_ns: vtime - self.clock, used_ns, slice_ns, runnable }
    }

    /// `slot` comes from another CPU, with its distance to the clock but for the credit beyond one slice, and with what is left of
    /// its slice. It is queued if it was runnable.
    pub fn join(&mut self, slot: Slot, standing: Standing) {
        let Standing { lead_ns, used_ns, slice_ns, runnable } = standing;
        let vtime = self.clock + lead_ns.max(-self.slice_ns);
        self.tasks[slot as usize] = Task { vtime, slice_vtime: vtime, used_ns, slice_ns, runnable, ..Task::default() };
        if runnable {
            self.enqueue(slot);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sim::local::LocalScheduler;

    const MS: u64 = 1_000_000;

    /// Two CPUs: slot 0 has run for 1 s on the first, and its clock stands there.
    fn two() -> [Fair; 2] {
        let mut here = Fair::new(3, 20 * MS);
        here.arrive(0);
        assert_eq!(here.pick(), Some(0));
        here.charge(0, 1000 * MS);
        here.expire(0);
        assert_eq!(here.pick(), Some(0));
        [here, Fair::new(3, 20 * MS)]
    }

    #[test]
    fn a_debt_goes_along_and_the_clock_does_not() {
        let [mut here, mut there] = two();
        here.charge(0, 7 * MS);
        here.preempt(0);
        there.join(0, here.leave(0));
        assert_eq!((here.pick(), there.lead_ns(0), there.rest_ns(0)), (None, 7 * MS as i64, 13 * MS));
        assert_eq!(there.pick(), Some(0));
    }

    #[test]
    fn of_a_credit_one_slice_goes_along() {
        let [mut here, mut there] = two();
        here.arrive(1);
        here.charge(0, 20 * MS);
        here.expire(0);
        assert_eq!(here.pick(), Some(1));
        here.sleep(1);
        assert_eq!(here.pick(), Some(0));
        here.charge(0, 500 * MS);
        here.expire(0);
        assert_eq!(here.pick(), Some(0));
        there.join(1, here.leave(1));
        assert_eq!((there.lead_ns(1), there.pick()), (-20 * MS as i64, None));
        there.wake(1, false);
        assert_eq!(there.pick(), Some(1));
    }
}
