// SPDX-License-Identifier: GPL-2.0-only
//! The simulator: the rules of `policies/` on more nodes than anybody has at hand, and the papers' results by them.
//!
//! | what every model is made of | |
//! |---|---|
//! | [`engine`] | events in the order of (time, sequence); [`Model`](engine::Model) is what happens at them |
//! | [`random`], [`stats`] | streams of random numbers; means over runs with 90% confidence intervals |
//! | [`node`], [`local`] | a CPU, and who is next on it: SVR4, round robin, feedback queue, fair order |
//! | [`network`], [`jobs`] | how messages get about; what the processes of a job do |
//! | [`policy`] | how a process waits, by the rules of `policies/` |
//! | [`readings`] | lists of how a paper is read |
//!
//! | a model | |
//! |---|---|
//! | [`markov`], [`scaled`] | thesis 3.1, in closed form |
//! | [`dynamic`] | thesis 3.1 to 3.3, by simulation |
//! | [`shared`] | jobs that share nodes under the presets as the kernel has them, gates and all |
//! | [`cluster`] | Zhang 2000: jobs that come and go, under ten strategies |
//! | [`bsp`] | Dusseau 1996: bulk-synchronous jobs under implicit scheduling; Arpaci-Dusseau: jobs that communicate all the time |
//!
//! | what is made of them | |
//! |---|---|
//! | [`replay`] | the bench of the kernel's scheduler, beside what it measured |
//! | [`scale`] | what to expect on 2 to 65536 nodes |
//! | [`paper`] | the papers' figures and tables, beside ours |
//! | [`sweep`] | a model at every point of a grid |
//!
//! Times are whole ns inside and in the unit that a name ends with outside. Nothing here reads a clock but to say how
//! fast the simulator is.

use std::process::ExitCode;

use anyhow::Result;
use cosched_rules::report::{die_quietly_on_closed_pipe, program};

use cli::{Command, SimArgs};

pub mod bsp;
pub mod cli;
pub mod cluster;
pub mod dynamic;
pub mod engine;
pub mod jobs;
pub mod local;
pub mod markov;
pub mod network;
pub mod node;
pub mod paper;
pub mod policy;
mod progress;
pub mod random;
mod readings;
pub mod replay;
mod report;
pub mod scale;
pub mod scaled;
pub mod shared;
pub mod stats;
pub mod sweep;

/// The program.
pub fn main() -> ExitCode {
    die_quietly_on_closed_pipe();
    program(run)
}

/// Runs one of the models, or what is made of them.
///
/// # Errors
/// One line for flags that do not go together, or a file that cannot be read or written.
fn run(args: SimArgs) -> Result<ExitCode> {
    match &args.command {
        Command::Model(model) => report::run(model),
        Command::Scale(args) => scale::run(args),
        Command::Replay(args) => replay::run(args),
        Command::Paper(args) => paper::run(args),
        Command::Sweep(args) => sweep::run(args),
    }
}
