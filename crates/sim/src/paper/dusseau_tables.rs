// SPDX-License-Identifier: GPL-2.0-only
//! Figures 4 and 13 of Dusseau 1996: the two tables. The rows of TRANSPOSE were held back until they had been
//! predicted.

use super::cells::{Cell, Machine, bulk_synchronous, run, slowdowns};
use super::figure::{Axis, Claim, Figure};
use super::{How, axis};
use crate::bsp::Readings;
use crate::jobs::Pattern;
use crate::policy::WaitRule;

/// Context switch and latency of the rows, in us.
const ROWS: [(f64, f64); 4] = [(50.0, 100.0), (50.0, 10.0), (200.0, 100.0), (200.0, 10.0)];
/// Granularity in us and imbalance as a multiple of it, of the columns.
const COLUMNS: [(f64, f64); 6] =
    [(100.0, 0.25), (100.0, 1.5), (5_000.0, 0.25), (5_000.0, 1.5), (500_000.0, 0.25), (500_000.0, 1.5)];

/// The paper's slowdowns of a pattern: rows of context switch and latency, 50 and 100, 50 and 10, 200 and 100, 200 and
/// 10 us; columns of granularity and imbalance, 100 us, 5 ms and 500 ms, each with 0.25 and 1.5 times itself.
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
/// Figure 4, immediate blocking, TRANSPOSE.
pub const FIGURE_4_TRANSPOSE: Table = [
    [0.82, 0.82, 0.91, 0.87, 0.92, 0.82],
    [4.31, 4.07, 1.50, 1.24, 0.94, 0.80],
    [2.46, 2.42, 1.89, 1.63, 0.94, 0.79],
    [15.6, 14.7, 3.20, 2.45, 0.96, 0.82],
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
/// Figure 13, implicit scheduling, TRANSPOSE.
pub const FIGURE_13_TRANSPOSE: Table = [
    [1.12, 1.10, 1.07, 0.99, 0.93, 0.81],
    [1.05, 1.10, 1.05, 0.99, 0.94, 0.81],
    [1.23, 1.23, 1.22, 1.20, 0.93, 0.80],
    [1.23, 1.19, 1.23, 1.22, 0.93, 0.80],
];

/// A figure's tables, and how processes wait in it.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    /// How a process waits.
    pub wait: WaitRule,
    /// Of each pattern.
    pub of: [(Pattern, &'static Table); 3],
}

/// Immediate blocking.
pub const FIGURE_4: Tables = Tables {
    wait: WaitRule::Immediate,
    of: [
        (Pattern::Barrier, &FIGURE_4_BARRIER),
        (Pattern::News, &FIGURE_4_NEWS),
        (Pattern::Transpose, &FIGURE_4_TRANSPOSE),
    ],
};
/// Implicit scheduling, which is `adaptive-global`.
pub const FIGURE_13: Tables = Tables {
    wait: WaitRule::AdaptiveGlobal,
    of: [
        (Pattern::Barrier, &FIGURE_13_BARRIER),
        (Pattern::News, &FIGURE_13_NEWS),
        (Pattern::Transpose, &FIGURE_13_TRANSPOSE),
    ],
};

/// The name of a column: g, and v.
fn column((granularity_us, imbalance): (f64, f64)) -> String {
    match granularity_us {
        us if us < 1000.0 => format!("{us} us, {imbalance} g"),
        us => format!("{} ms, {imbalance} g", us / 1000.0),
    }
}

fn cells(tables: &Tables, how: &How) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (pattern, table) in tables.of {
        for (i, &(switch_us, latency_us)) in ROWS.iter().enumerate() {
            for (j, &at) in COLUMNS.iter().enumerate() {
                cells.push(Cell {
                    panel: pattern.to_string().to_uppercase(),
                    series: format!("CS {switch_us} us, L {latency_us} us"),
                    x: j as f64,
                    column: Some(column(at)),
                    paper: Some(table[i][j]),
                    setup: bulk_synchronous(pattern, at, tables.wait, Machine { latency_us, switch_us }, how),
                });
            }
        }
    }
    cells
}

fn table(name: &str, title: &str, tables: &Tables, how: &How) -> Figure {
    let ran = run(name, cells(tables, how), how);
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis("", false),
        y: Axis { label: "slowdown".into(), log: true },
        series: slowdowns(&ran),
        bars: vec![],
        claims: vec![],
        near: None,
        made: how.made_as_read(),
    }
}

/// Immediate blocking.
pub(super) fn figure_4(how: &How) -> Figure {
    table("dusseau-4", "immediate blocking against coscheduling", &FIGURE_4, how)
}

/// `adaptive-global`.
pub(super) fn figure_13(how: &How) -> Figure {
    let mut figure = table("dusseau-13", "implicit scheduling against coscheduling", &FIGURE_13, how);
    let slowdowns = figure.series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let largest = slowdowns.fold(0.0, f64::max);
    figure.claims.push(Claim::at_most("the largest slowdown: \"no worse than 25% slower\" (8)", 1.25, largest));
    figure
}

/// The readings one by one, at some cells of both figures: the finest on slow networks, and TRANSPOSE with imbalance.
pub(super) fn readings(how: &How) -> Figure {
    let mut cells = Vec::new();
    for (figure, tables) in [("Figure 4", &FIGURE_4), ("Figure 13", &FIGURE_13)] {
        let chosen = self::cells(tables, how);
        let of_latency = |cell: &Cell| cell.x < 1.0 && cell.series.ends_with("L 100 us");
        let of_imbalance =
            |cell: &Cell| cell.panel == "TRANSPOSE" && cell.x == 3.0 && cell.series == "CS 200 us, L 10 us";
        let is_chosen = |cell: &Cell| of_latency(cell) || of_imbalance(cell);
        for cell in chosen.into_iter().filter(is_chosen) {
            cells.extend(with_each_reading(figure, cell));
        }
    }
    let ran = run("dusseau-readings", cells, how);
    Figure {
        name: "dusseau-readings".into(),
        title: "Figures 4 and 13 by how the paper is read".into(),
        x: axis("", false),
        y: Axis { label: "slowdown".into(), log: true },
        series: slowdowns(&ran),
        bars: vec![],
        claims: vec![],
        near: None,
        made: how.made_until_narrow(),
    }
}

/// A row of the table of readings. Only the last column, of the readings that stand, is held against the paper.
fn with_each_reading(figure: &str, cell: Cell) -> Vec<Cell> {
    const EACH: [&str; 4] = ["none", "tick", "round-trip", "tick,round-trip"];
    let at = cell.column.as_deref().unwrap_or_default().replace(", ", ", v ");
    let series = format!("{}, g {at}", cell.series);
    let with = |(i, text): (usize, &&str)| {
        let readings: Readings = text.parse().expect("they are readings");
        let mut setup = cell.setup.clone();
        readings.apply(&mut setup);
        Cell {
            panel: format!("{figure}, {}", cell.panel),
            series: series.clone(),
            x: i as f64,
            column: Some(text.to_string()),
            paper: (readings == Readings::ALL).then_some(cell.paper).flatten(),
            setup,
        }
    };
    EACH.iter().enumerate().map(with).collect()
}
