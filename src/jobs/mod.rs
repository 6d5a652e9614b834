// SPDX-License-Identifier: GPL-2.0-only
//! Which jobs are shown under their own name: the N that used most CPU time; the rest is "other".
//!
//! Monitoring systems take a counter that shrinks for a restart, and would show a spike. So nothing that
//! has been counted as "other" ever moves to a job: a job that enters the list late is shown from there on,
//! and what it used before stays with "other". A job that leaves takes what it used to "other". Jobs at the
//! edge of the list change places only when one is clearly ahead, else they would do so at every look.
//!
//! A cgroup that is made anew is a new job with an old name. Of the two only the new one is shown: two numbers of one
//! name would be none. The old one leaves the list at once.

pub mod gang;
pub mod job_by;
pub mod names;
pub mod owners;
pub mod totals;

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::jobs::totals::JobTotals;
use cosched_rules::intf::COSCHED_JOB_OTHER;

/// A job outside the list replaces one on it when it has used this many quarters of that one's CPU time.
const LEAD_QUARTERS: u64 = 5;
/// The name of everything that has no name of its own.
pub const OTHER: &str = "other";

/// A job as every output shows it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct JobView {
    /// The cgroup's path, `session:<pid>`, `process:<pid>`, or `other`.
    pub job: String,
    /// CPU time used, s.
    pub cpu_seconds: f64,
    /// The CPU time that fair sharing would have given, s.
    pub fair_share_seconds: f64,
    /// F = N T_C / T_E (thesis 5.1): 1 is fair, more is too much. Absent while nothing is due.
    pub fairness_ratio: Option<f64>,
    /// Time in which one of its tasks could run and waited for a CPU, s, by the kernel's pressure accounting (PSI).
    /// Absent if jobs are no cgroups, or if the kernel does not account for it.
    #[serde(default)]
    pub cpu_waiting_seconds: Option<f64>,
    /// Times that one of its tasks ran ahead of the fair order.
    pub boosts: u64,
}

/// What is known of a job besides its counts.
#[derive(Clone, Debug, PartialEq)]
pub struct About {
    /// Its name.
    pub name: String,
    /// See [`JobView`].
    pub cpu_waiting_seconds: Option<f64>,
}

impl JobView {
    fn new(about: About, shown: &JobTotals, all: &JobTotals) -> JobView {
        JobView {
            job: about.name,
            cpu_seconds: shown.cpu_ns as f64 / 1e9,
            fair_share_seconds: shown.fair_ns as f64 / 1e9,
            fairness_ratio: (all.fair_ns > 0).then(|| all.cpu_ns as f64 / all.fair_ns as f64),
            cpu_waiting_seconds: about.cpu_waiting_seconds,
            boosts: shown.boosts,
        }
    }
}

/// The list of jobs that are shown.
#[derive(Debug)]
pub struct TopJobs {
    limit: usize,
    /// By id: what of it was counted under "other" before it came on the list.
    shown: BTreeMap<u64, JobTotals>,
    /// Every job that a view has covered.
    seen: BTreeSet<u64>,
}

impl TopJobs {
    /// A list of at most `limit` jobs.
    pub fn new(limit: usize) -> TopJobs {
        TopJobs { limit, shown: BTreeMap::new(), seen: BTreeSet::new() }
    }

    /// The jobs to show, largest first, then "other". Those that are `replaced` are gone, and others have their names.
    pub fn view(
        &mut self,
        jobs: &BTreeMap<u64, JobTotals>,
        replaced: &BTreeSet<u64>,
        mut about: impl FnMut(u64) -> About,
    ) -> Vec<JobView> {
        self.update(jobs, replaced);
        self.seen = jobs.keys().copied().collect();

        let mut other = JobTotals::default();
        let mut rows = Vec::new();
        for (id, all) in jobs {
            match self.shown.get(id) {
                Some(before) => {
                    other.add(before);
                    rows.push((all, JobView::new(about(*id), &all.less(before), all)));
                }
                None => other.add(all),
            }
        }
        rows.sort_by_key(|(all, _)| std::cmp::Reverse(all.cpu_ns));
        let mut views: Vec<JobView> = rows.into_iter().map(|(_, view)| view).collect();
        let others = About { name: OTHER.into(), cpu_waiting_seconds: None };
        views.push(JobView::new(others, &other, &other));
        views
    }

    fn update(&mut self, jobs: &BTreeMap<u64, JobTotals>, replaced: &BTreeSet<u64>) {
        self.shown.retain(|id, _| jobs.contains_key(id) && !replaced.contains(id));
        let is_candidate =
            |id: &u64| *id != u64::from(COSCHED_JOB_OTHER) && !self.shown.contains_key(id) && !replaced.contains(id);
        let mut waiting: Vec<u64> = jobs.keys().copied().filter(is_candidate).collect();
        waiting.sort_by_key(|id| std::cmp::Reverse(jobs[id].cpu_ns));

        for id in waiting {
            if self.shown.len() >= self.limit {
                let Some(last) = self.shown.keys().copied().min_by_key(|id| jobs[id].cpu_ns) else { return };
                if jobs[&id].cpu_ns <= jobs[&last].cpu_ns / 4 * LEAD_QUARTERS {
                    return;
                }
                self.shown.remove(&last);
            }
            let before = if self.seen.contains(&id) { jobs[&id] } else { JobTotals::default() };
            self.shown.insert(id, before);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(cpu: &[(u64, u64)]) -> BTreeMap<u64, JobTotals> {
        cpu.iter()
            .map(|(id, s)| (*id, JobTotals { cpu_ns: s * 1_000_000_000, fair_ns: 1_000_000_000, boosts: *s }))
            .collect()
    }

    fn view(top: &mut TopJobs, cpu: &[(u64, u64)]) -> Vec<(String, u64)> {
        let about = |id| About { name: format!("job{id}"), cpu_waiting_seconds: None };
        let views = top.view(&jobs(cpu), &BTreeSet::new(), about);
        views.into_iter().map(|v| (v.job, v.boosts)).collect()
    }

    fn row(name: &str, boosts: u64) -> (String, u64) {
        (name.into(), boosts)
    }

    #[test]
    fn the_largest_are_shown_and_the_rest_is_other() {
        let mut top = TopJobs::new(2);
        let rows = view(&mut top, &[(0, 1), (1, 10), (2, 30), (3, 20)]);
        assert_eq!(rows, [row("job2", 30), row("job3", 20), row("other", 11)]);
    }

    #[test]
    fn a_job_that_comes_late_starts_at_zero_and_other_keeps_the_rest() {
        let mut top = TopJobs::new(1);
        assert_eq!(view(&mut top, &[(1, 10), (2, 8)]), [row("job1", 10), row("other", 8)]);
        // Only a little ahead: nothing changes.
        assert_eq!(view(&mut top, &[(1, 10), (2, 12)]), [row("job1", 10), row("other", 12)]);
        assert_eq!(view(&mut top, &[(1, 10), (2, 20)]), [row("job2", 0), row("other", 30)]);
        assert_eq!(view(&mut top, &[(1, 10), (2, 25)]), [row("job2", 5), row("other", 30)]);
    }

    #[test]
    fn a_new_job_that_is_large_at_once_is_shown_from_zero_on() {
        let mut top = TopJobs::new(1);
        view(&mut top, &[(1, 10)]);
        assert_eq!(view(&mut top, &[(1, 10), (2, 100)]), [row("job2", 100), row("other", 10)]);
    }

    #[test]
    fn of_two_jobs_with_one_name_the_one_that_lives_is_shown() {
        let mut top = TopJobs::new(2);
        let about = |_| About { name: "/unit".into(), cpu_waiting_seconds: None };
        let mut rows = |cpu: &[(u64, u64)], replaced: &[u64]| -> Vec<(String, u64)> {
            let views = top.view(&jobs(cpu), &replaced.iter().copied().collect(), about);
            views.into_iter().map(|v| (v.job, v.boosts)).collect()
        };
        assert_eq!(rows(&[(1, 50)], &[]), [row("/unit", 50), row("other", 0)]);
        assert_eq!(rows(&[(1, 50), (2, 3)], &[1]), [row("/unit", 3), row("other", 50)]);
        // Its burial changes nothing.
        assert_eq!(rows(&[(0, 50), (2, 4)], &[]), [row("/unit", 4), row("other", 50)]);
    }

    #[test]
    fn a_list_of_none_is_all_other() {
        assert_eq!(view(&mut TopJobs::new(0), &[(1, 10), (2, 5)]), [row("other", 15)]);
    }

    #[test]
    fn fairness_is_absent_while_nothing_is_due() {
        let idle = BTreeMap::from([(1, JobTotals { cpu_ns: 5, fair_ns: 0, boosts: 0 })]);
        let about = |_| About { name: "a".into(), cpu_waiting_seconds: Some(1.5) };
        let views = TopJobs::new(1).view(&idle, &BTreeSet::new(), about);
        assert_eq!((views[0].fairness_ratio, views[0].cpu_waiting_seconds), (None, Some(1.5)));
    }
}
