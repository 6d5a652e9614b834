// SPDX-License-Identifier: GPL-2.0-only
//! `bench hog`: a competitor that only wants the CPU.

use std::thread;
use std::time::Duration;

use anyhow::Result;

use crate::interval::{Interval, Phase, phase};
use crate::machine;
use crate::work::{Work, compute};
use crate::worker::{Begin, Report, Timing};

/// A busy competitor: computes for a while and reports its CPU time.
#[derive(Clone, Debug, clap::Args)]
pub struct HogArgs {
    /// CPU to stay on.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    /// Only take what nothing else wants (SCHED_IDLE).
    #[arg(long)]
    idle: bool,

    /// Nice level.
    #[arg(long, value_name = "N", default_value = "0", value_parser = clap::value_parser!(u8).range(..=19))]
    nice: u8,

    /// Sleep for 5 ms after each 10 ms of computing, as a program does that waits for a file server.
    #[arg(long)]
    io: bool,

    #[command(flatten)]
    pub timing: Timing,
}

/// Some µs of work between two looks at the phase.
const ROUNDS: u64 = 4096;

/// Of one that reads files: how long it computes at a time, and waits.
const COMPUTING: Duration = Duration::from_millis(10);
const WAITING: Duration = Duration::from_millis(5);

pub fn run(args: &HogArgs, begin: Begin) -> Result<Report> {
    machine::pin(args.cpu)?;
    if args.idle {
        machine::idle()?;
    }
    if args.nice > 0 {
        machine::nice(args.nice)?;
    }
    let loops_at_a_time = args.io.then(|| Work::lasting(COMPUTING)).transpose()?.map(|work| work.loops_of(ROUNDS));
    begin.announce(None)?;
    let interval = Interval::begin(begin.bounds()?)?;

    let (mut loops, mut left) = (0, loops_at_a_time);
    while phase() < Phase::Stop {
        loops += u64::from(phase() == Phase::Measured);
        compute(ROUNDS);
        left = left.map(|left| left - 1);
        if left == Some(0) {
            thread::sleep(WAITING);
            left = loops_at_a_time;
        }
    }
    Ok(Report { loops: Some(loops), ..Report::of(&interval) })
}
