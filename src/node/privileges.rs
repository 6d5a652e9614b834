// SPDX-License-Identifier: GPL-2.0-only
//! What the process may do once its sockets are open: little, although it runs as root.
//!
//! The thread that owns the scheduler keeps the capabilities that loading and attaching BPF programs take. Threads that
//! read what others send keep none, or the one that they cannot do without. A seccomp filter denies all threads the
//! system calls that no scheduler needs: it starts no program, mounts nothing, loads no module and looks into no other
//! process. The kernel takes all of this for good: a thread cannot have back what it gave up.

use std::fs;
use std::io;
use std::thread::{Builder, JoinHandle};

use anyhow::{Context, Result};
use log::warn;

/// Capabilities, a bit for each, by the numbers of `linux/capability.h`.
pub type Capabilities = u64;

/// To attach programs to packets and sockets.
const NET_ADMIN: Capabilities = 1 << 12;
/// To see the processes of others where /proc hides them.
pub const SYS_PTRACE: Capabilities = 1 << 19;
/// To find the types of a kernel module, for the hooks on RDMA.
const SYS_ADMIN: Capabilities = 1 << 21;
/// To make a thread a real-time one, and to measure at the highest nice level.
pub const SYS_NICE: Capabilities = 1 << 23;
/// To load programs that observe the kernel.
const PERFMON: Capabilities = 1 << 38;
/// To make maps, and to load programs.
pub const BPF: Capabilities = 1 << 39;

/// What the thread that owns the scheduler needs. It loads it anew when a CPU comes or goes.
const OWNER: Capabilities = BPF | PERFMON | NET_ADMIN | SYS_ADMIN | SYS_NICE;

/// Gives up what the process does not need any more. Call it before there are threads: they inherit what is left.
///
/// # Errors
/// If the kernel does not take the capabilities. That it cannot filter system calls is a warning.
pub fn settle() -> Result<()> {
    let needs = if proc_is_hidden() { OWNER | SYS_PTRACE } else { OWNER };
    empty_bounding_set();
    keep(needs).context("cannot give up capabilities")?;
    filter_calls().unwrap_or_else(|error| warn!("system calls are not filtered: {error}"));
    Ok(())
}

/// Starts a thread that has no capabilities but those that it `needs`.
///
/// # Errors
/// If there can be no thread.
pub fn thread<T: Send + 'static>(
    name: &str,
    needs: Capabilities,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>> {
    let confined = move || {
        keep(needs).unwrap_or_else(|error| warn!("a thread keeps capabilities that it does not need: {error}"));
        work()
    };
    Builder::new().name(name.into()).spawn(confined).context("cannot start a thread")
}

/// Does the mount of /proc hide the processes of others (`hidepid`)?
fn proc_is_hidden() -> bool {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut fields = line.split(' ');
        fields.nth(1) == Some("/proc") && fields.nth(1).is_some_and(|options| options.contains("hidepid="))
    })
}

/// What a program that this process starts could have: nothing.
fn empty_bounding_set() {
    // Without CAP_SETPCAP it stays as it is, and the filter of system calls has to do.
    for capability in 0..u64::from(u64::BITS) {
        // SAFETY: passes no memory. What is no capability is refused.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

#[repr(C)]
struct Header {
    version: u32,
    thread: i32,
}

/// The calling thread, and sets of 64 capabilities.
const HEADER: Header = Header { version: 0x2008_0522, thread: 0 };

/// One half of each set.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Half {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Has the calling thread keep, of the capabilities that it has, only these.
fn keep(needs: Capabilities) -> io::Result<()> {
    let (mut header, mut halves) = (HEADER, [Half::default(); 2]);
    // SAFETY: the kernel reads the header and writes both halves, which is what this version says.
    check(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) })?;
    for (half, needs) in halves.iter_mut().zip([needs as u32, (needs >> 32) as u32]) {
        let kept = half.permitted & needs;
        *half = Half { effective: kept, permitted: kept, inheritable: 0 };
    }
    let none = 0 as libc::c_ulong;
    // SAFETY: passes no memory.
    let ambient = unsafe { libc::prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL, none, none, none) };
    check(ambient.into())?;
    // SAFETY: as above, and the kernel only reads.
    check(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) })
}

fn check(code: libc::c_long) -> io::Result<()> {
    if code == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Denies the calling thread, and those that it starts, the system calls in [`DENIED`], and that a program gains
/// privileges by being started.
fn filter_calls() -> io::Result<()> {
    let filter = filter();
    let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_ptr().cast_mut() };
    let (one, none) = (1 as libc::c_ulong, 0 as libc::c_ulong);
    // SAFETY: passes no memory.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, none, none, none) }.into())?;
    // SAFETY: the kernel reads the program, as long as it says, and copies it.
    check(unsafe { libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) }.into())
}

/// The machine whose system calls these are, as the kernel tells a filter. On one that is not listed nothing is
/// filtered.
#[cfg(target_arch = "x86_64")]
const MACHINE: Option<u32> = Some(0xc000_003e);
#[cfg(target_arch = "aarch64")]
const MACHINE: Option<u32> = Some(0xc000_00b7);
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const MACHINE: Option<u32> = None;

/// Numbers from here on are of another table, that of x32.
const OTHER_TABLE: u32 = 0x4000_0000;

/// The filter as a program: what is denied is answered with EPERM, and so is what comes by another table of system
/// calls.
fn filter() -> Vec<libc::sock_filter> {
    let step = |code, jt, jf, k| libc::sock_filter { code: code as u16, jt, jf, k };
    let load = |offset| step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, offset);
    let answer = |k| step(libc::BPF_RET | libc::BPF_K, 0, 0, k);
    let allow = answer(libc::SECCOMP_RET_ALLOW);
    let Some(machine) = MACHINE else { return vec![allow] };
    let mut steps = vec![load(4), step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, machine)];
    let deny = answer(libc::SECCOMP_RET_ERRNO | libc::EPERM as u32);
    steps.extend([deny, load(0)]);
    // A jump over the next step, which is the answer.
    steps.extend([step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 0, 1, OTHER_TABLE), deny]);
    for call in DENIED {
        steps.extend([step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 0, 1, *call as u32), deny]);
    }
    steps.push(allow);
    steps
}

/// System calls that no thread of a scheduler makes.
#[rustfmt::skip]
const DENIED: &[libc::c_long] = &[
    // Other programs and processes.
    libc::SYS_execve, libc::SYS_execveat, libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd, libc::SYS_process_madvise, libc::SYS_kcmp, libc::SYS_perf_event_open, libc::SYS_userfaultfd,
    // The kernel itself.
    libc::SYS_kexec_load, libc::SYS_kexec_file_load, libc::SYS_init_module, libc::SYS_finit_module,
    libc::SYS_delete_module, libc::SYS_reboot, libc::SYS_syslog,
    #[cfg(target_arch = "x86_64")] libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")] libc::SYS_ioperm,
    #[cfg(target_arch = "x86_64")] libc::SYS_modify_ldt,
    // File systems and namespaces.
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount,
    libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_mount_setattr, libc::SYS_open_by_handle_at, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_quotactl,
    libc::SYS_fanotify_init, libc::SYS_mknodat, libc::SYS_unshare, libc::SYS_setns,
    #[cfg(target_arch = "x86_64")] libc::SYS_mknod,
    // Who we are, and what time it is.
    libc::SYS_setuid, libc::SYS_setgid, libc::SYS_setreuid, libc::SYS_setregid, libc::SYS_setresuid,
    libc::SYS_setresgid, libc::SYS_setgroups, libc::SYS_setfsuid, libc::SYS_setfsgid, libc::SYS_sethostname,
    libc::SYS_setdomainname, libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_clock_adjtime,
    libc::SYS_adjtimex, libc::SYS_acct, libc::SYS_personality,
    // Keys; and io_uring, whose calls a filter does not see.
    libc::SYS_add_key, libc::SYS_request_key, libc::SYS_keyctl, libc::SYS_io_uring_setup, libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
];

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// What /proc says of the calling thread.
    fn status(key: &str) -> String {
        let text = fs::read_to_string("/proc/thread-self/status").unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        value.trim_start_matches(':').trim().to_string()
    }

    #[test]
    fn a_thread_has_what_it_needs_and_its_starter_keeps_all() {
        let before = status("CapPrm");
        let mine = u64::from_str_radix(&before, 16).unwrap();
        for needs in [0, BPF, BPF | SYS_NICE] {
            let sets = || ["CapPrm", "CapEff", "CapInh", "CapAmb"].map(status);
            let [permitted, effective, inheritable, ambient] = thread("test", needs, sets).unwrap().join().unwrap();
            let kept = format!("{:016x}", mine & needs);
            assert_eq!((permitted, effective), (kept.clone(), kept), "{needs:x}");
            assert_eq!((inheritable, ambient), (format!("{:016x}", 0), format!("{:016x}", 0)));
        }
        assert_eq!(status("CapPrm"), before);
    }

    #[test]
    fn what_is_denied_is_an_error_and_the_rest_works() {
        let filtered = || {
            filter_calls().unwrap();
            assert_eq!((status("Seccomp"), status("NoNewPrivs")), ("2".into(), "1".into()));
            let started = Command::new("/bin/true").status().unwrap_err();
            assert_eq!(started.raw_os_error(), Some(libc::EPERM));
            // SAFETY: passes no memory; 1 << 30 is where x32 begins.
            let other = unsafe { libc::syscall(libc::SYS_getpid | (1 << 30)) };
            assert_eq!((other, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EPERM)));
            fs::read_to_string("/proc/self/mounts").unwrap();
            std::thread::spawn(|| status("Seccomp")).join().unwrap()
        };
        assert_eq!(thread("test", 0, filtered).unwrap().join().unwrap(), "2");
        assert_eq!(status("Seccomp"), "0");
    }
}
