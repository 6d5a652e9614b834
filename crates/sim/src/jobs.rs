// SPDX-License-Identifier: GPL-2.0-only
//! What each process of a job does, one step after the other.
//!
//! Bulk-synchronous jobs (Dusseau 3.1, Figure 1): A process computes for a time from g - v/2 to g + v/2, all alike,
//! waits at the opening barrier for all others, reads from some of them with a little computation c before each read,
//! and waits at the closing barrier, also after c; then it begins again. The pattern BARRIER has the opening barrier
//! only.
//!
//! Jobs that communicate all the time (Arpaci-Dusseau 5.2): a process computes for c, reads from any other, and so on
//! until it has computed for C, which here is g; then it waits at a barrier for all others, and begins again.

use std::fmt;
use std::str::FromStr;

use crate::policy::WaitFor;
use crate::random::Random;

/// From whom a process reads in the communication phase (Dusseau 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// From nobody.
    Barrier,
    /// From its four neighbours on a torus as near to a square as the number of processes allows.
    News,
    /// From each, itself included: from (p + i) mod P in the i-th of P reads.
    Transpose,
    /// From one of the others, all alike, after each c of computation: not in phases, so no pattern of `sim bsp`.
    Continuous,
}

const PATTERNS: [(Pattern, &str); 3] =
    [(Pattern::Barrier, "barrier"), (Pattern::News, "news"), (Pattern::Transpose, "transpose")];

impl FromStr for Pattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = PATTERNS.iter().find(|(_, name)| *name == text);
        let known = PATTERNS.map(|(_, name)| name).join(", ");
        found.map(|(pattern, _)| *pattern).ok_or_else(|| format!("unknown pattern '{text}' (known: {known})"))
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(PATTERNS.iter().find(|(pattern, _)| pattern == self).map_or("continuous", |(_, name)| name))
    }
}

/// What all processes of a job run.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Who reads from whom.
    pub pattern: Pattern,
    /// P, how many processes there are.
    pub processes: u32,
    /// g, the mean computation between communication phases, in ns; of continuous jobs C, all computation between
    /// barriers.
    pub granularity_ns: u64,
    /// v, by how much that differs from process to process and time to time, in ns; at most 2 g.
    pub imbalance_ns: u64,
    /// c, the computation before each event of the communication phase, in ns; of continuous jobs before each read, and
    /// above 0.
    pub gap_ns: u64,
    /// How often all this is done.
    pub iterations: u32,
}

/// What a process does just now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Computes, up to the opening barrier.
    Compute,
    /// Computes for c, before the read with this number or the closing barrier.
    Gap(u32),
    /// Waits.
    Wait(WaitFor, u32),
    /// Has done all its iterations.
    Done,
}

impl Program {
    /// Reads in an iteration.
    #[inline]
    pub fn reads(&self) -> u32 {
        match self.pattern {
            Pattern::Barrier => 0,
            Pattern::News => 4,
            Pattern::Transpose => self.processes,
            Pattern::Continuous => (self.granularity_ns / self.gap_ns.max(1)).clamp(1, u64::from(u32::MAX)) as u32,
        }
    }

    /// What comes after `step`, in an iteration that has not been the last one yet.
    #[inline]
    pub fn next(&self, step: Step) -> Step {
        if self.pattern == Pattern::Continuous {
            return self.next_continuous(step);
        }
        match step {
            Step::Compute => Step::Wait(WaitFor::OpeningBarrier, 0),
            Step::Wait(WaitFor::OpeningBarrier, _) if self.reads() > 0 => Step::Gap(0),
            Step::Gap(read) if read < self.reads() => Step::Wait(WaitFor::Read, read),
            Step::Gap(_) => Step::Wait(WaitFor::ClosingBarrier, 0),
            Step::Wait(WaitFor::Read, read) => Step::Gap(read + 1),
            Step::Wait(..) | Step::Done => Step::Compute,
        }
    }

    #[inline]
    fn next_continuous(&self, step: Step) -> Step {
        match step {
            Step::Compute => Step::Wait(WaitFor::Read, 0),
            Step::Gap(read) => Step::Wait(WaitFor::Read, read),
            Step::Wait(WaitFor::Read, read) if read + 1 < self.reads() => Step::Gap(read + 1),
            Step::Wait(WaitFor::Read, _) => Step::Wait(WaitFor::OpeningBarrier, 0),
            Step::Wait(..) | Step::Done => Step::Compute,
        }
    }

    /// How long the next computation takes, in ns.
    #[inline]
    pub fn compute_ns(&self, random: &mut Random) -> u64 {
        if self.pattern == Pattern::Continuous {
            return self.gap_ns;
        }
        if self.imbalance_ns == 0 {
            return self.granularity_ns;
        }
        self.granularity_ns - self.imbalance_ns / 2 + random.below(self.imbalance_ns + 1)
    }

    /// From whom the process `rank` reads in its read number `read`; `random` is its own.
    #[inline]
    pub fn source(&self, rank: u32, read: u32, random: &mut Random) -> u32 {
        let n = self.processes;
        match self.pattern {
            Pattern::Transpose => return (rank + read + 1) % n,
            Pattern::Continuous if n == 1 => return rank,
            Pattern::Continuous => return (rank + 1 + random.below(u64::from(n - 1)) as u32) % n,
            Pattern::Barrier | Pattern::News => {}
        }
        neighbour(rank, n, read)
    }

    /// How long an iteration takes when all processes run and messages take `latency_ns`, in the mean: the slowest of P
    /// that are uniform in v is P / (P + 1) of v above the fastest.
    pub fn iteration_ns(&self, latency_ns: u64) -> f64 {
        let processes = f64::from(self.processes);
        let imbalance = self.imbalance_ns as f64 * (processes / (processes + 1.0) - 0.5);
        let round_trip = 2.0 * latency_ns as f64;
        let reads = f64::from(self.reads());
        if self.pattern == Pattern::Continuous {
            return reads * (self.gap_ns as f64 + round_trip) + round_trip;
        }
        let phase = if reads > 0.0 { (reads + 1.0) * (self.gap_ns as f64 + round_trip) } else { 0.0 };
        self.granularity_ns as f64 + imbalance + round_trip + phase
    }
}

/// North, east, west or south of the process `rank` in a torus of `n`, by the number of the read. The longer side of the
/// torus is its width: the other is the largest divisor of `n` that is not above its root.
#[inline]
pub fn neighbour(rank: u32, n: u32, read: u32) -> u32 {
    let height = (1..=n.isqrt()).rev().find(|side| n.is_multiple_of(*side)).unwrap_or(1);
    let width = n / height;
    let (row, column) = (rank / width, rank % width);
    match read {
        0 => (row + height - 1) % height * width + column,
        1 => row * width + (column + 1) % width,
        2 => row * width + (column + width - 1) % width,
        _ => (row + 1) % height * width + column,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(pattern: Pattern, processes: u32) -> Program {
        let (granularity_ns, imbalance_ns) = (100_000, 150_000);
        Program { pattern, processes, granularity_ns, imbalance_ns, gap_ns: 8000, iterations: 1 }
    }

    fn source(program: &Program, rank: u32, read: u32) -> u32 {
        program.source(rank, read, &mut Random::new(1, 1))
    }

    #[test]
    fn neighbours_are_each_others_neighbours() {
        for processes in [1, 2, 7, 12, 32, 64, 100] {
            let news = program(Pattern::News, processes);
            for rank in 0..processes {
                for (read, back) in [(0, 3), (1, 2)] {
                    assert_eq!(source(&news, source(&news, rank, read), back), rank, "{processes} {rank} {read}");
                }
            }
        }
        // 32 is 4 rows of 8.
        let news = program(Pattern::News, 32);
        assert_eq!([0, 1, 2, 3].map(|read| source(&news, 9, read)), [1, 10, 8, 17]);
        assert_eq!([0, 1, 2, 3].map(|read| source(&news, 0, read)), [24, 1, 7, 8]);
    }

    #[test]
    fn transpose_reads_from_each_once() {
        let transpose = program(Pattern::Transpose, 5);
        let mut sources: Vec<u32> = (0..5).map(|read| source(&transpose, 3, read)).collect();
        assert_eq!(sources, [4, 0, 1, 2, 3]);
        sources.sort_unstable();
        assert_eq!(sources, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn steps_come_round() {
        let steps = |pattern| {
            let program = program(pattern, 2);
            std::iter::successors(Some(Step::Compute), |&step| Some(program.next(step)))
                .skip(1)
                .take_while(|&step| step != Step::Compute)
                .count()
        };
        assert_eq!([steps(Pattern::Barrier), steps(Pattern::News), steps(Pattern::Transpose)], [1, 11, 7]);
        // g = 100 us is 12 times 8 us: as many reads with a gap between each two of them, and the barrier.
        assert_eq!(steps(Pattern::Continuous), 12 + 11 + 1);
    }

    #[test]
    fn who_communicates_all_the_time_reads_from_all_others_alike() {
        let continuous = program(Pattern::Continuous, 5);
        let mut random = Random::new(1, 1);
        let mut counts = [0; 5];
        (0..40_000).for_each(|read| counts[continuous.source(2, read, &mut random) as usize] += 1);
        assert_eq!(counts[2], 0, "{counts:?}");
        let far = |count: i32| (count - 10_000).abs() > 5 * 87;
        assert!(![0, 1, 3, 4].iter().any(|&rank| far(counts[rank])), "{counts:?}");
        assert_eq!(program(Pattern::Continuous, 1).source(0, 7, &mut random), 0);
    }

    #[test]
    fn computation_is_uniform_about_its_mean() {
        let program = program(Pattern::Barrier, 2);
        let mut random = Random::new(1, 1);
        let times: Vec<u64> = (0..100_000).map(|_| program.compute_ns(&mut random)).collect();
        assert!(times.iter().all(|time| (25_000..=175_000).contains(time)));
        let mean = times.iter().sum::<u64>() as f64 / 1e5;
        assert!((mean - 100_000.0).abs() < 5.0 * 150_000.0 / 12f64.sqrt() / 1e5f64.sqrt(), "{mean}");
    }
}
