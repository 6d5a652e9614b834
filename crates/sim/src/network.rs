// SPDX-License-Identifier: GPL-2.0-only
//! The network: every message takes the same time L to whichever process it goes, the sender's own included; there is
//! no congestion, no loss, and no processor time for sending or receiving (Dusseau 3.2; Arpaci-Dusseau 4).

use crate::engine::{Lane, Queue};

/// How messages get about.
#[derive(Clone, Copy, Debug)]
pub struct Network {
    /// L, the latency, in ns.
    pub latency_ns: u64,
    /// Where the engine keeps what is under way.
    pub lane: Lane,
}

impl Network {
    /// Sends what becomes `arrival` at its destination.
    #[inline]
    pub fn send<E: Copy>(&self, queue: &mut Queue<E>, arrival: E) {
        queue.after(self.lane, self.latency_ns, arrival);
    }
}
