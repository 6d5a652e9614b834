// SPDX-License-Identifier: GPL-2.0-only
//! A cgroup for each job and each competitor of an experiment, so that a scheduler which takes cgroups for
//! jobs sees the jobs that there are.
//!
//! A cgroup has the same path on all nodes, for schedulers on different nodes have to agree which job is
//! which, and where two nodes are CPUs of one kernel, it is one cgroup, which several agents make and remove.
//! All lie below one parent that does not hand the cpu controller on: they give an identity, and no weight
//! of their own to the schedulers that know groups.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use nix::sys::statfs::{CGROUP2_SUPER_MAGIC, statfs};

const ROOT: &str = "/sys/fs/cgroup";

/// The parent, below the root. Nobody else's: a kernel has one scheduler, and so one experiment at a time.
const PARENT: &str = "scx_cosched-bench";

/// A cgroup that goes when the last who has it drops it. Its processes have to have gone before.
pub struct Cgroup(PathBuf);

impl Cgroup {
    /// The parent of the cgroups of an experiment; none where there is no cgroup v2 to write to.
    pub fn parent() -> Option<Cgroup> {
        let root = Path::new(ROOT);
        if statfs(root).ok()?.filesystem_type() != CGROUP2_SUPER_MAGIC {
            return None;
        }
        Cgroup::create(root.join(PARENT)).ok()
    }

    /// What a scheduler that takes cgroups for jobs calls the one of this name.
    pub fn job(name: &str) -> String {
        format!("/{PARENT}/{name}")
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
        match fs::create_dir(&path) {
            // Another agent was first.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => made.with_context(|| format!("cannot create the cgroup {}", path.display()))?,
        }
        Ok(Cgroup(path))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        // Where another agent's processes still are, it is left to that agent; where it is gone, it was.
        let _ = fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Making and removing directories is the same everywhere.
    #[test]
    fn a_cgroup_goes_with_the_last_who_has_it() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("scx_cosched-bench");
        let agents = [0, 1].map(|_| Cgroup::create(path.clone()).unwrap());
        let [token, same] = [0, 1].map(|i: usize| agents[i].child("token0").unwrap());
        assert_eq!(token.0, same.0);

        drop(token);
        assert!(!path.join("token0").exists(), "it was empty");
        drop(same);
        let [first, second] = agents;
        let token = second.child("token0").unwrap();
        drop(first);
        assert!(token.0.exists(), "a parent that is not empty stays");
        drop((token, second));
        assert!(!path.exists());
        assert!(Cgroup::create(directory.path().join("no/where")).is_err());
    }
}
