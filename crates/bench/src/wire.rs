// SPDX-License-Identifier: GPL-2.0-only
//! What the nodes of an experiment on one machine talk through: the loopback interface, or a network namespace for
//! each node, with a wire to a hub that has a latency and a loss.

use std::ffi::OsStr;
use std::net::Ipv4Addr;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::signal::Signal;

use crate::child;

/// What is between two nodes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wire {
    Loopback,
    /// One way from node to node: half of it before the hub and half of it after.
    Veth {
        latency_us: u32,
        loss_percent: f64,
    },
}

impl Wire {
    /// As the flags have it: without any, the nodes share the loopback interface.
    pub fn of(latency_us: Option<u32>, loss_percent: Option<f64>) -> Wire {
        match (latency_us, loss_percent) {
            (None, None) => Wire::Loopback,
            (latency_us, loss_percent) => {
                Wire::Veth { latency_us: latency_us.unwrap_or(0), loss_percent: loss_percent.unwrap_or(0.0) }
            }
        }
    }
}

/// A chance in per cent, for the command line.
pub fn parse_percent(text: &str) -> Result<f64> {
    let percent = text.parse().ok().filter(|percent| (0.0..=50.0).contains(percent));
    percent.with_context(|| format!("'{text}' is no loss: a number from 0 to 50 is wanted, in per cent"))
}

/// The name of the hub, and the beginning of the names of the namespaces and of the hub's ends of their wires.
const HUB: &str = "cosched";

/// Namespaces with a wire each, which go with this value.
pub struct Wires {
    namespaces: Vec<String>,
}

impl Wires {
    /// Where the coordinator is.
    pub const HUB: Ipv4Addr = Ipv4Addr::new(10, 78, 0, 254);

    /// None for the loopback interface, which is there.
    pub fn lay(wire: Wire, nodes: usize) -> Result<Option<Wires>> {
        let Wire::Veth { latency_us, loss_percent } = wire else { return Ok(None) };
        let namespaces = (0..nodes).map(|node| format!("{HUB}{node}")).collect();
        // Made before anything can fail, so that whatever is there is taken away again.
        let wires = Wires { namespaces };
        ip(&format!("link add {HUB} type bridge"))?;
        ip(&format!("address add {}/24 dev {HUB}", Wires::HUB))?;
        ip(&format!("link set {HUB} up"))?;
        for (node, namespace) in wires.namespaces.iter().enumerate() {
            ip(&format!("netns add {namespace}"))?;
            ip(&format!("link add {namespace} type veth peer name eth0 netns {namespace}"))?;
            ip(&format!("link set {namespace} master {HUB} up"))?;
            ip(&format!("-n {namespace} address add 10.78.0.{}/24 dev eth0", node + 1))?;
            ip(&format!("-n {namespace} link set lo up"))?;
            ip(&format!("-n {namespace} link set eth0 up"))?;
            let netem = format!("netem delay {:.1}us loss {loss_percent}% limit 10000", f64::from(latency_us) / 2.0);
            run("tc", &format!("-n {namespace} qdisc add dev eth0 root {netem}"))?;
            run("tc", &format!("qdisc add dev {namespace} root {netem}"))?;
        }
        Ok(Some(wires))
    }

    pub fn namespace(&self, node: usize) -> &str {
        &self.namespaces[node]
    }
}

impl Drop for Wires {
    fn drop(&mut self) {
        // What was not made cannot be taken away, and there is nobody to tell.
        for namespace in &self.namespaces {
            let _ = ip(&format!("netns delete {namespace}"));
        }
        let _ = ip(&format!("link delete {HUB}"));
    }
}

/// `scx_cosched` with `args` in a network namespace. ("ip netns exec" would hide /sys/fs/cgroup from it.)
pub fn command_in<S: AsRef<OsStr>>(namespace: &str, args: impl IntoIterator<Item = S>) -> Result<Command> {
    let mut command = child::other_command("nsenter", Signal::SIGTERM);
    command.arg(format!("--net=/run/netns/{namespace}"));
    command.arg(child::scx_cosched()?).args(args);
    Ok(command)
}

fn ip(arguments: &str) -> Result<()> {
    run("ip", arguments)
}

fn run(program: &str, arguments: &str) -> Result<()> {
    let output = Command::new(program).args(arguments.split(' ')).output();
    let output = output.with_context(|| format!("cannot run '{program}': install iproute2"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(!said.contains("not permitted"), "wires between nodes need root");
    if !output.status.success() {
        bail!("'{program} {arguments}' failed: {}", said.trim());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_flag_is_loopback() {
        assert_eq!(Wire::of(None, None), Wire::Loopback);
        assert_eq!(Wire::of(Some(50), None), Wire::Veth { latency_us: 50, loss_percent: 0.0 });
        assert_eq!(Wire::of(None, Some(0.1)), Wire::Veth { latency_us: 0, loss_percent: 0.1 });
    }

    #[test]
    fn a_loss_is_a_number_of_per_cent() {
        assert_eq!(parse_percent("0.5").unwrap(), 0.5);
        for bad in ["", "x", "-1", "51", "nan", "inf"] {
            assert!(parse_percent(bad).unwrap_err().to_string().contains("from 0 to 50"), "{bad}");
        }
    }
}
