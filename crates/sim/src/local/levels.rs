// SPDX-License-Identifier: GPL-2.0-only
//! Tasks in the order of their levels, and within a level in the order of their turns.

use super::Slot;

/// Above all levels of users: a task that handles a message in the kernel.
pub const KERNEL: u8 = 60;

/// A queue with levels. A CPU has a handful of tasks, so it is one short list, first to last.
#[derive(Clone, Debug, Default)]
pub struct Levels(Vec<(u8, Slot)>);

impl Levels {
    /// Behind all of its level.
    pub fn push_back(&mut self, level: u8, slot: Slot) {
        let place = self.0.iter().position(|&(other, _)| other < level).unwrap_or(self.0.len());
        self.0.insert(place, (level, slot));
    }

    /// Before all of its level.
    pub fn push_front(&mut self, level: u8, slot: Slot) {
        let place = self.0.iter().position(|&(other, _)| other <= level).unwrap_or(self.0.len());
        self.0.insert(place, (level, slot));
    }

    /// Takes the first.
    pub fn pop(&mut self) -> Option<Slot> {
        if self.0.is_empty() { None } else { Some(self.0.remove(0).1) }
    }

    /// The level of the first.
    pub fn top(&self) -> Option<u8> {
        self.0.first().map(|&(level, _)| level)
    }

    /// The level of the last.
    pub fn bottom(&self) -> Option<u8> {
        self.0.last().map(|&(level, _)| level)
    }

    /// Takes `slot` out, if it is there.
    pub fn remove(&mut self, slot: Slot) -> bool {
        let place = self.0.iter().position(|&(_, other)| other == slot);
        place.map(|place| self.0.remove(place)).is_some()
    }
}
