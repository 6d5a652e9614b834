// SPDX-License-Identifier: GPL-2.0-only
//! Which network interfaces to look at: those with a name, and those that a default route or one to a peer goes
//! through.

use std::collections::BTreeSet;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::network::Network;
use super::settings::Interface;

/// The names of the interfaces that are wanted now.
pub fn wanted(interfaces: &[Interface], peers: &[Network]) -> BTreeSet<String> {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let named = interfaces.iter().filter_map(|interface| match interface {
        Interface::Named(name) => Some(name.clone()),
        Interface::Auto => None,
    });
    let mut names: BTreeSet<String> = named.collect();
    if interfaces.contains(&Interface::Auto) {
        names.extend(routed(&read("/proc/net/route"), peers, ipv4_route));
        names.extend(routed(&read("/proc/net/ipv6_route"), peers, ipv6_route));
    }
    names
}

/// Where a route goes.
struct Route<'a> {
    interface: &'a str,
    to: Network,
    is_default: bool,
}

/// The interfaces of the default route and of routes to peers, or to a part of them. Not that of this node alone.
fn routed(table: &str, peers: &[Network], read: fn(&str) -> Option<Route<'_>>) -> BTreeSet<String> {
    let routes = table.lines().filter_map(read);
    let wanted = routes.filter(|route| route.is_default || peers.iter().any(|peer| peer.overlaps(&route.to)));
    wanted.map(|route| route.interface.to_string()).filter(|name| name != "lo").collect()
}

/// A line of /proc/net/route: interface, destination (hexadecimal, as it is in memory), gateway, flags, ..., mask.
fn ipv4_route(line: &str) -> Option<Route<'_>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [interface, to, _, _, _, _, _, mask, ..] = fields[..] else { return None };
    let in_memory = |hexadecimal| Some(Ipv4Addr::from(u32::from_str_radix(hexadecimal, 16).ok()?.to_ne_bytes()));
    let prefix = u32::from(in_memory(mask)?).leading_ones();
    Some(Route { interface, to: Network::of(in_memory(to)?.into(), prefix), is_default: prefix == 0 })
}

/// A line of /proc/net/ipv6_route: destination, its prefix, ..., flags, interface. Those that reject are through lo.
fn ipv6_route(line: &str) -> Option<Route<'_>> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let [to, prefix, .., interface] = fields[..] else { return None };
    let to = Ipv6Addr::from(u128::from_str_radix(to, 16).ok()?);
    let prefix = u32::from_str_radix(prefix, 16).ok().filter(|bits| *bits <= 128)?;
    Some(Route { interface, to: Network::of(to.into(), prefix), is_default: prefix == 0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &str, peers: &[&str], read: fn(&str) -> Option<Route<'_>>) -> Vec<String> {
        let peers: Vec<Network> = peers.iter().map(|peer| peer.parse().unwrap()).collect();
        routed(table, &peers, read).into_iter().collect()
    }

    #[test]
    fn a_default_route_and_one_to_a_peer_count() {
        let table = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                     eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                     eth1\t0000010A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n\
                     eth2\t0000020A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";
        assert_eq!(names(table, &["10.1.0.0/16"], ipv4_route), ["eth0", "eth1"]);
        assert_eq!(names(table, &["10.0.0.0/8"], ipv4_route), ["eth0", "eth1", "eth2"]);
        assert_eq!(names(table, &["fd00::/8"], ipv4_route), ["eth0"]);
        assert_eq!(names(table, &["10.2.7.1/32"], ipv4_route), ["eth0", "eth2"], "one node of a network");
    }

    #[test]
    fn ipv6_has_routes_of_its_own() {
        let zero = "0".repeat(32);
        let line = |to: &str, prefix: &str, name: &str| {
            format!("{to} {prefix} {zero} 00 {zero} 00000100 00000001 00000000 00000001 {name}\n")
        };
        let to = format!("fd00{}", "0".repeat(28));
        let table = line(&to, "40", "eth1") + &line(&zero, "00", "lo") + &line(&zero, "00", "eth0");
        assert_eq!(names(&table, &["fd00::/64"], ipv6_route), ["eth0", "eth1"]);
        assert_eq!(names(&table, &["fd00::7/128"], ipv6_route), ["eth0", "eth1"], "one node of a network");
        assert_eq!(names(&table, &["10.0.0.0/8"], ipv6_route), ["eth0"]);
    }
}
