// SPDX-License-Identifier: GPL-2.0-only
//! What this process takes, by the names that Prometheus's own client libraries give it.

use std::sync::OnceLock;

use procfs::process::{LimitValue, Process, Stat};
use procfs::{CurrentSI, KernelStats, ProcResult, page_size, ticks_per_second};
use serde::{Deserialize, Serialize};

/// One moment of this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessView {
    /// CPU time, of all threads, s.
    pub cpu_seconds: f64,
    /// File descriptors that are open.
    pub open_fds: u64,
    /// As many may be.
    pub max_fds: u64,
    /// Address space, bytes.
    pub virtual_bytes: u64,
    /// Memory, bytes.
    pub resident_bytes: u64,
    /// Threads.
    pub threads: u64,
    /// When it was started, s since 1970.
    pub start_time_seconds: f64,
}

impl ProcessView {
    /// This process now; nothing where /proc does not say.
    pub fn now() -> ProcessView {
        ProcessView::read().unwrap_or_default()
    }

    fn read() -> ProcResult<ProcessView> {
        let process = Process::myself()?;
        let stat = process.stat()?;
        let max_fds = match process.limits()?.max_open_files.soft_limit {
            LimitValue::Value(limit) => limit,
            LimitValue::Unlimited => u64::MAX,
        };
        Ok(ProcessView {
            cpu_seconds: (stat.utime + stat.stime) as f64 / ticks_per_second() as f64,
            open_fds: process.fd_count()? as u64,
            max_fds,
            virtual_bytes: stat.vsize,
            // The count in "stat" is inexact: threads keep some of it to themselves.
            resident_bytes: process.status()?.vmrss.map_or(stat.rss * page_size(), |kib| kib * 1024),
            threads: stat.num_threads as u64,
            start_time_seconds: start_time(&stat)?,
        })
    }
}

/// When the machine was booted does not change, and the kernel counts all interrupts before it says so.
fn start_time(stat: &Stat) -> ProcResult<f64> {
    static BOOTED: OnceLock<u64> = OnceLock::new();
    let booted = match BOOTED.get() {
        Some(booted) => *booted,
        None => {
            let booted = KernelStats::current()?.btime;
            *BOOTED.get_or_init(|| booted)
        }
    };
    Ok(booted as f64 + stat.starttime as f64 / ticks_per_second() as f64)
}

/// Has the allocator save memory rather than time. It maps larger pieces by themselves for good: it would learn from
/// the kernel's types, which are large, to put them among the small ones, and then could not give back what is between
/// those. And all threads share one heap, as they seldom allocate at once.
pub fn save_memory() {
    const LARGE_BYTES: i32 = 32 << 10;
    // SAFETY: they take no pointers.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES);
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives the kernel back what only a load needs: what the allocator holds and nobody uses, some MiB for the kernel's
/// types, and this program's constants and code, among them the BPF programs and what loads them. Those are read from
/// the file again if need be.
pub fn give_memory_back() {
    // SAFETY: it takes no pointer, and other threads may allocate meanwhile.
    unsafe { libc::malloc_trim(0) };
    // SAFETY: forget_file() is what it is to call, and takes no data.
    unsafe { libc::dl_iterate_phdr(Some(forget_file), std::ptr::null_mut()) };
}

/// Drops the pages of the program's segments that cannot be written: they are as the file has them. What is relocated
/// at the start stands in others.
unsafe extern "C" fn forget_file(info: *mut libc::dl_phdr_info, _: usize, _: *mut libc::c_void) -> libc::c_int {
    // SAFETY: the linker hands over a valid description of an object, of which the first is the program.
    let (info, headers) = unsafe { (&*info, std::slice::from_raw_parts((*info).dlpi_phdr, (*info).dlpi_phnum.into())) };
    for header in headers.iter().filter(|header| header.p_type == libc::PT_LOAD) {
        if header.p_flags & libc::PF_W == 0 {
            let start = info.dlpi_addr + header.p_vaddr;
            let within = start % header.p_align;
            let length = (header.p_memsz + within) as usize;
            // SAFETY: nothing but the file is mapped there, and what is read or run meanwhile is mapped again. An error
            // leaves it as it is.
            unsafe { libc::madvise((start - within) as *mut libc::c_void, length, libc::MADV_DONTNEED) };
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use std::time::{SystemTime, UNIX_EPOCH};

    use super::*;

    #[test]
    fn this_process_takes_something_and_was_started_not_long_ago() {
        let began = std::time::Instant::now();
        while began.elapsed().as_millis() < 30 {
            std::hint::spin_loop();
        }
        let view = ProcessView::read().unwrap();
        assert!(view.cpu_seconds > 0.0 && view.threads >= 1, "{view:?}");
        assert!(view.open_fds >= 3 && view.open_fds <= view.max_fds, "{view:?}");
        assert!(view.resident_bytes > 100_000 && view.virtual_bytes > view.resident_bytes, "{view:?}");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
        assert!((now - 3600.0..now + 1.0).contains(&view.start_time_seconds), "{view:?} at {now}");
    }
}
