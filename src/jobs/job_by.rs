// SPDX-License-Identifier: GPL-2.0-only
//! What a job is.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use cosched_rules::intf;
use cosched_rules::rows::Scalar;

/// What makes two tasks members of one job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobBy {
    /// Their cgroup (v2). Slurm gives each step one.
    Cgroup,
    /// Their session.
    Session,
    /// Their process.
    Process,
}

impl FromStr for JobBy {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        match text {
            "cgroup" => Ok(JobBy::Cgroup),
            "session" => Ok(JobBy::Session),
            "process" => Ok(JobBy::Process),
            _ => Err("it takes cgroup, session or process".into()),
        }
    }
}

impl Scalar for JobBy {}

impl JobBy {
    /// As the BPF side reads it.
    pub fn to_bpf(self) -> u32 {
        match self {
            JobBy::Cgroup => intf::cosched_job_by_COSCHED_JOB_BY_CGROUP,
            JobBy::Session => intf::cosched_job_by_COSCHED_JOB_BY_SESSION,
            JobBy::Process => intf::cosched_job_by_COSCHED_JOB_BY_PROCESS,
        }
    }
}
