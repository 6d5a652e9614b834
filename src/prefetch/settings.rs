// SPDX-License-Identifier: GPL-2.0-only
//! What prefetching is told.

use cosched_rules::rows::{Fault, Given, Origin};

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
    pub fn new(wanted: &Given<u32>, port: &Given<u16>, has_key: bool) -> Result<Option<PrefetchSettings>, Fault> {
        if wanted.value == 0 {
            let message = "it has no effect without --prefetch (leave it out, or give --prefetch 1 to 8)";
            return if port.origin == Origin::Default { Ok(None) } else { Err(port.fault(message)) };
        }
        if !has_key {
            let message =
                "nobody believes what is not signed (leave it out, or name the cluster's key with --cluster-key)";
            return Err(wanted.fault(message));
        }
        Ok(Some(PrefetchSettings { correspondents: wanted.value, port: port.value }))
    }
}
