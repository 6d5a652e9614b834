// SPDX-License-Identifier: GPL-2.0-only
//! A CPU: it idles, switches to a task or runs one, and its local scheduler says to which.
//!
//! A switch takes its time, cannot be cut short, and is due whenever the task that comes is not the one whose context
//! is loaded. So a task that slept while the CPU idled goes on at once (unless a model has a wake-up take a switch),
//! and who becomes urgent during a switch waits for it and for another one (Dusseau, Figure 7).

use crate::engine::NEVER_NS;
use crate::local::{LocalScheduler, Slot};

/// What a CPU does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing.
    Idle,
    /// Switches to a task.
    Switching(Slot),
    /// Runs a task.
    Running(Slot),
}

/// What a CPU's time goes to: the five parts of Dusseau's Figure 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    /// Computes.
    Compute,
    /// Spins for the answer to a read.
    Communicate,
    /// Spins at a barrier.
    Synchronize,
    /// Switches.
    Switch,
    /// Has nobody to run.
    Idle,
}

/// How many uses there are.
pub const USES: usize = 5;

/// A CPU with its local scheduler.
#[derive(Clone, Debug)]
pub struct Node<S> {
    /// Whose turn it is.
    pub local: S,
    /// What it does.
    pub mode: Mode,
    /// When what it does is over, in ns.
    pub until_ns: u64,
    /// Which of its timers counts: each new one makes those before it void.
    pub timer: u32,
    /// Whose context is loaded.
    loaded: Option<Slot>,
    /// From when on it has not been counted, and for what it is used since.
    since_ns: u64,
    used_for: Use,
    used_ns: [u64; USES],
    charged_ns: u64,
}

impl<S: LocalScheduler> Node<S> {
    /// An idle CPU.
    pub fn new(local: S) -> Self {
        Node {
            local,
            mode: Mode::Idle,
            until_ns: NEVER_NS,
            timer: 0,
            loaded: None,
            since_ns: 0,
            used_for: Use::Idle,
            used_ns: [0; USES],
            charged_ns: 0,
        }
    }

    /// From now on it is used for this.
    #[inline]
    pub fn use_for(&mut self, used_for: Use, now_ns: u64) {
        self.used_ns[self.used_for as usize] += now_ns - self.since_ns;
        (self.since_ns, self.used_for) = (now_ns, used_for);
    }

    /// What its time went to until now, in ns, in the order of [`Use`].
    pub fn used_ns(&mut self, now_ns: u64) -> [u64; USES] {
        self.use_for(self.used_for, now_ns);
        self.used_ns
    }

    /// What it does is over at `until_ns`. Returns the number of the timer that counts.
    #[inline]
    pub fn set_timer(&mut self, until_ns: u64) -> u32 {
        self.timer = self.timer.wrapping_add(1);
        self.until_ns = until_ns;
        self.timer
    }

    /// Takes the next task from the local scheduler. If it has to be switched to, which takes `switch_ns`, returns the
    /// timer for that; else it runs, or the CPU idles.
    pub fn take_next(&mut self, now_ns: u64, switch_ns: u64) -> Option<u32> {
        let Some(slot) = self.local.pick() else {
            self.idle(now_ns);
            return None;
        };
        if self.loaded == Some(slot) {
            self.begin(slot, now_ns);
            return None;
        }
        Some(self.switch_to(slot, now_ns, switch_ns))
    }

    /// Does nothing from now on.
    pub fn idle(&mut self, now_ns: u64) {
        self.mode = Mode::Idle;
        self.set_timer(NEVER_NS);
        self.use_for(Use::Idle, now_ns);
    }

    /// Switches to `slot` for `switch_ns` from now on. Returns the timer for that.
    pub fn switch_to(&mut self, slot: Slot, now_ns: u64, switch_ns: u64) -> u32 {
        self.loaded = Some(slot);
        self.mode = Mode::Switching(slot);
        self.use_for(Use::Switch, now_ns);
        self.set_timer(now_ns + switch_ns)
    }

    /// Whose context is loaded: that of the task that runs, or ran last.
    pub fn loaded(&self) -> Option<Slot> {
        self.loaded
    }

    /// The task that it was switched to last is there no more.
    pub fn loaded_goes(&mut self) {
        self.loaded = None;
    }

    /// Since when it switches, in ns, if it does.
    pub fn switching_since_ns(&self) -> u64 {
        self.since_ns
    }

    /// Runs `slot` from now on.
    pub fn begin(&mut self, slot: Slot, now_ns: u64) {
        self.mode = Mode::Running(slot);
        self.charged_ns = now_ns;
    }

    /// Charges the running task for what it has run. Returns that, in ns.
    pub fn charge(&mut self, now_ns: u64) -> u64 {
        let Mode::Running(slot) = self.mode else { return 0 };
        let ran_ns = now_ns - self.charged_ns;
        self.local.charge(slot, ran_ns);
        self.charged_ns = now_ns;
        ran_ns
    }
}
