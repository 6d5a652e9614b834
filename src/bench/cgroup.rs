// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup for each process of an experiment, so that a scheduler which takes cgroups for jobs sees the
//! jobs that there are.
//!
//! They lie below one parent that does not hand the cpu controller on: they give an identity, and no
//! weight of their own to the schedulers that know groups.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

const ROOT: &str = "/sys/fs/cgroup";

/// A cgroup that goes when it is dropped. Its processes have to have gone before.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// A parent for the cgroups of this process's children; none where there is no cgroup v2 to write to.
    pub fn parent() -> Option<Cgroup> {
        let root = Path::new(ROOT);
        if statfs(root).ok()?.filesystem_type() != CGROUP2_SUPER_MAGIC {
            return None;
        }
        Cgroup::create(root.join(format!("scx_cosched-bench-{}", std::process::id()))).ok()
    }

    /// A child of this one.
    pub fn child(&self, name: &str) -> Result<Cgroup> {
        Cgroup::create(self.0.join(name))
    }

    pub fn add(&self, pid: u32) -> Result<()> {
        let file = self.0.join("cgroup.procs");
        fs::write(&file, pid.to_string()).with_context(|| format!("cannot write to {}", file.display()))
    }

    fn create(path: PathBuf) -> Result<Cgroup> {
        fs::create_dir(&path).with_context(|| format!("cannot create the cgroup {}", path.display()))?;
        Ok(Cgroup(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // What is left behind is an empty directory, and nothing here could mend it.
        let _ = fs::remove_dir(&self.0);
    }
}
