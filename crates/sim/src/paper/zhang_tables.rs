// SPDX-License-Identifier: GPL-2.0-only
//! Tables 4 and 5 of Zhang 2000: response times by the multiprogramming level, and by what switches and interrupts
//! cost. The rows of Table 5 were held back until they had been predicted.

use super::figure::{Claim, Figure};
use super::zhang_cells::{Cell, LOAD, RESPONSE, Ran, STRATEGIES, made, means, ratio, ratios, row, run};
use super::{How, axis};
use crate::stats::Estimate;

/// Workload and level of the columns of Table 4.
pub const COLUMNS: [(u8, u32); 5] = [(2, 5), (4, 5), (4, 16), (5, 5), (5, 16)];
/// Table 4, in the order of [`STRATEGIES`]: the response time over that with a level of 2, less 1; none where the paper
/// has a dash.
pub const TABLE_4: [[Option<f64>; 5]; 10] = [
    [Some(0.30), Some(0.37), None, Some(15.44), None],
    [Some(-0.25), Some(-0.20), Some(-0.34), Some(-0.30), Some(-0.41)],
    [Some(-0.69), Some(-0.36), Some(-0.48), Some(-0.44), Some(-0.54)],
    [Some(-0.27), Some(-0.13), Some(-0.34), Some(0.18), None],
    [Some(-0.68), Some(-0.35), Some(-0.44), Some(-0.21), Some(-0.38)],
    [Some(-0.65), Some(-0.25), Some(-0.38), Some(-0.41), Some(-0.52)],
    [Some(-0.71), Some(-0.34), Some(-0.45), Some(-0.43), Some(-0.54)],
    [Some(-0.29), Some(2.82), None, Some(4.59), None],
    [Some(-0.64), Some(-0.24), Some(0.36), Some(-0.28), Some(2.78)],
    [Some(-0.58), Some(-0.44), Some(-0.81), Some(-0.42), Some(-0.94)],
];
/// How far a value of Table 4 may be off that counts as found, and how many are to be.
const NEAR_4: f64 = 0.15;
const WANTED_4: f64 = 32.0;
/// The same of Table 5.
const NEAR_5: f64 = 0.12;
/// Those of which 4.3 says that PB is better than they at a low level.
const AT_LOW_LEVELS: [&str; 4] = ["SB", "DCS-SB", "PB-SB", "PB-SY"];

fn figure(name: &str, title: &str, near: f64, how: &How) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis("", false),
        y: axis("response", false),
        series: vec![],
        bars: vec![],
        claims: vec![],
        near: Some(near),
        made: format!("{}, which ask for {LOAD} of the nodes", made(how)),
    }
}

/// The multiprogramming level.
pub(super) fn table_4(how: &How) -> Figure {
    const LEVELS: [(u8, &[u32]); 3] = [(2, &[2, 5]), (4, &[2, 5, 16]), (5, &[2, 5, 16])];
    let all = LEVELS.iter().flat_map(|(workload, levels)| levels.iter().map(|&level| (*workload, level)));
    let all: Vec<(u8, u32)> = all.collect();
    let of = |preset| all.iter().map(move |&(workload, level)| Cell { level, ..Cell::new(preset, workload) });
    let ran = run("zhang-tab4", &STRATEGIES.iter().flat_map(|(_, preset)| of(preset)).collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-tab4", "response over that with a level of 2, less 1", NEAR_4, how);
    let mut pairs = Vec::new();
    for (((name, _), theirs), ran) in STRATEGIES.iter().zip(TABLE_4).zip(ran.chunks(all.len())) {
        let at = |workload, level| &ran[all.iter().position(|&it| it == (workload, level)).expect("it is run")];
        let cell = |((workload, level), paper): ((u8, u32), Option<f64>)| {
            let over = ratio(&at(workload, level).each(RESPONSE), &at(workload, 2).each(RESPONSE));
            let change = Estimate { mean: over.mean - 1.0, ..over };
            (format!("WL{workload}, level {level}"), change, paper)
        };
        let row = row("", name, COLUMNS.into_iter().zip(theirs).map(cell));
        pairs.extend(row.points.iter().filter_map(|point| Some((point.y, point.paper?))));
        figure.series.push(row);
    }
    let count = |of: &dyn Fn(f64, f64) -> bool| pairs.iter().filter(|(ours, paper)| of(*ours, *paper)).count() as f64;
    let all_cells = pairs.len() as f64;
    let signs = count(&|ours, paper| ours * paper > 0.0);
    let near = count(&|ours, paper| (ours - paper).abs() <= NEAR_4);
    figure.claims = vec![
        Claim::about("cells with the paper's sign", all_cells, signs).strictly(),
        Claim::about(format!("cells within {NEAR_4} of the paper's"), all_cells, near).between(WANTED_4, all_cells),
    ];
    let place = all.iter().position(|&it| it == (5, 2)).expect("it is run");
    let low = |wanted: &str| {
        let row = STRATEGIES.iter().position(|(name, _)| *name == wanted).expect("it is a strategy");
        ran[row * all.len() + place].each(RESPONSE)
    };
    for name in AT_LOW_LEVELS {
        let what = format!("WL5, level 2, PB over {name}: \"better than SB at lower MPL levels\" (4.3)");
        figure.claims.push(Claim::at_most(what, 1.0, ratio(&low("PB"), &low(name))).strictly());
    }
    figure
}

/// The strategies of Table 5, and what the paper has in its second and third columns. All have 1 in the first.
const OVERHEADS: [(&str, [Option<f64>; 2]); 6] = [
    ("SB", [Some(0.647), Some(0.659)]),
    ("DCS", [Some(0.902), Some(0.904)]),
    ("DCS-SB", [Some(0.710), Some(0.804)]),
    ("PB", [Some(0.89), None]),
    ("PB-SB", [Some(0.670), Some(0.687)]),
    ("GS", [Some(0.896), Some(0.977)]),
];

/// What switches and interrupts cost: columns are 200 and 50, 100 and 25, 100 and 50 us; of the gang, quanta of 200,
/// 100 and 100 ms with switches of 2, 1 and 2 ms.
pub(super) fn table_5(how: &How) -> Figure {
    let cells = |name: &str| {
        let preset = STRATEGIES.iter().find(|(it, _)| *it == name).expect("it is a strategy").1;
        let cell = Cell::new(preset, 5);
        let second = Cell { switch_us: 100.0, interrupt_us: 25.0, quantum_ms: 100, ..cell };
        let third =
            if name == "GS" { Cell { switch_us: 200.0, ..second } } else { Cell { interrupt_us: 50.0, ..second } };
        [cell, second, third]
    };
    let ran = run("zhang-tab5", &OVERHEADS.iter().flat_map(|(name, _)| cells(name)).collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-tab5", "response by costs over that with the first, WL5", NEAR_5, how);
    let columns = ["CS 200 I 50 us; Q 200 CS 2 ms", "CS 100 I 25 us; Q 100 CS 1 ms", "CS 100 I 50 us; Q 100 CS 2 ms"];
    for ((name, [second, third]), ran) in OVERHEADS.iter().zip(ran.chunks(3)) {
        let papers = [None, *second, *third];
        let cell = |((column, it), paper): ((&str, &Ran), _)| {
            (column.to_string(), ratio(&it.each(RESPONSE), &ran[0].each(RESPONSE)), paper)
        };
        figure.series.push(row("", name, columns.into_iter().zip(ran).zip(papers).map(cell)));
    }
    let each = |name: &str, column: usize| {
        let place = OVERHEADS.iter().position(|(it, _)| *it == name).expect("it is there");
        ran[place * columns.len() + column].each(RESPONSE)
    };
    let half = |name: &str| ratios(&each(name, 1), &each(name, 0));
    let mut claims = Vec::new();
    for (name, _) in OVERHEADS {
        let what = format!("{name}, half of the costs: \"reduce\" (4.5)");
        claims.push(Claim::at_most(what, 1.0, Estimate::of(&half(name))).strictly());
    }
    for name in ["DCS", "DCS-SB", "SB", "PB-SB", "GS"] {
        let what = format!("{name}, the third over the second: \"increase\"");
        claims.push(Claim::at_least(what, 1.0, ratio(&each(name, 2), &each(name, 1))).strictly());
    }
    let none = ratio(&each("PB", 2), &each("PB", 1));
    claims.push(Claim::about("PB, the third over the second: \"no interrupts\"", 1.0, none));
    let mean = |names: &[&str]| means(&names.iter().map(|name| half(name)).collect::<Vec<_>>());
    let what = "half of the costs, SB, DCS-SB, PB-SB over DCS, PB: \"more significant\"";
    let more = ratio(&mean(&["SB", "DCS-SB", "PB-SB"]), &mean(&["DCS", "PB"]));
    claims.push(Claim::at_most(what, 1.0, more).strictly());
    figure.claims = claims;
    figure
}
