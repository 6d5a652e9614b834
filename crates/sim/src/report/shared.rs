// SPDX-License-Identifier: GPL-2.0-only
//! `sim shared`.

use std::process::ExitCode;

use anyhow::Result;
use serde::Serialize;

use super::{cpu_seconds, print_line, run_seed};
use crate::cli::{PatternName, ReceiverName, SharedArgs};
use crate::shared::beat::is_beat;
use crate::shared::messages::{Demands, Messages};
use crate::shared::program::{MOST_NODES, Pattern, Program, Receiver};
use crate::shared::uneven::Uneven;
use crate::shared::{self, Costs, Faults, Job, Outcome, Setup, Time, is_gang};
use crate::stats::Estimate;
use cosched_rules::costs;
use cosched_rules::intf::{self, cosched_policy};
use cosched_rules::presets;
use cosched_rules::report::usage;

/// The least that Linux's TCP waits (TCP_RTO_MIN).
const RESEND_MS: f64 = 200.0;

/// Half the widths of the 90% confidence intervals of the fields with these names.
#[derive(Serialize)]
struct Intervals {
    slowdown: Option<f64>,
    iterations_per_s: Option<f64>,
    fairness: Option<f64>,
    coscheduled: Option<f64>,
    longest_ms: Option<f64>,
}

/// Of nodes that have several.
#[derive(Serialize)]
struct Cpus {
    each: u32,
    ranks: u32,
    moves_per_s: f64,
}

/// Per second and node.
#[derive(Serialize)]
struct Prefetches {
    sent_per_s: f64,
    granted_per_s: f64,
}

#[derive(Serialize)]
struct SharedView {
    policy: String,
    nodes: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpus: Option<Cpus>,
    slowdown: f64,
    slowdown_most: f64,
    iterations_per_s: f64,
    alone_per_s: f64,
    fairness: f64,
    coscheduled: f64,
    longest_ms: f64,
    ci90: Intervals,
    cpu_share: f64,
    fairness_min: f64,
    competitor_fairness_min: Option<f64>,
    boosts_per_s: f64,
    time: Time,
    #[serde(skip_serializing_if = "Option::is_none")]
    prefetches: Option<Prefetches>,
    runs: u32,
    events: u64,
    events_per_s: f64,
}

/// Whether the flags of `sim shared` go together.
pub fn check_shared(args: &SharedArgs) -> Result<()> {
    setup(args).map(drop)
}

/// What `sim shared --json` prints.
pub fn shared_json(args: &SharedArgs) -> Result<String> {
    Ok(serde_json::to_string(&view(args)?)?)
}

/// `sim shared`.
pub fn shared(args: &SharedArgs) -> Result<ExitCode> {
    if args.runs.json {
        return print_line(&shared_json(args)?);
    }
    let view = view(args)?;
    let text = |mean: f64, ci90: Option<f64>, digits| Estimate { mean, ci90 }.text(digits);
    let SharedView { ci90, .. } = &view;
    let of_cpus = view.cpus.as_ref().map(|cpus| format!(" of {} CPUs", cpus.each)).unwrap_or_default();
    println!(
        "{}: {} jobs and {} competitors on {} nodes{of_cpus}",
        view.policy, args.jobs, args.competitors, view.nodes
    );
    println!(
        "slowdown: {} ({} iterations/s of {:.1} alone)",
        text(view.slowdown, ci90.slowdown, 3),
        text(view.iterations_per_s, ci90.iterations_per_s, 1),
        view.alone_per_s
    );
    if args.jobs > 1 {
        println!("slowdown of the job that is slowed down most: {:.3}", view.slowdown_most);
    }
    println!("longest iteration: {} ms", text(view.longest_ms, ci90.longest_ms, 1));
    println!(
        "F: {}, on the node where a job has least {:.2}",
        text(view.fairness, ci90.fairness, 3),
        view.fairness_min
    );
    println!("messages that found their receiver running: {}", text(view.coscheduled, ci90.coscheduled, 3));
    if let Some(least) = view.competitor_fairness_min {
        println!("F of the competitor that has least: {least:.2}");
    }
    let [compute, communicate, synchronize, switch, queue, off] =
        view.time.parts().map(|share| format!("{:.1}%", share * 100.0));
    println!("compute {compute}, communicate {communicate}, synchronize {synchronize}, switch {switch}");
    println!("wait for the CPU {queue}, off it until a message comes {off}");
    println!("boosts: {:.1} a second and node", view.boosts_per_s);
    if let Some(Prefetches { sent_per_s, granted_per_s }) = &view.prefetches {
        println!("prefetches: {sent_per_s:.1} a second and node, granted {granted_per_s:.1}");
    }
    if let Some(cpus) = &view.cpus {
        println!("moves to another CPU: {:.1} a second and node", cpus.moves_per_s);
    }
    println!("{} events, {:.2} million a second", view.events, view.events_per_s / 1e6);
    Ok(ExitCode::SUCCESS)
}

fn ns(value: f64, unit_ns: f64) -> u64 {
    (value * unit_ns).round() as u64
}

/// The policy by this name, where so many tasks share a node; of a gang each has a row, unless the name says otherwise.
pub fn policy(flag: &str, name: &str, tasks: u32, costs: &costs::Costs) -> Result<cosched_policy> {
    let policy = presets::changed(name).map_err(|error| usage(format!("--{flag}: '{name}': {error}")))?.to_bpf(costs);
    let rows = if is_gang(&policy) && !name.contains("+rows=") { tasks } else { policy.rows };
    Ok(cosched_policy { rows, ..policy })
}

/// What is run.
///
/// # Errors
/// One line for flags that do not go together.
pub fn setup(args: &SharedArgs) -> Result<Setup> {
    let SharedArgs { latency_us, overhead_us, switch_us, .. } = *args;
    let costs = costs::Costs { latency_us, overhead_us, switch_us };
    let most = args.most_competitors.unwrap_or(args.competitors);
    let Some(more) = most.checked_sub(args.competitors) else {
        let message = format!("--most-competitors: {most} are fewer than the {} of --competitors", args.competitors);
        return Err(usage(message + " (choose as many, or more)"));
    };
    let tasks = args.jobs + most;
    let of = |flag: &str, name: &str| policy(flag, name, tasks, &costs);
    let first = args.mistuned.as_deref().map(|name| of("mistuned", name)).transpose()?;
    let setup = Setup {
        nodes: args.nodes,
        cpus: args.cpus,
        jobs: args.jobs,
        ranks: args.ranks,
        competitors: args.competitors,
        program: program(args),
        policy: of("policy", &args.policy)?,
        is_eevdf: false,
        first,
        costs: Costs {
            latency_ns: ns(latency_us, 1e3),
            overhead_ns: ns(overhead_us, 1e3),
            switch_ns: ns(switch_us, 1e3),
            idle_switch_ns: ns(switch_us, 1e3),
        },
        faults: Faults {
            loss: args.loss / 100.0,
            resend_ns: ns(args.resend_ms.unwrap_or(RESEND_MS), 1e6),
            skew_ns: ns(args.clock_skew_ms.unwrap_or(0.0), 1e6),
        },
        uneven: uneven(args, more),
        messages: Messages { prefetch: args.prefetch, demands: args.demands },
        tick_ns: u64::from(args.tick_us) * 1000,
        aligned: false,
        warmup_ns: ns(args.warmup_s, 1e9),
        length_ns: ns(args.seconds, 1e9),
    };
    if args.nodes * args.cpus > MOST_NODES {
        return Err(usage(format!(
            "--cpus: {} nodes of {} CPUs are {} (choose fewer: {MOST_NODES} CPUs of all nodes at most)",
            args.nodes,
            args.cpus,
            args.nodes * args.cpus
        )));
    }
    if args.ranks > args.cpus {
        return Err(usage(format!(
            "--ranks: {} processes of a job have {} CPUs on a node (choose at most so many, or more --cpus)",
            args.ranks, args.cpus
        )));
    }
    if args.pattern == PatternName::Token && args.nodes % 2 == 1 {
        return Err(usage(format!("--nodes: {} nodes make no pairs (choose an even number)", args.nodes)));
    }
    if args.resend_ms.is_some() && args.loss == 0.0 {
        return Err(usage("--resend-ms: it has no effect without losses (leave it out, or give --loss)"));
    }
    check_uneven(args, &setup)?;
    check_messages(args, &setup)?;
    Ok(setup)
}

/// Whether how messages are treated goes together with the rest.
fn check_messages(args: &SharedArgs, setup: &Setup) -> Result<()> {
    let has_demand = setup.policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND;
    let (prefetches, chooses) = (args.prefetch > 0, args.demands != Demands::All);
    if (prefetches || chooses) && !has_demand {
        let flag = if prefetches { "prefetch" } else { "demands" };
        let message = format!("--{flag}: no arrival of a message is a demand under '{}'", args.policy);
        return Err(usage(message + " (leave it out, or choose --policy dcs-sb)"));
    }
    if chooses && args.pattern != PatternName::Meeting {
        return Err(usage(
            "--demands: all messages are alike in this pattern (leave it out, or choose --pattern meeting)",
        ));
    }
    Ok(())
}

/// Whether what differs from node to node goes together with the rest.
fn check_uneven(args: &SharedArgs, setup: &Setup) -> Result<()> {
    let any = |is: fn(&cosched_policy) -> bool| is(&setup.policy) || setup.first.as_ref().is_some_and(is);
    let by_clock = any(is_gang) || any(is_beat);
    let no_clock = "only gang and beat look at the clock (leave it out, or choose --policy gang)";
    if args.clock_skew_ms.is_some() && !by_clock {
        return Err(usage(format!("--clock-skew-ms: {no_clock}")));
    }
    if args.clock_drift_ppm.is_some() && !by_clock {
        return Err(usage(format!("--clock-drift-ppm: {no_clock}")));
    }
    if !args.beat_without.is_empty() && !any(is_beat) {
        return Err(usage("--beat-without: these are pieces of beat (leave it out, or choose --policy beat)"));
    }
    if args.mistuned_every.is_some() && args.mistuned.is_none() {
        return Err(usage("--mistuned-every: no node is mistuned (leave it out, or give --mistuned)"));
    }
    if args.least_nodes.is_some_and(|least| least > args.nodes) {
        return Err(usage(format!("--least-nodes: there are {} nodes (choose at most so many)", args.nodes)));
    }
    if args.least_nodes.is_some() && args.pattern == PatternName::Token {
        return Err(usage(
            "--least-nodes: an odd number of nodes makes no pairs (leave it out, or choose --pattern ring)",
        ));
    }
    Ok(())
}

fn uneven(args: &SharedArgs, competitors_more: u32) -> Uneven {
    Uneven {
        amid_slices: false,
        competitors_more,
        nodes_least: args.least_nodes.unwrap_or(0),
        stay_ns: ns(args.stay_s.unwrap_or(0.0), 1e9),
        drift_ppm: args.clock_drift_ppm.unwrap_or(0.0),
        lead_ns: ns(args.start_lead_ms, 1e6),
        mistuned_every: args.mistuned_every.unwrap_or(0),
        looks_in_vain: 0.0,
        kernel_thread_ns: 0,
        without: args.beat_without.clone(),
    }
}

fn program(args: &SharedArgs) -> Program {
    Program {
        pattern: match args.pattern {
            PatternName::Token => Pattern::Token,
            PatternName::Ring => Pattern::Ring,
            PatternName::Meeting => Pattern::Meeting,
        },
        receiver: match args.receiver {
            ReceiverName::Spin => Receiver::Spin,
            ReceiverName::Block => Receiver::Block,
        },
        grain_ns: ns(args.grain_us, 1e3),
        imbalance_ns: ns(args.grain_us * args.imbalance, 1e3),
    }
}

fn view(args: &SharedArgs) -> Result<SharedView> {
    let setup = setup(args)?;
    let began = cpu_seconds()?;
    let outcomes: Vec<Outcome> =
        (0..args.runs.runs).map(|run| shared::simulate(&setup, run_seed(args.runs.seed, run))).collect();
    let seconds = cpu_seconds()? - began;
    let alone_per_s = shared::alone_per_s(&setup, args.runs.seed);
    let of = |of: &dyn Fn(&Outcome) -> f64| Estimate::of(&outcomes.iter().map(of).collect::<Vec<_>>());
    let mean = |field: fn(&Job) -> f64| of(&|outcome| outcome.mean(field));
    let slowdown = of(&|outcome| setup.slowdown(outcome, alone_per_s));
    let (rate, fairness, coscheduled) =
        (mean(|job| job.iterations_per_s), mean(|job| job.fairness), mean(|job| job.coscheduled));
    let longest = of(&|outcome| outcome.jobs.iter().map(|job| job.longest_ms).fold(0.0, f64::max));
    let least = outcomes.iter().filter_map(|outcome| outcome.competitor_fairness_min).collect::<Vec<_>>();
    let events: u64 = outcomes.iter().map(|outcome| outcome.events).sum();
    let moves_per_s = of(&|outcome| outcome.moves_per_s).mean;
    Ok(SharedView {
        policy: args.policy.clone(),
        nodes: args.nodes,
        cpus: (args.cpus > 1).then_some(Cpus { each: args.cpus, ranks: args.ranks, moves_per_s }),
        slowdown: slowdown.mean,
        slowdown_most: of(&|outcome| setup.slowdown_most(outcome, alone_per_s)).mean,
        iterations_per_s: rate.mean,
        alone_per_s,
        fairness: fairness.mean,
        coscheduled: coscheduled.mean,
        longest_ms: longest.mean,
        ci90: Intervals {
            slowdown: slowdown.ci90,
            iterations_per_s: rate.ci90,
            fairness: fairness.ci90,
            coscheduled: coscheduled.ci90,
            longest_ms: longest.ci90,
        },
        cpu_share: mean(|job| job.cpu_share).mean,
        fairness_min: mean(|job| job.fairness_min).mean,
        competitor_fairness_min: (!least.is_empty()).then(|| Estimate::of(&least).mean),
        boosts_per_s: of(&|outcome| outcome.boosts_per_s).mean,
        time: Time::from(std::array::from_fn(|part| of(&|outcome| outcome.mean(|job| job.time.parts()[part])).mean)),
        prefetches: (args.prefetch > 0).then(|| Prefetches {
            sent_per_s: of(&|outcome| outcome.prefetches_per_s[0]).mean,
            granted_per_s: of(&|outcome| outcome.prefetches_per_s[1]).mean,
        }),
        runs: args.runs.runs,
        events,
        events_per_s: events as f64 / seconds.max(1e-9),
    })
}
