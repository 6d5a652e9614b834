// SPDX-License-Identifier: GPL-2.0-only
//! What epochs on the wire are told: which peers are believed, where packets are looked at, the cluster's key, and this
//! node's number.

use std::fmt;
use std::str::FromStr;

use super::key::Key;
use super::network::Network;
use cosched_rules::hash::fnv1a;
use cosched_rules::rows::{Fault, Given, Origin, Scalar};

/// An interface's name is at most this long, bytes (IFNAMSIZ without its NUL).
const INTERFACE_MAX: usize = 15;

/// Where packets are looked at before the stack sees them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Interface {
    /// Wherever a default route or one to a peer leads.
    Auto,
    /// At this one. It need not be there yet.
    Named(String),
}

impl FromStr for Interface {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_bad = |c: char| c == '/' || c == ':' || c.is_whitespace() || c.is_control();
        match text {
            "auto" => Ok(Interface::Auto),
            "" | "." | ".." => Err("it takes the name of a network interface, or 'auto'".into()),
            _ if text.len() > INTERFACE_MAX || text.contains(is_bad) => {
                Err("it takes the name of a network interface, or 'auto'".into())
            }
            _ => Ok(Interface::Named(text.into())),
        }
    }
}

impl Scalar for Interface {}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Interface::Auto => "auto",
            Interface::Named(name) => name,
        })
    }
}

/// Everything that epochs on the wire need, checked.
#[derive(Clone, Debug, PartialEq)]
pub struct WireSettings {
    /// Who is believed; at least one network.
    pub peers: Vec<Network>,
    /// Where packets are looked at.
    pub interfaces: Vec<Interface>,
    /// The cluster's key, if it has one.
    pub key: Option<Key>,
    /// The low bits of the epochs of CPU 0; those of CPU n are greater by n, modulo 2^16.
    pub node_number: u32,
    /// Whether and how correspondents are asked for ahead of messages; not without a key.
    pub prefetch: Option<PrefetchSettings>,
}

/// Everything that prefetching needs besides what epochs on the wire do, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchSettings {
    /// How many correspondents of a task are asked for when its slice begins: 1 to 8.
    pub correspondents: u32,
    /// The port of UDP, the same on all nodes.
    pub port: u16,
}

impl PrefetchSettings {
    /// What was given of `--prefetch` and `--prefetch-port`, if it is wanted.
    ///
    /// # Errors
    /// Names a setting that has no effect without the other, or lacks the key.
    pub fn new(wanted: &Given<u32>, port: &Given<u16>, has_key: bool) -> Result<Option<PrefetchSettings>, Fault> {
        if wanted.value == 0 {
            let message = "it has no effect without --prefetch (leave it out, or give --prefetch 1 to 8)";
            return if port.origin == Origin::Default { Ok(None) } else { Err(port.fault(message)) };
        }
        if !has_key {
            let message =
                "nobody believes what is not signed (leave it out, or name the cluster's key with --cluster-key)";
            return Err(wanted.fault(message));
        }
        Ok(Some(PrefetchSettings { correspondents: wanted.value, port: port.value }))
    }
}

/// The values of a list.
///
/// # Errors
/// Names one that is there twice.
pub fn once<T: Clone + Ord + fmt::Display>(given: &[Given<T>]) -> Result<Vec<T>, Fault> {
    let mut values: Vec<T> = Vec::new();
    for entry in given {
        if values.contains(&entry.value) {
            return Err(entry.fault(format!("'{}' is given twice (give it once)", entry.value)));
        }
        values.push(entry.value.clone());
    }
    Ok(values)
}

/// A number by the host's name: two nodes whose numbers meet lose a tie now and then, and nothing else.
pub fn default_node_number() -> u32 {
    let name = nix::unistd::gethostname().unwrap_or_default();
    (fnv1a(&name.to_string_lossy()) & u64::from(u16::MAX)) as u32
}
