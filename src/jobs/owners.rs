// SPDX-License-Identifier: GPL-2.0-only
//! Who a job is: the names of job ids, and whether their owners still live.

use std::collections::HashMap;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::jobs::job_by::JobBy;

/// Between two walks through the hierarchy of cgroups, of which there may be thousands.
const WALK_INTERVAL: Duration = Duration::from_secs(1);
/// And at least so many times as long as the last one took: users make cgroups, too.
const WALK_SHARE: u32 = 20;

/// Names for job ids.
#[derive(Debug)]
pub struct Owners {
    job_by: JobBy,
    cgroup_root: Option<PathBuf>,
    /// The paths of ids that were asked for. Ids are not used again.
    asked: HashMap<u64, PathBuf>,
    /// All that the last walk through the hierarchy found, when that began, and when there may be another one.
    walked: HashMap<u64, PathBuf>,
    walked_at: Option<Instant>,
    next_walk: Option<Instant>,
}

impl Owners {
    /// Names for ids that are made as `job_by` says. `cgroup_root`: where the cgroup v2 hierarchy is mounted.
    pub fn new(job_by: JobBy, cgroup_root: Option<PathBuf>) -> Owners {
        Owners { job_by, cgroup_root, asked: HashMap::new(), walked: HashMap::new(), walked_at: None, next_walk: None }
    }

    /// The name of the job with `id`: a cgroup's path from the hierarchy's root, `session:<pid>` or
    /// `process:<pid>`. It stays when the owner is gone. A cgroup whose path was never seen is `cgroup:<id>`.
    pub fn name(&mut self, id: u64) -> String {
        self.known_name(id).unwrap_or_else(|| format!("cgroup:{id}"))
    }

    /// The same, but none for a cgroup whose path was never seen.
    pub fn known_name(&mut self, id: u64) -> Option<String> {
        Some(match self.job_by {
            JobBy::Session => format!("session:{id}"),
            JobBy::Process => format!("process:{id}"),
            JobBy::Cgroup => cgroup_name(&self.cgroup(id)?),
        })
    }

    /// All cgroups that there are now, with their names. None if jobs are something else.
    pub fn present(&mut self) -> Vec<(u64, String)> {
        let Some(root) = self.cgroup_root.clone().filter(|_| self.job_by == JobBy::Cgroup) else { return Vec::new() };
        self.walk(&root);
        self.walked.iter().map(|(id, path)| (*id, cgroup_name(path))).collect()
    }

    /// Whether nobody can be using `id` any more, which was there at the time `seen`. False while it is not known, and no
    /// walk has begun since then. A session whose leader has ended may still have members: the caller has to see whether
    /// it still uses CPU time.
    pub fn is_gone(&mut self, id: u64, seen: Instant) -> bool {
        if self.job_by != JobBy::Cgroup {
            return !Path::new("/proc").join(id.to_string()).exists();
        }
        let Some(root) = self.cgroup_root.clone() else { return false };
        match self.cgroup(id) {
            Some(path) => inode(&root.join(path)) != Some(id),
            None => self.walked_at.is_some_and(|at| at > seen),
        }
    }

    /// Whether the job with `id` is gone, and another one has its name by now.
    pub fn is_replaced(&self, id: u64) -> bool {
        let found = self.asked.get(&id).zip(self.cgroup_root.as_ref());
        found.and_then(|(path, root)| inode(&root.join(path))).is_some_and(|now| now != id)
    }

    /// For how long a task of the cgroup with `id` could run and waited for a CPU, s. None if jobs are something else,
    /// or if the kernel does not account for pressure.
    pub fn cpu_waiting_seconds(&mut self, id: u64) -> Option<f64> {
        let root = self.cgroup_root.clone().filter(|_| self.job_by == JobBy::Cgroup)?;
        let path = root.join(self.cgroup(id)?).join("cpu.pressure");
        waiting_seconds(&fs::read_to_string(path).ok()?)
    }

    /// Nobody will ask for `id` again.
    pub fn forget(&mut self, id: u64) {
        self.asked.remove(&id);
    }

    /// The path of the cgroup with `id`, from the root of the hierarchy, if it was there at a look not long ago.
    fn cgroup(&mut self, id: u64) -> Option<PathBuf> {
        if let Some(path) = self.asked.get(&id) {
            return Some(path.clone());
        }
        let root = self.cgroup_root.clone()?;
        let is_there = |path: &PathBuf| inode(&root.join(path)) == Some(id);
        if !self.walked.get(&id).is_some_and(is_there) && self.next_walk.is_none_or(|at| Instant::now() >= at) {
            self.walk(&root);
        }
        let path = self.walked.get(&id).filter(|path| is_there(path)).cloned()?;
        self.asked.insert(id, path.clone());
        Some(path)
    }

    fn walk(&mut self, root: &Path) {
        let began = Instant::now();
        self.walked.clear();
        walk(root, Path::new(""), &mut self.walked);
        self.walked_at = Some(began);
        self.next_walk = Some(Instant::now() + WALK_INTERVAL.max(began.elapsed() * WALK_SHARE));
    }
}

fn cgroup_name(path: &Path) -> String {
    format!("/{}", path.display())
}

/// From the content of a file `cpu.pressure`: how long some task waited, s.
fn waiting_seconds(pressure: &str) -> Option<f64> {
    let some = pressure.lines().find_map(|line| line.strip_prefix("some "))?;
    let total = some.split(' ').find_map(|field| field.strip_prefix("total="))?;
    Some(total.parse::<u64>().ok()? as f64 / 1e6)
}

/// A cgroup's id is the inode number of its directory.
fn inode(path: &Path) -> Option<u64> {
    directory(path).map(|cgroup| cgroup.ino())
}

fn directory(path: &Path) -> Option<Metadata> {
    fs::symlink_metadata(path).ok().filter(Metadata::is_dir)
}

/// Notes `path` and everything below it. What disappears meanwhile is left out.
fn walk(root: &Path, path: &Path, cgroups: &mut HashMap<u64, PathBuf>) {
    let full = root.join(path);
    let Some(cgroup) = directory(&full) else { return };
    cgroups.insert(cgroup.ino(), path.to_path_buf());
    // Each directory below is a link more. To list the dozens of files of a cgroup takes far longer than to look at it.
    if cgroup.nlink() == 2 {
        return;
    }
    for entry in fs::read_dir(&full).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            walk(root, &path.join(entry.file_name()), cgroups);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cgroup_has_its_path_for_a_name_until_it_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let job = root.path().join("slurm/job_7");
        fs::create_dir_all(&job).unwrap();
        let id = inode(&job).unwrap();

        let mut owners = Owners::new(JobBy::Cgroup, Some(root.path().into()));
        let seen = Instant::now();
        assert_eq!(owners.name(id), "/slurm/job_7");
        assert_eq!(owners.name(inode(root.path()).unwrap()), "/");
        assert!(!owners.is_gone(id, seen));
        let mut present: Vec<String> = owners.present().into_iter().map(|(_, name)| name).collect();
        present.sort();
        assert_eq!(present, ["/", "/slurm", "/slurm/job_7"]);
        // Out of the tree: a number that is free might be given to the next directory.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::rename(&job, elsewhere.path().join("job_7")).unwrap();
        assert!(owners.is_gone(id, seen));
        assert_eq!(owners.name(id), "/slurm/job_7", "what it used is still its own");
        assert!(!owners.is_replaced(id));
        fs::create_dir(&job).unwrap();
        assert!(owners.is_gone(id, seen) && owners.is_replaced(id));
        owners.forget(id);
        assert_eq!((owners.name(id), owners.known_name(id)), (format!("cgroup:{id}"), None));
    }

    #[test]
    fn a_cgroup_that_was_made_since_the_last_walk_is_not_taken_for_gone() {
        let root = tempfile::tempdir().unwrap();
        let mut owners = Owners::new(JobBy::Cgroup, Some(root.path().into()));
        let before = Instant::now();
        owners.present();
        let job = root.path().join("job");
        fs::create_dir(&job).unwrap();
        let id = inode(&job).unwrap();
        // There may be no other walk for a second.
        assert!(!owners.is_gone(id, Instant::now()));
        assert!(owners.is_gone(u64::MAX, before));
    }

    #[test]
    fn without_a_hierarchy_no_cgroup_is_taken_for_gone() {
        let mut owners = Owners::new(JobBy::Cgroup, None);
        assert!(!owners.is_gone(7, Instant::now()));
        assert_eq!(owners.name(7), "cgroup:7");
    }

    #[test]
    fn a_process_is_gone_when_proc_says_so() {
        let mut owners = Owners::new(JobBy::Process, None);
        assert!(!owners.is_gone(std::process::id().into(), Instant::now()));
        assert!(owners.is_gone(u64::from(u32::MAX), Instant::now()));
        assert_eq!(owners.known_name(7), Some("process:7".into()));
        assert!(owners.present().is_empty());
    }
}
