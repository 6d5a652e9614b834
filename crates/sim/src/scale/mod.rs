// SPDX-License-Identifier: GPL-2.0-only
//! `sim scale`: what an operator is to expect at his size, by [`shared`](super::shared).

mod figures;
mod page;
mod points;

use std::process::ExitCode;

use anyhow::Result;

use super::cli::ScaleArgs;
use super::paper;
use super::paper::figure::{Figure, number};

/// What makes some figures of the same runs, and their names.
type Maker = (&'static str, &'static [&'static str], fn(&How) -> Vec<Figure>);

const FIGURES: [Maker; 7] = [
    ("nodes", &["scale-slowdown", "scale-coscheduled", "scale-fairness"], figures::nodes),
    ("jobs", &["scale-jobs"], figures::jobs),
    ("loss", &["scale-loss"], figures::loss),
    ("latency", &["scale-latency"], figures::latency),
    ("mistuned", &["scale-mistuned"], figures::mistuned),
    ("skew", &["scale-skew"], figures::skew),
    ("beat", &["beat-slowdown", "beat-longest"], figures::beat),
];

/// How figures are made.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// What decides all that is random.
    pub seed: u64,
    /// Runs of each point; of the largest, one.
    pub runs: u32,
    /// No more nodes than this.
    pub most_nodes: u32,
}

/// Makes figures, and the page.
///
/// # Errors
/// One line, if a name is unknown, in which case nothing is written, or a file cannot be.
pub fn run(args: &ScaleArgs) -> Result<ExitCode> {
    let known = FIGURES.map(|(name, ..)| name);
    let asked = paper::asked(&args.names, &known, &args.out, args.page.as_deref())?;
    let how = How { seed: args.runs.seed, runs: args.runs.runs, most_nodes: args.most_nodes };
    for (_, _, make) in FIGURES.iter().filter(|(name, ..)| asked.contains(name)) {
        for figure in make(&how) {
            paper::write(&figure, &args.out)?;
            show(&figure, args.runs.json)?;
        }
    }
    match &args.page {
        Some(path) => {
            // Those of beat have a page of their own.
            let names = FIGURES.iter().flat_map(|(_, names, _)| names.iter().copied());
            let names = names.filter(|name| name.starts_with("scale"));
            let figures = paper::stored(&args.out, names)?;
            paper::write_page(path, &page::page(&figures, &paper::as_seen_from(path, &args.out)))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

fn show(figure: &Figure, json: bool) -> Result<()> {
    if json {
        println!("{}", serde_json::to_string(figure)?);
        return Ok(());
    }
    println!("{}: {}", figure.name, figure.title);
    for series in &figure.series {
        let points: Vec<String> =
            series.points.iter().map(|point| format!("{} {}", number(point.x), number(point.y))).collect();
        println!("  {} {}: {}", series.panel, series.name, points.join(", "));
    }
    Ok(())
}
