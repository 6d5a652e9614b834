// SPDX-License-Identifier: GPL-2.0-only
//! What the demo found: `summary.json`, which is an interface, and the table of the same.

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use super::plan::Step;
use super::protocol::{EEVDF, Receiver};
use super::stats::{Figures, Spread, median};

/// One measurement, done.
pub struct Run {
    pub step: Step,
    pub gate: String,
    pub figures: Figures,
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

/// All runs of a receiver under a scheduler; figures are medians of them, save the range and the maximum.
#[derive(Debug, Serialize)]
pub struct Row {
    pub receiver: Receiver,
    pub scheduler: String,
    pub gate: String,
    pub competitors: usize,
    pub round_trips_per_s: Spread,
    /// Round trips per second over those under EEVDF with as many competitors.
    pub ratio_to_eevdf: Option<f64>,
    /// The job's, the mean over its nodes, 0 to 1.
    pub cpu_share: f64,
    /// F = N T_C / T_E, the mean over the job's nodes.
    pub fairness: f64,
    /// Round trips per CPU second of the job over the same without competitors.
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
        let speeds = runs.iter().filter(|run| is_one(run)).filter_map(|run| run.figures.node_speed_min);
        speeds.fold(0.0, f64::max)
    };
    let of_all = fastest(&|_| true);
    let is_disturbed = |run: &Run| {
        let of_its_kind = fastest(&|other| key(&other.step) == key(&run.step));
        let limit = (SLOW * of_all).max(SLOW_OF_ITS_KIND * of_its_kind);
        run.figures.node_speed_min.is_some_and(|speed| speed < limit)
    };
    runs.iter().map(is_disturbed).collect()
}

/// The rows of all runs, by receiver, and the schedulers in the order in which they first appear.
pub fn rows(runs: &[Run]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for run in runs {
        if !rows.iter().any(|row| is_of(&run.step, row)) {
            let step = &run.step;
            let same = runs.iter().filter(|other| key(&other.step) == key(step)).collect::<Vec<_>>();
            rows.push(row(&same, runs));
        }
    }
    let mut schedulers: Vec<String> = Vec::new();
    for run in runs {
        if !schedulers.contains(&run.step.scheduler) {
            schedulers.push(run.step.scheduler.clone());
        }
    }
    let place = |row: &Row| schedulers.iter().position(|name| *name == row.scheduler);
    rows.sort_by_key(|row| (row.receiver as usize, row.competitors, place(row)));
    rows
}

fn key(step: &Step) -> (Receiver, &str, usize) {
    (step.receiver, &step.scheduler, step.competitors)
}

fn is_of(step: &Step, row: &Row) -> bool {
    key(step) == (row.receiver, &row.scheduler, row.competitors)
}

fn row(same: &[&Run], all: &[Run]) -> Row {
    let Step { receiver, scheduler, competitors, .. } = same[0].step.clone();
    let of = |figure: fn(&Figures) -> f64| median(same.iter().map(|run| figure(&run.figures)));
    // The median of the same receiver under EEVDF with so many competitors.
    let eevdf = |competitors: usize, figure: fn(&Figures) -> f64| {
        let it = all.iter().filter(|run| key(&run.step) == (receiver, EEVDF, competitors));
        let value = median(it.map(|run| figure(&run.figures)));
        (value > 0.0).then_some(value)
    };

    let rate: fn(&Figures) -> f64 = |f| f.round_trips_per_s;
    let per_cpu_s: fn(&Figures) -> f64 = |f| f.round_trips_per_cpu_s;
    let least: Vec<f64> = same.iter().filter_map(|run| run.figures.competitor_fairness_min).collect();
    Row {
        receiver,
        scheduler,
        gate: same[0].gate.clone(),
        competitors,
        round_trips_per_s: Spread::of(same.iter().map(|run| rate(&run.figures))),
        ratio_to_eevdf: eevdf(competitors, rate).map(|eevdf| of(rate) / eevdf),
        cpu_share: of(|f| f.cpu_share),
        fairness: of(|f| f.fairness),
        efficiency: eevdf(0, per_cpu_s).map(|alone| of(per_cpu_s) / alone),
        competitor_fairness_min: (!least.is_empty()).then(|| median(least)),
        p50_us: of(|f| f.p50_us),
        p99_us: of(|f| f.p99_us),
        max_us: same.iter().map(|run| run.figures.max_us).fold(0.0, f64::max),
        runs: same.iter().map(|run| run.figures.clone()).collect(),
    }
}

/// The rows for people.
pub fn table(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.load_preset(presets::ASCII_BORDERS_ONLY_CONDENSED);
    table.set_header([
        "receiver",
        "others",
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
    ]);
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
    [
        row.receiver.to_string(),
        row.competitors.to_string(),
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
    use serde_json::json;
    use std::time::Duration;

    fn run(scheduler: &str, competitors: usize, rate: f64, per_cpu_s: f64) -> Run {
        let (receiver, length) = (Receiver::Spin, Duration::from_secs(4));
        let figures = Figures {
            round_trips_per_s: rate,
            cpu_share: 0.2,
            fairness: 1.0,
            competitor_fairness_min: (competitors > 0).then_some(0.98),
            round_trips_per_cpu_s: per_cpu_s,
            node_speed_min: (competitors > 0).then_some(1e5),
            p50_us: 61.0,
            p99_us: 90.0,
            max_us: rate,
        };
        Run {
            step: Step { receiver, scheduler: scheduler.into(), competitors, length },
            gate: "none".into(),
            figures,
            again: false,
        }
    }

    fn runs() -> Vec<Run> {
        vec![
            run(EEVDF, 0, 16_000.0, 8_000.0),
            run(EEVDF, 4, 400.0, 1_000.0),
            run("dcs", 4, 2_000.0, 5_000.0),
            run(EEVDF, 4, 300.0, 900.0),
            run("dcs", 4, 1_000.0, 3_000.0),
            run(EEVDF, 4, 500.0, 1_100.0),
            run("dcs", 4, 1_600.0, 4_000.0),
        ]
    }

    #[test]
    fn ratios_are_of_medians() {
        let rows = rows(&runs());
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
    fn a_slow_node_is_disturbed() {
        let mut runs = runs();
        assert!(!disturbed(&runs).contains(&true));
        runs[3].figures.node_speed_min = Some(7e4);
        assert_eq!(disturbed(&runs).iter().position(|&it| it), Some(3), "slower than others of its kind");
        for run in &mut runs[4..] {
            run.figures.node_speed_min = Some(2e5);
        }
        assert!(disturbed(&runs)[1], "slower than others of any kind");
    }

    #[test]
    fn has_the_shape_that_others_read() {
        let results = rows(&runs());
        let summary = Summary {
            kernel: "7.3.4".into(),
            testbed: "one".into(),
            clocksource: Some("tsc".into()),
            cpu: None,
            seconds: 4.0,
            repeats: 3,
            repeated: 0,
            disturbed: 0,
            results,
        };
        let json = serde_json::to_value(&summary).unwrap();
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
    fn the_table_has_a_line_for_each_row() {
        let text = table(&rows(&runs())).to_string();
        assert!(text.contains("dcs") && text.contains("1000-2000") && text.contains("20.0%"), "{text}");
    }
}
