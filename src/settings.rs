// SPDX-License-Identifier: GPL-2.0-only
//! Everything that `run` is told: a flag wins over the configuration file, the file over the preset.

use std::path::PathBuf;

use anyhow::{Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::cli::RunArgs;
use crate::given::{Fault, Origin};
use crate::job_by::JobBy;
use crate::limits::MetricsListen;
use crate::partial::Partial;
use crate::policy::{Policy, PolicyView};
use crate::wire::settings::WireSettings;
use crate::{config, gang, presets};

/// Where the running scheduler is talked to.
pub const DEFAULT_CONTROL_SOCKET: &str = "/run/scx_cosched.sock";
/// Where metrics are served unless told otherwise: on this machine only. The ports from 9100 to 9999, which exporters
/// have shared out among them, are all given away; this one is below those that Linux gives to clients (32768).
pub const DEFAULT_METRICS_LISTEN: &str = "127.0.0.1:29937";
/// How many jobs are shown under their own name unless told otherwise.
pub const DEFAULT_JOBS_TOP: u32 = 20;

/// What has come of reading the configuration file again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reloaded {
    /// The policy that is in force now.
    pub policy: PolicyView,
    /// Keys whose values have changed, and take effect when the scheduler is started again.
    pub restart_needed: Vec<String>,
}

/// Everything that `run` needs to know, checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The command line, to read the file that it names again.
    pub args: RunArgs,
    /// The policy to start with.
    pub policy: Policy,
    /// What makes two tasks members of one job.
    pub job_by: JobBy,
    /// What else than sockets and RDMA brings messages.
    pub arrivals: Arrivals,
    /// The rows that jobs have by name.
    pub gang_rows: gang::Rows,
    /// Epochs on the wire, if there are peers.
    pub wire: Option<WireSettings>,
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
    /// Where programs ask to be heard, if they may.
    pub hints_socket: Option<PathBuf>,
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
        Settings::from_partial(args, args.partial()?.or(file))
    }

    /// Reads the same configuration file again, under the same flags.
    ///
    /// # Errors
    /// If there is no such file, or as above.
    pub fn again(&self) -> Result<Settings> {
        if self.args.config.is_none() {
            bail!("no configuration file was named at the start (restart it with --config FILE)");
        }
        Settings::from_args(&self.args)
    }

    /// The keys whose values `new` has otherwise, but for those of the policy.
    pub fn changed(&self, new: &Settings) -> Vec<String> {
        let changed = [
            ("job_by", self.job_by != new.job_by),
            ("arrivals", self.arrivals != new.arrivals),
            ("gang_rows", self.gang_rows != new.gang_rows),
            ("peers and what goes with them", self.wire != new.wire),
            ("metrics_listen", self.metrics_listen != new.metrics_listen),
            ("jobs_top", self.jobs_top != new.jobs_top),
            ("stats", self.stats != new.stats),
            ("exit_dump_len", self.exit_dump_len != new.exit_dump_len),
            ("verbose", self.verbose != new.verbose),
            ("control_socket", self.control_socket != new.control_socket),
            ("hints_socket", self.hints_socket != new.hints_socket),
        ];
        changed.into_iter().filter(|(_, changed)| *changed).map(|(key, _)| key.to_string()).collect()
    }

    fn from_partial(args: &RunArgs, given: Partial) -> Result<Settings> {
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
        let wire = WireSettings::new(&given.wire)?;

        Ok(Settings {
            args: args.clone(),
            policy,
            job_by,
            arrivals: given.arrivals.unwrap_or_default(),
            gang_rows,
            wire,
            metrics_listen: given
                .metrics_listen
                .unwrap_or_else(|| DEFAULT_METRICS_LISTEN.parse().expect("the default is an address")),
            jobs_top: given.jobs_top.unwrap_or(DEFAULT_JOBS_TOP) as usize,
            stats: given.stats,
            exit_dump_len: given.exit_dump_len.unwrap_or(0),
            verbose: given.verbose.unwrap_or(false),
            control_socket: given.control_socket.unwrap_or_else(|| DEFAULT_CONTROL_SOCKET.into()),
            hints_socket: given.hints_socket,
        })
    }
}
