// SPDX-License-Identifier: GPL-2.0-only
//! Figures 2, 3, 5, 6 and 8 to 12 of Dusseau 1996: slowdowns by granularity and imbalance, and what the time goes to.
//! Their bars are not in the text; what it says of them is.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use super::cells::{self, Cell, MACHINE, Ran, bulk_synchronous, slowdowns, worst};
use super::figure::{Claim, Figure, Series};
use super::{How, axis};
use crate::bsp::{self, Breakdown, Outcome, Scheduler, Setup};
use crate::jobs::Pattern;
use crate::policy::WaitRule;
use crate::report::run_seed;

/// g, in us.
const GRANULARITIES: [f64; 6] = [100.0, 400.0, 1_000.0, 5_000.0, 50_000.0, 500_000.0];
/// Of Figure 6, which shows the finer ones.
const FINE: [f64; 5] = [100.0, 200.0, 400.0, 1_000.0, 5_000.0];
/// How narrow the intervals of Figure 12 are to be. Under round-robin jobs take up to five times as long, and so do we.
const ROUND_ROBIN_NARROW: f64 = 0.05;
/// v / g: the six bars of each group.
const IMBALANCES: [f64; 6] = [0.0, 0.25, 0.5, 1.0, 1.5, 2.0];
const PATTERNS: [Pattern; 3] = [Pattern::Barrier, Pattern::News, Pattern::Transpose];

fn label(granularity_us: f64) -> String {
    if granularity_us < 1000.0 { format!("g {granularity_us} us") } else { format!("g {} ms", granularity_us / 1000.0) }
}

/// A graph of one pattern.
fn graph(
    panel: &str,
    pattern: Pattern,
    granularities: &[f64],
    wait: WaitRule,
    how: &How,
    change: &dyn Fn(&mut Setup),
) -> Vec<Cell> {
    let at = granularities.iter().flat_map(|&g| IMBALANCES.iter().map(move |&v| (g, v)));
    let cell = |(granularity_us, imbalance): (f64, f64)| {
        let mut setup = bulk_synchronous(pattern, (granularity_us, imbalance), wait, MACHINE, how);
        change(&mut setup);
        let (panel, series) = (panel.to_string(), label(granularity_us));
        Cell { panel, series, x: imbalance, column: None, paper: None, setup }
    };
    at.map(cell).collect()
}

/// Three graphs, one for each pattern.
fn graphs(wait: WaitRule, how: &How, change: &dyn Fn(&mut Setup)) -> Vec<Cell> {
    let of = |pattern: Pattern| graph(&pattern.to_string().to_uppercase(), pattern, &GRANULARITIES, wait, how, change);
    PATTERNS.into_iter().flat_map(of).collect()
}

fn unchanged(_: &mut Setup) {}

/// NEWS, g up to 1 ms: what others are compared with.
fn fine_news(wait: WaitRule, how: &How) -> Vec<Cell> {
    graph("NEWS", Pattern::News, &GRANULARITIES[..3], wait, how, &unchanged)
}

/// What the time of a cell went to.
fn local(it: &Ran) -> Breakdown {
    it.breakdown(|outcome| &outcome.breakdown)
}

fn local_bars(ran: &[Ran]) -> Vec<Series> {
    cells::bars(ran.iter().map(|it| (&it.cell, local(it))))
}

/// How much time some of the cells spend switching, as a share of that under coscheduling: the part of a bar that is as
/// high as the slowdown. The mean over the cells.
fn switching(ran: &[Ran], of: impl Fn(&Cell) -> bool) -> f64 {
    let parts: Vec<f64> =
        ran.iter().filter(|it| of(&it.cell)).map(|it| local(it).switch * it.slowdown().mean).collect();
    parts.iter().sum::<f64>() / parts.len().max(1) as f64
}

/// Nobody comes back first there: processes find together "only ... when the newly unblocked process is the only
/// runnable process" (7.2).
fn round_robin(setup: &mut Setup) {
    (setup.scheduler, setup.by_tick) = (Scheduler::RoundRobin(10_000_000), false);
}

fn figure(name: &str, title: &str, ran: &[Ran], how: &How) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis("v / g", false),
        y: axis("slowdown", false),
        series: slowdowns(ran),
        bars: vec![],
        claims: vec![],
        near: None,
        made: how.made_as_read(),
    }
}

fn granularity_us(cell: &Cell) -> f64 {
    cell.setup.program.granularity_ns as f64 / 1e3
}

fn imbalance_us(cell: &Cell) -> f64 {
    cell.setup.program.imbalance_ns as f64 / 1e3
}

fn is(pattern: Pattern) -> impl Fn(&Cell) -> bool {
    move |cell| cell.setup.program.pattern == pattern
}

fn everywhere(_: &Cell) -> bool {
    true
}

/// The mean of a kind of wait over the cells that have such waits.
fn successful(ran: &[Ran], kind: usize, of: impl Fn(&Cell) -> bool) -> f64 {
    let shares: Vec<f64> = ran.iter().filter(|it| of(&it.cell)).filter_map(|it| it.successful(kind)).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// The patterns of which the paper's tables are in our copy.
fn in_tables(cell: &Cell) -> bool {
    !is(Pattern::Transpose)(cell)
}

/// Of those, the cells other than where v = V.
fn off_v(cell: &Cell) -> bool {
    imbalance_us(cell) != 2000.0 && in_tables(cell)
}

/// The least of the mean slowdowns of some of the cells.
fn least(ran: &[Ran], of: impl Fn(&Cell) -> bool) -> f64 {
    ran.iter().filter(|it| of(&it.cell)).map(|it| it.slowdown().mean).fold(f64::INFINITY, f64::min)
}

/// v of the cell with the largest slowdown of some of them, in us.
fn imbalance_of_worst(ran: &[Ran], of: impl Fn(&Cell) -> bool) -> f64 {
    let worst = ran.iter().filter(|it| of(&it.cell)).max_by(|a, b| a.slowdown().mean.total_cmp(&b.slowdown().mean));
    worst.map_or(0.0, |it| imbalance_us(&it.cell))
}

/// How often a share becomes larger from one cell to the next of those that are alike.
fn rises(all: &[(Cell, Breakdown)], alike: impl Fn(&Cell) -> String, of: impl Fn(&Breakdown) -> f64) -> f64 {
    let steps = all.iter().enumerate().filter_map(|(i, (cell, breakdown))| {
        let next = all[i + 1..].iter().find(|(next, _)| alike(next) == alike(cell))?;
        Some((of(breakdown), of(&next.1)))
    });
    steps.filter(|(this, next)| next > this).count() as f64
}

/// Where the time goes under coscheduling.
pub fn figure_2(how: &How) -> Figure {
    let cells = graphs(WaitRule::Busy, how, &unchanged);
    let coschedule = |cell: &Cell| {
        let mut setup = cell.setup.clone();
        setup.program.iterations = setup.program.iterations.min(cells::FIRST_ITERATIONS);
        let runs: Vec<_> =
            (0..how.runs).map(|run| bsp::coschedule(&setup, run_seed(how.seed, run)).breakdown).collect();
        (cell.clone(), Breakdown::mean(runs.iter()))
    };
    let all: Vec<(Cell, Breakdown)> = cells.par_iter().map(coschedule).collect();
    let made = how.made(&format!("jobs of 10 s or {} iterations", cells::FIRST_ITERATIONS.min(how.iterations)));
    let mut figure = Figure { made, ..figure("dusseau-2", "where the time goes under coscheduling", &[], how) };
    figure.bars = cells::bars(all.iter().map(|(cell, breakdown)| (cell, *breakdown)));
    let busy = all.iter().map(|(_, it)| 1.0 - it.switch - it.idle).fold(1.0, f64::min);
    let reads: Vec<(Cell, Breakdown)> = all.iter().filter(|(cell, _)| !is(Pattern::Barrier)(cell)).cloned().collect();
    // From fine to coarse.
    let by_granularity = |cell: &Cell| format!("{} {}", cell.panel, cell.x);
    figure.claims = vec![
        Claim::about("share of switching and idling left out: \"negligible\", the least (3.4)", 1.0, busy),
        Claim::about(
            "steps of v, of 90, with which more time goes to synchronizing: \"increases\" (3.4)",
            90.0,
            rises(&all, |cell| format!("{} {}", cell.panel, cell.series), |it| it.synchronize),
        ),
        Claim::about(
            "NEWS, TRANSPOSE: steps of g, of 60, with less communication over computation: \"increases\" (3.4)",
            60.0,
            rises(&reads, by_granularity, |it| it.compute / it.communicate),
        ),
    ];
    figure
}

/// Immediate blocking.
pub fn figure_3(how: &How) -> Figure {
    let ran = cells::run("dusseau-3", graphs(WaitRule::Immediate, how, &unchanged), how);
    let mut figure = figure("dusseau-3", "immediate blocking", &ran, how);
    figure.y.log = true;
    figure.bars = local_bars(&ran);
    let of_switch = |pattern: Pattern, finest: bool| {
        let chosen = |cell: &Cell| is(pattern)(cell) && (granularity_us(cell) < 200.0) == finest;
        switching(&ran, chosen)
    };
    figure.claims = vec![
        Claim::about("the largest slowdown: \"nearly 16 times slower\" (5.1)", 16.0, worst(&ran, everywhere)),
        Claim::at_most(
            "the largest slowdown of g = 50 and 500 ms, v = 1 to 2 g: \"superior performance\" (4.1)",
            1.0,
            worst(&ran, |cell| granularity_us(cell) > 10_000.0 && cell.x >= 1.0),
        ),
        Claim::at_most(
            "the same of g = 5 ms, BARRIER and NEWS: the text says \"5 ms to 500 ms\" (4.1)",
            1.0,
            worst(&ran, |cell| granularity_us(cell) == 5_000.0 && cell.x >= 1.0 && in_tables(cell)),
        ),
        Claim::at_least(
            "the least slowdown of g = 100 us, any v: coscheduling is \"strictly superior\" (4.1)",
            1.0,
            least(&ran, |cell| granularity_us(cell) < 200.0),
        ),
        Claim::about(
            "computing, switching and idling together, the least: \"no time spent spinning\" (Figure 3)",
            1.0,
            ran.iter().map(local).map(|it| it.compute + it.switch + it.idle).fold(1.0, f64::min),
        ),
        Claim::at_least(
            "TRANSPOSE, g = 100 us: time spent switching over that of all g above, \"increase\" (4.1)",
            1.0,
            of_switch(Pattern::Transpose, true) / of_switch(Pattern::Transpose, false),
        ),
        Claim::at_least(
            "g = 100 us: time TRANSPOSE switches over that of BARRIER, \"especially sensitive\" (4.1)",
            1.0,
            of_switch(Pattern::Transpose, true) / of_switch(Pattern::Barrier, true),
        ),
    ];
    figure
}

/// A fixed spin of one context switch.
pub fn figure_5(how: &How) -> Figure {
    let ran = cells::run("dusseau-5", graphs(WaitRule::Fixed, how, &unchanged), how);
    let mut figure = figure("dusseau-5", "fixed spin of one context switch", &ran, how);
    figure.y.log = true;
    let reads = successful(&ran, 0, |cell| granularity_us(cell) < 200.0);
    let (news, transpose) = (worst(&ran, is(Pattern::News)), worst(&ran, is(Pattern::Transpose)));
    figure.claims = vec![
        Claim::about("the largest slowdown of NEWS: \"5 times slower\" (5.2)", 5.0, news),
        Claim::at_most(
            "the largest slowdown of BARRIER: \"less than five times slower\" (5.1)",
            5.0,
            worst(&ran, is(Pattern::Barrier)),
        ),
        Claim::at_most("the largest slowdown of TRANSPOSE: \"less than 2.5\" (5.1)", 2.5, transpose),
        Claim::at_least("NEWS over TRANSPOSE: \"less than 2.5 ... rather than slowdowns of 5\"", 2.0, news / transpose),
        Claim::about("reads that end while their process spins, g = 100 us: \"99%\" (5.1)", 0.99, reads),
    ];
    figure
}

/// Fixed spins of 2, 4 and 8 context switches; NEWS.
pub fn figure_6(how: &How) -> Figure {
    let panel = |switches: u64| {
        let change = move |setup: &mut Setup| setup.costs.spin_ns = switches * setup.costs.switch_ns;
        graph(&format!("spin {switches} CS"), Pattern::News, &FINE, WaitRule::Fixed, how, &change)
    };
    let ran = cells::run("dusseau-6", [2, 4, 8].into_iter().flat_map(panel).collect(), how);
    let at = |granularity: f64, imbalance: f64| {
        move |cell: &Cell| cell.panel == "spin 2 CS" && granularity_us(cell) == granularity && cell.x == imbalance
    };
    let mut figure = figure("dusseau-6", "fixed spins, NEWS", &ran, how);
    figure.claims = vec![
        Claim::about(
            "the largest slowdown with 2 CS: \"only 60% slower\" (5.2)",
            1.6,
            worst(&ran, |cell| cell.panel == "spin 2 CS"),
        ),
        Claim::about(
            "opening barriers that end in the spin, 2 CS, g = 400 us, v = 0.5 g: \"98%\"",
            0.98,
            successful(&ran, 1, at(400.0, 0.5)),
        ),
        Claim::about("the same with v = 2 g: \"37%\"", 0.37, successful(&ran, 1, at(400.0, 2.0))),
    ];
    figure
}

/// The oracle; and the adaptive rules by their graphs of all patterns.
pub fn figure_8(how: &How) -> Figure {
    let ran = cells::run("dusseau-8", graphs(WaitRule::Oracle, how, &unchanged), how);
    let fine_news = |cell: &Cell| is(Pattern::News)(cell) && granularity_us(cell) < 1_500.0;
    let between = |cell: &Cell| fine_news(cell) && (450.0..=1500.0).contains(&imbalance_us(cell));
    let mut figure = figure("dusseau-8", "the oracle", &ran, how);
    figure.claims = vec![
        Claim::at_most("NEWS, g up to 1 ms, v = 450 to 1500 us: \"within 20%\" (6.1)", 1.2, worst(&ran, between)),
        Claim::about(
            "v of the largest slowdown, us: \"V = 10 CS\" (6.1)",
            2000.0,
            imbalance_of_worst(&ran, everywhere),
        ),
        Claim::at_most(
            "the largest slowdown where v is above V: \"equal or superior\" (6.1)",
            1.0,
            worst(&ran, |cell| imbalance_us(cell) > 2000.0),
        ),
        Claim::at_most(
            "the same, BARRIER and NEWS alone",
            1.0,
            worst(&ran, |cell| imbalance_us(cell) > 2000.0 && in_tables(cell)),
        ),
    ];
    figure
}

/// `adaptive-local`.
pub fn figure_9(how: &How) -> Figure {
    let ran = cells::run("dusseau-9", graphs(WaitRule::AdaptiveLocal, how, &unchanged), how);
    let oracle = cells::run("dusseau-9, oracle", fine_news(WaitRule::Oracle, how), how);
    let is_fine = |it: &&Ran| is(Pattern::News)(&it.cell) && granularity_us(&it.cell) < 1_500.0;
    let ratios = ran.iter().filter(is_fine).zip(&oracle);
    let ratio = ratios.map(|(local, oracle)| local.slowdown().mean / oracle.slowdown().mean).fold(0.0, f64::max);
    let mut figure = figure("dusseau-9", "adaptive, from a process's own waits", &ran, how);
    figure.claims = vec![Claim::at_least(
        "NEWS, g up to 1 ms: slowdown over that of the oracle, where it is largest: \"worse\" (6.2)",
        1.0,
        ratio,
    )];
    figure
}

/// `adaptive-global`.
pub fn figure_10(how: &How) -> Figure {
    let ran = cells::run("dusseau-10", graphs(WaitRule::AdaptiveGlobal, how, &unchanged), how);
    let title = "adaptive, from what the root of the barriers sees";
    let mut figure = figure("dusseau-10", title, &ran, how);
    figure.bars = local_bars(&ran);
    let coarse = |cell: &Cell| granularity_us(cell) > 10_000.0 && cell.x >= 1.0;
    let under = |of: fn(&Outcome) -> &Breakdown| {
        let chosen = ran.iter().filter(|it| coarse(&it.cell));
        chosen.map(|it| it.breakdown(of).synchronize).sum::<f64>()
    };
    figure.claims = vec![
        Claim::at_most(
            "coarse, v = 1 to 2 g: synchronizing over coscheduling's: \"only a short time\" (6.3)",
            1.0,
            under(|outcome| &outcome.breakdown) / under(|outcome| &outcome.ideal),
        ),
        Claim::at_most("the largest slowdown: \"within 35%\" (6.3)", 1.35, worst(&ran, everywhere)),
        Claim::at_most("the same, BARRIER and NEWS alone", 1.35, worst(&ran, in_tables)),
        Claim::at_most("the same, but for v = V = 2 ms", 1.35, worst(&ran, off_v)),
        Claim::about(
            "v of the largest slowdown, us, BARRIER and NEWS: \"near V\" (6.3)",
            2000.0,
            imbalance_of_worst(&ran, in_tables),
        ),
    ];
    figure
}

/// `adaptive-global`, with the clocks of all nodes ticking together.
pub fn figure_11(how: &How) -> Figure {
    let together = |setup: &mut Setup| setup.aligned = true;
    let ran = cells::run("dusseau-11", graphs(WaitRule::AdaptiveGlobal, how, &together), how);
    let mut figure = figure("dusseau-11", "clocks that tick together", &ran, how);
    let finest = |cell: &Cell| granularity_us(cell) < 200.0;
    let fine_in_tables = |cell: &Cell| finest(cell) && in_tables(cell);
    figure.claims = vec![
        Claim::at_most("the largest slowdown: \"only 15% slower\" (7.1)", 1.15, worst(&ran, everywhere)),
        Claim::at_most("the same, BARRIER and NEWS alone", 1.15, worst(&ran, in_tables)),
        Claim::at_most("the same, but for v = V = 2 ms", 1.15, worst(&ran, off_v)),
        Claim::about(
            "the largest slowdown of g = 100 us: \"identical to coscheduling\" (7.1)",
            1.0,
            worst(&ran, finest),
        ),
        Claim::about("the same, BARRIER and NEWS alone", 1.0, worst(&ran, fine_in_tables)),
    ];
    figure
}

/// `adaptive-global`, on round-robin schedulers.
pub fn figure_12(how: &How) -> Figure {
    let how = &How { narrow: ROUND_ROBIN_NARROW, ..*how };
    let ran = cells::run("dusseau-12", graphs(WaitRule::AdaptiveGlobal, how, &round_robin), how);
    let svr4 = cells::run("dusseau-12, svr4", fine_news(WaitRule::AdaptiveGlobal, how), how);
    let ratio = |granularity: f64| {
        let of = |cell: &Cell| is(Pattern::News)(cell) && granularity_us(cell) == granularity;
        worst(&ran, of) / worst(&svr4, of)
    };
    let mut figure = figure("dusseau-12", "round-robin instead of SVR4", &ran, how);
    figure.claims = vec![
        Claim::about("the largest slowdown: \"up to 3.4\" (7.2)", 3.4, worst(&ran, everywhere)),
        Claim::about("the same, BARRIER and NEWS alone", 3.4, worst(&ran, in_tables)),
    ];
    for granularity_us in [100.0, 400.0, 1000.0] {
        let what = format!("NEWS, {}: over that of SVR4: \"two to three times\" (abstract)", label(granularity_us));
        figure.claims.push(Claim::about(what, 2.5, ratio(granularity_us)));
    }
    figure
}
