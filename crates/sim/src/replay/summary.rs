// SPDX-License-Identifier: GPL-2.0-only
//! What `sim replay` reads of a `summary.json` of the bench. The bench writes more.

use std::fmt;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::shared::program::Receiver;
use cosched_rules::costs::Costs;

/// The file.
#[derive(Clone, Debug, Deserialize)]
pub struct Summary {
    /// What the two nodes were.
    pub testbed: Testbed,
    /// Of each measurement.
    pub seconds: f64,
    /// What the calibration found; a bench of before does not say.
    pub costs: Option<Costs>,
    /// How many CPUs stand for nodes; a bench of before does not say, and had two.
    #[serde(default = "two")]
    pub nodes: u32,
    results: Vec<Row>,
}

/// What the two nodes were.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Testbed {
    /// Two CPUs of one machine.
    One,
    /// Two machines.
    Two,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ReceiverName {
    Spin,
    Block,
}

impl ReceiverName {
    fn waits(self) -> Receiver {
        if self == ReceiverName::Spin { Receiver::Spin } else { Receiver::Block }
    }
}

/// A round trip of a pair that has both nodes to itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// How long it takes.
    pub trip_us: f64,
    /// What it takes of the CPU of a node, as far as that was measured.
    pub cpu_us: Option<f64>,
}

/// A median with its range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Spread {
    /// Of the runs.
    pub median: f64,
    /// The least.
    pub min: f64,
    /// The greatest.
    pub max: f64,
}

#[derive(Clone, Debug, Deserialize)]
struct Row {
    receiver: ReceiverName,
    scheduler: String,
    competitors: u32,
    #[serde(default = "one")]
    jobs: u32,
    #[serde(default)]
    compute_us: f64,
    #[serde(default = "one")]
    threads: u32,
    round_trips_per_s: Spread,
    cpu_share: Option<f64>,
    fairness: f64,
}

fn two() -> u32 {
    2
}

fn one() -> u32 {
    1
}

/// What ran on the nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    /// How all wait.
    pub receiver: Receiver,
    /// Parallel jobs, of one thread on each node.
    pub jobs: u32,
    /// Competitors on each node.
    pub competitors: u32,
    /// What each process computes for a message.
    pub compute_us: f64,
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let receiver = if self.receiver == Receiver::Spin { "spin" } else { "block" };
        let jobs = if self.jobs == 1 { String::new() } else { format!("{}x", self.jobs) };
        let grain = if self.compute_us > 0.0 { format!("-{}us", self.compute_us) } else { String::new() };
        f.pad(&format!("{receiver}-{jobs}{}{grain}", self.competitors))
    }
}

/// A scenario under a scheduler, and what was measured of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Case {
    /// What ran.
    pub scenario: Scenario,
    /// Under what.
    pub scheduler: String,
    /// Of all jobs together.
    pub round_trips_per_s: Spread,
    /// F, the mean of the jobs.
    pub fairness: f64,
}

/// Reads the file.
///
/// # Errors
/// One line that says what is wrong with it and what it should be.
pub fn read(path: &Path) -> Result<Summary> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| {
        format!(
            "{name}: it cannot be read (give the summary.json that `make demo` or `make bench-policies` has written)"
        )
    })?;
    let summary: Summary = serde_json::from_str(&text).map_err(|error| {
        anyhow::anyhow!(
            "{name}: {error} (it takes the summary.json that `make demo` or `make bench-policies` has written)"
        )
    })?;
    match summary.wrong() {
        Some(what) => bail!("{name}: {what} (measure again: no bench writes that)"),
        None => Ok(summary),
    }
}

impl Summary {
    fn wrong(&self) -> Option<String> {
        if !(f64::MIN_POSITIVE..=3600.0).contains(&self.seconds) {
            return Some(format!("seconds: {} is out of range: it takes a number from above 0 to 3600", self.seconds));
        }
        if let Some(Costs { latency_us, overhead_us, switch_us }) = self.costs
            && (latency_us < 0.0 || overhead_us <= 0.0 || switch_us <= 0.0)
        {
            return Some("costs: latency_us is below 0, or overhead_us or switch_us is not above it".into());
        }
        self.results.iter().enumerate().find_map(|(number, row)| {
            let wrong = |what: String| Some(format!("results[{number}]: {what}"));
            match row {
                Row { jobs, .. } if !(1..=64).contains(jobs) => wrong(format!("jobs: {jobs} is not from 1 to 64")),
                Row { competitors, .. } if *competitors > 64 => {
                    wrong(format!("competitors: {competitors} is not from 0 to 64"))
                }
                Row { compute_us, .. } if !(0.0..=1e6).contains(compute_us) => {
                    wrong(format!("compute_us: {compute_us} is not from 0 to 1000000"))
                }
                Row { round_trips_per_s: Spread { median, .. }, .. } if *median < 0.0 => {
                    wrong(format!("round_trips_per_s: {median} is below 0"))
                }
                _ => None,
            }
        })
    }

    /// What a pair takes that has both nodes to itself, and only communicates; none, if that was not measured.
    pub fn alone(&self, scheduler: &str, receiver: Receiver) -> Option<Alone> {
        let is_it = |row: &&Row| {
            let pair = (row.jobs, row.competitors, row.threads) == (1, 0, 1) && row.compute_us == 0.0;
            pair && row.scheduler == scheduler && row.receiver.waits() == receiver
        };
        let row = self.results.iter().find(is_it).filter(|row| row.round_trips_per_s.median > 0.0)?;
        let trip_us = 1e6 / row.round_trips_per_s.median;
        Some(Alone { trip_us, cpu_us: row.cpu_share.map(|share| share * trip_us) })
    }

    /// The schedulers, in the order of the file.
    pub fn schedulers(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(|row| row.scheduler.as_str())
    }

    /// What was measured, the jobs of a scenario together, in the order of the file. Without what the model has not:
    /// several threads, and jobs of different grains.
    pub fn cases(&self) -> Vec<Case> {
        let mut cases: Vec<Case> = Vec::new();
        let mut index = 0;
        while let Some(first) = self.results.get(index) {
            let jobs = &self.results[index..(index + first.jobs as usize).min(self.results.len())];
            index += jobs.len();
            let alike = |row: &Row| {
                let same = (row.receiver, row.jobs, row.competitors) == (first.receiver, first.jobs, first.competitors);
                same && row.scheduler == first.scheduler && row.compute_us == first.compute_us && row.threads == 1
            };
            if jobs.len() < first.jobs as usize || !jobs.iter().all(alike) {
                continue;
            }
            let sum = |of: fn(&Spread) -> f64| jobs.iter().map(|row| of(&row.round_trips_per_s)).sum::<f64>();
            let receiver = first.receiver.waits();
            let Row { jobs: count, competitors, compute_us, .. } = *first;
            cases.push(Case {
                scenario: Scenario { receiver, jobs: count, competitors, compute_us },
                scheduler: first.scheduler.clone(),
                round_trips_per_s: Spread { median: sum(|s| s.median), min: sum(|s| s.min), max: sum(|s| s.max) },
                fairness: jobs.iter().map(|row| row.fairness).sum::<f64>() / jobs.len() as f64,
            });
        }
        cases
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"receiver": "spin", "scheduler": "eevdf", "competitors": 0, "fairness": 1.0,
        "round_trips_per_s": {"median": 100.0, "min": 90.0, "max": 110.0}}"#;

    fn of(results: &str) -> Summary {
        serde_json::from_str(&format!(r#"{{"testbed": "one", "seconds": 2, "results": [{results}]}}"#)).unwrap()
    }

    #[test]
    fn jobs_of_a_scenario_are_one_case() {
        let two = ROW.replace("\"competitors\": 0", "\"competitors\": 2, \"jobs\": 2");
        let summary = of(&format!("{ROW}, {two}, {two}"));
        let cases = summary.cases();
        assert_eq!(cases.len(), 2);
        assert_eq!(summary.alone("eevdf", Receiver::Spin), Some(Alone { trip_us: 10_000.0, cpu_us: None }));
        assert_eq!(summary.alone("eevdf", Receiver::Block), None);
        assert_eq!(summary.alone("local", Receiver::Spin), None);
        assert_eq!((cases[1].scenario.to_string(), cases[1].round_trips_per_s.median), ("spin-2x2".into(), 200.0));
    }

    #[test]
    fn what_the_model_has_not_is_left_out() {
        let threads = ROW.replace("\"competitors\": 0", "\"competitors\": 2, \"threads\": 2");
        let mixed = |us: u32| {
            ROW.replace("\"competitors\": 0", &format!("\"competitors\": 2, \"jobs\": 2, \"compute_us\": {us}"))
        };
        let summary = of(&[threads, mixed(0), mixed(200), ROW.into()].join(","));
        assert_eq!(summary.cases().len(), 1);
    }
}
