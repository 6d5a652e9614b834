// SPDX-License-Identifier: GPL-2.0-only
//! What the two nodes of an experiment are, and where their agents find the coordinator.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};

use anyhow::{Context, Result};

use super::coordinator::LocalAgent;

/// Where the agents of other machines find the coordinator.
pub const PORT: u16 = 7710;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testbed {
    /// The CPUs 0 and 1 of this machine.
    One,
    /// CPU 0 of this machine and of another, whose address this is.
    Two(IpAddr),
}

impl fmt::Display for Testbed {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Testbed::One => "one",
            Testbed::Two(_) => "two",
        })
    }
}

impl Testbed {
    pub fn kernels(self) -> usize {
        match self {
            Testbed::One => 1,
            Testbed::Two(_) => 2,
        }
    }

    /// Starts the agents of this machine, and says where they and those of other machines come.
    pub fn start(self) -> Result<(TcpListener, Vec<LocalAgent>)> {
        let address = self.address()?;
        let listener = TcpListener::bind(address).with_context(|| format!("cannot listen on {address}"))?;
        let coordinator = listener.local_addr()?;
        let cpus = 0..3 - self.kernels();
        let agents = cpus.map(|n| LocalAgent::start(coordinator, n, n)).collect::<Result<_>>()?;
        Ok((listener, agents))
    }

    /// Agents are obeyed, so nobody else's network gets to talk to the coordinator. On loopback any port will
    /// do; another machine has to know it.
    fn address(self) -> Result<SocketAddr> {
        match self {
            Testbed::One => Ok(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            Testbed::Two(peer) => Ok(SocketAddr::new(address_towards(peer)?, PORT)),
        }
    }
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
        let one = Testbed::One.address().unwrap();
        assert_eq!((one.ip(), one.port()), (IpAddr::from(Ipv4Addr::LOCALHOST), 0));
        // Of all 127.0.0.0/8 the way leads through loopback, which has this address.
        let wire = Testbed::Two(IpAddr::from([127, 0, 0, 2])).address().unwrap();
        assert_eq!(wire, SocketAddr::from((Ipv4Addr::LOCALHOST, PORT)));
    }
}
