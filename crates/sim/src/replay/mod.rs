// SPDX-License-Identifier: GPL-2.0-only
//! `sim replay`: the two-node scenarios of the bench by the simulator, at the costs that were measured there, beside
//! what was measured: the bridge between simulator and kernel.
//!
//! What is taken from the measurement is how fast the pair is that has both nodes to itself, and what the calibration
//! found. A round trip of two that spin is 4o + 2L. On one machine L is the calibration's, and o is what is left;
//! between two machines, where the calibration knows the loopback only, o is the calibration's and L is left. If both
//! sleep a round trip takes longer by two wake-ups of idle CPUs; W, of a CPU that somebody keeps busy, is the
//! calibration's. Nothing else is taken, and nothing is fitted.
//!
//! EEVDF is no policy of ours. It stands here as `local` with slices of one tick: what EEVDF's own slice, shorter than
//! a tick, comes to. Other schedulers are left out.

mod summary;
mod view;

use std::process::ExitCode;

use anyhow::Result;
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use self::summary::{Case, Summary, Testbed};
use self::view::View;
use super::cli::ReplayArgs;
use super::progress::progress;
use super::report::{self, run_seed};
use super::shared::messages::Messages;
use super::shared::program::{Pattern, Program, Receiver};
use super::shared::uneven::Uneven;
use super::shared::{self, Faults, Outcome, Setup};
use super::stats::Estimate;
use cosched_rules::costs::Costs;
use cosched_rules::intf::cosched_policy;
use cosched_rules::presets;
use cosched_rules::report::usage;

const EEVDF: &str = "eevdf";
/// The bench's own.
const WARMUP_NS: u64 = 500_000_000;
/// A run is no longer, in s.
const LONGEST_S: f64 = 10.0;

/// What is taken from the measurement.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// What the rules reckon with.
    pub calibration: Costs,
    /// What messages and switches take in the model.
    pub model: shared::Costs,
    /// Round trips per second of a pair alone that spins.
    pub spinning_per_s: f64,
    /// And of one that sleeps, if that was measured.
    pub sleeping_per_s: Option<f64>,
}

/// What the simulator says of a case.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What was measured.
    pub case: Case,
    /// Round trips per second of all jobs together.
    pub round_trips_per_s: Estimate,
    /// F, the mean of the jobs.
    pub fairness: Estimate,
    /// The share of messages that found their receiver running.
    pub coscheduled: f64,
}

/// Replays a summary.
///
/// # Errors
/// One line, if the file is none, does not say what is needed, or a figure cannot be written.
pub fn run(args: &ReplayArgs) -> Result<ExitCode> {
    let summary = summary::read(&args.file)?;
    let measured = measured(&summary, args)?;
    let (cases, left_out) = cases(&summary, &measured, args);
    if cases.is_empty() {
        return Err(usage(format!(
            "{}: nothing in it can be replayed (measure more than a pair alone)",
            args.file.display()
        )));
    }
    let view = View::of(args, &summary, measured, replay(cases, args, &summary), left_out);
    if let Some(dir) = &args.out {
        view.write(dir)?;
    }
    view.print(args.runs.json)
}

/// The costs, from the file and the flags.
fn measured(summary: &Summary, args: &ReplayArgs) -> Result<Measured> {
    let name = args.file.display();
    let spinning_per_s = summary.alone_per_s(Receiver::Spin).ok_or_else(|| {
        usage(format!(
            "{name}: no spinning pair alone under eevdf in it, by which messages are timed (measure spin-0 too)"
        ))
    })?;
    let known = |flag: Option<f64>, of: fn(&Costs) -> f64| flag.or_else(|| summary.costs.as_ref().map(of));
    let needed = |what: &str, flag: Option<f64>, of: fn(&Costs) -> f64| {
        known(flag, of).ok_or_else(|| {
            usage(format!(
                "{name}: it has no costs, as benches of before have not (give --{what}-us, as `status` showed it there)"
            ))
        })
    };
    let trip_us = 1e6 / spinning_per_s;
    let switch_us = needed("switch", args.switch_us, |costs| costs.switch_us)?;
    let (latency_us, overhead_us) = match summary.testbed {
        Testbed::One => {
            let latency_us = needed("latency", args.latency_us, |costs| costs.latency_us)?;
            (latency_us, (trip_us - 2.0 * latency_us) / 4.0)
        }
        Testbed::Two => {
            let overhead_us = needed("overhead", args.overhead_us, |costs| costs.overhead_us)?;
            ((trip_us - 4.0 * overhead_us) / 2.0, overhead_us)
        }
    };
    if overhead_us <= 0.0 || latency_us < 0.0 {
        let flag = if summary.testbed == Testbed::One { "--latency-us" } else { "--overhead-us" };
        return Err(usage(format!(
            "{name}: the costs are more than the {trip_us:.1} us of a round trip alone (give {flag} by hand)"
        )));
    }
    let sleeping_per_s = summary.alone_per_s(Receiver::Block);
    let idle_us = sleeping_per_s.map_or(switch_us, |rate| ((1e6 / rate - trip_us) / 2.0).max(0.0));
    let calibration = Costs {
        latency_us: known(args.latency_us, |costs| costs.latency_us).unwrap_or(latency_us),
        overhead_us: known(args.overhead_us, |costs| costs.overhead_us).unwrap_or(overhead_us),
        switch_us,
    };
    let ns = |us: f64| (us * 1000.0).round() as u64;
    let model = shared::Costs {
        latency_ns: ns(latency_us),
        overhead_ns: ns(overhead_us).max(1),
        switch_ns: ns(switch_us),
        idle_switch_ns: ns(idle_us),
    };
    Ok(Measured { calibration, model, spinning_per_s, sleeping_per_s })
}

/// The policy that stands for a scheduler; none: there is no model of it.
fn policy(scheduler: &str, tasks: u32, costs: &Costs, tick_ns: u64) -> Option<cosched_policy> {
    if scheduler == EEVDF {
        let local = presets::find("local").ok()?.policy.to_bpf(costs);
        return Some(cosched_policy { slice_ns: tick_ns, ..local });
    }
    report::shared::policy("policy", scheduler, tasks, costs).ok()
}

type Cases = Vec<(Case, Setup)>;

/// What can be replayed, and the schedulers of the rest.
fn cases(summary: &Summary, measured: &Measured, args: &ReplayArgs) -> (Cases, Vec<String>) {
    let (mut cases, mut left_out) = (Vec::new(), Vec::new());
    let tick_ns = u64::from(args.tick_us) * 1000;
    for case in summary.cases() {
        let scenario = case.scenario;
        let tasks = scenario.jobs + scenario.competitors;
        if tasks == 1 {
            continue;
        }
        let Some(policy) = policy(&case.scheduler, tasks, &measured.calibration, tick_ns) else {
            if !left_out.contains(&case.scheduler) {
                left_out.push(case.scheduler);
            }
            continue;
        };
        let setup = Setup {
            nodes: 2,
            cpus: 1,
            jobs: scenario.jobs,
            ranks: 1,
            competitors: scenario.competitors,
            program: Program {
                pattern: Pattern::Token,
                receiver: scenario.receiver,
                grain_ns: (scenario.compute_us * 1000.0) as u64,
                imbalance_ns: 0,
            },
            policy,
            first: None,
            costs: measured.model,
            faults: Faults { loss: 0.0, resend_ns: 0, skew_ns: 0 },
            tick_ns,
            uneven: Uneven::default(),
            messages: Messages::default(),
            aligned: summary.testbed == Testbed::One,
            warmup_ns: WARMUP_NS,
            length_ns: (summary.seconds.min(LONGEST_S) * 1e9) as u64,
        };
        cases.push((case, setup));
    }
    (cases, left_out)
}

fn replay(cases: Cases, args: &ReplayArgs, summary: &Summary) -> Vec<Replayed> {
    let bar = progress(&format!("replay of {} s", summary.seconds), cases.len() as u64);
    let one = |(case, setup): &(Case, Setup)| {
        let run = |run: u32| shared::simulate(setup, run_seed(args.runs.seed, run));
        let outcomes: Vec<Outcome> = (0..args.runs.runs).map(run).collect();
        bar.inc(1);
        let of = |of: &dyn Fn(&Outcome) -> f64| Estimate::of(&outcomes.iter().map(of).collect::<Vec<_>>());
        Replayed {
            case: case.clone(),
            round_trips_per_s: of(&|outcome| outcome.jobs.iter().map(|job| job.iterations_per_s).sum()),
            fairness: of(&|outcome| outcome.mean(|job| job.fairness)),
            coscheduled: of(&|outcome| outcome.mean(|job| job.coscheduled)).mean,
        }
    };
    let replayed = cases.par_iter().map(one).collect();
    bar.finish_and_clear();
    replayed
}
