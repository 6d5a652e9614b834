// SPDX-License-Identifier: GPL-2.0-only
//! Readings of what Zhang 2000 leaves open: one choice for all its figures and tables.

use std::fmt;
use std::str::FromStr;

use crate::readings;

/// A reading that holds or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A process computes a part of its iteration before each exchange; else all of it before the first (3.2).
    Apart,
    /// A process that is preempted goes behind the others of its level (2.3); else it stays before them.
    Back,
    /// Each block costs a switch (4.5), even if the CPU idles until the same process comes back.
    Block,
    /// A process sends all messages of an iteration before it receives the first (3.2); else it receives those of each
    /// exchange before it sends the next.
    Burst,
    /// The milliseconds and seconds of all nodes begin together; else each node has its own (2.3).
    Clocks,
    /// A process that comes to the head of the highest level runs at the next millisecond (2.4.3); else only if the
    /// running process has a lower level (2.3).
    Front,
    /// An idle CPU takes a process when its scheduler looks, at the next millisecond (3.1); else at once.
    Idle,
    /// A boost raises the level and leaves what is left of the quantum; else a quantum of the highest level begins.
    Keep,
    /// A job has its slots in one row if one has room for it, as under the gang (2.3); else on the emptiest nodes.
    Row,
    /// A process yields once in a wait and then "continues spinning" (2.4.2); else it yields after each spin time.
    YieldOnce,
}

/// In the order of [`Reading`].
const NAMES: [(Reading, &str); 10] = [
    (Reading::Apart, "apart"),
    (Reading::Back, "back"),
    (Reading::Block, "block"),
    (Reading::Burst, "burst"),
    (Reading::Clocks, "clocks"),
    (Reading::Front, "front"),
    (Reading::Idle, "idle"),
    (Reading::Keep, "keep"),
    (Reading::Row, "row"),
    (Reading::YieldOnce, "yield-once"),
];

/// Which readings hold, and the numbers by which the paper is read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readings {
    pub(super) held: [bool; NAMES.len()],
    /// Exchanges of messages in an iteration, from 1 on: how coarse the jobs are (3.2).
    pub exchanges: u32,
    /// For how much of its latency a message keeps the interface of its sender busy (3.1), 0 to 1.
    pub interface: f64,
    /// In every so many iterations there is I/O, from 1 on, for as long as in all of them together.
    pub io_every: u32,
}

impl Readings {
    /// No one holds.
    pub const NONE: Readings = Readings { held: [false; NAMES.len()], exchanges: 2, interface: 1.0, io_every: 1 };
    /// The choice that agrees best with the paper.
    pub const CHOSEN: Readings = Readings::NONE
        .with(Reading::Back)
        .with(Reading::Block)
        .with(Reading::Burst)
        .with(Reading::Idle)
        .with(Reading::YieldOnce);

    /// Whether this one holds.
    pub fn has(self, reading: Reading) -> bool {
        self.held[reading as usize]
    }

    /// These without one.
    #[must_use]
    pub const fn without(mut self, reading: Reading) -> Readings {
        self.held[reading as usize] = false;
        self
    }

    /// Whether a process sends all messages of an iteration before it receives the first. It cannot where it computes
    /// between them.
    pub(super) fn bursts(self) -> bool {
        self.has(Reading::Burst) && !self.has(Reading::Apart)
    }

    /// These and one more.
    #[must_use]
    pub const fn with(mut self, reading: Reading) -> Readings {
        self.held[reading as usize] = true;
        self
    }
}

impl FromStr for Readings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Readings { held: readings::parse(&NAMES, text)?, ..Readings::NONE })
    }
}

impl fmt::Display for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&readings::list(&NAMES, &self.held))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEFT_OUT: Readings = Readings::NONE.with(Reading::Apart).with(Reading::Keep).with(Reading::Row);

    #[test]
    fn readings_are_named_and_nothing_else_is() {
        for (text, readings) in [
            ("none", Readings::NONE),
            ("back,block,burst,idle,yield-once", Readings::CHOSEN),
            ("apart,keep,row", LEFT_OUT),
        ] {
            assert_eq!(text.parse(), Ok(readings));
            assert_eq!(readings.to_string(), text);
        }
        for text in ["", "all", "none,block", "Block", "block,"] {
            assert!(text.parse::<Readings>().is_err(), "{text}");
        }
    }
}
