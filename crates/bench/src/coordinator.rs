// SPDX-License-Identifier: GPL-2.0-only
//! Leads the agents of all nodes through one measurement after the other.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::signal::Signal;

use super::{child, interrupt, wire};
use crate::contender::Contender;
use crate::interval::LINGER;
use crate::lines::{self, Lines};
use crate::protocol::{Answer, Load, NodeReport, Request, Rules};
use crate::scenario::{Layout, Scenario};

/// For what an agent does at once, and on top of what takes its time.
const PATIENCE: Duration = Duration::from_secs(60);

/// Schedulers load slowly in an emulated machine, and a failure to is the agent's to tell.
const LOADING: Duration = Duration::from_secs(150);

/// A node's agent, as the coordinator sees it.
pub struct Agent {
    node: usize,
    address: SocketAddr,
    stream: TcpStream,
    answers: Lines<TcpStream>,
}

/// An agent that this process has started.
pub struct LocalAgent(Child);

impl LocalAgent {
    /// In a network namespace, if it is to have one of its own.
    pub fn start(coordinator: SocketAddr, node: usize, namespace: Option<&str>) -> Result<LocalAgent> {
        let (coordinator, node) = (coordinator.to_string(), node.to_string());
        let args = ["bench", "agent", "--coordinator", &coordinator, "--node", &node, "--cpu", &node];
        let mut command = match namespace {
            None => child::command(args, Signal::SIGTERM)?,
            Some(namespace) => wire::command_in(namespace, args)?,
        };
        let child = command.stdin(Stdio::null()).spawn().context("cannot start an agent")?;
        Ok(LocalAgent(child))
    }
}

impl Drop for LocalAgent {
    /// It ends by itself at the end; else it needs the time to unload the scheduler.
    fn drop(&mut self) {
        child::end(&mut self.0, Signal::SIGTERM, Duration::from_secs(15));
    }
}

impl Agent {
    fn accept(listener: &TcpListener, deadline: Instant) -> Result<Agent> {
        if !interrupt::wait_readable(&[listener.as_fd()], deadline)? {
            bail!("a node's agent did not come");
        }
        let (stream, peer) = listener.accept().context("cannot accept an agent")?;
        stream.set_nodelay(true).context("cannot set TCP_NODELAY")?;
        let mut answers = Lines::new(stream.try_clone().context("cannot clone a connection")?);
        match answers.receive(deadline)? {
            Some(Answer::Hello { node }) => Ok(Agent { node, address: peer, stream, answers }),
            other => bail!("an agent began with {other:?}"),
        }
    }

    fn ask(&mut self, request: &Request) -> Result<()> {
        lines::send(&mut self.stream, request).with_context(|| self.name())
    }

    fn answer(&mut self, patience: Duration) -> Result<Answer> {
        let answer = self.answers.receive(Instant::now() + patience).with_context(|| self.name())?;
        match answer {
            Some(Answer::Failed(why)) => bail!("{}: {why}", self.name()),
            Some(answer) => Ok(answer),
            None => bail!("{}: the agent left", self.name()),
        }
    }

    fn name(&self) -> String {
        format!("node {}", self.node)
    }

    fn prepare(&mut self, load: Load) -> Result<Vec<SocketAddr>> {
        self.ask(&Request::Prepare(load))?;
        match self.answer(PATIENCE)? {
            Answer::Ready { addresses } => Ok(addresses),
            other => bail!("{}: unexpected answer {other:?}", self.name()),
        }
    }
}

/// All nodes of the experiment.
pub struct Coordinator {
    agents: Vec<Agent>,
    /// How many kernels there are: the agents of the first so many nodes schedule one each.
    kernels: usize,
}

/// What runs in one measurement.
#[derive(Clone, Copy)]
pub struct Setup {
    pub scenario: Scenario,
    pub warm_up: Duration,
    pub length: Duration,
    pub seed: u64,
}

impl Coordinator {
    /// Waits for the agents of so many nodes.
    pub fn gather(listener: &TcpListener, nodes: usize, kernels: usize) -> Result<Coordinator> {
        let deadline = Instant::now() + PATIENCE;
        let mut agents = (0..nodes).map(|_| Agent::accept(listener, deadline)).collect::<Result<Vec<_>>>()?;
        agents.sort_by_key(|agent| agent.node);
        if agents.iter().map(|agent| agent.node).ne(0..nodes) {
            bail!("the agents are not of the nodes 0 to {}", nodes - 1);
        }
        Ok(Coordinator { agents, kernels })
    }

    /// Makes `scheduler` that of every kernel, where `scenario` runs next, and says which rules it has.
    pub fn schedule(&mut self, scheduler: &Contender, scenario: Scenario) -> Result<Rules> {
        let mut rules = Rules::none();
        let layout = Layout { scenario, groups: self.agents.len() / scenario.group(self.agents.len()) };
        for agent in &mut self.agents[..self.kernels] {
            agent.ask(&Request::Schedule(scheduler.clone(), layout))?;
        }
        for agent in &mut self.agents[..self.kernels] {
            match agent.answer(LOADING)? {
                Answer::Scheduled(its) => rules = its,
                other => bail!("{}: unexpected answer {other:?}", agent.name()),
            }
        }
        Ok(rules)
    }

    /// In each group of nodes the others wait for the tokens that the first starts. The reports are in the order of the
    /// nodes.
    pub fn measure(&mut self, setup: Setup) -> Result<Vec<NodeReport>> {
        let Setup { scenario, warm_up, length, seed } = setup;
        let size = scenario.group(self.agents.len());
        for (group, nodes) in self.agents.chunks_mut(size).enumerate() {
            let [first, others @ ..] = nodes else { bail!("a group of nodes has none") };
            let load = Load { scenario, group, seed, peers: Vec::new(), warm_up, length };
            let mut peers = vec![Vec::new(); scenario.jobs];
            for other in others {
                let waiting = other.prepare(load.clone())?;
                if waiting.len() != scenario.jobs {
                    bail!("{} waits for {} tokens of {}", other.name(), waiting.len(), scenario.jobs);
                }
                for (peers, address) in peers.iter_mut().zip(waiting) {
                    peers.push(SocketAddr::new(other.address.ip(), address.port()));
                }
            }
            first.prepare(Load { peers, ..load })?;
        }

        self.agents.iter_mut().try_for_each(|agent| agent.ask(&Request::Measure))?;
        let patience = warm_up + length + LINGER + PATIENCE;
        // A worker that fails takes its peer with it, so only all together tell what happened.
        let reports: Vec<Result<NodeReport>> = self.agents.iter_mut().map(|agent| agent.report(patience)).collect();
        let errors: Vec<String> =
            reports.iter().filter_map(|report| report.as_ref().err()).map(|error| format!("{error:#}")).collect();
        if !errors.is_empty() {
            bail!("{}", errors.join("; "));
        }
        reports.into_iter().collect()
    }

    pub fn end(mut self) -> Result<()> {
        self.agents.iter_mut().try_for_each(|agent| agent.ask(&Request::End))
    }
}

impl Agent {
    fn report(&mut self, patience: Duration) -> Result<NodeReport> {
        match self.answer(patience)? {
            Answer::Measured(report) => Ok(report),
            other => bail!("{}: unexpected answer {other:?}", self.name()),
        }
    }
}
