// SPDX-License-Identifier: GPL-2.0-only
//! The loader's side of a trace: it makes a ring, has the BPF side write to it, and ends that when the client is gone.
//!
//! The client reads the ring itself, as root may; the loader has other things to do. What keeps a trace up is the
//! client's connection to the control socket: the kernel closes it whatever becomes of the client, so nothing has to be
//! renewed, and a client that is killed does not leave the scheduler writing. In turn the connection ends with the
//! scheduler.

use std::os::fd::{AsFd, AsRawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Weak};

use anyhow::{Context, Result, anyhow};
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapCore, MapFlags, MapHandle, MapType};
use serde::{Deserialize, Serialize};

use super::event::Wanted;
use cosched_rules::intf::COSCHED_TRACE_BYTES;

/// The only place in the map of rings.
const PLACE: [u8; 4] = 0u32.to_ne_bytes();

/// Somebody who traces, until the last of these is dropped.
#[derive(Debug)]
pub struct Client {
    /// The process.
    pub pid: i32,
    /// What it wants to see.
    pub wanted: Wanted,
}

/// Where a client finds what it reads: maps by number.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outlet {
    /// The ring of events.
    pub ring: u32,
    /// The counters, among them that of lost events.
    pub stats: u32,
}

/// A trace that has begun.
#[derive(Debug)]
pub struct Opened {
    /// Where it comes out.
    pub outlet: Outlet,
    /// Can be upgraded while the scheduler runs.
    pub alive: Weak<()>,
}

/// Lets one client at a time have what the BPF side writes.
#[derive(Debug, Default)]
pub struct Tap {
    client: Weak<Client>,
    /// There is one while the BPF side writes.
    ring: Option<MapHandle>,
    alive: Arc<()>,
}

impl Tap {
    /// Makes a ring, puts it into the map `rings` and sets `flag`, which has the BPF side write what `client` wants.
    ///
    /// # Errors
    /// Names the client that is there already, or says what the kernel refuses.
    pub fn open(
        &mut self,
        client: &Arc<Client>,
        rings: &impl MapCore,
        stats: &impl MapCore,
        flag: &AtomicU32,
    ) -> Result<Opened> {
        if let Some(other) = self.client.upgrade() {
            return Err(anyhow!("process {} traces already (one can at a time: end that one first)", other.pid));
        }
        self.close(rings, flag);
        let ring = new_ring().context("cannot make a ring for the trace")?;
        let fd = ring.as_fd().as_raw_fd().to_ne_bytes();
        rings.update(&PLACE, &fd, MapFlags::ANY).context("cannot hand the ring to the scheduler")?;
        let outlet = Outlet { ring: id_of(&ring)?, stats: id_of(stats)? };
        flag.store(client.wanted.mask(), Ordering::Relaxed);
        self.client = Arc::downgrade(client);
        self.ring = Some(ring);
        Ok(Opened { outlet, alive: Arc::downgrade(&self.alive) })
    }

    /// Ends the trace if its client is gone.
    pub fn close_if_left(&mut self, rings: &impl MapCore, flag: &AtomicU32) {
        if self.ring.is_some() && self.client.strong_count() == 0 {
            self.close(rings, flag);
        }
    }

    fn close(&mut self, rings: &impl MapCore, flag: &AtomicU32) {
        flag.store(0, Ordering::Relaxed);
        // There is none before the first trace. One that stays is replaced by the next.
        let _ = rings.delete(&PLACE);
        self.ring = None;
    }
}

fn new_ring() -> libbpf_rs::Result<MapHandle> {
    let opts = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as u64, ..Default::default() };
    MapHandle::create(MapType::RingBuf, Some("trace_ring"), 0, 0, COSCHED_TRACE_BYTES, &opts)
}

fn id_of(map: &impl MapCore) -> Result<u32> {
    Ok(map.info().context("cannot tell the number of a map")?.info.id)
}
