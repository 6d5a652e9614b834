// SPDX-License-Identifier: GPL-2.0-only
//! Prefetch: the correspondents of a task whose slice begins are asked for ahead of a message (`bpf/prefetch.bpf.h`,
//! `docs/wire-format.md`; thesis 6.2.3, 6.2.6).
//!
//! The BPF side says whom to ask for, through a ring, and is told whom to ask the gate for. In between are one socket
//! and one thread ([`worker`]), and what of that which comes in is believed ([`ear`]). Without `--prefetch` there is
//! nothing of it.

pub mod ear;
pub mod worker;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::wire::key::Key;
use crate::wire::network::{Network, mapped};
use crate::wire::settings::{PrefetchSettings, WireSettings};
use cosched_rules::intf::cosched_prefetch;

/// The port where other nodes ask for tasks of this one. It outlives restarts of the scheduler.
pub struct Port {
    settings: PrefetchSettings,
    peers: Vec<Network>,
    key: Key,
    socket: UdpSocket,
}

impl Port {
    /// Takes the port, of IPv6 and IPv4, if prefetching is wanted.
    ///
    /// # Errors
    /// If the port cannot be had.
    pub fn bind(wire: Option<&WireSettings>) -> Result<Option<Port>> {
        let Some(wire) = wire else { return Ok(None) };
        let (Some(settings), Some(key)) = (wire.prefetch, wire.key) else { return Ok(None) };
        let port = settings.port;
        let socket = UdpSocket::bind((Ipv6Addr::UNSPECIFIED, port)).or_else(|error| match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL) => UdpSocket::bind((Ipv4Addr::UNSPECIFIED, port)),
            _ => Err(error),
        });
        let socket = socket.and_then(|socket| socket.set_nonblocking(true).map(|()| socket)).map_err(|e| {
            anyhow!(
                "cannot hear prefetches at UDP port {port}: {e} (choose another --prefetch-port, the same on all nodes)"
            )
        })?;
        Ok(Some(Port { settings, peers: wire.peers.clone(), key, socket }))
    }

    /// How many correspondents of a task are asked for at most: 1 to 8.
    pub fn correspondents(&self) -> u32 {
        self.settings.correspondents
    }

    /// As `status` shows it.
    pub fn view(&self) -> PrefetchView {
        PrefetchView { correspondents: self.settings.correspondents, port: self.settings.port }
    }
}

/// What is asked for ahead of messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefetchView {
    /// Correspondents of a task, at most.
    pub correspondents: u32,
    /// The port of UDP.
    pub port: u16,
}

/// An address as it stands in a flow: as on the wire, IPv4 as ::ffff:a.b.c.d.
fn to_words(address: IpAddr) -> [u32; 4] {
    let octets = mapped(address).octets();
    [0, 4, 8, 12].map(|at| u32::from_ne_bytes(octets[at..at + 4].try_into().expect("4 bytes")))
}

/// The address that stands in a flow.
fn to_address(words: [u32; 4]) -> IpAddr {
    let mut octets = [0; 16];
    for (bytes, word) in octets.chunks_mut(4).zip(words) {
        bytes.copy_from_slice(&word.to_ne_bytes());
    }
    IpAddr::from(octets).to_canonical()
}

/// What an entry of the ring says, if it is one.
fn read(bytes: &[u8]) -> Option<cosched_prefetch> {
    // SAFETY: integers, for which any bits will do, and as many bytes as they have.
    (bytes.len() == size_of::<cosched_prefetch>())
        .then(|| unsafe { bytes.as_ptr().cast::<cosched_prefetch>().read_unaligned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_the_same_there_and_back() {
        for address in ["10.1.0.2", "fd00::1:2", "::1", "0.0.0.0"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(to_address(to_words(address)), address);
        }
        assert_eq!(
            to_words("10.1.0.2".parse().unwrap())[2..],
            [0xffff_0000u32.to_le(), u32::from_ne_bytes([10, 1, 0, 2])]
        );
    }

    #[test]
    fn an_entry_of_another_length_is_none() {
        let length = size_of::<cosched_prefetch>();
        assert!(read(&vec![0; length]).is_some());
        assert!(read(&vec![0; length - 1]).is_none() && read(&vec![0; length + 1]).is_none());
    }
}
