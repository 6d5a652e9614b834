// SPDX-License-Identifier: GPL-2.0-only
//! The cells of a figure: each a workload on machines with some costs, run several times, all of them on all CPUs.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use super::How;
use super::figure::{Point, Series};
use crate::bsp::{self, Outcome, Readings, Scheduler, Setup, Wakeup};
use crate::jobs::{Pattern, Program};
use crate::policy::{Costs, WaitRule};
use crate::progress::progress;
use crate::report::run_seed;
use crate::stats::Estimate;

const US: f64 = 1_000.0;

/// A job's length alone, in ns (Dusseau 3.4), unless that takes more iterations than asked for.
const ALONE_NS: f64 = 10e9;
/// The same of a job that communicates all the time. The paper's are 20 s long; these are as long as it takes for
/// results to stay where they are.
const CONTINUOUS_ALONE_NS: f64 = 3e9;

/// The machine that most figures have: L = 10 us, CS = 200 us.
pub const MACHINE: Machine = Machine { latency_us: 10.0, switch_us: 200.0 };

/// What messages and switches cost.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// L, in us.
    pub latency_us: f64,
    /// CS and W, in us.
    pub switch_us: f64,
}

/// A curve or row, and a place in it.
#[derive(Clone, Debug)]
pub struct Cell {
    /// In which of the graphs, if there are several.
    pub panel: String,
    /// In which of the curves.
    pub series: String,
    /// Where on the x axis.
    pub x: f64,
    /// In which column of a table.
    pub column: Option<String>,
    /// What the paper has.
    pub paper: Option<f64>,
    /// What is run.
    pub setup: Setup,
}

/// A cell, and what came out.
pub struct Ran {
    /// What was run.
    pub cell: Cell,
    /// Each run of it.
    pub outcomes: Vec<Outcome>,
}

impl Ran {
    /// The slowdown.
    pub fn slowdown(&self) -> Estimate {
        Estimate::of(&self.outcomes.iter().map(Outcome::slowdown).collect::<Vec<_>>())
    }

    /// The share of the waits of one kind, in the order of [`WaitFor`](crate::policy::WaitFor), that ended while their
    /// process spun; none if there were none.
    pub fn successful(&self, kind: usize) -> Option<f64> {
        let shares: Option<Vec<f64>> = self.outcomes.iter().map(|outcome| outcome.successful[kind]).collect();
        shares.map(|shares| Estimate::of(&shares).mean)
    }
}

/// Three jobs on 32 nodes, as Dusseau has them (3.4). Granularity in us, imbalance as a multiple of it.
pub fn bulk_synchronous(
    pattern: Pattern,
    granularity: (f64, f64),
    wait: WaitRule,
    machine: Machine,
    how: &How,
) -> Setup {
    let (granularity_us, imbalance) = granularity;
    let program = Program {
        pattern,
        processes: 32,
        granularity_ns: (granularity_us * US) as u64,
        imbalance_ns: (granularity_us * imbalance * US) as u64,
        gap_ns: 8_000,
        iterations: 1,
    };
    let iterations = |one_ns: f64| (ALONE_NS / one_ns).min(f64::from(how.iterations));
    let mut setup = setup(program, wait, Wakeup::Urgent, machine, iterations);
    Readings::ALL.apply(&mut setup);
    setup
}

/// Three jobs on 32 nodes that communicate all the time, each c = `gap_us`, with C = 100 ms (Arpaci-Dusseau 5.2).
pub fn continuous(gap_us: f64, wait: WaitRule, machine: Machine) -> Setup {
    let program = Program {
        pattern: Pattern::Continuous,
        processes: 32,
        granularity_ns: 100_000_000,
        imbalance_ns: 0,
        gap_ns: (gap_us * US) as u64,
        iterations: 1,
    };
    setup(program, wait, Wakeup::Charged, machine, |one_ns| CONTINUOUS_ALONE_NS / one_ns)
}

fn setup(
    mut program: Program,
    wait: WaitRule,
    wakeup: Wakeup,
    machine: Machine,
    iterations: impl Fn(f64) -> f64,
) -> Setup {
    let (latency_ns, switch_ns) = ((machine.latency_us * US) as u64, (machine.switch_us * US) as u64);
    program.iterations = iterations(program.iteration_ns(latency_ns)).round().max(1.0) as u32;
    let costs =
        Costs { latency_ns, switch_ns, spin_ns: switch_ns, imbalance_ns: program.imbalance_ns, ..Costs::default() };
    Setup {
        nodes: program.processes,
        jobs: 3,
        program,
        costs,
        wait,
        scheduler: Scheduler::Svr4,
        by_tick: false,
        wakeup,
        aligned: false,
        has_clocks: true,
        spread_roots: false,
    }
}

/// Runs all cells, each as often as asked for, on all CPUs.
pub fn run(name: &str, cells: Vec<Cell>, how: &How) -> Vec<Ran> {
    let each: Vec<(&Cell, u32)> = cells.iter().flat_map(|cell| (0..how.runs).map(move |run| (cell, run))).collect();
    let bar = progress(name, each.len() as u64);
    let simulate = |(cell, run): &(&Cell, u32)| {
        let outcome = bsp::simulate(&cell.setup, run_seed(how.seed, *run), &mut |_, _| {});
        bar.inc(1);
        outcome
    };
    let outcomes: Vec<Outcome> = each.par_iter().map(simulate).collect();
    bar.finish_and_clear();
    let chunks = outcomes.chunks(how.runs as usize).map(<[Outcome]>::to_vec).collect::<Vec<_>>();
    cells.into_iter().zip(chunks).map(|(cell, outcomes)| Ran { cell, outcomes }).collect()
}

/// The curves of the slowdowns of the cells, which come curve by curve.
pub fn slowdowns(ran: &[Ran]) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for it in ran {
        let Cell { panel, series: name, x, column, paper, .. } = &it.cell;
        let point = Point { column: column.clone(), paper: *paper, ..Point::new(*x, it.slowdown()) };
        match series.last_mut().filter(|last| last.name == *name && last.panel == *panel) {
            Some(last) => last.points.push(point),
            None => series.push(Series { panel: panel.clone(), name: name.clone(), points: vec![point] }),
        }
    }
    series
}

/// The largest of the mean slowdowns of some of the cells; 0 of none.
pub fn worst(ran: &[Ran], of: impl Fn(&Cell) -> bool) -> f64 {
    ran.iter().filter(|it| of(&it.cell)).map(|it| it.slowdown().mean).fold(0.0, f64::max)
}
