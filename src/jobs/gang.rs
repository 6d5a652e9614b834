// SPDX-License-Identifier: GPL-2.0-only
//! Which row of the gang's matrix a job is in (`policies/gang.h`): the one that somebody gave it, or else that of its
//! name's hash.
//!
//! The rows of all nodes take their turns together, so a job has to be in the same row on all of them. The BPF side
//! knows jobs by number, and numbers of cgroups differ from node to node; their paths do not. So it is the loader that
//! finds the rows, and keeps them in a BPF map by number.
//!
//! The hash is FNV-1a of 64 bits over the name that somebody gave the job for all nodes (`--job-name`), or else over
//! the one that `status` shows, modulo the number of rows. Until the loader has seen a job, the BPF side hashes its
//! number.
//!
//! Under `beat` each job draws by the name given to it, or by what its path has in common with those on other nodes
//! ([`common_name`]), and what the map holds is the name's hash.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use log::warn;

use crate::jobs::names::{Patterns, common_name};
use crate::jobs::owners::Owners;
use cosched_rules::choices::Arrival;
use cosched_rules::hash::fnv1a;
use cosched_rules::intf::COSCHED_JOB_OTHER;
use cosched_rules::policy::Policy;

/// How often to look for jobs that have come or gone.
const INTERVAL: Duration = Duration::from_secs(1);

/// What somebody gave to jobs: rows, and names that all nodes have alike.
#[derive(Clone, Debug, Default)]
pub struct Given {
    /// Rows, modulo those that there are.
    pub rows: Patterns<u32>,
    /// Names.
    pub names: Patterns<String>,
}

impl Given {
    /// The row of the job called `name` in a matrix of `rows`.
    fn row(&self, name: &str, rows: u32) -> u32 {
        let rows = rows.max(1);
        let hashed = || (fnv1a(self.names.given(name).map_or(name, String::as_str)) % u64::from(rows)) as u32;
        self.rows.given(name).map_or_else(hashed, |row| row % rows)
    }

    /// The number by which all nodes know the job called `name`, under beat.
    fn number(&self, name: &str) -> u64 {
        fnv1a(self.names.given(name).map_or_else(|| common_name(name), String::as_str))
    }

    /// Is anything given to the job called `name`?
    fn has(&self, name: &str) -> bool {
        self.rows.given(name).is_some() || self.names.given(name).is_some()
    }
}

/// Keeps the BPF map of rows and names as it should be.
#[derive(Debug)]
pub struct Gang {
    given: Given,
    /// What the map holds.
    written: BTreeMap<u64, u64>,
    looked_at: Option<Instant>,
    has_failed: bool,
}

impl Gang {
    /// The map is empty.
    pub fn new(given: Given) -> Gang {
        Gang { given, written: BTreeMap::new(), looked_at: None, has_failed: false }
    }

    /// Is it time to look for jobs that have come or gone?
    pub fn is_due(&self) -> bool {
        self.looked_at.is_none_or(|at| at.elapsed() >= INTERVAL)
    }

    /// Gives the jobs of the map `jobs` their rows in the map `rows`, if `policy` has rows, and warns once if that
    /// fails.
    pub fn place(&mut self, policy: &Policy, owners: &mut Owners, jobs: &impl MapCore, turns: &impl MapCore) {
        let rows = match policy.choices.arrival {
            Some(Arrival::Gang) => Some(policy.choices.rows.unwrap_or(1)),
            Some(Arrival::Beat) => None,
            _ => return,
        };
        let wanted = self.wanted(owners, &ids_of(jobs), rows);
        self.looked_at = Some(Instant::now());
        if let Err(error) = self.write(turns, &wanted)
            && !std::mem::replace(&mut self.has_failed, true)
        {
            warn!("some jobs take turns by their number instead of their name: {error:#}");
        }
    }

    /// What the map is to hold for the jobs in `ids`, and for those that were given something and are not seen yet, or
    /// not any more. `rows`: how many there are, under gang.
    fn wanted(&self, owners: &mut Owners, ids: &BTreeSet<u64>, rows: Option<u32>) -> BTreeMap<u64, u64> {
        let mut all = ids.clone();
        let seen = self.looked_at.unwrap_or_else(Instant::now);
        all.extend(self.written.keys().filter(|id| !ids.contains(id) && !owners.is_gone(**id, seen)));
        // A walk through all cgroups takes its time: the ones that come later are seen when they use the CPU.
        if self.looked_at.is_none() && !(self.given.rows.is_empty() && self.given.names.is_empty()) {
            let named = owners.present().into_iter().filter(|(_, name)| self.given.has(name));
            all.extend(named.map(|(id, _)| id));
        }
        let turn = |name: &str| match rows {
            Some(rows) => u64::from(self.given.row(name, rows)),
            None => self.given.number(name),
        };
        all.into_iter().filter_map(|id| Some((id, turn(&owners.known_name(id)?)))).collect()
    }

    /// Makes the map what is `wanted`. What has been written when something fails stays.
    fn write(&mut self, map: &impl MapCore, wanted: &BTreeMap<u64, u64>) -> Result<()> {
        let gone: Vec<u64> = self.written.keys().filter(|id| !wanted.contains_key(id)).copied().collect();
        for id in gone {
            map.delete(&id.to_ne_bytes()).context("cannot delete a row")?;
            self.written.remove(&id);
        }
        for (id, row) in wanted {
            if self.written.get(id) == Some(row) {
                continue;
            }
            map.update(&id.to_ne_bytes(), &row.to_ne_bytes(), MapFlags::ANY).context("cannot write a row")?;
            self.written.insert(*id, *row);
        }
        Ok(())
    }
}

/// The jobs that a map has as its keys.
fn ids_of(jobs: &impl MapCore) -> BTreeSet<u64> {
    let ids = jobs.keys().filter_map(|key| Some(u64::from_ne_bytes(key.try_into().ok()?)));
    ids.filter(|id| *id != u64::from(COSCHED_JOB_OTHER)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::MetadataExt;

    use libbpf_rs::libbpf_sys::bpf_map_create_opts;
    use libbpf_rs::{MapHandle, MapType};

    use crate::jobs::job_by::JobBy;
    use crate::jobs::names::tests::patterns;
    use cosched_rules::presets;

    #[test]
    fn a_job_without_a_row_has_that_of_its_hash() {
        let none = Given::default();
        assert_eq!(none.row("foobar", 1000), (fnv1a("foobar") % 1000) as u32);
        assert_eq!(none.row("foobar", 0), 0);
    }

    #[test]
    fn a_job_has_the_row_or_the_name_that_it_was_given() {
        let rows = patterns("gang_rows", &["/slurm/job_7=9"], JobBy::Cgroup).unwrap();
        let names = patterns("job_names", &["ocean=/slurm/job_*"], JobBy::Cgroup).unwrap();
        let given = Given { rows, names };
        assert_eq!(given.row("/slurm/job_7", 1024), 9);
        assert_eq!(given.row("/slurm/job_7", 5), 4, "beyond the rows, it wraps round");
        assert_eq!(u64::from(given.row("/slurm/job_8", 5)), fnv1a("ocean") % 5);
        assert_eq!([given.number("/slurm/job_7"), given.number("/slurm/job_8")], [fnv1a("ocean"); 2]);
        assert_eq!(given.number("/kubepods/burstable/pod1/0123"), fnv1a("pod1"));
        assert!(given.has("/slurm/job_8") && !given.has("/slurm"));
    }

    #[test]
    fn jobs_spread_over_the_rows() {
        for rows in [2, 3, 5, 8, 100] {
            let mut jobs = vec![0; rows as usize];
            (0..100 * rows).for_each(|n| jobs[Given::default().row(&format!("/slurm/job_{n}"), rows) as usize] += 1);
            assert!(jobs.iter().all(|n| (50..=150).contains(n)), "{rows} rows: {jobs:?}");
        }
    }

    fn map(kind: MapType, value_size: u32) -> MapHandle {
        let size = size_of::<bpf_map_create_opts>() as u64;
        let opts =
            bpf_map_create_opts { sz: size, map_flags: libbpf_rs::libbpf_sys::BPF_F_NO_PREALLOC, ..Default::default() };
        MapHandle::create(kind, Some("gang_test"), 8, value_size, 64, &opts).expect("this test makes BPF maps, as root")
    }

    fn contents(map: &MapHandle) -> BTreeMap<u64, u64> {
        let number = |key: &[u8]| u64::from_ne_bytes(key.try_into().unwrap());
        let row = |key: &[u8]| map.lookup(key, MapFlags::ANY).unwrap().unwrap();
        map.keys().map(|key| (number(&key), number(&row(&key)))).collect()
    }

    #[test]
    fn the_map_follows_the_jobs_as_they_come_and_go() {
        let root = tempfile::tempdir().unwrap();
        let cgroup = |name: &str| {
            let path = root.path().join(name);
            fs::create_dir_all(&path).unwrap();
            fs::metadata(path).unwrap().ino()
        };
        let (named, running, idle) = (cgroup("named"), cgroup("running"), cgroup("idle"));
        let (jobs, map) = (map(MapType::Hash, 4), map(MapType::Hash, 8));
        let see = |id: u64| jobs.update(&id.to_ne_bytes(), &[0; 4], MapFlags::ANY).unwrap();
        let mut owners = Owners::new(JobBy::Cgroup, Some(root.path().into()));
        let rows = patterns("gang_rows", &["/named=3", "/late=4"], JobBy::Cgroup).unwrap();
        let names = patterns("job_names", &["everywhere=/id*"], JobBy::Cgroup).unwrap();
        let mut gang = Gang::new(Given { rows, names });
        let policy = |name: &str| presets::find(name).unwrap().policy;
        let hashed = |name: &str| fnv1a(name) % 5;

        see(u64::from(COSCHED_JOB_OTHER));
        see(running);
        gang.place(&policy("dcs"), &mut owners, &jobs, &map);
        assert_eq!(contents(&map), BTreeMap::new(), "dcs has no rows");
        // Jobs that have not run yet count only if they were given a row or a name.
        cgroup("unnamed");
        gang.place(&policy("gang"), &mut owners, &jobs, &map);
        let wanted = [(named, 3), (idle, hashed("everywhere")), (running, hashed("/running"))];
        assert_eq!(contents(&map), BTreeMap::from(wanted));
        assert!(!gang.is_due());

        let late = cgroup("late");
        std::thread::sleep(INTERVAL);
        [idle, late].into_iter().for_each(see);
        jobs.delete(&running.to_ne_bytes()).unwrap();
        fs::remove_dir(root.path().join("running")).unwrap();
        assert!(gang.is_due());
        gang.place(&policy("gang"), &mut owners, &jobs, &map);
        assert_eq!(contents(&map), BTreeMap::from([(named, 3), (late, 4), (idle, hashed("everywhere"))]));
        assert_eq!(contents(&map), gang.written);

        gang.place(&policy("beat"), &mut owners, &jobs, &map);
        let names = [(named, "/named"), (late, "/late"), (idle, "everywhere")];
        assert_eq!(contents(&map), names.into_iter().map(|(id, name)| (id, fnv1a(name))).collect());
    }
}
