// SPDX-License-Identifier: GPL-2.0-only
//! What the demo measures, in which order.

use std::time::Duration;

use super::protocol::{EEVDF, Receiver};

/// Competitors on each node: with the job they are five, the most that Zhang's and the thesis's nodes hold.
pub const COMPETITORS: usize = 4;

/// Rows without competitors say how fast the machine is today. They need not be long, but one that the
/// machine's other users spoil must not count.
pub const BASELINE_REPEATS: usize = 3;
const BASELINE_LONGEST: Duration = Duration::from_secs(2);

const RECEIVERS: [Receiver; 2] = [Receiver::Spin, Receiver::Block];

/// One measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    pub receiver: Receiver,
    pub scheduler: String,
    pub competitors: usize,
    pub length: Duration,
}

/// The rows without competitors first, then every receiver under every scheduler, `repeats` times.
///
/// Schedulers take turns, so that a machine which gets slower meanwhile is slower for all of them. Every
/// other round goes backwards: what favours the first favours the last too, and the next round begins with
/// the scheduler that is loaded already.
pub fn plan(schedulers: &[String], repeats: usize, length: Duration) -> Vec<Step> {
    let mut steps = Vec::new();
    for _ in 0..BASELINE_REPEATS {
        for receiver in RECEIVERS {
            let length = length.min(BASELINE_LONGEST);
            steps.push(Step { receiver, scheduler: EEVDF.into(), competitors: 0, length });
        }
    }
    for _ in 0..repeats {
        let mut order: Vec<&String> = schedulers.iter().collect();
        for receiver in RECEIVERS {
            for scheduler in &order {
                steps.push(Step { receiver, scheduler: scheduler.to_string(), competitors: COMPETITORS, length });
            }
            order.reverse();
        }
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps() -> Vec<Step> {
        let schedulers: Vec<String> = ["eevdf", "local", "dcs"].map(String::from).into();
        plan(&schedulers, 5, Duration::from_secs(4))
    }

    #[test]
    fn measures_everything_as_often() {
        let steps = steps();
        assert_eq!(steps.len(), 2 * BASELINE_REPEATS + 5 * 2 * 3);
        for receiver in RECEIVERS {
            for scheduler in ["eevdf", "local", "dcs"] {
                let is_it =
                    |s: &&Step| s.receiver == receiver && s.scheduler == scheduler && s.competitors == COMPETITORS;
                assert_eq!(steps.iter().filter(is_it).count(), 5);
            }
        }
    }

    #[test]
    fn loads_a_scheduler_once_a_repeat() {
        let loads = |pair: &&[Step]| pair[0].scheduler == EEVDF && pair[1].scheduler != EEVDF;
        assert_eq!(steps().windows(2).filter(loads).count(), 5);
    }

    #[test]
    fn baselines_come_first() {
        let steps = steps();
        assert!(steps[..2 * BASELINE_REPEATS].iter().all(|s| s.competitors == 0 && s.scheduler == EEVDF));
        assert!(steps[2 * BASELINE_REPEATS..].iter().all(|s| s.competitors == COMPETITORS));
    }
}
