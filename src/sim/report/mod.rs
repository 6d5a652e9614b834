// SPDX-License-Identifier: GPL-2.0-only
//! What the models print: tables for people, JSON for programs.

mod jobs;
mod thesis;

use std::process::ExitCode;

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};

pub use self::jobs::{bsp, bsp_json, check_bsp, check_continuous, continuous, continuous_json};
pub use self::thesis::{check_dynamic, check_markov, dynamic, dynamic_json, markov, markov_json};

/// What this thread has used so far: other than the clock, it does not go while somebody else has the CPU, and sweeps have
/// one thread for each of their points.
fn cpu_seconds() -> Result<f64> {
    let used = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID)?;
    Ok(used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9)
}

fn print_line(line: &str) -> Result<ExitCode> {
    println!("{line}");
    Ok(ExitCode::SUCCESS)
}

/// The seed of a run.
pub fn run_seed(seed: u64, run: u32) -> u64 {
    seed.wrapping_add(u64::from(run).wrapping_mul(0x2545_f491_4f6c_dd1d))
}
