// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment measures, in which order.

use std::ops::Range;
use std::time::Duration;

use super::contender::Contender;
use super::receiver::Receiver;
use super::scenario::Scenario;

/// Runs alone say how fast the machine is today. They need not be long.
const ALONE_LONGEST: Duration = Duration::from_secs(1);

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub scenario: Scenario,
    pub scheduler: Contender,
    pub length: Duration,
    /// What the moments are drawn from at which workers begin. All schedulers of a repeat have the same.
    pub seed: u64,
}

/// Whether each kind of job that there is, by receiver, grain and threads, is measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    Never,
    /// Under every scheduler, before everything else and at the end: what has changed meanwhile was no baseline.
    FirstAndLast,
}

/// Every scenario under every scheduler, once for each of the `seeds`, and the runs alone.
///
/// Schedulers take turns, so that a machine which gets slower meanwhile is slower for all of them. Every other repeat
/// of a scenario goes backwards: what favours the first favours the last too.
pub fn plan(
    scenarios: &[Scenario],
    schedulers: &[Contender],
    alone: Alone,
    seeds: Range<u64>,
    length: Duration,
) -> Vec<Step> {
    let others = schedulers.iter().filter(|scheduler| **scheduler != Contender::KERNEL);
    let everybody = [&Contender::KERNEL].into_iter().chain(others);
    let runs_alone: Vec<Step> = match alone {
        Alone::Never => Vec::new(),
        Alone::FirstAndLast => everybody.flat_map(|scheduler| runs_alone(scenarios, scheduler, length)).collect(),
    };
    let mut steps = runs_alone.clone();
    for (repeat, seed) in seeds.enumerate() {
        for (place, &scenario) in scenarios.iter().enumerate() {
            let step = |scheduler: &Contender| Step { scenario, scheduler: scheduler.clone(), length, seed };
            match (repeat + place) % 2 {
                0 => steps.extend(schedulers.iter().map(step)),
                _ => steps.extend(schedulers.iter().rev().map(step)),
            }
        }
    }
    steps.extend(runs_alone.into_iter().rev());
    steps
}

/// One for each kind of job, and under the kernel's own scheduler one more if it sleeps: the CPUs awake.
fn runs_alone(scenarios: &[Scenario], scheduler: &Contender, length: Duration) -> Vec<Step> {
    let mut kinds: Vec<Scenario> = Vec::new();
    for alone in scenarios.iter().flat_map(|scenario| (0..scenario.jobs).map(|job| scenario.alone(job))) {
        if !kinds.contains(&alone) {
            kinds.push(alone);
        }
    }
    if *scheduler == Contender::KERNEL {
        let sleepers: Vec<Scenario> = kinds.iter().filter(|kind| kind.receiver == Receiver::Block).copied().collect();
        kinds.extend(sleepers.into_iter().map(|kind| Scenario { awake: true, ..kind }));
    }
    let length = length.min(ALONE_LONGEST);
    let step = |scenario| Step { scenario, scheduler: scheduler.clone(), length, seed: 0 };
    kinds.into_iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contender::Contenders;
    use crate::bench::scenario::Scenarios;

    fn plan_of(scenarios: &str) -> Vec<Step> {
        let Contenders(schedulers) = "eevdf,local,dcs".parse().unwrap();
        let Scenarios(scenarios) = scenarios.parse().unwrap();
        plan(&scenarios, &schedulers, Alone::FirstAndLast, 0..4, Duration::from_secs(4))
    }

    fn is_alone(step: &Step) -> bool {
        step.scenario.competitors == 0
    }

    fn is(step: &Step, scenario: &str, scheduler: &str) -> bool {
        step.scenario.to_string() == scenario && step.scheduler.to_string() == scheduler
    }

    #[test]
    fn measures_everything_as_often() {
        let steps = plan_of("spin-4,block-4");
        for scenario in ["spin-4", "block-4"] {
            for scheduler in ["eevdf", "local", "dcs"] {
                let seeds: Vec<u64> =
                    steps.iter().filter(|step| is(step, scenario, scheduler)).map(|step| step.seed).collect();
                assert_eq!(seeds, [0, 1, 2, 3], "{scenario} {scheduler}");
            }
        }
    }

    #[test]
    fn no_scheduler_is_first_more_often_than_last() {
        for scenarios in ["spin-4", "spin-4,block-4", "spin-4,block-4,spin-8"] {
            let steps = plan_of(scenarios);
            for scenario in scenarios.split(',') {
                let order: Vec<String> = steps
                    .iter()
                    .filter(|step| step.scenario.to_string() == scenario)
                    .map(|step| step.scheduler.to_string())
                    .collect();
                let first = order.chunks(3).filter(|repeat| repeat[0] == "eevdf").count();
                let last = order.chunks(3).filter(|repeat| repeat[2] == "eevdf").count();
                assert_eq!((first, last), (2, 2), "{scenarios}: {scenario}");
            }
        }
    }

    #[test]
    fn runs_alone_come_first_and_last_under_every_scheduler() {
        let steps = plan_of("spin-4,block-4");
        let (first, rest) = steps.split_at(7);
        let (middle, last) = rest.split_at(rest.len() - 7);
        assert!(first.iter().chain(last).all(|step| is_alone(step) && step.length == ALONE_LONGEST));
        assert!(!middle.iter().any(is_alone));
        for scheduler in ["eevdf", "local", "dcs"] {
            assert!([first, last].iter().all(|runs| runs.iter().any(|step| is(step, "spin-0", scheduler))));
        }
    }

    #[test]
    fn every_kind_of_job_is_measured_alone() {
        let alone = |scenarios| -> Vec<String> {
            let steps = plan_of(scenarios);
            let first = steps.iter().take_while(|step| is_alone(step) && step.scheduler == Contender::KERNEL);
            first.map(|step| step.scenario.to_string()).collect()
        };
        assert_eq!(alone("spin-4,spin-2x2"), ["spin-0"]);
        assert_eq!(alone("spin-2x2-mixed,spin-4,spin-2x1-200us"), ["spin-0", "spin-0-200us"]);
        let awake = ["block-0-t2-awake", "block-0-200us-t2-awake"];
        let both = [&["spin-0-t3", "block-0-t2", "block-0-200us-t2"][..], &awake].concat();
        assert_eq!(alone("spin-4-t3,block-2x2-mixed-t2"), both);
    }
}
