// SPDX-License-Identifier: GPL-2.0-only
//! What counts as a message besides what comes by sockets and RDMA: what wakes another task of the same job.

use std::str::FromStr;

use cosched_rules::intf;
use cosched_rules::rows::Scalar;

/// A set of them; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrivals(u32);

const KINDS: [(&str, intf::cosched_endpoint); 3] = [
    ("futex", intf::cosched_endpoint_COSCHED_ENDPOINT_futex),
    ("pipe", intf::cosched_endpoint_COSCHED_ENDPOINT_pipe),
    ("eventfd", intf::cosched_endpoint_COSCHED_ENDPOINT_eventfd),
];

impl FromStr for Arrivals {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let bit = |name| KINDS.iter().find(|(known, _)| *known == name).map(|(_, kind)| 1 << kind);
        let bits = text.split(',').map(bit).try_fold(0, |bits, bit| Some(bits | bit?));
        bits.map(Arrivals).ok_or_else(|| "it takes futex, pipe and eventfd, with commas between them".into())
    }
}

impl Scalar for Arrivals {}

impl Arrivals {
    /// Whether there are any.
    pub fn any(self) -> bool {
        self.0 != 0
    }

    /// As the BPF side reads it: bits 1 << enum cosched_endpoint.
    pub fn to_bpf(self) -> u32 {
        self.0
    }
}
