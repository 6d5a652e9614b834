// SPDX-License-Identifier: GPL-2.0-only
//! The maps of the scheduler must not fill: jobs that are gone leave theirs, and if one is full all the same, that is
//! said.

use std::time::Instant;

use anyhow::{Context, Result};
use libbpf_rs::MapCore;
use log::warn;

use super::Scheduler;
use crate::jobs::totals::Totals;
use cosched_rules::intf::COSCHED_JOB_OTHER;
use cosched_rules::native::{self, Counter};

impl Scheduler<'_, '_> {
    /// Warns of maps that are full, of each once.
    fn warn_of_full_maps(&mut self, totals: &Totals) {
        for counter in full_maps(totals) {
            if self.session.full.insert(counter.name) {
                warn!("a map is full, and the rest goes on: {} ({})", counter.help, counter.name);
            }
        }
    }

    /// Counts under "other" what jobs have used whose owners are gone and that have used nothing since the
    /// last look, and takes them out of the map.
    pub(super) fn bury_the_gone(&mut self) -> Result<()> {
        let before = std::mem::replace(&mut self.buried_at, Instant::now());
        let totals = self.read()?;
        self.warn_of_full_maps(&totals);
        let live = totals.jobs;
        let mut used = self.session.past.jobs.clone();
        live.iter().for_each(|(id, job)| used.entry(*id).or_default().add(job));

        let idle = used.iter().filter(|(id, now)| self.used_then.get(id) == Some(now)).map(|(id, _)| *id);
        let other = u64::from(COSCHED_JOB_OTHER);
        let gone: Vec<u64> = idle.filter(|id| *id != other && self.session.owners.is_gone(*id, before)).collect();
        for id in gone {
            let rest = live.get(&id).copied();
            if rest.is_some() {
                self.skel.maps.jobs.delete(&id.to_ne_bytes()).context("cannot delete a job")?;
            }
            self.session.past.bury(id, &rest.unwrap_or_default());
            self.session.owners.forget(id);
            used.remove(&id);
        }
        self.used_then = used;
        Ok(())
    }
}

/// The counters that say of a map that it had no place left.
fn full_maps(totals: &Totals) -> impl Iterator<Item = &'static Counter> {
    let counted = native::counters().iter().zip(&totals.counters);
    counted.filter(|(counter, count)| counter.name.ends_with("_full") && **count > 0).map(|(counter, _)| counter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_map_is_noticed() {
        let mut totals = Totals::default();
        assert_eq!(full_maps(&totals).count(), 0);
        totals.counters.fill(1);
        let names: Vec<&str> = full_maps(&totals).map(|c| c.name).collect();
        assert!(names.contains(&"jobs_full") && names.iter().all(|n| n.ends_with("_full")), "{names:?}");
    }
}
