// SPDX-License-Identifier: GPL-2.0-only
//! What the coordinator asks of the agents, and what they answer: lines of JSON over TCP.

use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::contender::Contender;
use super::scenario::Scenario;
use super::worker::Report;

/// How a process of the job waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// Receives without waiting, again and again.
    Spin,
    /// Blocks in the receive.
    Block,
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Receiver::Spin => "spin",
            Receiver::Block => "block",
        })
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// Make this the node's scheduler.
    Schedule(Contender),
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
    /// Names the experiment's cgroups: the processes of a job share one wherever they run.
    pub experiment: u32,
    pub scenario: Scenario,
    /// By job, the address of the process that has the other end of the token; none on the node that waits.
    pub peers: Vec<SocketAddr>,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rules {
    pub gate: String,
    pub wait: String,
}

impl Rules {
    pub fn none() -> Rules {
        Rules { gate: "none".into(), wait: "none".into() }
    }
}

/// What the workers of a node have measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct NodeReport {
    /// By job.
    pub tokens: Vec<Report>,
    pub hogs: Vec<Report>,
}

/// A duration in seconds, for the command line.
pub fn parse_duration(text: &str) -> Result<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => bail!("seconds from 0 to 3600 are wanted"),
    }
}

/// The length of a measurement in seconds. A shorter one would see some tasks run and others not.
pub fn parse_length(text: &str) -> Result<Duration> {
    match parse_duration(text)? {
        length if length >= Duration::from_millis(100) => Ok(length),
        _ => bail!("0.1 s is the least"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_seconds() {
        assert_eq!(parse_duration("0.25").unwrap(), Duration::from_millis(250));
        for bad in ["", "x", "-1", "NaN", "inf", "3601"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert!(parse_length("0.05").is_err());
    }

    #[test]
    fn receiver_has_one_name_everywhere() {
        for receiver in [Receiver::Spin, Receiver::Block] {
            assert_eq!(serde_json::to_string(&receiver).unwrap(), format!("\"{receiver}\""));
        }
    }
}
