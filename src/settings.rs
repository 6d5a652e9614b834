// SPDX-License-Identifier: GPL-2.0-only
//! Everything that `run` is told: a flag wins over the configuration file, the file over the preset.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::{Result, anyhow};
use serde::{Deserialize, Serialize};

use crate::bpf::intf;
use crate::choices::Overrides;
use crate::cli::RunArgs;
use crate::gang::{self, NamedRows};
use crate::given::{Fault, Given, Origin};
use crate::limits::MetricsListen;
use crate::policy::Policy;
use crate::{config, presets};

/// Where the running scheduler is talked to.
pub const DEFAULT_CONTROL_SOCKET: &str = "/run/scx_cosched.sock";
/// Where metrics are served unless told otherwise: on this machine only.
pub const DEFAULT_METRICS_LISTEN: &str = "127.0.0.1:9937";
/// How many jobs are shown under their own name unless told otherwise.
pub const DEFAULT_JOBS_TOP: u32 = 20;

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

/// What one source, the command line or the file, says.
#[derive(Clone, Debug, Default)]
pub struct Partial {
    /// `--policy`.
    pub policy: Option<Given<String>>,
    /// The choices on single axes.
    pub overrides: Overrides,
    /// `--job-by`.
    pub job_by: Option<JobBy>,
    /// `--gang-row`.
    pub gang_rows: NamedRows,
    /// `--metrics-listen`.
    pub metrics_listen: Option<MetricsListen>,
    /// `--jobs-top`.
    pub jobs_top: Option<u32>,
    /// `--stats`.
    pub stats: Option<f64>,
    /// `--exit-dump-len`.
    pub exit_dump_len: Option<u32>,
    /// `-v`.
    pub verbose: Option<bool>,
    /// `--control-socket`.
    pub control_socket: Option<PathBuf>,
}

impl Partial {
    fn or(self, mut other: Partial) -> Partial {
        other.overrides.extend(self.overrides);
        other.gang_rows.extend(self.gang_rows);
        Partial {
            policy: self.policy.or(other.policy),
            overrides: other.overrides,
            job_by: self.job_by.or(other.job_by),
            gang_rows: other.gang_rows,
            metrics_listen: self.metrics_listen.or(other.metrics_listen),
            jobs_top: self.jobs_top.or(other.jobs_top),
            stats: self.stats.or(other.stats),
            exit_dump_len: self.exit_dump_len.or(other.exit_dump_len),
            verbose: self.verbose.or(other.verbose),
            control_socket: self.control_socket.or(other.control_socket),
        }
    }
}

/// Everything that `run` needs to know, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The policy to start with.
    pub policy: Policy,
    /// What makes two tasks members of one job.
    pub job_by: JobBy,
    /// The rows that jobs have by name.
    pub gang_rows: gang::Rows,
    /// Where metrics are served.
    pub metrics_listen: MetricsListen,
    /// How many jobs are shown under their own name.
    pub jobs_top: usize,
    /// Print statistics every so many seconds.
    pub stats: Option<f64>,
    /// Size of the debug dump after an error, bytes; 0 is the kernel's default.
    pub exit_dump_len: u32,
    /// Show debug messages.
    pub verbose: bool,
    /// Where the running scheduler is talked to.
    pub control_socket: PathBuf,
}

impl Settings {
    /// Reads the configuration file, if one is named, and merges it with the flags.
    ///
    /// # Errors
    /// One line that names the flag, or file and line, and what it takes.
    pub fn from_args(args: &RunArgs) -> Result<Settings> {
        let file = match &args.config {
            Some(path) => config::read(path)?,
            None => Partial::default(),
        };
        Settings::from_partial(args.partial()?.or(file))
    }

    fn from_partial(given: Partial) -> Result<Settings> {
        let (name, by_flag) = match &given.policy {
            Some(policy) => (policy.value.as_str(), policy.origin == Origin::Flag),
            None => (presets::DEFAULT, false),
        };
        let preset = presets::find(name).map_err(|unknown| match &given.policy {
            Some(policy) => policy.fault("policy", unknown).into_error(),
            None => anyhow!(unknown),
        })?;
        let policy = preset.policy.with(&given.overrides, by_flag).map_err(Fault::into_error)?;
        let job_by = given.job_by.unwrap_or(JobBy::Cgroup);
        let gang_rows = gang::Rows::new(&given.gang_rows, job_by).map_err(Fault::into_error)?;

        Ok(Settings {
            policy,
            job_by,
            gang_rows,
            metrics_listen: given
                .metrics_listen
                .unwrap_or_else(|| DEFAULT_METRICS_LISTEN.parse().expect("the default is an address")),
            jobs_top: given.jobs_top.unwrap_or(DEFAULT_JOBS_TOP) as usize,
            stats: given.stats,
            exit_dump_len: given.exit_dump_len.unwrap_or(0),
            verbose: given.verbose.unwrap_or(false),
            control_socket: given.control_socket.unwrap_or_else(|| DEFAULT_CONTROL_SOCKET.into()),
        })
    }
}
