// SPDX-License-Identifier: GPL-2.0-only
//! What the models print: tables for people, JSON for programs.

use std::fs::File;
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

use anyhow::{Context, Result};
use nix::time::{ClockId, clock_gettime};
use serde::Serialize;

use super::bsp::{self, Breakdown, Outcome, Scheduler, Setup, Wakeup};
use super::cli::{Algorithm, BspArgs, DynamicArgs, MarkovArgs, SchedulerName, Ticks, WakeupName};
use super::dynamic::{self, Occupancy};
use super::jobs::Program;
use super::markov::{self, Rates};
use super::policy::{Costs, WaitRule};
use super::stats::Estimate;
use crate::bpf::intf;
use crate::report::usage;

/// What a job of a paper takes alone, in ns, and how many iterations of it are enough (Dusseau 3.4).
const ALONE_NS: f64 = 10e9;
const ITERATIONS: f64 = 10_000.0;

/// What this program has used so far: other than the clock, it does not go while somebody else has the CPU.
fn cpu_seconds() -> Result<f64> {
    let used = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?;
    Ok(used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9)
}

fn print_json(value: &impl Serialize) -> Result<ExitCode> {
    println!("{}", serde_json::to_string(value)?);
    Ok(ExitCode::SUCCESS)
}

/// `sim markov`.
pub fn markov(args: &MarkovArgs) -> Result<ExitCode> {
    let a = Rates { switches: args.qs_a, messages: args.qm_a };
    let b = Rates { switches: args.qs_b, messages: args.qm_b };
    let states = markov::steady_state(args.nodes, a, b).map_err(usage)?;
    let mut out = BufWriter::new(stdout().lock());
    if args.runs.json {
        // Numbers of any size, which JSON has and serde_json has not.
        write!(out, "{{\"states\": [")?;
        for (i, state) in states.iter().enumerate() {
            write!(out, "{}{}", if i > 0 { ", " } else { "" }, state.text())?;
        }
        writeln!(out, "]}}")?;
    } else {
        let coscheduled = states[0].plus(states[states.len() - 1]);
        writeln!(out, "all nodes run one job: {}", coscheduled.text())?;
        writeln!(out, "nodes that run B  probability")?;
        for (i, state) in states.iter().enumerate() {
            writeln!(out, "{i:16}  {}", state.text())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

#[derive(Serialize)]
struct DynamicView {
    algorithm: String,
    nodes: u32,
    messages_per_slice: Option<f64>,
    coscheduled: Estimate,
    share_a: Estimate,
    states: Vec<f64>,
    states_ci90: Option<Vec<f64>>,
    spontaneous_switches: u64,
    message_switches: u64,
    events: u64,
    events_per_s: f64,
}

/// `sim dynamic`.
pub fn dynamic(args: &DynamicArgs) -> Result<ExitCode> {
    let setup = dynamic_setup(args)?;
    let began = cpu_seconds()?;
    let runs: Vec<Occupancy> =
        (0..args.runs.runs).map(|run| dynamic::simulate(&setup, run_seed(args.runs.seed, run))).collect();
    let view = dynamic_view(args, &runs, cpu_seconds()? - began);
    if args.runs.json {
        return print_json(&view);
    }
    println!("all nodes run one job: {} of the time", view.coscheduled.text(4));
    println!("share of job A: {} of the CPU time", view.share_a.text(4));
    println!("nodes that run B  share of the time");
    for (i, share) in view.states.iter().enumerate() {
        let ci90 = view.states_ci90.as_ref().map_or(String::new(), |ci90| format!(" +- {:.6}", ci90[i]));
        println!("{i:16}  {share:.6}{ci90}");
    }
    Ok(ExitCode::SUCCESS)
}

/// The seed of a run.
fn run_seed(seed: u64, run: u32) -> u64 {
    seed.wrapping_add(u64::from(run).wrapping_mul(0x2545_f491_4f6c_dd1d))
}

fn dynamic_setup(args: &DynamicArgs) -> Result<dynamic::Setup> {
    let gate = match args.algorithm {
        Algorithm::Always => intf::cosched_gate_COSCHED_GATE_ALWAYS,
        Algorithm::Equalizing => intf::cosched_gate_COSCHED_GATE_EQUALIZING,
        Algorithm::Epochs => intf::cosched_gate_COSCHED_GATE_EPOCHS,
    };
    let warmup = args.warmup_cycles.unwrap_or(args.cycles / 10);
    if warmup >= args.cycles {
        return Err(usage(format!(
            "--warmup-cycles: {warmup} leaves nothing of {} cycles (choose fewer)",
            args.cycles
        )));
    }
    let a = Rates { switches: args.qs_a, messages: args.qm_a };
    let b = Rates { switches: args.qs_b, messages: args.qm_b };
    Ok(dynamic::Setup {
        nodes: args.nodes,
        cycles: args.cycles,
        warmup,
        rates: [a, b],
        policy: dynamic::policy(gate, args.h_cycles),
        node_numbers: args.node_numbers,
    })
}

fn dynamic_view(args: &DynamicArgs, runs: &[Occupancy], seconds: f64) -> DynamicView {
    let estimate = |of: &dyn Fn(&Occupancy) -> f64| Estimate::of(&runs.iter().map(of).collect::<Vec<_>>());
    let states: Vec<Estimate> = (0..=args.nodes as usize).map(|i| estimate(&|run| run.states[i])).collect();
    let events: u64 = runs.iter().map(|run| run.events).sum();
    let switches = (args.qs_a + args.qs_b) / 2.0;
    DynamicView {
        algorithm: format!("{:?}", args.algorithm).to_lowercase(),
        nodes: args.nodes,
        messages_per_slice: (switches > 0.0).then(|| (args.qm_a + args.qm_b) / 2.0 / switches),
        coscheduled: estimate(&Occupancy::coscheduled),
        share_a: estimate(&|run| run.share_a),
        states: states.iter().map(|state| state.mean).collect(),
        states_ci90: states.iter().map(|state| state.ci90).collect(),
        spontaneous_switches: runs.iter().map(|run| run.switches[0]).sum(),
        message_switches: runs.iter().map(|run| run.switches[1]).sum(),
        events,
        events_per_s: events as f64 / seconds.max(1e-9),
    }
}

#[derive(Serialize)]
struct BspView {
    slowdown: f64,
    ci90: Option<f64>,
    local_s: Estimate,
    ideal_s: Estimate,
    breakdown: Breakdown,
    successful_reads: Option<f64>,
    successful_openings: Option<f64>,
    successful_closings: Option<f64>,
    iterations: u32,
    runs: usize,
    events: u64,
    events_per_s: f64,
}

/// `sim bsp`.
pub fn bsp(args: &BspArgs) -> Result<ExitCode> {
    let setup = bsp_setup(args)?;
    let mut trace = args
        .trace
        .as_ref()
        .map(|path| {
            File::create(path)
                .map(BufWriter::new)
                .with_context(|| format!("--trace: {}: it cannot be written", path.display()))
        })
        .transpose()?;
    let began = cpu_seconds()?;
    let mut failed = Ok(());
    let mut outcomes = Vec::new();
    for run in 0..args.runs.runs {
        let mut file = trace.take();
        outcomes.push(bsp::simulate(&setup, run_seed(args.runs.seed, run), &mut |now_ns, event| {
            if let Some(file) = &mut file
                && failed.is_ok()
            {
                failed = writeln!(file, "{now_ns} {event:?}");
            }
        }));
        if let Some(mut file) = file
            && failed.is_ok()
        {
            failed = file.flush();
        }
    }
    failed.context("--trace: it cannot be written")?;
    let view = bsp_view(&setup, &outcomes, cpu_seconds()? - began);
    if args.runs.json { print_json(&view) } else { print_bsp(&view) }
}

fn ns(us: f64) -> u64 {
    (us * 1000.0).round() as u64
}

fn bsp_setup(args: &BspArgs) -> Result<Setup> {
    if args.spin_us.is_some() && args.wait != WaitRule::Fixed {
        let message =
            format!("--spin-us: it has no effect with wait '{}' (leave it out, or choose wait 'fixed')", args.wait);
        return Err(usage(message));
    }
    let scheduler = match (args.scheduler, args.quantum_ms) {
        (SchedulerName::RoundRobin, ms) => Scheduler::RoundRobin(u64::from(ms.unwrap_or(10)) * 1_000_000),
        (SchedulerName::Fair, ms) => Scheduler::Fair(u64::from(ms.unwrap_or(20)) * 1_000_000),
        (_, Some(_)) => {
            return Err(usage(
                "--quantum-ms: it has no effect with this scheduler (leave it out, or choose scheduler 'round-robin' or 'fair')",
            ));
        }
        (SchedulerName::Svr4, None) => Scheduler::Svr4,
        (SchedulerName::Feedback, None) => Scheduler::Feedback,
    };
    let mut program = Program {
        pattern: args.pattern,
        processes: args.nodes,
        granularity_ns: ns(args.granularity_us),
        imbalance_ns: ns(args.granularity_us * args.imbalance),
        gap_ns: ns(args.gap_us),
        iterations: 1,
    };
    let enough = || (ALONE_NS / program.iteration_ns(ns(args.latency_us))).clamp(1.0, ITERATIONS).round() as u32;
    program.iterations = args.iterations.unwrap_or_else(enough);
    let costs = Costs {
        latency_ns: ns(args.latency_us),
        switch_ns: ns(args.switch_us),
        spin_ns: ns(args.spin_us.unwrap_or(args.switch_us)),
        imbalance_ns: program.imbalance_ns,
    };
    Ok(Setup {
        nodes: args.nodes,
        jobs: args.jobs,
        program,
        costs,
        wait: args.wait,
        scheduler,
        wakeup: if args.wakeup == WakeupName::Urgent { Wakeup::Urgent } else { Wakeup::Ordinary },
        aligned: args.ticks == Ticks::Aligned,
        has_clocks: true,
        spread_roots: args.spread_roots,
    })
}

fn bsp_view(setup: &Setup, outcomes: &[Outcome], seconds: f64) -> BspView {
    let values = |of: &dyn Fn(&Outcome) -> f64| -> Vec<f64> { outcomes.iter().map(of).collect() };
    let estimate = |of: &dyn Fn(&Outcome) -> f64| Estimate::of(&values(of));
    let mean = |of: &dyn Fn(&Outcome) -> f64| estimate(of).mean;
    let successful = |kind: usize| {
        let shares: Option<Vec<f64>> = outcomes.iter().map(|outcome| outcome.successful[kind]).collect();
        shares.map(|shares| Estimate::of(&shares).mean)
    };
    let slowdown = estimate(&Outcome::slowdown);
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    BspView {
        slowdown: slowdown.mean,
        ci90: slowdown.ci90,
        local_s: estimate(&|outcome| outcome.local_ns as f64 / 1e9),
        ideal_s: estimate(&|outcome| outcome.ideal_ns as f64 / 1e9),
        breakdown: Breakdown {
            compute: mean(&|outcome| outcome.breakdown.compute),
            communicate: mean(&|outcome| outcome.breakdown.communicate),
            synchronize: mean(&|outcome| outcome.breakdown.synchronize),
            switch: mean(&|outcome| outcome.breakdown.switch),
            idle: mean(&|outcome| outcome.breakdown.idle),
        },
        successful_reads: successful(0),
        successful_openings: successful(1),
        successful_closings: successful(2),
        iterations: setup.program.iterations,
        runs: outcomes.len(),
        events,
        events_per_s: events as f64 / seconds.max(1e-9),
    }
}

fn print_bsp(view: &BspView) -> Result<ExitCode> {
    let slowdown = Estimate { mean: view.slowdown, ci90: view.ci90 };
    println!("slowdown against ideal coscheduling: {}", slowdown.text(3));
    println!("time: {} s, under coscheduling {} s", view.local_s.text(3), view.ideal_s.text(3));
    let Breakdown { compute, communicate, synchronize, switch, idle } = view.breakdown;
    let parts = [compute, communicate, synchronize, switch, idle].map(|share| format!("{:.1}%", share * 100.0));
    let [compute, communicate, synchronize, switch, idle] = parts;
    println!("compute {compute}, communicate {communicate}, synchronize {synchronize}, switch {switch}, idle {idle}");
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
