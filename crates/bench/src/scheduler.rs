// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler of a node in an experiment: the kernel's own, this program with a preset, or another one.

use std::fs::{self, File, read_to_string};
use std::io::{Read, Seek, SeekFrom};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Error, Result, bail};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::{child, interrupt};
use crate::cgroup::Cgroup;
use crate::contender::{Contender, GANG};
use crate::protocol::Rules;
use crate::scenario::Rows;
use cosched_rules::presets::{arguments, changed};

/// For loading, which takes some seconds in an emulated machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// For a peer to load.
const PEER_PATIENCE: Duration = Duration::from_secs(30);

/// The node's scheduler. Dropped, it leaves the node to the kernel's own.
#[derive(Default)]
pub struct Scheduler {
    /// False where another agent of the same kernel sees to it.
    ours: bool,
    loader: Option<Loader>,
    changes: Vec<Change>,
}

/// A process that has loaded a scheduler, which goes with it.
struct Loader {
    /// What messages call it.
    name: String,
    /// It is this program, so its policy can be changed, and these are the rows of a gang.
    rows: Option<Rows>,
    child: Child,
    /// What it says on stderr, in memory: it is read only if something goes wrong.
    log: File,
    /// Counts the schedulers that the kernel has ever enabled, so it tells one from its successor.
    enable_seq: String,
}

impl Scheduler {
    /// Makes `contender` the node's scheduler, with these rows if it has rows, and says which rules it has.
    pub fn switch(&mut self, contender: &Contender, rows: Rows) -> Result<Rules> {
        self.ours = true;
        self.changes.clear();
        match contender {
            Contender::Eevdf { slice_us, preempts } => {
                self.unload()?;
                if let Some(us) = slice_us {
                    let before = read_to_string(Change::path("base_slice_ns")).unwrap_or_default();
                    self.changes.push(Change::make("base_slice_ns", &format!("{us}000"), before)?);
                }
                if !preempts {
                    self.changes.push(Change::make("features", "NO_WAKEUP_PREEMPTION", "WAKEUP_PREEMPTION".into())?);
                }
            }
            Contender::Preset(name) => return self.switch_to_preset(name, rows),
            Contender::Peer { name, command } => {
                self.unload()?;
                self.loader = Some(Loader::start_peer(name, command)?);
            }
        }
        Ok(Rules::none())
    }

    fn unload(&mut self) -> Result<()> {
        self.loader = None;
        wait_for_state("disabled", || Ok(()))
    }

    /// From preset to preset nothing is loaded again, unless jobs are to have other rows.
    fn switch_to_preset(&mut self, name: &str, rows: Rows) -> Result<Rules> {
        let (preset, mut changes) = arguments(name);
        let has_rows = preset == GANG;
        if has_rows && !changes.iter().any(|change| change.starts_with("--rows=")) {
            changes.push(format!("--rows={}", rows.number));
        }
        let suits = |of: &Rows| !has_rows || of.of_each == rows.of_each;
        if self.loader.as_ref().is_some_and(|loader| !loader.rows.as_ref().is_some_and(suits)) {
            self.unload()?;
        }
        if self.loader.is_some() {
            ask(&[&["policy", "set", preset], as_strs(&changes).as_slice()].concat())?;
            if !changed(name).map_err(Error::msg)?.needs_hooks() {
                wait_until_hooks_rest()?;
            }
        } else {
            self.loader = Some(Loader::start(preset, &changes, rows)?);
        }
        let status = ask(&["status", "--json"])?;
        rules_of(&status).context("`status --json` does not say which gate and wait rule there are")
    }

    /// Fails unless the scheduler has been the same since [`Scheduler::switch`].
    pub fn check(&mut self) -> Result<()> {
        match &mut self.loader {
            Some(loader) => loader.check(),
            None if !self.ours || state() == "disabled" => Ok(()),
            None => bail!("somebody else has loaded a scheduler"),
        }
    }
}

/// A setting of the kernel's own scheduler, changed for as long as this value lasts.
struct Change {
    path: String,
    before: String,
}

impl Change {
    fn path(file: &str) -> String {
        format!("/sys/kernel/debug/sched/{file}")
    }

    fn make(file: &str, value: &str, before: String) -> Result<Change> {
        let path = Change::path(file);
        fs::write(&path, value)
            .with_context(|| format!("the kernel's scheduler cannot be changed in {path}: mount debugfs"))?;
        Ok(Change { path, before })
    }
}

impl Drop for Change {
    fn drop(&mut self) {
        // What could be written once can be again.
        let _ = fs::write(&self.path, &self.before);
    }
}

impl Loader {
    fn start(preset: &str, changes: &[String], rows: Rows) -> Result<Loader> {
        let args = ["run", "--policy", preset, "--job-by", "cgroup", "--metrics-listen", "none"];
        let mut command = child::command(args, Signal::SIGINT)?;
        command.args(changes);
        for (name, row) in &rows.of_each {
            command.args(["--gang-row", &format!("{}={row}", Cgroup::job(name))]);
        }
        let mut loader = Loader::spawn("the loader".into(), Some(rows), command)?;
        wait_for_state("enabled", || loader.check_alive())?;
        loader.wait_for_answers()?;
        loader.enable_seq = enable_seq();
        Ok(loader)
    }

    /// Nothing is loaded before, so what is loaded then is the peer.
    fn start_peer(name: &str, command: &[String]) -> Result<Loader> {
        let (program, args) = command.split_first().with_context(|| format!("peer {name} has no program"))?;
        let mut command = child::other_command(program, Signal::SIGINT);
        command.args(args);
        let enable_seq_before = enable_seq();
        let mut peer = Loader::spawn(format!("peer {name}"), None, command)?;
        // The kernel counts it a moment after it is enabled.
        let is_up = child::wait_until(Instant::now() + PEER_PATIENCE, || {
            peer.check_alive()?;
            Ok(state() == "enabled" && !ops().is_empty() && enable_seq() != enable_seq_before)
        })?;
        if !is_up {
            bail!("{} has not loaded within {} s: {}", peer.name, PEER_PATIENCE.as_secs(), peer.last_words());
        }
        peer.enable_seq = enable_seq();
        Ok(peer)
    }

    fn spawn(name: String, rows: Option<Rows>, mut command: Command) -> Result<Loader> {
        let log = File::from(memfd_create(c"loader", MFdFlags::MFD_CLOEXEC).context("cannot create a log")?);
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.try_clone()?)
            .spawn()
            .with_context(|| format!("cannot start {name}"))?;
        Ok(Loader { name, rows, child, log, enable_seq: String::new() })
    }

    /// The control socket may come after the scheduler.
    fn wait_for_answers(&mut self) -> Result<()> {
        child::wait_until(Instant::now() + PATIENCE, || {
            self.check_alive()?;
            Ok(run_self(&["policy", "show", "--json"])?.status.success())
        })?;
        Ok(())
    }

    fn check(&mut self) -> Result<()> {
        self.check_alive()?;
        if state() != "enabled" || enable_seq() != self.enable_seq {
            bail!("the kernel ended the scheduler of {}: {}", self.name, self.last_words());
        }
        Ok(())
    }

    fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait().with_context(|| format!("cannot look after {}", self.name))? {
            None => Ok(()),
            Some(status) => bail!("{} ended ({status}): {}", self.name, self.last_words()),
        }
    }

    fn last_words(&self) -> String {
        let (mut log, mut text) = (&self.log, String::new());
        let _ = log.seek(SeekFrom::Start(0)).and_then(|_| log.read_to_string(&mut text));
        last_line(&text).to_owned()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        child::end(&mut self.child, Signal::SIGINT, Duration::from_secs(10));
    }
}

fn as_strs(strings: &[String]) -> Vec<&str> {
    strings.iter().map(String::as_str).collect()
}

fn wait_for_state(wanted: &str, mut check: impl FnMut() -> Result<()>) -> Result<()> {
    let arrived = child::wait_until(Instant::now() + PATIENCE, || {
        check()?;
        Ok(state() == wanted)
    })?;
    if !arrived {
        bail!("the kernel's scheduler class is '{}' and not '{wanted}' after {} s", state(), PATIENCE.as_secs());
    }
    Ok(())
}

/// Hooks stay for a while after the last policy that wants them, and the next one is not to pay for them.
fn wait_until_hooks_rest() -> Result<()> {
    let rest = child::wait_until(Instant::now() + PATIENCE, || {
        let status: Value = serde_json::from_str(&ask(&["status", "--json"])?).context("`status --json` is no JSON")?;
        let rest = status["hooks"]["attached"].as_array().is_some_and(Vec::is_empty);
        if !rest {
            interrupt::sleep_until(Instant::now() + Duration::from_secs(2))?;
        }
        Ok(rest)
    })?;
    if !rest {
        bail!("the policy wants no hooks, and some are still attached after {} s", PATIENCE.as_secs());
    }
    Ok(())
}

/// Without sched_ext there is nothing that could be enabled.
fn state() -> String {
    read_to_string("/sys/kernel/sched_ext/state").map_or_else(|_| "disabled".into(), |s| s.trim().to_owned())
}

/// The name of the scheduler that is loaded.
fn ops() -> String {
    read_to_string("/sys/kernel/sched_ext/root/ops").unwrap_or_default().trim().to_owned()
}

fn enable_seq() -> String {
    read_to_string("/sys/kernel/sched_ext/enable_seq").unwrap_or_default()
}

/// What the running scheduler answers to `args`.
fn ask(args: &[&str]) -> Result<String> {
    let output = run_self(args)?;
    if !output.status.success() {
        bail!("`{}` failed: {}", args.join(" "), last_line(&String::from_utf8_lossy(&output.stderr)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn run_self(args: &[&str]) -> Result<Output> {
    child::command(args, Signal::SIGKILL)?
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot run `{}`", args.join(" ")))
}

fn last_line(text: &str) -> &str {
    text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("it said nothing")
}

/// Where messages change nothing no gate is ever asked, whatever the preset names.
fn rules_of(status: &str) -> Option<Rules> {
    let status: Value = serde_json::from_str(status).ok()?;
    let rule = |axis: &str| status["policy"][axis].as_str();
    let gate = if rule("arrival")? == "none" { "none" } else { rule("gate")? };
    let costs = serde_json::from_value(status["costs"].clone()).ok();
    Some(Rules { gate: gate.into(), wait: rule("wait")?.into(), costs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_rules::costs::Costs;
    use serde_json::json;

    #[test]
    fn finds_the_rules() {
        let rules = |policy: Value| {
            let Rules { gate, wait, .. } = rules_of(&json!({ "policy": policy }).to_string())?;
            Some([gate, wait])
        };
        let found = rules(json!({"arrival": "demand", "gate": "rate", "wait": "spin"}));
        assert_eq!(found, Some(["rate", "spin"].map(String::from)));
        let found = rules(json!({"arrival": "none", "gate": "always", "wait": "none"}));
        assert_eq!(found, Some(["none", "none"].map(String::from)));
        assert_eq!(rules(json!({"arrival": "demand", "gate": "rate"})), None);
        assert_eq!(rules(json!({"gate": "rate", "wait": "spin"})), None);
        assert_eq!(rules_of("dcs"), None);
        let status = json!({
            "policy": {"arrival": "demand", "gate": "auto", "wait": "spin"},
            "costs": {"latency_us": 1.5, "overhead_us": 2.5, "switch_us": 3.5, "source": "measured"},
        });
        let wanted = Costs { latency_us: 1.5, overhead_us: 2.5, switch_us: 3.5 };
        assert_eq!(rules_of(&status.to_string()).unwrap().costs, Some(wanted));
    }

    #[test]
    fn quotes_the_last_line() {
        assert_eq!(last_line("one\ntwo \n\n"), "two");
        assert_eq!(last_line(""), "it said nothing");
    }
}
