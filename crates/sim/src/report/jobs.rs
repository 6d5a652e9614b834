// SPDX-License-Identifier: GPL-2.0-only
//! `sim bsp` and `sim continuous`.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use serde::Serialize;

use super::{cpu_seconds, print_line, run_seed};
use crate::bsp::{self, Breakdown, Outcome, Reading, Readings, Scheduler, Setup, Wakeup};
use crate::cli::{BspArgs, ClusterArgs, ContinuousArgs, Runs, SchedulerName, Ticks, WakeupName};
use crate::jobs::{Pattern, Program};
use crate::policy::{Costs, WaitRule};
use crate::stats::Estimate;
use cosched_rules::axes::{Arrival, Spin, Wait};
use cosched_rules::presets;
use cosched_rules::report::usage;

/// What a job of a paper takes alone, in ns, and how many iterations of it are enough (Dusseau 3.4).
const ALONE_NS: f64 = 10e9;
const ITERATIONS: f64 = 10_000.0;

#[derive(Serialize)]
struct JobsView {
    slowdown: f64,
    ci90: Option<f64>,
    local_s: Estimate,
    ideal_s: Estimate,
    breakdown: Breakdown,
    ideal_breakdown: Breakdown,
    successful_reads: Option<f64>,
    successful_openings: Option<f64>,
    successful_closings: Option<f64>,
    iterations: u32,
    runs: usize,
    events: u64,
    events_per_s: f64,
}

/// Whether the flags of `sim bsp` go together.
pub fn check_bsp(args: &BspArgs) -> Result<()> {
    bsp_setup(args).map(drop)
}

/// Whether the flags of `sim continuous` go together.
pub fn check_continuous(args: &ContinuousArgs) -> Result<()> {
    continuous_setup(args).map(drop)
}

/// What `sim bsp --json` prints.
pub fn bsp_json(args: &BspArgs) -> Result<String> {
    Ok(serde_json::to_string(&view_of(&bsp_setup(args)?, &args.cluster)?)?)
}

/// What `sim continuous --json` prints.
pub fn continuous_json(args: &ContinuousArgs) -> Result<String> {
    Ok(serde_json::to_string(&view_of(&continuous_setup(args)?, &args.cluster)?)?)
}

/// `sim bsp`.
pub fn bsp(args: &BspArgs) -> Result<ExitCode> {
    if args.cluster.runs.json { print_line(&bsp_json(args)?) } else { print(&bsp_setup(args)?, &args.cluster) }
}

/// `sim continuous`.
pub fn continuous(args: &ContinuousArgs) -> Result<ExitCode> {
    let json = args.cluster.runs.json;
    if json { print_line(&continuous_json(args)?) } else { print(&continuous_setup(args)?, &args.cluster) }
}

fn view_of(setup: &Setup, cluster: &ClusterArgs) -> Result<JobsView> {
    let began = cpu_seconds()?;
    let outcomes = match &cluster.trace {
        Some(path) => traced(setup, &cluster.runs, path)?,
        None => simulate_runs(setup, cluster.runs.seed, 0..cluster.runs.runs),
    };
    Ok(jobs_view(setup, &outcomes, cpu_seconds()? - began))
}

fn simulate_runs(setup: &Setup, seed: u64, runs: std::ops::Range<u32>) -> Vec<Outcome> {
    runs.map(|run| bsp::simulate(setup, run_seed(seed, run), &mut |_, _| {})).collect()
}

/// With every event of the first run in the file at `path`.
fn traced(setup: &Setup, runs: &Runs, path: &Path) -> Result<Vec<Outcome>> {
    let file = File::create(path).with_context(|| format!("--trace: {}: it cannot be written", path.display()))?;
    let mut file = BufWriter::new(file);
    let mut failed = Ok(());
    let first = bsp::simulate(setup, run_seed(runs.seed, 0), &mut |now_ns, event| {
        if failed.is_ok() {
            failed = writeln!(file, "{now_ns} {event:?}");
        }
    });
    failed.and_then(|()| file.flush()).context("--trace: it cannot be written")?;
    let mut outcomes = vec![first];
    outcomes.extend(simulate_runs(setup, runs.seed, 1..runs.runs));
    Ok(outcomes)
}

fn ns(us: f64) -> u64 {
    (us * 1000.0).round() as u64
}

/// A flag that has no effect is refused, not passed over.
fn refuse_moot(cluster: &ClusterArgs, wait: WaitRule) -> Result<()> {
    let flags = [
        ("--spin-us", cluster.spin_us, WaitRule::Fixed),
        ("--barrier-spin-us", cluster.barrier_spin_us, WaitRule::Fixed),
        ("--conditional-us", cluster.conditional_us, WaitRule::Conditional),
    ];
    match flags.iter().find(|(_, given, rule)| given.is_some() && wait != *rule) {
        Some((flag, _, rule)) => {
            Err(usage(format!("{flag}: it has no effect with wait '{wait}' (leave it out, or choose wait '{rule}')")))
        }
        None => Ok(()),
    }
}

fn scheduler(cluster: &ClusterArgs) -> Result<Scheduler> {
    match (cluster.scheduler, cluster.quantum_ms) {
        (SchedulerName::RoundRobin, ms) => Ok(Scheduler::RoundRobin(u64::from(ms.unwrap_or(10)) * 1_000_000)),
        (SchedulerName::Fair, ms) => Ok(Scheduler::Fair(u64::from(ms.unwrap_or(20)) * 1_000_000)),
        (_, Some(_)) => Err(usage(
            "--quantum-ms: it has no effect with this scheduler (leave it out, or choose scheduler 'round-robin' or 'fair')",
        )),
        (SchedulerName::Svr4, None) => Ok(Scheduler::Svr4),
        (SchedulerName::Feedback, None) => Ok(Scheduler::Feedback),
    }
}

/// `program`, on what the flags say, for as long as they say.
fn setup(mut program: Program, wait: WaitRule, wakeup: WakeupName, cluster: &ClusterArgs) -> Result<Setup> {
    refuse_moot(cluster, wait)?;
    let enough = || (ALONE_NS / program.iteration_ns(ns(cluster.latency_us))).clamp(1.0, ITERATIONS).round() as u32;
    program.iterations = cluster.iterations.unwrap_or_else(enough);
    let costs = Costs {
        latency_ns: ns(cluster.latency_us),
        switch_ns: ns(cluster.switch_us),
        spin_ns: ns(cluster.spin_us.unwrap_or(cluster.switch_us)),
        barrier_spin_ns: cluster.barrier_spin_us.map(ns),
        conditional_ns: cluster.conditional_us.map(ns),
        imbalance_ns: program.imbalance_ns,
        network_ns: 0,
    };
    Ok(Setup {
        nodes: cluster.nodes,
        jobs: cluster.jobs,
        program,
        costs,
        wait,
        scheduler: scheduler(cluster)?,
        by_tick: false,
        wakeup: match wakeup {
            WakeupName::Urgent => Wakeup::Urgent,
            WakeupName::Ordinary => Wakeup::Ordinary,
            WakeupName::Charged => Wakeup::Charged,
        },
        aligned: cluster.ticks == Ticks::Aligned,
        has_clocks: true,
        spread_roots: cluster.spread_roots,
    })
}

/// The wait rule of the policy that is asked for, if any, and how long it spins where that is fixed, in us.
///
/// # Errors
/// One line, if there is no such policy, or it does anything but have processes wait.
fn wait_of(policy: &str) -> Result<(WaitRule, Option<f64>)> {
    let choices = presets::changed(policy).map_err(|error| usage(format!("--policy: {error}")))?.choices;
    let misses = match (choices.arrival, choices.wait) {
        (Some(Arrival::Gang), _) => "it is what the slowdown is measured against, so that it would be 1",
        (Some(Arrival::Demand | Arrival::Periodic), _) => {
            "it boosts who waits for a CPU, which the levels of these schedulers know nothing of"
        }
        (_, Some(Wait::SpinYield)) => {
            "its processes put others first, which the levels of these schedulers know nothing of"
        }
        (_, Some(Wait::Busy)) => return Ok((WaitRule::Busy, None)),
        _ => {
            let rule = match choices.spin {
                Some(Spin::Fixed) => WaitRule::Fixed,
                Some(Spin::Baseline) => WaitRule::Baseline,
                Some(Spin::Conditional) => WaitRule::Conditional,
                Some(Spin::AdaptiveLocal) => WaitRule::AdaptiveLocal,
                Some(Spin::AdaptiveGlobal) => WaitRule::AdaptiveGlobal,
                Some(Spin::Immediate) | None => WaitRule::Immediate,
            };
            return Ok((rule, choices.spin_us.map(f64::from).filter(|_| rule == WaitRule::Fixed)));
        }
    };
    Err(usage(format!(
        "--policy: '{policy}' makes no sense in this model: {misses} (choose local, sb or implicit, or another model: sim shared, sim cluster)"
    )))
}

/// The wait rule, and what the flags say of all else.
fn with_policy(wait: WaitRule, cluster: &ClusterArgs) -> Result<(WaitRule, ClusterArgs)> {
    let Some(policy) = &cluster.policy else { return Ok((wait, cluster.clone())) };
    let (wait, spin_us) = wait_of(policy)?;
    Ok((wait, ClusterArgs { spin_us, ..cluster.clone() }))
}

fn bsp_setup(args: &BspArgs) -> Result<Setup> {
    let (wait, cluster) = with_policy(args.wait, &args.cluster)?;
    let program = Program {
        pattern: args.pattern,
        processes: args.cluster.nodes,
        granularity_ns: ns(args.granularity_us),
        imbalance_ns: ns(args.granularity_us * args.imbalance),
        gap_ns: ns(args.gap_us),
        iterations: 1,
    };
    let mut setup = setup(program, wait, args.wakeup, &cluster)?;
    readings(args.readings, &setup)?.apply(&mut setup);
    Ok(setup)
}

/// How the paper is read. A reading that has no effect is refused, not passed over.
fn readings(given: Option<Readings>, setup: &Setup) -> Result<Readings> {
    let takes_turns = matches!(setup.scheduler, Scheduler::Svr4 | Scheduler::RoundRobin(_));
    let Some(given) = given else {
        let is_svr4 = matches!(setup.scheduler, Scheduler::Svr4);
        return Ok(if is_svr4 { Readings::ALL } else { Readings::ALL.without(Reading::Tick) });
    };
    let estimates = [WaitRule::Oracle, WaitRule::AdaptiveLocal, WaitRule::AdaptiveGlobal].contains(&setup.wait);
    let moot = [
        (
            Reading::Tick,
            takes_turns,
            "'tick' has no effect with this scheduler (leave it out, or choose scheduler 'svr4')",
        ),
        (
            Reading::RoundTrip,
            estimates,
            "'round-trip' has no effect with this wait rule (leave it out, or choose wait 'oracle' or 'adaptive-global')",
        ),
    ];
    match moot.into_iter().find(|(reading, has_effect, _)| given.has(*reading) && !has_effect) {
        Some((_, _, why)) => Err(usage(format!("--readings: {why}"))),
        None => Ok(given),
    }
}

fn continuous_setup(args: &ContinuousArgs) -> Result<Setup> {
    if args.gap_us > args.interval_us {
        return Err(usage(format!(
            "--gap-us: {} is more than the {} us between barriers (choose less, or a longer --interval-us)",
            args.gap_us, args.interval_us
        )));
    }
    let (wait, cluster) = with_policy(args.wait, &args.cluster)?;
    let barriers = [WaitRule::Oracle, WaitRule::AdaptiveLocal, WaitRule::AdaptiveGlobal];
    if barriers.contains(&wait) {
        let flag = if cluster.policy.is_some() { "policy" } else { "wait" };
        return Err(usage(format!(
            "--{flag}: '{wait}' goes by what barriers teach, of which these jobs have hardly any (choose immediate, fixed, baseline or conditional)"
        )));
    }
    let program = Program {
        pattern: Pattern::Continuous,
        processes: args.cluster.nodes,
        granularity_ns: ns(args.interval_us),
        imbalance_ns: 0,
        gap_ns: ns(args.gap_us),
        iterations: 1,
    };
    setup(program, wait, args.wakeup, &cluster)
}

fn jobs_view(setup: &Setup, outcomes: &[Outcome], seconds: f64) -> JobsView {
    let values = |of: &dyn Fn(&Outcome) -> f64| -> Vec<f64> { outcomes.iter().map(of).collect() };
    let estimate = |of: &dyn Fn(&Outcome) -> f64| Estimate::of(&values(of));
    let successful = |kind: usize| {
        let shares: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.successful[kind]).collect();
        shares.map(|shares| Estimate::of(&shares).mean)
    };
    let slowdown = estimate(&Outcome::slowdown);
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    JobsView {
        slowdown: slowdown.mean,
        ci90: slowdown.ci90,
        local_s: estimate(&|outcome| outcome.local_ns as f64 / 1e9),
        ideal_s: estimate(&|outcome| outcome.ideal_ns as f64 / 1e9),
        breakdown: Breakdown::mean(outcomes.iter().map(|outcome| &outcome.breakdown)),
        ideal_breakdown: Breakdown::mean(outcomes.iter().map(|outcome| &outcome.ideal)),
        successful_reads: successful(0),
        successful_openings: successful(1),
        successful_closings: successful(2),
        iterations: setup.program.iterations,
        runs: outcomes.len(),
        events,
        events_per_s: events as f64 / seconds.max(1e-9),
    }
}

fn parts(breakdown: &Breakdown) -> String {
    let [compute, communicate, synchronize, switch, idle] =
        breakdown.parts().map(|share| format!("{:.1}%", share * 100.0));
    format!("compute {compute}, communicate {communicate}, synchronize {synchronize}, switch {switch}, idle {idle}")
}

fn print(setup: &Setup, cluster: &ClusterArgs) -> Result<ExitCode> {
    let view = view_of(setup, cluster)?;
    let slowdown = Estimate { mean: view.slowdown, ci90: view.ci90 };
    println!("slowdown against ideal coscheduling: {}", slowdown.text(3));
    println!("time: {} s, under coscheduling {} s", view.local_s.text(3), view.ideal_s.text(3));
    println!("{}", parts(&view.breakdown));
    println!("under coscheduling: {}", parts(&view.ideal_breakdown));
    let kinds = [
        ("reads", view.successful_reads),
        ("opening barriers", view.successful_openings),
        ("closing barriers", view.successful_closings),
    ];
    for (what, share) in kinds {
        if let Some(share) = share {
            println!("{what} that ended while their process spun: {:.1}%", share * 100.0);
        }
    }
    println!("{} events, {:.2} million a second", view.events, view.events_per_s / 1e6);
    Ok(ExitCode::SUCCESS)
}
