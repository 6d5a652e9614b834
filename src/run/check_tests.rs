// SPDX-License-Identifier: GPL-2.0-only
//! The same questions, asked of mock-ups of machines that lack one thing each.

use super::*;
use tempfile::TempDir;

/// A machine with the given files, and this machine's BTF if `btf`.
fn machine(btf: bool, files: &[(&str, &str)]) -> (TempDir, Host) {
    let dir = tempfile::tempdir().unwrap();
    let put = |path: &str, content: &[u8]| {
        let path = dir.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    };
    if btf {
        put("sys/kernel/btf/vmlinux", &fs::read("/sys/kernel/btf/vmlinux").unwrap());
    }
    for (path, content) in files {
        put(path, content.as_bytes());
    }
    let host = Host::new(dir.path());
    (dir, host)
}

#[test]
fn a_machine_without_anything_is_told_of_btf_first() {
    let (_dir, host) = machine(false, &[]);
    let first = host.requirements().find(|f| f.level == Level::Missing).unwrap();
    assert_eq!(first.thing, "BTF");
    let error = require(first).unwrap_err().to_string();
    assert!(error.contains("CONFIG_DEBUG_INFO_BTF=y"), "{error}");
}

#[test]
fn btf_that_is_garbage_is_no_btf() {
    let (_dir, host) = machine(false, &[("sys/kernel/btf/vmlinux", "garbage")]);
    assert_eq!(host.btf().level, Level::Missing);
}

#[test]
fn a_kernel_without_the_directory_has_no_sched_ext() {
    let (_dir, host) = machine(true, &[("proc/sys/kernel/osrelease", "6.1.0-test\n")]);
    assert_eq!(host.btf().level, Level::Ok);
    let finding = host.sched_ext();
    assert_eq!(finding.level, Level::Missing);
    assert!(finding.to_string().contains("6.1.0-test") && finding.to_string().contains("CONFIG_SCHED_CLASS_EXT=y"));
}

#[test]
fn a_scheduler_of_somebody_else_is_named() {
    let files = [("sys/kernel/sched_ext/state", "enabled\n"), ("sys/kernel/sched_ext/root/ops", "simple_1.0\n")];
    let (_dir, host) = machine(false, &files);
    let finding = host.other_scheduler();
    assert_eq!(finding, host.no_scheduler());
    assert_eq!(finding.level, Level::Missing);
    assert!(finding.detail.contains("'simple_1.0'"), "{finding}");

    let (_dir, host) = machine(false, &[("sys/kernel/sched_ext/state", "disabled\n")]);
    assert_eq!((host.other_scheduler().level, host.no_scheduler().level), (Level::Ok, Level::Ok));
}

#[test]
fn this_scheduler_is_no_other_one_but_is_not_loaded_twice() {
    let files = [("sys/kernel/sched_ext/state", "enabled\n"), ("sys/kernel/sched_ext/root/ops", "cosched_1.0\n")];
    let (_dir, host) = machine(false, &files);
    assert_eq!(host.other_scheduler().level, Level::Ok);
    assert_eq!(host.no_scheduler().level, Level::Missing);
}

#[test]
fn the_kernel_configuration_is_looked_for_in_both_places() {
    assert_eq!(machine(false, &[]).1.kernel_config().level, Level::Missing);
    assert_eq!(machine(false, &[("proc/config.gz", "")]).1.kernel_config().level, Level::Ok);
    let files = [("proc/sys/kernel/osrelease", "6.12.1\n"), ("boot/config-6.12.1", "")];
    assert_eq!(machine(false, &files).1.kernel_config().detail, "/boot/config-6.12.1");
}

#[test]
fn cookies_are_warned_of_where_there_are_hyperthreads() {
    let of = |active: &str, cookie: Option<u64>| {
        let files =
            [("sys/devices/system/cpu/smt/active", active), ("proc/7/task/7/status", ""), ("proc/7/comm", "qemu\n")];
        machine(false, &files).1.cookies(|_| cookie)
    };
    assert_eq!(of("1\n", Some(0)).detail, "no task has a cookie");
    assert_eq!(of("1\n", None).level, Level::Ok);
    assert_eq!(of("0\n", Some(9)).level, Level::Ok);
    let warning = of("1\n", Some(9));
    assert_eq!(warning.level, Level::Warning);
    assert!(warning.detail.starts_with("threads with a cookie: 1, the first is 7, 'qemu'; "), "{warning}");
}

#[test]
fn too_many_cpus_are_refused() {
    let cpus = |possible: &str| machine(false, &[("sys/devices/system/cpu/possible", possible)]).1.cpus();
    assert_eq!(cpus("0\n").level, Level::Ok);
    assert_eq!(cpus("0-1023\n").level, Level::Ok);
    assert_eq!(cpus("0-3,8-1024\n").level, Level::Missing);
    assert_eq!(cpus("").level, Level::Missing);
}

#[test]
fn cgroups_are_found_where_they_are_mounted() {
    let mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
    let (_dir, host) = machine(false, &[("proc/self/mounts", mounts)]);
    assert_eq!(host.cgroup_root(), Some("/sys/fs/cgroup/unified".into()));
    assert_eq!(machine(false, &[]).1.cgroups().level, Level::Warning);
}

#[test]
fn a_kernel_with_preempt_rt_has_no_timers_and_keeps_no_limit() {
    let of = |flavour: &str| {
        let version = format!("Linux version 7.3.4-amd64 (someone@somewhere) #1 SMP {flavour} Debian 7.3.4-1\n");
        let mounts = ("proc/self/mounts", "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n");
        let files = [("proc/version", version.as_str()), mounts, ("sys/fs/cgroup/a/cpu.max", "10000 100000\n")];
        let (_dir, host) = machine(true, &files);
        (host.timers().level, host.limits().remove(0).to_string())
    };
    assert_eq!(of("PREEMPT_DYNAMIC").0, Level::Ok);
    let (timers, limit) = of("PREEMPT_RT");
    assert_eq!(timers, Level::Warning);
    assert!(limit.contains("/a has 10000 100000, which is not kept"), "{limit}");
}

#[test]
fn a_hook_that_the_kernel_lacks_is_a_warning_with_its_consequence() {
    let (_dir, host) = machine(true, &[]);
    let hook = Hook { name: "on_readable".into(), function: "no_such_function".into(), module: None };
    let finding = host.hook(&hook);
    assert_eq!(finding.level, Level::Warning);
    assert!(finding.remedy.contains("nothing is boosted"), "{finding}");
    assert!(require(finding).is_ok());
}

#[test]
fn every_hook_of_the_object_is_listed() {
    let hooks = hooks_of_the_object().unwrap();
    assert!(hooks.iter().any(|h| h.name == "on_readable"), "{hooks:?}");
    assert!(hooks.iter().all(|h| h.name.starts_with("on_")), "{hooks:?}");
}

#[test]
fn only_root_may_run_it() {
    assert_eq!(root(0).level, Level::Ok);
    let error = require(root(1000)).unwrap_err().to_string();
    assert_eq!(error, "root: the effective user is 1000 (run it as root, e.g. with sudo)");
}

#[test]
fn the_control_socket_needs_a_directory() {
    assert_eq!(socket_dir(Path::new("/no/such/directory/a.sock")).level, Level::Missing);
}
