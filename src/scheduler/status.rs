// SPDX-License-Identifier: GPL-2.0-only
//! What the scheduler says of itself.

use anyhow::Result;
use libbpf_rs::MapCore;
use libbpf_rs::skel::Skel;
use scx_utils::NR_CPU_IDS;

use super::{Scheduler, Session};
use crate::bpf::hooks::HookStates;
use crate::hints::Hinted;
use crate::jobs::About;
use crate::jobs::totals;
use crate::node::process::ProcessView;
use crate::prefetch::Port;
use crate::snapshot::{self, GangSkew, Histogram, Memory, Runnable, Snapshot};
use crate::wire;

impl Scheduler<'_, '_> {
    /// All that is known of it now.
    pub(super) fn snapshot(&mut self) -> Result<Snapshot> {
        let mut totals = self.session.past.clone();
        totals.add(&self.read()?);
        let process = ProcessView::now();
        let memory = Memory { resident_bytes: process.resident_bytes, maps_bytes: self.maps_bytes() };
        let runnable = totals::runnable(&self.skel.maps.cpu_ctxs, *NR_CPU_IDS)?;
        let kernel_events = self.session.kernel_events();
        let Session { top, owners, unkept, .. } = &mut *self.session;
        let limits_not_kept = unkept.lines().to_vec();
        let replaced = totals.jobs.keys().copied().filter(|id| owners.is_replaced(*id)).collect();
        let about = |id| About { name: owners.name(id), cpu_waiting_seconds: owners.cpu_waiting_seconds(id) };
        let jobs = top.view(&totals.jobs, &replaced, about);
        Ok(Snapshot {
            version: crate::VERSION.into(),
            kernel: self.session.kernel.clone(),
            pid: std::process::id(),
            uptime_seconds: self.session.started.elapsed().as_secs_f64(),
            starting: self.struct_ops.is_none(),
            policy: self.session.policy.view(),
            costs: self.session.policy.costs(&self.session.costs),
            job_by: self.session.settings.values.job_by,
            limits_not_kept,
            hooks: self.hook_states(),
            memory,
            process,
            kernel_events,
            runnable: Runnable::new(&runnable, online_cpus()),
            counters: snapshot::counters(&totals),
            endpoint_arrivals: snapshot::endpoint_arrivals(&totals),
            granted: snapshot::decisions(&totals, true),
            denied: snapshot::decisions(&totals, false),
            arrival_to_run: Histogram::from_powers_of_two(&totals.latency_buckets, totals.latency_sum_ns),
            gang_skew: GangSkew::of(&totals),
            clock_ahead_seconds: self.clock_ahead_seconds(),
            prefetch: self.prefetch.as_ref().and(self.session.port.as_ref()).map(Port::view),
            hinted: self.session.settings.values.hints_socket.as_ref().map(|_| self.hinted()),
            jobs,
        })
    }

    fn hinted(&self) -> Hinted {
        let threads = self.skel.maps.bss_data.as_ref().map_or(0, |bss| bss.hinted_threads);
        self.hints.hinted(threads)
    }

    fn clock_ahead_seconds(&self) -> f64 {
        self.skel.maps.bss_data.as_ref().map_or(0.0, |bss| bss.beat_ahead_ns as f64 / 1e9)
    }

    fn hook_states(&self) -> HookStates {
        let mut states = self.hooks.states().clone();
        states.extend(self.module_hooks.states());
        if self.session.settings.wire.is_some() {
            states.extend(wire::states(self.session.wire.as_ref()));
        }
        states
    }

    fn maps_bytes(&self) -> u64 {
        self.skel.object().maps().filter_map(|map| map.query_fdinfo().ok()?.memlock).sum()
    }
}

/// How many CPUs are online.
fn online_cpus() -> usize {
    // SAFETY: asks for a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    usize::try_from(online).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_is_online() {
        assert!((1..=*NR_CPU_IDS).contains(&online_cpus()));
    }
}
