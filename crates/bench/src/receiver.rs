// SPDX-License-Identifier: GPL-2.0-only
//! How the processes of a job wait.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How a process of the job waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Receiver {
    /// Receives without waiting, again and again.
    Spin,
    /// Blocks in the receive.
    Block,
    /// Receives without waiting for 1.6 ms, then blocks (thesis 5.3.1).
    Twophase,
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Receiver::Spin => "spin",
            Receiver::Block => "block",
            Receiver::Twophase => "twophase",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receiver_has_one_name_everywhere() {
        for receiver in [Receiver::Spin, Receiver::Block, Receiver::Twophase] {
            assert_eq!(serde_json::to_string(&receiver).unwrap(), format!("\"{receiver}\""));
        }
    }
}
