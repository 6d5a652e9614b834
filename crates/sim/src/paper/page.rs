// SPDX-License-Identifier: GPL-2.0-only
//! The whole comparison as one page of Markdown, from the figures' JSON.

use std::fmt::Write as _;

use super::cells::NARROW;
use super::disagreements::disagreements;
use super::figure::{Claim, Figure, Point, Series, Verdict, number, with_interval};
use super::markdown::COLUMNS;

const HEAD: &str = "# The papers' results, and ours

This page is generated. `make reproduction` runs every figure and writes the page, with its pictures and their numbers
as CSV and JSON. The papers' numbers are the numbers of their text and tables. The points of their graphs are not in the
text that we have. An error says how far ours is off, as a share of the paper's number. On the right side of a bound the
error is 0. The page [simulator.md](simulator.md) says what each model is made of, and how we read what the papers leave
open. What a paper leaves open was chosen by what agrees best with it. Each choice is one for all cells of the paper's
figures. No parameter was fitted to a single cell. So agreement where such a choice decides is weak evidence. The
sections say where it does.

A claim is a number in a paper's text, and a cell is a number in its tables. Either holds if it is within 25% here.
Zhang's claims of what is more and what is less hold on their side of the bound alone. The cells of Zhang's tables hold
by their distance: within 0.15 in Table 4, and within 0.12 in Table 5. A ± is half of a 90% interval. For ratios it is
the interval of their values run by run. Where one end of an interval holds and the other does not, a claim is open. An
open claim does not count as holding. Some jobs become longer until their intervals are narrow. The cells of these jobs
are without intervals.
";

/// The page. `pictures` is where the pictures are, as seen from it.
pub fn page(figures: &[Figure], pictures: &str) -> String {
    let mut text = String::from(HEAD);
    text += "\n| | | claims | farthest off | cells | median error | largest | what holds \
        |\n|---|---|---|---|---|---|---|---|\n";
    for figure in figures {
        let Figure { name, title, claims, .. } = figure;
        let farthest = claims.iter().map(Claim::error).fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        let errors = figure.errors();
        let verdict = verdict(figure);
        let size = |error: f64| if figure.near.is_some() { format!("{error:.2}") } else { unsigned(error) };
        let (median, largest) = match errors.last() {
            Some(last) => (size(errors[errors.len() / 2]), size(*last)),
            None => (String::new(), String::new()),
        };
        let cells = if errors.is_empty() { String::new() } else { errors.len().to_string() };
        let (count, farthest) = if claims.is_empty() {
            (String::new(), String::new())
        } else {
            (claims.len().to_string(), percent(farthest))
        };
        let _ = writeln!(
            text,
            "| [{name}](#{name}) | {title} | {count} | {farthest} | {cells} | {median} | {largest} | {verdict} |"
        );
    }
    figures.iter().fold(text, |text, figure| text + &section(figure, pictures))
}

/// Whether a figure holds, or how much of it does. What is open does not.
fn verdict(figure: &Figure) -> String {
    match figure.verdicts() {
        [_, 0] => String::new(), // the paper has no number
        [holds, all] if holds == all => "holds".into(),
        [holds, all] => format!("{holds} of {all}"),
    }
}

fn percent(share: f64) -> String {
    if share.is_finite() {
        format!("{:+.0}%", share * 100.0).replace("-0%", "0%").replace("+0%", "0%")
    } else {
        "-".into()
    }
}

fn unsigned(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

fn section(figure: &Figure, pictures: &str) -> String {
    let Figure { name, title, made, claims, .. } = figure;
    let mut text = format!("\n## {name}\n\n{title}; {made}.\n");
    if !figure.series.is_empty() {
        let _ = writeln!(text, "\n![{title}]({pictures}/{name}.svg)");
    }
    text += &claimed(claims);
    text += &cells(&figure.series, !super::OURS.contains(&name.as_str()));
    text += &intervals(figure);
    text += &bars(figure, pictures);
    disagreements(name).iter().fold(text, |text, paragraph| text + "\n" + paragraph + "\n")
}

/// What the text says. Where a claim has bounds of its own its error does not say whether it holds, so a column does.
fn claimed(claims: &[Claim]) -> String {
    if claims.is_empty() {
        return String::new();
    }
    let judged = claims.iter().any(|claim| claim.holds.is_some());
    let (head, line) = if judged { (" | holds", "|---") } else { ("", "") };
    let mut text = format!("\n| what the text says | paper | ours | error{head} |\n|---|---|---|---{line}|\n");
    for claim in claims {
        let (paper, ours, error) = (claim.paper_text(), claim.ours_text(), percent(claim.error()));
        let verdict = match claim.verdict() {
            _ if !judged => "",
            Verdict::Holds => " | yes",
            Verdict::Open => " | open",
            Verdict::Fails => " | no",
        };
        let _ = writeln!(text, "| {} | {paper} | {ours} | {error}{verdict} |", claim.what);
    }
    text
}

/// The cells of a table: ours, and the paper's in brackets, or what was measured. Where its rows would be too wide, it is
/// several tables with some of the columns each.
fn cells(series: &[Series], of_paper: bool) -> String {
    let columns: Vec<&str> = match series.first() {
        Some(first) => first.points.iter().filter_map(|point| point.column.as_deref()).collect(),
        None => vec![],
    };
    if columns.is_empty() {
        return String::new();
    }
    let head = if of_paper { "ours (the paper's)" } else { "simulated (measured)" };
    let of_columns = |from: usize, to: usize| {
        let mut text =
            format!("| {head} | | {} |\n|---|---|{}\n", columns[from..to].join(" | "), "---|".repeat(to - from));
        for Series { panel, name, points } in series {
            let cells: Vec<String> = points.iter().take(to).skip(from).map(cell).collect();
            let _ = writeln!(text, "| {panel} | {name} | {} |", cells.join(" | "));
        }
        text
    };
    let all = columns.len();
    let parts = |each: usize| (0..all).step_by(each).map(move |from| (from, (from + each).min(all)));
    let fits = |each: &usize| {
        parts(*each).all(|(from, to)| of_columns(from, to).lines().all(|line| line.chars().count() <= COLUMNS))
    };
    let each = (1..=all).map(|parts| all.div_ceil(parts)).find(fits).unwrap_or(all);
    parts(each).map(|(from, to)| format!("\n{}", of_columns(from, to))).collect()
}

/// A cell: ours with its interval, and the paper's. Where jobs become longer until the interval is narrow, it is.
fn cell(point: &Point) -> String {
    let paper = point.paper.map(|paper| format!(" ({})", number(paper)));
    let ci90 = point.ci90.filter(|_| point.iterations.is_none());
    with_interval(point.y, ci90) + &paper.unwrap_or_default()
}

/// Some jobs become longer until the intervals of their cells are narrow. Lists the cells whose interval is still wide.
fn intervals(figure: &Figure) -> String {
    let points = figure.series.iter().flat_map(|series| series.points.iter().map(move |point| (series, point)));
    let all: Vec<_> = points.filter_map(|(series, point)| Some((series, point, point.iterations?))).collect();
    let is_wide = |point: &Point| point.ci90.is_none_or(|ci90| ci90 > NARROW * point.y);
    let wide: Vec<_> = all.iter().filter(|(_, point, _)| is_wide(point)).collect();
    if all.is_empty() {
        return String::new();
    }
    let (count, narrow) = (all.len(), all.len() - wide.len());
    let mut text = format!("\nOf {count} intervals {narrow} are within {:.0}% of their mean.\n", NARROW * 100.0);
    if !wide.is_empty() {
        text += "\n| not yet | ours | iterations |\n|---|---|---|\n";
    }
    for (Series { panel, name, .. }, point, iterations) in wide {
        let at = point.column.clone().unwrap_or_else(|| format!("{} = {}", figure.x.label, point.x));
        let interval = point.ci90.map_or(String::new(), |ci90| format!(" ± {ci90:.2}"));
        let _ = writeln!(text, "| {panel}, {name}, {at} | {:.2}{interval} | {iterations} |", point.y);
    }
    text
}

/// What the time went to: the picture of all bars, and a table of those of the least and the greatest imbalance.
fn bars(figure: &Figure, pictures: &str) -> String {
    let Figure { name, bars, .. } = figure;
    let Some(first) = bars.first() else { return String::new() };
    let columns: Vec<&str> = first.points.iter().filter_map(|point| point.column.as_deref()).collect();
    let title = "what the time of the CPUs goes to";
    let mut text = format!(
        "\n![{title}]({pictures}/{name}-time.svg)\n\n| % of the time | | {} |\n|---|---|{}\n",
        columns.join(" | "),
        "---|".repeat(columns.len())
    );
    for bar in bars.iter().filter(|bar| bar.name.ends_with("v 0 g") || bar.name.ends_with("v 2 g")) {
        let shares: Vec<String> = bar.points.iter().map(|point| format!("{:.1}", point.y * 100.0)).collect();
        let _ = writeln!(text, "| {} | {} | {} |", bar.panel, bar.name, shares.join(" | "));
    }
    text
}
