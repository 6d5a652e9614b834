// SPDX-License-Identifier: GPL-2.0-only
//! The cells of Zhang's figures and tables: a strategy, a workload and a machine, run several times with the same jobs
//! for all.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use super::How;
use super::figure::{Point, Series};
use crate::cluster::workload::{Stream, Workload};
use crate::cluster::{self, Costs, Outcome, Readings, Setup};
use crate::progress::progress;
use crate::report::run_seed;
use crate::stats::Estimate;

/// The ten strategies, in the order of Figure 4: as the paper calls them, and as the presets do.
pub const STRATEGIES: [(&str, &str); 10] = [
    ("Local", "local"),
    ("GS", "gang"),
    ("SB", "sb"),
    ("DCS", "dcs"),
    ("DCS-SB", "dcs-sb"),
    ("PB", "pb"),
    ("PB-SB", "pb-sb"),
    ("SY", "sy"),
    ("PB-SY", "pb-sy"),
    ("DCS-SY", "dcs-sy"),
];

/// What jobs ask for where the paper does not vary it: it does not say how much that was.
pub const LOAD: f64 = 0.7;
/// How many jobs come, and how long they take alone in the mean, in s: as many as can be simulated. The paper's take
/// hours.
pub const JOBS: u32 = 100;
const EXECUTION_S: f64 = 1.0;

/// What a cell runs: the defaults of Table 3, but for what it varies.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// A preset.
    pub preset: &'static str,
    /// Which jobs.
    pub workload: Workload,
    /// What they ask for.
    pub load: f64,
    /// The multiprogramming level.
    pub level: u32,
    /// s.
    pub skew: f64,
    /// CS of all but the gang, in us; the gang's is ten times as long.
    pub switch_us: f64,
    /// I, in us.
    pub interrupt_us: f64,
    /// Q, in ms.
    pub quantum_ms: u64,
    /// How the paper is read, if not as in all other figures.
    pub readings: Option<Readings>,
}

impl Cell {
    /// `preset` with WL`workload`.
    pub fn new(preset: &'static str, workload: u8) -> Cell {
        Cell {
            preset,
            workload: Workload::new(workload),
            load: LOAD,
            level: 5,
            skew: 0.2,
            switch_us: 200.0,
            interrupt_us: 50.0,
            quantum_ms: 200,
            readings: None,
        }
    }

    fn setup(&self, how: &How) -> Setup {
        let us = |us: f64| (us * 1e3) as u64;
        let switch_us = if self.preset == "gang" { self.switch_us * 10.0 } else { self.switch_us };
        let costs = Costs {
            switch_ns: us(switch_us),
            interrupt_ns: us(self.interrupt_us),
            latency_ns: us(185.48),
            move_ns: us(3.0),
            check_ns: us(2.0),
        };
        let policy = cluster::policy_of(self.preset, &costs, us(200.0), self.quantum_ms * 1_000_000);
        let policy = policy.expect("it is a preset");
        let readings = self.readings.unwrap_or(how.zhang);
        Setup { nodes: 32, level: self.level, readings, policy, costs, skew: self.skew, warmup: 0.1 }
    }

    fn simulate(&self, how: &How, run: u32) -> Outcome {
        let seed = run_seed(how.seed, run);
        let setup = self.setup(how);
        let (jobs, execution_ns) = (JOBS, EXECUTION_S * 1e9);
        let stream = Stream { workload: self.workload, jobs, execution_ns, load: self.load, nodes: setup.nodes };
        cluster::simulate(&setup, &stream.draw(seed), seed)
    }
}

/// Runs all cells on all CPUs. Run by run, all have the same jobs.
pub fn run(name: &str, cells: &[Cell], how: &How) -> Vec<Ran> {
    let each: Vec<(&Cell, u32)> = cells.iter().flat_map(|cell| (0..how.runs).map(move |run| (cell, run))).collect();
    let bar = progress(name, each.len() as u64);
    let simulate = |(cell, run): &(&Cell, u32)| {
        let outcome = cell.simulate(how, *run);
        bar.inc(1);
        outcome
    };
    let outcomes: Vec<Outcome> = each.par_iter().map(simulate).collect();
    bar.finish_and_clear();
    outcomes.chunks(how.runs as usize).map(|outcomes| Ran(outcomes.to_vec())).collect()
}

/// The runs of a cell.
pub struct Ran(Vec<Outcome>);

/// What is looked at of a run.
pub type Of = fn(&Outcome) -> f64;

/// The response time, in s.
pub const RESPONSE: Of = |it| it.response_s;
/// The utilization, 0 to 1.
pub const UTILIZATION: Of = |it| it.utilization;

impl Ran {
    /// What `of` says of each run.
    pub fn estimate(&self, of: Of) -> Estimate {
        Estimate::of(&self.each(of))
    }

    /// The same, run by run.
    pub fn each(&self, of: Of) -> Vec<f64> {
        self.0.iter().map(of).collect()
    }
}

/// `of` each of the runs over the same of `others`, run by run: the jobs of a run are the same for all, and so chance
/// that all share drops out.
pub fn ratios(of: &[f64], others: &[f64]) -> Vec<f64> {
    of.iter().zip(others).map(|(it, other)| it / other).collect()
}

/// What [`ratios`] come to.
pub fn ratio(of: &[f64], others: &[f64]) -> Estimate {
    Estimate::of(&ratios(of, others))
}

/// The means of several, run by run.
pub fn means(all: &[Vec<f64>]) -> Vec<f64> {
    let runs = all.first().map_or(0, Vec::len);
    (0..runs).map(|run| all.iter().map(|each| each[run]).sum::<f64>() / all.len() as f64).collect()
}

/// A row of a table: a cell for each column.
pub fn row(panel: &str, name: &str, cells: impl Iterator<Item = (String, Estimate, Option<f64>)>) -> Series {
    let point = |(i, (column, estimate, paper)): (usize, (String, Estimate, Option<f64>))| Point {
        column: Some(column),
        paper,
        ..Point::new(i as f64, estimate)
    };
    Series { panel: panel.into(), name: name.into(), points: cells.enumerate().map(point).collect() }
}

/// How these figures are made.
pub fn made(how: &How) -> String {
    how.made(&format!("{JOBS} jobs of {EXECUTION_S} s alone in the mean, the first tenth of which does not count"))
}
