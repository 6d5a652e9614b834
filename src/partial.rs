// SPDX-License-Identifier: GPL-2.0-only
//! What `run` is told by one source, the command line or the file, before the two are merged.

use std::path::PathBuf;

use crate::arrivals::Arrivals;
use crate::choices::Overrides;
use crate::gang::NamedRows;
use crate::given::Given;
use crate::job_by::JobBy;
use crate::limits::MetricsListen;
use crate::wire;

/// What one source, the command line or the file, says.
#[derive(Clone, Debug, Default)]
pub struct Partial {
    /// `--policy`.
    pub policy: Option<Given<String>>,
    /// The choices on single axes.
    pub overrides: Overrides,
    /// `--job-by`.
    pub job_by: Option<JobBy>,
    /// `--arrivals`.
    pub arrivals: Option<Arrivals>,
    /// `--gang-row`.
    pub gang_rows: NamedRows,
    /// What there is to say of epochs on the wire.
    pub wire: wire::settings::Partial,
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
    /// `--hints-socket`.
    pub hints_socket: Option<PathBuf>,
}

impl Partial {
    /// This, and where it says nothing, `other`.
    pub fn or(self, mut other: Partial) -> Partial {
        other.overrides.extend(self.overrides);
        other.gang_rows.extend(self.gang_rows);
        Partial {
            policy: self.policy.or(other.policy),
            overrides: other.overrides,
            job_by: self.job_by.or(other.job_by),
            arrivals: self.arrivals.or(other.arrivals),
            gang_rows: other.gang_rows,
            wire: self.wire.or(other.wire),
            metrics_listen: self.metrics_listen.or(other.metrics_listen),
            jobs_top: self.jobs_top.or(other.jobs_top),
            stats: self.stats.or(other.stats),
            exit_dump_len: self.exit_dump_len.or(other.exit_dump_len),
            verbose: self.verbose.or(other.verbose),
            control_socket: self.control_socket.or(other.control_socket),
            hints_socket: self.hints_socket.or(other.hints_socket),
        }
    }
}
