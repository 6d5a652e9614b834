// SPDX-License-Identifier: GPL-2.0-only
//! Which figures cannot be true. They are measured again, and if that does not help they are reported as not measured.
//!
//! All efficiencies rest on what a job makes alone. So a baseline that differs from one end of the experiment to the
//! other is none, and a job that makes more of its CPU time beside others than alone was measured wrongly, or was
//! alone.

use crate::runs::{Run, disturbed};
use crate::scenario::Scenario;
use crate::stats::Spread;

/// Beside others a job makes of its CPU time at most what it makes of it alone, give or take what accounting allows.
pub const MOST_EFFICIENT: f64 = 1.05;

/// How far the runs of a baseline may lie apart, over their median.
#[derive(Clone, Copy, Debug)]
pub struct Tolerance(f64);

impl Tolerance {
    /// In virtual time nothing outside the machine counts. In real time somebody else may want the host now and then.
    pub const fn of(time_is_virtual: bool) -> Tolerance {
        Tolerance(if time_is_virtual { 0.05 } else { 0.25 })
    }
}

/// What a job makes of its CPU time alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Baseline {
    /// The most under any scheduler, as medians.
    pub round_trips_per_cpu_s: f64,
    /// Why it is none.
    pub doubt: Option<String>,
}

/// That of a job that is `alone`; none if it was not measured.
pub fn baseline(runs: &[Run], alone: Scenario, tolerance: Tolerance) -> Option<Baseline> {
    let spreads = runs_alone(runs, alone).into_iter().map(|(name, _, spread)| (name, spread)).collect::<Vec<_>>();
    let most = spreads.iter().map(|(_, spread)| spread.median).reduce(f64::max)?;
    let doubt = spreads
        .iter()
        .find(|(_, spread)| spread.range_ratio() > tolerance.0)
        .map(|(name, spread)| format!("{name} made {:.0} to {:.0} round trips per CPU second", spread.min, spread.max));
    Some(Baseline { round_trips_per_cpu_s: most, doubt })
}

/// By scheduler, the runs of this job alone, in all ways that count: their name, places and spread.
fn runs_alone(runs: &[Run], alone: Scenario) -> Vec<(String, Vec<usize>, Spread)> {
    let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
    for (place, run) in runs.iter().enumerate() {
        if !run.step.scenario.is_baseline_of(alone) {
            continue;
        }
        let name = format!("{} under {}", run.step.scenario, run.step.scheduler);
        match groups.iter_mut().find(|(other, _)| *other == name) {
            Some((_, places)) => places.push(place),
            None => groups.push((name, vec![place])),
        }
    }
    let spread = |places: &[usize]| {
        Spread::of(places.iter().flat_map(|&place| runs[place].figures.iter().map(|job| job.round_trips_per_cpu_s)))
    };
    groups
        .into_iter()
        .map(|(name, places)| {
            let spread = spread(&places);
            (name, places, spread)
        })
        .collect()
}

/// The places of the runs to measure again, those first that others are compared with.
pub fn doubtful(runs: &[Run], tolerance: Tolerance) -> Vec<usize> {
    let mut places = Vec::new();
    let mut add = |place| {
        if !places.contains(&place) {
            places.push(place)
        }
    };
    for run in runs.iter().filter(|run| run.step.scenario.is_alone()) {
        let alone = Scenario { awake: false, ..run.step.scenario };
        let moved = runs_alone(runs, alone).into_iter().filter(|(_, _, spread)| spread.range_ratio() > tolerance.0);
        moved.flat_map(|(_, places, _)| places).for_each(&mut add);
    }
    let is_disturbed = disturbed(runs);
    for (place, run) in runs.iter().enumerate() {
        if is_disturbed[place] || (!run.step.scenario.is_alone() && is_too_efficient(runs, run, tolerance)) {
            add(place);
        }
    }
    places
}

fn is_too_efficient(runs: &[Run], run: &Run, tolerance: Tolerance) -> bool {
    let scenario = run.step.scenario;
    run.figures.iter().enumerate().any(|(job, figures)| {
        let alone = baseline(runs, scenario.alone(job % scenario.jobs), tolerance);
        alone.is_some_and(|alone| figures.round_trips_per_cpu_s > MOST_EFFICIENT * alone.round_trips_per_cpu_s)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::tests::run;

    fn of(text: &str) -> Scenario {
        text.parse().unwrap()
    }

    fn runs(alone: [f64; 2], beside: f64) -> Vec<Run> {
        vec![
            run("spin-0", "eevdf", &[(16_000.0, alone[0])]),
            run("spin-4", "dcs", &[(2_000.0, beside)]),
            run("spin-0", "eevdf", &[(16_000.0, alone[1])]),
        ]
    }

    #[test]
    fn a_baseline_that_moved_is_none() {
        let (virtual_time, real_time) = (Tolerance::of(true), Tolerance::of(false));
        let runs = runs([8_000.0, 7_000.0], 5_000.0);
        let baseline = |tolerance| baseline(&runs, of("spin-0"), tolerance).unwrap();
        assert_eq!(baseline(real_time), Baseline { round_trips_per_cpu_s: 7_500.0, doubt: None });
        let doubt = baseline(virtual_time).doubt.unwrap();
        assert_eq!(doubt, "spin-0 under eevdf made 7000 to 8000 round trips per CPU second");
        assert_eq!(doubtful(&runs, virtual_time), [0, 2]);
        assert!(doubtful(&runs, real_time).is_empty());
    }

    #[test]
    fn jobs_beside_each_other_are_no_baseline() {
        let several = |rate: f64| run("spin-3x0", "local", &[(rate, 100.0 * rate), (rate, rate), (rate, rate)]);
        assert!(doubtful(&[several(10.0), several(40.0)], Tolerance::of(true)).is_empty());
    }

    #[test]
    fn nobody_makes_more_of_a_second_than_alone() {
        let time = Tolerance::of(true);
        assert!(doubtful(&runs([8_000.0; 2], 8_300.0), time).is_empty());
        assert_eq!(doubtful(&runs([8_000.0; 2], 8_500.0), time), [1]);
        assert_eq!(doubtful(&runs([267.0; 2], 6_400.0), time), [1], "a baseline thirty times too low");
    }

    #[test]
    fn the_best_baseline_counts() {
        let mut runs = runs([8_000.0; 2], 8_900.0);
        runs.push(run("spin-0", "dcs", &[(16_000.0, 8_800.0)]));
        let best = baseline(&runs, of("spin-0"), Tolerance::of(true)).unwrap();
        assert_eq!(best, Baseline { round_trips_per_cpu_s: 8_800.0, doubt: None });
        assert!(doubtful(&runs, Tolerance::of(true)).is_empty());
        assert_eq!(baseline(&runs, of("block-0"), Tolerance::of(true)), None);
    }

    #[test]
    fn a_job_that_computes_is_held_against_itself_asleep() {
        let asleep = run("block-0-5000us", "eevdf", &[(99.0, 98.0)]);
        let runs = [run("spin-0-5000us", "eevdf", &[(99.0, 50.0)]), asleep, run("spin-0", "eevdf", &[(9.0, 70.0)])];
        let most = |alone| baseline(&runs, of(alone), Tolerance::of(true)).unwrap().round_trips_per_cpu_s;
        assert_eq!([most("spin-0-5000us"), most("block-0-5000us"), most("spin-0")], [98.0, 98.0, 70.0]);
    }

    #[test]
    fn a_cpu_that_is_kept_awake_is_a_baseline_of_its_own() {
        let mut awake = run("block-0", "eevdf", &[(8_500.0, 7_860.0)]);
        awake.step.scenario.awake = true;
        let runs = [run("block-0", "eevdf", &[(8_575.0, 7_470.0)]), awake];
        let best = baseline(&runs, of("block-0"), Tolerance::of(true)).unwrap();
        assert_eq!(best, Baseline { round_trips_per_cpu_s: 7_860.0, doubt: None });
    }
}
