// SPDX-License-Identifier: GPL-2.0-only
//! What messages and switches cost under each scheduler of a measurement.
//!
//! A round trip of two processes that spin is 4o + 2L. On one machine L is the calibration's, and o is what is left;
//! between two machines, where the calibration knows the loopback only, o is the calibration's and L is left. That is
//! so under the first scheduler with such a pair. Under another one o is what its own pair says, since its hooks are a
//! part of each message.
//!
//! If both sleep, a round trip takes longer by two wake-ups of idle CPUs, and a node's CPU time for it is 2o + W. Under
//! a rule that has a process spin before it sleeps such a pair never sleeps. Its round trip says o, and W is the
//! calibration's, which the rule reckons with too.
//!
//! No cost that is left over is below 0, and no o below 1 ns.

use anyhow::Result;

use super::summary::{Alone, Summary, Testbed};
use crate::cli::ReplayArgs;
use crate::policy::NEW_HISTORY;
use crate::shared;
use crate::shared::program::Receiver;
use cosched_rules::costs::Costs;
use cosched_rules::intf::cosched_policy;
use cosched_rules::native;
use cosched_rules::report::usage;

/// What is taken from the measurement.
#[derive(Clone, Debug)]
pub struct Measured<'a> {
    /// What the rules reckon with.
    pub calibration: Costs,
    /// L, in us.
    pub latency_us: f64,
    /// Of the first scheduler with a pair alone that spins: how long its round trip takes, in us.
    pub trip_us: f64,
    summary: &'a Summary,
}

impl<'a> Measured<'a> {
    /// From the file and the flags.
    ///
    /// # Errors
    /// One line, if the file does not say what is needed.
    pub fn of(summary: &'a Summary, args: &ReplayArgs) -> Result<Measured<'a>> {
        let name = args.file.display();
        let known = |flag: Option<f64>, of: fn(&Costs) -> f64| flag.or_else(|| summary.costs.as_ref().map(of));
        let needed = |what: &str, flag: Option<f64>, of: fn(&Costs) -> f64| {
            known(flag, of).ok_or_else(|| {
                usage(format!(
                    "{name}: it has no costs, as benches of before have not (give --{what}-us, as `status` showed it \
                     there)"
                ))
            })
        };
        let pair = summary.schedulers().find_map(|scheduler| summary.alone(scheduler, Receiver::Spin));
        let Some(Alone { trip_us, .. }) = pair else {
            return Err(usage(format!(
                "{name}: no spinning pair alone in it, by which messages are timed (measure spin-0 too)"
            )));
        };
        let switch_us = needed("switch", args.switch_us, |costs| costs.switch_us)?;
        let (latency_us, overhead_us, flag) = match summary.testbed {
            Testbed::One => {
                let latency_us = needed("latency", args.latency_us, |costs| costs.latency_us)?;
                (latency_us, (trip_us - 2.0 * latency_us) / 4.0, "--latency-us")
            }
            Testbed::Two => {
                let overhead_us = needed("overhead", args.overhead_us, |costs| costs.overhead_us)?;
                ((trip_us - 4.0 * overhead_us) / 2.0, overhead_us, "--overhead-us")
            }
        };
        if overhead_us <= 0.0 || latency_us < 0.0 {
            return Err(usage(format!(
                "{name}: the costs are more than the {trip_us:.1} us of a round trip alone (give {flag} by hand)"
            )));
        }
        let calibration = Costs {
            latency_us: known(args.latency_us, |costs| costs.latency_us).unwrap_or(latency_us),
            overhead_us: known(args.overhead_us, |costs| costs.overhead_us).unwrap_or(overhead_us),
            switch_us,
        };
        Ok(Measured { calibration, latency_us, trip_us, summary })
    }

    fn overhead_us(&self, trip_us: f64) -> f64 {
        ((trip_us - 2.0 * self.latency_us) / 4.0).max(0.001)
    }

    fn spinning_trip_us(&self, scheduler: &str) -> f64 {
        self.summary.alone(scheduler, Receiver::Spin).map_or(self.trip_us, |pair| pair.trip_us)
    }

    /// W, and what a wake-up of an idle CPU takes, in us, by the pair that sleeps under `scheduler`, which has it sleep
    /// at once.
    fn switches_us(&self, scheduler: &str) -> Option<(f64, f64)> {
        let (pair, trip_us) = (self.summary.alone(scheduler, Receiver::Block)?, self.spinning_trip_us(scheduler));
        let of_pair = |us: f64| (us - 2.0 * self.overhead_us(trip_us)).max(0.0);
        let used_us = pair.cpu_us.map_or(self.calibration.switch_us, of_pair);
        Some((used_us, ((pair.trip_us - trip_us) / 2.0).max(0.0)))
    }

    /// What everything costs a job that waits so under `scheduler`.
    pub fn under(&self, scheduler: &str, receiver: Receiver, policy: &cosched_policy) -> shared::Costs {
        let spins = native::wait_begin(policy, &mut NEW_HISTORY.clone()) > 0;
        let trip_us = match self.summary.alone(scheduler, Receiver::Block) {
            Some(pair) if spins && receiver == Receiver::Block => pair.trip_us,
            _ => self.spinning_trip_us(scheduler),
        };
        let known = self.calibration.switch_us;
        let its_own = (!spins).then(|| self.switches_us(scheduler)).flatten();
        let (switch_us, idle_us) = its_own.unwrap_or((known, known));
        let ns = |us: f64| (us * 1000.0).round() as u64;
        shared::Costs {
            latency_ns: ns(self.latency_us),
            overhead_ns: ns(self.overhead_us(trip_us)),
            switch_ns: ns(switch_us),
            idle_switch_ns: ns(idle_us),
        }
    }
}
