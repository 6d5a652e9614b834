// SPDX-License-Identifier: GPL-2.0-only
//! The time-sharing class of System V Release 4 as Solaris has it: 60 levels, of which the higher have shorter quanta.
//!
//! A task that uses up its quantum falls by ten levels; one that sleeps returns to the fifties; and once a second one
//! that has not used up a quantum since the last second rises there too. The table is the one that Solaris 2.4 comes
//! with (its System Administration Guide, "Timesharing Parameter Table"), which Dusseau's simulator copied (3.3).
//! Quanta are counted in ticks of 10 ms, of whoever the tick finds on the CPU.
//!
//! Where a task goes that has slept is a reading ([`Svr4::by_tick`]): the class of Solaris puts a task that left the
//! CPU in the present tick before its equals and any other behind them (`ts_setrun()`, `ts_wakeup()` and `t_disp_time`
//! in illumos).
//!
//! Round robin is the same class with a table of one level and one quantum (Dusseau 7.2). There a task that returns
//! from sleep is drawn before no other, unless by the tick.

use super::levels::{KERNEL, Levels};
use super::{LocalScheduler, Slot};

const TICK_NS: u64 = 10_000_000;
/// Where a task of the class starts that nobody has given another level.
const FIRST_LEVEL: u8 = 29;

/// A row of the table: all that happens at a level.
#[derive(Clone, Debug)]
struct Row {
    /// How long a quantum is, in ticks.
    quantum: u16,
    /// Where a task goes whose quantum is over,
    expired: u8,
    /// that returns from sleep,
    slept: u8,
    /// and that a second's update finds with an unfinished quantum; the highest level keeps its tasks.
    waited: u8,
}

/// How long a quantum is on `level`, in ticks of 10 ms.
pub(super) const fn quantum_ticks(level: u8) -> u16 {
    match level {
        0..=9 => 20,
        10..=19 => 16,
        20..=29 => 12,
        30..=39 => 8,
        40..=58 => 4,
        _ => 2,
    }
}

const fn row(level: u8) -> Row {
    let slept = match level {
        0..=34 => 50 + level / 10,
        35..=39 => 54,
        40..=44 => 55,
        45..=47 => level + 11,
        48..=58 => 58,
        _ => 59,
    };
    let waited = if level >= 49 { 59 } else { slept };
    Row { quantum: quantum_ticks(level), expired: level.saturating_sub(10), slept, waited }
}

const TABLE: [Row; 60] = {
    let mut table = [const { row(0) }; 60];
    let mut level = 0;
    while level < 60 {
        table[level] = row(level as u8);
        level += 1;
    }
    table
};

#[derive(Clone, Debug)]
struct Task {
    level: u8,
    in_kernel: bool,
    ticks_left: u16,
    /// The tick in which it left the CPU to sleep.
    left_in: u32,
}

/// The scheduler of one CPU.
#[derive(Clone, Debug)]
pub struct Svr4 {
    tasks: Vec<Task>,
    queue: Levels,
    /// How often the clock has ticked, from 1 on: no task has slept in tick 0.
    now: u32,
    /// Whether a task that left the CPU in the present tick comes back before its equals.
    by_tick: bool,
    /// Round robin: the only row of its table.
    only: Option<Row>,
}

impl Svr4 {
    /// Of a CPU with this many slots.
    pub fn new(slots: usize) -> Self {
        Svr4::with(slots, FIRST_LEVEL, None)
    }

    /// The same with one level and this quantum, rounded up to ticks.
    pub fn round_robin(slots: usize, quantum_ns: u64) -> Self {
        let quantum = quantum_ns.div_ceil(TICK_NS).clamp(1, u64::from(u16::MAX)) as u16;
        Svr4::with(slots, 0, Some(Row { quantum, expired: 0, slept: 0, waited: 0 }))
    }

    fn with(slots: usize, level: u8, only: Option<Row>) -> Self {
        let mut svr4 = Svr4 { tasks: Vec::new(), queue: Levels::default(), now: 1, by_tick: false, only };
        let ticks_left = svr4.row(level).quantum;
        svr4.tasks = vec![Task { level, in_kernel: false, ticks_left, left_in: 0 }; slots];
        svr4
    }

    /// The same with `by_tick` said: whether a task that left the CPU in the present tick comes back before its equals.
    pub fn by_tick(self, by_tick: bool) -> Self {
        Svr4 { by_tick, ..self }
    }

    fn row(&self, level: u8) -> &Row {
        self.only.as_ref().unwrap_or(&TABLE[level as usize])
    }

    fn level(&self, slot: Slot) -> u8 {
        let task = &self.tasks[slot as usize];
        if task.in_kernel { KERNEL } else { task.level }
    }

    fn begin_quantum(&mut self, slot: Slot, level: u8) {
        let ticks_left = self.row(level).quantum;
        let task = &mut self.tasks[slot as usize];
        (task.level, task.ticks_left) = (level, ticks_left);
    }

    /// `slot`, which has slept, is queued with a user's level.
    fn return_from_sleep(&mut self, slot: Slot) {
        let slept = self.row(self.tasks[slot as usize].level).slept;
        self.begin_quantum(slot, slept);
        if self.by_tick && self.tasks[slot as usize].left_in == self.now {
            self.queue.push_front(slept, slot);
        } else {
            self.queue.push_back(slept, slot);
        }
    }
}

impl LocalScheduler for Svr4 {
    fn tick_ns(&self) -> u64 {
        TICK_NS
    }

    fn arrive(&mut self, slot: Slot) {
        self.queue.push_back(self.level(slot), slot);
    }

    fn clock_ticks(&mut self) {
        self.now = self.now.wrapping_add(1);
    }

    fn sleep(&mut self, slot: Slot) {
        let task = &mut self.tasks[slot as usize];
        (task.in_kernel, task.left_in) = (false, self.now);
    }

    fn wake(&mut self, slot: Slot, urgent: bool) {
        if urgent {
            self.tasks[slot as usize].in_kernel = true;
            self.queue.push_back(KERNEL, slot);
        } else {
            self.return_from_sleep(slot);
        }
    }

    fn unblock(&mut self, slot: Slot) {
        if std::mem::take(&mut self.tasks[slot as usize].in_kernel) {
            self.return_from_sleep(slot);
        } else {
            self.preempt(slot);
        }
    }

    fn preempt(&mut self, slot: Slot) {
        self.queue.push_front(self.level(slot), slot);
    }

    fn expire(&mut self, slot: Slot) {
        let expired = self.row(self.tasks[slot as usize].level).expired;
        self.begin_quantum(slot, expired);
        self.queue.push_back(expired, slot);
    }

    fn pick(&mut self) -> Option<Slot> {
        self.queue.pop()
    }

    fn outranks(&self, running: Slot) -> bool {
        self.queue.top().is_some_and(|top| top > self.level(running))
    }

    fn tick(&mut self, running: Slot) -> bool {
        let task = &mut self.tasks[running as usize];
        if task.in_kernel {
            return false;
        }
        task.ticks_left = task.ticks_left.saturating_sub(1);
        task.ticks_left == 0
    }

    fn update(&mut self, _running: Option<Slot>) {
        for slot in 0..self.tasks.len() {
            let waited = self.row(self.tasks[slot].level).waited;
            if self.tasks[slot].level == waited {
                continue;
            }
            self.tasks[slot].level = waited;
            let level = self.level(slot as Slot);
            if self.queue.remove(slot as Slot) {
                self.queue.push_back(level, slot as Slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of the table as the guide prints it, in ms: level, quantum, expired, slept, waited.
    #[test]
    fn the_table_is_the_one_of_solaris() {
        for (level, quantum_ms, expired, slept, waited) in [
            (0, 200, 0, 50, 50),
            (9, 200, 0, 50, 50),
            (10, 160, 0, 51, 51),
            (29, 120, 19, 52, 52),
            (34, 80, 24, 53, 53),
            (35, 80, 25, 54, 54),
            (40, 40, 30, 55, 55),
            (45, 40, 35, 56, 56),
            (46, 40, 36, 57, 57),
            (47, 40, 37, 58, 58),
            (48, 40, 38, 58, 58),
            (49, 40, 39, 58, 59),
            (58, 40, 48, 58, 59),
            (59, 20, 49, 59, 59),
        ] {
            let row = row(level);
            let found = (u64::from(row.quantum) * TICK_NS / 1_000_000, row.expired, row.slept, row.waited);
            assert_eq!(found, (quantum_ms, expired, slept, waited), "level {level}");
        }
    }

    fn two() -> Svr4 {
        let mut svr4 = Svr4::new(2);
        svr4.arrive(0);
        svr4.arrive(1);
        svr4
    }

    #[test]
    fn a_quantum_of_level_29_is_twelve_ticks_and_then_comes_level_19() {
        let mut svr4 = two();
        assert_eq!(svr4.pick(), Some(0));
        let ticks = (1..).find(|_| svr4.tick(0)).unwrap();
        assert_eq!(ticks, 12);
        svr4.expire(0);
        assert_eq!((svr4.level(0), svr4.pick()), (19, Some(1)));
    }

    #[test]
    fn who_returns_from_sleep_comes_before_who_computes() {
        let mut svr4 = two();
        assert_eq!((svr4.pick(), svr4.pick()), (Some(0), Some(1)));
        svr4.sleep(0);
        svr4.wake(0, true);
        assert!(svr4.outranks(1));
        svr4.preempt(1);
        assert_eq!(svr4.pick(), Some(0));
        svr4.unblock(0);
        assert_eq!((svr4.level(0), svr4.pick()), (52, Some(0)));
    }

    #[test]
    fn a_second_lifts_whoever_has_not_used_up_a_quantum() {
        let mut svr4 = two();
        assert_eq!(svr4.pick(), Some(0));
        svr4.update(Some(0));
        assert_eq!((svr4.level(0), svr4.level(1)), (52, 52));
        svr4.expire(0);
        assert_eq!(svr4.level(0), 42);
        assert!(svr4.outranks(0) || svr4.pick() == Some(1));
    }

    #[test]
    fn a_sleeper_of_this_tick_comes_back_first_if_that_is_the_reading() {
        for (by_tick, ticks, next) in [(false, 0, 1), (true, 0, 0), (true, 1, 1)] {
            let mut svr4 = Svr4::new(2).by_tick(by_tick);
            svr4.arrive(0);
            svr4.arrive(1);
            assert_eq!((svr4.pick(), svr4.pick()), (Some(0), Some(1)));
            // Slot 1 waits on the level of tasks that have slept.
            for slot in [1, 0] {
                svr4.sleep(slot);
                (0..if slot == 0 { ticks } else { 0 }).for_each(|_| svr4.clock_ticks());
                svr4.wake(slot, true);
                assert_eq!(svr4.pick(), Some(slot));
                svr4.unblock(slot);
            }
            assert_eq!(svr4.pick(), Some(next), "{by_tick} {ticks}");
        }
    }

    #[test]
    fn under_round_robin_all_take_turns_of_a_quantum_and_nobody_who_wakes_comes_first() {
        let mut local = Svr4::round_robin(3, 25_000_000);
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
        local.update(None);
        assert_eq!([local.pick(), local.pick(), local.pick()], [Some(2), Some(0), Some(1)]);
    }
}
