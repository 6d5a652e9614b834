// SPDX-License-Identifier: GPL-2.0-only
//! How the processes of a job wait.

use std::fmt;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// For how long a two-phase receive polls before it blocks: the thesis's choice (5.3.1).
const POLLED: Duration = Duration::from_micros(1600);

/// How a process of the job waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// Receives without waiting, again and again.
    Spin,
    /// Blocks in the receive.
    Block,
    /// Waits in poll(), as libraries do that listen to several connections, then receives.
    Poll,
    /// Receives without waiting for 1.6 ms, then blocks (thesis 5.3.1).
    Twophase,
    /// Receives without waiting for as long as a program does that knows its imbalance, then blocks (Dusseau 6.1).
    Oracle,
}

/// How a process waits for a token, which has no imbalance to know of.
pub fn parse_of_token(text: &str) -> Result<Receiver, String> {
    parse(text, &[Receiver::Spin, Receiver::Block, Receiver::Poll, Receiver::Twophase])
}

/// How a process of `bench spmd` waits. It has one socket, so that poll() would be of no use.
pub fn parse_of_spmd(text: &str) -> Result<Receiver, String> {
    parse(text, &[Receiver::Spin, Receiver::Block, Receiver::Twophase, Receiver::Oracle])
}

fn parse(text: &str, known: &[Receiver]) -> Result<Receiver, String> {
    Receiver::from_str(text, false).ok().filter(|receiver| known.contains(receiver)).ok_or_else(|| {
        let known: Vec<String> = known.iter().map(Receiver::to_string).collect();
        format!("one of {} is wanted", known.join(", "))
    })
}

impl Receiver {
    /// After how many polls in vain a receive blocks, if `within` says how many take so long. An oracle's depends on
    /// what is waited for.
    pub fn polls(self, within: impl Fn(Duration) -> u64) -> u64 {
        match self {
            Receiver::Spin | Receiver::Poll => u64::MAX,
            Receiver::Block | Receiver::Oracle => 0,
            Receiver::Twophase => within(POLLED),
        }
    }
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Receiver::Spin => "spin",
            Receiver::Block => "block",
            Receiver::Poll => "poll",
            Receiver::Twophase => "twophase",
            Receiver::Oracle => "oracle",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_has_one_name_everywhere() {
        for receiver in Receiver::value_variants() {
            assert_eq!(serde_json::to_string(&receiver).unwrap(), format!("\"{receiver}\""));
        }
    }
}
