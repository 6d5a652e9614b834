// SPDX-License-Identifier: GPL-2.0-only
//! `bench demo`: the main job, a parallel job beside competitors, under a few schedulers.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::agent::{self, AgentArgs};
use crate::contender::Contenders;
use crate::experiment::Experiment;
use crate::length::parse_length;
use crate::machine;
use crate::plan::{Alone, Repeats, plan};
use crate::receiver::{Receiver, parse_of_token};
use crate::scenario::Scenario;
use crate::summary::Jobs;
use crate::testbed::{PORT, Testbed};
use crate::wire::Wire;

/// With the job the competitors are five, the most that Zhang's and the thesis's nodes hold.
const COMPETITORS: usize = 4;

/// The kernel's own with its slice and with ours; the fair order alone; with coscheduling; with spinning in the kernel
/// too; the default, and with the kernel's slice (base_slice_ns on two CPUs, up to a tick).
const DEFAULT_SCHEDULERS: &str = "eevdf,eevdf+slice_us=20000,local,dcs+wait=busy,dcs,dcs-sb,dcs-sb+slice_us=4000";

/// Compare schedulers: a parallel job on two nodes that it shares with busy competitors.
#[derive(Clone, Debug, clap::Args)]
pub struct DemoArgs {
    /// What the two nodes are.
    #[arg(long, value_enum, default_value = "one")]
    testbed: Kind,

    /// How the job waits for its messages: spin, block, poll, twophase.
    #[arg(long, value_parser = parse_of_token, value_delimiter = ',', default_value = "spin,block")]
    receivers: Vec<Receiver>,

    /// Measurements of each kind [default: 15, and 8 under schedulers that have the nodes agree, since these differ
    /// less; with testbed two 3].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    repeats: Option<u16>,

    /// Seconds of each measurement [default: 1.5, with testbed two 3].
    #[arg(long, value_name = "S", value_parser = parse_length)]
    seconds: Option<Duration>,

    /// Schedulers to compare: eevdf, which is the kernel's own, with or without another slice
    /// (eevdf+slice_us=20000), and presets, with or without changes (dcs+h_ms=-20).
    #[arg(long, value_name = "NAME,...", default_value = DEFAULT_SCHEDULERS)]
    schedulers: Contenders,

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
    /// The testbed, and the number of this machine in it.
    fn place(&self) -> Result<(Testbed, usize)> {
        if self.testbed == Kind::One {
            return Ok((Testbed::One { nodes: 2, wire: Wire::Loopback }, 0));
        }
        let node = match self.node {
            Some(node) => usize::from(node),
            None => from_environment("NODE")?.unwrap_or(0),
        };
        let peer = match self.peer {
            Some(peer) => Some(peer),
            None => from_environment("PEER")?,
        };
        let peer = peer.context("testbed two needs the other machine's address (--peer)")?;
        Ok((Testbed::Two(peer), node))
    }
}

/// The VM harness says in the environment who is who.
fn from_environment<T: FromStr>(name: &str) -> Result<Option<T>> {
    let Ok(value) = std::env::var(name) else { return Ok(None) };
    let parsed = value.parse().ok();
    parsed.map(Some).with_context(|| format!("{name} in the environment makes no sense: '{value}'"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// The CPUs 0 and 1 of this machine.
    One,
    /// This machine and another, which runs the same command with the other number.
    Two,
}

pub fn run(args: &DemoArgs) -> Result<ExitCode> {
    let (testbed, node) = args.place()?;
    let (repeats, length): (usize, Duration) = match testbed {
        Testbed::Two(peer) if node > 0 => {
            return agent::run(&AgentArgs { coordinator: SocketAddr::new(peer, PORT), node: 1, cpu: 0 });
        }
        Testbed::One { .. } => (15, Duration::from_millis(1500)),
        Testbed::Two(_) => (3, Duration::from_secs(3)),
    };
    let coordinated = args.repeats.map_or(repeats.div_ceil(2).max(3), usize::from);
    let repeats = args.repeats.map_or(repeats, usize::from);
    let length = args.seconds.unwrap_or(length);
    let scenarios: Vec<Scenario> =
        args.receivers.iter().map(|&receiver| Scenario::one_job(receiver, COMPETITORS)).collect();
    let steps = plan(
        &scenarios,
        &args.schedulers.0,
        Alone::FirstAndLast,
        Repeats { coordinated, ..Repeats::new(0..repeats as u64, machine::time().is_virtual) },
        length,
    );
    Experiment { testbed, steps, jobs: Jobs::One, repeats, length, out: args.out.as_deref() }.run()
}
