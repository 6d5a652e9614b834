// SPDX-License-Identifier: GPL-2.0-only
//! What has happened between two snapshots. The first look has only one: it shows what happened since the start.

use std::collections::BTreeMap;

use crate::jobs::{JobView, OTHER};
use crate::snapshot::{Histogram, Snapshot};

/// What has happened in a length of time.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// How long that was.
    pub seconds: f64,
    /// It is the whole life of the scheduler.
    pub since_start: bool,
    /// Messages that arrived, a second.
    pub arrivals: f64,
    /// The fraction of them that found their receiver running. None if there were none.
    pub coscheduled: Option<f64>,
    /// Switches, a second.
    pub switches: f64,
    /// From arrivals to runs.
    pub arrival_to_run: Histogram,
    /// How often demands were granted and denied a second, for each reason that there ever was.
    pub reasons: Vec<Reason>,
    /// The jobs, first the one that used most CPU time; "other" last.
    pub jobs: Vec<Job>,
}

/// Why demands were granted or denied.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason {
    /// Whether it grants.
    pub grants: bool,
    /// Its name.
    pub name: String,
    /// Times a second.
    pub rate: f64,
}

/// A job.
#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Its name.
    pub name: String,
    /// CPUs that it used, on the average.
    pub cpus: f64,
    /// F since it began.
    pub fairness: Option<f64>,
    /// F now.
    pub fairness_now: Option<f64>,
    /// The fraction of the time in which one of its tasks waited for a CPU.
    pub waiting: Option<f64>,
    /// Boosts, a second.
    pub boosts: f64,
}

/// A fair share of less CPU time than this, in s, says nothing about fairness.
const SHARE_MIN: f64 = 0.001;

impl Figures {
    /// What has happened up to `now` since `before`, which was `seconds` ago. Without it, since the start.
    pub fn of(now: &Snapshot, before: Option<(&Snapshot, f64)>) -> Figures {
        // Another scheduler counts from the start.
        let before = before.filter(|(before, _)| before.pid == now.pid);
        let seconds = before.map_or(now.uptime_seconds, |(_, seconds)| seconds).max(1e-3);
        let before = before.map(|(before, _)| before);
        let counted = |name: &str| now.counter(name).saturating_sub(before.map_or(0, |b| b.counter(name)));
        let arrivals = counted("arrivals");
        let reasons = |grants: bool, all: fn(&Snapshot) -> &BTreeMap<String, u64>| {
            let then = move |name: &String| before.and_then(|b| all(b).get(name)).copied().unwrap_or(0);
            all(now).iter().filter(|(_, count)| **count > 0).map(move |(name, count)| Reason {
                grants,
                name: name.clone(),
                rate: count.saturating_sub(then(name)) as f64 / seconds,
            })
        };
        Figures {
            seconds,
            since_start: before.is_none(),
            arrivals: arrivals as f64 / seconds,
            coscheduled: (arrivals > 0).then(|| counted("arrivals_coscheduled") as f64 / arrivals as f64),
            switches: counted("context_switches") as f64 / seconds,
            arrival_to_run: before
                .map_or_else(|| now.arrival_to_run.clone(), |b| now.arrival_to_run.since(&b.arrival_to_run)),
            reasons: reasons(true, |s| &s.granted).chain(reasons(false, |s| &s.denied)).collect(),
            jobs: jobs(now, before, seconds),
        }
    }
}

fn jobs(now: &Snapshot, before: Option<&Snapshot>, seconds: f64) -> Vec<Job> {
    let then = |name: &str| before.and_then(|before| before.jobs.iter().find(|job| job.job == name));
    let mut jobs: Vec<Job> = now.jobs.iter().map(|job| Job::of(job, then(&job.job), seconds)).collect();
    jobs.sort_by(|a, b| (a.name == OTHER).cmp(&(b.name == OTHER)).then(b.cpus.total_cmp(&a.cpus)));
    jobs
}

impl Job {
    fn of(now: &JobView, before: Option<&JobView>, seconds: f64) -> Job {
        let since = |of: fn(&JobView) -> f64| (of(now) - before.map_or(0.0, of)).max(0.0);
        let (used, due) = (since(|job| job.cpu_seconds), since(|job| job.fair_share_seconds));
        let waited = |job: &JobView| job.cpu_waiting_seconds;
        Job {
            name: now.job.clone(),
            cpus: used / seconds,
            fairness: now.fairness_ratio,
            fairness_now: (due >= SHARE_MIN).then_some(used / due),
            // PSI counts from the cgroup's beginning, not from the scheduler's.
            waiting: before.and_then(|before| Some((waited(now)? - waited(before)?).max(0.0) / seconds)),
            boosts: since(|job| job.boosts as f64) / seconds,
        }
    }
}
