// SPDX-License-Identifier: GPL-2.0-only
//! What of that which comes in at the port is believed.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::to_words;
use crate::wire::key::Key;
use crate::wire::network::Network;
use cosched_rules::intf::{cosched_prefetch, cosched_wire_key};
use cosched_rules::native;

/// Who is believed, and what they have said last.
pub struct Ear {
    peers: Vec<Network>,
    key: cosched_wire_key,
    /// The latest time of each address, ns of TAI. Only who has the key has a place here.
    newest: BTreeMap<IpAddr, u64>,
}

impl Ear {
    /// Believes what these peers sign with this key.
    pub fn new(peers: Vec<Network>, key: Key) -> Ear {
        Ear { peers, key: key.to_bpf(), newest: BTreeMap::new() }
    }

    /// What `datagram`, which came from `source` at `tai_ns`, ns of TAI, says, if it is believed.
    pub fn hear(&mut self, datagram: &[u8], source: IpAddr, tai_ns: u64) -> Option<cosched_prefetch> {
        let source = source.to_canonical();
        if !self.peers.iter().any(|peer| peer.contains(source)) {
            return None;
        }
        let prefetch = native::prefetch_decode(datagram, &self.key)?;
        let newest = self.newest.get(&source).copied().unwrap_or(0);
        if !native::prefetch_credible(&prefetch, &to_words(source), newest, tai_ns) {
            return None;
        }
        self.newest.insert(source, prefetch.time_ns);
        Some(prefetch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_rules::intf::cosched_wire_flow;

    const NOW: u64 = 1_767_225_637_000_000_000;

    fn from(source: &str, time_ns: u64, key: Key) -> Vec<u8> {
        let [from, to] = [source, "10.1.0.2"].map(|address| to_words(address.parse().unwrap()));
        let flow = cosched_wire_flow { from, to, from_port: 1, to_port: 2 };
        let prefetch = cosched_prefetch { flow, reserved: 0, time_ns, epoch: 0, slice_ns: 0 };
        native::prefetch_encode(&prefetch, &key.to_bpf()).to_vec()
    }

    #[test]
    fn a_peer_is_heard_once_and_nobody_else_is() {
        let key = Key::new([7; 16]);
        let mut ear = Ear::new(vec!["10.1.0.0/16".parse().unwrap()], key);
        let mut hears = |datagram: &[u8], source: &str| ear.hear(datagram, source.parse().unwrap(), NOW).is_some();
        let good = from("10.1.0.1", NOW, key);
        assert!(!hears(&good, "10.1.0.3"), "from another address");
        assert!(!hears(&from("10.2.0.1", NOW, key), "10.2.0.1"), "from no peer");
        assert!(!hears(&from("10.1.0.1", NOW, Key::new([8; 16])), "10.1.0.1"), "with another key");
        // A socket of IPv6 gives the addresses of IPv4 like this.
        assert!(hears(&good, "::ffff:10.1.0.1"));
        assert!(!hears(&good, "10.1.0.1"), "again");
        assert!(hears(&from("10.1.0.1", NOW + 1, key), "10.1.0.1"));
        // What one has said is not held against another.
        assert!(hears(&from("10.1.0.3", NOW, key), "10.1.0.3"));
    }
}
