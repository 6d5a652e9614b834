// SPDX-License-Identifier: GPL-2.0-only
//! The workers, token passers and hogs, seen from inside: when they begin and what they report.
//!
//! To a user a worker begins at once and reports in words. To its agent (`--json`) it says a line when it
//! is ready, begins at the time that it is then told, and reports in JSON; so everything on a node starts
//! together, and nothing of starting up is measured.

use std::io::BufRead;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::interval::{Bounds, Interval, monotonic_ns};
use crate::length::{parse_duration, parse_length};

/// When a worker is measured.
#[derive(Clone, Debug, clap::Args)]
pub struct Timing {
    /// Seconds to measure.
    #[arg(long, value_name = "S", default_value = "3", value_parser = parse_length)]
    pub seconds: Duration,

    /// Seconds of the same work before that, which are not measured.
    #[arg(long, value_name = "S", default_value = "0.5", value_parser = parse_duration)]
    pub warm_up: Duration,

    /// Speak JSON, and wait for a line that says when to begin and when to measure.
    #[arg(long)]
    pub json: bool,
}

/// What a worker tells its agent, a line each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Line {
    /// It waits for the time to begin. A token passer that waits for its peer says where.
    Ready(Option<SocketAddr>),
    Report(Report),
    Failed(String),
}

/// What an agent tells a worker (`CLOCK_MONOTONIC`, ns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// When it begins to work.
    pub begin_ns: u64,
    /// When its interval begins.
    pub measure_ns: u64,
}

/// What a worker has measured in its interval.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    pub seconds: f64,
    /// Of all its tasks together.
    pub cpu_seconds: f64,
    /// Its threads that want the CPU.
    pub tasks: usize,
    /// Of the side that starts the token.
    pub round_trips: Option<RoundTrips>,
    /// Of a hog: what it got done in its CPU time, in its own unit. It tells how fast the machine was.
    pub loops: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundTrips {
    pub count: u64,
    /// By length: bucket i counts those of at most 2^i us that are longer than those of the bucket before.
    pub by_log2_us: Vec<u64>,
    /// How long those of each bucket took together.
    pub ms_by_log2_us: Vec<f64>,
    pub p50_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
}

impl Report {
    /// Of one task.
    pub fn of(interval: &Interval) -> Report {
        Report::of_task(interval.seconds(), interval.cpu_seconds())
    }

    /// The same of these seconds.
    pub fn of_task(seconds: f64, cpu_seconds: f64) -> Report {
        Report { seconds, cpu_seconds, tasks: 1, round_trips: None, loops: None }
    }

    fn print(&self) {
        if let Some(trips) = &self.round_trips {
            let rate = trips.count as f64 / self.seconds;
            println!("round trips    {} in {} s, {rate:.1}/s", trips.count, self.seconds);
            println!("round trip µs  p50 {:.1}, p99 {:.1}, max {:.1}", trips.p50_us, trips.p99_us, trips.max_us);
        }
        let share = 100.0 * self.cpu_seconds / self.seconds;
        println!("CPU time       {:.3} s of {} s, {share:.1}%", self.cpu_seconds, self.seconds);
    }
}

/// How a worker comes to begin.
pub struct Begin(Timing);

impl Begin {
    /// Says that the worker is ready, and where it waits for its peer if it does.
    pub fn announce(&self, address: Option<SocketAddr>) -> Result<()> {
        match address {
            _ if self.0.json => say(&Line::Ready(address))?,
            Some(address) => println!("listening on {address}"),
            None => {}
        }
        Ok(())
    }

    /// Waits until the worker may begin, and says when it is measured.
    pub fn bounds(&self) -> Result<Bounds> {
        if !self.0.json {
            return Ok(Bounds::new(monotonic_ns() + self.0.warm_up.as_nanos() as u64, self.0.seconds));
        }
        let Start { begin_ns, measure_ns } = start_from_stdin()?;
        thread::sleep(Duration::from_nanos(begin_ns.saturating_sub(monotonic_ns())));
        Ok(Bounds::new(measure_ns, self.0.seconds))
    }
}

/// Runs a worker and reports, in words or to its agent.
pub fn main(timing: Timing, work: impl FnOnce(Begin) -> Result<Report>) -> Result<ExitCode> {
    let json = timing.json;
    match work(Begin(timing)) {
        Ok(report) if json => say(&Line::Report(report))?,
        Ok(report) => report.print(),
        Err(error) if json => {
            say(&Line::Failed(format!("{error:#}")))?;
            return Ok(ExitCode::FAILURE);
        }
        Err(error) => return Err(error),
    }
    Ok(ExitCode::SUCCESS)
}

fn say(line: &Line) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(())
}

fn start_from_stdin() -> Result<Start> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).context("cannot read the time to begin")?;
    serde_json::from_str(&line).context("there was no time to begin on standard input")
}
