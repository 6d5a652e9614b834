// SPDX-License-Identifier: GPL-2.0-only
//! Statistics for the scx tools: the `scx_stats` server that they read, and the lines that `--stats` and
//! `--monitor` print. Names and descriptions come from the same table as everything else.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use scx_stats::prelude::*;
use serde::{Deserialize, Serialize};

use crate::node::privileges;
use crate::scheduler::requests::Owner;
use crate::snapshot::Snapshot;
use cosched_rules::native;

/// Where scx tools look for the server of the running scheduler.
const STATS_SOCKET: &str = "/var/run/scx/root/stats";

/// What has happened since the last look.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stats {
    /// The policy in force.
    pub policy: String,
    /// Demands that were granted.
    pub granted: u64,
    /// Demands that were denied.
    pub denied: u64,
    /// Every event counter, by name.
    #[serde(flatten)]
    pub counters: BTreeMap<String, u64>,
}

fn field(kind: StatsKind, help: &str) -> StatsField {
    let attrs = StatsFieldAttrs { desc: Some(help.into()), ..Default::default() };
    StatsField { data: StatsData::Datum(kind), attrs }
}

impl Meta for Stats {
    fn meta() -> StatsMeta {
        let mut fields = BTreeMap::from([
            ("policy".to_string(), field(StatsKind::String, "The policy in force")),
            ("granted".to_string(), field(StatsKind::U64, "Demands that were granted")),
            ("denied".to_string(), field(StatsKind::U64, "Demands that were denied")),
        ]);
        fields.extend(native::counters().iter().map(|c| (c.name.to_string(), field(StatsKind::U64, c.help))));
        let attrs = StatsStructAttrs { top: Some("true".into()), ..Default::default() };
        StatsMeta { name: "Stats".into(), attrs, fields }
    }
}

impl Stats {
    /// The totals of `snapshot`.
    pub fn of(snapshot: &Snapshot) -> Stats {
        Stats {
            policy: snapshot.policy.name.clone(),
            granted: snapshot.granted.values().sum(),
            denied: snapshot.denied.values().sum(),
            counters: snapshot.counters.clone(),
        }
    }

    /// What has happened since `before`.
    pub fn since(&self, before: &Stats) -> Stats {
        let then = |name: &String| before.counters.get(name).copied().unwrap_or(0);
        Stats {
            policy: self.policy.clone(),
            granted: self.granted.saturating_sub(before.granted),
            denied: self.denied.saturating_sub(before.denied),
            counters: self.counters.iter().map(|(name, n)| (name.clone(), n.saturating_sub(then(name)))).collect(),
        }
    }

    fn print(&self, out: &mut impl Write) -> Result<()> {
        let count = |name: &str| self.counters.get(name).copied().unwrap_or(0);
        writeln!(
            out,
            "[{}] arrivals {:<8} coscheduled {:<8} granted {:<8} denied {:<8} boosts {:<8} switches {:<8}",
            self.policy,
            count("arrivals"),
            count("arrivals_coscheduled"),
            self.granted,
            self.denied,
            count("boosts"),
            count("context_switches"),
        )?;
        out.flush()?;
        Ok(())
    }
}

fn server_data() -> StatsServerData<(), Stats> {
    let open: Box<dyn StatsOpener<(), Stats>> = Box::new(move |(ask, answer)| {
        ask.send(())?;
        let mut before = answer.recv()?;
        let read: Box<dyn StatsReader<(), Stats>> = Box::new(move |_args, (ask, answer)| {
            ask.send(())?;
            let now = answer.recv()?;
            let since = now.since(&before);
            before = now;
            since.to_json()
        });
        Ok(read)
    });
    StatsServerData::new().add_meta(Stats::meta()).add_ops("top", StatsOps { open, close: None })
}

/// The server, until it is dropped.
pub struct Server {
    _server: StatsServer<(), Stats>,
}

impl Server {
    /// Serves what `owner` says.
    ///
    /// # Errors
    /// If the socket cannot be had.
    pub fn launch(owner: Owner) -> Result<Server> {
        // The library starts threads of its own, which have what their starter has.
        let launch = || StatsServer::new(server_data()).launch();
        let launched = privileges::thread("scx_stats", 0, launch)?.join().map_err(|_| anyhow!("a thread ended"));
        let server = launched.flatten().context("no statistics for scx tools")?;
        let (answers, questions) = server.channels();
        let serve = move || {
            let mut last = Stats::default();
            while questions.recv().is_ok() {
                // The library waits for an answer: when there is no new one, nothing has happened.
                last = owner.snapshot().map_or(last, |snapshot| Stats::of(&snapshot));
                if answers.send(last.clone()).is_err() {
                    break;
                }
            }
        };
        privileges::thread("scx_stats", 0, serve)?;
        Ok(Server { _server: server })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Nothing can be done if it is gone already.
        let _ = fs::remove_file(STATS_SOCKET);
    }
}

/// Prints a line every `seconds` about whichever scheduler is running.
///
/// # Errors
/// If nothing can be printed.
pub fn print_forever(seconds: f64) -> Result<()> {
    let print = |stats: Stats| stats.print(&mut std::io::stdout());
    scx_utils::monitor_stats::<Stats>(&[], Duration::from_secs_f64(seconds), || false, print)
}

/// `--monitor`: the same from a process of its own, which loads nothing.
///
/// # Errors
/// If nothing can be printed.
pub fn watch(seconds: f64) -> Result<ExitCode> {
    crate::node::logging::init(false);
    print_forever(seconds)?;
    Ok(ExitCode::SUCCESS)
}

/// `--help-stats`: says what is printed.
///
/// # Errors
/// If nothing can be printed.
pub fn describe() -> Result<ExitCode> {
    server_data().describe_meta(&mut std::io::stdout(), None)?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_is_described_and_is_in_the_json() {
        let mut text = Vec::new();
        server_data().describe_meta(&mut text, None).unwrap();
        let text = String::from_utf8(text).unwrap();
        let counters = native::counters().iter().map(|c| (c.name.to_string(), 1)).collect();
        let json = Stats { counters, ..Default::default() }.to_json().unwrap();
        for counter in native::counters() {
            assert!(text.contains(counter.name) && text.contains(counter.help), "{text}");
            assert_eq!(json[counter.name], 1);
        }
    }

    #[test]
    fn a_difference_never_underflows() {
        let counters = BTreeMap::from([("arrivals".to_string(), 5)]);
        let before = Stats { counters, granted: 3, ..Default::default() };
        let after = Stats { counters: BTreeMap::from([("arrivals".to_string(), 7)]), ..Default::default() };
        let since = after.since(&before);
        assert_eq!((since.counters["arrivals"], since.granted), (2, 0));
    }
}
