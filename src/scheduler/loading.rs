// SPDX-License-Identifier: GPL-2.0-only
//! Loads the BPF scheduler: opens the object, sets what must be set before the load, and loads it, without
//! the hooks if it does not load with them.

use std::mem::MaybeUninit;

use anyhow::{Context, Result, anyhow};
use libbpf_rs::skel::OpenSkel;
use libbpf_rs::{Btf, MapCore, MapFlags, MapType, OpenObject};
use log::warn;
use scx_utils::libbpf_clap_opts::LibbpfOpts;
use scx_utils::{NR_CPU_IDS, Topology, scx_ops_load, scx_ops_open};

use crate::bpf::hooks;
use crate::bpf::{BpfSkel, BpfSkelBuilder, OpenBpfSkel, lru_entries, types};
use crate::node::cpu_max;
use crate::wire::Wire;
use cosched_rules::intf;
use cosched_rules::report::one_line;

/// What the scheduler has to know before it starts.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// The policy to start with.
    pub policy: intf::cosched_policy,
    /// enum cosched_job_by.
    pub job_by: u32,
    /// What counts as a message from a task that wakes another one of its job, as bits 1 << enum cosched_endpoint.
    pub arrivals: u32,
    /// Size of the debug dump after an error, bytes; 0 is the kernel's default.
    pub exit_dump_len: u32,
    /// How many correspondents of a task are asked for ahead of messages; 0: there is no prefetch.
    pub prefetch: u32,
    /// The kernel lets BPF programs set timers.
    pub timers: bool,
    /// Do not warn of missing hooks: they have been warned of.
    pub quiet: bool,
}

/// Where a loaded object lives: a place for each of the two attempts.
#[derive(Default)]
pub struct Storage {
    with_hooks: Place,
    without_hooks: Place,
}

struct Place(MaybeUninit<OpenObject>);

impl Default for Place {
    fn default() -> Self {
        Place(MaybeUninit::uninit())
    }
}

/// Loads the scheduler into the kernel. It does not run yet.
///
/// # Errors
/// If it loads neither with hooks nor without.
pub fn load<'a>(start: &Start, wire: Option<&Wire>, storage: &'a mut Storage) -> Result<BpfSkel<'a>> {
    let btf = Btf::from_vmlinux().context("cannot read the kernel's BTF")?;
    let error = match attempt(start, wire, &btf, true, &mut storage.with_hooks.0) {
        Ok(skel) => return Ok(skel),
        Err(error) => error,
    };
    let skel = attempt(start, wire, &btf, false, &mut storage.without_hooks.0)
        .map_err(|e| anyhow!("{} (run -v shows what the verifier says)", one_line(&format!("{e:#}"))))?;
    warn!(
        "the hooks do not load, so no message is seen and nothing is boosted: {} (run -v shows what the verifier says)",
        one_line(&format!("{error:#}"))
    );
    Ok(skel)
}

fn attempt<'a>(
    start: &Start,
    wire: Option<&Wire>,
    btf: &Btf<'_>,
    with_hooks: bool,
    place: &'a mut MaybeUninit<OpenObject>,
) -> Result<BpfSkel<'a>> {
    let mut skel = open(place)?;
    // The first attempt has said which hooks are missing.
    hooks::prepare(skel.open_object_mut(), btf, with_hooks, start.arrivals != 0, start.quiet || !with_hooks);
    if !cpu_max::is_told(btf) {
        skel.struct_ops.cosched_ops_mut().cgroup_set_bandwidth = std::ptr::null_mut();
    }
    configure(&mut skel, start)?;
    size_maps(&mut skel)?;
    if start.prefetch == 0 {
        skel.progs.tell_prefetch.set_autoload(false);
        // Nobody writes to it; a page is the least.
        skel.maps.prefetch_ring.set_max_entries(4096).context("cannot set the size of the ring of prefetches")?;
    }
    share_maps(&mut skel, wire)?;
    let skel = finish(skel)?;
    if wire.is_some() {
        clear_maps(&skel)?;
    }
    Ok(skel)
}

fn open(place: &mut MaybeUninit<OpenObject>) -> Result<OpenBpfSkel<'_>> {
    let builder = BpfSkelBuilder::default();
    scx_ops_open!(builder, place, cosched_ops, LibbpfOpts::default().into_bpf_open_opts())
}

fn configure(skel: &mut OpenBpfSkel<'_>, start: &Start) -> Result<()> {
    skel.struct_ops.cosched_ops_mut().exit_dump_len = start.exit_dump_len;

    let bss = skel.maps.bss_data.as_mut().context("the object has no .bss")?;
    bss.policies = [to_skeleton(&start.policy); 2];
    bss.policy_now = 0;

    let rodata = skel.maps.rodata_data.as_mut().context("the object has no .rodata")?;
    rodata.nr_cpu_ids = *NR_CPU_IDS as u32;
    rodata.job_by = start.job_by;
    rodata.has_timers = start.timers.into();
    rodata.arrivals_wanted = start.arrivals;
    rodata.prefetch_max = start.prefetch;
    set_calls(&mut rodata.receive_calls, RECEIVE_CALLS);
    set_calls(&mut rodata.poll_calls, POLL_CALLS);
    set_calls(&mut rodata.pollfd_calls, POLLFD_CALLS);
    set_calls(&mut rodata.fd_set_calls, FD_SET_CALLS);
    set_calls(&mut rodata.futex_calls, FUTEX_CALLS);
    set_calls(&mut rodata.write_calls, WRITE_CALLS);
    set_calls(&mut rodata.send_calls, SEND_CALLS);
    match Topology::new() {
        Ok(topology) => {
            for (id, cpu) in &topology.all_cpus {
                if let (Some(llc), Some(numa)) = (rodata.llc_of.get_mut(*id), rodata.numa_of.get_mut(*id)) {
                    (*llc, *numa) = (cpu.llc_id as u32, cpu.node_id as u32);
                }
            }
        }
        Err(error) => {
            warn!("whose caches and memory CPUs use is unknown, all count as one: {}", one_line(&format!("{error:#}")))
        }
    }
    Ok(())
}

fn size_maps(skel: &mut OpenBpfSkel<'_>) -> Result<()> {
    for mut map in skel.open_object_mut().maps_mut().filter(|map| map.map_type() == MapType::LruHash) {
        let entries = lru_entries(map.max_entries());
        map.set_max_entries(entries).with_context(|| format!("cannot set the size of the map {:?}", map.name()))?;
    }
    let entries = intf::COSCHED_MAX_GROUPS * *NR_CPU_IDS as u32;
    skel.maps.group_ons.set_max_entries(entries).context("cannot set the size of the map of cgroup weights")
}

/// Has the scheduler use the maps of the programs that put epochs on the wire, if there are any.
fn share_maps(skel: &mut OpenBpfSkel<'_>, wire: Option<&Wire>) -> Result<()> {
    let Some(wire) = wire else {
        // Never looked up.
        let maps = &mut skel.maps;
        let sized = maps.wire_notes.set_max_entries(1).and_then(|()| maps.wire_datagrams.set_max_entries(1));
        return sized.context("cannot set the size of the maps of epochs");
    };
    let rodata = skel.maps.rodata_data.as_mut().context("the object has no .rodata")?;
    rodata.wire_on = 1;
    rodata.node_number = wire.node_number();
    rodata.wire_namespace = wire.namespace();
    for (name, fd) in wire.maps()? {
        let mut maps = skel.open_object_mut().maps_mut();
        let mut map = maps.find(|map| map.name() == name).with_context(|| format!("the object has no map {name}"))?;
        map.reuse_fd(fd).with_context(|| format!("cannot share the map {name}"))?;
    }
    Ok(())
}

/// The shared maps may have served another run of the scheduler, which has counted and whose state is of no use.
fn clear_maps(skel: &BpfSkel<'_>) -> Result<()> {
    let nothing = |map: &dyn MapCore| vec![0; map.value_size() as usize];
    let cpus = &skel.maps.cpu_ctxs;
    for cpu in 0..*NR_CPU_IDS as u32 {
        cpus.update(&cpu.to_ne_bytes(), &nothing(cpus), MapFlags::ANY).context("cannot clear a CPU's state")?;
    }
    let stats = &skel.maps.cpu_stats;
    let zeroes = vec![nothing(stats); libbpf_rs::num_possible_cpus().context("cannot count the CPUs")?];
    stats.update_percpu(&0u32.to_ne_bytes(), &zeroes, MapFlags::ANY).context("cannot clear the counters")
}

fn finish(mut skel: OpenBpfSkel<'_>) -> Result<BpfSkel<'_>> {
    scx_ops_load!(skel, cosched_ops, uei)
}

/// The skeleton has its own definition of the same C type.
pub fn to_skeleton(policy: &intf::cosched_policy) -> types::cosched_policy {
    // SAFETY: both are generated from struct cosched_policy, which consists of integers; transmute checks the size.
    unsafe { std::mem::transmute(*policy) }
}

/// System calls that receive from the file in their first argument.
#[rustfmt::skip]
const RECEIVE_CALLS: &[libc::c_long] = &[
    libc::SYS_read, libc::SYS_readv, libc::SYS_recvfrom, libc::SYS_recvmsg, libc::SYS_recvmmsg, libc::SYS_preadv2,
];

/// System calls that look for messages otherwise, or are made for want of one.
#[rustfmt::skip]
const POLL_CALLS: &[libc::c_long] = &[
    libc::SYS_ppoll, libc::SYS_pselect6, libc::SYS_epoll_pwait, libc::SYS_epoll_pwait2, libc::SYS_io_uring_enter,
    libc::SYS_sched_yield,
    #[cfg(target_arch = "x86_64")] libc::SYS_poll,
    #[cfg(target_arch = "x86_64")] libc::SYS_select,
    #[cfg(target_arch = "x86_64")] libc::SYS_epoll_wait,
];

/// Those of them whose first two arguments are a table of files and its length.
const POLLFD_CALLS: &[libc::c_long] = &[
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
];

/// Those of them whose first two arguments are a number of files and a set of those to be read.
const FD_SET_CALLS: &[libc::c_long] = &[
    libc::SYS_pselect6,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_select,
];

/// System calls that may wake somebody by a futex. The two later ones have the same numbers everywhere.
const FUTEX_CALLS: &[libc::c_long] = &[libc::SYS_futex, FUTEX_WAKE, FUTEX_REQUEUE];
const FUTEX_WAKE: libc::c_long = 454;
const FUTEX_REQUEUE: libc::c_long = 456;

/// System calls that write to the file in their first argument.
const WRITE_CALLS: &[libc::c_long] = &[libc::SYS_write, libc::SYS_writev, libc::SYS_pwritev2, libc::SYS_vmsplice];

/// System calls that send to the socket in their first argument.
#[rustfmt::skip]
const SEND_CALLS: &[libc::c_long] = &[
    libc::SYS_sendto, libc::SYS_sendmsg, libc::SYS_sendmmsg, libc::SYS_write, libc::SYS_writev, libc::SYS_pwritev2,
];

/// Fills a table of system calls, whose end `bpf/polls.bpf.h` tells by a number that none has.
fn set_calls(table: &mut [u32], calls: &[libc::c_long]) {
    table.fill(u32::MAX);
    for (place, call) in table.iter_mut().zip(calls) {
        *place = *call as u32;
    }
}

#[cfg(test)]
mod tests {
    use libbpf_rs::skel::SkelBuilder;

    use super::*;

    #[test]
    fn every_map_that_drops_is_sized() {
        let mut place = MaybeUninit::uninit();
        let mut skel = BpfSkelBuilder::default().open(&mut place).unwrap();
        size_maps(&mut skel).unwrap();
        let sizes: Vec<u32> = skel
            .open_object()
            .maps()
            .filter(|map| map.map_type() == MapType::LruHash)
            .map(|map| map.max_entries())
            .collect();
        assert!(sizes.len() >= 4 && sizes.iter().all(|size| *size == lru_entries(*size)), "{sizes:?}");
    }
}
