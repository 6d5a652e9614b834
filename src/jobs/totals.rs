// SPDX-License-Identifier: GPL-2.0-only
//! What the BPF side has counted so far, summed over the CPUs.

use std::collections::BTreeMap;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::{MapCore, MapFlags};
use nix::sched::sched_getcpu;

use crate::bpf::types::cpu_ctx;
use cosched_rules::intf::{COSCHED_JOB_OTHER, COSCHED_LATENCY_BUCKETS, cosched_cpu_stats, cosched_job_stats};
use cosched_rules::native;

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
    /// The counter `arrivals`, in the order of [`native::endpoints`].
    pub endpoint_arrivals: Vec<u64>,
    /// In the order of [`native::reasons`].
    pub decisions: Vec<u64>,
    /// Bucket i counts waits of at most 2^i us, the last one the rest.
    pub latency_buckets: Vec<u64>,
    /// The sum of all waits, ns.
    pub latency_sum_ns: u64,
    /// By how much the turns of a gang's rows began late, all together, ns.
    pub skew_sum_ns: u64,
    /// And at most, ns.
    pub skew_max_ns: u64,
    /// By job id; [`COSCHED_JOB_OTHER`] holds what belongs to no job any more.
    pub jobs: BTreeMap<u64, JobTotals>,
}

impl Default for Totals {
    fn default() -> Self {
        Totals {
            counters: vec![0; native::counters().len()],
            endpoint_arrivals: vec![0; native::endpoints().len()],
            decisions: vec![0; native::reasons().len()],
            latency_buckets: vec![0; COSCHED_LATENCY_BUCKETS as usize],
            latency_sum_ns: 0,
            skew_sum_ns: 0,
            skew_max_ns: 0,
            jobs: BTreeMap::new(),
        }
    }
}

/// A type that the BPF side writes.
///
/// # Safety
/// Any bytes make a valid value of it.
pub unsafe trait Plain: Copy {}
// SAFETY: integers only.
unsafe impl Plain for cosched_cpu_stats {}
// SAFETY: integers only.
unsafe impl Plain for cosched_job_stats {}
// SAFETY: integers only, and its padding is of bytes.
unsafe impl Plain for cpu_ctx {}

/// What the BPF side has written.
///
/// # Errors
/// If there are too few bytes: it was written by another version.
pub fn from_bytes<T: Plain>(bytes: &[u8]) -> Result<T> {
    if bytes.len() < size_of::<T>() {
        return Err(anyhow!("the kernel returned {} bytes for {}", bytes.len(), std::any::type_name::<T>()));
    }
    // SAFETY: there are enough bytes, and any bytes are a valid T.
    Ok(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// How often `counter` (an enum cosched_counter) has been counted so far, from the map `cpu_stats`.
///
/// # Errors
/// If the kernel does not hand out the map's content.
pub fn counter(cpu_stats: &impl MapCore, counter: u32) -> Result<u64> {
    let cpus = cpu_stats.lookup_percpu(&0u32.to_ne_bytes(), MapFlags::ANY).context("cannot read the counters")?;
    let of_cpu = |bytes: Vec<u8>| Ok(from_bytes::<cosched_cpu_stats>(&bytes)?.counters[counter as usize]);
    cpus.unwrap_or_default().into_iter().map(of_cpu).sum()
}

fn add_each(sums: &mut [u64], values: &[u64]) {
    for (sum, value) in sums.iter_mut().zip(values) {
        *sum += value;
    }
}

/// How many tasks are runnable on each of the first `nr_cpus` CPUs just now, from the map `cpu_ctxs`. The thread that
/// asks is not counted: it would make a CPU busy that is idle but for the question.
///
/// # Errors
/// If the kernel does not hand out the map's content.
pub fn runnable(cpu_ctxs: &impl MapCore, nr_cpus: usize) -> Result<Vec<u32>> {
    let own = sched_getcpu().context("cannot tell on which CPU this runs")?;
    let count = |cpu: usize| {
        let found = cpu_ctxs.lookup(&(cpu as u32).to_ne_bytes(), MapFlags::ANY).context("cannot read a CPU's state")?;
        let cctx: cpu_ctx = from_bytes(&found.unwrap_or_default())?;
        Ok(cctx.nr_runnable.saturating_sub(u32::from(cpu == own)))
    };
    (0..nr_cpus).map(count).collect()
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
            add_each(&mut totals.endpoint_arrivals, &cpu.endpoint_arrivals);
            add_each(&mut totals.decisions, &cpu.decisions);
            add_each(&mut totals.latency_buckets, &cpu.latency_buckets);
            totals.latency_sum_ns += cpu.latency_sum_ns;
            totals.skew_sum_ns += cpu.skew_sum_ns;
            totals.skew_max_ns = totals.skew_max_ns.max(cpu.skew_max_ns);
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
        add_each(&mut self.endpoint_arrivals, &other.endpoint_arrivals);
        add_each(&mut self.decisions, &other.decisions);
        add_each(&mut self.latency_buckets, &other.latency_buckets);
        self.latency_sum_ns += other.latency_sum_ns;
        self.skew_sum_ns += other.skew_sum_ns;
        self.skew_max_ns = self.skew_max_ns.max(other.skew_max_ns);
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
    use libbpf_rs::libbpf_sys::bpf_map_create_opts;
    use libbpf_rs::{MapHandle, MapType};
    use scx_utils::NR_CPU_IDS;

    #[test]
    fn runnable_tasks_are_counted_without_the_one_that_counts() {
        let size = size_of::<bpf_map_create_opts>() as u64;
        let opts = bpf_map_create_opts { sz: size, ..Default::default() };
        let (nr_cpus, value_size) = (*NR_CPU_IDS, size_of::<cpu_ctx>());
        let map = MapHandle::create(MapType::Array, Some("cpu_test"), 4, value_size as u32, nr_cpus as u32, &opts)
            .expect("this test makes a BPF map, as root");
        let cctx = cpu_ctx { nr_runnable: 3, curr_effective: u64::MAX, ..Default::default() };
        // SAFETY: integers, and padding that is written out.
        let bytes = unsafe { std::slice::from_raw_parts((&raw const cctx).cast::<u8>(), value_size) };
        (0..nr_cpus as u32).for_each(|cpu| map.update(&cpu.to_ne_bytes(), bytes, MapFlags::ANY).unwrap());
        let mut counts = runnable(&map, nr_cpus).unwrap();
        counts.sort();
        assert_eq!(counts, [vec![2], vec![3; nr_cpus - 1]].concat());
        assert!(runnable(&map, nr_cpus + 1).is_err());
    }

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
    fn of_two_runs_the_greatest_skew_counts() {
        let mut totals = Totals { skew_sum_ns: 10, skew_max_ns: 7, ..Totals::default() };
        totals.add(&Totals { skew_sum_ns: 5, skew_max_ns: 3, ..Totals::default() });
        assert_eq!((totals.skew_sum_ns, totals.skew_max_ns), (15, 7));
    }

    #[test]
    fn short_values_are_an_error() {
        assert!(from_bytes::<cosched_job_stats>(&[0; 23]).is_err());
        assert_eq!(from_bytes::<cosched_job_stats>(&[1; 24]).unwrap().boosts, 0x0101_0101_0101_0101);
    }
}
