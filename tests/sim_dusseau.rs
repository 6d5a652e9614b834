// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the model of bulk-synchronous jobs reproduces Dusseau 1996: Figures 4 and 13 within 25% in every cell and 8%
//! in the median, and what its text says of the other figures.
//!
//! How the paper is read is in docs/simulator.md.

use bsp::{on_svr4, run};
use cosched_sim::bsp::{Readings, Scheduler, Setup};
use cosched_sim::jobs::{Pattern, Program};
use cosched_sim::paper::dusseau_tables::{FIGURE_4, FIGURE_13, Table, Tables};
use cosched_sim::policy::{Costs, WaitRule};

#[path = "common/bsp.rs"]
mod bsp;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// Latency and context switch of the rows, in us.
const ROWS: [(u64, u64); 4] = [(100, 50), (10, 50), (100, 200), (10, 200)];
/// Granularity in us and imbalance as a multiple of it, of the columns.
const COLUMNS: [(u64, f64); 6] =
    [(100, 0.25), (100, 1.5), (5_000, 0.25), (5_000, 1.5), (500_000, 0.25), (500_000, 1.5)];

/// Three jobs on 32 nodes, as long as the paper's up to `most` iterations.
fn setup(pattern: Pattern, (granularity_us, imbalance): (u64, f64), wait: WaitRule, most: u32) -> Setup {
    let (granularity_ns, gap_ns) = (granularity_us * US, 8 * US);
    let imbalance_ns = (granularity_ns as f64 * imbalance) as u64;
    let mut program = Program { pattern, processes: 32, granularity_ns, imbalance_ns, gap_ns, iterations: 1 };
    program.iterations = (10e9 / program.iteration_ns(10 * US)).clamp(1.0, f64::from(most)) as u32;
    let costs = Costs { latency_ns: 10 * US, switch_ns: 200 * US, spin_ns: 400 * US, imbalance_ns, ..Costs::default() };
    with_costs(&on_svr4(3, program, costs, wait), costs.latency_ns, costs.switch_ns)
}

/// With other costs, which are part of how the paper is read.
fn with_costs(setup: &Setup, latency_ns: u64, switch_ns: u64) -> Setup {
    let mut setup = setup.clone();
    (setup.costs.latency_ns, setup.costs.switch_ns) = (latency_ns, switch_ns);
    Readings::ALL.apply(&mut setup);
    setup
}

/// By how much each cell is off, as a share of the paper's.
fn errors(pattern: Pattern, wait: WaitRule, table: &Table) -> Vec<(String, f64)> {
    let cells = ROWS
        .iter()
        .zip(table)
        .flat_map(|(&row, values)| COLUMNS.iter().zip(values).map(move |(&column, &value)| (row, column, value)));
    let error = |((latency_us, switch_us), column, wanted): ((u64, u64), (u64, f64), f64)| {
        let setup = with_costs(&setup(pattern, column, wait, 1500), latency_us * US, switch_us * US);
        let found = run(&setup).slowdown();
        let name = format!("{pattern} {wait} L {latency_us} CS {switch_us} {column:?}: {found:.2} for {wanted}");
        (name, found / wanted - 1.0)
    };
    cells.map(error).collect()
}

fn reproduces(tables: &Tables) {
    let mut errors: Vec<_> =
        tables.of.iter().flat_map(|(pattern, table)| errors(*pattern, tables.wait, table)).collect();
    assert_eq!(errors.len(), 72);
    let far: Vec<_> = errors.iter().filter(|(_, error)| error.abs() > 0.25).collect();
    assert!(far.is_empty(), "off by more than 25%: {far:?}");
    errors.sort_by(|a, b| a.1.abs().total_cmp(&b.1.abs()));
    assert!(errors[36].1.abs() < 0.08, "median {:?}", errors[36]);
}

#[test]
fn figure_4_immediate_blocking() {
    reproduces(&FIGURE_4);
}

#[test]
fn the_finest_of_barrier_are_as_slow_as_in_the_paper_once_jobs_last_for_seconds() {
    // Figure 4, all that the paper has above 1.1. With 1000 iterations they are 15 to 21% below it.
    let [(Pattern::Barrier, table), ..] = FIGURE_4.of else { panic!("BARRIER is the first") };
    for ((latency_us, switch_us), values) in ROWS.into_iter().zip(table).skip(1) {
        for (column, wanted) in COLUMNS.into_iter().zip(values).take(2) {
            let long = setup(Pattern::Barrier, column, WaitRule::Immediate, 15_000);
            let found = run(&with_costs(&long, latency_us * US, switch_us * US)).slowdown();
            assert!((found / wanted - 1.0).abs() < 0.05, "L {latency_us} CS {switch_us} {column:?}: {found} {wanted}");
        }
    }
}

#[test]
fn figure_13_adaptive_global() {
    reproduces(&FIGURE_13);
}

#[test]
fn without_the_order_of_the_tick_transpose_is_slow_as_the_papers_is_not() {
    // Figure 13, CS 200 us, L 100 us: 1.23.
    let transpose = setup(Pattern::Transpose, (100, 0.25), WaitRule::AdaptiveGlobal, 500);
    let read = with_costs(&transpose, 100 * US, 200 * US);
    let [by_tick, behind] = [true, false].map(|by_tick| run(&Setup { by_tick, ..read.clone() }).slowdown());
    assert!(by_tick < 1.25 && behind > 1.35, "{by_tick} {behind}");
}

#[test]
fn two_switches_of_spinning_keep_processes_together_that_are_balanced() {
    // Dusseau 5.2: at g = 400 us, spinning for 400 us, 98% of the opening barriers are successful with v = 0.5 g and
    // 37% with v = 2 g.
    let openings = |imbalance| {
        let outcome = run(&setup(Pattern::News, (400, imbalance), WaitRule::Fixed, 1500));
        outcome.successful[1].expect("there are barriers")
    };
    let (balanced, skewed) = (openings(0.5), openings(2.0));
    assert!(balanced > 0.93 && skewed < 0.5, "{balanced} {skewed}");
}

#[test]
fn immediate_blocking_of_fine_grained_jobs_is_nearly_sixteen_times_slower() {
    // Dusseau 5.1, of Figure 3. And coarse jobs that are out of balance gain (4.1).
    let slowdown = |pattern, column| run(&setup(pattern, column, WaitRule::Immediate, 1000)).slowdown();
    let (fine, coarse) = (slowdown(Pattern::Transpose, (100, 0.0)), slowdown(Pattern::News, (500_000, 1.5)));
    assert!((14.0..17.0).contains(&fine) && coarse < 0.85, "{fine} {coarse}");
}

#[test]
fn round_robin_is_two_to_three_times_worse() {
    // Dusseau 7.2, Figure 12: up to 3.4 times worse than coscheduling, with a quantum of one tick.
    for (granularity_us, range) in [(100, 2.5..3.6), (400, 2.0..3.6)] {
        let svr4 = setup(Pattern::News, (granularity_us, 0.5), WaitRule::AdaptiveGlobal, 1500);
        let round_robin = Setup { scheduler: Scheduler::RoundRobin(10 * MS), by_tick: false, ..svr4.clone() };
        let (svr4, round_robin) = (run(&svr4).slowdown(), run(&round_robin).slowdown());
        assert!((1.8..3.4).contains(&(round_robin / svr4)), "g {granularity_us}: {round_robin} {svr4}");
        assert!(range.contains(&round_robin), "g {granularity_us}: {round_robin}");
    }
}

#[test]
fn clocks_that_tick_together_help() {
    // Dusseau 7.1, Figure 11: at most 15% worse than coscheduling, and the finest not at all.
    for (granularity_us, imbalance, most) in [(100, 0.5, 1.05), (400, 1.0, 1.15), (1000, 0.5, 1.15)] {
        let setup = setup(Pattern::News, (granularity_us, imbalance), WaitRule::AdaptiveGlobal, 1500);
        let (independent, aligned) =
            (run(&setup).slowdown(), run(&Setup { aligned: true, ..setup.clone() }).slowdown());
        assert!(aligned < independent && aligned < most, "g {granularity_us}: {aligned} {independent}");
    }
}

#[test]
fn spinning_for_longer_than_ten_switches_gains_nothing() {
    // Dusseau 6.1: beyond V = 10 CS a barrier is better slept through, and the oracle does.
    let slowdown = |wait, spin_us| {
        let mut setup = setup(Pattern::News, (5_000, 1.5), wait, 600);
        setup.costs.spin_ns = spin_us * US;
        run(&setup).slowdown()
    };
    let (oracle, patient) = (slowdown(WaitRule::Oracle, 0), slowdown(WaitRule::Fixed, 7_520));
    assert!(oracle < patient * 1.02, "{oracle} {patient}");
}
