// SPDX-License-Identifier: GPL-2.0-only
//! Round robin: the time-sharing class with a table of one level and one quantum (Dusseau 7.2).
//!
//! A task that returns from sleep goes to the end of the queue like any other, so that the processes of a job are not
//! drawn together by what wakes them.

use super::levels::{KERNEL, Levels};
use super::{LocalScheduler, Slot};

const TICK_NS: u64 = 10_000_000;
const LEVEL: u8 = 0;

/// The scheduler of one CPU.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    quantum_ticks: u32,
    ticks_left: Vec<u32>,
    in_kernel: Vec<bool>,
    queue: Levels,
}

impl RoundRobin {
    /// Of a CPU with this many slots; the quantum is rounded up to ticks of 10 ms.
    pub fn new(slots: usize, quantum_ns: u64) -> Self {
        let quantum_ticks = quantum_ns.div_ceil(TICK_NS).max(1) as u32;
        let (ticks_left, in_kernel) = (vec![quantum_ticks; slots], vec![false; slots]);
        RoundRobin { quantum_ticks, ticks_left, in_kernel, queue: Levels::default() }
    }

    fn level(&self, slot: Slot) -> u8 {
        if self.in_kernel[slot as usize] { KERNEL } else { LEVEL }
    }

    fn push_back(&mut self, slot: Slot) {
        self.queue.push_back(self.level(slot), slot);
    }
}

impl LocalScheduler for RoundRobin {
    fn tick_ns(&self) -> u64 {
        TICK_NS
    }

    fn arrive(&mut self, slot: Slot) {
        self.push_back(slot);
    }

    fn sleep(&mut self, slot: Slot) {
        self.in_kernel[slot as usize] = false;
    }

    fn wake(&mut self, slot: Slot, urgent: bool) {
        self.in_kernel[slot as usize] = urgent;
        if !urgent {
            self.ticks_left[slot as usize] = self.quantum_ticks;
        }
        self.push_back(slot);
    }

    fn unblock(&mut self, slot: Slot) {
        if std::mem::take(&mut self.in_kernel[slot as usize]) {
            self.ticks_left[slot as usize] = self.quantum_ticks;
            self.push_back(slot);
        } else {
            self.preempt(slot);
        }
    }

    fn preempt(&mut self, slot: Slot) {
        self.queue.push_front(self.level(slot), slot);
    }

    fn expire(&mut self, slot: Slot) {
        self.ticks_left[slot as usize] = self.quantum_ticks;
        self.push_back(slot);
    }

    fn pick(&mut self) -> Option<Slot> {
        self.queue.pop()
    }

    fn outranks(&self, running: Slot) -> bool {
        self.queue.top().is_some_and(|top| top > self.level(running))
    }

    fn tick(&mut self, running: Slot) -> bool {
        let left = &mut self.ticks_left[running as usize];
        *left = left.saturating_sub(1);
        *left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_take_turns_of_a_quantum_and_nobody_who_wakes_comes_first() {
        let mut local = RoundRobin::new(3, 25_000_000);
        (0..3).for_each(|slot| local.arrive(slot));
        assert_eq!(local.pick(), Some(0));
        assert_eq!((1..).find(|_| local.tick(0)), Some(3), "25 ms are three ticks");
        local.expire(0);
        assert_eq!(local.pick(), Some(1));
        local.sleep(1);
        assert_eq!(local.pick(), Some(2));
        local.wake(1, true);
        assert!(local.outranks(2), "it handles its message in the kernel");
        local.preempt(2);
        assert_eq!(local.pick(), Some(1));
        local.unblock(1);
        assert_eq!([local.pick(), local.pick(), local.pick()], [Some(2), Some(0), Some(1)]);
    }
}
