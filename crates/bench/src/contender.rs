// SPDX-License-Identifier: GPL-2.0-only
//! The schedulers that an experiment compares, and how the command line names them.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow, bail};
use nix::unistd::{AccessFlags, access};
use serde::{Deserialize, Serialize};

use crate::receiver::Receiver;
use cosched_rules::presets::{self, arguments};

/// The scheduler of the kernel itself.
pub const EEVDF: &str = "eevdf";

/// The kernel's name for the slice is base_slice_ns; ours is that of the presets.
const SLICE: &str = "slice_us";
const SLICES_US: RangeInclusive<u32> = 100..=1_000_000;

/// A waking task waits until the running one's turn is over. It has no other value: the kernel's own is 1.
const NO_PREEMPTION: &str = "+wakeup_preemption=0";

/// Stands for every preset.
const ALL_PRESETS: &str = "presets";

/// Stands for the ten strategies of Zhang, which has no gates.
const ALL_STRATEGIES: &str = "strategies";
const STRATEGIES: [&str; 10] = [
    "local",
    "sb",
    "sy",
    "dcs+gate=always",
    "dcs-sb+gate=always",
    "dcs-sy+gate=always",
    "pb+gate=always",
    "pb-sb+gate=always",
    "pb-sy+gate=always",
    "gang",
];

const PEER: &str = "peer:";

/// A scheduler.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contender {
    /// The kernel's own, with the slice that it has by itself or with another; with wake-ups that preempt or without.
    Eevdf { slice_us: Option<u32>, preempts: bool },
    /// A preset of this program, with changes or without (`dcs+h_ms=-20`).
    Preset(String),
    /// Another sched_ext scheduler: a program that loads it and runs as long as it is to be.
    Peer { name: String, command: Vec<String> },
}

/// The preset whose jobs have rows.
pub const GANG: &str = "gang";

impl Contender {
    /// The kernel's own as it is: what all others are compared with.
    pub const KERNEL: Contender = Contender::Eevdf { slice_us: None, preempts: true };

    pub fn is_gang(&self) -> bool {
        matches!(self, Contender::Preset(name) if arguments(name).0 == GANG)
    }

    /// How jobs wait under it that have a message library of its own kind (Zhang 2.4): they spin, unless its receives
    /// leave the CPU.
    pub fn receiver(&self) -> Receiver {
        let wait = match self {
            Contender::Preset(name) => presets::changed(name).ok().and_then(|policy| policy.choices.text("wait")),
            _ => None,
        };
        if wait.as_deref() == Some("spin-block") { Receiver::Block } else { Receiver::Spin }
    }

    /// Does it have the nodes of a job agree, more or less, on when it runs? That takes it a while, and how their turns
    /// stood at first matters little after it.
    pub fn coordinates(&self) -> bool {
        let Contender::Preset(name) = self else { return false };
        self.is_gang() || presets::changed(name).is_ok_and(|policy| policy.needs_hooks())
    }
}

impl fmt::Display for Contender {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Contender::Eevdf { slice_us, preempts } => {
                let slice = slice_us.map_or_else(String::new, |us| format!("+{SLICE}={us}"));
                let wakeups = if *preempts { String::new() } else { NO_PREEMPTION.into() };
                f.pad(&format!("{EEVDF}{slice}{wakeups}"))
            }
            Contender::Preset(name) | Contender::Peer { name, .. } => f.pad(name),
        }
    }
}

impl FromStr for Contender {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Contender> {
        if text == EEVDF {
            return Ok(Contender::KERNEL);
        }
        if let Some(changes) = text.strip_prefix(EEVDF).filter(|rest| rest.starts_with('+')) {
            let slice = changes.strip_suffix(NO_PREEMPTION);
            let slice_us = slice.unwrap_or(changes).strip_prefix('+').map(parse_slice).transpose()?;
            return Ok(Contender::Eevdf { slice_us, preempts: slice.is_none() });
        }
        match text.strip_prefix(PEER) {
            Some(peer) => parse_peer(peer),
            None => check_preset(text).map(|()| Contender::Preset(text.into())),
        }
    }
}

/// The slice of the kernel's own.
fn parse_slice(change: &str) -> Result<u32> {
    let us = change.split_once('=').filter(|(name, _)| name.replace('-', "_") == SLICE);
    let us = us.and_then(|(_, us)| us.parse().ok()).filter(|us| SLICES_US.contains(us));
    us.with_context(|| {
        let (least, most) = (SLICES_US.start(), SLICES_US.end());
        format!(
            "'{EEVDF}+{change}': {EEVDF} takes {SLICE}=US, from {least} to {most}, {NO_PREEMPTION} after that, and nothing \
             else"
        )
    })
}

/// Peers that are called like one of ours would share its row.
fn parse_peer(text: &str) -> Result<Contender> {
    let form =
        || anyhow!("'{PEER}{text}' is no peer: {PEER}NAME=/path/to/binary is wanted, and its arguments after spaces");
    let (name, command) = text.split_once('=').ok_or_else(form)?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let mut command: Vec<String> = command.split_whitespace().map(String::from).collect();
    if name.is_empty() || !name.chars().all(is_plain) || command.is_empty() {
        return Err(form());
    }
    if [EEVDF, ALL_PRESETS, ALL_STRATEGIES].contains(&name) || presets::find(name).is_ok() {
        bail!("a peer cannot be called '{name}', which means something else here: give it another name");
    }

    let program = std::path::absolute(&command[0]).with_context(|| format!("peer {name}: no path '{}'", command[0]))?;
    if !program.is_file() || access(&program, AccessFlags::X_OK).is_err() {
        bail!("peer {name}: '{}' is no program that can be run: give the path of one", command[0]);
    }
    command[0] = program.to_str().map(String::from).ok_or_else(form)?;
    Ok(Contender::Peer { name: name.into(), command })
}

/// Refuses what the loader would refuse, before anything is measured.
fn check_preset(text: &str) -> Result<()> {
    presets::find(arguments(text).0).map_err(|unknown| {
        anyhow!("{unknown}; {EEVDF} is the kernel's own, and {PEER}NAME=/path/to/binary another one")
    })?;
    presets::changed(text).map(drop).map_err(|error| anyhow!("'{text}': {error}"))
}

/// Schedulers by name, with commas between them.
#[derive(Clone, Debug)]
pub struct Contenders(pub Vec<Contender>);

impl FromStr for Contenders {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Contenders> {
        let mut all = Vec::new();
        for item in text.split(',') {
            match item {
                ALL_PRESETS => all.extend(presets::all().keys().cloned().map(Contender::Preset)),
                ALL_STRATEGIES => all.extend(STRATEGIES.map(|name| Contender::Preset(name.into()))),
                _ => all.push(item.parse()?),
            }
        }
        // Rows are told apart by these names.
        let names: Vec<String> = all.iter().map(Contender::to_string).collect();
        match names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            Some((_, name)) => bail!("'{name}' is there twice: leave one of them out"),
            None => Ok(Contenders(all)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        text.parse::<Contenders>().unwrap_err().to_string()
    }

    #[test]
    fn reads_the_kernels_own_presets_and_peers() {
        let Contenders(all) = "eevdf,dcs+slice_us=5000,peer:true=/bin/true -s  5000".parse().unwrap();
        let command = ["/bin/true", "-s", "5000"].map(String::from).to_vec();
        let peer = Contender::Peer { name: "true".into(), command };
        assert_eq!(all, [Contender::KERNEL, Contender::Preset("dcs+slice_us=5000".into()), peer]);
        let names: Vec<String> = all.iter().map(Contender::to_string).collect();
        assert_eq!(names, ["eevdf", "dcs+slice_us=5000", "true"]);
    }

    #[test]
    fn the_kernels_own_takes_a_slice_and_may_leave_wakers_waiting() {
        let Contenders(all) = "eevdf,eevdf+slice_us=20000".parse().unwrap();
        assert_eq!(all, [Contender::KERNEL, Contender::Eevdf { slice_us: Some(20_000), preempts: true }]);
        assert_eq!(all[1].to_string(), "eevdf+slice_us=20000");
        for (text, slice_us) in
            [("eevdf+wakeup_preemption=0", None), ("eevdf+slice_us=500+wakeup_preemption=0", Some(500))]
        {
            let wanted = Contender::Eevdf { slice_us, preempts: false };
            assert_eq!((text.parse::<Contender>().unwrap(), wanted.to_string()), (wanted, text.into()));
        }
        let bad = ["eevdf+slice_us=0", "eevdf+slice_us=x", "eevdf+slice_us", "eevdf+h_ms=3", "eevdf+"];
        for bad in bad.into_iter().chain(["eevdf+wakeup_preemption=1", "eevdf+wakeup_preemption=0+slice_us=500"]) {
            assert!(error(bad).contains("takes slice_us=US, from 100 to 1000000"), "{}", error(bad));
        }
        assert!(error("eevdfx").contains("unknown policy"));
    }

    #[test]
    fn presets_are_those_that_the_loader_knows() {
        let Contenders(all) = "eevdf,presets".parse().unwrap();
        assert_eq!(all.len(), 1 + presets::all().len());
        assert!(all.contains(&Contender::Preset(presets::DEFAULT.into())));
    }

    #[test]
    fn strategies_are_those_of_zhang() {
        let Contenders(all) = "strategies,dcs-sb".parse().unwrap();
        assert_eq!(all.len(), 11, "with the gate of the preset it is another one");
        for strategy in &all {
            assert_eq!(strategy.to_string().parse::<Contender>().unwrap(), *strategy, "the loader takes it");
        }
        let receivers = ["local", "dcs-sy", "dcs-sb", "gang"].map(|name| name.parse::<Contender>().unwrap().receiver());
        assert_eq!(receivers, [Receiver::Spin, Receiver::Spin, Receiver::Block, Receiver::Spin]);
    }

    #[test]
    fn refuses_what_the_loader_would() {
        assert!(error("eevdf,nonsense").contains("unknown policy 'nonsense' (known: "));
        assert!(error("--json").contains("unknown policy '--json'"));
        assert!(error("").contains("unknown policy ''"));
        assert!(error("dcs+h_ms=x").starts_with("'dcs+h_ms=x': invalid value 'x' for '--h-ms <MS>'"));
        assert!(error("dcs+colour=red").contains("'--colour'"));
        assert!(error("dcs+help").contains("'--help'"));
        assert!(error("local+h_ms=-20").contains("no effect"));
        for text in ["dcs+h_ms=x", "dcs+colour=red", "local+h_ms=-20", "nonsense"] {
            assert_eq!(error(text).lines().count(), 1, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_peer() {
        for bad in ["peer:", "peer:x", "peer:=/bin/true", "peer:x=", "peer:x= ", "peer:a b=/bin/true"] {
            assert!(error(bad).starts_with(&format!("'{bad}' is no peer: peer:NAME=")), "{}", error(bad));
        }
        for bad in ["/nowhere/scx", "/bin", "/etc/passwd"] {
            let error = error(&format!("peer:x={bad}"));
            assert!(error.contains(&format!("peer x: '{bad}' is no program")), "{error}");
        }
        assert!(error("peer:dcs=/bin/true").contains("'dcs'"));
        assert!(error("peer:eevdf=/bin/true").contains("'eevdf'"));
        assert!(error("peer:strategies=/bin/true").contains("'strategies'"));
    }

    #[test]
    fn refuses_the_same_name_twice() {
        assert!(error("eevdf,dcs,eevdf").starts_with("'eevdf' is there twice"));
        assert!(error("presets,dcs").starts_with("'dcs' is there twice"));
        assert!(error("peer:x=/bin/true,peer:x=/bin/false").starts_with("'x' is there twice"));
    }
}
