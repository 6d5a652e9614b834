// SPDX-License-Identifier: GPL-2.0-only
//! `bench hog`: a competitor that only wants the CPU.

use std::hint::black_box;

use anyhow::Result;

use super::interval::{Phase, phase};
use super::machine;
use super::worker::{Begin, Report, Timing};

/// A busy competitor: computes for a while and reports its CPU time.
#[derive(Clone, Debug, clap::Args)]
pub struct HogArgs {
    /// CPU to stay on.
    #[arg(long, value_name = "N")]
    cpu: Option<usize>,

    #[command(flatten)]
    pub timing: Timing,
}

/// Some µs of work between two looks at the phase.
const ROUNDS: u64 = 4096;

pub fn run(args: &HogArgs, begin: Begin) -> Result<Report> {
    machine::pin(args.cpu)?;
    begin.announce(None)?;
    let interval = begin.interval()?;

    let mut x = 1u64;
    let mut loops = 0;
    while phase() < Phase::Stop {
        loops += u64::from(phase() == Phase::Measured);
        for _ in 0..ROUNDS {
            x = black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407));
        }
    }
    Ok(Report { loops: Some(loops), ..Report::of(&interval, None) })
}
