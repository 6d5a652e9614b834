// SPDX-License-Identifier: GPL-2.0-only
//! The client's side of a trace: reads the ring that the loader made.

use std::sync::mpsc::{Receiver, channel};

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{MapHandle, RingBuffer, RingBufferBuilder};

use super::tap::Outlet;
use crate::jobs::totals::{self, Plain};
use cosched_rules::intf::{cosched_counter_COSCHED_COUNTER_trace_lost as TRACE_LOST, cosched_event};

/// How many events are read at a time: so often a reader looks whether it is to end.
const BATCH: usize = 4096;

// SAFETY: integers only.
unsafe impl Plain for cosched_event {}

/// The events of a trace, as the BPF side writes them.
pub struct Reader {
    ring: RingBuffer<'static>,
    events: Receiver<Result<cosched_event>>,
    stats: MapHandle,
    lost: u64,
}

impl Reader {
    /// Opens what the loader offers.
    ///
    /// # Errors
    /// If it is not to be had.
    pub fn open(outlet: &Outlet) -> Result<Reader> {
        let open = |id| MapHandle::from_map_id(id).context("cannot open what the scheduler writes (run it as root)");
        let (ring, stats) = (open(outlet.ring)?, open(outlet.stats)?);
        let (sender, events) = channel();
        let mut builder = RingBufferBuilder::new();
        // Nobody is left to send to only when this is dropped.
        builder.add(&ring, move |bytes| i32::from(sender.send(totals::from_bytes(bytes)).is_err()))?;
        let ring = builder.build().context("cannot read the ring of events")?;
        let lost = totals::counter(&stats, TRACE_LOST)?;
        Ok(Reader { ring, events, stats, lost })
    }

    /// What has come since the last look, and whether there may be more.
    ///
    /// # Errors
    /// If the scheduler writes what this program does not know.
    pub fn read(&mut self) -> Result<(Vec<cosched_event>, bool)> {
        let n = self.ring.consume_raw_n(BATCH);
        let n = usize::try_from(n).map_err(|_| anyhow!("cannot read the ring of events: error {}", -n))?;
        let events: Result<Vec<_>> = self.events.try_iter().collect();
        Ok((events.context("the running scheduler is of another version: restart it")?, n >= BATCH))
    }

    /// How many events were lost since this was last asked.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn lost(&mut self) -> Result<u64> {
        let lost = totals::counter(&self.stats, TRACE_LOST)?;
        // With epochs on the wire the count is in a map that begins anew when a CPU comes or goes.
        Ok(lost.saturating_sub(std::mem::replace(&mut self.lost, lost)))
    }
}
