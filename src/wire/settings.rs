// SPDX-License-Identifier: GPL-2.0-only
//! What epochs on the wire are told: which peers are believed, where packets are looked at, the cluster's key, and this
//! node's number.

use std::fmt;
use std::fs;
use std::net::{IpAddr, Ipv6Addr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use anyhow::{Result, anyhow};

use crate::bpf::intf;
use crate::gang;
use crate::given::{Fault, Given, Origin};
use crate::limits::Range;
use crate::prefetch::settings::PrefetchSettings;

/// The number of a node's first CPU, of which no other CPU of the cluster ought to have the same.
pub const NODE_NUMBER: Range<u32> = Range::new(0, 0xffff, "a whole number");
/// An interface's name is at most this long, bytes (IFNAMSIZ without its NUL).
const INTERFACE_MAX: usize = 15;
/// A key file is a line. Anything larger is some other file, named by mistake.
const KEY_FILE_MAX: u64 = 4096;

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

/// A network whose nodes are believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Network {
    /// As IPv6, IPv4 as ::ffff:a.b.c.d.
    address: Ipv6Addr,
    /// Bits of that, 0 to 128.
    prefix: u32,
}

impl Network {
    /// How many bits of [`Network::octets`] count, 0 to 128.
    pub fn prefix(&self) -> u32 {
        self.prefix
    }

    /// The address as IPv6, IPv4 as ::ffff:a.b.c.d.
    pub fn octets(&self) -> [u8; 16] {
        self.address.octets()
    }

    /// Whether an address is one of the network's.
    pub fn contains(&self, address: IpAddr) -> bool {
        masked(mapped(address), self.prefix) == self.address
    }
}

/// An address as IPv6, IPv4 as ::ffff:a.b.c.d.
pub fn mapped(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(ipv4) => ipv4.to_ipv6_mapped(),
        IpAddr::V6(ipv6) => ipv6,
    }
}

fn masked(address: Ipv6Addr, prefix: u32) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - prefix).unwrap_or(0);
    (u128::from(address) & mask).into()
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let takes = "it takes a network, such as 10.1.0.0/16 or fd00::/64";
        let (address, prefix) = text.split_once('/').ok_or(takes)?;
        let address: IpAddr = address.parse().map_err(|_| takes)?;
        let bits = if address.is_ipv4() { 32 } else { 128 };
        let digits = !prefix.is_empty() && prefix.bytes().all(|b| b.is_ascii_digit());
        let prefix: u32 = prefix.parse().ok().filter(|bits_given| digits && *bits_given <= bits).ok_or(takes)?;
        let prefix = prefix + 128 - bits;
        let whole = masked(mapped(address), prefix);
        match whole == mapped(address) {
            true => Ok(Network { address: whole, prefix }),
            false => Err(format!("{takes}; of this one it is {}", Network { address: whole, prefix })),
        }
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address.to_ipv4_mapped() {
            Some(ipv4) if self.prefix >= 96 => write!(f, "{ipv4}/{}", self.prefix - 96),
            _ => write!(f, "{}/{}", self.address, self.prefix),
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

/// Reads the path of a key file.
///
/// # Errors
/// If there is none.
pub fn key_path(text: &str) -> std::result::Result<PathBuf, String> {
    if text.is_empty() {
        return Err("it takes the path of a file with 32 hexadecimal digits".into());
    }
    Ok(text.into())
}

/// Of a cluster without a key, as the C side takes it.
pub const NO_KEY: intf::cosched_wire_key = intf::cosched_wire_key { words: [0; 2], is_set: 0, reserved: 0 };

/// The cluster's key, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

/// It must not reach a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }

    /// Reads a key file: 32 hexadecimal digits, and a line's end. Nobody but its owner may read it.
    ///
    /// # Errors
    /// What is wrong with the file, without a word of its content.
    pub fn read(path: &Path) -> std::result::Result<Key, String> {
        let wrong = |what: &dyn fmt::Display| {
            format!(
                "{}: {what} (--cluster-key takes a file that was made with: umask 077; openssl rand -hex 16 >FILE)",
                path.display()
            )
        };
        let metadata = fs::metadata(path).map_err(|e| wrong(&e))?;
        if !metadata.is_file() || metadata.len() > KEY_FILE_MAX {
            return Err(wrong(&"not a file with 32 hexadecimal digits"));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(format!("{}: others may read it (chmod 600 {0})", path.display()));
        }
        let text = fs::read_to_string(path).map_err(|e| wrong(&e))?;
        Key::parse(text.trim_end()).ok_or_else(|| wrong(&"not a file with 32 hexadecimal digits"))
    }

    fn parse(text: &str) -> Option<Key> {
        let all = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| all)?;
        Some(Key(number.to_be_bytes()))
    }

    /// As the C side takes it.
    pub fn to_bpf(self) -> intf::cosched_wire_key {
        let [low, high] = [0, 8].map(|at| u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes")));
        intf::cosched_wire_key { words: [low, high], is_set: 1, reserved: 0 }
    }
}

/// Everything that epochs on the wire need, checked.
#[derive(Clone, Debug)]
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_is_read_and_shown_alike() {
        for text in ["10.1.0.0/16", "0.0.0.0/0", "10.1.2.3/32", "fd00::/64", "::/0", "::1/128"] {
            assert_eq!(text.parse::<Network>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn a_network_has_its_addresses_and_no_others() {
        let network: Network = "10.1.0.0/16".parse().unwrap();
        assert!(network.contains("10.1.255.255".parse().unwrap()));
        for other in ["10.2.0.0", "10.0.255.255", "::10.1.0.0", "fd00::1"] {
            assert!(!network.contains(other.parse().unwrap()), "{other}");
        }
        let all: Network = "0.0.0.0/0".parse().unwrap();
        assert!(all.contains("1.2.3.4".parse().unwrap()) && !all.contains("fd00::1".parse().unwrap()));
    }

    #[test]
    fn a_network_with_bits_beyond_its_prefix_is_named_as_it_would_be() {
        let error = "10.1.2.3/16".parse::<Network>().unwrap_err();
        assert!(error.ends_with("of this one it is 10.1.0.0/16"), "{error}");
    }

    #[test]
    fn a_key_is_read_from_a_file_that_nobody_else_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Key::read(&path)
        };
        let good = "000102030405060708090a0b0c0d0e0f";
        let bpf = write(&format!("{good}\n"), 0o600).unwrap().to_bpf();
        assert_eq!(bpf.words, [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert!(write(good, 0o640).unwrap_err().contains("chmod 600"));
        for bad in ["", "00", &good[1..], &format!("{good}0"), &format!("+{}", &good[1..]), "g"] {
            let error = write(bad, 0o600).unwrap_err();
            assert!(error.contains("32 hexadecimal digits"), "{error}");
        }
        assert!(Key::read(&dir.path().join("none")).unwrap_err().contains("openssl rand"));
        assert!(!format!("{:?}", Key([7; 16])).contains('7'));
    }
}
