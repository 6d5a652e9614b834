// SPDX-License-Identifier: GPL-2.0-only
//! One moment of the running scheduler. `status`, its JSON, the `scx_stats` server and the metrics all show
//! this and nothing else, so they never disagree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::hooks::HookStates;
use crate::jobs::JobView;
use crate::native;
use crate::policy::PolicyView;
use crate::settings::JobBy;
use crate::totals::Totals;

/// One moment of the running scheduler. Counters count from the start of the program, over restarts that
/// the kernel asked for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// Of this program.
    pub version: String,
    /// The kernel's release.
    pub kernel: String,
    /// Of the process that holds the scheduler.
    pub pid: u32,
    /// Since the start of the program, s.
    pub uptime_seconds: f64,
    /// The policy in force.
    pub policy: PolicyView,
    /// What makes two tasks members of one job.
    pub job_by: JobBy,
    /// Which hooks observe.
    pub hooks: HookStates,
    /// What the scheduler takes.
    pub memory: Memory,
    /// Event counters, by name.
    pub counters: BTreeMap<String, u64>,
    /// Demands that were granted, by reason.
    pub granted: BTreeMap<String, u64>,
    /// Demands that were denied, by reason.
    pub denied: BTreeMap<String, u64>,
    /// From the arrival of a message for a task that was not running until that task ran.
    pub arrival_to_run: Histogram,
    /// The jobs that used most CPU time, and "other".
    pub jobs: Vec<JobView>,
}

/// What the scheduler takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Memory {
    /// The resident set of this process.
    pub resident_bytes: u64,
    /// All BPF maps.
    pub maps_bytes: u64,
}

/// How long something took.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Histogram {
    /// How many there were.
    pub count: u64,
    /// All together, s.
    pub sum_seconds: f64,
    /// By length, shortest first. Not cumulative.
    pub buckets: Vec<Bucket>,
}

/// How many took at most so long, and longer than the bucket before.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bucket {
    /// The upper bound, s; absent for the last, which has none.
    pub le_seconds: Option<f64>,
    /// How many.
    pub count: u64,
}

impl Histogram {
    /// From buckets by powers of two: bucket i counts what took at most 2^i us, the last the rest.
    pub fn from_powers_of_two(counts: &[u64], sum_ns: u64) -> Histogram {
        let last = counts.len().saturating_sub(1);
        let bucket = |(i, count): (usize, &u64)| Bucket {
            le_seconds: (i < last).then(|| (1u64 << i) as f64 / 1e6),
            count: *count,
        };
        Histogram {
            count: counts.iter().sum(),
            sum_seconds: sum_ns as f64 / 1e9,
            buckets: counts.iter().enumerate().map(bucket).collect(),
        }
    }

    /// A bound in s that a share of `quantile` (0 to 1) does not exceed. None if there is nothing, or no
    /// bucket with a bound reaches so far.
    pub fn quantile_bound(&self, quantile: f64) -> Option<f64> {
        let wanted = (self.count as f64 * quantile).ceil().max(1.0) as u64;
        let mut below = 0;
        self.buckets.iter().find_map(|bucket| {
            below += bucket.count;
            (below >= wanted).then_some(bucket.le_seconds)?
        })
    }
}

impl Snapshot {
    /// Fraction of arrivals that found their receiver running: the degree of coscheduling, 0 to 1. None
    /// before the first arrival.
    pub fn coscheduling_degree(&self) -> Option<f64> {
        let arrivals = self.counter("arrivals");
        (arrivals > 0).then(|| self.counter("arrivals_coscheduled") as f64 / arrivals as f64)
    }

    /// The counter called `name`; 0 if there is none.
    pub fn counter(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

/// Event counters, by name.
pub fn counters(totals: &Totals) -> BTreeMap<String, u64> {
    native::counters().iter().zip(&totals.counters).map(|(c, n)| (c.name.to_string(), *n)).collect()
}

/// How often demands were granted, or denied, by reason.
pub fn decisions(totals: &Totals, granted: bool) -> BTreeMap<String, u64> {
    let of_kind = native::reasons().iter().zip(&totals.decisions).filter(|(reason, _)| reason.grants == granted);
    of_kind.map(|(reason, n)| (reason.name.to_string(), *n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_have_their_bounds_and_the_last_has_none() {
        let histogram = Histogram::from_powers_of_two(&[1, 0, 2, 4], 1500);
        assert_eq!(histogram.count, 7);
        assert_eq!(histogram.sum_seconds, 1.5e-6);
        let bounds: Vec<_> = histogram.buckets.iter().map(|b| b.le_seconds).collect();
        assert_eq!(bounds, [Some(1e-6), Some(2e-6), Some(4e-6), None]);
    }

    #[test]
    fn a_quantile_is_bounded_by_its_bucket() {
        let histogram = Histogram::from_powers_of_two(&[1, 0, 2, 1], 0);
        assert_eq!(histogram.quantile_bound(0.25), Some(1e-6));
        assert_eq!(histogram.quantile_bound(0.5), Some(4e-6));
        assert_eq!(histogram.quantile_bound(1.0), None);
        assert_eq!(Histogram::from_powers_of_two(&[0, 0], 0).quantile_bound(0.5), None);
    }

    #[test]
    fn every_reason_is_either_granted_or_denied() {
        let totals = Totals::default();
        let (granted, denied) = (decisions(&totals, true), decisions(&totals, false));
        assert_eq!(counters(&totals).len(), native::counters().len());
        assert_eq!(granted.len() + denied.len(), native::reasons().len());
        assert!(granted.contains_key("lags") && denied.contains_key("not_behind"));
    }
}
