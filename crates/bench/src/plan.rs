// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment measures, in which order.

use std::ops::Range;
use std::time::Duration;

use crate::contender::Contender;
use crate::receiver::Receiver;
use crate::scenario::Scenario;

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

/// Whether each kind of job that there is, by receiver and grain, is measured alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alone {
    Never,
    /// Under every scheduler, before its first turn and after its last: what has changed meanwhile was no baseline.
    FirstAndLast,
}

/// How often each scenario runs under each scheduler.
#[derive(Clone, Debug)]
pub struct Repeats {
    /// One for each repeat.
    pub seeds: Range<u64>,
    /// How many of them are for schedulers that have the nodes agree ([`Contender::coordinates`]). Their runs take
    /// longer, and differ less.
    pub coordinated: usize,
    /// In how many turns. With one for each repeat, a machine that gets slower meanwhile is slower for all schedulers.
    /// In virtual time none does, and to load a scheduler takes longer than to measure it.
    pub turns: usize,
}

impl Repeats {
    /// In virtual time each scheduler has two turns.
    pub fn new(seeds: Range<u64>, time_is_virtual: bool) -> Repeats {
        let number = (seeds.end - seeds.start) as usize;
        Repeats { turns: if time_is_virtual { number.min(2) } else { number }, coordinated: number, seeds }
    }

    /// What `scheduler` measures in this turn.
    fn of_turn(&self, turn: usize, scheduler: &Contender) -> Range<u64> {
        let all = self.seeds.end - self.seeds.start;
        let number = if scheduler.coordinates() { all.min(self.coordinated as u64) } else { all };
        let up_to = |turn: usize| self.seeds.start + (number * turn as u64).div_ceil(self.turns as u64);
        up_to(turn)..up_to(turn + 1)
    }
}

/// Every scenario under every scheduler, as often as `repeats` has it, and the runs alone.
///
/// Schedulers take turns, in one order and then in the other: what favours the first favours the last too. A turn has
/// all scenarios, since to load a scheduler takes long, and in virtual time longer than to measure it.
pub fn plan(
    scenarios: &[Scenario],
    schedulers: &[Contender],
    alone: Alone,
    repeats: Repeats,
    length: Duration,
) -> Vec<Step> {
    let others = schedulers.iter().filter(|scheduler| **scheduler != Contender::KERNEL);
    let everybody: Vec<&Contender> = [&Contender::KERNEL].into_iter().chain(others).collect();
    let mut steps = Vec::new();
    for turn in 0..repeats.turns {
        let mut order = everybody.clone();
        if turn % 2 == 1 {
            order.reverse();
        }
        for scheduler in order {
            let runs_alone = match alone {
                Alone::Never => Vec::new(),
                Alone::FirstAndLast => runs_alone(scenarios, scheduler, length),
            };
            if turn == 0 {
                steps.extend(runs_alone.iter().cloned());
            }
            let seeds = repeats.of_turn(turn, scheduler);
            for &scenario in scenarios.iter().filter(|_| schedulers.contains(scheduler)) {
                steps.extend(seeds.clone().map(|seed| Step { scenario, scheduler: scheduler.clone(), length, seed }));
            }
            if turn + 1 == repeats.turns {
                steps.extend(runs_alone.into_iter().rev());
            }
        }
    }
    steps
}

/// One for each kind of job. Under the kernel's own scheduler a job that computes is also measured asleep, and a job
/// that sleeps also with the CPUs kept awake ([`Scenario::is_baseline_of`]).
fn runs_alone(scenarios: &[Scenario], scheduler: &Contender, length: Duration) -> Vec<Step> {
    let mut kinds: Vec<Scenario> = Vec::new();
    for alone in scenarios.iter().flat_map(|scenario| (0..scenario.jobs).map(|job| scenario.alone(job))) {
        if !kinds.contains(&alone) {
            kinds.push(alone);
        }
    }
    if *scheduler == Contender::KERNEL {
        let asleep = kinds.iter().map(|kind| Scenario { receiver: Receiver::Block, ..*kind });
        let new: Vec<Scenario> = asleep.filter(|kind| kind.compute_us(0) > 0 && !kinds.contains(kind)).collect();
        kinds.extend(new);
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
    use crate::contender::Contenders;
    use crate::scenario::Scenarios;

    fn plan_of(scenarios: &str) -> Vec<Step> {
        let Contenders(schedulers) = "eevdf,local,dcs".parse().unwrap();
        let Scenarios(scenarios) = scenarios.parse().unwrap();
        plan(&scenarios, &schedulers, Alone::FirstAndLast, Repeats::new(0..4, false), Duration::from_secs(4))
    }

    fn is_alone(step: &Step) -> bool {
        step.scenario.is_alone()
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
    fn in_virtual_time_a_scheduler_has_two_turns() {
        let Contenders(schedulers) = "eevdf,local".parse().unwrap();
        let Scenarios(scenarios) = "spin-4".parse().unwrap();
        let order = |repeats| -> Vec<String> {
            let steps = plan(&scenarios, &schedulers, Alone::Never, repeats, Duration::from_secs(2));
            steps.iter().map(|step| format!("{} {}", step.scheduler, step.seed)).collect()
        };
        let wanted = ["eevdf 0", "eevdf 1", "local 0", "local 1", "local 2", "eevdf 2"];
        assert_eq!(order(Repeats::new(0..3, true)), wanted);
        assert_eq!(order(Repeats::new(0..2, false)), ["eevdf 0", "local 0", "local 1", "eevdf 1"]);
    }

    #[test]
    fn schedulers_that_have_the_nodes_agree_may_do_with_fewer() {
        let Contenders(schedulers) = "eevdf,local,dcs,gang".parse().unwrap();
        let Scenarios(scenarios) = "spin-4".parse().unwrap();
        for time_is_virtual in [true, false] {
            let repeats = Repeats { coordinated: 3, ..Repeats::new(10..15, time_is_virtual) };
            let steps = plan(&scenarios, &schedulers, Alone::Never, repeats, Duration::from_secs(2));
            let seeds = |name| -> Vec<u64> {
                steps.iter().filter(|step| is(step, "spin-4", name)).map(|step| step.seed).collect()
            };
            assert_eq!(seeds("eevdf"), [10, 11, 12, 13, 14]);
            assert_eq!(seeds("local"), seeds("eevdf"), "it does not");
            assert_eq!(seeds("dcs"), [10, 11, 12]);
            assert_eq!(seeds("gang"), seeds("dcs"));
        }
    }

    #[test]
    fn runs_alone_come_first_and_last_under_every_scheduler() {
        let steps = plan_of("spin-4,block-4");
        for (scheduler, kinds) in [("eevdf", 3), ("local", 2), ("dcs", 2)] {
            let own: Vec<&Step> = steps.iter().filter(|step| step.scheduler.to_string() == scheduler).collect();
            let (first, rest) = own.split_at(kinds);
            let (middle, last) = rest.split_at(rest.len() - kinds);
            assert!(first.iter().chain(last).all(|step| is_alone(step) && step.length == ALONE_LONGEST), "{scheduler}");
            assert!(!middle.iter().any(|step| is_alone(step)), "{scheduler}");
            assert!(is(first[0], "spin-0", scheduler) && is(last[kinds - 1], "spin-0", scheduler));
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
        let computing = ["spin-0", "spin-0-200us", "block-0-200us", "block-0-200us-awake"];
        assert_eq!(alone("spin-2x2-mixed,spin-4,spin-2x1-200us"), computing);
        let both = ["spin-0", "block-0", "block-0-200us", "block-0-awake", "block-0-200us-awake"];
        assert_eq!(alone("spin-4-t3,block-2x2-mixed-t2"), both);
    }
}
