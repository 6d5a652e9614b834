// SPDX-License-Identifier: GPL-2.0-only
//! What prefetching is told.

use crate::bpf::intf;
use crate::given::{Fault, Given};
use crate::limits::Range;

/// How many correspondents of a task are asked for when its slice begins.
pub const CORRESPONDENTS: Range<u32> = Range::new(0, intf::COSCHED_PREFETCH_MAX, "a whole number");
/// A port of UDP.
pub const PORT: Range<u16> = Range::new(1, u16::MAX, "a whole number");
/// The port unless told otherwise.
pub const DEFAULT_PORT: u16 = 9938;

/// Everything that prefetching needs besides what epochs on the wire do, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefetchSettings {
    /// How many correspondents of a task are asked for when its slice begins: 1 to 8.
    pub correspondents: u32,
    /// The port of UDP, the same on all nodes.
    pub port: u16,
}

impl PrefetchSettings {
    /// What was given of `--prefetch` and `--prefetch-port`, if it is wanted.
    ///
    /// # Errors
    /// Names a setting that has no effect without the other, or lacks the key.
    pub fn new(
        wanted: Option<&Given<u32>>,
        port: Option<&Given<u16>>,
        has_key: bool,
    ) -> Result<Option<PrefetchSettings>, Fault> {
        let Some(wanted) = wanted.filter(|wanted| wanted.value > 0) else {
            let message = "it has no effect without --prefetch (leave it out, or give --prefetch 1 to 8)";
            return port.map_or(Ok(None), |port| Err(port.fault("prefetch_port", message)));
        };
        if !has_key {
            let message =
                "nobody believes what is not signed (leave it out, or name the cluster's key with --cluster-key)";
            return Err(wanted.fault("prefetch", message));
        }
        let port = port.map_or(DEFAULT_PORT, |port| port.value);
        Ok(Some(PrefetchSettings { correspondents: wanted.value, port }))
    }
}
