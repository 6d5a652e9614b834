// SPDX-License-Identifier: GPL-2.0-only
//! Follows the trace of switches.

use std::path::Path;

use anyhow::{Result, bail};

use super::lanes::{Lanes, Window};
use crate::control::Held;
use crate::jobs::job_by::JobBy;
use crate::jobs::owners::Owners;
use crate::node::host::Host;
use crate::trace::event::{self, Event};
use crate::trace::reader::Reader;
use crate::trace::tap::Outlet;

/// How often the ring is read before keys are looked at again.
const READS_MAX: usize = 16;

/// A trace of switches that lasts.
pub struct Watch {
    reader: Reader,
    connection: Held,
    owners: Owners,
    lanes: Lanes,
}

impl Watch {
    /// Opens what the scheduler offers.
    pub fn open(outlet: &Outlet, connection: Held, job_by: JobBy) -> Result<Watch> {
        Ok(Watch {
            reader: Reader::open(outlet)?,
            connection,
            owners: Owners::new(job_by, Host::new(Path::new("/")).cgroup_root()),
            lanes: Lanes::default(),
        })
    }

    /// Takes what has come since the last look.
    pub fn follow(&mut self) -> Result<()> {
        for _ in 0..READS_MAX {
            let (events, more) = self.reader.read()?;
            for raw in &events {
                // Times stay those of CLOCK_MONOTONIC.
                self.lanes.follow(&mut Event::of(raw, self.owners.name(raw.job), 0)?);
            }
            if self.reader.lost()? > 0 {
                self.lanes.forget();
            }
            if !more {
                break;
            }
        }
        if self.connection.is_over() {
            bail!("the scheduler was loaded again or has ended");
        }
        Ok(())
    }

    /// The last `seconds`. What was before is dropped.
    pub fn window(&mut self, seconds: f64) -> Result<Window> {
        let until_ns = event::monotonic_ns()?;
        Ok(self.lanes.window(until_ns.saturating_sub((seconds * 1e9) as u64), until_ns))
    }
}
