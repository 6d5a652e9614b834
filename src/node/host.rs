// SPDX-License-Identifier: GPL-2.0-only
//! The machine that the scheduler is for.

use std::cell::OnceCell;
use std::fs;
use std::path::{Path, PathBuf};

use libbpf_rs::Btf;

/// A machine, seen through its files below a root directory (`/`, or a mock-up in the tests).
pub struct Host {
    /// Where its files are.
    pub sysroot: PathBuf,
    /// The types and functions of its kernel, from when they are asked for first: there are megabytes of them.
    types: OnceCell<Option<Btf<'static>>>,
}

impl Host {
    /// The machine whose files are below `sysroot`.
    pub fn new(sysroot: &Path) -> Host {
        Host { sysroot: sysroot.into(), types: OnceCell::new() }
    }

    /// The types and functions of its kernel, if it describes them.
    pub fn types(&self) -> Option<&Btf<'static>> {
        let btf = self.sysroot.join("sys/kernel/btf/vmlinux");
        self.types.get_or_init(|| btf.exists().then(|| Btf::from_path(&btf).ok()).flatten()).as_ref()
    }

    /// What a file says, without blanks around it.
    pub fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.sysroot.join(path)).ok().map(|text| text.trim().to_string())
    }

    /// The release of its kernel.
    pub fn kernel(&self) -> String {
        self.read("proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into())
    }

    /// Whether its kernel lets BPF programs set timers. With PREEMPT_RT it does not.
    pub fn has_timers(&self) -> bool {
        !self.read("proc/version").is_some_and(|version| version.contains(" PREEMPT_RT "))
    }

    /// Where the cgroup v2 hierarchy is mounted.
    pub fn cgroup_root(&self) -> Option<PathBuf> {
        let mounts = self.read("proc/self/mounts")?;
        mounts.lines().find_map(|line| {
            let mut fields = line.split(' ');
            let (path, kind) = (fields.nth(1)?, fields.next()?);
            (kind == "cgroup2").then(|| PathBuf::from(path))
        })
    }

    /// The file of this machine that would be at `path` if it was ours.
    pub fn path(&self, path: &Path) -> PathBuf {
        self.sysroot.join(path.strip_prefix("/").unwrap_or(path))
    }
}
