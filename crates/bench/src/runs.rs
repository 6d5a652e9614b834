// SPDX-License-Identifier: GPL-2.0-only
//! The measurements that an experiment has done, and which of them somebody else has spoilt.

use crate::contender::Contender;
use crate::plan::Step;
use crate::protocol::Rules;
use crate::scenario::Scenario;
use crate::stats::Figures;

/// One measurement, done.
pub struct Run {
    pub step: Step,
    pub rules: Rules,
    /// By job, and at least one.
    pub figures: Vec<Figures>,
    /// The first attempt was disturbed.
    pub again: bool,
}

/// Runs of one kind are measured to be compared with each other.
pub type Kind<'a> = (Scenario, &'a Contender);

impl Run {
    pub fn kind(&self) -> Kind<'_> {
        (self.step.scenario, &self.step.scheduler)
    }
}

/// How slow a node may be before its figures are in doubt: compared with its fastest run of all, of which
/// interrupts and switches take their part too, and with the fastest of the same kind.
const SLOW: f64 = 0.6;
const SLOW_OF_ITS_KIND: f64 = 0.8;

/// The runs, by their place, during which somebody else used the CPUs that the nodes are made of.
pub fn disturbed(runs: &[Run]) -> Vec<bool> {
    let fastest = |is_one: &dyn Fn(&Run) -> bool| {
        let speeds = runs.iter().filter(|run| is_one(run)).filter_map(speed);
        speeds.fold(0.0, f64::max)
    };
    let of_all = fastest(&|_| true);
    let is_disturbed = |run: &Run| {
        let of_its_kind = fastest(&|other| other.kind() == run.kind());
        let limit = (SLOW * of_all).max(SLOW_OF_ITS_KIND * of_its_kind);
        speed(run).is_some_and(|speed| speed < limit)
    };
    runs.iter().map(is_disturbed).collect()
}

/// Of the slowest node: every job of a run has the same nodes.
fn speed(run: &Run) -> Option<f64> {
    run.figures.first()?.node_speed_min
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use std::time::Duration;

    fn figures(competitors: usize, rate: f64, per_cpu_s: f64) -> Figures {
        Figures {
            round_trips_per_s: rate,
            cpu_share: 0.2,
            fairness: 1.0,
            fairness_by_node: vec![1.0, 1.0],
            competitor_fairness_min: (competitors > 0).then_some(0.98),
            competitor_shares: vec![0.2; competitors],
            round_trips_per_cpu_s: per_cpu_s,
            node_speed_min: (competitors > 0).then_some(1e5),
            p50_us: 61.0,
            p99_us: 90.0,
            max_us: rate,
            round_trips_by_log2_us: vec![],
            ms_by_log2_us: vec![],
        }
    }

    /// For each job its rate and its round trips per CPU second.
    pub fn run(scenario: &str, scheduler: &str, jobs: &[(f64, f64)]) -> Run {
        let scenario: Scenario = scenario.parse().unwrap();
        let figures = jobs.iter().map(|&(rate, per_cpu_s)| figures(scenario.competitors, rate, per_cpu_s)).collect();
        let step = Step { scenario, scheduler: scheduler.parse().unwrap(), length: Duration::from_secs(4), seed: 0 };
        Run { step, rules: Rules::none(), figures, again: false }
    }

    pub fn runs() -> Vec<Run> {
        vec![
            run("spin-0", "eevdf", &[(16_000.0, 8_000.0)]),
            run("spin-4", "eevdf", &[(400.0, 1_000.0)]),
            run("spin-4", "dcs", &[(2_000.0, 5_000.0)]),
            run("spin-4", "eevdf", &[(300.0, 900.0)]),
            run("spin-4", "dcs", &[(1_000.0, 3_000.0)]),
            run("spin-4", "eevdf", &[(500.0, 1_100.0)]),
            run("spin-4", "dcs", &[(1_600.0, 4_000.0)]),
        ]
    }

    pub fn runs_of_two() -> Vec<Run> {
        let two = [
            run("spin-2x2", "eevdf", &[(100.0, 400.0), (200.0, 800.0)]),
            run("spin-2x2", "dcs", &[(900.0, 4_000.0), (500.0, 2_000.0)]),
            run("spin-2x2", "dcs", &[(900.0, 4_000.0), (700.0, 2_000.0)]),
        ];
        runs().into_iter().chain(two).collect()
    }

    #[test]
    fn a_slow_node_is_disturbed() {
        let mut runs = runs();
        assert!(!disturbed(&runs).contains(&true));
        runs[3].figures[0].node_speed_min = Some(7e4);
        assert_eq!(disturbed(&runs).iter().position(|&it| it), Some(3), "slower than others of its kind");
        for run in &mut runs[4..] {
            run.figures[0].node_speed_min = Some(2e5);
        }
        assert!(disturbed(&runs)[1], "slower than others of any kind");
    }
}
