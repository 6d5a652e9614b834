// SPDX-License-Identifier: GPL-2.0-only
//! `bench hog`: a competitor that only wants the CPU.

use anyhow::Result;

use crate::interval::{Interval, Phase, phase};
use crate::machine;
use crate::work::compute;
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

    #[command(flatten)]
    pub timing: Timing,
}

/// Some µs of work between two looks at the phase.
const ROUNDS: u64 = 4096;

pub fn run(args: &HogArgs, begin: Begin) -> Result<Report> {
    machine::pin(args.cpu)?;
    if args.idle {
        machine::idle()?;
    }
    begin.announce(None)?;
    let interval = Interval::begin(begin.bounds()?)?;

    let mut loops = 0;
    while phase() < Phase::Stop {
        loops += u64::from(phase() == Phase::Measured);
        compute(ROUNDS);
    }
    Ok(Report { loops: Some(loops), ..Report::of(&interval) })
}
