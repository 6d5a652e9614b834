// SPDX-License-Identifier: GPL-2.0-only
//! What the coordinator asks of the agents, and what they answer: lines of JSON over TCP.

use std::net::SocketAddr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::scenario::{Layout, Scenario};
use crate::worker::Report;
use cosched_rules::costs::Costs;

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Make this the node's scheduler, for what is to run next.
    Schedule(Contender, Layout),
    /// Start the workers up to where they wait for the time to begin.
    Prepare(Load),
    /// Let them begin, and report.
    Measure,
    /// There is no more to do.
    End,
}

/// What runs on a node in a measurement.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Load {
    pub scenario: Scenario,
    /// Which group of nodes this one belongs to, from 0.
    pub group: usize,
    /// What the moments are drawn from at which workers begin.
    pub seed: u64,
    /// By job, the addresses of the processes that have the other ends of its tokens; none on a node that waits.
    pub peers: Vec<Vec<SocketAddr>>,
    pub warm_up: Duration,
    pub length: Duration,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The first message of an agent.
    Hello {
        node: usize,
    },
    /// The scheduler runs, with these rules.
    Scheduled(Rules),
    /// The workers wait, the tokens', by job, at these addresses if they wait for their peers.
    Ready {
        addresses: Vec<SocketAddr>,
    },
    Measured(NodeReport),
    Failed(String),
}

/// The rules of a scheduler, as far as results name them; "none" where it has none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Rules {
    pub gate: String,
    pub wait: String,
    /// What its spin rules reckon with.
    pub costs: Option<Costs>,
}

impl Rules {
    pub fn none() -> Rules {
        Rules { gate: "none".into(), wait: "none".into(), costs: None }
    }
}

/// What the workers of a node have measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeReport {
    /// By job.
    pub tokens: Vec<Report>,
    pub hogs: Vec<Report>,
}
