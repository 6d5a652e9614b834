// SPDX-License-Identifier: GPL-2.0-only
//! `bench demo`: the whole experiment, with progress, a table and `summary.json`.

use std::fmt;
use std::io::IsTerminal;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use indicatif::{ProgressBar, ProgressDrawTarget};

use super::agent::{self, AgentArgs};
use super::coordinator::{Coordinator, LocalAgent, Setup};
use super::plan::{Step, plan};
use super::protocol::parse_length;
use super::stats::Figures;
use super::summary::{Run, Summary, disturbed, rows, table};
use super::{interrupt, machine};

/// Where the agents of other machines find the coordinator.
const PORT: u16 = 7710;

/// Compare schedulers: a parallel job on two nodes that it shares with busy competitors.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// What the two nodes are.
    #[arg(long, value_enum, default_value = "one")]
    testbed: Testbed,

    /// Measurements of each kind [default: 5, with testbed two 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,

    /// Seconds of each measurement [default: 4, with testbed two 3].
    #[arg(long, value_name = "S", value_parser = parse_length)]
    seconds: Option<Duration>,

    /// Schedulers to compare: eevdf, which is the kernel's own, and presets, with or without changes
    /// (dcs+h_ms=-20).
    #[arg(long, value_name = "NAME,...", value_delimiter = ',', default_value = "eevdf,local,dcs")]
    schedulers: Vec<String>,

    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,

    /// Testbed two: the number of this machine, 0 or 1 [default: $NODE, or 0].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=1))]
    node: Option<u8>,

    /// Testbed two: the address of the other machine [default: $PEER].
    #[arg(long, value_name = "ADDR")]
    peer: Option<IpAddr>,
}

impl DemoArgs {
    /// In testbed two, where the coordinator is if it is not here.
    fn elsewhere(&self) -> Result<Option<SocketAddr>> {
        let node = match self.node {
            Some(node) => usize::from(node),
            None => from_environment("NODE")?.unwrap_or(0),
        };
        if self.testbed == Testbed::One || node == 0 {
            return Ok(None);
        }
        let peer = match self.peer {
            Some(peer) => Some(peer),
            None => from_environment("PEER")?,
        };
        let peer = peer.context("testbed two needs the other machine's address (--peer)")?;
        Ok(Some(SocketAddr::new(peer, PORT)))
    }
}

/// The VM harness says in the environment who is who.
fn from_environment<T: FromStr>(name: &str) -> Result<Option<T>> {
    let Ok(value) = std::env::var(name) else { return Ok(None) };
    let parsed = value.parse().ok();
    parsed.map(Some).with_context(|| format!("{name} in the environment makes no sense: '{value}'"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Testbed {
    /// The CPUs 0 and 1 of this machine.
    One,
    /// This machine and another, which runs the same command with the other number.
    Two,
}

impl fmt::Display for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Testbed::One => "one",
            Testbed::Two => "two",
        })
    }
}

pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    if let Some(coordinator) = args.elsewhere()? {
        return agent::run(&AgentArgs { coordinator, node: 1, cpu: 0 });
    }
    interrupt::catch()?;
    machine::lead();

    let (repeats, length) = match args.testbed {
        Testbed::One => (5, Duration::from_secs(4)),
        Testbed::Two => (3, Duration::from_secs(3)),
    };
    let repeats = args.repeats.map_or(repeats, usize::from);
    let length = args.seconds.unwrap_or(length);
    // Who is interrupted is wherever he happens to be, which is nobody's concern.
    let runs = measure_all(args.testbed, &plan(&args.schedulers, repeats, length))
        .map_err(|error| if interrupt::happened() { anyhow!("interrupted") } else { error })?;

    let summary = Summary {
        kernel: machine::kernel(),
        testbed: args.testbed.to_string(),
        clocksource: machine::clocksource(),
        cpu: machine::cpu_model(),
        seconds: length.as_secs_f64(),
        repeats,
        repeated: runs.iter().filter(|run| run.again).count(),
        disturbed: disturbed(&runs).into_iter().filter(|&it| it).count(),
        results: rows(&runs),
    };
    print(&summary);
    warn(&summary);
    if let Some(file) = &args.out {
        let json = serde_json::to_string_pretty(&summary)? + "\n";
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn measure_all(testbed: Testbed, steps: &[Step]) -> Result<Vec<Run>> {
    // The agents go last: they unload the scheduler when the coordinator has left.
    let (listener, _agents) = start(testbed)?;
    let kernels = if testbed == Testbed::One { 1 } else { 2 };
    let mut coordinator = Coordinator::gather(&listener, kernels)?;

    let progress = Progress::new(steps.len());
    let mut scheduled = Scheduled::default();
    let mut runs = Vec::new();
    for step in steps {
        runs.push(measure(&mut coordinator, &mut scheduled, step)?);
        progress.report(&runs, runs.len() - 1);
    }
    for place in again(&disturbed(&runs)) {
        let run = measure(&mut coordinator, &mut scheduled, &steps[place])?;
        runs[place] = Run { again: true, ..run };
        progress.report(&runs, place);
    }
    progress.bar.finish_and_clear();
    coordinator.end()?;
    Ok(runs)
}

/// The scheduler of all kernels, and its gate.
#[derive(Default)]
struct Scheduled {
    name: String,
    gate: String,
}

fn measure(coordinator: &mut Coordinator, scheduled: &mut Scheduled, step: &Step) -> Result<Run> {
    if scheduled.name != step.scheduler {
        let gate = coordinator.schedule(&step.scheduler)?;
        *scheduled = Scheduled { name: step.scheduler.clone(), gate };
    }
    let setup = Setup {
        receiver: step.receiver,
        competitors: step.competitors,
        warm_up: Duration::from_millis(500),
        length: step.length,
    };
    let figures = coordinator
        .measure(setup)
        .and_then(|reports| Figures::of(&reports))
        .with_context(|| format!("{} receivers under {}", step.receiver, step.scheduler))?;
    Ok(Run { step: step.clone(), gate: scheduled.gate.clone(), figures, again: false })
}

/// Which runs to measure again: those that were disturbed, once each, but on a machine that is never quiet
/// not so many that it takes for ever.
fn again(disturbed: &[bool]) -> Vec<usize> {
    let places = disturbed.iter().enumerate().filter(|(_, is)| **is).map(|(place, _)| place);
    places.take(disturbed.len() / 4).collect()
}

fn start(testbed: Testbed) -> Result<(TcpListener, Vec<LocalAgent>)> {
    // Loopback has any port, another machine has to know it.
    let (address, cpus) = match testbed {
        Testbed::One => (SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), 0..2),
        Testbed::Two => (SocketAddr::from((Ipv4Addr::UNSPECIFIED, PORT)), 0..1),
    };
    let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
    let port = listener.local_addr()?.port();
    let coordinator = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let agents = cpus.map(|n| LocalAgent::start(coordinator, n, n)).collect::<Result<_>>()?;
    Ok((listener, agents))
}

/// A bar where there is a terminal, and a line for each run everywhere.
struct Progress {
    bar: ProgressBar,
    steps: usize,
}

impl Progress {
    fn new(steps: usize) -> Progress {
        let target = match std::io::stdout().is_terminal() {
            true => ProgressDrawTarget::stdout(),
            false => ProgressDrawTarget::hidden(),
        };
        Progress { bar: ProgressBar::with_draw_target(Some(steps as u64), target), steps }
    }

    /// Shows the run in this place.
    fn report(&self, runs: &[Run], place: usize) {
        let disturbed = if disturbed(runs)[place] { "  disturbed" } else { "" };
        let line = line(place + 1, self.steps, &runs[place]) + disturbed;
        self.bar.suspend(|| println!("{line}"));
        self.bar.inc(1);
    }
}

fn line(done: usize, steps: usize, run: &Run) -> String {
    let Run { step, figures, .. } = run;
    let width = steps.to_string().len();
    let load = if step.competitors == 0 { "  no competitors" } else { "" };
    format!(
        "[{done:width$}/{steps}] {:5} {:8} {:6.0} round trips/s  F {:.2}{load}",
        step.receiver, step.scheduler, figures.round_trips_per_s, figures.fairness
    )
}

fn print(summary: &Summary) {
    println!("\n{}", table(&summary.results));
    let clock = summary.clocksource.as_deref().unwrap_or("?");
    println!(
        "Medians of {} runs of {} s, except min-max and max. Testbed {}, kernel {}, clock source {clock}.",
        summary.repeats, summary.seconds, summary.testbed, summary.kernel
    );
    println!("F = N T_C / T_E, 1 is fair. Efficiency: round trips per CPU second of the job over the same alone.");
}

/// Says whether the figures can be believed.
fn warn(summary: &Summary) {
    if summary.repeated > 0 {
        println!("{} runs were disturbed and measured a second time.", summary.repeated);
    }
    if summary.disturbed > 0 {
        println!(
            "Somebody else used this machine's CPUs during {} of these runs: doubt the figures.",
            summary.disturbed
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::protocol::Receiver;

    #[test]
    fn measures_again_what_was_disturbed() {
        let mut runs = [false; 8];
        runs[3] = true;
        assert_eq!(again(&runs), [3]);
        assert_eq!(again(&[true; 8]), [0, 1], "there is an end to it");
    }

    #[test]
    fn progress_is_a_line() {
        let step = Step { receiver: Receiver::Spin, scheduler: "dcs".into(), competitors: 4, length: Duration::ZERO };
        let figures = Figures {
            round_trips_per_s: 2441.4,
            cpu_share: 0.2,
            fairness: 0.998,
            competitor_fairness_min: None,
            round_trips_per_cpu_s: 0.0,
            node_speed_min: None,
            p50_us: 0.0,
            p99_us: 0.0,
            max_us: 0.0,
        };
        let run = Run { step, gate: "equalizing".into(), figures, again: false };
        assert_eq!(line(7, 30, &run), "[ 7/30] spin  dcs        2441 round trips/s  F 1.00");
    }
}
