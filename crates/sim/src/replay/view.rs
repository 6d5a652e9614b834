// SPDX-License-Identifier: GPL-2.0-only
//! What `sim replay` prints, and the figures that it writes.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use super::summary::{Spread, Summary, Testbed};
use super::{Measured, Replayed};
use crate::cli::ReplayArgs;
use crate::paper;
use crate::paper::figure::{Axis, Figure, Point, Series};
use crate::stats::Estimate;
use cosched_rules::costs::Costs;

#[derive(Serialize)]
struct Row {
    scenario: String,
    scheduler: String,
    measured_per_s: Range,
    measured_fairness: f64,
    predicted_per_s: Range,
    predicted_fairness: Estimate,
    /// The predicted median less the measured median, as a share of the latter.
    gap: Option<f64>,
    fairness_gap: f64,
    coscheduled: f64,
    costs: ModelView,
}

#[derive(Clone, Copy, Serialize)]
struct Range {
    median: f64,
    min: f64,
    max: f64,
}

#[derive(Clone, Copy, Serialize)]
struct ModelView {
    latency_us: f64,
    overhead_us: f64,
    switch_us: f64,
    idle_switch_us: f64,
}

/// All that there is to say.
#[derive(Serialize)]
pub struct View {
    testbed: &'static str,
    calibration: Costs,
    /// Without their signs.
    median_gap: f64,
    median_fairness_gap: f64,
    /// The share of the predictions that are within what single runs had.
    within_range: f64,
    rows: Vec<Row>,
    left_out: Vec<String>,
    runs: u32,
    #[serde(skip)]
    made: String,
}

impl Range {
    fn of(mut values: Vec<f64>) -> Range {
        values.sort_by(f64::total_cmp);
        Range { median: median(values.clone()), min: values[0], max: values[values.len() - 1] }
    }

    fn text(&self) -> String {
        format!("{:.0} ({:.0}-{:.0})", self.median, self.min, self.max)
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn row(replayed: &Replayed) -> Row {
    let Replayed { case, costs, round_trips_per_s, fairness, coscheduled } = replayed;
    let Spread { median, min, max } = case.round_trips_per_s;
    let predicted = Range::of(round_trips_per_s.clone());
    let us = |ns: u64| ns as f64 / 1000.0;
    Row {
        scenario: case.scenario.to_string(),
        scheduler: case.scheduler.clone(),
        measured_per_s: Range { median, min, max },
        measured_fairness: case.fairness,
        predicted_per_s: predicted,
        predicted_fairness: *fairness,
        gap: (median > 0.0).then(|| predicted.median / median - 1.0),
        fairness_gap: fairness.mean - case.fairness,
        coscheduled: *coscheduled,
        costs: ModelView {
            latency_us: us(costs.latency_ns),
            overhead_us: us(costs.overhead_ns),
            switch_us: us(costs.switch_ns),
            idle_switch_us: us(costs.idle_switch_ns),
        },
    }
}

impl View {
    /// Of all that was replayed.
    pub fn of(
        args: &ReplayArgs,
        summary: &Summary,
        measured: Measured,
        replayed: Vec<Replayed>,
        left_out: Vec<String>,
    ) -> View {
        let rows: Vec<Row> = replayed.iter().map(row).collect();
        let within = rows.iter().filter(|row| {
            let Range { min, max, .. } = row.measured_per_s;
            (min..=max).contains(&row.predicted_per_s.median)
        });
        let testbed = if summary.testbed == Testbed::One { "one" } else { "two" };
        let made = format!(
            "testbed {testbed}, medians of {} runs of {} s each from seed {}; L {:.1} us, and o, W and wake-ups of \
             idle CPUs as a pair alone has them under each scheduler",
            args.runs.runs, summary.seconds, args.runs.seed, measured.latency_us,
        );
        View {
            testbed,
            calibration: measured.calibration,
            median_gap: median(rows.iter().filter_map(|row| row.gap).map(f64::abs).collect()),
            median_fairness_gap: median(rows.iter().map(|row| row.fairness_gap.abs()).collect()),
            within_range: within.count() as f64 / rows.len() as f64,
            rows,
            left_out,
            runs: args.runs.runs,
            made,
        }
    }

    /// To stdout.
    pub fn print(&self, json: bool) -> Result<ExitCode> {
        if json {
            println!("{}", serde_json::to_string(self)?);
            return Ok(ExitCode::SUCCESS);
        }
        println!("{}", self.made);
        println!(
            "scenario   scheduler                            round trips/s: measured             predicted    gap    \
             F: measured, predicted"
        );
        for row in &self.rows {
            let (measured, predicted) = (row.measured_per_s.text(), row.predicted_per_s.text());
            let gap = row.gap.map_or("-".into(), |gap| format!("{:+.0}%", gap * 100.0));
            println!(
                "{:10} {:36} {measured:>22} {predicted:>22} {gap:>6} {:6.2} {:>14}",
                row.scenario,
                row.scheduler,
                row.measured_fairness,
                row.predicted_fairness.text(2)
            );
        }
        println!(
            "median gap {:.0}% of the round trips, {:.2} of F; {:.0}% of the predictions are within the range of \
             single runs",
            self.median_gap * 100.0,
            self.median_fairness_gap,
            self.within_range * 100.0
        );
        Ok(ExitCode::SUCCESS)
    }

    /// The figures `replay` and `replay-fairness`, into `dir`.
    pub fn write(&self, dir: &Path) -> Result<()> {
        std::fs::create_dir_all(dir).with_context(|| format!("--out: {}: it cannot be made", dir.display()))?;
        let per_s = self.figure("replay", "round trips/s of the bench's pairs", true, |row| {
            (Estimate { mean: row.predicted_per_s.median, ci90: None }, row.measured_per_s.median)
        });
        let fairness = self.figure("replay-fairness", "F of the bench's pairs", false, |row| {
            (row.predicted_fairness, row.measured_fairness)
        });
        paper::write(&per_s, dir)?;
        paper::write(&fairness, dir)
    }

    /// A row for each scheduler that was measured in every scenario.
    fn figure(&self, name: &str, title: &str, log: bool, of: impl Fn(&Row) -> (Estimate, f64)) -> Figure {
        let mut scenarios: Vec<&str> = Vec::new();
        let mut schedulers: Vec<&str> = Vec::new();
        for row in &self.rows {
            if !scenarios.contains(&row.scenario.as_str()) {
                scenarios.push(&row.scenario);
            }
            if !schedulers.contains(&row.scheduler.as_str()) {
                schedulers.push(&row.scheduler);
            }
        }
        let cell = |scheduler: &str, (x, scenario): (usize, &&str)| {
            let row = self.rows.iter().find(|row| row.scheduler == scheduler && row.scenario == **scenario)?;
            let (predicted, measured) = of(row);
            let column = Some((*scenario).to_string());
            // Nothing at all has no place on a logarithmic axis.
            let shown = !log || (predicted.mean > 0.0 && measured > 0.0);
            shown.then(|| Point { column, paper: Some(measured), ..Point::new(x as f64, predicted) })
        };
        let series = |scheduler: &&str| {
            let points: Option<Vec<Point>> = scenarios.iter().enumerate().map(|at| cell(scheduler, at)).collect();
            Some(Series { panel: String::new(), name: (*scheduler).into(), points: points? })
        };
        Figure {
            name: name.into(),
            title: title.into(),
            x: Axis { label: "scenario".into(), log: false },
            y: Axis { label: title.into(), log },
            series: schedulers.iter().filter_map(series).collect(),
            bars: vec![],
            claims: vec![],
            near: None,
            made: self.made.clone(),
        }
    }
}
