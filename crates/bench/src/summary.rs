// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment found, as `summary.json`, which is an interface.

use serde::Serialize;

use crate::contender::Contender;
use crate::protocol::Rules;
use crate::receiver::Receiver;
use crate::runs::{Kind, Run};
use crate::sanity::{Baseline, MOST_EFFICIENT, Tolerance, baseline};
use crate::stats::{Figures, Spread, median};
use cosched_rules::costs::Costs;

#[derive(Debug, Serialize)]
pub struct Summary {
    pub kernel: String,
    /// Of this program.
    pub version: &'static str,
    /// The command lines that measured it.
    pub commands: Vec<String>,
    pub testbed: String,
    pub nodes: usize,
    /// "virtual": instructions are the only clock; "real": whatever else the host did counts.
    pub time: &'static str,
    /// In virtual time: what a switch to another address space takes besides its instructions.
    pub switch_price_ns: u64,
    /// In virtual time: what an interrupt from another CPU takes besides its instructions.
    pub ipi_price_ns: u64,
    pub clocksource: Option<String>,
    pub cpu: Option<String>,
    /// What messages and switches cost, as the schedulers measured it when they were loaded: medians; absent if none
    /// did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub costs: Option<Costs>,
    pub seconds: f64,
    pub repeats: usize,
    /// How many runs were measured a second time, since the first was disturbed.
    pub repeated: usize,
    /// How many runs somebody else's use of the CPUs has spoilt, as far as it shows.
    pub disturbed: usize,
    pub results: Vec<Row>,
}

/// The medians of what the schedulers measured that ran; none if none did.
pub fn costs(runs: &[Run]) -> Option<Costs> {
    let all: Vec<Costs> = runs.iter().filter_map(|run| run.rules.costs).collect();
    let of = |cost: fn(&Costs) -> f64| median(all.iter().map(cost));
    let (latency_us, overhead_us, switch_us) = (of(|c| c.latency_us), of(|c| c.overhead_us), of(|c| c.switch_us));
    (!all.is_empty()).then_some(Costs { latency_us, overhead_us, switch_us })
}

/// What the results say of the jobs that ran at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// Nothing: there is only ever one, and it does nothing but communicate.
    One,
    /// For each row, which it is of how many, and all of them together.
    Several,
}

/// What the rows of an experiment with several jobs say besides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Which {
    /// Its name, which all rows that belong together have.
    pub scenario: String,
    pub jobs: usize,
    /// From 0.
    pub job: usize,
    /// What this job computes for each message.
    pub compute_us: u32,
    /// Of this job, on each node.
    pub threads: usize,
    /// The scheduler's wait rule.
    pub wait: String,
    /// Of all jobs together, the median over the runs; absent if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_round_trips_per_s: Option<f64>,
}

/// All runs of a job in a scenario under a scheduler; figures are medians of them, save the range and the
/// maximum.
#[derive(Debug, Serialize)]
pub struct Row {
    pub receiver: Receiver,
    pub scheduler: String,
    pub gate: String,
    pub competitors: usize,
    #[serde(flatten)]
    pub which: Option<Which>,
    pub round_trips_per_s: Spread,
    /// Round trips per second over those of the same job under EEVDF in the same scenario.
    pub ratio_to_eevdf: Option<f64>,
    /// The job's, the mean over its nodes, 0 to 1.
    pub cpu_share: f64,
    /// F = N T_C / T_E, the mean over the job's nodes.
    pub fairness: f64,
    /// The same on each node of the job.
    pub fairness_by_node: Vec<f64>,
    /// Round trips per CPU second of the job over the most that the same job makes alone on its nodes under any of the
    /// schedulers; if it computes, spinning or asleep.
    pub efficiency: Option<f64>,
    /// Why this row cannot be believed; its ratios are absent then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_measured: Option<String>,
    pub competitor_fairness_min: Option<f64>,
    pub p50_us: f64,
    pub p99_us: f64,
    /// The longest of all runs.
    pub max_us: f64,
    pub runs: Vec<Figures>,
}

/// The rows of all runs, by scenario, and the schedulers in the order in which they first appear.
pub fn rows(runs: &[Run], jobs: Jobs, tolerance: Tolerance) -> Vec<Row> {
    let rows_of =
        |kind: Kind<'_>| (0..jobs_of(runs, kind)).map(|job| row(kind, job, runs, jobs, tolerance)).collect::<Vec<_>>();
    kinds(runs).into_iter().filter(|kind| !kind.0.awake).flat_map(rows_of).collect()
}

/// On all pairs of nodes together.
fn jobs_of(runs: &[Run], kind: Kind) -> usize {
    runs.iter().find(|run| run.kind() == kind).map_or(0, |run| run.figures.len())
}

fn kinds(runs: &[Run]) -> Vec<Kind<'_>> {
    let mut schedulers: Vec<&Contender> = Vec::new();
    let mut kinds: Vec<Kind> = Vec::new();
    for run in runs {
        let kind = run.kind();
        if !schedulers.contains(&kind.1) {
            schedulers.push(kind.1);
        }
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    kinds.sort_by_key(|(scenario, scheduler)| (*scenario, schedulers.iter().position(|other| other == scheduler)));
    kinds
}

/// By run, what all jobs of a scenario make together.
fn totals_of(runs: &[Run], kind: Kind) -> Spread {
    let of_run = |run: &Run| run.figures.iter().map(|job| job.round_trips_per_s).sum();
    Spread::of(runs.iter().filter(|run| run.kind() == kind).map(of_run))
}

/// All jobs of a scenario together, under one scheduler.
#[derive(Debug, PartialEq)]
pub struct Total {
    pub scenario: String,
    pub scheduler: String,
    pub round_trips_per_s: Spread,
    /// Over that under EEVDF in the same scenario.
    pub ratio_to_eevdf: Option<f64>,
}

/// The totals of the scenarios with several jobs, in the order of the rows.
pub fn totals(runs: &[Run]) -> Vec<Total> {
    let total = |kind: Kind| {
        let (round_trips_per_s, eevdf) = (totals_of(runs, kind), totals_of(runs, (kind.0, &Contender::KERNEL)));
        Total {
            scenario: kind.0.to_string(),
            scheduler: kind.1.to_string(),
            round_trips_per_s,
            ratio_to_eevdf: (eevdf.median > 0.0).then(|| round_trips_per_s.median / eevdf.median),
        }
    };
    kinds(runs).into_iter().filter(|kind| jobs_of(runs, *kind) > 1).map(total).collect()
}

fn figures_of<'a>(runs: &'a [Run], kind: Kind<'a>, job: usize) -> impl Iterator<Item = &'a Figures> {
    runs.iter().filter(move |run| run.kind() == kind).filter_map(move |run| run.figures.get(job))
}

fn which(kind: Kind, job: usize, runs: &[Run], rules: &Rules) -> Which {
    let (scenario, jobs) = (kind.0, jobs_of(runs, kind));
    Which {
        scenario: scenario.to_string(),
        jobs,
        job,
        compute_us: scenario.compute_us(job % scenario.jobs),
        threads: scenario.threads,
        wait: rules.wait.clone(),
        total_round_trips_per_s: (jobs > 1).then(|| totals_of(runs, kind).median),
    }
}

/// Of this job under this scheduler: its round trips per CPU second over its baseline, and why that is no figure.
fn efficiency(kind: Kind, job: usize, runs: &[Run], tolerance: Tolerance) -> (Option<f64>, Option<String>) {
    let alone = kind.0.alone(job % kind.0.jobs);
    let Some(Baseline { round_trips_per_cpu_s, doubt }) = baseline(runs, alone, tolerance) else { return (None, None) };
    let efficiency = median(figures_of(runs, kind, job).map(|f| f.round_trips_per_cpu_s)) / round_trips_per_cpu_s;
    let too_much = || {
        (efficiency > MOST_EFFICIENT)
            .then(|| format!("it would have an efficiency of {efficiency:.2}, and alone has 1"))
    };
    match doubt.map(|doubt| format!("the baseline moved: {doubt}")).or_else(too_much) {
        None => (Some(efficiency), None),
        doubt => (None, doubt),
    }
}

fn row(kind: Kind, job: usize, runs: &[Run], jobs: Jobs, tolerance: Tolerance) -> Row {
    let (scenario, scheduler) = kind;
    let same: Vec<&Figures> = figures_of(runs, kind, job).collect();
    let of = |figure: fn(&Figures) -> f64| median(same.iter().map(|run| figure(run)));
    let by_node = |node: usize| median(same.iter().filter_map(|run| run.fairness_by_node.get(node).copied()));
    let nodes = same.first().map_or(0, |run| run.fairness_by_node.len());

    let rate: fn(&Figures) -> f64 = |f| f.round_trips_per_s;
    let eevdf = (scenario, &Contender::KERNEL);
    let eevdf_rate = median(figures_of(runs, eevdf, job).map(rate));
    let eevdf_measured = efficiency(eevdf, job, runs, tolerance).1.is_none();
    let (efficiency, not_measured) = efficiency(kind, job, runs, tolerance);
    let is_ratio = eevdf_rate > 0.0 && eevdf_measured && not_measured.is_none();
    let least: Vec<f64> = same.iter().filter_map(|run| run.competitor_fairness_min).collect();
    let rules = runs.iter().find(|run| run.kind() == kind).map_or_else(Rules::none, |run| run.rules.clone());
    Row {
        receiver: scenario.receiver,
        scheduler: scheduler.to_string(),
        competitors: scenario.competitors,
        which: (jobs == Jobs::Several).then(|| which(kind, job, runs, &rules)),
        gate: rules.gate,
        round_trips_per_s: Spread::of(same.iter().map(|run| rate(run))),
        ratio_to_eevdf: is_ratio.then(|| of(rate) / eevdf_rate),
        cpu_share: of(|f| f.cpu_share),
        fairness: of(|f| f.fairness),
        fairness_by_node: (0..nodes).map(by_node).collect(),
        efficiency,
        not_measured,
        competitor_fairness_min: (!least.is_empty()).then(|| median(least)),
        p50_us: of(|f| f.p50_us),
        p99_us: of(|f| f.p99_us),
        max_us: same.iter().map(|run| run.max_us).fold(0.0, f64::max),
        runs: same.into_iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::tests::{run, runs, runs_of_two};
    use serde_json::{Value, json};
    use std::collections::BTreeSet;

    const TIME: Tolerance = Tolerance::of(true);

    fn summary(results: Vec<Row>) -> Summary {
        Summary {
            kernel: "7.3.4".into(),
            version: "0.0.0",
            commands: vec!["scx_cosched bench demo".into()],
            testbed: "one".into(),
            nodes: 2,
            time: "virtual",
            switch_price_ns: 0,
            ipi_price_ns: 0,
            clocksource: Some("tsc".into()),
            cpu: None,
            costs: None,
            seconds: 4.0,
            repeats: 3,
            repeated: 0,
            disturbed: 0,
            results,
        }
    }

    #[test]
    fn ratios_are_of_medians() {
        let rows = rows(&runs(), Jobs::One, TIME);
        assert_eq!(rows.len(), 3);
        let dcs = &rows[2];
        assert_eq!((dcs.scheduler.as_str(), dcs.competitors), ("dcs", 4));
        assert_eq!(dcs.round_trips_per_s, Spread::of([1_000.0, 1_600.0, 2_000.0]));
        assert_eq!(dcs.ratio_to_eevdf, Some(4.0));
        assert_eq!(dcs.efficiency, Some(0.5));
        assert_eq!(dcs.max_us, 2_000.0, "the maximum is one, not a median");
        assert_eq!((rows[0].ratio_to_eevdf, rows[0].efficiency), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn each_of_several_jobs_has_a_row() {
        let rows = rows(&runs_of_two(), Jobs::Several, TIME);
        let brief = |row: &Row| {
            let Which { scenario, jobs, job, .. } = row.which.as_ref().unwrap();
            format!("{scenario} {} {} {job} of {jobs}", row.scheduler, row.competitors)
        };
        assert_eq!(
            rows.iter().map(brief).collect::<Vec<_>>(),
            [
                "spin-0 eevdf 0 0 of 1",
                "spin-4 eevdf 4 0 of 1",
                "spin-4 dcs 4 0 of 1",
                "spin-2x2 eevdf 2 0 of 2",
                "spin-2x2 eevdf 2 1 of 2",
                "spin-2x2 dcs 2 0 of 2",
                "spin-2x2 dcs 2 1 of 2",
            ]
        );
        assert_eq!((rows[5].ratio_to_eevdf, rows[5].efficiency), (Some(9.0), Some(0.5)));
        assert_eq!((rows[6].ratio_to_eevdf, rows[6].efficiency), (Some(3.0), Some(0.25)));
    }

    #[test]
    fn has_the_shape_that_others_read() {
        let json = serde_json::to_value(summary(rows(&runs(), Jobs::One, TIME))).unwrap();
        assert_eq!((&json["kernel"], &json["repeats"]), (&json!("7.3.4"), &json!(3)));
        let dcs = &json["results"][2];
        assert_eq!(dcs["receiver"], "spin");
        assert_eq!(dcs["scheduler"], "dcs");
        assert_eq!(dcs["gate"], "none");
        assert_eq!(dcs["competitors"], 4);
        let rate = &dcs["round_trips_per_s"];
        for (key, value) in [("median", 1600.0), ("min", 1000.0), ("max", 2000.0), ("q1", 1100.0)] {
            assert_eq!(rate[key], value, "{key}");
        }
        assert!(rate["q3"].is_f64() && rate["n"] == 3);
        assert_eq!((&json["time"], &json["switch_price_ns"]), (&json!("virtual"), &json!(0)));
        for key in ["cpu_share", "fairness", "efficiency", "p50_us", "p99_us", "max_us"] {
            assert!(dcs[key].is_f64(), "{key}");
        }
    }

    #[test]
    fn efficiency_is_relative_to_the_same_kind_of_job() {
        let runs = [
            run("spin-0", "eevdf", &[(9_000.0, 8_000.0)]),
            run("spin-0-200us", "eevdf", &[(4_000.0, 2_000.0)]),
            run("block-0", "eevdf", &[(16_000.0, 100.0)]),
            run("spin-2x1-mixed-t2", "dcs", &[(900.0, 4_000.0), (600.0, 1_500.0)]),
        ];
        let rows = rows(&runs, Jobs::Several, TIME);
        let of = |place: usize| {
            let Which { compute_us, threads, .. } = rows[place].which.clone().unwrap();
            (compute_us, threads, rows[place].efficiency.unwrap())
        };
        assert_eq!([of(0), of(1)], [(0, 1, 1.0), (200, 1, 1.0)], "those alone themselves");
        assert_eq!([of(2), of(3)], [(0, 2, 0.5), (200, 2, 0.75)]);
    }

    #[test]
    fn several_jobs_add_some_keys_and_no_more() {
        let json = |jobs| serde_json::to_value(summary(rows(&runs_of_two(), jobs, TIME))).unwrap();
        let (demo, policies) = (json(Jobs::One), json(Jobs::Several));
        let keys = |json: &Value, row: usize| -> BTreeSet<String> {
            assert_eq!(json["results"].as_array().unwrap().len(), 7);
            json["results"][row].as_object().unwrap().keys().cloned().collect()
        };
        let new = |row| keys(&policies, row).difference(&keys(&demo, row)).cloned().collect::<Vec<_>>();
        let of_all = ["compute_us", "job", "jobs", "scenario", "threads", "wait"];
        assert_eq!(new(0), of_all);
        assert_eq!(new(6), [&of_all[..5], &["total_round_trips_per_s", "wait"]].concat());
        assert!((0..7).all(|row| keys(&demo, row).is_subset(&keys(&policies, row))));

        let of = |row: usize| policies["results"][row].clone();
        assert_eq!((&of(6)["jobs"], &of(6)["job"], &of(6)["scenario"]), (&json!(2), &json!(1), &json!("spin-2x2")));
        assert_eq!((&of(0)["jobs"], &of(0)["job"], &of(0)["wait"]), (&json!(1), &json!(0), &json!("none")));
    }

    #[test]
    fn rows_name_the_rules_of_their_scheduler() {
        let rules = Rules { gate: "equalizing".into(), wait: "spin".into(), costs: None };
        let rows = rows(&[Run { rules, ..run("spin-4", "dcs", &[(1.0, 1.0)]) }], Jobs::Several, TIME);
        assert_eq!((rows[0].gate.as_str(), rows[0].which.as_ref().unwrap().wait.as_str()), ("equalizing", "spin"));
    }

    #[test]
    fn costs_are_medians_of_those_who_measured() {
        assert_eq!(costs(&runs()), None);
        let with = |us: f64| {
            let costs = Some(Costs { latency_us: us, overhead_us: 2.0 * us, switch_us: 3.0 * us });
            Run { rules: Rules { costs, ..Rules::none() }, ..run("spin-4", "dcs", &[(1.0, 1.0)]) }
        };
        let all = [with(1.0), with(5.0), run("spin-4", "eevdf", &[(1.0, 1.0)]), with(2.0)];
        assert_eq!(costs(&all), Some(Costs { latency_us: 2.0, overhead_us: 4.0, switch_us: 6.0 }));
    }

    #[test]
    fn totals_are_of_all_jobs_of_a_run() {
        let runs = [
            run("spin-2x2", "eevdf", &[(100.0, 1.0), (200.0, 1.0)]),
            run("spin-2x2", "dcs", &[(100.0, 1.0), (1_000.0, 1.0)]),
            run("spin-2x2", "dcs", &[(900.0, 1.0), (300.0, 1.0)]),
            run("spin-2x2", "dcs", &[(500.0, 1.0), (1_000.0, 1.0)]),
            run("spin-4", "dcs", &[(500.0, 1.0)]),
        ];
        let totals = totals(&runs);
        assert_eq!(totals.len(), 2, "one job has none");
        let dcs = &totals[1];
        assert_eq!((dcs.scenario.as_str(), dcs.scheduler.as_str(), dcs.ratio_to_eevdf), ("spin-2x2", "dcs", Some(4.0)));
        let wanted = Spread::of([1_100.0, 1_200.0, 1_500.0]);
        assert_eq!(dcs.round_trips_per_s, wanted, "and not the sum of the jobs' medians");

        let of_rows: Vec<Option<f64>> = rows(&runs, Jobs::Several, TIME)
            .iter()
            .map(|row| row.which.as_ref().unwrap().total_round_trips_per_s)
            .collect();
        assert_eq!(of_rows, [None, Some(300.0), Some(300.0), Some(1_200.0), Some(1_200.0)]);
    }
}
