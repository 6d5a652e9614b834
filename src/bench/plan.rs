// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment measures, in which order.

use std::time::Duration;

use super::contender::Contender;
use super::scenario::Scenario;

/// Runs alone say how fast the machine is today. They need not be long.
const ALONE_LONGEST: Duration = Duration::from_secs(2);

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub scenario: Scenario,
    pub scheduler: Contender,
    pub length: Duration,
}

/// When each kind of job that there is, by receiver, grain and threads, is measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    /// Before everything else, so many times: one that the machine's other users spoil must not count.
    First(usize),
    /// Once at the beginning of each repeat: a machine that gets slower in a long experiment is slower for
    /// this too.
    EachRepeat,
}

/// Every scenario under every scheduler, `repeats` times, and the runs alone.
///
/// Schedulers take turns, so that a machine which gets slower meanwhile is slower for all of them. Every
/// other round goes backwards: what favours the first favours the last too, and the next round begins with
/// the scheduler that is loaded already.
pub fn plan(
    scenarios: &[Scenario],
    schedulers: &[Contender],
    alone: Alone,
    repeats: usize,
    length: Duration,
) -> Vec<Step> {
    let mut steps = Vec::new();
    let runs_alone = runs_alone(scenarios, length);
    if let Alone::First(times) = alone {
        steps.extend((0..times).flat_map(|_| runs_alone.clone()));
    }
    let mut order: Vec<&Contender> = schedulers.iter().collect();
    for _ in 0..repeats {
        if alone == Alone::EachRepeat {
            steps.extend(runs_alone.clone());
        }
        for &scenario in scenarios {
            steps.extend(order.iter().map(|&scheduler| Step { scenario, scheduler: scheduler.clone(), length }));
            order.reverse();
        }
    }
    steps
}

/// One for each kind of job.
fn runs_alone(scenarios: &[Scenario], length: Duration) -> Vec<Step> {
    let mut kinds: Vec<Scenario> = Vec::new();
    for alone in scenarios.iter().flat_map(|scenario| (0..scenario.jobs).map(|job| scenario.alone(job))) {
        if !kinds.contains(&alone) {
            kinds.push(alone);
        }
    }
    let length = length.min(ALONE_LONGEST);
    kinds.into_iter().map(|scenario| Step { scenario, scheduler: Contender::Eevdf, length }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::contender::Contenders;
    use crate::bench::scenario::Scenarios;

    fn plan_of(scenarios: &str, alone: Alone) -> Vec<Step> {
        let Contenders(schedulers) = "eevdf,local,dcs".parse().unwrap();
        let Scenarios(scenarios) = scenarios.parse().unwrap();
        plan(&scenarios, &schedulers, alone, 5, Duration::from_secs(4))
    }

    fn steps() -> Vec<Step> {
        plan_of("spin-4,block-4", Alone::First(3))
    }

    fn is_alone(step: &Step) -> bool {
        step.scenario.competitors == 0
    }

    #[test]
    fn measures_everything_as_often() {
        let steps = steps();
        assert_eq!(steps.len(), 2 * 3 + 5 * 2 * 3);
        for scenario in ["spin-4", "block-4"] {
            for scheduler in ["eevdf", "local", "dcs"] {
                let is_it = |s: &&Step| s.scenario.to_string() == scenario && s.scheduler.to_string() == scheduler;
                assert_eq!(steps.iter().filter(is_it).count(), 5);
            }
        }
    }

    #[test]
    fn loads_a_scheduler_once_a_repeat() {
        let loads = |pair: &&[Step]| pair[0].scheduler == Contender::Eevdf && pair[1].scheduler != Contender::Eevdf;
        assert_eq!(steps().windows(2).filter(loads).count(), 5);
    }

    #[test]
    fn runs_alone_come_first_or_in_each_repeat() {
        let steps = steps();
        assert!(steps[..6].iter().all(|s| is_alone(s) && s.scheduler == Contender::Eevdf));
        assert!(!steps[6..].iter().any(is_alone));

        let steps = plan_of("spin-4,spin-8,spin-2x2,block-4", Alone::EachRepeat);
        assert_eq!(steps.len(), 5 * (2 + 4 * 3));
        for repeat in steps.chunks(14) {
            assert!(repeat[..2].iter().all(is_alone) && !repeat[2..].iter().any(is_alone));
            assert!(repeat[..2].iter().all(|s| s.scenario.jobs == 1 && s.length == ALONE_LONGEST));
        }
    }

    #[test]
    fn every_kind_of_job_is_measured_alone() {
        let alone = |scenarios| -> Vec<String> {
            let steps = plan_of(scenarios, Alone::First(1));
            steps.iter().filter(|s| is_alone(s)).map(|step| step.scenario.to_string()).collect()
        };
        assert_eq!(alone("spin-4,spin-2x2"), ["spin-0"]);
        assert_eq!(alone("spin-2x2-mixed,spin-4,spin-2x1-200us"), ["spin-0", "spin-0-200us"]);
        assert_eq!(alone("spin-4-t3,block-2x2-mixed-t2"), ["spin-0-t3", "block-0-t2", "block-0-200us-t2"]);
    }
}
