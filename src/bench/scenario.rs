// SPDX-License-Identifier: GPL-2.0-only
//! What runs on the two nodes, and its short name: `spin-4`, `spin-2x2`.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::protocol::Receiver;

/// More would not all be ready before the first gives up waiting for its peer.
const JOBS: RangeInclusive<usize> = 1..=8;
const COMPETITORS: RangeInclusive<usize> = 0..=32;

/// The load of a measurement. The order is that of rows in the results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scenario {
    /// How the processes of all jobs wait for a message.
    pub receiver: Receiver,
    /// Parallel jobs, each with a process on either node.
    pub jobs: usize,
    /// Busy processes on each node.
    pub competitors: usize,
}

impl Scenario {
    /// One job with the nodes to itself: what efficiency is relative to.
    pub fn alone(receiver: Receiver) -> Scenario {
        Scenario { receiver, jobs: 1, competitors: 0 }
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Scenario { receiver, jobs, competitors } = self;
        f.pad(&match jobs {
            1 => format!("{receiver}-{competitors}"),
            _ => format!("{receiver}-{jobs}x{competitors}"),
        })
    }
}

impl FromStr for Scenario {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Scenario> {
        match parse(text) {
            Some(scenario) => Ok(scenario),
            None => bail!(
                "'{text}' is no scenario: RECEIVER-COMPETITORS or RECEIVER-JOBSxCOMPETITORS is wanted, such as spin-4 or \
                 block-2x4 (spin or block; {} to {} jobs, {} to {} competitors)",
                JOBS.start(),
                JOBS.end(),
                COMPETITORS.start(),
                COMPETITORS.end()
            ),
        }
    }
}

fn parse(text: &str) -> Option<Scenario> {
    let (receiver, load) = text.split_once('-')?;
    let (jobs, competitors) = load.split_once('x').unwrap_or(("1", load));
    let receiver = Receiver::from_str(receiver, false).ok()?;
    Some(Scenario { receiver, jobs: number(jobs, JOBS)?, competitors: number(competitors, COMPETITORS)? })
}

/// Digits alone: Rust would take "+4" too.
fn number(text: &str, range: RangeInclusive<usize>) -> Option<usize> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && range.contains(number))
}

/// Scenarios by name, with commas between them.
#[derive(Clone, Debug)]
pub struct Scenarios(pub Vec<Scenario>);

impl FromStr for Scenarios {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Scenarios> {
        let mut scenarios: Vec<Scenario> = Vec::new();
        for scenario in text.split(',').map(str::parse) {
            let scenario = scenario?;
            if scenarios.contains(&scenario) {
                bail!("'{scenario}' is there twice: leave one of them out (--repeats says how often each is measured)");
            }
            scenarios.push(scenario);
        }
        Ok(Scenarios(scenarios))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_what_runs() {
        let scenario = |receiver, jobs, competitors| Scenario { receiver, jobs, competitors };
        for (text, wanted) in [
            ("spin-4", scenario(Receiver::Spin, 1, 4)),
            ("block-0", scenario(Receiver::Block, 1, 0)),
            ("spin-2x2", scenario(Receiver::Spin, 2, 2)),
            ("block-8x32", scenario(Receiver::Block, 8, 32)),
        ] {
            assert_eq!(text.parse::<Scenario>().unwrap(), wanted);
            assert_eq!(wanted.to_string(), text);
        }
        let scenarios: Scenarios = "spin-4,block-4".parse().unwrap();
        assert_eq!(scenarios.0, [scenario(Receiver::Spin, 1, 4), scenario(Receiver::Block, 1, 4)]);
    }

    #[test]
    fn what_is_no_scenario_is_named_with_what_would_be() {
        for bad in
            ["", "spin", "spin-", "nap-4", "spin-x", "spin-+4", "spin--4", "spin-33", "spin-0x2", "spin-9x1", "spin-2x"]
        {
            let error = bad.parse::<Scenario>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("'{bad}' is no scenario")) && error.contains("spin-4"), "{error}");
        }
        for (bad, what) in
            [("spin-4,", "''"), ("spin-4,block 4", "'block 4'"), ("spin-4,spin-1x4", "'spin-4' is there twice")]
        {
            let error = bad.parse::<Scenarios>().unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }
}
