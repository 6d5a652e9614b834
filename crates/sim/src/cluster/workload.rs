// SPDX-License-Identifier: GPL-2.0-only
//! Which jobs come, and when: Zhang's workloads (3.2, Table 2), with arrivals and execution times from hyper-Erlang
//! distributions of common order.
//!
//! The paper draws these from a characterization of a supercomputer at Livermore whose numbers are in another work.
//! Ours are [`ARRIVALS`], [`EXECUTIONS`] and [`SIZES`], once for all: a squared coefficient of variation of 3 for the
//! times between arrivals and of 1.76 for execution times, and sizes that are powers of two.

use std::fmt;
use std::str::FromStr;

use crate::random::Random;

/// What a job spends its time on when it has all its nodes for itself: shares that add up to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mix {
    /// Computing.
    pub compute: f64,
    /// Reading and writing, in which its processes sleep.
    pub io: f64,
    /// Messages to and from its neighbours.
    pub communication: f64,
}

const fn mix(compute: f64, io: f64, communication: f64) -> Mix {
    Mix { compute: compute / 100.0, io: io / 100.0, communication: communication / 100.0 }
}

/// The job types J1 to J6 of Table 2.
pub const TYPES: [Mix; 6] = [
    mix(35.0, 15.0, 50.0),
    mix(35.0, 50.0, 15.0),
    mix(35.0, 35.0, 30.0),
    mix(90.0, 5.0, 5.0),
    mix(35.0, 5.0, 60.0),
    mix(65.0, 5.0, 30.0),
];

/// A workload: the types of its jobs, all as likely.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Workload(u8);

impl Workload {
    /// WL`number`, from 1 to 8.
    pub const fn new(number: u8) -> Workload {
        assert!(number >= 1 && number <= 8, "there are eight");
        Workload(number)
    }

    /// The types of its jobs, by their places in [`TYPES`].
    pub fn types(self) -> &'static [usize] {
        const ALONE: [usize; 6] = [0, 1, 2, 3, 4, 5];
        match self.0 {
            7 => &ALONE,
            8 => &[1, 3, 4],
            number => std::slice::from_ref(&ALONE[number as usize - 1]),
        }
    }
}

impl FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_prefix("WL").filter(|number| number.len() == 1).and_then(|number| number.parse().ok());
        let known = number.filter(|number| (1..=8).contains(number));
        known.map(Workload).ok_or_else(|| format!("unknown workload '{text}' (known: WL1 to WL8)"))
    }
}

impl fmt::Display for Workload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("WL{}", self.0))
    }
}

/// A mixture of two Erlang distributions of the same order, with a mean of 1.
#[derive(Clone, Copy, Debug)]
pub struct HyperErlang {
    /// How many exponential times each is the sum of.
    pub order: u32,
    /// How likely each is.
    pub shares: [f64; 2],
    /// Their means.
    pub means: [f64; 2],
}

/// Times between arrivals.
pub const ARRIVALS: HyperErlang = HyperErlang { order: 1, shares: [0.8, 0.2], means: [0.5, 3.0] };
/// Execution times.
pub const EXECUTIONS: HyperErlang = HyperErlang { order: 2, shares: [0.7, 0.3], means: [0.4, 2.4] };
/// How many processes a job has, and how likely that is in %. What is more than there are nodes is drawn again.
pub const SIZES: [(u32, u32); 6] = [(1, 10), (2, 10), (4, 15), (8, 25), (16, 20), (32, 20)];

impl HyperErlang {
    /// One of them.
    pub fn draw(&self, random: &mut Random) -> f64 {
        let branch = usize::from(random.unit() > self.shares[0]);
        let sum: f64 = (0..self.order).map(|_| -random.unit().ln()).sum();
        sum * self.means[branch] / f64::from(self.order)
    }

    /// The variance over the square of the mean.
    pub fn squared_variation(&self) -> f64 {
        let moment = |power: i32| -> f64 { (0..2).map(|i| self.shares[i] * self.means[i].powi(power)).sum() };
        moment(2) * (1.0 + 1.0 / f64::from(self.order)) / moment(1).powi(2) - 1.0
    }
}

/// A job as it comes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct JobSpec {
    /// When, in ns.
    pub arrival_ns: u64,
    /// How many processes it has, each on a node of its own.
    pub size: u32,
    /// How long it takes with all its nodes for itself and without skew, in ns.
    pub execution_ns: u64,
    /// What it spends that on.
    pub mix: Mix,
}

/// A stream of jobs.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Of which types.
    pub workload: Workload,
    /// How many.
    pub jobs: u32,
    /// Their mean execution time, in ns.
    pub execution_ns: f64,
    /// What they ask for of what all nodes have, in the long run: nodes times execution time over that.
    pub load: f64,
    /// How many nodes there are.
    pub nodes: u32,
}

impl Stream {
    fn sizes(&self) -> impl Iterator<Item = (u32, u32)> {
        SIZES.into_iter().filter(|&(size, _)| size <= self.nodes)
    }

    /// How many processes a job has in the mean.
    pub fn mean_size(&self) -> f64 {
        let (sum, all) = self.sizes().fold((0, 0), |(sum, all), (size, share)| (sum + size * share, all + share));
        f64::from(sum) / f64::from(all)
    }

    /// The jobs, in the order in which they come. Whatever the load, the same seed draws the same but for the times.
    pub fn draw(&self, seed: u64) -> Vec<JobSpec> {
        let stream = |number: u64| Random::new(seed, u64::MAX - number);
        let (mut arrivals, mut executions, mut sizes, mut types) = (stream(0), stream(1), stream(2), stream(3));
        let between_ns = self.mean_size() * self.execution_ns / (self.load * f64::from(self.nodes));
        let mut now_ns = 0.0;
        let mut one = |_| {
            now_ns += ARRIVALS.draw(&mut arrivals) * between_ns;
            let known = self.workload.types();
            JobSpec {
                arrival_ns: now_ns as u64,
                size: self.size(&mut sizes),
                execution_ns: (EXECUTIONS.draw(&mut executions) * self.execution_ns).max(1.0) as u64,
                mix: TYPES[known[types.below(known.len() as u64) as usize]],
            }
        };
        (0..self.jobs).map(&mut one).collect()
    }

    fn size(&self, random: &mut Random) -> u32 {
        let all: u32 = self.sizes().map(|(_, share)| share).sum();
        let mut place = random.below(u64::from(all)) as u32;
        for (size, share) in self.sizes() {
            if place < share {
                return size;
            }
            place -= share;
        }
        unreachable!("the place is below the sum of the shares")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_moments_that_they_are_said_to_have() {
        for (law, wanted) in [(ARRIVALS, 3.0), (EXECUTIONS, 1.76)] {
            assert!((law.squared_variation() - wanted).abs() < 1e-9, "{}", law.squared_variation());
            let mut random = Random::new(1, 1);
            let draws: Vec<f64> = (0..200_000).map(|_| law.draw(&mut random)).collect();
            let mean = draws.iter().sum::<f64>() / draws.len() as f64;
            let variance = draws.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / draws.len() as f64;
            assert!((mean - 1.0).abs() < 0.02 && (variance / wanted - 1.0).abs() < 0.05, "{mean} {variance}");
        }
    }

    #[test]
    fn a_stream_asks_for_its_load() {
        let workload = "WL7".parse().unwrap();
        let stream = Stream { workload, jobs: 50_000, execution_ns: 1e9, load: 0.6, nodes: 32 };
        let jobs = stream.draw(7);
        let work: f64 = jobs.iter().map(|job| f64::from(job.size) * job.execution_ns as f64).sum();
        let load = work / (jobs.last().unwrap().arrival_ns as f64 * 32.0);
        assert!((load / 0.6 - 1.0).abs() < 0.05, "{load}");
        for kind in TYPES {
            let share = jobs.iter().filter(|job| job.mix == kind).count() as f64 / 50_000.0;
            assert!((share - 1.0 / 6.0).abs() < 0.01, "{share}");
            assert!((kind.compute + kind.io + kind.communication - 1.0).abs() < 1e-12);
        }
        assert!(Stream { nodes: 4, ..stream }.draw(7).iter().all(|job| job.size <= 4));
    }

    #[test]
    fn workloads_are_those_of_table_2() {
        let types = |name: &str| name.parse::<Workload>().unwrap().types().to_vec();
        assert_eq!((types("WL1"), types("WL6")), (vec![0], vec![5]));
        assert_eq!((types("WL7"), types("WL8")), (vec![0, 1, 2, 3, 4, 5], vec![1, 3, 4]));
        for text in ["WL0", "WL9", "wl1", "7", "WL", "WL11", ""] {
            assert!(text.parse::<Workload>().is_err(), "{text}");
        }
    }
}
