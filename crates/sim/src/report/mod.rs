// SPDX-License-Identifier: GPL-2.0-only
//! What the models print: tables for people, JSON for programs.

mod cluster;
mod jobs;
pub mod shared;
mod thesis;

use std::process::ExitCode;

use anyhow::Result;
use nix::time::{ClockId, clock_gettime};

use super::cli::Model;

/// What this thread has used so far: other than the clock, it does not go while somebody else has the CPU, and sweeps
/// have one thread for each of their points.
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

/// Runs a model, and prints the result.
///
/// # Errors
/// One line for flags that do not go together.
pub fn run(model: &Model) -> Result<ExitCode> {
    match model {
        Model::Markov(args) => thesis::markov(args),
        Model::Dynamic(args) => thesis::dynamic(args),
        Model::Bsp(args) => jobs::bsp(args),
        Model::Continuous(args) => jobs::continuous(args),
        Model::Cluster(args) => cluster::cluster(args),
        Model::Shared(args) => shared::shared(args),
    }
}

/// Whether the flags of a model go together, without running it.
///
/// # Errors
/// One line, if not.
pub fn check(model: &Model) -> Result<()> {
    match model {
        Model::Markov(args) => thesis::check_markov(args),
        Model::Dynamic(args) => thesis::check_dynamic(args),
        Model::Bsp(args) => jobs::check_bsp(args),
        Model::Continuous(args) => jobs::check_continuous(args),
        Model::Cluster(args) => cluster::check_cluster(args),
        Model::Shared(args) => shared::check_shared(args),
    }
}

/// Runs a model. Returns what `--json` prints.
///
/// # Errors
/// One line for flags that do not go together.
pub fn json(model: &Model) -> Result<String> {
    match model {
        Model::Markov(args) => thesis::markov_json(args),
        Model::Dynamic(args) => thesis::dynamic_json(args),
        Model::Bsp(args) => jobs::bsp_json(args),
        Model::Continuous(args) => jobs::continuous_json(args),
        Model::Cluster(args) => cluster::cluster_json(args),
        Model::Shared(args) => shared::shared_json(args),
    }
}
