// SPDX-License-Identifier: GPL-2.0-only
//! CPU work of a known length.
//!
//! It is a loop that was calibrated, and not one that looks at a clock until its time is over: that would be
//! a system call every few µs, and it would do less on a machine that somebody else slows down.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};

use crate::interval::thread_cpu_ns;

/// Rounds of a sample: long against reading the clock, short against whatever disturbs it.
const SAMPLE_ROUNDS: u64 = 1 << 15;
const SAMPLES: usize = 100;

/// A chain of multiplications, which neither a compiler nor a CPU can shorten.
pub fn compute(rounds: u64) {
    let mut x = 1u64;
    for _ in 0..rounds {
        x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
    }
}

/// An amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    rounds: u64,
}

impl Work {
    /// What takes so much CPU time when nothing disturbs it. Disturbance only ever adds time, so the fastest of
    /// some samples tells how long a round is.
    pub fn lasting(length: Duration) -> Result<Work> {
        if length.is_zero() {
            return Ok(Work { rounds: 0 });
        }
        let fastest_ns = (0..SAMPLES).map(|_| sample_ns()).min().unwrap_or(0);
        ensure!(fastest_ns > 0, "this kernel's clock of CPU time is too coarse for --compute-us");
        Ok(Work::of(length, fastest_ns))
    }

    fn of(length: Duration, sample_ns: u64) -> Work {
        let rounds = length.as_nanos() * u128::from(SAMPLE_ROUNDS) / u128::from(sample_ns);
        Work { rounds: rounds as u64 }
    }

    /// How many loops of so many rounds it is, and at least one.
    pub fn loops_of(self, rounds: u64) -> u64 {
        (self.rounds / rounds).max(1)
    }

    /// What takes `part` of the time, if this takes `whole`.
    pub fn part(self, part: Duration, whole: Duration) -> Work {
        let rounds = u128::from(self.rounds) * part.as_nanos() / whole.as_nanos().max(1);
        Work { rounds: rounds as u64 }
    }

    pub fn run(self) {
        compute(self.rounds);
    }
}

fn sample_ns() -> u64 {
    let before_ns = thread_cpu_ns();
    compute(SAMPLE_ROUNDS);
    thread_cpu_ns().saturating_sub(before_ns)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_as_many_rounds_as_fit() {
        let us = Duration::from_micros;
        assert_eq!(Work::of(us(200), 100_000).rounds, 2 * SAMPLE_ROUNDS);
        assert_eq!(Work::of(us(50), 100_000).rounds, SAMPLE_ROUNDS / 2);
        assert_eq!(Work::of(us(0), 100_000).rounds, 0);
        assert_eq!(Work::of(us(100), 100_000).part(us(25), us(100)).rounds, SAMPLE_ROUNDS / 4);
        assert_eq!(
            [1, SAMPLE_ROUNDS, u64::MAX].map(|rounds| Work::of(us(200), 100_000).loops_of(rounds)),
            [1 << 16, 2, 1]
        );
    }

    #[test]
    fn no_length_is_no_work() {
        assert_eq!(Work::lasting(Duration::ZERO).unwrap().rounds, 0);
        assert!(Work::lasting(Duration::from_micros(100)).unwrap().rounds > 0);
    }
}
