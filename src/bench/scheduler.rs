// SPDX-License-Identifier: GPL-2.0-only
//! The scheduler of a node in an experiment: the kernel's own, or this program with a preset.

use std::fs::{File, read_to_string};
use std::io::{Read, Seek, SeekFrom};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::Signal;
use serde_json::Value;

use super::child;
use super::protocol::EEVDF;

/// For loading, which takes some seconds in an emulated machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// The node's scheduler. Dropped, it leaves the node to the kernel's own.
#[derive(Default)]
pub struct Scheduler {
    /// False where another agent of the same kernel sees to it.
    ours: bool,
    loader: Option<Loader>,
}

struct Loader {
    child: Child,
    /// What it says, in memory: it is read only if something goes wrong.
    log: File,
    /// Counts the schedulers that the kernel has ever enabled, so it tells one from its successor.
    enable_seq: String,
}

impl Scheduler {
    /// Makes `name` the node's scheduler and says which gate it has.
    pub fn switch(&mut self, name: &str) -> Result<String> {
        self.ours = true;
        if name == EEVDF {
            self.loader = None;
            wait_for_state("disabled", || Ok(()))?;
            return Ok("none".into());
        }
        let (preset, changes) = arguments(name);
        if self.loader.is_some() {
            ask(&[&["policy", "set", preset], as_strs(&changes).as_slice()].concat())?;
        } else {
            self.loader = Some(Loader::start(preset, &changes)?);
        }
        let policy = ask(&["policy", "show", "--json"])?;
        gate_of(&policy).with_context(|| format!("no gate in what `policy show --json` says: {}", policy.trim()))
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

impl Loader {
    fn start(preset: &str, changes: &[String]) -> Result<Loader> {
        let log = File::from(memfd_create(c"loader", MFdFlags::MFD_CLOEXEC).context("cannot create a log")?);
        let args = ["run", "--policy", preset, "--job-by", "process", "--metrics-listen", "none"];
        let child = child::command(args, Signal::SIGINT)?
            .args(changes)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log.try_clone()?)
            .spawn()
            .context("cannot start the loader")?;
        let mut loader = Loader { child, log, enable_seq: String::new() };
        wait_for_state("enabled", || loader.check_alive())?;
        loader.wait_for_answers()?;
        loader.enable_seq = enable_seq();
        Ok(loader)
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
            bail!("the kernel ended the scheduler: {}", self.last_words());
        }
        Ok(())
    }

    fn check_alive(&mut self) -> Result<()> {
        match self.child.try_wait().context("cannot look after the loader")? {
            None => Ok(()),
            Some(status) => bail!("the loader ended ({status}): {}", self.last_words()),
        }
    }

    fn last_words(&mut self) -> String {
        let mut text = String::new();
        let _ = self.log.seek(SeekFrom::Start(0)).and_then(|_| self.log.read_to_string(&mut text));
        last_line(&text).to_owned()
    }
}

impl Drop for Loader {
    fn drop(&mut self) {
        child::end(&mut self.child, Signal::SIGINT, Duration::from_secs(10));
    }
}

/// A preset and the flags for what is to differ from it: `dcs+h_ms=-20` is `dcs` with `--h-ms=-20`.
fn arguments(name: &str) -> (&str, Vec<String>) {
    let mut parts = name.split('+');
    let preset = parts.next().unwrap_or_default();
    let flag = |change: &str| {
        let (key, value) = change.split_once('=').unwrap_or((change, ""));
        format!("--{}={value}", key.replace('_', "-"))
    };
    (preset, parts.map(flag).collect())
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

/// Without sched_ext there is nothing that could be enabled.
fn state() -> String {
    read_to_string("/sys/kernel/sched_ext/state").map_or_else(|_| "disabled".into(), |s| s.trim().to_owned())
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
fn gate_of(policy: &str) -> Option<String> {
    let policy: Value = serde_json::from_str(policy).ok()?;
    let policy = policy.get("policy").unwrap_or(&policy);
    if policy["arrival"] == "none" {
        return Some("none".into());
    }
    Some(policy["gate"].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_gate() {
        let gate = |text| gate_of(text);
        assert_eq!(gate(r#"{"arrival": "demand", "gate": "rate"}"#).as_deref(), Some("rate"));
        assert_eq!(gate(r#"{"arrival": "none", "gate": "always"}"#).as_deref(), Some("none"));
        assert_eq!(gate(r#"{"arrival": "demand"}"#), None);
        assert_eq!(gate("dcs"), None);
    }

    #[test]
    fn a_change_is_a_flag() {
        assert_eq!(arguments("dcs"), ("dcs", vec![]));
        let changed = ("dcs", vec!["--gate=rate".to_owned(), "--rate-exponent=-1".to_owned()]);
        assert_eq!(arguments("dcs+gate=rate+rate_exponent=-1"), changed);
    }

    #[test]
    fn quotes_the_last_line() {
        assert_eq!(last_line("one\ntwo \n\n"), "two");
        assert_eq!(last_line(""), "it said nothing");
    }
}
