// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF side has counted so far, summed over the CPUs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{MapCore, MapFlags};

use crate::bpf::intf::{COSCHED_JOB_OTHER, COSCHED_LATENCY_BUCKETS, cosched_cpu_stats, cosched_job_stats};
use crate::native;

/// What one job has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTotals {
    /// CPU time, ns (T_C of thesis 5.1).
    pub cpu_ns: u64,
    /// The CPU time that fair sharing would have given, ns (T_E / N).
    pub fair_ns: u64,
    /// Times that one of its tasks ran ahead of the fair order.
    pub boosts: u64,
}

impl JobTotals {
    /// Adds `other` to this.
    pub fn add(&mut self, other: &JobTotals) {
        self.cpu_ns += other.cpu_ns;
        self.fair_ns += other.fair_ns;
        self.boosts += other.boosts;
    }

    /// This less `other`, which is part of it.
    pub fn less(&self, other: &JobTotals) -> JobTotals {
        JobTotals {
            cpu_ns: self.cpu_ns.saturating_sub(other.cpu_ns),
            fair_ns: self.fair_ns.saturating_sub(other.fair_ns),
            boosts: self.boosts.saturating_sub(other.boosts),
        }
    }
}

/// Everything that has been counted.
#[derive(Clone, Debug)]
pub struct Totals {
    /// In the order of [`native::counters`].
    pub counters: Vec<u64>,
    /// In the order of [`native::reasons`].
    pub decisions: Vec<u64>,
    /// Bucket i counts waits of at most 2^i us, the last one the rest.
    pub latency_buckets: Vec<u64>,
    /// The sum of all waits, ns.
    pub latency_sum_ns: u64,
    /// By job id; [`COSCHED_JOB_OTHER`] holds what belongs to no job any more.
    pub jobs: BTreeMap<u64, JobTotals>,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            counters: vec![0; native::counters().len()],
            decisions: vec![0; native::reasons().len()],
            latency_buckets: vec![0; COSCHED_LATENCY_BUCKETS as usize],
            latency_sum_ns: 0,
            jobs: BTreeMap::new(),
        }
    }
}

/// # Safety
/// A type that any bytes make a valid value of.
unsafe trait Plain: Copy {}
// SAFETY: integers only.
unsafe impl Plain for cosched_cpu_stats {}
// SAFETY: integers only.
unsafe impl Plain for cosched_job_stats {}

fn from_bytes<T: Plain>(bytes: &[u8]) -> Result<T> {
    if bytes.len() < size_of::<T>() {
        return Err(anyhow!("the kernel returned {} bytes for {}", bytes.len(), std::any::type_name::<T>()));
    }
    // SAFETY: there are enough bytes, and any bytes are a valid T.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

fn add_each(sums: &mut [u64], values: &[u64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

impl Totals {
    /// Reads the maps `cpu_stats` and `jobs`.
    ///
    /// # Errors
    /// If the kernel does not hand out a map's content.
    pub fn read(cpu_stats: &impl MapCore, jobs: &impl MapCore) -> Result<Totals> {
        let mut totals = Totals::default();
        let cpus = cpu_stats.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).context("cannot read the counters")?;
        for bytes in cpus.unwrap_or_default() {
            let cpu: cosched_cpu_stats = from_bytes(&bytes)?;
            add_each(&mut totals.counters, &cpu.counters);
            add_each(&mut totals.decisions, &cpu.decisions);
            add_each(&mut totals.latency_buckets, &cpu.latency_buckets);
            totals.latency_sum_ns += cpu.latency_sum_ns;
        }
        for key in jobs.keys() {
            let Ok(id) = <[u8; 8]>::try_from(key.as_slice()) else { continue };
            // A job can be gone between the listing and the look.
            let Some(cpus) = jobs.lookup_percpu(&key, MapFlags::ANY).context("cannot read a job's counters")? else {
                continue;
            };
            let mut job = JobTotals::default();
            for bytes in cpus {
                let cosched_job_stats { cpu_ns, fair_ns, boosts } = from_bytes(&bytes)?;
                job.add(&JobTotals { cpu_ns, fair_ns, boosts });
            }
            totals.jobs.insert(u64::from_ne_bytes(id), job);
        }
        Ok(totals)
    }

    /// Adds `other` to this.
    pub fn add(&mut self, other: &Totals) {
        add_each(&mut self.counters, &other.counters);
        add_each(&mut self.decisions, &other.decisions);
        add_each(&mut self.latency_buckets, &other.latency_buckets);
        self.latency_sum_ns += other.latency_sum_ns;
        for (id, job) in &other.jobs {
            self.jobs.entry(*id).or_default().add(job);
        }
    }

    /// The job with `id` is no more: what it used, and `rest` that is not in here yet, is counted under
    /// "other" from now on, so that no sum ever shrinks.
    pub fn bury(&mut self, id: u64, rest: &JobTotals) {
        let mut used = self.jobs.remove(&id).unwrap_or_default();
        used.add(rest);
        self.jobs.entry(u64::from(COSCHED_JOB_OTHER)).or_default().add(&used);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(cpu_ns: u64) -> JobTotals {
        JobTotals { cpu_ns, fair_ns: 2 * cpu_ns, boosts: 1 }
    }

    #[test]
    fn a_burial_keeps_the_sum() {
        let mut totals = Totals::default();
        totals.jobs.insert(7, job(10));
        totals.bury(7, &job(5));
        assert_eq!(totals.jobs, BTreeMap::from([(0, JobTotals { cpu_ns: 15, fair_ns: 30, boosts: 2 })]));
    }

    #[test]
    fn short_values_are_an_error() {
        assert!(from_bytes::<cosched_job_stats>(&[0; 23]).is_err());
        assert_eq!(from_bytes::<cosched_job_stats>(&[1; 24]).unwrap().boosts, 0x0101_0101_0101_0101);
    }
}
