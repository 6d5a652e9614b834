// SPDX-License-Identifier: GPL-2.0-only
//! Networks of peers, of IPv4 and IPv6 alike.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

use cosched_rules::rows::Scalar;

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

    /// The network of `address`, of which `prefix` bits count: at most 32 of IPv4, 128 of IPv6.
    pub fn of(address: IpAddr, prefix: u32) -> Network {
        let prefix = if address.is_ipv4() { prefix + 96 } else { prefix };
        Network { address: masked(mapped(address), prefix), prefix }
    }

    /// Whether one of the two networks is part of the other.
    pub fn overlaps(&self, other: &Network) -> bool {
        let prefix = self.prefix.min(other.prefix);
        masked(self.address, prefix) == masked(other.address, prefix)
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

impl Scalar for Network {}

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
}
