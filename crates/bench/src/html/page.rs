// SPDX-License-Identifier: GPL-2.0-only
//! The page, by its template.

use anyhow::{Context, Result};
use askama::Template;

use super::chart::{self, number};
use super::read::{Bench, Group, Rate, Row};
use cosched_rules::VERSION;

#[derive(Template)]
#[template(path = "report.html")]
struct Page<'a> {
    version: &'a str,
    benches: Vec<Section<'a>>,
}

struct Section<'a> {
    bench: &'a Bench,
    groups: Vec<Part<'a>>,
}

struct Part<'a> {
    group: &'a Group,
    bars: String,
    histograms: Option<String>,
    heads: Vec<String>,
    lines: Vec<Vec<String>>,
}

/// The whole page.
pub fn page(benches: &[Bench]) -> Result<String> {
    let section = |bench| Ok(Section { bench, groups: bench.groups.iter().map(part).collect::<Result<_>>()? });
    let benches = benches.iter().map(section).collect::<Result<_>>()?;
    Page { version: VERSION, benches }.render().context("cannot make the report")
}

fn part(group: &Group) -> Result<Part<'_>> {
    let rate = format!("{}/s", group.unit);
    let heads =
        ["scheduler", &rate, "quartiles", "range", "times EEVDF", "F", "efficiency", "p50, ms", "p99, ms", "max, ms"];
    Ok(Part {
        group,
        bars: chart::bars(group)?,
        histograms: chart::histograms(group)?,
        heads: heads.map(String::from).into(),
        lines: group.rows.iter().map(line).collect(),
    })
}

/// A row of a table.
fn line(row: &Row) -> Vec<String> {
    let Rate { median, min, max, q1, q3 } = row.rate;
    let maybe = |value: Option<f64>| value.map_or("-".into(), number);
    let ms = |us: Option<f64>| maybe(us.map(|us| us / 1e3));
    let span = |from: f64, to: f64| format!("{} to {}", number(from), number(to));
    vec![
        row.scheduler.clone(),
        number(median),
        q1.zip(q3).map_or("-".into(), |(q1, q3)| span(q1, q3)),
        span(min, max),
        maybe(row.times_eevdf),
        row.fairness.iter().map(|f| format!("{f:.2}")).collect::<Vec<_>>().join(", "),
        maybe(row.efficiency),
        ms(row.p50_us),
        ms(row.p99_us),
        ms(row.max_us),
    ]
}
