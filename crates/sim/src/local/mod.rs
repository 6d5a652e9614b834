// SPDX-License-Identifier: GPL-2.0-only
//! Local schedulers: which of its tasks a CPU runs next when nothing else says so.
//!
//! Each CPU has one of its own, over the tasks in its slots. A scheduler keeps the tasks that are runnable and do not
//! run; the node tells it whatever happens to them, takes the next from it and asks it whether that should be now.

mod fair;
mod feedback;
mod levels;
mod svr4;

pub use fair::{EFFECTIVE, Fair, WEIGHT};
pub use feedback::Feedback;
pub use svr4::Svr4;

/// The place of a task on its CPU, from 0.
pub type Slot = u32;

/// The second of the time-sharing class's update and of Zhang's boost, in ns.
pub const UPDATE_NS: u64 = 1_000_000_000;

/// The order of the runnable tasks of one CPU.
pub trait LocalScheduler {
    /// How often [`tick`](Self::tick) is called, in ns.
    fn tick_ns(&self) -> u64;

    /// `slot` is new and runnable, last among its equals.
    fn arrive(&mut self, slot: Slot);

    /// `slot` runs no more: it sleeps, or is done.
    fn sleep(&mut self, slot: Slot);

    /// A message has come for `slot`, which slept: it is to run and handle it. `urgent`: before all others, which is
    /// the kernel's priority of Dusseau 3.3.
    fn wake(&mut self, slot: Slot, urgent: bool);

    /// `slot`, which was woken and runs, has got what it slept for: it goes on with a task's own priority. It is
    /// queued, and [`pick`](Self::pick) says who goes on.
    fn unblock(&mut self, slot: Slot);

    /// `slot` has to make way before its time is over: it is queued again.
    fn preempt(&mut self, slot: Slot);

    /// The quantum of `slot` is over, as [`tick`](Self::tick) has said: it is queued again, behind its equals.
    fn expire(&mut self, slot: Slot);

    /// `slot` has run for `ran_ns` since it was last charged.
    fn charge(&mut self, _slot: Slot, _ran_ns: u64) {}

    /// Takes the next task out of the queue; none if that is empty.
    fn pick(&mut self) -> Option<Slot>;

    /// Whether somebody in the queue should run instead of `running` now.
    fn outranks(&self, running: Slot) -> bool;

    /// The clock of the CPU has ticked, whatever the CPU does.
    fn clock_ticks(&mut self) {}

    /// A tick finds `running` on the CPU. True: its quantum is over.
    fn tick(&mut self, running: Slot) -> bool;

    /// Another second has passed, in which `running` is what runs now.
    fn update(&mut self, _running: Option<Slot>) {}
}
