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
    Poll,
    Twophase,
    Oracle,
}

impl ReceiverName {
    /// As the model has it; none: the model's processes do not wait so.
    fn waits(self) -> Option<Receiver> {
        match self {
            ReceiverName::Spin => Some(Receiver::Spin),
            ReceiverName::Block => Some(Receiver::Block),
            ReceiverName::Poll | ReceiverName::Twophase | ReceiverName::Oracle => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            ReceiverName::Spin => "spin",
            ReceiverName::Block => "block",
            ReceiverName::Poll => "poll",
            ReceiverName::Twophase => "twophase",
            ReceiverName::Oracle => "oracle",
        }
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
    /// The bench's name of what ran; it says more than the other fields do. A bench with one kind of job has none.
    scenario: Option<String>,
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

impl Row {
    fn name(&self) -> String {
        let load = match self.jobs {
            1 => self.competitors.to_string(),
            jobs => format!("{jobs}x{}", self.competitors),
        };
        self.scenario.clone().unwrap_or_else(|| format!("{}-{load}", self.receiver.name()))
    }

    /// How its processes wait, if the model has what its name says: pairs, each process with one thread, and
    /// competitors that only compute. What a name may have besides is how much all compute for a message.
    fn waits(&self) -> Option<Receiver> {
        let computes = |part: &str| part.strip_suffix("us").is_some_and(|us| us.parse::<f64>().is_ok());
        let name = self.name();
        let known = name.split('-').skip(2).all(computes) && self.threads == 1;
        self.receiver.waits().filter(|_| known)
    }
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
            let pair = (row.jobs, row.competitors) == (1, 0) && row.compute_us == 0.0;
            pair && row.scheduler == scheduler && row.waits() == Some(receiver)
        };
        let row = self.results.iter().find(is_it).filter(|row| row.round_trips_per_s.median > 0.0)?;
        let trip_us = 1e6 / row.round_trips_per_s.median;
        Some(Alone { trip_us, cpu_us: row.cpu_share.map(|share| share * trip_us) })
    }

    /// The schedulers, in the order of the file.
    pub fn schedulers(&self) -> impl Iterator<Item = &str> {
        self.results.iter().map(|row| row.scheduler.as_str())
    }

    /// What was measured, the jobs of a scenario together, in the order of the file. And the names of the scenarios that
    /// the model has not: other shapes than pairs, several threads, jobs of different grains, other ways to wait, and
    /// competitors that sleep or have a nice level.
    pub fn cases(&self) -> (Vec<Case>, Vec<String>) {
        let (mut cases, mut left_out): (Vec<Case>, Vec<String>) = (Vec::new(), Vec::new());
        let mut index = 0;
        while let Some(first) = self.results.get(index) {
            let jobs = &self.results[index..(index + first.jobs as usize).min(self.results.len())];
            index += jobs.len();
            let alike = |row: &Row| {
                let same = (row.name(), row.jobs, row.competitors) == (first.name(), first.jobs, first.competitors);
                same && row.scheduler == first.scheduler && row.compute_us == first.compute_us
            };
            let all_are_there = jobs.len() == first.jobs as usize && jobs.iter().all(alike);
            let Some(receiver) = first.waits().filter(|_| all_are_there) else {
                if !left_out.contains(&first.name()) {
                    left_out.push(first.name());
                }
                continue;
            };
            let sum = |of: fn(&Spread) -> f64| jobs.iter().map(|row| of(&row.round_trips_per_s)).sum::<f64>();
            let Row { jobs: count, competitors, compute_us, .. } = *first;
            cases.push(Case {
                scenario: Scenario { receiver, jobs: count, competitors, compute_us },
                scheduler: first.scheduler.clone(),
                round_trips_per_s: Spread { median: sum(|s| s.median), min: sum(|s| s.min), max: sum(|s| s.max) },
                fairness: jobs.iter().map(|row| row.fairness).sum::<f64>() / jobs.len() as f64,
            });
        }
        (cases, left_out)
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
        let (cases, left_out) = summary.cases();
        assert_eq!((cases.len(), left_out), (2, vec![]));
        assert_eq!(summary.alone("eevdf", Receiver::Spin), Some(Alone { trip_us: 10_000.0, cpu_us: None }));
        assert_eq!(summary.alone("eevdf", Receiver::Block), None);
        assert_eq!(summary.alone("local", Receiver::Spin), None);
        assert_eq!((cases[1].scenario.to_string(), cases[1].round_trips_per_s.median), ("spin-2x2".into(), 200.0));
    }

    #[test]
    fn what_the_model_has_not_is_left_out_by_name() {
        let named = |name: &str, more: &str| {
            let receiver = name.split('-').next().unwrap();
            let row = ROW.replace("\"competitors\": 0", &format!("\"competitors\": 2, \"scenario\": \"{name}\"{more}"));
            row.replace("\"spin\"", &format!("\"{receiver}\""))
        };
        let mixed = |us: u32| named("spin-2x2-mixed", &format!(", \"jobs\": 2, \"compute_us\": {us}"));
        let unknown = ["spin-2-barrier", "spin-2-io", "block-2-nice5", "twophase-2", "oracle-2-100us-news"];
        let mut rows = vec![named("spin-2-t2", ", \"threads\": 2"), mixed(0), mixed(200)];
        rows.extend(unknown.map(|name| named(name, "")));
        // A barrier alone is no pair alone.
        rows.push(ROW.replace("\"competitors\"", "\"scenario\": \"spin-0-barrier\", \"competitors\""));
        rows.push(named("spin-2-200us", ", \"compute_us\": 200"));
        let summary = of(&rows.join(","));
        let (cases, left_out) = summary.cases();
        assert_eq!(cases.len(), 1, "{cases:?}");
        let wanted = [&["spin-2-t2", "spin-2x2-mixed"], &unknown[..], &["spin-0-barrier"]].concat();
        assert_eq!(left_out, wanted);
        assert_eq!(summary.alone("eevdf", Receiver::Spin), None);
    }
}
