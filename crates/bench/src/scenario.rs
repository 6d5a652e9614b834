// SPDX-License-Identifier: GPL-2.0-only
//! What runs on the nodes, and its short name: `spin-4`, `spin-2x2`, `block-4x0-mixed-t2`, `spin-4-barrier`,
//! `spin-2-io-nice1`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::receiver::Receiver;

/// More would not all be ready before the first gives up waiting for its peer.
const JOBS: RangeInclusive<usize> = 1..=8;
const COMPETITORS: RangeInclusive<usize> = 0..=32;
const NICE: RangeInclusive<u8> = 0..=19;

/// The process that keeps a CPU awake.
pub const IDLER: &str = "idler";

/// What one process of a job can have.
pub const COMPUTE_US: RangeInclusive<u32> = 0..=100_000;
pub const THREADS: RangeInclusive<usize> = 1..=64;
pub const IMBALANCE: RangeInclusive<u16> = 0..=200;

/// The grains of a mixed load, by job, from one that only communicates to one that hardly does.
const MIXED_US: [u32; 4] = [0, 200, 1000, 5000];

/// The load of a measurement. The order is that of rows in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scenario {
    /// How the processes of all jobs wait for a message.
    pub receiver: Receiver,
    /// Parallel jobs, each with a process on either node.
    pub jobs: usize,
    /// Busy processes on each node.
    pub competitors: usize,
    pub grain: Grain,
    /// Of each process of a job.
    pub threads: usize,
    pub shape: Shape,
    /// The first competitor on each node sleeps now and then, as a program does that reads files (thesis 5.2.3).
    pub io: bool,
    /// Of the competitors. A job that is to go before them has less, and only the difference counts (thesis 5.4.2).
    pub nice: u8,
    /// A process of the idle class keeps each CPU awake: to wake a CPU costs the job's messages more than to wake a
    /// task on a busy one. Only where there are no competitors, and no name on the command line means it.
    pub awake: bool,
}

/// On which nodes a job is, and what its processes do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// On a pair of nodes: passes a token.
    Pair,
    /// On all nodes: its first process sends to all others, and waits for them all (thesis 5.2.2).
    Barrier,
    /// On all nodes (Dusseau 3.1). The imbalance is by how many per cent of its grain the longest work before a barrier
    /// is longer than the shortest.
    Spmd { pattern: Pattern, imbalance: u16 },
}

/// How much a job computes for each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Grain {
    /// As much as every other job, in us of CPU time.
    Uniform(u32),
    /// More than some and less than others.
    Mixed,
}

impl Scenario {
    /// One job whose processes do nothing but pass one token, beside competitors.
    pub const fn one_job(receiver: Receiver, competitors: usize) -> Scenario {
        let (grain, shape) = (Grain::Uniform(0), Shape::Pair);
        Scenario { receiver, jobs: 1, competitors, grain, threads: 1, shape, io: false, nice: 0, awake: false }
    }

    /// On how many nodes of so many a job is.
    pub fn group(self, nodes: usize) -> usize {
        if self.shape == Shape::Pair { 2 } else { nodes }
    }

    /// A job of this scenario with the nodes to itself, and with one thread on each: its efficiency is relative to
    /// that. If a job has more threads than CPUs, they are not alone: they wait for each other's turns.
    pub fn alone(self, job: usize) -> Scenario {
        let grain = Grain::Uniform(self.compute_us(job));
        Scenario { jobs: 1, competitors: 0, io: false, nice: 0, threads: 1, grain, ..self }
    }

    /// A job has the nodes to itself.
    pub fn is_alone(self) -> bool {
        self.jobs == 1 && self.competitors == 0
    }

    /// Is this a baseline of the job `alone`? Whether the CPUs are kept awake makes no difference. If the job computes,
    /// whether it spins or sleeps makes none either: a spinning job uses half of its CPU time to wait for its peer's
    /// computing, and beside others some wait rules save it that.
    pub fn is_baseline_of(self, alone: Scenario) -> bool {
        let receiver = if alone.compute_us(0) > 0 { alone.receiver } else { self.receiver };
        Scenario { awake: false, receiver, ..self } == alone
    }

    /// The names of what runs on each node of this group: the tokens' processes, by job, and the hogs.
    pub fn workers(self, group: usize) -> impl Iterator<Item = String> {
        let tokens = (0..self.jobs).map(move |job| format!("token{}", group * self.jobs + job));
        tokens.chain((1..=self.competitors).map(|i| format!("hog{i}"))).chain(self.awake.then(|| IDLER.into()))
    }

    /// The options of this worker, which is no token's.
    pub fn hog_options(self, name: &str) -> Vec<String> {
        let is_given = [
            (name == IDLER, "--idle".into()),
            (self.io && name == "hog1", "--io".into()),
            (self.nice > 0, format!("--nice={}", self.nice)),
        ];
        is_given.into_iter().filter_map(|(is, option)| is.then_some(option)).collect()
    }

    /// What this job computes for each message.
    pub fn compute_us(self, job: usize) -> u32 {
        match self.grain {
            Grain::Uniform(us) => us,
            Grain::Mixed => MIXED_US[job % MIXED_US.len()],
        }
    }
}

/// The rows of a gang scheduler: how many there are, and which each cgroup has, by name. A * at the end of a name
/// stands for any rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rows {
    pub number: usize,
    pub of_each: Vec<(String, usize)>,
}

/// A scenario on one group of nodes or several, of which each has its jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Layout {
    pub scenario: Scenario,
    pub groups: usize,
}

impl Layout {
    /// Nothing that runs on one node shares a row.
    pub fn rows(self) -> Rows {
        let Scenario { jobs, competitors, .. } = self.scenario;
        let of_group = |group| self.scenario.workers(group).enumerate().map(|(row, name)| (name, row));
        // The hogs of all groups have the same names.
        let of_each =
            (0..self.groups).flat_map(|group| of_group(group).filter(move |(_, row)| group == 0 || *row < jobs));
        Rows { number: jobs + competitors, of_each: of_each.collect() }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Scenario { receiver, jobs, competitors, grain, threads, shape, io, nice, awake } = self;
        let load = if *jobs == 1 { competitors.to_string() } else { format!("{jobs}x{competitors}") };
        let grain = match grain {
            Grain::Uniform(0) => String::new(),
            Grain::Uniform(us) => format!("-{us}us"),
            Grain::Mixed => "-mixed".into(),
        };
        let threads = if *threads == 1 { String::new() } else { format!("-t{threads}") };
        let shape = match shape {
            Shape::Pair => String::new(),
            Shape::Barrier => "-barrier".into(),
            Shape::Spmd { pattern, imbalance: 0 } => format!("-{pattern}"),
            Shape::Spmd { pattern, imbalance } => format!("-{pattern}-v{imbalance}"),
        };
        let io = if *io { "-io" } else { "" };
        let nice = if *nice == 0 { String::new() } else { format!("-nice{nice}") };
        let awake = if *awake { "-awake" } else { "" };
        f.pad(&format!("{receiver}-{load}{grain}{threads}{shape}{io}{nice}{awake}"))
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Scenario> {
        match parse(text) {
            Some(scenario) => Ok(scenario),
            None => bail!(
                "'{text}' is no scenario: RECEIVER-COMPETITORS or RECEIVER-JOBSxCOMPETITORS is wanted, and after it \
                 -mixed or -COMPUTEus, -tTHREADS, -barrier, -io and -niceN if need be, such as spin-4, block-2x4 or \
                 spin-2x2-mixed-t3 (spin, block, poll, twophase or oracle; {} jobs, {} competitors, {} us, {} threads, \
                 nice {}). A job that computes may be -bulk, -news, -transpose or -random, with -vIMBALANCE ({} %), \
                 and has no threads then",
                from_to(JOBS),
                from_to(COMPETITORS),
                from_to(COMPUTE_US),
                from_to(THREADS),
                from_to(NICE),
                from_to(IMBALANCE)
            ),
        }
    }
}

fn from_to<T: fmt::Display>(range: RangeInclusive<T>) -> String {
    format!("{} to {}", range.start(), range.end())
}

/// One load has one name: a job that is the only one is not mixed with any, and what competitors do needs some. The
/// jobs that [`Shape::Spmd`] stands for have one thread, and a grain.
fn parse(text: &str) -> Option<Scenario> {
    let mut parts = text.split('-');
    let receiver = Receiver::from_str(parts.next()?, false).ok()?;
    let load = parts.next()?;
    let (jobs, competitors) = load.split_once('x').unwrap_or(("1", load));
    let (jobs, competitors) = (number(jobs, JOBS)?, number(competitors, COMPETITORS)?);

    let (mut grain, mut threads, mut shape, mut imbalance) = (None, None, None, None);
    let (mut io, mut nice) = (None, None);
    for part in parts {
        let pattern = Pattern::ENDLESS.into_iter().find(|pattern| pattern.to_string() == part);
        let is_new = match (pattern, part.strip_suffix("us"), part.split_at_checked(1)) {
            (Some(pattern), ..) => shape.replace(Shape::Spmd { pattern, imbalance: 0 }).is_none(),
            _ if part == "mixed" => grain.replace(Grain::Mixed).is_none(),
            _ if part == "barrier" => shape.replace(Shape::Barrier).is_none(),
            _ if part == "io" => io.replace(true).is_none(),
            _ if part.starts_with("nice") => nice.replace(number(&part[4..], NICE)?).is_none(),
            (_, Some(us), _) => grain.replace(Grain::Uniform(number(us, COMPUTE_US)?)).is_none(),
            (_, _, Some(("t", n))) => threads.replace(number(n, THREADS)?).is_none(),
            (_, _, Some(("v", percent))) => imbalance.replace(number(percent, IMBALANCE)?).is_none(),
            _ => false,
        };
        if !is_new {
            return None;
        }
    }
    let (grain, threads) = (grain.unwrap_or(Grain::Uniform(0)), threads.unwrap_or(1));
    let (io, nice) = (io.is_some() && competitors > 0, nice.filter(|_| competitors > 0).unwrap_or(0));
    let shape = shape.unwrap_or(Shape::Pair);
    let shape = match (shape, imbalance) {
        (Shape::Spmd { .. }, _) if threads > 1 || matches!(grain, Grain::Uniform(0) | Grain::Mixed) => return None,
        (Shape::Pair | Shape::Barrier, _) if receiver == Receiver::Oracle => return None,
        (Shape::Spmd { .. }, _) if receiver == Receiver::Poll => return None,
        (Shape::Spmd { pattern, .. }, imbalance) => Shape::Spmd { pattern, imbalance: imbalance.unwrap_or(0) },
        (_, Some(_)) => return None,
        (other, None) => other,
    };
    let scenario = Scenario { receiver, jobs, competitors, grain, threads, shape, io, nice, awake: false };
    Some(if jobs == 1 { Scenario { grain: Grain::Uniform(scenario.compute_us(0)), ..scenario } } else { scenario })
}

/// Digits alone: Rust would take "+4" too.
fn number<T: FromStr + PartialOrd>(text: &str, range: RangeInclusive<T>) -> Option<T> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && range.contains(number))
}

/// Scenarios by name, with commas between them.
#[derive(Clone, Debug)]
pub struct Scenarios(pub Vec<Scenario>);

impl FromStr for Scenarios {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Scenarios> {
        let mut scenarios: Vec<Scenario> = Vec::new();
        for scenario in text.split(',').map(str::parse) {
            let scenario = scenario?;
            if scenarios.contains(&scenario) {
                bail!("'{scenario}' is there twice: leave one of them out (--repeats says how often each is measured)");
            }
            scenarios.push(scenario);
        }
        Ok(Scenarios(scenarios))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_runs() {
        let scenario = |receiver, jobs, competitors| Scenario { jobs, ..Scenario::one_job(receiver, competitors) };
        let (two, four) = (scenario(Receiver::Spin, 2, 2), scenario(Receiver::Block, 4, 0));
        let three = scenario(Receiver::Block, 3, 0);
        let news = Shape::Spmd { pattern: Pattern::News, imbalance: 150 };
        for (text, wanted) in [
            ("spin-4", scenario(Receiver::Spin, 1, 4)),
            ("block-0", scenario(Receiver::Block, 1, 0)),
            ("poll-0", scenario(Receiver::Poll, 1, 0)),
            ("spin-2x2", two),
            ("block-8x32", scenario(Receiver::Block, 8, 32)),
            ("spin-2x2-mixed", Scenario { grain: Grain::Mixed, ..two }),
            ("spin-2x2-200us", Scenario { grain: Grain::Uniform(200), ..two }),
            ("spin-2x2-t3", Scenario { threads: 3, ..two }),
            ("spin-4-t64", Scenario { threads: 64, ..scenario(Receiver::Spin, 1, 4) }),
            ("block-4x0-mixed-t2", Scenario { grain: Grain::Mixed, threads: 2, ..four }),
            (
                "spin-4-50us-barrier",
                Scenario { grain: Grain::Uniform(50), shape: Shape::Barrier, ..scenario(Receiver::Spin, 1, 4) },
            ),
            ("block-3x0-1000us-news-v150", Scenario { grain: Grain::Uniform(1000), shape: news, ..three }),
            ("spin-2-io", Scenario { io: true, ..scenario(Receiver::Spin, 1, 2) }),
            ("twophase-8-nice1", Scenario { nice: 1, ..scenario(Receiver::Twophase, 1, 8) }),
            ("block-4x0-100000us-t2", Scenario { grain: Grain::Uniform(100_000), threads: 2, ..four }),
        ] {
            assert_eq!(text.parse::<Scenario>().unwrap(), wanted);
            assert_eq!(wanted.to_string(), text);
        }
        let scenarios: Scenarios = "spin-4,block-4".parse().unwrap();
        assert_eq!(scenarios.0, [scenario(Receiver::Spin, 1, 4), scenario(Receiver::Block, 1, 4)]);
    }

    #[test]
    fn a_load_has_one_name() {
        for (text, name) in [
            ("spin-1x4", "spin-4"),
            ("spin-1x4-t3", "spin-4-t3"),
            ("spin-4-t1", "spin-4"),
            ("spin-4-0us", "spin-4"),
            ("spin-4-mixed", "spin-4"),
            ("block-4x0-t2-mixed", "block-4x0-mixed-t2"),
            ("spin-4-barrier-t2", "spin-4-t2-barrier"),
            ("spin-2-nice5-io-barrier", "spin-2-barrier-io-nice5"),
            ("spin-0-io-nice5", "spin-0"),
            ("spin-4-nice0", "spin-4"),
            ("spin-4-v0-bulk-100us", "spin-4-100us-bulk"),
        ] {
            assert_eq!(text.parse::<Scenario>().unwrap().to_string(), name);
        }
    }

    #[test]
    fn jobs_of_a_mixed_load_differ_in_grain() {
        let mixed: Scenario = "spin-6x2-mixed-t3".parse().unwrap();
        assert_eq!([0, 1, 2, 3, 4, 5].map(|job| mixed.compute_us(job)), [0, 200, 1000, 5000, 0, 200]);
        assert_eq!([0, 3].map(|job| mixed.alone(job).to_string()), ["spin-0", "spin-0-5000us"]);
        let uniform: Scenario = "block-2x2-50us".parse().unwrap();
        assert_eq!([0, 1].map(|job| uniform.alone(job).to_string()), ["block-0-50us"; 2]);
    }

    #[test]
    fn the_first_competitor_reads_and_all_are_nice() {
        let mixed: Scenario = "spin-2-io-nice3".parse().unwrap();
        let options: Vec<_> = mixed.workers(0).map(|name| (mixed.hog_options(&name), name)).collect();
        assert_eq!(options[1], (vec!["--io".to_string(), "--nice=3".into()], "hog1".into()));
        assert_eq!(options[2], (vec!["--nice=3".to_string()], "hog2".into()));
        assert_eq!(mixed.alone(0).to_string(), "spin-0");
        assert!("spin-2".parse::<Scenario>().unwrap().hog_options("hog1").is_empty());
        assert_eq!(mixed.hog_options(IDLER)[0], "--idle");
    }

    #[test]
    fn what_is_no_scenario_is_named_with_what_would_be() {
        let load = ["", "spin", "spin-", "nap-4", "spin-x", "spin-+4", "spin--4", "spin-33", "spin-0x2", "spin-9x1"];
        let rest = ["2x", "4-", "4-t", "4-t0", "4-t65", "4-t+2", "4-us", "4-100001us", "2x2-mixed-mixed", "4-t2-t2"];
        let more = ["4-barrier-barrier", "2x2-mixed-5us", "4-fast", "4-T2", "4-mixed-", "4-t2us"];
        let others = ["4-nice", "4-nice20", "4-nice-1", "4-nice1-nice1", "4-io-io"];
        let line = ["4-5us-line"];
        let spmd = ["4-bulk", "4-100us-v50", "4-barrier-v5", "4-5us-news-t2", "4-5us-news-bulk", "4-5us-bulk-v201"];
        let rest = rest.iter().chain(&more).chain(&others).chain(&spmd).chain(&line).map(|rest| format!("spin-{rest}"));
        for bad in load.map(String::from).into_iter().chain(rest) {
            let error = bad.parse::<Scenario>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{bad}' is no scenario")) && error.contains("spin-4"), "{error}");
            assert!(error.contains("1 to 64 threads") && error.lines().count() == 1, "{error}");
        }
        for (bad, what) in [
            ("spin-4,", "''"),
            ("spin-4,block 4", "'block 4'"),
            ("spin-4,spin-1x4", "'spin-4' is there twice"),
            ("spin-2x2-mixed-t2,spin-2x2-t2-mixed", "'spin-2x2-mixed-t2' is there twice"),
        ] {
            let error = bad.parse::<Scenarios>().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
