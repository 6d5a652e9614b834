// SPDX-License-Identifier: GPL-2.0-only
//! `policy recommend`: which preset fits what the running scheduler does, and why.
//!
//! The advice is a function of what was seen, and changes nothing. It names the figures that it was judged by, so that
//! whoever knows better can see where it is wrong.

use std::time::Duration;

use serde::Serialize;

use crate::jobs::{JobView, OTHER};
use crate::snapshot::{Runnable, Snapshot};

/// Messages that a look at the scheduler takes: a question and an answer, over a socket like any other.
const MESSAGES_PER_LOOK: u64 = 2;
/// With fewer runnable tasks on a busy CPU there is nothing to coordinate: whoever has a message runs. A judgement: one
/// task for each, and one in ten looks that finds another.
const SHARED_TASKS: f64 = 1.1;
/// With fewer messages in a slice of the receivers' CPU time there are next to none. A judgement.
const HARDLY_ANY: f64 = 0.1;
/// With fewer, most turns of a receiver pass without a message, and a boost hardly helps. A judgement.
const COARSE_GRAIN: f64 = 1.0;
/// With fewer, demand-based coscheduling begins to do worse: at 2.6 a job took three times as long as alone, against
/// nine times without (thesis 5.4.3).
const FINE_GRAIN: f64 = 9.0;
/// Fewer messages in all may be chance. A judgement.
const ENOUGH_MESSAGES: u64 = 100;
/// A job with a smaller part of all boosts is none of those that are to be coordinated. A judgement.
const SMALL_PART: f64 = 0.1;

/// How far to trust an advice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// There is a doubt, which is among the reasons.
    Low,
    /// There is none.
    High,
}

/// Which preset fits, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// Its name; absent if nothing can be judged.
    pub preset: Option<&'static str>,
    /// How far to trust it.
    pub confidence: Confidence,
    /// Sentences, the weightiest first.
    pub reasons: Vec<String>,
    /// What it was judged by.
    pub figures: Figures,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Figures {
    /// For how long, s.
    pub seconds: f64,
    /// Messages that arrived for a known receiver, without those of the looks at the scheduler.
    pub messages: u64,
    /// Messages that arrived at sockets whose receiver is not known.
    pub messages_unmapped: u64,
    /// For each slice of CPU time of the jobs that were boosted, or of all jobs if none was: at least so many for each
    /// slice of the receivers'. Absent if that was less than a slice.
    pub messages_per_slice: Option<f64>,
    /// Fraction of arrivals that found their receiver running.
    pub coscheduling_degree: Option<f64>,
    /// Receives that found nothing and slept.
    pub sleeps: u64,
    /// Receives that found nothing and spun before.
    pub spins: u64,
    /// Times that a task lost its CPU while it polled in vain.
    pub polls: u64,
    /// Times that one was taken off its CPU for that.
    pub parks: u64,
    /// Runnable tasks on a CPU that had any, on the average. Absent if none had.
    pub tasks_per_busy_cpu: Option<f64>,
    /// Times that a receiver ran ahead of the fair order.
    pub boosts: u64,
    /// Jobs whose receivers did, more than now and then.
    pub boosted_jobs: usize,
}

impl Figures {
    fn new(before: &Snapshot, after: &Snapshot, runnable: &[Runnable], elapsed: Duration) -> Figures {
        let counted = |name: &str| after.counter(name).saturating_sub(before.counter(name));
        let jobs: Vec<JobView> = after.jobs.iter().map(|job| since(job, &before.jobs)).collect();
        let boosts: u64 = jobs.iter().map(|job| job.boosts).sum();
        // All of them if there are no boosts.
        let is_boosted = |job: &&JobView| job.boosts as f64 >= SMALL_PART * boosts as f64;
        let cpu_seconds: f64 = jobs.iter().filter(is_boosted).map(|job| job.cpu_seconds).sum();
        let slices = 1e6 * cpu_seconds / f64::from(after.policy.choices.slice_us.unwrap_or(u32::MAX));
        let (arrivals, coscheduled) = (counted("arrivals"), counted("arrivals_coscheduled"));
        let messages = arrivals.saturating_sub(MESSAGES_PER_LOOK * runnable.len() as u64);
        let tasks: u64 = runnable.iter().map(|look| look.tasks).sum();
        let busy_cpus: u64 = runnable.iter().map(|look| look.busy_cpus).sum();
        Figures {
            seconds: elapsed.as_secs_f64(),
            messages,
            messages_unmapped: counted("arrivals_unmapped"),
            messages_per_slice: (slices >= 1.0).then(|| messages as f64 / slices),
            coscheduling_degree: (arrivals > 0).then(|| coscheduled as f64 / arrivals as f64),
            sleeps: counted("sleeps"),
            spins: counted("spins"),
            polls: counted("polls"),
            parks: counted("parks"),
            tasks_per_busy_cpu: (busy_cpus > 0).then(|| tasks as f64 / busy_cpus as f64),
            boosts,
            boosted_jobs: jobs.iter().filter(is_boosted).filter(|job| job.boosts > 0 && job.job != OTHER).count(),
        }
    }

    fn receivers_poll(&self) -> bool {
        self.polls + self.parks > 0
    }
}

/// What `job` has used since it was in the list `before`.
fn since(job: &JobView, before: &[JobView]) -> JobView {
    let then = before.iter().find(|then| then.job == job.job);
    let (cpu_seconds, boosts) = then.map_or((0.0, 0), |then| (then.cpu_seconds, then.boosts));
    JobView {
        cpu_seconds: (job.cpu_seconds - cpu_seconds).max(0.0),
        boosts: job.boosts.saturating_sub(boosts),
        ..job.clone()
    }
}

/// Which preset fits what happened between two moments, `elapsed` apart, with what was `runnable` at each look.
pub fn advise(before: &Snapshot, after: &Snapshot, runnable: &[Runnable], elapsed: Duration) -> Advice {
    let figures = Figures::new(before, after, runnable, elapsed);
    let (preset, reasons, doubts) = match cannot_judge(before, after) {
        Some(reason) => (None, vec![reason], vec![]),
        None => judge(&figures),
    };
    let sure = preset.is_some() && doubts.is_empty();
    Advice {
        preset,
        confidence: if sure { Confidence::High } else { Confidence::Low },
        reasons: [reasons, doubts].concat(),
        figures,
    }
}

/// Why nothing can be said, if so.
fn cannot_judge(before: &Snapshot, after: &Snapshot) -> Option<String> {
    let hooks = &after.hooks;
    if before.pid != after.pid {
        return Some("the scheduler was started anew meanwhile, and counts from zero: ask again".into());
    }
    if before.policy != after.policy {
        let (old, new) = (&before.policy.name, &after.policy.name);
        return Some(format!("the policy changed from {old} to {new} meanwhile: ask again"));
    }
    if hooks.resting.is_empty() && !hooks.attached.is_empty() {
        return None;
    }
    Some(match hooks.resting.is_empty() {
        false => format!(
            "nothing can be judged while the hooks rest, and under {} they do: wake them with 'policy set dcs-sb', \
             and ask again",
            after.policy.name
        ),
        true => "no hook is attached, so no message is seen: 'check' says what this kernel lacks".into(),
    })
}

type Judgement = (Option<&'static str>, Vec<String>, Vec<String>);

/// The preset, the reasons, and the doubts.
fn judge(figures: &Figures) -> Judgement {
    if let Some(reason) = nothing_to_coordinate(figures) {
        return (Some("local"), vec![reason], vec![]);
    }
    let per_slice = figures.messages_per_slice.unwrap_or(0.0);
    let mut doubts = Vec::new();
    if figures.messages < ENOUGH_MESSAGES {
        doubts.push(format!("only {} messages arrived: watch for longer with --seconds", figures.messages));
    }
    if per_slice < COARSE_GRAIN {
        if figures.boosts == 0 {
            doubts.push(
                "nothing was boosted, so the CPU time is that of all jobs: the receivers' may be far less".into(),
            );
        }
        let rare = format!(
            "messages are rare, {per_slice:.2} for each slice of the receivers' CPU time: a boost hardly helps"
        );
        return match per_slice >= HARDLY_ANY && figures.receivers_poll() {
            true => (Some("sb"), vec![rare, "receivers poll: under sb they leave the CPU meanwhile".into()], doubts),
            false => (Some("local"), vec![rare], doubts),
        };
    }
    if per_slice < FINE_GRAIN {
        doubts.push(format!("with fewer than {FINE_GRAIN} messages a slice, coscheduling gains less (thesis 5.4.3)"));
    }
    let often = format!("messages come often, {per_slice:.1} for each slice of the receivers' CPU time");
    let shared = figures.tasks_per_busy_cpu.unwrap_or(0.0);
    let mut reasons = vec![often, format!("CPUs are shared, by {shared:.1} tasks on the average")];
    reasons.extend(how_receivers_wait(figures));
    if figures.boosted_jobs >= 2 {
        reasons.push(several_jobs(figures.boosted_jobs));
    }
    (Some("dcs-sb"), reasons, doubts)
}

/// Why every node may as well be for itself, if so.
fn nothing_to_coordinate(figures: &Figures) -> Option<String> {
    if figures.messages == 0 {
        return Some(match figures.messages_unmapped {
            0 => "no message arrived".into(),
            n => format!("no message arrived but {n} at sockets that no task has received on"),
        });
    }
    match figures.tasks_per_busy_cpu {
        None => return Some("the CPUs are idle: there is nothing to coordinate, and the hooks only cost".into()),
        Some(tasks) if tasks < SHARED_TASKS => {
            return Some(format!(
                "a busy CPU has {tasks:.2} runnable tasks: there is nothing to coordinate, and the hooks only cost"
            ));
        }
        Some(_) => {}
    }
    match figures.messages_per_slice {
        None => Some("the jobs used less than a slice of CPU time: there is nothing to coordinate".into()),
        Some(_) => None,
    }
}

fn how_receivers_wait(figures: &Figures) -> Vec<String> {
    let mut reasons = Vec::new();
    if figures.receivers_poll() {
        reasons.push("receivers poll: under dcs-sb one that polls in vain leaves the CPU to the others".into());
    }
    if figures.sleeps + figures.spins > 0 {
        reasons.push("receivers sleep: under dcs-sb they spin before, which spares most switches".into());
    }
    if reasons.is_empty() {
        reasons.push("how receivers wait was not seen: most messages were there before they looked".into());
    }
    reasons
}

fn several_jobs(n: usize) -> String {
    format!(
        "{n} jobs were boosted: if they share CPUs, try 'policy set dcs-sb --epochs true', which has all nodes go from \
         job to job; with caution, as beside busy competitors it grants fewer boosts (thesis 3.3), and compare"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    use cosched_rules::presets;

    const SECOND: Duration = Duration::from_secs(1);

    /// A moment under the preset `policy`, the hooks at work if it wants them.
    fn moment(policy: &str, counters: &[(&str, u64)], jobs: &[(&str, f64, u64)]) -> Snapshot {
        let policy = presets::find(policy).unwrap().policy;
        let state = if policy.needs_hooks() { "attached" } else { "resting" };
        let mut hooks = json!({ "attached": [], "resting": [], "missing": [] });
        hooks[state] = json!(["on_readable"]);
        let job = |(job, cpu_seconds, boosts): &(&str, f64, u64)| json!({ "job": job, "cpu_seconds": cpu_seconds, "boosts": boosts, "fair_share_seconds": 1.0 });
        let counters: serde_json::Map<_, _> = counters.iter().map(|(name, n)| (name.to_string(), json!(n))).collect();
        serde_json::from_value(json!({
            "version": "", "kernel": "", "pid": 1, "uptime_seconds": 0.0, "policy": policy.view(), "job_by": "cgroup",
            "costs": { "latency_us": 1.0, "overhead_us": 1.0, "switch_us": 1.0, "source": "" }, "hooks": hooks,
            "memory": { "resident_bytes": 0, "maps_bytes": 0 }, "runnable": Runnable::default(), "counters": counters,
            "endpoint_arrivals": {},
            "granted": {}, "denied": {}, "arrival_to_run": { "count": 0, "sum_seconds": 0.0, "buckets": [] },
            "gang_skew": { "turns": 0, "sum_seconds": 0.0, "mean_seconds": 0.0, "max_seconds": 0.0 },
            "jobs": jobs.iter().map(job).collect::<Vec<_>>(),
        }))
        .unwrap()
    }

    /// So many tasks on each of two CPUs.
    fn shared(tasks: u32) -> Runnable {
        Runnable::new(&[tasks, tasks], 2)
    }

    /// The advice after a second under dcs in which one job was boosted and used 0.4 s, which is 20 slices. `counters`
    /// are without the messages of the look.
    fn after_a_second(counters: &[(&str, u64)], tasks: u32) -> Advice {
        let before = moment("dcs", &[("arrivals", 7), ("polls", 3)], &[("/a", 5.0, 9), ("other", 90.0, 4)]);
        let mut after = moment("dcs", &[("arrivals", 9), ("polls", 3)], &[("/a", 5.4, 39), ("other", 91.6, 5)]);
        counters.iter().for_each(|(name, n)| *after.counters.entry(name.to_string()).or_default() += n);
        advise(&before, &after, &[shared(tasks)], SECOND)
    }

    #[test]
    fn the_preset_follows_from_messages_waits_and_load() {
        use Confidence::{High, Low};
        let sleep = ("sleeps", 50);
        for (counters, tasks, preset, confidence, reason) in [
            (&[][..], 5, "local", High, "no message arrived"),
            (&[("arrivals_unmapped", 4)], 5, "local", High, "but 4 at sockets that no task has received on"),
            (&[("arrivals", 5000), sleep], 1, "local", High, "a busy CPU has 1.00 runnable tasks"),
            (&[("arrivals", 5000), sleep], 0, "local", High, "the CPUs are idle"),
            (&[("arrivals", 5000), sleep], 5, "dcs-sb", High, "messages come often, 250.0 for each slice"),
            (&[("arrivals", 5000), sleep], 5, "dcs-sb", High, "receivers sleep: under dcs-sb they spin before"),
            (&[("arrivals", 5000), ("spins", 50)], 5, "dcs-sb", High, "receivers sleep"),
            (&[("arrivals", 5000), ("polls", 20)], 5, "dcs-sb", High, "receivers poll: under dcs-sb"),
            (&[("arrivals", 5000), ("parks", 20)], 5, "dcs-sb", High, "receivers poll: under dcs-sb"),
            (&[("arrivals", 5000)], 5, "dcs-sb", High, "how receivers wait was not seen"),
            (&[("arrivals", 190)], 5, "dcs-sb", High, "messages come often, 9.5 for each slice"),
            (&[("arrivals", 170)], 5, "dcs-sb", Low, "coscheduling gains less (thesis 5.4.3)"),
            (&[("arrivals", 24), sleep], 5, "dcs-sb", Low, "only 24 messages arrived"),
            (&[("arrivals", 16), sleep], 5, "local", Low, "messages are rare, 0.80 for each slice"),
            (&[("arrivals", 16), ("polls", 20)], 5, "sb", Low, "receivers poll: under sb"),
            (&[("arrivals", 1), ("polls", 20)], 5, "local", Low, "messages are rare, 0.05 for each slice"),
        ] {
            let advice = after_a_second(counters, tasks);
            assert_eq!((advice.preset, advice.confidence), (Some(preset), confidence), "{counters:?}: {advice:?}");
            assert!(advice.reasons.iter().any(|r| r.contains(reason)), "{counters:?}: no {reason:?} in {advice:?}");
            assert!(presets::find(preset).is_ok());
        }
    }

    #[test]
    fn the_figures_are_of_the_time_between() {
        let before = moment("dcs", &[("arrivals", 100), ("arrivals_coscheduled", 90)], &[("/a", 5.0, 9)]);
        let counters = [("arrivals", 300), ("arrivals_coscheduled", 140), ("sleeps", 3)];
        let after = moment("dcs", &counters, &[("/a", 5.25, 10), ("/new", 0.25, 4), ("/idle", 7.0, 0)]);
        let looks = [shared(4), shared(1), Runnable::new(&[0, 1], 2)];
        let figures = advise(&before, &after, &looks, SECOND).figures;
        assert_eq!((figures.messages, figures.coscheduling_degree, figures.sleeps), (194, Some(0.25), 3));
        assert_eq!((figures.boosts, figures.boosted_jobs), (5, 2));
        assert_eq!(figures.messages_per_slice, Some(194.0 / 25.0), "in 0.5 s");
        assert_eq!(figures.tasks_per_busy_cpu, Some(11.0 / 5.0));
    }

    #[test]
    fn several_jobs_are_to_try_epochs() {
        let before = moment("dcs", &[], &[]);
        for (boosts, tries) in [(0, false), (1, false), (30, true)] {
            let jobs = [("/a", 0.2, 30), ("/b", 0.2, boosts), ("other", 0.2, 30)];
            let advice = advise(&before, &moment("dcs", &[("arrivals", 5000)], &jobs), &[shared(3)], SECOND);
            assert_eq!(advice.preset, Some("dcs-sb"));
            assert_eq!(advice.reasons.iter().any(|r| r.contains("--epochs true")), tries, "{advice:?}");
        }
    }

    #[test]
    fn without_boosts_rare_messages_are_in_doubt() {
        let after = moment("sb", &[("arrivals", 150), ("sleeps", 1)], &[("/a", 4.0, 0)]);
        let advice = advise(&moment("sb", &[], &[]), &after, &[shared(3)], SECOND);
        assert_eq!((advice.preset, advice.confidence), (Some("local"), Confidence::Low));
        assert!(advice.reasons.iter().any(|r| r.starts_with("nothing was boosted")), "{advice:?}");
    }

    #[test]
    fn nothing_is_judged_that_was_not_seen() {
        let dcs = || moment("dcs", &[("arrivals", 5000)], &[]);
        let none = Snapshot { hooks: Default::default(), ..dcs() };
        for (before, after, reason) in [
            (moment("local", &[], &[]), moment("local", &[], &[]), "wake them with 'policy set dcs-sb'"),
            (moment("gang", &[], &[]), moment("gang", &[], &[]), "under gang they do"),
            (none.clone(), none, "no hook is attached"),
            (moment("sb", &[], &[]), dcs(), "the policy changed from sb to dcs meanwhile"),
            (Snapshot { pid: 2, ..dcs() }, dcs(), "the scheduler was started anew"),
        ] {
            let advice = advise(&before, &after, &[shared(3)], SECOND);
            assert_eq!((advice.preset, advice.reasons.len()), (None, 1), "{advice:?}");
            assert!(advice.reasons[0].contains(reason), "{advice:?}");
        }
    }
}
