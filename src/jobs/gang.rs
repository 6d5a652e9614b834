// SPDX-License-Identifier: GPL-2.0-only
//! Which row of the gang's matrix a job is in (`policies/gang.h`): the one that its name was given, or else that of
//! its name's hash.
//!
//! The rows of all nodes take their turns together, so a job has to be in the same row on all of them. The BPF side
//! knows jobs by number, and numbers of cgroups differ from node to node; their paths do not. So it is the loader that
//! finds the rows, and keeps them in a BPF map by number.
//!
//! The hash is FNV-1a of 64 bits over the name as `status` shows it, modulo the number of rows. It must never change:
//! nodes with different versions of this program would put a job into different rows. Until the loader has seen a job,
//! the BPF side hashes its number.
//!
//! Under `beat` each job draws by its name ([`common_name`]), and what the map holds is the name's hash.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use libbpf_rs::{MapCore, MapFlags};
use log::warn;

use crate::jobs::job_by::JobBy;
use crate::jobs::owners::Owners;
use cosched_rules::choices::Arrival;
use cosched_rules::intf::COSCHED_JOB_OTHER;
use cosched_rules::policy::Policy;
use cosched_rules::range::Range;
use cosched_rules::rows::{Fault, Given, Origin, Row, Value};

/// The rows that a job can be given. Those beyond the policy's rows wrap round.
const ROW: Range<u32> = Range::new(0, 1023, "a whole number");
/// How often to look for jobs that have come or gone.
const INTERVAL: Duration = Duration::from_secs(1);

/// Rows by the names of jobs, as somebody gave them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NamedRows(BTreeMap<String, Given<u32>>);

/// Reads JOB=ROW. The name of a job may have an equals sign in it, the row has none.
///
/// # Errors
/// What it takes.
fn parse_flag(text: &str) -> Result<(String, u32), String> {
    let (name, row) = text.rsplit_once('=').ok_or("it takes JOB=ROW, such as /slurm/job_7=1")?;
    check_name(name)?;
    Ok((name.into(), ROW.parse(row)?))
}

/// Whether `name` can be the name of a job, with a `*` at its end for the rest of it.
///
/// # Errors
/// What it takes.
fn check_name(name: &str) -> Result<(), String> {
    let stem = name.strip_suffix('*').unwrap_or(name);
    match name.is_empty() || stem.contains(|c: char| c == '*' || c.is_control()) {
        true => Err("it takes a job's name as 'status' shows it, with a '*' at its end for any rest".into()),
        false => Ok(()),
    }
}

/// A flag gives each job once; it wins over the file.
impl Value for NamedRows {
    fn read(setting: &'static Row, entries: &[Given<String>]) -> Result<NamedRows, Fault> {
        let mut rows = BTreeMap::new();
        for entry in entries {
            let (name, row) = parse_flag(&entry.value).map_err(|what| entry.fault(what))?;
            let before = rows.insert(name.clone(), Given { value: row, origin: entry.origin.clone(), row: setting });
            if before.is_some_and(|before| before.origin == Origin::Flag) {
                return Err(entry.fault(format!("'{name}' is given twice (give each job one row)")));
            }
        }
        Ok(NamedRows(rows))
    }
}

/// Rows by the names of jobs, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rows(BTreeMap<String, u32>);

impl Rows {
    /// Those that somebody gave to jobs which are told apart as `job_by` says.
    ///
    /// # Errors
    /// Names one that no job can have.
    pub fn new(given: &NamedRows, job_by: JobBy) -> Result<Rows, Fault> {
        let (start, what) = match job_by {
            JobBy::Cgroup => ("/", "cgroup"),
            JobBy::Session => ("session:", "session"),
            JobBy::Process => ("process:", "process"),
        };
        for (name, row) in &given.0 {
            let stem = name.strip_suffix('*');
            if !name.starts_with(start) && !stem.is_some_and(|stem| start.starts_with(stem)) {
                let message =
                    format!("'{name}' is no job by {what} (a name starts with '{start}', as 'status' shows it)");
                return Err(row.fault(message));
            }
        }
        Ok(Rows(given.0.iter().map(|(name, row)| (name.clone(), row.value)).collect()))
    }

    /// The row that the job called `name` was given. Of several names that match, the longest counts.
    pub fn given(&self, name: &str) -> Option<u32> {
        let patterns = self.0.iter().filter_map(|(pattern, row)| Some((pattern.strip_suffix('*')?, *row)));
        let longest = patterns.filter(|(stem, _)| name.starts_with(stem)).max_by_key(|(stem, _)| stem.len());
        self.0.get(name).copied().or(longest.map(|(_, row)| row))
    }

    /// The row of the job called `name` in a matrix of `rows`.
    pub fn of(&self, name: &str, rows: u32) -> u32 {
        let rows = rows.max(1);
        self.given(name).map_or_else(|| (hash(name) % u64::from(rows)) as u32, |row| row % rows)
    }
}

/// FNV-1a, 64 bits.
pub fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// The part of a cgroup's path that is the same on all nodes of its job: under Slurm the job and its step, in
/// Kubernetes the pod, and else all of it.
pub fn common_name(name: &str) -> &str {
    let parts = |at: usize, number: usize| {
        let rest = &name[at..];
        rest.match_indices('/').nth(number).map_or(rest, |(end, _)| &rest[..end])
    };
    if let Some(at) = name.find("slurmstepd.scope/job_") {
        return parts(at + "slurmstepd.scope/".len(), 1);
    }
    let pod = name.match_indices("pod").find(|(at, _)| *at > 0 && name[..*at].ends_with(['-', '/']));
    match pod {
        Some((at, _)) if name.starts_with("/kubepods") => parts(at, 0),
        _ => name,
    }
}

/// Keeps the BPF map of rows and names as it should be.
#[derive(Debug)]
pub struct Gang {
    rows: Rows,
    /// What the map holds.
    written: BTreeMap<u64, u64>,
    looked_at: Option<Instant>,
    has_failed: bool,
}

impl Gang {
    /// The map is empty.
    pub fn new(rows: Rows) -> Gang {
        Gang { rows, written: BTreeMap::new(), looked_at: None, has_failed: false }
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

    /// What the map is to hold for the jobs in `ids`, and for those that have a row by name and are not seen yet, or
    /// not any more. `rows`: how many there are, under gang.
    fn wanted(&self, owners: &mut Owners, ids: &BTreeSet<u64>, rows: Option<u32>) -> BTreeMap<u64, u64> {
        let mut all = ids.clone();
        all.extend(self.written.keys().filter(|id| !ids.contains(id) && !owners.is_gone(**id)));
        // A walk through all cgroups takes its time: the ones that come later are seen when they use the CPU.
        if self.looked_at.is_none() && !self.rows.0.is_empty() {
            let named = owners.present().into_iter().filter(|(_, name)| self.rows.given(name).is_some());
            all.extend(named.map(|(id, _)| id));
        }
        let turn = |name: &str| match rows {
            Some(rows) => u64::from(self.rows.of(name, rows)),
            None => hash(common_name(name)),
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

    use crate::settings;
    use cosched_rules::presets;

    fn rows(given: &[(&str, u32)], job_by: JobBy) -> Result<Rows, String> {
        let setting = settings::rows().find(|row| row.key == "gang_rows").unwrap();
        let flag =
            |(name, row): &(&str, u32)| Given { value: format!("{name}={row}"), origin: Origin::Flag, row: setting };
        let flags: Vec<Given<String>> = given.iter().map(flag).collect();
        NamedRows::read(setting, &flags).and_then(|named| Rows::new(&named, job_by)).map_err(|fault| fault.message())
    }

    #[test]
    fn a_flag_is_a_name_and_a_row() {
        for (text, name, row) in
            [("/slurm/job_7=1", "/slurm/job_7", 1), ("/a=b=1023", "/a=b", 1023), ("*=0", "*", 0), ("/=3", "/", 3)]
        {
            assert_eq!(parse_flag(text), Ok((name.into(), row)));
        }
        for bad in ["", "=1", "/a", "/a=", "/a=1024", "/a=-1", "/a=1.5", "/a*b=1", "/a**=1", "/a\nb=1", "/a=4294967296"]
        {
            assert!(parse_flag(bad).is_err(), "{bad:?}");
        }
        assert!(rows(&[("/a", 1), ("/b", 1), ("/a", 1)], JobBy::Cgroup).is_err());
    }

    #[test]
    fn a_name_must_be_one_that_a_job_can_have() {
        for (name, job_by, good) in [
            ("/slurm/*", JobBy::Cgroup, true),
            ("*", JobBy::Cgroup, true),
            ("slurm/job_7", JobBy::Cgroup, false),
            ("session:7", JobBy::Cgroup, false),
            ("session:7", JobBy::Session, true),
            ("sess*", JobBy::Session, true),
            ("*", JobBy::Session, true),
            ("proc*", JobBy::Session, false),
            ("process:*", JobBy::Process, true),
            ("/a", JobBy::Process, false),
        ] {
            assert_eq!(rows(&[(name, 0)], job_by).is_ok(), good, "{name} by {job_by:?}");
        }
        let error = rows(&[("slurm", 0)], JobBy::Cgroup).unwrap_err();
        assert_eq!(error, "--gang-row: 'slurm' is no job by cgroup (a name starts with '/', as 'status' shows it)");
    }

    #[test]
    fn the_longest_name_that_matches_counts() {
        let rows =
            rows(&[("*", 1), ("/slurm/*", 2), ("/slurm/job_7*", 3), ("/slurm/job_7", 9)], JobBy::Cgroup).unwrap();
        for (name, row) in
            [("/", 1), ("/slurm", 1), ("/slurm/job_8", 2), ("/slurm/job_7", 9), ("/slurm/job_77", 3), ("/slurm/", 2)]
        {
            assert_eq!(rows.of(name, 1024), row, "{name}");
        }
        assert_eq!(rows.of("/slurm/job_7", 5), 4, "beyond the rows, it wraps round");
    }

    #[test]
    fn the_hash_is_that_of_everybody() {
        // From the authors' list of test vectors.
        for (text, wanted) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            assert_eq!(hash(text), wanted, "{text}");
        }
        let none = Rows::default();
        assert_eq!(none.of("foobar", 1000), (0x8594_4171_f739_67e8_u64 % 1000) as u32);
        assert_eq!(none.of("foobar", 0), 0);
    }

    #[test]
    fn jobs_spread_over_the_rows() {
        for rows in [2, 3, 5, 8, 100] {
            let mut jobs = vec![0; rows as usize];
            (0..100 * rows).for_each(|n| jobs[Rows::default().of(&format!("/slurm/job_{n}"), rows) as usize] += 1);
            assert!(jobs.iter().all(|n| (50..=150).contains(n)), "{rows} rows: {jobs:?}");
        }
    }

    #[test]
    fn a_name_leaves_out_what_is_of_its_node() {
        for (path, wanted) in [
            ("/system.slice/slurmstepd.scope/job_7/step_0/user/task_3", "job_7/step_0"),
            ("/system.slice/n1_slurmstepd.scope/job_7/step_0/user/task_4", "job_7/step_0"),
            ("/system.slice/slurmstepd.scope/job_7", "job_7"),
            ("/system.slice/slurmstepd.scope/system", "/system.slice/slurmstepd.scope/system"),
            ("/kubepods/burstable/pod1a-2b/0123", "pod1a-2b"),
            (
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1a_2b.slice/cri-01.scope",
                "pod1a_2b.slice",
            ),
            ("/kubepods.slice", "/kubepods.slice"),
            ("/user.slice/podcast", "/user.slice/podcast"),
            ("/", "/"),
            ("session:7", "session:7"),
        ] {
            assert_eq!(common_name(path), wanted, "{path}");
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
        let mut gang = Gang::new(rows(&[("/named", 3), ("/late", 4)], JobBy::Cgroup).unwrap());
        let policy = |name: &str| presets::find(name).unwrap().policy;
        let hashed = |name: &str| u64::from(Rows::default().of(name, 5));

        see(u64::from(COSCHED_JOB_OTHER));
        see(running);
        gang.place(&policy("dcs"), &mut owners, &jobs, &map);
        assert_eq!(contents(&map), BTreeMap::new(), "dcs has no rows");
        // Of those that have not run yet, only the ones that were given a row.
        gang.place(&policy("gang"), &mut owners, &jobs, &map);
        assert_eq!(contents(&map), BTreeMap::from([(named, 3), (running, hashed("/running"))]));
        assert!(!gang.is_due());

        let late = cgroup("late");
        std::thread::sleep(INTERVAL);
        [idle, late].into_iter().for_each(see);
        jobs.delete(&running.to_ne_bytes()).unwrap();
        fs::remove_dir(root.path().join("running")).unwrap();
        assert!(gang.is_due());
        gang.place(&policy("gang"), &mut owners, &jobs, &map);
        assert_eq!(contents(&map), BTreeMap::from([(named, 3), (late, 4), (idle, hashed("/idle"))]));
        assert_eq!(contents(&map), gang.written);

        gang.place(&policy("beat"), &mut owners, &jobs, &map);
        let names = [(named, "/named"), (late, "/late"), (idle, "/idle")];
        assert_eq!(contents(&map), names.into_iter().map(|(id, name)| (id, hash(name))).collect());
    }
}
