// SPDX-License-Identifier: GPL-2.0-only
//! Figures 3 to 5 of Arpaci-Dusseau: slowdowns by the time that processes spin. Their curves are not in the text; what
//! it says of them is.

use super::cells::{self, CONTINUOUS_ALONE_NS, Cell, Machine, Ran, bulk_synchronous, continuous, slowdowns};
use super::figure::{Claim, Figure};
use super::{How, axis};
use crate::bsp::{Readings, Setup, Wakeup};
use crate::jobs::Pattern;
use crate::policy::WaitRule;

/// W, in us.
const SWITCHES: [f64; 2] = [50.0, 200.0];
/// C of the bulk-synchronous jobs, in us.
const INTERVALS: [f64; 2] = [100.0, 1000.0];
/// c of the jobs that communicate all the time, in us.
const GAPS: [f64; 5] = [10.0, 50.0, 100.0, 500.0, 2000.0];
/// 2L, in us; there is no o.
const ROUND_TRIP_US: f64 = 20.0;

fn label(what: &str, us: f64) -> String {
    if us < 1000.0 { format!("{what} = {us} us") } else { format!("{what} = {} ms", us / 1000.0) }
}

fn panel(switch_us: f64) -> String {
    label("W", switch_us)
}

fn machine(switch_us: f64) -> Machine {
    Machine { latency_us: ROUND_TRIP_US / 2.0, switch_us }
}

/// Around the two steps, and far from them.
fn spins(switch_us: f64) -> Vec<f64> {
    let triggered = ROUND_TRIP_US + switch_us;
    let mut spins = vec![1.0, 5.0, 10.0, 19.0, 20.0, 21.0, 30.0, 40.0, 100.0, 150.0, 300.0, 450.0, 600.0, 1000.0];
    spins.extend([triggered - 20.0, triggered - 10.0, triggered - 1.0, triggered, triggered + 1.0]);
    spins.sort_by(f64::total_cmp);
    spins.dedup();
    spins
}

fn ns(us: f64) -> u64 {
    (us * 1000.0) as u64
}

/// With this spin at reads, and at barriers 2L + 2W: the last to come may have to be switched to, and so may the root.
/// The paper has the derivation elsewhere ([3] there).
fn with_spin(mut setup: Setup, switch_us: f64, spin_us: f64) -> Setup {
    (setup.wait, setup.wakeup, setup.costs.spin_ns) = (WaitRule::Fixed, Wakeup::Charged, ns(spin_us));
    Readings::NONE.apply(&mut setup);
    setup.costs.barrier_spin_ns = Some(ns(ROUND_TRIP_US + 2.0 * switch_us));
    setup
}

fn cell(switch_us: f64, series: String, x: f64, setup: Setup) -> Cell {
    Cell { panel: panel(switch_us), series, x, column: None, paper: None, setup }
}

fn figure(name: &str, title: &str, x: &str, ran: &[Ran], how: &How) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis(x, true),
        y: axis("slowdown", true),
        series: slowdowns(ran),
        bars: vec![],
        claims: vec![],
        near: None,
        made: how.made_until_narrow(),
    }
}

/// Of jobs that communicate all the time, whose length does not go by the interval.
fn of_one_length(name: &str, title: &str, x: &str, ran: &[Ran], how: &How) -> Figure {
    let made = how.made(&format!("jobs of {} s alone", CONTINUOUS_ALONE_NS / 1e9));
    let mut figure = Figure { made, ..figure(name, title, x, ran, how) };
    figure.series.iter_mut().flat_map(|series| &mut series.points).for_each(|point| point.iterations = None);
    figure
}

fn find<'a>(ran: &'a [Ran], switch_us: f64, series: &str, x: f64) -> &'a Ran {
    let is = |it: &&Ran| it.cell.panel == panel(switch_us) && it.cell.series == series && it.cell.x == x;
    ran.iter().find(is).expect("it is among the cells")
}

fn slowdown(ran: &[Ran], switch_us: f64, series: &str, x: f64) -> f64 {
    find(ran, switch_us, series, x).slowdown().mean
}

/// The share of reads that succeed.
fn reads(ran: &[Ran], switch_us: f64, series: &str, x: f64) -> f64 {
    find(ran, switch_us, series, x).successful(0).unwrap_or(0.0)
}

/// The shortest spin, in us, with which the share of reads that succeed is beyond the middle of those at two other
/// spins.
fn step(ran: &[Ran], switch_us: f64, series: &str, between: [f64; 2]) -> f64 {
    let [low, high] = between.map(|spin_us| reads(ran, switch_us, series, spin_us));
    let found = spins(switch_us).into_iter().find(|&spin| reads(ran, switch_us, series, spin) > (low + high) / 2.0);
    found.unwrap_or(f64::INFINITY)
}

/// Bulk-synchronous jobs, by the spin at reads.
pub fn figure_3(how: &How) -> Figure {
    let mut cells = Vec::new();
    for switch_us in SWITCHES {
        for interval_us in INTERVALS {
            for spin_us in spins(switch_us) {
                let at = (interval_us, 0.0);
                let job = bulk_synchronous(Pattern::News, at, WaitRule::Fixed, machine(switch_us), how);
                let setup = with_spin(job, switch_us, spin_us);
                cells.push(cell(switch_us, label("C", interval_us), spin_us, setup));
            }
        }
    }
    let ran = cells::run("arpaci-3", cells, how);
    let (fine, coarse) = (label("C", 100.0), label("C", 1000.0));
    let at = |spin_us| slowdown(&ran, 200.0, &fine, spin_us);
    let all = || SWITCHES.into_iter().flat_map(|switch_us| [(switch_us, &fine), (switch_us, &coarse)]);
    let mean =
        |of: &dyn Fn(f64, &str) -> f64| all().map(|(switch_us, series)| of(switch_us, series)).sum::<f64>() / 4.0;
    let scheduled = mean(&|switch_us, series| reads(&ran, switch_us, series, ROUND_TRIP_US));
    let triggered = mean(&|switch_us, series| reads(&ran, switch_us, series, ROUND_TRIP_US + switch_us));
    let mut figure = figure("arpaci-3", "bulk-synchronous jobs", "spin at reads, us", &ran, how);
    figure.claims = vec![
        Claim::about("C = 100 us, W = 200 us, spin below 2L: \"12 times worse\" (5.1)", 12.0, at(10.0)),
        Claim::about("the same, spin 2L: \"only 60% worse\"", 1.6, at(ROUND_TRIP_US)),
        Claim::at_most("the same, spin 2L + W: \"within 10%\"", 1.1, at(ROUND_TRIP_US + 200.0)),
        Claim::about("reads that end in a spin of 2L, all programs: \"97%\"", 0.97, scheduled),
        Claim::about("reads that end in a spin of 2L + W: \"99.9%\"", 0.999, triggered),
    ];
    for (switch_us, series) in all() {
        let (name, triggered) = (panel(switch_us), ROUND_TRIP_US + switch_us);
        figure.claims.push(Claim::about(
            format!("{name}, {series}: the spin, us, half of the way of successful reads from 1 us to 2L"),
            ROUND_TRIP_US,
            step(&ran, switch_us, series, [1.0, ROUND_TRIP_US]),
        ));
        figure.claims.push(Claim::about(
            format!("{name}, {series}: and half of that from 2L to 2L + W"),
            triggered,
            step(&ran, switch_us, series, [ROUND_TRIP_US, triggered]),
        ));
    }
    figure
}

/// Jobs that communicate all the time, by the spin at reads.
pub fn figure_4(how: &How) -> Figure {
    let mut cells = Vec::new();
    for switch_us in SWITCHES {
        for gap_us in GAPS {
            for spin_us in spins(switch_us) {
                let job = continuous(gap_us, WaitRule::Fixed, machine(switch_us));
                cells.push(cell(switch_us, label("c", gap_us), spin_us, with_spin(job, switch_us, spin_us)));
            }
        }
    }
    let ran = cells::run("arpaci-4", cells, how);
    let best = |switch_us: f64, gap_us: f64| {
        let at = |spin_us| slowdown(&ran, switch_us, &label("c", gap_us), spin_us);
        spins(switch_us).into_iter().map(at).fold(f64::INFINITY, f64::min)
    };
    let hardest = GAPS.into_iter().map(|gap_us| best(200.0, gap_us)).fold(0.0, f64::max);
    let mut figure = of_one_length("arpaci-4", "jobs that communicate all the time", "spin at reads, us", &ran, how);
    figure.claims = vec![Claim::at_least(
        "the best fixed spin of the hardest program: \"at least 4.5 times worse\" (5.2)",
        4.5,
        hardest,
    )];
    for switch_us in SWITCHES {
        let (below, from) = (ROUND_TRIP_US + switch_us - 1.0, ROUND_TRIP_US + switch_us);
        let name = label("c", 100.0);
        figure.claims.push(Claim::at_least(
            format!("{}, {name}: slowdown below 2L + W over that at 2L + W: \"sudden improvement\"", panel(switch_us)),
            1.0,
            slowdown(&ran, switch_us, &name, below) / slowdown(&ran, switch_us, &name, from),
        ));
        figure.claims.push(Claim::about(
            format!("{}, {name}: slowdown just below 2L over that at 2L: no improvement", panel(switch_us)),
            1.0,
            slowdown(&ran, switch_us, &name, 19.0) / slowdown(&ran, switch_us, &name, 20.0),
        ));
    }
    figure
}

/// S_Cond, in us: 3W is among them.
fn conditionals(switch_us: f64) -> Vec<f64> {
    let mut spins = vec![10.0, 20.0, 50.0, 100.0, 220.0, 400.0, 1000.0, 2000.0, 5000.0, 10_000.0];
    spins.extend([3.0 * switch_us, 6.0 * switch_us]);
    spins.sort_by(f64::total_cmp);
    spins.dedup();
    spins
}

/// Jobs that communicate all the time, by how long after a message a spin goes on.
pub fn figure_5(how: &How) -> Figure {
    let mut cells = Vec::new();
    for switch_us in SWITCHES {
        for gap_us in GAPS {
            let job = continuous(gap_us, WaitRule::Baseline, machine(switch_us));
            for conditional_us in conditionals(switch_us) {
                let mut setup = job.clone();
                (setup.wait, setup.costs.conditional_ns) = (WaitRule::Conditional, Some(ns(conditional_us)));
                cells.push(cell(switch_us, label("c", gap_us), conditional_us, setup));
            }
            // Not shown: what the shortest are to be equal to.
            cells.push(cell(switch_us, format!("baseline, {}", label("c", gap_us)), 10.0, job));
        }
    }
    let ran = cells::run("arpaci-5", cells, how);
    let derived = |switch_us: f64, gap_us: f64| slowdown(&ran, switch_us, &label("c", gap_us), 3.0 * switch_us);
    let best = |switch_us: f64, gap_us: f64| {
        let at = |spin_us| slowdown(&ran, switch_us, &label("c", gap_us), spin_us);
        conditionals(switch_us).into_iter().map(at).fold(f64::INFINITY, f64::min)
    };
    let all = || SWITCHES.into_iter().flat_map(|switch_us| GAPS.into_iter().map(move |gap_us| (switch_us, gap_us)));
    let most =
        |of: &dyn Fn(f64, f64) -> f64| all().map(|(switch_us, gap_us)| of(switch_us, gap_us)).fold(0.0, f64::max);
    let shortest = |switch_us: f64, gap_us: f64| {
        let name = label("c", gap_us);
        let baseline = slowdown(&ran, switch_us, &format!("baseline, {name}"), 10.0);
        (slowdown(&ran, switch_us, &name, 10.0) / baseline - 1.0).abs() + 1.0
    };
    let x = "how long after a message a spin goes on, us";
    let mut figure = of_one_length("arpaci-5", "conditional spinning", x, &ran, how);
    figure.series.retain(|series| !series.name.starts_with("baseline"));
    figure.claims = vec![
        Claim::at_most("the largest slowdown with 3W: \"within 35% of ideal\" (5.3)", 1.35, most(&derived)),
        Claim::at_most(
            "that with 3W over the best, where it is largest: \"within 10% of the best\" (5.3)",
            1.1,
            most(&|switch_us, gap_us| derived(switch_us, gap_us) / best(switch_us, gap_us)),
        ),
        Claim::about(
            "with 10 us against the baseline alone, where they differ most: \"matches\" (5.3)",
            1.0,
            most(&shortest),
        ),
    ];
    figure
}
