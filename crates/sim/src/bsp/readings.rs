// SPDX-License-Identifier: GPL-2.0-only
//! Readings of what Dusseau 1996 leaves open, of which each holds for all cells of its figures or for none.

use std::fmt;
use std::str::FromStr;

use super::Setup;
use crate::readings;

/// A reading that holds or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reading {
    /// A process that left its CPU in the present tick comes back before its equals, as under Solaris; else all come
    /// back behind them.
    Tick,
    /// The shortest spin S is two switches and the round trip that a read takes (note 3); else two switches (6.1).
    RoundTrip,
}

/// In the order of [`Reading`].
const NAMES: [(Reading, &str); 2] = [(Reading::Tick, "tick"), (Reading::RoundTrip, "round-trip")];

/// Those that hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Readings {
    held: [bool; NAMES.len()],
}

impl Readings {
    /// No one holds.
    pub const NONE: Readings = Readings { held: [false; NAMES.len()] };
    /// All hold, which agrees best with the paper.
    pub const ALL: Readings = Readings { held: [true; NAMES.len()] };

    /// Whether this one holds.
    pub fn has(self, reading: Reading) -> bool {
        self.held[reading as usize]
    }

    /// All but this one.
    pub fn without(mut self, reading: Reading) -> Readings {
        self.held[reading as usize] = false;
        self
    }

    /// Has `setup` go by them.
    pub fn apply(self, setup: &mut Setup) {
        setup.by_tick = self.has(Reading::Tick);
        setup.costs.network_ns = if self.has(Reading::RoundTrip) { 2 * setup.costs.latency_ns } else { 0 };
    }
}

impl FromStr for Readings {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        readings::parse(&NAMES, text).map(|held| Readings { held })
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

    #[test]
    fn readings_are_named_and_nothing_else_is() {
        for (text, readings) in [("none", Readings::NONE), ("tick,round-trip", Readings::ALL)] {
            assert_eq!(text.parse(), Ok(readings));
            assert_eq!(readings.to_string(), text);
        }
        let tick: Readings = "tick".parse().unwrap();
        assert!(tick.has(Reading::Tick) && !tick.has(Reading::RoundTrip));
        for wrong in ["", "tick,", "none,tick", "ticks"] {
            assert!(wrong.parse::<Readings>().unwrap_err().contains("(known: tick, round-trip; or none)"), "{wrong}");
        }
    }
}
