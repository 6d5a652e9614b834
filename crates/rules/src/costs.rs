// SPDX-License-Identifier: GPL-2.0-only
//! What messages and switches cost on a node.

use serde::{Deserialize, Serialize};

/// What messages and switches cost on this node, us: parameters of the LogP model, and W.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Costs {
    /// L: from the end of a send to the time when the message can be received; 0 to W. A node with one CPU has 0:
    /// there a message has arrived when its send returns.
    pub latency_us: f64,
    /// o: CPU time to send or to receive a message; more than 0.
    pub overhead_us: f64,
    /// W: from a message's arrival until the task that slept for it runs; at least 0.05.
    pub switch_us: f64,
}

impl Costs {
    /// What messages and switches may cost on any node.
    pub const ASSUMED: Costs = Costs { latency_us: 20.0, overhead_us: 5.0, switch_us: 10.0 };
}
