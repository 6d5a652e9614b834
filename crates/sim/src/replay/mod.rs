// SPDX-License-Identifier: GPL-2.0-only
//! `sim replay`: the two-node scenarios of the bench by the simulator, at the costs that were measured there, beside
//! what was measured: the bridge between simulator and kernel.
//!
//! What is taken from the measurement is what a pair takes that has both nodes to itself, under each scheduler by
//! itself, and what the calibration found ([`costs`]). Nothing is fitted.
//!
//! EEVDF is no policy of ours. It stands here as `local` in the order that [`Fair`](super::local::Fair) has of EEVDF.
//! Other schedulers are left out, and so are scenarios of which there is no model. Both are named on stderr.

mod costs;
mod summary;
mod view;

use std::process::ExitCode;

use anyhow::Result;
use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use self::costs::Measured;
use self::summary::{Case, Summary, Testbed};
use self::view::View;
use super::cli::ReplayArgs;
use super::progress::progress;
use super::report::{self, run_seed};
use super::shared::messages::Messages;
use super::shared::program::{Pattern, Program};
use super::shared::uneven::Uneven;
use super::shared::{self, Faults, Outcome, Setup};
use super::stats::Estimate;
use cosched_rules::costs::Costs;
use cosched_rules::intf::cosched_policy;
use cosched_rules::presets;
use cosched_rules::report::usage;

const EEVDF: &str = "eevdf";
/// How often a CPU under EEVDF looks whether a slice is over, in ns. It stands for the kernel's timer of each slice
/// (HRTICK). So a slice of 1.4 ms, as two CPUs have it, ends within 4% of its length. A task that has woken up and has
/// not preempted by the next look waits for the end of a slice.
const EEVDF_LOOK_NS: u64 = 100_000;
/// What the bench drops at the start of a run: the time in which its workers begin, and what has passed then.
const WARMUP_NS: u64 = 700_000_000;
/// And under schedulers that have the nodes agree.
const AGREEMENT_NS: u64 = 3_200_000_000;
/// Of the looks at a pair's process that polls in vain, so many find it outside of a receive. Where the kernel accounts
/// time by ticks, so many of the ticks found it in user space (`/proc/PID/stat`, `spin-4` under `local`, Linux 7.3).
const LOOKS_IN_VAIN: f64 = 0.15;
/// How often a kernel thread or the scheduler's loader takes a CPU, in ns: 9 times a second on either of two, by how
/// often each thread of the machine had run within 8 s (`/proc/PID/schedstat`, `spin-4` under `sy`). EEVDF has its own.
const KERNEL_THREAD_NS: u64 = 110_000_000;
/// A run is no longer, in s.
const LONGEST_S: f64 = 10.0;

/// What the simulator says of a case.
#[derive(Clone, Debug)]
pub struct Replayed {
    /// What was measured.
    pub case: Case,
    /// What it costs.
    pub costs: shared::Costs,
    /// Round trips per second of all jobs together, of each run.
    pub round_trips_per_s: Vec<f64>,
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
    let measured = Measured::of(&summary, args)?;
    let (cases, left_out) = cases(&summary, &measured, args);
    if !left_out.is_empty() {
        eprintln!("left out, since there is no model of it: {}", left_out.join(", "));
    }
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

/// The policy that stands for a scheduler, and whether that is EEVDF; none: there is no model of it.
fn policy(scheduler: &str, tasks: u32, costs: &Costs, cpus: u32) -> Option<(cosched_policy, bool)> {
    let Some(options) = scheduler.strip_prefix(EEVDF) else {
        return Some((report::shared::policy("policy", scheduler, tasks, costs).ok()?, false));
    };
    let policy = report::shared::policy("policy", &format!("local{options}"), tasks, costs).ok()?;
    // The kernel's for one CPU, and more of it for more (kernel/sched/fair.c, get_update_sysctl_factor()).
    let slice_ns = 700_000 * u64::from(1 + cpus.clamp(1, 8).ilog2());
    Some((if options.is_empty() { cosched_policy { slice_ns, ..policy } } else { policy }, true))
}

/// Whether the bench waits until the nodes of a job agree on when it runs (`Contender::coordinates()`).
fn agrees(scheduler: &str, policy: &cosched_policy) -> bool {
    shared::is_gang(policy) || presets::changed(scheduler).is_ok_and(|policy| policy.needs_hooks())
}

type Cases = Vec<(Case, Setup)>;

/// What can be replayed, and the scenarios and schedulers of the rest.
fn cases(summary: &Summary, measured: &Measured, args: &ReplayArgs) -> (Cases, Vec<String>) {
    let mut cases = Vec::new();
    let (known, mut left_out) = summary.cases();
    let tick_ns = u64::from(args.tick_us) * 1000;
    for case in known {
        let scenario = case.scenario;
        let tasks = scenario.jobs + scenario.competitors;
        if tasks == 1 {
            continue;
        }
        let Some((policy, is_eevdf)) = policy(&case.scheduler, tasks, &measured.calibration, summary.nodes) else {
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
            is_eevdf,
            first: None,
            costs: measured.under(&case.scheduler, scenario.receiver, &policy),
            faults: Faults { loss: 0.0, resend_ns: 0, skew_ns: 0 },
            tick_ns: if is_eevdf { EEVDF_LOOK_NS } else { tick_ns },
            uneven: Uneven {
                amid_slices: true,
                looks_in_vain: LOOKS_IN_VAIN,
                kernel_thread_ns: if is_eevdf { 0 } else { KERNEL_THREAD_NS },
                ..Uneven::default()
            },
            messages: Messages::default(),
            aligned: summary.testbed == Testbed::One,
            warmup_ns: if agrees(&case.scheduler, &policy) { AGREEMENT_NS } else { WARMUP_NS },
            length_ns: (summary.seconds.min(LONGEST_S) * 1e9) as u64,
        };
        cases.push((case, setup));
    }
    (cases, left_out)
}

fn round_trips_per_s(outcome: &Outcome) -> f64 {
    outcome.jobs.iter().map(|job| job.iterations_per_s).sum()
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
            costs: setup.costs,
            round_trips_per_s: outcomes.iter().map(round_trips_per_s).collect(),
            fairness: of(&|outcome| outcome.mean(|job| job.fairness)),
            coscheduled: of(&|outcome| outcome.mean(|job| job.coscheduled)).mean,
        }
    };
    let replayed = cases.par_iter().map(one).collect();
    bar.finish_and_clear();
    replayed
}
