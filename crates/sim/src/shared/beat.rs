// SPDX-License-Identifier: GPL-2.0-only
//! What a CPU knows of turns that all nodes draw alike (`policies/beat.h`).

use crate::random::Random;
use cosched_rules::intf::{self, cosched_beat_clock, cosched_beat_hold, cosched_beat_job, cosched_policy};
use cosched_rules::native;

/// Whether the arrival rule is this one.
pub fn is_beat(policy: &cosched_policy) -> bool {
    policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_BEAT
}

/// What a CPU knows.
#[derive(Clone, Debug)]
pub struct Beat {
    /// Its clock.
    pub(super) clock: cosched_beat_clock,
    /// By number. A job that has gone is as it was last.
    pub(super) jobs: Vec<cosched_beat_job>,
    /// Which has won this turn.
    pub(super) winner: Option<usize>,
    /// Which job holds the CPU.
    pub(super) hold: cosched_beat_hold,
    /// The turn that was drawn last.
    pub(super) turn: Option<u64>,
    /// When it ends, if the clock is not moved, in ns.
    pub(super) ends_ns: u64,
}

impl Beat {
    /// Of a CPU that has heard nothing, of jobs with these names.
    pub fn new(node: u32, names: &[u64]) -> Beat {
        let job = |&name: &u64| native::beat_job(name, u64::from(node), 0);
        Beat {
            clock: native::NEW_BEAT_CLOCK,
            jobs: names.iter().map(job).collect(),
            winner: None,
            hold: native::NEW_BEAT_HOLD,
            turn: None,
            ends_ns: 0,
        }
    }
}

/// The hashes of the jobs' names, in another run others.
pub fn names(jobs: u32, seed: u64) -> Vec<u64> {
    let mut random = Random::new(seed, u64::MAX - 4);
    (0..jobs).map(|_| random.number()).collect()
}
