// SPDX-License-Identifier: GPL-2.0-only
//! `sim paper`: the papers' figures and tables, as they come out here, beside what the papers say.

mod arpaci;
mod cells;
mod disagreements;
mod dusseau;
pub mod dusseau_tables;
pub mod figure;
pub mod markdown;
mod page;
pub mod plot;
mod raster;
mod thesis;
mod zhang;
mod zhang_cells;
mod zhang_readings;
pub mod zhang_tables;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};

use self::figure::{Axis, Figure};
use super::cli::PaperArgs;
use crate::{bsp, cluster};
use cosched_rules::report::usage;

/// The name of a figure, and what makes it.
type Maker = (&'static str, fn(&How) -> Figure);

/// Every figure.
const FIGURES: [Maker; 25] = [
    ("thesis-3-2", |_| thesis::figure_3_2()),
    ("thesis-3-3", |_| thesis::figure_3_3()),
    ("thesis-3-4", thesis::figure_3_4),
    ("thesis-3-5", thesis::figure_3_5),
    ("dusseau-2", dusseau::figure_2),
    ("dusseau-3", dusseau::figure_3),
    ("dusseau-4", dusseau_tables::figure_4),
    ("dusseau-5", dusseau::figure_5),
    ("dusseau-6", dusseau::figure_6),
    ("dusseau-8", dusseau::figure_8),
    ("dusseau-9", dusseau::figure_9),
    ("dusseau-10", dusseau::figure_10),
    ("dusseau-11", dusseau::figure_11),
    ("dusseau-12", dusseau::figure_12),
    ("dusseau-13", dusseau_tables::figure_13),
    ("dusseau-readings", dusseau_tables::readings),
    ("arpaci-3", arpaci::figure_3),
    ("arpaci-4", arpaci::figure_4),
    ("arpaci-5", arpaci::figure_5),
    ("zhang-fig3", zhang::figure_3),
    ("zhang-fig4", zhang::figure_4),
    ("zhang-fig5", zhang::figure_5),
    ("zhang-tab4", zhang_tables::table_4),
    ("zhang-tab5", zhang_tables::table_5),
    ("zhang-readings", zhang_readings::readings),
];

/// The figures of `sim replay`, which the page has too.
const OURS: [&str; 2] = ["replay", "replay-fairness"];

/// How figures are made.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// What decides all that is random.
    pub seed: u64,
    /// Runs of each point.
    pub runs: u32,
    /// At most so many iterations of each bulk-synchronous job.
    pub iterations: u32,
    /// Of jobs that become longer: how narrow their intervals are to be, as a share of the mean.
    pub narrow: f64,
    /// How Dusseau is read.
    pub dusseau: bsp::Readings,
    /// How Zhang is read.
    pub zhang: cluster::Readings,
}

impl How {
    fn made(&self, length: &str) -> String {
        format!("{} runs of each point from seed {}, {length}", self.runs, self.seed)
    }

    /// Of jobs that become longer until the interval is narrow.
    fn made_until_narrow(&self) -> String {
        self.made(&format!(
            "jobs that become longer. They take {} s alone and have {} iterations at the least. They then become twice \
             as long until the 90% interval is within {:.0}% of the mean and the mean has moved by no more. They \
             become no longer once they take 10 s alone or have {} iterations",
            cells::FIRST_ALONE_NS / 1e9,
            cells::FIRST_ITERATIONS,
            self.narrow * 100.0,
            self.iterations
        ))
    }

    /// The same of figures of Dusseau that go by `dusseau`.
    fn made_as_read(&self) -> String {
        match self.dusseau {
            bsp::Readings::ALL => self.made_until_narrow(),
            readings => format!("{}, read as `{readings}`", self.made_until_narrow()),
        }
    }
}

fn axis(label: &str, log: bool) -> Axis {
    Axis { label: label.into(), log }
}

/// Makes figures, and the page.
///
/// # Errors
/// One line, if a name is unknown, in which case nothing is written, or a file cannot be.
pub fn run(args: &PaperArgs) -> Result<ExitCode> {
    let known = FIGURES.map(|(name, _)| name);
    let asked = asked(&args.names, &known, &args.out, args.page.as_deref())?;
    let how = How {
        seed: args.runs.seed,
        runs: args.runs.runs,
        iterations: args.iterations,
        narrow: cells::NARROW,
        dusseau: args.dusseau,
        zhang: args.readings.all(),
    };
    for (_, make) in FIGURES.iter().filter(|(name, _)| asked.contains(name)) {
        let figure = make(&how);
        write(&figure, &args.out)?;
        if args.runs.json {
            println!("{}", serde_json::to_string(&figure)?);
        } else {
            print(&figure);
        }
    }
    match &args.page {
        Some(path) => {
            let figures = stored(&args.out, known.into_iter().chain(OURS))?;
            write_page(path, &page::page(&figures, &as_seen_from(path, &args.out)))
        }
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Those of the `known` figures that `names` ask for. Makes the directory for them.
///
/// # Errors
/// One line, if a name is unknown, if there is none and no page is asked for either, or if the directory cannot be
/// made.
pub(super) fn asked<'k>(names: &[String], known: &[&'k str], out: &Path, page: Option<&Path>) -> Result<Vec<&'k str>> {
    let list = known.join(", ");
    if let Some(name) = names.iter().find(|name| *name != "all" && !known.contains(&name.as_str())) {
        return Err(usage(format!("unknown figure '{name}' (known: {list}, all)")));
    }
    if names.is_empty() && page.is_none() {
        return Err(usage(format!("no figure (known: {list}, all; or --page for the page of what is there)")));
    }
    std::fs::create_dir_all(out).with_context(|| format!("--out: {}: it cannot be made", out.display()))?;
    let is_asked = |known: &&str| names.iter().any(|name| name == "all" || name == known);
    Ok(known.iter().copied().filter(is_asked).collect())
}

/// Writes all forms of a figure.
///
/// # Errors
/// One line, if a file cannot be written.
pub(super) fn write(figure: &Figure, dir: &Path) -> Result<()> {
    let mut files = vec![
        (".csv", figure.csv().into_bytes()),
        (".json", (serde_json::to_string_pretty(figure)? + "\n").into_bytes()),
    ];
    if !figure.series.is_empty() {
        files.extend([(".svg", plot::svg(figure)?.into_bytes()), (".png", plot::png(figure)?)]);
    }
    if !figure.bars.is_empty() {
        let bars = figure.of_bars();
        files.extend([("-time.svg", plot::svg(&bars)?.into_bytes()), ("-time.png", plot::png(&bars)?)]);
    }
    for (ending, bytes) in files {
        let path = dir.join(format!("{}{ending}", figure.name));
        std::fs::write(&path, bytes).with_context(|| format!("--out: {}: it cannot be written", path.display()))?;
    }
    Ok(())
}

fn print(figure: &Figure) {
    println!("{}: {}", figure.name, figure.title);
    if let (Some(largest), errors) = (figure.errors().last(), figure.errors()) {
        let median = errors[errors.len() / 2];
        let size = |error: f64| match figure.near {
            Some(_) => format!("{error:.2}"),
            None => format!("{:.1}%", error * 100.0),
        };
        println!("  {} cells: median error {}, largest {}", errors.len(), size(median), size(*largest));
    }
    for claim in &figure.claims {
        let (paper, ours, error) = (claim.paper_text(), claim.ours_text(), claim.error() * 100.0);
        println!("  {}: {ours}, paper {paper} ({error:+.0}%)", claim.what);
    }
}

/// Writes a page of figures.
///
/// # Errors
/// One line, if it cannot be written.
pub(super) fn write_page(path: &Path, text: &str) -> Result<ExitCode> {
    let text = markdown::wrapped(text);
    std::fs::write(path, text).with_context(|| format!("--page: {}: it cannot be written", path.display()))?;
    Ok(ExitCode::SUCCESS)
}

/// Those of the figures with these names that are in `dir`.
///
/// # Errors
/// One line, if one is there and is none.
pub(super) fn stored<'a>(dir: &Path, names: impl Iterator<Item = &'a str>) -> Result<Vec<Figure>> {
    let mut figures: Vec<Figure> = Vec::new();
    for name in names {
        let json = dir.join(format!("{name}.json"));
        if json.exists() {
            let read = std::fs::read_to_string(&json).map_err(anyhow::Error::from);
            let figure = read.and_then(|text| Ok(serde_json::from_str(&text)?));
            figures.push(figure.with_context(|| format!("{}: it is no figure (make it again)", json.display()))?);
        }
    }
    Ok(figures)
}

/// `dir` as seen from a page, if that is above it.
pub(super) fn as_seen_from(page: &Path, dir: &Path) -> String {
    let above = page.parent().unwrap_or(Path::new(""));
    dir.strip_prefix(above).unwrap_or(dir).to_string_lossy().into_owned()
}
