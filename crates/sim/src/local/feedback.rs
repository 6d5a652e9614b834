// SPDX-License-Identifier: GPL-2.0-only
//! Zhang's multi-level feedback queue (2.3): 60 levels, quanta of 20 ms on level 59 to 200 ms on level 0.
//!
//! A task whose quantum is over goes down by one level; one that wakes goes to the head of level 59; and every second
//! all go to level 59. The scheduler looks every millisecond, so nobody is preempted before the next one. Between the
//! two ends that the paper names the quanta are those of Solaris.

use super::levels::Levels;
use super::{LocalScheduler, Slot, svr4};

const TICK_NS: u64 = 1_000_000;
const TOP: u8 = 59;

fn quantum_ticks(level: u8) -> u16 {
    10 * svr4::quantum_ticks(level)
}

#[derive(Clone, Debug)]
struct Task {
    level: u8,
    ticks_left: u16,
}

/// The scheduler of one CPU.
#[derive(Clone, Debug)]
pub struct Feedback {
    tasks: Vec<Task>,
    queue: Levels,
    /// Someone of a higher level has come; the next tick has it run.
    looks: bool,
    /// A task has come to the head of the highest level since the running one was picked.
    front_came: bool,
    /// A task that is preempted goes behind its equals; else before them.
    pub preempts_to_back: bool,
    /// A task that comes to the head of the highest level preempts a running one of that level too.
    pub front_preempts: bool,
    /// A boost leaves what is left of the quantum; else a quantum of the highest level begins with it.
    pub boosts_keep_quantum: bool,
}

impl Feedback {
    /// Of a CPU with this many slots.
    pub fn new(slots: usize) -> Self {
        let task = Task { level: TOP, ticks_left: quantum_ticks(TOP) };
        Feedback {
            tasks: vec![task; slots],
            queue: Levels::default(),
            looks: false,
            front_came: false,
            preempts_to_back: false,
            front_preempts: false,
            boosts_keep_quantum: false,
        }
    }

    fn set(&mut self, slot: Slot, level: u8) {
        self.tasks[slot as usize] = Task { level, ticks_left: quantum_ticks(level) };
    }

    /// Somebody else comes to `slot`, which nobody had: he starts on the highest level.
    pub fn reset(&mut self, slot: Slot) {
        self.set(slot, TOP);
    }

    /// What is left of the quantum of `slot`, in ns.
    pub fn rest_ns(&self, slot: Slot) -> u64 {
        u64::from(self.tasks[slot as usize].ticks_left) * TICK_NS
    }

    /// `slot`, which runs, goes to the level below that of the lowest in the queue, if there is one: what a yield does
    /// (2.4.2).
    pub fn drop_below_all(&mut self, slot: Slot) {
        if let Some(lowest) = self.queue.bottom() {
            self.set(slot, lowest.saturating_sub(1));
        }
    }

    /// Puts `slot` on the highest level, and at its head if it waits for the CPU: what a boost does (2.4.3, 2.4.4).
    pub fn boost(&mut self, slot: Slot) {
        if self.boosts_keep_quantum {
            self.tasks[slot as usize].level = TOP;
        } else {
            self.set(slot, TOP);
        }
        if self.queue.remove(slot) {
            self.queue.push_front(TOP, slot);
            self.front_came = true;
        }
    }
}

impl LocalScheduler for Feedback {
    fn tick_ns(&self) -> u64 {
        TICK_NS
    }

    fn arrive(&mut self, slot: Slot) {
        self.queue.push_back(self.tasks[slot as usize].level, slot);
    }

    fn sleep(&mut self, _slot: Slot) {}

    fn wake(&mut self, slot: Slot, _urgent: bool) {
        self.set(slot, TOP);
        self.queue.push_front(TOP, slot);
        self.front_came = true;
    }

    fn unblock(&mut self, slot: Slot) {
        self.preempt(slot);
    }

    fn preempt(&mut self, slot: Slot) {
        let first = if self.front_preempts && self.front_came { self.queue.pop() } else { None };
        let level = self.tasks[slot as usize].level;
        if self.preempts_to_back {
            self.queue.push_back(level, slot);
        } else {
            self.queue.push_front(level, slot);
        }
        if let Some(first) = first {
            self.queue.push_front(self.tasks[first as usize].level, first);
        }
    }

    fn expire(&mut self, slot: Slot) {
        let level = self.tasks[slot as usize].level.saturating_sub(1);
        self.set(slot, level);
        self.queue.push_back(level, slot);
    }

    fn pick(&mut self) -> Option<Slot> {
        self.looks = false;
        self.front_came = false;
        self.queue.pop()
    }

    fn outranks(&self, running: Slot) -> bool {
        self.looks
            && (self.front_preempts && self.front_came
                || self.queue.top().is_some_and(|top| top > self.tasks[running as usize].level))
    }

    fn tick(&mut self, running: Slot) -> bool {
        self.looks = true;
        let left = &mut self.tasks[running as usize].ticks_left;
        *left = left.saturating_sub(1);
        *left == 0
    }

    fn update(&mut self, _running: Option<Slot>) {
        for slot in 0..self.tasks.len() as Slot {
            self.set(slot, TOP);
            if self.queue.remove(slot) {
                self.queue.push_back(TOP, slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wakes_is_first_but_not_before_the_next_millisecond() {
        let mut local = Feedback::new(3);
        (0..3).for_each(|slot| local.arrive(slot));
        assert_eq!(local.pick(), Some(0));
        assert_eq!((1..).find(|_| local.tick(0)), Some(20));
        local.expire(0);
        assert_eq!((local.tasks[0].level, local.pick()), (58, Some(1)));
        local.sleep(1);
        assert_eq!(local.pick(), Some(2));
        assert_eq!((1..).find(|_| local.tick(2)), Some(20));
        local.expire(2);
        assert_eq!(local.pick(), Some(0));
        local.wake(1, false);
        assert!(!local.outranks(0));
        assert!(!local.tick(0) && local.outranks(0));
        local.preempt(0);
        assert_eq!(local.pick(), Some(1));
    }

    #[test]
    fn a_preempted_task_stays_before_its_equals_or_goes_behind_them() {
        for (to_back, next) in [(false, 0), (true, 2)] {
            let mut local = Feedback::new(3);
            local.preempts_to_back = to_back;
            (0..3).for_each(|slot| local.arrive(slot));
            assert_eq!(local.pick(), Some(0));
            local.preempt(0);
            local.boost(1);
            assert_eq!((local.pick(), local.pick()), (Some(1), Some(next)), "{to_back}");
        }
    }

    #[test]
    fn a_boost_begins_a_quantum_or_leaves_the_old_one() {
        for (keeps, left) in [(false, 20), (true, 15)] {
            let mut local = Feedback::new(2);
            local.boosts_keep_quantum = keeps;
            (0..2).for_each(|slot| local.arrive(slot));
            assert_eq!(local.pick(), Some(0));
            (0..5).for_each(|_| assert!(!local.tick(0)));
            local.preempt(0);
            local.boost(0);
            assert_eq!((local.tasks[0].ticks_left, local.pick()), (left, Some(0)), "{keeps}");
        }
    }

    #[test]
    fn a_second_makes_all_equal() {
        let mut local = Feedback::new(2);
        (0..2).for_each(|slot| local.arrive(slot));
        for _ in 0..200 {
            let slot = local.pick().unwrap();
            local.expire(slot);
        }
        assert_eq!(local.tasks[0].level, 0);
        local.update(None);
        assert!(local.tasks.iter().all(|task| (task.level, task.ticks_left) == (59, 20)));
    }
}
