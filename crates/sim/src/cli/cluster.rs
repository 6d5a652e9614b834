// SPDX-License-Identifier: GPL-2.0-only
//! The flags of `sim cluster`.

use std::path::PathBuf;

use clap::Args;

use super::{NODES, Runs};
use crate::cluster::Readings;
use crate::cluster::workload::Workload;
use cosched_rules::range::Range;

const LEVEL: Range<u32> = Range::new(1, 1024, "a whole number");
const SKEW: Range<f64> = Range::new(0.0, 200.0, "a number of %");
const COST: Range<f64> = Range::new(0.0, 1e6, "a number of us");
const LATENCY: Range<f64> = Range::new(1.0, 1e6, "a number of us");
const QUANTUM: Range<u32> = Range::new(1, 60_000, "a whole number of ms");
const EXCHANGES: Range<u32> = Range::new(1, 1000, "a whole number");
const INTERFACE: Range<f64> = Range::new(0.0, 100.0, "a number of %");
const LOAD: Range<f64> = Range::new(0.01, 10.0, "a number");
const JOBS: Range<u32> = Range::new(1, 1_000_000, "a whole number");
const EXECUTION: Range<f64> = Range::new(0.001, 1e6, "a number of s");
const WARMUP: Range<f64> = Range::new(0.0, 90.0, "a number of %");
const SCALE: Range<f64> = Range::new(1e-9, 1000.0, "a number");

/// How Zhang 2000 is read.
#[derive(Args, Clone, Copy, Debug)]
pub struct ReadingArgs {
    /// How Zhang is read: some of these, with commas, or none. apart: a process computes before each exchange. back:
    /// there goes a process that is preempted. block: each costs a switch. burst: all messages of an iteration are sent
    /// first. clocks: of all nodes together. front: a process that comes there preempts. idle: a CPU that is waits for
    /// its millisecond. keep: a boost does so with the quantum. row: a job is in one if it can. yield-once: in a wait.
    #[arg(long, value_name = "LIST", default_value_t = Readings::CHOSEN)]
    pub readings: Readings,

    /// Zhang's jobs: how often a process sends to and receives from its neighbours in an iteration, 1 to 1000.
    /// Computation and I/O are longer in proportion.
    #[arg(long, value_name = "N", default_value_t = Readings::CHOSEN.exchanges, value_parser = |s: &str| EXCHANGES.parse(s), allow_hyphen_values = true)]
    pub exchanges: u32,

    /// For how much of its latency a message keeps its sender's network interface busy under Zhang, in %, 0 to 100.
    #[arg(long, value_name = "PCT", default_value = "100", value_parser = |s: &str| INTERFACE.parse(s), allow_hyphen_values = true)]
    pub interface: f64,

    /// In every so many iterations of Zhang's jobs there is I/O, for as long as in all of them together, 1 to 1000.
    #[arg(long, value_name = "K", default_value_t = Readings::CHOSEN.io_every, value_parser = |s: &str| EXCHANGES.parse(s), allow_hyphen_values = true)]
    pub io_every: u32,
}

impl ReadingArgs {
    /// All in one.
    pub fn all(&self) -> Readings {
        let mut readings = self.readings;
        (readings.exchanges, readings.interface) = (self.exchanges, self.interface / 100.0);
        readings.io_every = self.io_every;
        readings
    }
}

/// Jobs that come, wait for their turn, run beside others and go, under one of the strategies of Zhang 2000. Prints
/// response times, utilization and throughput.
#[derive(Args, Clone, Debug)]
pub struct ZhangArgs {
    /// Which jobs: WL1 to WL6 of one type each, WL7 of all six, WL8 of those with most computation, I/O and
    /// communication. [default: WL7]
    #[arg(long, value_name = "WL")]
    pub workload: Option<Workload>,

    /// The strategy: a preset, as `policy list` shows them, without its gate unless --as-kernel is given.
    #[arg(long, value_name = "PRESET", default_value = "pb")]
    pub policy: String,

    /// The preset as the kernel has it: with its gate, epochs and residual slices, and its own spin rule. It may have
    /// changes: dcs-sb+gate=rate.
    #[arg(long)]
    pub as_kernel: bool,

    /// The multiprogramming level: processes that a node takes at a time, 1 to 1024.
    #[arg(long, value_name = "N", default_value = "5", value_parser = |s: &str| LEVEL.parse(s), allow_hyphen_values = true)]
    pub mpl: u32,

    /// s, by how much computation and I/O differ from process to process and time to time, in %, 0 to 200.
    #[arg(long, value_name = "PCT", default_value = "20", value_parser = |s: &str| SKEW.parse(s), allow_hyphen_values = true)]
    pub skew: f64,

    /// P, nodes, with a CPU each, 1 to 65536.
    #[arg(long, value_name = "P", default_value = "32", value_parser = |s: &str| NODES.parse(s), allow_hyphen_values = true)]
    pub nodes: u32,

    /// CS, a context switch, in us, 0 to 1000000. [default: 200; gang: 2000, of all nodes together]
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub switch_us: Option<f64>,

    /// I, an interrupt, in us, 0 to 1000000; pb and gang have none.
    #[arg(long, value_name = "US", default_value = "50", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub interrupt_us: f64,

    /// A move of a process from one queue to another, as to the front for a boost, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "3", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub queue_move_us: f64,

    /// A look at an endpoint for a message, in us, 0 to 1000000.
    #[arg(long, value_name = "US", default_value = "2", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub endpoint_check_us: f64,

    /// Q, how long a row of the gang has its turn, in ms, 1 to 60000; other policies have none.
    #[arg(long, value_name = "MS", default_value = "200", value_parser = |s: &str| QUANTUM.parse(s), allow_hyphen_values = true)]
    pub quantum_ms: u32,

    /// A message, one way, in us, 1 to 1000000.
    #[arg(long, value_name = "US", default_value = "185.48", value_parser = |s: &str| LATENCY.parse(s), allow_hyphen_values = true)]
    pub latency_us: f64,

    /// How the paper is read.
    #[command(flatten)]
    pub readings: ReadingArgs,

    /// How long a process spins before it sleeps or yields, in us, 0 to 1000000; policies whose processes spin on have
    /// none. [default: 200]
    #[arg(long, value_name = "US", value_parser = |s: &str| COST.parse(s), allow_hyphen_values = true)]
    pub spin_us: Option<f64>,

    /// What jobs ask for of all that the nodes have, 0.01 to 10: size times execution time over nodes times time.
    /// [default: 0.7]
    #[arg(long, value_name = "RHO", value_parser = |s: &str| LOAD.parse(s), allow_hyphen_values = true)]
    pub load: Option<f64>,

    /// How many jobs come, 1 to 1000000. [default: 100]
    #[arg(long, value_name = "N", value_parser = |s: &str| JOBS.parse(s), allow_hyphen_values = true)]
    pub jobs: Option<u32>,

    /// How long a job takes alone, in the mean, in s, 0.001 to 1000000. [default: 1]
    #[arg(long, value_name = "S", value_parser = |s: &str| EXECUTION.parse(s), allow_hyphen_values = true)]
    pub execution_s: Option<f64>,

    /// How many of the jobs, the first to come, count for nothing, in %, 0 to 90.
    #[arg(long, value_name = "PCT", default_value = "10", value_parser = |s: &str| WARMUP.parse(s), allow_hyphen_values = true)]
    pub warmup: f64,

    /// Jobs of a trace in the Standard Workload Format, version 2.2, instead of a workload.
    #[arg(long, value_name = "FILE")]
    pub swf: Option<PathBuf>,

    /// Swf: a TOML file that says what its jobs do: computing, I/O, communication. [default: as J3, all three alike]
    #[arg(long, value_name = "FILE")]
    pub mixes: Option<PathBuf>,

    /// Swf: by what its times are multiplied, 0.000000001 to 1000: hours of messages are many. [default: 1]
    #[arg(long, value_name = "F", value_parser = |s: &str| SCALE.parse(s), allow_hyphen_values = true)]
    pub time_scale: Option<f64>,

    /// How often and in which form.
    #[command(flatten)]
    pub runs: Runs,
}
