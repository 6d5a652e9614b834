// SPDX-License-Identifier: GPL-2.0-only
//! `sim scale`: what an operator is to expect at his size, by [`shared`](super::shared).

mod figures;
mod page;
mod points;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use super::cli::ScaleArgs;
use super::paper;
use super::paper::figure::{Figure, number};
use crate::report::usage;

/// What makes some figures of the same runs, and their names.
type Maker = (&'static str, &'static [&'static str], fn(&How) -> Vec<Figure>);

const FIGURES: [Maker; 6] = [
    ("nodes", &["scale-slowdown", "scale-coscheduled", "scale-fairness"], figures::nodes),
    ("jobs", &["scale-jobs"], figures::jobs),
    ("loss", &["scale-loss"], figures::loss),
    ("latency", &["scale-latency"], figures::latency),
    ("mistuned", &["scale-mistuned"], figures::mistuned),
    ("skew", &["scale-skew"], figures::skew),
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
    let known = FIGURES.map(|(name, ..)| name).join(", ");
    if let Some(name) = args.names.iter().find(|name| *name != "all" && FIGURES.iter().all(|(known, ..)| known != name))
    {
        return Err(usage(format!("unknown figure '{name}' (known: {known}, all)")));
    }
    if args.names.is_empty() && args.page.is_none() {
        return Err(usage(format!("no figure (known: {known}, all; or --page for the page of what is there)")));
    }
    std::fs::create_dir_all(&args.out).with_context(|| format!("--out: {}: it cannot be made", args.out.display()))?;
    let how = How { seed: args.runs.seed, runs: args.runs.runs, most_nodes: args.most_nodes };
    let all = args.names.iter().any(|name| name == "all");
    for (name, _, make) in FIGURES {
        if all || args.names.iter().any(|asked| asked == name) {
            for figure in make(&how) {
                paper::write(&figure, &args.out)?;
                show(&figure, args.runs.json)?;
            }
        }
    }
    match &args.page {
        Some(page) => write_page(page, &args.out),
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

/// The page of all figures that are in `dir`.
fn write_page(path: &Path, dir: &Path) -> Result<ExitCode> {
    let figures = paper::stored(dir, FIGURES.iter().flat_map(|(_, names, _)| names.iter().copied()))?;
    let text = page::page(&figures, &paper::as_seen_from(path, dir));
    std::fs::write(path, text).with_context(|| format!("--page: {}: it cannot be written", path.display()))?;
    Ok(ExitCode::SUCCESS)
}
