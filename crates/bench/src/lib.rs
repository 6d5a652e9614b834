// SPDX-License-Identifier: GPL-2.0-only
//! The benchmark: what a parallel job gets from a node that it shares with busy competitors.
//!
//! The job is the smallest that communicates: two processes on two nodes that pass a token, or as many as
//! they have threads, and may compute in between. Or it is one of the papers on implicit scheduling. Beside
//! them run busy competitors and other such jobs. [`token`], [`spmd`] and [`hog`] are those processes;
//! [`agent`] runs them on one node, and the scheduler under test with them. [`demo`] and [`policies`] are two
//! plans of measurements; an [`experiment`] leads the agents through one and prints what they found. Under
//! [`mix`] jobs come and go. Whatever is not measured sleeps while something is.
//!
//! The measures are the thesis's (5.1.2): CPU time, the fairness ratio F = N T_C / T_E, and efficiency.

mod agent;
mod cgroup;
mod child;
mod contender;
mod coordinator;
mod datagrams;
mod demo;
mod experiment;
mod handle;
mod hog;
mod html;
mod interrupt;
mod interval;
mod length;
mod lines;
mod machine;
mod mix;
mod pattern;
mod peer;
pub mod picture;
mod plan;
mod policies;
mod progress;
mod protocol;
mod receiver;
mod record;
mod runs;
mod sanity;
mod scenario;
mod scheduler;
mod spmd;
mod stats;
mod summary;
mod table;
mod testbed;
mod token;
mod wire;
mod work;
mod worker;

use std::process::ExitCode;

use anyhow::Result;
use cosched_rules::report;

/// Measure what a parallel job gets beside busy competitors.
#[derive(Debug, clap::Parser)]
#[command(name = "bench", bin_name = "scx_cosched bench", version)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Token(token::TokenArgs),
    Spmd(spmd::SpmdArgs),
    Hog(hog::HogArgs),
    Agent(agent::AgentArgs),
    Demo(demo::DemoArgs),
    Policies(policies::PoliciesArgs),
    Mix(mix::MixArgs),
    Report(html::ReportArgs),
}

/// The program.
pub fn main() -> ExitCode {
    report::program(run)
}

/// Runs one of the benchmark's parts to its end.
fn run(args: BenchArgs) -> Result<ExitCode> {
    match args.command {
        Command::Token(args) => worker::main(args.timing.clone(), |begin| token::run(&args, begin)),
        Command::Spmd(args) => worker::main(args.timing.clone(), |begin| spmd::run(&args, begin)),
        Command::Hog(args) => worker::main(args.timing.clone(), |begin| hog::run(&args, begin)),
        Command::Agent(args) => agent::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Policies(args) => policies::run(&args),
        Command::Mix(args) => mix::run(&args),
        Command::Report(args) => html::run(&args),
    }
}
