// SPDX-License-Identifier: GPL-2.0-only
//! One moment of the running scheduler. `status`, its JSON, the `scx_stats` server and the metrics all show
//! this and nothing else, so they never disagree.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::bpf::hooks::HookStates;
use crate::hints::Hinted;
use crate::jobs::JobView;
use crate::jobs::job_by::JobBy;
use crate::jobs::totals::Totals;
use crate::node::kernel_events::KernelEvents;
use crate::node::process::ProcessView;
use crate::prefetch::PrefetchView;
use cosched_rules::intf::cosched_counter_COSCHED_COUNTER_rows;
use cosched_rules::native;
use cosched_rules::policy::{CostsView, PolicyView};

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
    /// Hooks are being attached, and the kernel's own scheduler still has the machine.
    #[serde(default)]
    pub starting: bool,
    /// The policy in force.
    pub policy: PolicyView,
    /// What messages and switches cost, as the policy reckons with it.
    pub costs: CostsView,
    /// What makes two tasks members of one job.
    pub job_by: JobBy,
    /// Limits of cgroups (`cpu.max`) that this kernel does not tell a scheduler of, a line each.
    #[serde(default)]
    pub limits_not_kept: Vec<String>,
    /// Which hooks observe.
    pub hooks: HookStates,
    /// What the scheduler takes.
    pub memory: Memory,
    /// What this process takes, by the usual names.
    #[serde(default)]
    pub process: ProcessView,
    /// What the kernel has counted of the scheduler. Empty before Linux 6.15.
    #[serde(default)]
    pub kernel_events: KernelEvents,
    /// What there is to run just now.
    pub runnable: Runnable,
    /// Event counters, by name.
    pub counters: BTreeMap<String, u64>,
    /// The counter `arrivals`, by the kind of endpoint.
    pub endpoint_arrivals: BTreeMap<String, u64>,
    /// Demands that were granted, by reason.
    pub granted: BTreeMap<String, u64>,
    /// Demands that were denied, by reason.
    pub denied: BTreeMap<String, u64>,
    /// From the arrival of a message for a task that was not running until that task ran.
    pub arrival_to_run: Histogram,
    /// By how much the turns of a gang's rows began late.
    pub gang_skew: GangSkew,
    /// By how much the clock of turns by beat is ahead of TAI, since a peer's is, s.
    #[serde(default)]
    pub clock_ahead_seconds: f64,
    /// Who is asked for ahead of messages. Absent if nobody is.
    #[serde(default)]
    pub prefetch: Option<PrefetchView>,
    /// Who gives hints. Absent if nobody may.
    pub hinted: Option<Hinted>,
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

/// How many tasks are runnable just now, those that run included, on the CPUs that are online.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Runnable {
    /// On all CPUs together.
    pub tasks: u64,
    /// CPUs that have any.
    pub busy_cpus: u64,
    /// On a CPU, on the average over all that are online.
    pub mean: f64,
    /// On the CPU that has most.
    pub max: u32,
}

impl Runnable {
    /// From the tasks on each CPU that may be there, of which `online` are. One that is not has none.
    pub fn new(counts: &[u32], online: usize) -> Runnable {
        let tasks = counts.iter().map(|n| u64::from(*n)).sum();
        Runnable {
            tasks,
            busy_cpus: counts.iter().filter(|n| **n > 0).count() as u64,
            mean: tasks as f64 / online.max(1) as f64,
            max: counts.iter().copied().max().unwrap_or(0),
        }
    }
}

/// By how much the turns of a gang's rows began late: the skew between CPUs and, if their clocks agree, between nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GangSkew {
    /// How many turns there were, on all CPUs.
    pub turns: u64,
    /// All together, s.
    pub sum_seconds: f64,
    /// On the average, s; 0 if there were none.
    pub mean_seconds: f64,
    /// At most, s.
    pub max_seconds: f64,
}

impl GangSkew {
    /// What has been counted.
    pub fn of(totals: &Totals) -> GangSkew {
        let turns = totals.counters[cosched_counter_COSCHED_COUNTER_rows as usize];
        let sum_seconds = totals.skew_sum_ns as f64 / 1e9;
        let mean_seconds = sum_seconds / turns.max(1) as f64;
        GangSkew { turns, sum_seconds, mean_seconds, max_seconds: totals.skew_max_ns as f64 / 1e9 }
    }
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

    /// What has been counted since `before`. Nothing, if that was of something else.
    pub fn since(&self, before: &Histogram) -> Histogram {
        let bucket = |(now, then): (&Bucket, &Bucket)| Bucket { count: now.count.saturating_sub(then.count), ..*now };
        Histogram {
            count: self.count.saturating_sub(before.count),
            sum_seconds: (self.sum_seconds - before.sum_seconds).max(0.0),
            buckets: self.buckets.iter().zip(&before.buckets).map(bucket).collect(),
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

/// The counter `arrivals`, by the kind of endpoint.
pub fn endpoint_arrivals(totals: &Totals) -> BTreeMap<String, u64> {
    native::endpoints().iter().zip(&totals.endpoint_arrivals).map(|(name, n)| (name.to_string(), *n)).collect()
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
    fn a_difference_has_what_came_between() {
        let before = Histogram::from_powers_of_two(&[1, 0, 2], 1_000);
        let now = Histogram::from_powers_of_two(&[1, 3, 4], 7_000);
        let between = now.since(&before);
        assert_eq!(between.buckets.iter().map(|b| b.count).collect::<Vec<_>>(), [0, 3, 2]);
        assert_eq!((between.count, between.buckets[1].le_seconds), (5, Some(2e-6)));
        assert!((between.sum_seconds - 6e-6).abs() < 1e-12);
        assert_eq!(before.since(&now).count, 0);
    }

    #[test]
    fn runnable_tasks_are_counted_by_cpu() {
        let runnable = Runnable::new(&[3, 0, 5, 0], 3);
        assert_eq!(runnable, Runnable { tasks: 8, busy_cpus: 2, mean: 8.0 / 3.0, max: 5 });
        assert_eq!(Runnable::new(&[], 0), Runnable::default());
    }

    #[test]
    fn a_skew_has_a_mean_when_there_were_turns() {
        let mut totals = Totals { skew_sum_ns: 8_000, skew_max_ns: 5_000, ..Totals::default() };
        let rows = native::counters().iter().position(|counter| counter.name == "rows").unwrap();
        totals.counters[rows] = 4;
        let skew = GangSkew { turns: 4, sum_seconds: 8e-6, mean_seconds: 2e-6, max_seconds: 5e-6 };
        assert_eq!(GangSkew::of(&totals), skew);
        assert_eq!(GangSkew::of(&Totals::default()), GangSkew::default());
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
