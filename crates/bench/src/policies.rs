// SPDX-License-Identifier: GPL-2.0-only
//! `bench policies`: every preset in several scenarios, beside the kernel's own scheduler and others.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::contender::Contenders;
use crate::experiment::Experiment;
use crate::length::parse_length;
use crate::machine;
use crate::plan::{Alone, Repeats, Step, plan};
use crate::scenario::{Scenarios, Shape};
use crate::summary::Jobs;
use crate::testbed::Testbed;
use crate::wire::{Wire, parse_percent};
use cosched_rules::report;

/// Compare policies: the demo's job on the CPUs 0 and 1 of this machine, in several scenarios.
#[derive(Clone, Debug, clap::Args)]
pub struct PoliciesArgs {
    /// What runs: spin-4 is a job of spinning receivers with 4 competitors on each node, block-2x3 two jobs
    /// of blocking ones with 3. After that -200us is computing so long for each message, and -mixed 0, 200,
    /// 1000 and 5000 us in turn, by job. -t3 is three threads on each node, with a token each. With -barrier after that a
    /// job is on all nodes: its process on CPU 0 sends to all others, which compute, and waits for them. With -bulk,
    /// -news, -transpose or -random it is one of `bench spmd` on all nodes, and -v150 is its imbalance. With -io the
    /// first competitor of each node sleeps 5 ms after each 10 ms of computing, and with -nice1 all have nice level 1.
    #[arg(long, value_name = "NAME,...", default_value = "spin-4,block-4,spin-8,spin-2x2")]
    scenarios: Scenarios,

    /// Schedulers to compare. eevdf is the kernel's own, with or without another slice (eevdf+slice_us=20000), also
    /// with wake-ups that preempt nothing (eevdf+wakeup_preemption=0). Presets are with or without changes
    /// (dcs+h_ms=-20). 'presets' is all of them, and 'strategies' the ten of Zhang, without gates. Other sched_ext
    /// schedulers are peer:NAME=/path/to/binary, with arguments after spaces.
    #[arg(long, value_name = "NAME,...", default_value = "eevdf,presets")]
    schedulers: Contenders,

    /// CPUs that stand for a node each, from CPU 0 on, an even number. The jobs run on every pair of them, or
    /// at a barrier on all.
    #[arg(long, value_name = "N", default_value = "2", value_parser = parse_nodes)]
    nodes: u8,

    /// Give each node a network namespace, and the wires between two of them so many microseconds one way.
    #[arg(long, value_name = "US", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    latency_us: Option<u32>,

    /// Give each node a network namespace, and have the wires lose so many per cent of the packets each way.
    #[arg(long, value_name = "PERCENT", value_parser = parse_percent)]
    loss_percent: Option<f64>,

    /// Measurements of each kind.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: u16,

    /// What the moments of the first repeat are drawn from at which workers begin; those after it have the next
    /// numbers.
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u32))]
    seed: u32,

    /// Leave out the runs alone, which the efficiencies rest on.
    #[arg(long)]
    without_alone: bool,

    /// Seconds of each measurement.
    #[arg(long, value_name = "S", default_value = "4", value_parser = parse_length)]
    seconds: Duration,

    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Only list the measurements: scenario, scheduler and seconds of each.
    #[arg(long)]
    dry_run: bool,
}

/// Pairs of nodes, as far as virtual time goes.
fn parse_nodes(text: &str) -> Result<u8> {
    let nodes = text.parse().ok().filter(|nodes| [2, 4, 6, 8].contains(nodes));
    nodes.with_context(|| format!("'{text}' is no number of nodes: 2, 4, 6 or 8 are wanted"))
}

pub fn run(args: &PoliciesArgs) -> Result<ExitCode> {
    let repeats = usize::from(args.repeats);
    let seeds = u64::from(args.seed)..u64::from(args.seed) + u64::from(args.repeats);
    let alone = if args.without_alone { Alone::Never } else { Alone::FirstAndLast };
    let loses = args.loss_percent.is_some_and(|percent| percent > 0.0);
    if let Some(scenario) = args.scenarios.0.iter().find(|it| loses && matches!(it.shape, Shape::Spmd { .. })) {
        let why = "its messages are datagrams, and a wire that loses one has it stand still";
        return Err(report::usage(format!("{scenario} takes no --loss-percent: {why} (leave it out)")));
    }
    let turns = Repeats::new(seeds, machine::time().is_virtual);
    let steps = plan(&args.scenarios.0, &args.schedulers.0, alone, turns, args.seconds);
    if args.dry_run {
        for Step { scenario, scheduler, length, .. } in steps {
            println!("{scenario} {scheduler} {}", length.as_secs_f64());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let (jobs, out) = (Jobs::Several, args.out.as_deref());
    let testbed = Testbed::One { nodes: usize::from(args.nodes), wire: Wire::of(args.latency_us, args.loss_percent) };
    Experiment { testbed, steps, jobs, repeats, length: args.seconds, out }.run()
}
