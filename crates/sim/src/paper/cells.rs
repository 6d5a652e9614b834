// SPDX-License-Identifier: GPL-2.0-only
//! The cells of a figure: each a workload on machines with some costs, run several times, all of them on all CPUs.
//!
//! What a job does at first is not what it does later. Levels change by the second (Dusseau 3.3), so the processes of the
//! finest jobs take some seconds until they stand to each other as they will. So jobs become longer until the runs say
//! that it makes no difference any more, or until they are as long as the paper's.

use rayon::prelude::{IntoParallelIterator, IntoParallelRefIterator, ParallelIterator};

use super::How;
use super::figure::{Point, Series};
use crate::bsp::{self, Breakdown, Outcome, Scheduler, Setup, Wakeup};
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
pub const CONTINUOUS_ALONE_NS: f64 = 3e9;
/// How long jobs take alone at first that become longer, in ns. Below that all runs may agree, and still be in a state
/// that none of them keeps: BARRIER of CS = 50 us and L = 10 us has 1.85 for 2,000 iterations, and then 2.25.
pub const FIRST_ALONE_NS: f64 = 1e9;
/// And how many iterations they have at least.
pub const FIRST_ITERATIONS: u32 = 500;
/// Half the interval, and the change since they were half as long, are to be no more than this share of the mean, but
/// for figures that say otherwise.
pub const NARROW: f64 = 0.02;
/// What a CPU's time goes to, as Dusseau's Figure 2 has it.
const PARTS: [&str; 5] = ["computing", "communicating", "synchronizing", "context-switching", "idling"];

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
    /// How many iterations each job had.
    pub iterations: u32,
}

impl Ran {
    /// The slowdown.
    pub fn slowdown(&self) -> Estimate {
        Estimate::of(&self.outcomes.iter().map(Outcome::slowdown).collect::<Vec<_>>())
    }

    /// What the time of the CPUs went to, under local scheduling or under coscheduling.
    pub fn breakdown(&self, of: fn(&Outcome) -> &Breakdown) -> Breakdown {
        Breakdown::mean(self.outcomes.iter().map(of))
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
    how.dusseau.apply(&mut setup);
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

/// Runs all cells on all CPUs, with jobs that become twice as long until the interval is narrow, and at most as long as
/// the cells say.
pub fn run(name: &str, cells: Vec<Cell>, how: &How) -> Vec<Ran> {
    let bar = progress(name, cells.len() as u64);
    let lengthen = |cell: &Cell| {
        let ran = lengthened(cell, how);
        bar.inc(1);
        ran
    };
    let ran = cells.par_iter().map(lengthen).collect();
    bar.finish_and_clear();
    ran
}

fn lengthened(cell: &Cell, how: &How) -> Ran {
    let most = cell.setup.program.iterations;
    let alone = FIRST_ALONE_NS / cell.setup.program.iteration_ns(cell.setup.costs.latency_ns);
    let (mut iterations, mut before) = (most.min(FIRST_ITERATIONS.max(alone as u32)), None);
    loop {
        let mut setup = cell.setup.clone();
        setup.program.iterations = iterations;
        let simulate = |run: u32| bsp::simulate(&setup, run_seed(how.seed, run), &mut |_, _| {});
        let outcomes = (0..how.runs).into_par_iter().map(simulate).collect();
        let ran = Ran { cell: cell.clone(), outcomes, iterations };
        if iterations == most || is_narrow(ran.slowdown(), before, how.narrow) {
            return ran;
        }
        before = Some(ran.slowdown().mean);
        iterations = iterations.saturating_mul(2).min(most);
    }
}

/// Whether runs agree with each other, and with those of jobs that were half as long.
fn is_narrow(now: Estimate, before: Option<f64>, narrow: f64) -> bool {
    let within = |off: f64| off.abs() <= narrow * now.mean;
    now.ci90.is_some_and(within) && before.is_some_and(|before| within(now.mean - before))
}

/// A bar for each cell.
pub fn bars<'a>(all: impl Iterator<Item = (&'a Cell, Breakdown)>) -> Vec<Series> {
    let bar = |(cell, breakdown): (&Cell, Breakdown)| {
        let part = |(i, (name, share)): (usize, (&str, f64))| Point {
            column: Some(name.into()),
            ..Point::new(i as f64, Estimate { mean: share, ci90: None })
        };
        let parts = PARTS.into_iter().zip(breakdown.parts());
        Series {
            panel: cell.panel.clone(),
            name: format!("{}, v {} g", cell.series, cell.x),
            points: parts.enumerate().map(part).collect(),
        }
    };
    all.map(bar).collect()
}

/// The curves of the slowdowns of the cells, which come curve by curve.
pub fn slowdowns(ran: &[Ran]) -> Vec<Series> {
    let mut series: Vec<Series> = Vec::new();
    for it in ran {
        let Cell { panel, series: name, x, column, paper, .. } = &it.cell;
        let (column, iterations) = (column.clone(), Some(it.iterations));
        let point = Point { column, paper: *paper, iterations, ..Point::new(*x, it.slowdown()) };
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

#[cfg(test)]
mod tests {
    use super::*;

    fn how(iterations: u32) -> How {
        How {
            seed: 1,
            runs: 3,
            iterations,
            narrow: NARROW,
            dusseau: bsp::Readings::ALL,
            zhang: crate::cluster::Readings::NONE,
        }
    }

    fn cell(granularity_us: f64, how: &How) -> Cell {
        let setup = bulk_synchronous(Pattern::Barrier, (granularity_us, 0.25), WaitRule::Immediate, MACHINE, how);
        Cell { panel: String::new(), series: String::new(), x: 0.25, column: None, paper: None, setup }
    }

    #[test]
    fn jobs_become_longer_until_the_interval_is_narrow() {
        // The finest are 5 to 7 times slower in their first iterations, and then 6.8 to 6.9.
        let how = how(100_000);
        let ran = lengthened(&cell(100.0, &how), &how);
        let iterations = ran.iterations;
        assert!((14_000..cell(100.0, &how).setup.program.iterations).contains(&iterations), "{iterations}");
        let half = self::how(iterations / 2);
        let (now, before) = (ran.slowdown(), lengthened(&cell(100.0, &half), &half).slowdown().mean);
        assert!(
            now.ci90.unwrap() <= 0.02 * now.mean && (now.mean - before).abs() <= 0.02 * now.mean,
            "{now:?} {before}"
        );
        assert!((6.7..7.0).contains(&now.mean), "{now:?}");
    }

    #[test]
    fn jobs_become_no_longer_than_the_papers_or_than_was_asked_for() {
        for (granularity_us, most, wanted) in
            [(500_000.0, 100_000, 18..=18), (100.0, 700, 700..=700), (100.0, 3, 3..=3)]
        {
            let how = how(most);
            let iterations = lengthened(&cell(granularity_us, &how), &how).iterations;
            assert!(wanted.contains(&iterations), "{granularity_us} {most}: {iterations}");
        }
    }

    #[test]
    fn one_run_has_no_interval_and_a_first_length_nothing_before_it() {
        let estimate = |ci90| Estimate { mean: 1.0, ci90 };
        let is_narrow = |now, before| is_narrow(now, before, 0.02);
        assert!(is_narrow(estimate(Some(0.02)), Some(0.985)));
        assert!(!is_narrow(estimate(Some(0.021)), Some(1.0)) && !is_narrow(estimate(Some(0.01)), Some(0.97)));
        assert!(!is_narrow(estimate(None), Some(1.0)) && !is_narrow(estimate(Some(0.01)), None));
    }
}
