// SPDX-License-Identifier: GPL-2.0-only
//! What epochs on the wire are told: which peers are believed, where packets are looked at, the cluster's key, and this
//! node's number.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow};

use super::key::Key;
use super::network::Network;
use crate::bpf::intf;
use crate::gang;
use crate::given::{Fault, Given, Origin};
use crate::limits::Range;
use crate::prefetch::settings::PrefetchSettings;

/// The number of a node's first CPU, of which no other CPU of the cluster ought to have the same.
pub const NODE_NUMBER: Range<u32> = Range::new(0, 0xffff, "a whole number");
/// An interface's name is at most this long, bytes (IFNAMSIZ without its NUL).
const INTERFACE_MAX: usize = 15;

/// What one source, the command line or the file, says of epochs on the wire.
#[derive(Clone, Debug, Default)]
pub struct Partial {
    /// `--peer`.
    pub peers: Vec<Given<Network>>,
    /// `--interface`.
    pub interfaces: Vec<Given<Interface>>,
    /// `--cluster-key`.
    pub cluster_key: Option<Given<PathBuf>>,
    /// `--node-number`.
    pub node_number: Option<Given<u32>>,
    /// `--prefetch`.
    pub prefetch: Option<Given<u32>>,
    /// `--prefetch-port`.
    pub prefetch_port: Option<Given<u16>>,
}

impl Partial {
    /// This, and where it says nothing, `other`. A list is not added to the other one: it takes its place.
    pub fn or(self, other: Partial) -> Partial {
        Partial {
            peers: if self.peers.is_empty() { other.peers } else { self.peers },
            interfaces: if self.interfaces.is_empty() { other.interfaces } else { self.interfaces },
            cluster_key: self.cluster_key.or(other.cluster_key),
            node_number: self.node_number.or(other.node_number),
            prefetch: self.prefetch.or(other.prefetch),
            prefetch_port: self.prefetch_port.or(other.prefetch_port),
        }
    }
}

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

    fn from_str(text: &str) -> std::result::Result<Self, String> {
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

impl WireSettings {
    /// What was given, if there is a peer.
    ///
    /// # Errors
    /// Names a setting that has no effect without a peer, is there twice, or a key file that is wrong.
    pub fn new(given: &Partial) -> Result<Option<WireSettings>> {
        let peers = once(&given.peers, "peer").map_err(Fault::into_error)?;
        let interfaces = once(&given.interfaces, "interface").map_err(Fault::into_error)?;
        if peers.is_empty() {
            return given.refuse_without_peers().map(|()| None).map_err(Fault::into_error);
        }
        if peers.len() > intf::COSCHED_WIRE_PEERS as usize {
            let message = format!("there are more than {} (give larger networks)", intf::COSCHED_WIRE_PEERS);
            return Err(given.peers[0].fault(&key_of("peer", &given.peers[0]), message).into_error());
        }
        let prefetch =
            PrefetchSettings::new(given.prefetch.as_ref(), given.prefetch_port.as_ref(), given.cluster_key.is_some())
                .map_err(Fault::into_error)?;
        let key = given.cluster_key.as_ref().map(|path| Key::read(&path.value)).transpose();
        let node_number = given.node_number.as_ref().map_or_else(default_node_number, |number| number.value);
        Ok(Some(WireSettings { peers, interfaces, key: key.map_err(|e| anyhow!(e))?, node_number, prefetch }))
    }
}

impl Partial {
    fn refuse_without_peers(&self) -> std::result::Result<(), Fault> {
        let message = "it has no effect without a peer (leave it out, or name the peers' networks with --peer)";
        if let Some(interface) = self.interfaces.first() {
            return Err(interface.fault(&key_of("interface", interface), message));
        }
        if let Some(path) = &self.cluster_key {
            return Err(path.fault("cluster_key", message));
        }
        if let Some(number) = &self.node_number {
            return Err(number.fault("node_number", message));
        }
        if let Some(number) = &self.prefetch {
            return Err(number.fault("prefetch", message));
        }
        self.prefetch_port.as_ref().map_or(Ok(()), |port| Err(port.fault("prefetch_port", message)))
    }
}

/// A list's key: a flag is there once for each entry, the file has them all.
fn key_of<T>(flag: &str, given: &Given<T>) -> String {
    if given.origin == Origin::Flag { flag.into() } else { format!("{flag}s") }
}

/// The values of a list.
fn once<T: Clone + Ord + fmt::Display>(given: &[Given<T>], flag: &str) -> std::result::Result<Vec<T>, Fault> {
    let mut values: Vec<T> = Vec::new();
    for entry in given {
        if values.contains(&entry.value) {
            return Err(entry.fault(&key_of(flag, entry), format!("'{}' is given twice (give it once)", entry.value)));
        }
        values.push(entry.value.clone());
    }
    Ok(values)
}

/// A number by the host's name: two nodes whose numbers meet lose a tie now and then, and nothing else.
fn default_node_number() -> u32 {
    let name = nix::unistd::gethostname().unwrap_or_default();
    (gang::hash(&name.to_string_lossy()) & u64::from(u16::MAX)) as u32
}
