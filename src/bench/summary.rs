// SPDX-License-Identifier: GPL-2.0-only
//! What an experiment found: `summary.json`, which is an interface, and the table of the same.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::contender::Contender;
use super::plan::Step;
use super::protocol::Receiver;
use super::scenario::Scenario;
use super::stats::{Figures, Spread, median};

/// One measurement, done.
pub struct Run {
    pub step: Step,
    pub gate: String,
    /// By job, and at least one.
    pub figures: Vec<Figures>,
    /// The first attempt was disturbed.
    pub again: bool,
}

#[derive(Debug, Serialize)]
pub struct Summary {
    pub kernel: String,
    pub testbed: String,
    pub clocksource: Option<String>,
    pub cpu: Option<String>,
    pub seconds: f64,
    pub repeats: usize,
    /// How many runs were measured a second time, since the first was disturbed.
    pub repeated: usize,
    /// How many runs somebody else's use of the CPUs has spoilt, as far as it shows.
    pub disturbed: usize,
    pub results: Vec<Row>,
}

/// What the results say of how many parallel jobs there were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Jobs {
    /// Nothing: there is only ever one.
    One,
    /// For each row, which it is of how many.
    Several,
}

/// A job among those that ran at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Which {
    pub jobs: usize,
    /// From 0.
    pub job: usize,
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
    /// Round trips per CPU second of the job over the same alone on its nodes.
    pub efficiency: Option<f64>,
    pub competitor_fairness_min: Option<f64>,
    pub p50_us: f64,
    pub p99_us: f64,
    /// The longest of all runs.
    pub max_us: f64,
    pub runs: Vec<Figures>,
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
        let of_its_kind = fastest(&|other| key(&other.step) == key(&run.step));
        let limit = (SLOW * of_all).max(SLOW_OF_ITS_KIND * of_its_kind);
        speed(run).is_some_and(|speed| speed < limit)
    };
    runs.iter().map(is_disturbed).collect()
}

/// Of the slowest node: every job of a run has the same nodes.
fn speed(run: &Run) -> Option<f64> {
    run.figures.first()?.node_speed_min
}

/// The rows of all runs, by scenario, and the schedulers in the order in which they first appear.
pub fn rows(runs: &[Run], jobs: Jobs) -> Vec<Row> {
    let mut schedulers: Vec<&Contender> = Vec::new();
    let mut kinds: Vec<Key> = Vec::new();
    for Run { step, .. } in runs {
        if !schedulers.contains(&&step.scheduler) {
            schedulers.push(&step.scheduler);
        }
        if !kinds.contains(&key(step)) {
            kinds.push(key(step));
        }
    }
    kinds.sort_by_key(|(scenario, scheduler)| (*scenario, schedulers.iter().position(|other| other == scheduler)));
    kinds.into_iter().flat_map(|kind| (0..kind.0.jobs).map(move |job| row(kind, job, runs, jobs))).collect()
}

/// Runs of one kind are measured to be compared with each other.
type Key<'a> = (Scenario, &'a Contender);

fn key(step: &Step) -> Key<'_> {
    (step.scenario, &step.scheduler)
}

fn figures_of<'a>(runs: &'a [Run], kind: Key<'a>, job: usize) -> impl Iterator<Item = &'a Figures> {
    runs.iter().filter(move |run| key(&run.step) == kind).filter_map(move |run| run.figures.get(job))
}

fn row(kind: Key, job: usize, runs: &[Run], jobs: Jobs) -> Row {
    let (scenario, scheduler) = kind;
    let same: Vec<&Figures> = figures_of(runs, kind, job).collect();
    let of = |figure: fn(&Figures) -> f64| median(same.iter().map(|run| figure(run)));
    let eevdf = |scenario: Scenario, job: usize, figure: fn(&Figures) -> f64| {
        let value = median(figures_of(runs, (scenario, &Contender::Eevdf), job).map(figure));
        (value > 0.0).then_some(value)
    };

    let rate: fn(&Figures) -> f64 = |f| f.round_trips_per_s;
    let per_cpu_s: fn(&Figures) -> f64 = |f| f.round_trips_per_cpu_s;
    let least: Vec<f64> = same.iter().filter_map(|run| run.competitor_fairness_min).collect();
    Row {
        receiver: scenario.receiver,
        scheduler: scheduler.to_string(),
        gate: runs.iter().find(|run| key(&run.step) == kind).map(|run| run.gate.clone()).unwrap_or_default(),
        competitors: scenario.competitors,
        which: (jobs == Jobs::Several).then_some(Which { jobs: scenario.jobs, job }),
        round_trips_per_s: Spread::of(same.iter().map(|run| rate(run))),
        ratio_to_eevdf: eevdf(scenario, job, rate).map(|eevdf| of(rate) / eevdf),
        cpu_share: of(|f| f.cpu_share),
        fairness: of(|f| f.fairness),
        efficiency: eevdf(Scenario::alone(scenario.receiver), 0, per_cpu_s).map(|alone| of(per_cpu_s) / alone),
        competitor_fairness_min: (!least.is_empty()).then(|| median(least)),
        p50_us: of(|f| f.p50_us),
        p99_us: of(|f| f.p99_us),
        max_us: same.iter().map(|run| run.max_us).fold(0.0, f64::max),
        runs: same.into_iter().cloned().collect(),
    }
}

/// The rows for people.
pub fn table(rows: &[Row]) -> Table {
    let load = match rows.iter().any(|row| row.which.is_some()) {
        true => ["scenario", "job"],
        false => ["receiver", "others"],
    };
    let figures = [
        "scheduler",
        "gate",
        "round trips/s",
        "min-max",
        "x EEVDF",
        "CPU",
        "F",
        "efficiency",
        "p50 ms",
        "p99 ms",
        "max ms",
        "others' least F",
    ];
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header(load.iter().chain(&figures));
    for row in rows {
        table.add_row(cells(row));
    }
    for column in table.column_iter_mut().skip(4) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}

fn cells(row: &Row) -> [String; 14] {
    let optional = |value: Option<f64>| value.map_or_else(|| "-".into(), |v| format!("{v:.2}"));
    let ms = |us: f64| format!("{:.2}", us / 1e3);
    let rate = &row.round_trips_per_s;
    let Row { receiver, competitors, .. } = *row;
    let [load, job] = match row.which {
        None => [receiver.to_string(), competitors.to_string()],
        Some(Which { jobs, job }) => [
            Scenario { receiver, jobs, competitors }.to_string(),
            if jobs > 1 { format!("{job} of {jobs}") } else { "-".into() },
        ],
    };
    [
        load,
        job,
        row.scheduler.clone(),
        row.gate.clone(),
        format!("{:.0}", rate.median),
        format!("{:.0}-{:.0}", rate.min, rate.max),
        optional(row.ratio_to_eevdf),
        format!("{:.1}%", 100.0 * row.cpu_share),
        format!("{:.3}", row.fairness),
        optional(row.efficiency),
        ms(row.p50_us),
        ms(row.p99_us),
        ms(row.max_us),
        optional(row.competitor_fairness_min),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::time::Duration;

    fn figures(competitors: usize, rate: f64, per_cpu_s: f64) -> Figures {
        Figures {
            round_trips_per_s: rate,
            cpu_share: 0.2,
            fairness: 1.0,
            competitor_fairness_min: (competitors > 0).then_some(0.98),
            round_trips_per_cpu_s: per_cpu_s,
            node_speed_min: (competitors > 0).then_some(1e5),
            p50_us: 61.0,
            p99_us: 90.0,
            max_us: rate,
        }
    }

    /// For each job its rate and its round trips per CPU second.
    fn run(scenario: &str, scheduler: &str, jobs: &[(f64, f64)]) -> Run {
        let scenario: Scenario = scenario.parse().unwrap();
        let figures = jobs.iter().map(|&(rate, per_cpu_s)| figures(scenario.competitors, rate, per_cpu_s)).collect();
        let step = Step { scenario, scheduler: scheduler.parse().unwrap(), length: Duration::from_secs(4) };
        Run { step, gate: "none".into(), figures, again: false }
    }

    fn runs() -> Vec<Run> {
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

    fn runs_of_two() -> Vec<Run> {
        let two = [
            run("spin-2x2", "eevdf", &[(100.0, 400.0), (200.0, 800.0)]),
            run("spin-2x2", "dcs", &[(900.0, 4_000.0), (600.0, 2_000.0)]),
        ];
        runs().into_iter().chain(two).collect()
    }

    fn summary(results: Vec<Row>) -> Summary {
        Summary {
            kernel: "7.3.4".into(),
            testbed: "one".into(),
            clocksource: Some("tsc".into()),
            cpu: None,
            seconds: 4.0,
            repeats: 3,
            repeated: 0,
            disturbed: 0,
            results,
        }
    }

    #[test]
    fn ratios_are_of_medians() {
        let rows = rows(&runs(), Jobs::One);
        assert_eq!(rows.len(), 3);
        let dcs = &rows[2];
        assert_eq!((dcs.scheduler.as_str(), dcs.competitors), ("dcs", 4));
        assert_eq!(dcs.round_trips_per_s, Spread { median: 1_600.0, min: 1_000.0, max: 2_000.0 });
        assert_eq!(dcs.ratio_to_eevdf, Some(4.0));
        assert_eq!(dcs.efficiency, Some(0.5));
        assert_eq!(dcs.max_us, 2_000.0, "the maximum is one, not a median");
        assert_eq!((rows[0].ratio_to_eevdf, rows[0].efficiency), (Some(1.0), Some(1.0)));
    }

    #[test]
    fn each_of_several_jobs_has_a_row() {
        let rows = rows(&runs_of_two(), Jobs::Several);
        let brief: Vec<_> =
            rows.iter().map(|row| (row.scheduler.as_str(), row.competitors, row.which.unwrap())).collect();
        let which = |jobs, job| Which { jobs, job };
        assert_eq!(
            brief,
            [
                ("eevdf", 0, which(1, 0)),
                ("eevdf", 4, which(1, 0)),
                ("dcs", 4, which(1, 0)),
                ("eevdf", 2, which(2, 0)),
                ("eevdf", 2, which(2, 1)),
                ("dcs", 2, which(2, 0)),
                ("dcs", 2, which(2, 1)),
            ]
        );
        assert_eq!((rows[5].ratio_to_eevdf, rows[5].efficiency), (Some(9.0), Some(0.5)));
        assert_eq!((rows[6].ratio_to_eevdf, rows[6].efficiency), (Some(3.0), Some(0.25)));
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

    #[test]
    fn has_the_shape_that_others_read() {
        let json = serde_json::to_value(summary(rows(&runs(), Jobs::One))).unwrap();
        assert_eq!((&json["kernel"], &json["repeats"]), (&json!("7.3.4"), &json!(3)));
        let dcs = &json["results"][2];
        assert_eq!(dcs["receiver"], "spin");
        assert_eq!(dcs["scheduler"], "dcs");
        assert_eq!(dcs["gate"], "none");
        assert_eq!(dcs["competitors"], 4);
        assert_eq!(dcs["round_trips_per_s"], json!({"median": 1600.0, "min": 1000.0, "max": 2000.0}));
        for key in ["cpu_share", "fairness", "efficiency", "p50_us", "p99_us", "max_us"] {
            assert!(dcs[key].is_f64(), "{key}");
        }
    }

    #[test]
    fn several_jobs_add_two_fields_and_no_more() {
        let keys = |jobs| -> Vec<String> {
            let json = serde_json::to_value(summary(rows(&runs_of_two(), jobs))).unwrap();
            assert_eq!(json["results"].as_array().unwrap().len(), 7);
            json["results"][6].as_object().unwrap().keys().cloned().collect()
        };
        let (one, several) = (keys(Jobs::One), keys(Jobs::Several));
        let new: Vec<&String> = several.iter().filter(|key| !one.contains(key)).collect();
        assert_eq!(new, ["job", "jobs"]);
        assert_eq!(several.len(), one.len() + 2);

        let json = serde_json::to_value(summary(rows(&runs_of_two(), Jobs::Several))).unwrap();
        let of = |row: usize, key: &str| -> Value { json["results"][row][key].clone() };
        assert_eq!((of(6, "jobs"), of(6, "job")), (json!(2), json!(1)));
        assert_eq!((of(0, "jobs"), of(0, "job")), (json!(1), json!(0)));
    }

    #[test]
    fn the_table_has_a_line_for_each_row() {
        let text = table(&rows(&runs(), Jobs::One)).to_string();
        assert!(text.contains("dcs") && text.contains("1000-2000") && text.contains("20.0%"), "{text}");
        assert!(text.contains("receiver"), "{text}");
        let text = table(&rows(&runs_of_two(), Jobs::Several)).to_string();
        assert!(text.contains("spin-2x2") && text.contains("1 of 2"), "{text}");
    }
}
