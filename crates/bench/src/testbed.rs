// SPDX-License-Identifier: GPL-2.0-only
//! What the nodes of an experiment are, and where their agents find the coordinator.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use anyhow::{Context, Result};

use crate::coordinator::LocalAgent;
use crate::wire::{Wire, Wires};

/// Where the agents of other machines find the coordinator.
pub const PORT: u16 = 7710;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Testbed {
    /// CPUs of this machine from 0 on, an even number of them, and what they talk through.
    One { nodes: usize, wire: Wire },
    /// CPU 0 of this machine and of another, whose address this is.
    Two(IpAddr),
}

impl fmt::Display for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Testbed::One { .. } => "one",
            Testbed::Two(_) => "two",
        })
    }
}

impl Testbed {
    pub fn kernels(self) -> usize {
        match self {
            Testbed::One { .. } => 1,
            Testbed::Two(_) => 2,
        }
    }

    pub fn nodes(self) -> usize {
        match self {
            Testbed::One { nodes, .. } => nodes,
            Testbed::Two(_) => 2,
        }
    }

    /// Starts the agents of this machine, and says where they and those of other machines come.
    pub fn start(self) -> Result<Started> {
        let wires = match self {
            Testbed::One { nodes, wire } => Wires::lay(wire, nodes)?,
            Testbed::Two(_) => None,
        };
        let address = self.address()?;
        let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        let coordinator = listener.local_addr()?;
        let here = if self.kernels() == 1 { self.nodes() } else { 1 };
        let namespace = |node| wires.as_ref().map(|wires| wires.namespace(node));
        let agents = (0..here).map(|n| LocalAgent::start(coordinator, n, namespace(n))).collect::<Result<_>>()?;
        Ok(Started { listener, _agents: agents, _wires: wires })
    }

    /// Agents are obeyed, so nobody else's network gets to talk to the coordinator. On loopback any port will
    /// do; another machine has to know it.
    fn address(self) -> Result<SocketAddr> {
        match self {
            Testbed::One { wire: Wire::Loopback, .. } => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            Testbed::One { .. } => Ok(SocketAddr::from((Wires::HUB, 0))),
            Testbed::Two(peer) => Ok(SocketAddr::new(address_towards(peer)?, PORT)),
        }
    }
}

/// What lasts as long as an experiment: agents unload the scheduler when the coordinator has left, and leave the wires
/// last.
pub struct Started {
    pub listener: TcpListener,
    _agents: Vec<LocalAgent>,
    _wires: Option<Wires>,
}

/// This machine's address on the wire to `peer`. A datagram socket that is connected sends nothing, but has
/// an address.
fn address_towards(peer: IpAddr) -> Result<IpAddr> {
    let any = match peer {
        IpAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
    };
    let find = || {
        let socket = UdpSocket::bind((any, 0))?;
        socket.connect((peer, PORT))?;
        socket.local_addr()
    };
    Ok(find().with_context(|| format!("no way to the other machine, {peer}"))?.ip())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listens_only_where_its_agents_come_from() {
        let one = Testbed::One { nodes: 2, wire: Wire::Loopback }.address().unwrap();
        assert_eq!((one.ip(), one.port()), (IpAddr::from(Ipv4Addr::LOCALHOST), 0));
        // Of all 127.0.0.0/8 the way leads through loopback, which has this address.
        let wire = Testbed::Two(IpAddr::from([127, 0, 0, 2])).address().unwrap();
        assert_eq!(wire, SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    }
}
