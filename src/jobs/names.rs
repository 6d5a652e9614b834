// SPDX-License-Identifier: GPL-2.0-only
//! What somebody says of jobs: of the one that a pattern names, or of all whose names begin so.
//!
//! Under `gang` that is a job's row, and under both `gang` and `beat` the name that all nodes of a job have for it.

use std::collections::BTreeMap;

use crate::jobs::job_by::JobBy;
use cosched_rules::range::Range;
use cosched_rules::rows::{Fault, Given, Origin, Row, Value};

/// The rows that a job can be given. Those beyond the policy's rows wrap round.
const ROW: Range<u32> = Range::new(0, 1023, "a whole number");

/// What can be said of a job.
pub trait Said: Clone + PartialEq {
    /// What a job has one of.
    const WHAT: &'static str;

    /// Splits a text into the job's part and the other one.
    ///
    /// # Errors
    /// What it takes.
    fn parse(text: &str) -> Result<(&str, Self), String>;
}

/// A job's row. The name of a job may have an equals sign in it, the row has none.
impl Said for u32 {
    const WHAT: &'static str = "row";

    fn parse(text: &str) -> Result<(&str, u32), String> {
        let (job, row) = text.rsplit_once('=').ok_or("it takes JOB=ROW, such as /slurm/job_7=1")?;
        check_job(job)?;
        Ok((job, ROW.parse(row)?))
    }
}

/// A job's name on all nodes, in which there is no equals sign.
impl Said for String {
    const WHAT: &'static str = "name";

    fn parse(text: &str) -> Result<(&str, String), String> {
        let example = "it takes NAME=JOB, such as ocean=/system.slice/ocean-*";
        let (name, job) = text.split_once('=').ok_or(example)?;
        if name.is_empty() || name.contains(|c: char| c == '*' || c.is_control()) {
            return Err(format!("{example}, where NAME is the same on all nodes"));
        }
        check_job(job)?;
        Ok((job, name.into()))
    }
}

/// Whether `job` can be the name of a job, with a `*` at its end for the rest of it.
///
/// # Errors
/// What it takes.
fn check_job(job: &str) -> Result<(), String> {
    let stem = job.strip_suffix('*').unwrap_or(job);
    match job.is_empty() || stem.contains(|c: char| c == '*' || c.is_control()) {
        true => Err("it takes a job's name as 'status' shows it, with a '*' at its end for any rest".into()),
        false => Ok(()),
    }
}

/// What is said of jobs, as somebody gave it.
#[derive(Clone, Debug, PartialEq)]
pub struct Sayings<T>(BTreeMap<String, Given<T>>);

/// A flag gives each job once; it wins over the file.
impl<T: Said> Value for Sayings<T> {
    fn read(setting: &'static Row, entries: &[Given<String>]) -> Result<Sayings<T>, Fault> {
        let mut all = BTreeMap::new();
        for entry in entries {
            let (job, value) = T::parse(&entry.value).map_err(|what| entry.fault(what))?;
            let before = all.insert(job.to_owned(), Given { value, origin: entry.origin.clone(), row: setting });
            if before.is_some_and(|before| (before.origin == Origin::Flag) == (entry.origin == Origin::Flag)) {
                return Err(entry.fault(format!("'{job}' is given twice (give each job one {})", T::WHAT)));
            }
        }
        Ok(Sayings(all))
    }
}

/// What is said of jobs, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patterns<T>(BTreeMap<String, T>);

impl<T: Said> Patterns<T> {
    /// What somebody said of jobs which are told apart as `job_by` says.
    ///
    /// # Errors
    /// Names one that no job can have.
    pub fn new(given: &Sayings<T>, job_by: JobBy) -> Result<Patterns<T>, Fault> {
        let (start, what) = match job_by {
            JobBy::Cgroup => ("/", "cgroup"),
            JobBy::Session => ("session:", "session"),
            JobBy::Process => ("process:", "process"),
        };
        for (job, value) in &given.0 {
            let stem = job.strip_suffix('*');
            if !job.starts_with(start) && !stem.is_some_and(|stem| start.starts_with(stem)) {
                let message =
                    format!("'{job}' is no job by {what} (a name starts with '{start}', as 'status' shows it)");
                return Err(value.fault(message));
            }
        }
        Ok(Patterns(given.0.iter().map(|(job, value)| (job.clone(), value.value.clone())).collect()))
    }

    /// Is nothing said of any job?
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What is said of the job called `name`. Of several patterns that match, the longest counts.
    pub fn given(&self, name: &str) -> Option<&T> {
        let patterns = self.0.iter().filter_map(|(pattern, value)| Some((pattern.strip_suffix('*')?, value)));
        let longest = patterns.filter(|(stem, _)| name.starts_with(stem)).max_by_key(|(stem, _)| stem.len());
        self.0.get(name).or(longest.map(|(_, value)| value))
    }
}

/// The part of a cgroup's path that is the same on all nodes of its job: under Slurm the job and its step, in
/// Kubernetes the pod, and else all of it.
pub fn common_name(name: &str) -> &str {
    let parts = |at: usize, number: usize| {
        let rest = &name[at..];
        rest.match_indices('/').nth(number).map_or(rest, |(end, _)| &rest[..end])
    };
    // Only where Slurm has it: whoever may make cgroups somewhere else gives them any name.
    let scope = name.strip_prefix("/system.slice/").and_then(|rest| rest.split_once('/'));
    if let Some((_, job)) = scope.filter(|(scope, job)| scope.ends_with("slurmstepd.scope") && job.starts_with("job_"))
    {
        return parts(name.len() - job.len(), 1);
    }
    let pod = name.match_indices("pod").find(|(at, _)| *at > 0 && name[..*at].ends_with(['-', '/']));
    match pod {
        Some((at, _)) if name.starts_with("/kubepods") => parts(at, 0),
        _ => name,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings;

    /// What flags for the setting `key` say of jobs.
    pub(crate) fn patterns<T: Said>(key: &str, flags: &[&str], job_by: JobBy) -> Result<Patterns<T>, String> {
        let setting = settings::rows().find(|row| row.key == key).unwrap();
        let flag = |text: &&str| Given { value: (*text).to_owned(), origin: Origin::Flag, row: setting };
        let flags: Vec<Given<String>> = flags.iter().map(flag).collect();
        let said = Sayings::read(setting, &flags).and_then(|said| Patterns::new(&said, job_by));
        said.map_err(|fault| fault.message())
    }

    fn rows(flags: &[&str], job_by: JobBy) -> Result<Patterns<u32>, String> {
        patterns("gang_rows", flags, job_by)
    }

    #[test]
    fn a_flag_is_a_job_and_a_row_or_a_name_and_a_job() {
        for (text, job, row) in
            [("/slurm/job_7=1", "/slurm/job_7", 1), ("/a=b=1023", "/a=b", 1023), ("*=0", "*", 0), ("/=3", "/", 3)]
        {
            assert_eq!(u32::parse(text), Ok((job, row)));
        }
        for bad in ["", "=1", "/a", "/a=", "/a=1024", "/a=-1", "/a=1.5", "/a*b=1", "/a**=1", "/a\nb=1", "/a=4294967296"]
        {
            assert!(u32::parse(bad).is_err(), "{bad:?}");
        }
        for (text, job, name) in [("a=/b", "/b", "a"), ("a b=/c=d*", "/c=d*", "a b"), ("/a=*", "*", "/a")] {
            assert_eq!(String::parse(text), Ok((job, name.to_owned())));
        }
        for bad in ["", "=/a", "/a", "a=", "a*=/b", "a=/b*c", "a\nb=/c", "a=/b\nc"] {
            assert!(String::parse(bad).is_err(), "{bad:?}");
        }
        assert!(rows(&["/a=1", "/b=1", "/a=1"], JobBy::Cgroup).is_err());
        let twice = patterns::<String>("job_names", &["a=/x", "a=/y", "b=/x"], JobBy::Cgroup).unwrap_err();
        assert_eq!(twice, "--job-name: '/x' is given twice (give each job one name)");
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
            assert_eq!(rows(&[&format!("{name}=0")], job_by).is_ok(), good, "{name} by {job_by:?}");
            let named = patterns::<String>("job_names", &[&format!("a={name}")], job_by);
            assert_eq!(named.is_ok(), good, "{name} by {job_by:?}");
        }
        let error = rows(&["slurm=0"], JobBy::Cgroup).unwrap_err();
        assert_eq!(error, "--gang-row: 'slurm' is no job by cgroup (a name starts with '/', as 'status' shows it)");
    }

    #[test]
    fn the_longest_name_that_matches_counts() {
        let rows = rows(&["*=1", "/slurm/*=2", "/slurm/job_7*=3", "/slurm/job_7=9"], JobBy::Cgroup).unwrap();
        for (name, row) in
            [("/", 1), ("/slurm", 1), ("/slurm/job_8", 2), ("/slurm/job_7", 9), ("/slurm/job_77", 3), ("/slurm/", 2)]
        {
            assert_eq!(rows.given(name), Some(&row), "{name}");
        }
        assert_eq!(Patterns::<u32>::default().given("/a"), None);
    }

    #[test]
    fn a_name_leaves_out_what_is_of_its_node() {
        for (path, wanted) in [
            ("/system.slice/slurmstepd.scope/job_7/step_0/user/task_3", "job_7/step_0"),
            ("/system.slice/n1_slurmstepd.scope/job_7/step_0/user/task_4", "job_7/step_0"),
            ("/system.slice/slurmstepd.scope/job_7", "job_7"),
            ("/system.slice/slurmstepd.scope/system", "/system.slice/slurmstepd.scope/system"),
            ("/user.slice/slurmstepd.scope/job_7", "/user.slice/slurmstepd.scope/job_7"),
            ("/system.slice/a.service/slurmstepd.scope/job_7", "/system.slice/a.service/slurmstepd.scope/job_7"),
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
}
