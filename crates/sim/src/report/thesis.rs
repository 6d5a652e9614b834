// SPDX-License-Identifier: GPL-2.0-only
//! `sim markov` and `sim dynamic`.

use std::fmt::Write as _;
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::{cpu_seconds, print_line, run_seed};
use crate::cli::{Algorithm, DynamicArgs, MarkovArgs};
use crate::dynamic::{self, Occupancy};
use crate::markov::{self, Rates};
use crate::scaled::Scaled;
use crate::stats::Estimate;
use cosched_rules::costs::Costs;
use cosched_rules::intf::{self, cosched_policy};
use cosched_rules::presets;
use cosched_rules::report::usage;

fn markov_states(args: &MarkovArgs, nodes: u32) -> Result<Vec<Scaled>> {
    let a = Rates { switches: args.qs_a, messages: args.qm_a };
    let b = Rates { switches: args.qs_b, messages: args.qm_b };
    markov::steady_state(nodes, a, b).map_err(usage)
}

/// Whether the flags of `sim markov` go together: what does for one node does for all.
pub fn check_markov(args: &MarkovArgs) -> Result<()> {
    markov_states(args, 1).map(drop)
}

/// Whether the flags of `sim dynamic` go together.
pub fn check_dynamic(args: &DynamicArgs) -> Result<()> {
    dynamic_setup(args).map(drop)
}

/// What `sim markov --json` prints.
pub fn markov_json(args: &MarkovArgs) -> Result<String> {
    // Numbers of any size, which JSON has and serde_json has not.
    let mut json = String::from("{\"states\": [");
    for (i, state) in markov_states(args, args.nodes)?.iter().enumerate() {
        write!(json, "{}{}", if i > 0 { ", " } else { "" }, state.text())?;
    }
    Ok(json + "]}")
}

/// `sim markov`.
pub fn markov(args: &MarkovArgs) -> Result<ExitCode> {
    if args.runs.json {
        return print_line(&markov_json(args)?);
    }
    let states = markov_states(args, args.nodes)?;
    let mut out = BufWriter::new(stdout().lock());
    let coscheduled = states[0].plus(states[states.len() - 1]);
    writeln!(out, "all nodes run one job: {}", coscheduled.text())?;
    writeln!(out, "nodes that run B  probability")?;
    for (i, state) in states.iter().enumerate() {
        writeln!(out, "{i:16}  {}", state.text())?;
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

fn dynamic_of(args: &DynamicArgs) -> Result<DynamicView> {
    let setup = dynamic_setup(args)?;
    let began = cpu_seconds()?;
    let runs: Vec<Occupancy> =
        (0..args.runs.runs).map(|run| dynamic::simulate(&setup, run_seed(args.runs.seed, run))).collect();
    Ok(dynamic_view(args, &runs, cpu_seconds()? - began))
}

/// What `sim dynamic --json` prints.
pub fn dynamic_json(args: &DynamicArgs) -> Result<String> {
    Ok(serde_json::to_string(&dynamic_of(args)?)?)
}

/// `sim dynamic`.
pub fn dynamic(args: &DynamicArgs) -> Result<ExitCode> {
    if args.runs.json {
        return print_line(&dynamic_json(args)?);
    }
    let view = dynamic_of(args)?;
    println!("all nodes run one job: {} of the time", view.coscheduled.text(4));
    println!("share of job A: {} of the CPU time", view.share_a.text(4));
    println!("nodes that run B  share of the time");
    for (i, share) in view.states.iter().enumerate() {
        let ci90 = view.states_ci90.as_ref().map_or(String::new(), |ci90| format!(" +- {:.6}", ci90[i]));
        println!("{i:16}  {share:.6}{ci90}");
    }
    Ok(ExitCode::SUCCESS)
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
    let (policy, kernel_cycle_ns) = match &args.policy {
        Some(name) => kernel_policy(args, name).map(|(policy, cycle_ns)| (policy, Some(cycle_ns)))?,
        None => (dynamic::policy(gate, args.h_cycles), None),
    };
    Ok(dynamic::Setup {
        nodes: args.nodes,
        cycles: args.cycles,
        warmup,
        rates: [a, b],
        policy,
        node_numbers: args.node_numbers || args.policy.is_some(),
        kernel_cycle_ns,
    })
}

/// The policy called `name`, and how many of its ns are a cycle.
fn kernel_policy(args: &DynamicArgs, name: &str) -> Result<(cosched_policy, f64)> {
    let costs = Costs { latency_us: 0.0, overhead_us: 0.0, switch_us: 0.0 };
    let policy = presets::changed(name).map_err(|error| usage(format!("--policy: {error}")))?.to_bpf(&costs);
    let misses = match (policy.arrival, policy.wait) {
        (intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND, _) => None,
        (intf::cosched_arrival_COSCHED_ARRIVAL_NONE, intf::cosched_wait_COSCHED_WAIT_BUSY) => None,
        (intf::cosched_arrival_COSCHED_ARRIVAL_NONE, _) => {
            Some("how processes wait is all that it says, and they never do here")
        }
        (intf::cosched_arrival_COSCHED_ARRIVAL_PERIODIC, _) => {
            Some("it looks for who is in a receive, and nobody is in one here")
        }
        _ => Some("clocks have all nodes switch at once, so they never run different jobs"),
    };
    if let Some(misses) = misses {
        return Err(usage(format!(
            "--policy: '{name}' makes no sense in this model: {misses} (choose one whose arrival is demand, or another model: sim shared, sim cluster)"
        )));
    }
    let switches = (args.qs_a + args.qs_b) / 2.0;
    if switches == 0.0 {
        return Err(usage(
            "--policy: without spontaneous switches there is no time slice to be as long as the policy's (choose --qs-a above 0)",
        ));
    }
    Ok((policy, policy.slice_ns as f64 * switches))
}

fn dynamic_view(args: &DynamicArgs, runs: &[Occupancy], seconds: f64) -> DynamicView {
    let estimate = |of: &dyn Fn(&Occupancy) -> f64| Estimate::of(&runs.iter().map(of).collect::<Vec<_>>());
    let states: Vec<Estimate> = (0..=args.nodes as usize).map(|i| estimate(&|run| run.states[i])).collect();
    let events: u64 = runs.iter().map(|run| run.events).sum();
    let switches = (args.qs_a + args.qs_b) / 2.0;
    DynamicView {
        algorithm: args.policy.clone().unwrap_or_else(|| format!("{:?}", args.algorithm).to_lowercase()),
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
