// SPDX-License-Identifier: GPL-2.0-only
//! `bench agent`: runs experiments on one node for a coordinator.

use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use super::{interrupt, machine};
use crate::cgroup::Cgroup;
use crate::handle::Handle;
use crate::interval::{LINGER, monotonic_ns};
use crate::lines::{self, Lines};
use crate::protocol::{Answer, Load, NodeReport, Request};
use crate::scenario::{Scenario, Shape};
use crate::scheduler::Scheduler;
use crate::worker::Start;

/// For a coordinator that starts later.
const PATIENCE: Duration = Duration::from_secs(20);

/// Workers begin at random within so long, so that each measurement finds the CPUs' turns in another position to each
/// other. It is twice a round of five tasks with our longest slice.
pub const PHASES: Duration = Duration::from_millis(200);

/// A coordinator may be busy with its other agents.
const BETWEEN_REQUESTS: Duration = Duration::from_secs(600);

/// Run experiments on this node for a coordinator (`bench demo`, `bench policies`).
#[derive(Clone, Debug, clap::Args)]
pub struct AgentArgs {
    /// Where the coordinator listens.
    #[arg(long, value_name = "ADDR:PORT")]
    pub coordinator: SocketAddr,

    /// Number of this node.
    #[arg(long, value_name = "N")]
    pub node: usize,

    /// CPU that is the node.
    #[arg(long, value_name = "N", default_value = "0")]
    pub cpu: usize,
}

/// Obeys the coordinator until it says that this is all.
pub fn run(args: &AgentArgs) -> Result<ExitCode> {
    interrupt::catch()?;
    machine::lead();
    let mut stream = connect(args.coordinator)?;
    lines::send(&mut stream, &Answer::Hello { node: args.node })?;

    let address = stream.local_addr().context("no local address")?;
    let mut requests = Lines::new(stream.try_clone().context("cannot clone the connection")?);
    let mut agent = Agent::new(args.cpu, address);
    loop {
        let request = match requests.receive(Instant::now() + BETWEEN_REQUESTS) {
            Ok(Some(Request::End)) => return Ok(ExitCode::SUCCESS),
            Ok(Some(request)) => request,
            // A coordinator that leaves has said why, and an interrupt needs no explanation.
            Ok(None) => return Ok(ExitCode::FAILURE),
            Err(_) if interrupt::happened() => return Ok(ExitCode::FAILURE),
            Err(error) => return Err(error),
        };
        let answer = agent.answer(request, &requests).unwrap_or_else(|error| {
            agent.workers.clear();
            Answer::Failed(format!("{error:#}"))
        });
        if lines::send(&mut stream, &answer).is_err() {
            return Ok(ExitCode::FAILURE);
        }
    }
}

/// The coordinator of another machine may start later than this.
fn connect(address: SocketAddr) -> Result<TcpStream> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
                return Ok(stream);
            }
            Err(error) if Instant::now() >= deadline => {
                return Err(error).with_context(|| format!("no coordinator at {address}"));
            }
            Err(_) => interrupt::sleep_until(Instant::now() + Duration::from_millis(100))?,
        }
    }
}

struct Agent {
    cpu: usize,
    /// This node as the others reach it.
    address: SocketAddr,
    load: Option<Load>,
    // In the order in which they go: a cgroup with processes in it cannot be removed.
    workers: Vec<Handle>,
    cgroup: Option<Cgroup>,
    scheduler: Scheduler,
}

impl Agent {
    fn new(cpu: usize, address: SocketAddr) -> Agent {
        let scheduler = Scheduler::default();
        Agent { cpu, address, load: None, workers: Vec::new(), cgroup: None, scheduler }
    }

    fn answer(&mut self, request: Request, requests: &Lines<TcpStream>) -> Result<Answer> {
        match request {
            Request::Schedule(contender, layout) => {
                let rules = self.scheduler.switch(&contender, layout.rows())?;
                Ok(Answer::Scheduled(rules))
            }
            Request::Prepare(load) => self.prepare(load),
            Request::Measure => {
                let report = self.measure(requests)?;
                Ok(Answer::Measured(report))
            }
            Request::End => bail!("this is the end"),
        }
    }

    /// Starts the tokens' processes first, since the hogs would only be in their way.
    fn prepare(&mut self, load: Load) -> Result<Answer> {
        self.workers.clear();
        self.cgroup = self.cgroup.take().or_else(Cgroup::parent);
        let jobs = load.scenario.jobs;
        let kind = if matches!(load.scenario.shape, Shape::Spmd { .. }) { "spmd" } else { "token" };
        let mut addresses = Vec::new();
        let mut names = load.scenario.workers(load.group);
        for (job, name) in names.by_ref().take(jobs).enumerate() {
            self.start(kind, &name, &self.job_options(&load, job), &load)?;
            addresses.extend(self.workers[job].wait_ready()?);
        }
        for name in names {
            self.start("hog", &name, &load.scenario.hog_options(&name), &load)?;
        }
        self.workers[jobs..].iter_mut().try_for_each(|hog| hog.wait_ready().map(drop))?;
        self.load = Some(load);
        Ok(Answer::Ready { addresses })
    }

    fn job_options(&self, load: &Load, job: usize) -> Vec<String> {
        let Scenario { receiver, threads, shape, .. } = load.scenario;
        let peers = load.peers.get(job);
        let side = match peers {
            Some(peers) => {
                format!("--connect={}", peers.iter().map(SocketAddr::to_string).collect::<Vec<_>>().join(","))
            }
            None => format!("--listen={}", SocketAddr::new(self.address.ip(), 0)),
        };
        // Whoever has a barrier's other ends only waits for them (thesis, Figure 5-2).
        let compute_us = if shape == Shape::Barrier && peers.is_some() { 0 } else { load.scenario.compute_us(job) };
        let mut options = vec![side, format!("--receiver={receiver}"), format!("--compute-us={compute_us}")];
        match shape {
            Shape::Spmd { pattern, imbalance } => {
                options.extend([format!("--pattern={pattern}"), format!("--imbalance={imbalance}")]);
            }
            Shape::Pair | Shape::Barrier => options.push(format!("--threads={threads}")),
        }
        options
    }

    fn start(&mut self, kind: &str, name: &str, options: &[String], load: &Load) -> Result<()> {
        let (cpu, seconds) = (self.cpu.to_string(), load.length.as_secs_f64().to_string());
        let mut args = vec!["bench", kind, "--json", "--cpu", &cpu, "--seconds", &seconds];
        args.extend(options.iter().map(String::as_str));
        self.workers.push(Handle::start(name, &args, self.cgroup.as_ref())?);
        Ok(())
    }

    /// Sleeps from the moment that it has told the workers when to start to the end of the interval.
    fn measure(&mut self, requests: &Lines<TcpStream>) -> Result<NodeReport> {
        let load = self.load.take().context("nothing is prepared")?;
        self.scheduler.check()?;
        let now_ns = monotonic_ns();
        let mut random = SplitMix64::seed_from_u64(load.seed ^ (self.cpu as u64) << 32);
        for worker in &mut self.workers {
            let begin_ns = now_ns + random.next_u64() % PHASES.as_nanos() as u64;
            worker.begin(Start { begin_ns, measure_ns: now_ns + load.warm_up.as_nanos() as u64 })?;
        }

        // Only a coordinator that leaves has something to say now.
        let over = Instant::now() + load.warm_up + load.length + LINGER;
        if interrupt::wait_readable(&[requests.source()], over)? {
            bail!("the coordinator left");
        }
        let mut reports =
            self.workers.iter_mut().map(|worker| worker.report()).collect::<Result<Vec<_>>>()?.into_iter();
        self.workers.clear();
        self.scheduler.check()?;
        let tokens = reports.by_ref().take(load.scenario.jobs).collect();
        // What keeps the CPU awake competes with nobody.
        Ok(NodeReport { tokens, hogs: reports.take(load.scenario.competitors).collect() })
    }
}
