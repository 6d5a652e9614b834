// SPDX-License-Identifier: GPL-2.0-only
//! What each reading of Zhang 2000 does to what the paper says of WL2, WL4, WL5 and WL7: one reading changed at a time.

use super::figure::Figure;
use super::zhang_cells::{Cell, RESPONSE, Ran, UTILIZATION, made, ratio, row, run};
use super::{How, axis};
use crate::cluster::{Reading, Readings};
use crate::stats::Estimate;

/// What is changed, and how.
type Change = (&'static str, fn(Readings) -> Readings);

fn with(mut readings: Readings, change: fn(&mut Readings)) -> Readings {
    change(&mut readings);
    readings
}

const CHANGES: [Change; 18] = [
    ("as read", |it| it),
    ("without back", |it| it.without(Reading::Back)),
    ("without block", |it| it.without(Reading::Block)),
    ("without burst", |it| it.without(Reading::Burst)),
    ("without idle", |it| it.without(Reading::Idle)),
    ("without yield-once", |it| it.without(Reading::YieldOnce)),
    ("apart", |it| it.with(Reading::Apart)),
    ("clocks", |it| it.with(Reading::Clocks)),
    ("clocks,row", |it| it.with(Reading::Clocks).with(Reading::Row)),
    ("front", |it| it.with(Reading::Front)),
    ("keep", |it| it.with(Reading::Keep)),
    ("row", |it| it.with(Reading::Row)),
    ("I/O every 8", |it| with(it, |it| it.io_every = 8)),
    ("interface 50%", |it| with(it, |it| it.interface = 0.5)),
    ("interface 0%", |it| with(it, |it| it.interface = 0.0)),
    ("exchanges 1", |it| with(it, |it| it.exchanges = 1)),
    ("exchanges 3", |it| with(it, |it| it.exchanges = 3)),
    ("exchanges 4", |it| with(it, |it| it.exchanges = 4)),
];

const COLUMNS: [&str; 6] = ["WL2 SB 5:2", "WL4 SY:GS", "WL5 SB:GS", "WL5 PB:SB", "WL5 PB half", "WL7 PB"];

/// What is run for a row. The last is where PB is saturated.
fn cells(readings: Readings) -> [Cell; 9] {
    let cell = |preset, workload| Cell { readings: Some(readings), ..Cell::new(preset, workload) };
    [
        Cell { level: 2, ..cell("sb", 2) },
        cell("sb", 2),
        cell("gang", 4),
        cell("sy", 4),
        cell("gang", 5),
        cell("sb", 5),
        cell("pb", 5),
        Cell { switch_us: 100.0, interrupt_us: 25.0, ..cell("pb", 5) },
        Cell { load: 1.2, ..cell("pb", 7) },
    ]
}

fn found(ran: &[Ran]) -> [Estimate; 6] {
    let over = |it: usize, other: usize| ratio(&ran[it].each(RESPONSE), &ran[other].each(RESPONSE));
    [over(1, 0), over(3, 2), over(5, 4), over(6, 5), over(7, 6), ran[8].estimate(UTILIZATION)]
}

/// The table.
pub(super) fn readings(how: &How) -> Figure {
    let all: Vec<Cell> = CHANGES.iter().flat_map(|(_, change)| cells(change(how.zhang))).collect();
    let ran = run("zhang-readings", &all, how);
    let row = |((name, _), ran): (&Change, &[Ran])| {
        row("", name, COLUMNS.iter().zip(found(ran)).map(|(column, found)| ((*column).into(), found, None)))
    };
    Figure {
        name: "zhang-readings".into(),
        title: "what each reading does".into(),
        x: axis("", false),
        y: axis("ratio, or utilization", false),
        series: CHANGES.iter().zip(ran.chunks(ran.len() / CHANGES.len())).map(row).collect(),
        bars: vec![],
        claims: vec![],
        near: None,
        made: made(how),
    }
}
