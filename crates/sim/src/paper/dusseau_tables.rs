// SPDX-License-Identifier: GPL-2.0-only
//! Figures 4 and 13 of Dusseau 1996: the two tables. The rows of TRANSPOSE are missing in the copy that we have.

use super::cells::{Cell, Machine, bulk_synchronous, run, slowdowns};
use super::figure::{Axis, Claim, Figure};
use super::{How, axis};
use crate::jobs::Pattern;
use crate::policy::WaitRule;

/// Context switch and latency of the rows, in us.
const ROWS: [(f64, f64); 4] = [(50.0, 100.0), (50.0, 10.0), (200.0, 100.0), (200.0, 10.0)];
/// Granularity in us and imbalance as a multiple of it, of the columns.
const COLUMNS: [(f64, f64); 6] =
    [(100.0, 0.25), (100.0, 1.5), (5_000.0, 0.25), (5_000.0, 1.5), (500_000.0, 0.25), (500_000.0, 1.5)];

/// The paper's slowdowns of a pattern: rows of context switch and latency, 50 and 100, 50 and 10, 200 and 100, 200 and 10 us;
/// columns of granularity and imbalance, 100 us, 5 ms and 500 ms, each with 0.25 and 1.5 times itself.
pub type Table = [[f64; 6]; 4];

/// Figure 4, immediate blocking, BARRIER.
pub const FIGURE_4_BARRIER: Table = [
    [1.05, 1.01, 0.97, 0.82, 0.93, 0.80],
    [2.29, 1.62, 1.01, 0.83, 0.92, 0.82],
    [2.89, 2.43, 1.07, 0.95, 0.93, 0.81],
    [6.83, 4.70, 1.09, 0.96, 0.94, 0.80],
];
/// Figure 4, immediate blocking, NEWS.
pub const FIGURE_4_NEWS: Table = [
    [0.96, 0.96, 1.01, 0.88, 0.91, 0.81],
    [3.64, 3.08, 1.11, 0.94, 0.93, 0.79],
    [3.07, 2.93, 1.36, 1.18, 0.93, 0.80],
    [13.1, 10.8, 1.50, 1.27, 0.93, 0.81],
];
/// Figure 13, implicit scheduling, BARRIER.
pub const FIGURE_13_BARRIER: Table = [
    [1.09, 1.08, 1.00, 0.83, 0.92, 0.81],
    [1.01, 1.06, 1.01, 0.84, 0.93, 0.77],
    [1.12, 1.05, 1.07, 0.94, 0.93, 0.81],
    [1.08, 1.07, 1.07, 0.95, 0.94, 0.81],
];
/// Figure 13, implicit scheduling, NEWS.
pub const FIGURE_13_NEWS: Table = [
    [1.26, 1.21, 1.03, 0.91, 0.92, 0.80],
    [1.02, 1.23, 1.03, 0.93, 0.93, 0.79],
    [1.12, 1.10, 1.11, 1.09, 0.94, 0.81],
    [1.12, 1.09, 1.13, 1.10, 0.93, 0.81],
];

fn column((granularity_us, imbalance): (f64, f64)) -> String {
    match granularity_us {
        us if us < 1000.0 => format!("g {us} us, v {imbalance} g"),
        us => format!("g {} ms, v {imbalance} g", us / 1000.0),
    }
}

fn cells(wait: WaitRule, barrier: &Table, news: &Table, how: &How) -> Vec<Cell> {
    let mut cells = Vec::new();
    let patterns = [(Pattern::Barrier, Some(barrier)), (Pattern::News, Some(news)), (Pattern::Transpose, None)];
    for (pattern, table) in patterns {
        for (i, &(switch_us, latency_us)) in ROWS.iter().enumerate() {
            for (j, &at) in COLUMNS.iter().enumerate() {
                cells.push(Cell {
                    panel: pattern.to_string().to_uppercase(),
                    series: format!("CS {switch_us} us, L {latency_us} us"),
                    x: j as f64,
                    column: Some(column(at)),
                    paper: table.map(|table| table[i][j]),
                    setup: bulk_synchronous(pattern, at, wait, Machine { latency_us, switch_us }, how),
                });
            }
        }
    }
    cells
}

fn table(name: &str, title: &str, cells: Vec<Cell>, how: &How) -> Figure {
    let ran = run(name, cells, how);
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis("", false),
        y: Axis { label: "slowdown".into(), log: true },
        series: slowdowns(&ran),
        claims: vec![],
        made: how.made_of_jobs(),
    }
}

/// Immediate blocking.
pub(super) fn figure_4(how: &How) -> Figure {
    let cells = cells(WaitRule::Immediate, &FIGURE_4_BARRIER, &FIGURE_4_NEWS, how);
    table("dusseau-4", "immediate blocking against coscheduling", cells, how)
}

/// `adaptive-global`.
pub(super) fn figure_13(how: &How) -> Figure {
    let cells = cells(WaitRule::AdaptiveGlobal, &FIGURE_13_BARRIER, &FIGURE_13_NEWS, how);
    let mut figure = table("dusseau-13", "implicit scheduling against coscheduling", cells, how);
    figure.claims.push(Claim::at_most(
        "the largest slowdown in the paper's text, of BARRIER and NEWS: \"no worse than 25% slower\"",
        1.25,
        figure
            .series
            .iter()
            .filter(|s| s.panel != "TRANSPOSE")
            .flat_map(|s| &s.points)
            .map(|p| p.y)
            .fold(0.0, f64::max),
    ));
    figure
}
