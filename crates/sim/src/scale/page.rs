// SPDX-License-Identifier: GPL-2.0-only
//! What the figures say, as one page of Markdown.

use std::fmt::Write as _;

use crate::paper::figure::{Figure, Series, number};

const HEAD: &str = "# What to expect at your size

This page is generated: `make scale` runs every load in the simulator and writes it, with its pictures and their numbers
as CSV and JSON. The model is `sim shared` ([simulator.md](simulator.md#shared)): the C functions of `policies/` that
run in the kernel, on as many nodes as one likes. `sim replay` says how near that model is to a kernel on two nodes.

What runs, unless a figure says otherwise: two parallel jobs with a process on each node, and two competitors on each
node that only compute. A process computes for 5 ms, 10% more or less than others, and exchanges messages with both
neighbours on a ring. In the graphs on the right all of a job meet after that, in log2 of the nodes rounds, as in a
barrier or a small reduction. L = 20 us, o = 5 us, W = 10 us. There are ticks of 4 ms, on each node at another time,
and slices of 20 ms. Processes poll. A slowdown of 1 is what a job would have at its fair share of all nodes at the same
time, undisturbed. With four tasks on a node a slowdown of 1 is four times as long as alone.
";

/// The page. `pictures` is where the pictures are, as seen from it.
pub fn page(figures: &[Figure], pictures: &str) -> String {
    figures.iter().fold(String::from(HEAD), |text, figure| text + &section(figure, pictures))
}

fn section(figure: &Figure, pictures: &str) -> String {
    let Figure { name, title, made, .. } = figure;
    let mut text = format!("\n## {name}\n\n{title}; {made}.\n\n![{title}]({pictures}/{name}.svg)\n");
    text += &table(&figure.x.label, &figure.series);
    text
}

/// A row for each curve.
fn table(x: &str, series: &[Series]) -> String {
    let Some(first) = series.first() else { return String::new() };
    let at: Vec<String> = first.points.iter().map(|point| number(point.x)).collect();
    let mut text = format!("\n| | {x}: | {} |\n|---|---|{}\n", at.join(" | "), "---|".repeat(at.len()));
    for Series { panel, name, points } in series {
        let cells: Vec<String> = points.iter().map(|point| number(point.y)).collect();
        let _ = writeln!(text, "| {panel} | {name} | {} |", cells.join(" | "));
    }
    text
}
