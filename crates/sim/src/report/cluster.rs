// SPDX-License-Identifier: GPL-2.0-only
//! `sim cluster`.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::{cpu_seconds, print_line, run_seed};
use crate::cli::ZhangArgs;
use crate::cluster::swf::{self, Trace};
use crate::cluster::workload::{JobSpec, Stream, Workload};
use crate::cluster::{self, Costs, Outcome, Setup};
use crate::stats::Estimate;
use cosched_rules::report::usage;

const WORKLOAD: Workload = Workload::new(7);
const LOAD: f64 = 0.7;
const JOBS: u32 = 100;
const EXECUTION_S: f64 = 1.0;
/// A context switch, and one of all nodes together, in us (Table 3).
const SWITCH_US: f64 = 200.0;
const GANG_SWITCH_US: f64 = 2000.0;
/// Slightly more than a message takes, in us (2.4.1).
const SPIN_US: f64 = 200.0;

/// The jobs of a run.
enum Jobs {
    /// Drawn for each run.
    Drawn(Stream),
    /// The same for all.
    Traced(Trace),
}

impl Jobs {
    fn of_run(&self, seed: u64) -> Vec<JobSpec> {
        match self {
            Jobs::Drawn(stream) => stream.draw(seed),
            Jobs::Traced(trace) => trace.jobs.clone(),
        }
    }
}

/// Half the widths of the 90% confidence intervals of the fields with these names.
#[derive(Serialize)]
struct Intervals {
    response_s: Option<f64>,
    wait_s: Option<f64>,
    execution_s: Option<f64>,
    utilization: Option<f64>,
    throughput_per_s: Option<f64>,
}

#[derive(Serialize)]
struct Shares {
    compute: f64,
    spin: f64,
    switch: f64,
    overhead: f64,
    idle: f64,
}

#[derive(Serialize)]
struct ClusterView {
    policy: String,
    workload: Option<String>,
    response_s: f64,
    wait_s: f64,
    execution_s: f64,
    utilization: f64,
    throughput_per_s: f64,
    ci90: Intervals,
    slowdown: f64,
    shares: Shares,
    jobs: usize,
    left_out: usize,
    runs: u32,
    events: u64,
    events_per_s: f64,
}

/// Whether the flags of `sim cluster` go together, and its files are as they should be.
pub fn check_cluster(args: &ZhangArgs) -> Result<()> {
    setup(args)?;
    jobs(args).map(drop)
}

/// What `sim cluster --json` prints.
pub fn cluster_json(args: &ZhangArgs) -> Result<String> {
    Ok(serde_json::to_string(&view(args)?)?)
}

/// `sim cluster`.
pub fn cluster(args: &ZhangArgs) -> Result<ExitCode> {
    if args.runs.json {
        return print_line(&cluster_json(args)?);
    }
    let view = view(args)?;
    let text = |mean: f64, ci90: Option<f64>, digits| Estimate { mean, ci90 }.text(digits);
    let ClusterView { ci90, shares, .. } = &view;
    println!("{}: {} jobs that count in each of {} runs", view.policy, view.jobs, view.runs);
    if view.left_out > 0 {
        println!("left out: {} jobs of the trace that did not run", view.left_out);
    }
    println!(
        "response: {} s, {:.2} times the execution alone",
        text(view.response_s, ci90.response_s, 3),
        view.slowdown
    );
    println!("  wait: {} s", text(view.wait_s, ci90.wait_s, 3));
    println!("  execution: {} s", text(view.execution_s, ci90.execution_s, 3));
    println!("utilization: {}", text(view.utilization, ci90.utilization, 3));
    println!("throughput: {} jobs/s", text(view.throughput_per_s, ci90.throughput_per_s, 4));
    let percent = [shares.compute, shares.spin, shares.switch, shares.overhead, shares.idle].map(|share| share * 100.0);
    let [compute, spin, switch, overhead, idle] = percent;
    println!("compute {compute:.1}%, spin {spin:.1}%, switch {switch:.1}%, overhead {overhead:.1}%, idle {idle:.1}%");
    println!("{} events, {:.2} million a second", view.events, view.events_per_s / 1e6);
    Ok(ExitCode::SUCCESS)
}

fn ns(us: f64) -> u64 {
    (us * 1000.0).round() as u64
}

fn setup(args: &ZhangArgs) -> Result<Setup> {
    let switch_us = args.switch_us.unwrap_or(if args.policy == "gang" { GANG_SWITCH_US } else { SWITCH_US });
    let costs = Costs {
        switch_ns: ns(switch_us),
        interrupt_ns: ns(args.interrupt_us),
        latency_ns: ns(args.latency_us),
        move_ns: ns(args.queue_move_us),
        check_ns: ns(args.endpoint_check_us),
    };
    let quantum_ns = u64::from(args.quantum_ms) * 1_000_000;
    if let (true, Some(us)) = (args.as_kernel, args.spin_us) {
        return Err(usage(format!(
            "--spin-us: it has no effect with --as-kernel, where processes spin by the rule of the preset (leave it out, or change a fixed spin by --policy sb+spin_us={us})"
        )));
    }
    let policy = match args.as_kernel {
        true => cluster::kernel_policy_of(&args.policy, &costs, quantum_ns),
        false => cluster::policy_of(&args.policy, &costs, ns(args.spin_us.unwrap_or(SPIN_US)), quantum_ns),
    };
    let hint =
        if args.policy.contains('+') && !args.as_kernel { " (changes of presets go with --as-kernel)" } else { "" };
    let policy = policy.map_err(|error| usage(format!("--policy: {error}{hint}")))?;
    let setup = Setup {
        nodes: args.nodes,
        level: args.mpl,
        readings: args.readings.all(),
        policy,
        costs,
        skew: args.skew / 100.0,
        warmup: args.warmup / 100.0,
    };
    if setup.is_gang() && costs.switch_ns >= quantum_ns {
        return Err(usage(format!(
            "--switch-us: {switch_us} leaves nothing of a quantum of {} ms (choose less, or a longer --quantum-ms)",
            args.quantum_ms
        )));
    }
    Ok(setup)
}

fn jobs(args: &ZhangArgs) -> Result<Jobs> {
    let drawn = [
        ("workload", args.workload.is_some()),
        ("load", args.load.is_some()),
        ("jobs", args.jobs.is_some()),
        ("execution-s", args.execution_s.is_some()),
    ];
    let traced = [("mixes", args.mixes.is_some()), ("time-scale", args.time_scale.is_some())];
    let given = |flags: &[(&'static str, bool)]| flags.iter().find(|(_, given)| *given).map(|(flag, _)| *flag);
    if let Some(path) = &args.swf {
        if let Some(flag) = given(&drawn) {
            return Err(usage(format!(
                "--{flag}: it has no effect with --swf, whose jobs are those of the trace (leave it out)"
            )));
        }
        return Ok(Jobs::Traced(swf::read(path, args.mixes.as_deref(), args.time_scale.unwrap_or(1.0), args.nodes)?));
    }
    if let Some(flag) = given(&traced) {
        return Err(usage(format!(
            "--{flag}: it has no effect without a trace (leave it out, or name one with --swf)"
        )));
    }
    Ok(Jobs::Drawn(Stream {
        workload: args.workload.unwrap_or(WORKLOAD),
        jobs: args.jobs.unwrap_or(JOBS),
        execution_ns: args.execution_s.unwrap_or(EXECUTION_S) * 1e9,
        load: args.load.unwrap_or(LOAD),
        nodes: args.nodes,
    }))
}

fn view(args: &ZhangArgs) -> Result<ClusterView> {
    let (setup, jobs) = (setup(args)?, jobs(args)?);
    let began = cpu_seconds()?;
    let run = |run: u32| {
        let seed = run_seed(args.runs.seed, run);
        cluster::simulate(&setup, &jobs.of_run(seed), seed)
    };
    let outcomes: Vec<Outcome> = (0..args.runs.runs).map(run).collect();
    let seconds = cpu_seconds()? - began;
    let of = |field: &dyn Fn(&Outcome) -> f64| Estimate::of(&outcomes.iter().map(field).collect::<Vec<_>>());
    let response = of(&|it| it.response_s);
    let wait = of(&|it| it.wait_s);
    let execution = of(&|it| it.execution_s);
    let utilization = of(&|it| it.utilization);
    let throughput = of(&|it| it.throughput_per_s);
    let events: u64 = outcomes.iter().map(|it| it.events).sum();
    let (workload, all, left_out) = match &jobs {
        Jobs::Drawn(stream) => (Some(stream.workload.to_string()), stream.jobs as usize, 0),
        Jobs::Traced(trace) => (None, trace.jobs.len(), trace.left_out),
    };
    Ok(ClusterView {
        policy: args.policy.clone(),
        workload,
        response_s: response.mean,
        wait_s: wait.mean,
        execution_s: execution.mean,
        utilization: utilization.mean,
        throughput_per_s: throughput.mean,
        ci90: Intervals {
            response_s: response.ci90,
            wait_s: wait.ci90,
            execution_s: execution.ci90,
            utilization: utilization.ci90,
            throughput_per_s: throughput.ci90,
        },
        slowdown: of(&|it| it.slowdown).mean,
        shares: Shares {
            compute: of(&|it| it.compute).mean,
            spin: of(&|it| it.spin).mean,
            switch: of(&|it| it.switch).mean,
            overhead: of(&|it| it.overhead).mean,
            idle: of(&|it| it.idle).mean,
        },
        jobs: setup.counted(all),
        left_out,
        runs: args.runs.runs,
        events,
        events_per_s: events as f64 / seconds.max(1e-9),
    })
}
