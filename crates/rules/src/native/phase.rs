// SPDX-License-Identifier: GPL-2.0-only
//! The life of a demand, as native functions (`policies/phase.h`).

use crate::intf;

/// Where a task stands, and whether a message is a demand to run it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Phase {
    /// Not runnable, or set aside.
    Blocked,
    /// Waits for its turn in the fair order.
    Waits,
    /// The same, and the gate is asked again.
    Asks,
    /// Waits to be taken first.
    Granted,
    /// Polls in vain, and waits for a message.
    Parked,
    /// On a CPU.
    Runs,
}

impl Phase {
    /// All of them, in the order of their numbers.
    pub const ALL: [Phase; intf::cosched_phase_NR_PHASES as usize] =
        [Phase::Blocked, Phase::Waits, Phase::Asks, Phase::Granted, Phase::Parked, Phase::Runs];

    /// The phase of this number. Panics if there is none.
    pub fn of(number: u32) -> Phase {
        Phase::ALL[number as usize]
    }
}

/// What the gate says of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Answer {
    /// The policy boosts nobody for a message.
    NotAsked,
    /// Not now.
    Denied,
    /// A boost.
    Given,
}

/// A message has come for a task.
pub fn phase_message(phase: Phase, answer: Answer) -> Phase {
    // SAFETY: takes and returns numbers.
    Phase::of(unsafe { intf::phase_message(phase as u32, answer as u32) })
}

/// It comes to a queue.
pub fn phase_queued(phase: Phase) -> Phase {
    // SAFETY: as above.
    Phase::of(unsafe { intf::phase_queued(phase as u32) })
}

/// It is to be parked.
pub fn phase_parks(phase: Phase) -> Phase {
    // SAFETY: as above.
    Phase::of(unsafe { intf::phase_parks(phase as u32) })
}

/// It has nothing to ask for any more, or is to look again by itself.
pub fn phase_calms(phase: Phase) -> Phase {
    // SAFETY: as above.
    Phase::of(unsafe { intf::phase_calms(phase as u32) })
}

/// It leaves its CPU and is runnable, with a rest of a boost or not.
pub fn phase_stops(phase: Phase, rest: bool) -> Phase {
    // SAFETY: as above.
    Phase::of(unsafe { intf::phase_stops(phase as u32, i32::from(rest)) })
}
