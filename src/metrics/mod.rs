// SPDX-License-Identifier: GPL-2.0-only
//! A snapshot as OpenMetrics text, and as the older Prometheus text that most linters and some agents read.
//!
//! Every name has the prefix `scx_cosched_`, base units, and one quantity. No label is unbounded: jobs are
//! the N largest and "other".

pub mod exporter;
pub mod monitor;

use std::collections::BTreeMap;
use std::fmt::{Error, Write};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::text::{encode_eof, encode_registry};
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};

use crate::jobs::JobView;
use crate::node::process::ProcessView;
use crate::snapshot::Snapshot;
use cosched_rules::choices::ROWS;
use cosched_rules::native;
use cosched_rules::policy::PolicyView;

/// The content type of [`openmetrics`].
pub const OPENMETRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// The content type of [`prometheus_text`].
pub const PROMETHEUS_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const PREFIX: &str = "scx_cosched";
/// Prometheus calls "job" the group of targets that it scrapes, and renames what a target calls so.
const JOB: &str = "parallel_job";

/// `snapshot` as OpenMetrics 1.0.0.
pub fn openmetrics(snapshot: &Snapshot) -> String {
    let mut registry = Registry::with_prefix(PREFIX);
    registry.register_collector(Box::new(View(snapshot.clone())));
    let mut text = String::new();
    // Every exporter has these, and tools look for them: they have no prefix.
    let mut common = Registry::default();
    common.register_collector(Box::new(ProcessMetrics(snapshot.process)));
    let written = encode_registry(&mut text, &registry)
        .and_then(|()| encode_registry(&mut text, &common))
        .and_then(|()| encode_eof(&mut text));
    written.expect("writing to a string does not fail");
    text
}

/// `snapshot` in the Prometheus text format 0.0.4. There, a family's name is that of its samples, and the
/// type `info`, units and an end mark are not known.
pub fn prometheus_text(snapshot: &Snapshot) -> String {
    let openmetrics = openmetrics(snapshot);
    let mut text = String::with_capacity(openmetrics.len());
    let mut help = None;
    for line in openmetrics.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ');
        } else if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            let (suffix, kind) = match kind {
                "counter" => ("_total", "counter"),
                "info" => ("_info", "gauge"),
                kind => ("", kind),
            };
            let help = help.take().map_or("", |(_, help)| help).replace(r#"\""#, "\"");
            let _ = writeln!(text, "# HELP {name}{suffix} {help}\n# TYPE {name}{suffix} {kind}");
        } else if !line.starts_with('#') {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

#[derive(Debug)]
struct View(Snapshot);

type Out<'a> = DescriptorEncoder<'a>;

impl Collector for View {
    fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
        let Snapshot { policy, hooks, memory, runnable, hinted, jobs, .. } = &self.0;
        info(
            &mut out,
            "build",
            "The program and the kernel",
            &[("version", &self.0.version), ("kernel", &self.0.kernel)],
        )?;
        policy_info(&mut out, policy)?;
        let (seconds, bytes) = (Some(Unit::Seconds), Some(Unit::Bytes));
        gauge(&mut out, "uptime", "Since the start of the program", seconds, self.0.uptime_seconds)?;
        gauge(&mut out, "maps_memory", "Memory of all BPF maps", bytes, memory.maps_bytes as f64)?;
        gauge(&mut out, "runnable_tasks", "Tasks that are runnable on all CPUs", None, runnable.tasks as f64)?;
        let help = "Tasks that are runnable on the CPU that has most";
        gauge(&mut out, "runnable_tasks_max", help, None, f64::from(runnable.max))?;
        let hinted = hinted.unwrap_or_default();
        let help = "Processes that say when their threads wait";
        gauge(&mut out, "hinted_processes", help, None, f64::from(hinted.processes))?;
        gauge(&mut out, "hinted_threads", "Threads that say when they wait", None, f64::from(hinted.threads))?;

        let help = "Whether a hook observes its kernel function";
        let mut family = out.encode_descriptor("hook_attached", help, None, MetricType::Gauge)?;
        let others = hooks.resting.iter().chain(&hooks.idle).chain(&hooks.missing);
        let states = hooks.attached.iter().map(|h| (h, 1)).chain(others.map(|h| (h, 0)));
        for (hook, attached) in states {
            family.encode_family(&[("hook", hook.as_str())])?.encode_gauge(&i64::from(attached))?;
        }
        self.counters(&mut out)?;
        self.kernel_events(&mut out)?;
        self.endpoints(&mut out)?;
        self.decisions(&mut out)?;
        self.latency(&mut out)?;
        self.gang_skew(&mut out)?;
        job_metrics(&mut out, jobs)
    }
}

impl View {
    fn counters(&self, out: &mut Out<'_>) -> Result<(), Error> {
        for counter in native::counters() {
            let help = counter.help.replace('\\', r"\\").replace('"', r#"\""#);
            out.encode_descriptor(counter.name, &help, None, MetricType::Counter)?
                .encode_counter::<NoLabelSet, u64, f64>(&self.0.counter(counter.name), None)?;
        }
        Ok(())
    }

    /// Absent on kernels that do not count them.
    fn kernel_events(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let events = &self.0.kernel_events;
        let help = "Events that the kernel's sched_ext core counts of the scheduler (SCX_EV_*)";
        let mut family = out.encode_descriptor("kernel_events", help, None, MetricType::Counter)?;
        for (event, count) in events.counts() {
            family.encode_family(&[("event", event)])?.encode_counter::<NoLabelSet, u64, f64>(&count, None)?;
        }
        let Some(seconds) = events.bypass_seconds() else { return Ok(()) };
        let help = "Time in which the kernel bypassed the scheduler, and ran tasks in the order in which they came";
        out.encode_descriptor("kernel_bypass", help, Some(&Unit::Seconds), MetricType::Counter)?
            .encode_counter::<NoLabelSet, f64, f64>(&seconds, None)
    }

    fn endpoints(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let help = "Messages that arrived at a socket whose receiver is known, by the kind of endpoint";
        let mut family = out.encode_descriptor("endpoint_arrivals", help, None, MetricType::Counter)?;
        for (endpoint, count) in &self.0.endpoint_arrivals {
            family
                .encode_family(&[("endpoint", endpoint.as_str())])?
                .encode_counter::<NoLabelSet, u64, f64>(count, None)?;
        }
        Ok(())
    }

    fn decisions(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let help = "Demands for a boost, by decision and reason";
        let mut family = out.encode_descriptor("decisions", help, None, MetricType::Counter)?;
        for (decision, reasons) in [("granted", &self.0.granted), ("denied", &self.0.denied)] {
            for (reason, count) in reasons {
                family
                    .encode_family(&[("decision", decision), ("reason", reason.as_str())])?
                    .encode_counter::<NoLabelSet, u64, f64>(count, None)?;
            }
        }
        Ok(())
    }

    fn latency(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let times = &self.0.arrival_to_run;
        let help = "From the arrival of a message for a task that was not running until that task ran";
        let buckets: Vec<(f64, u64)> =
            times.buckets.iter().map(|b| (b.le_seconds.unwrap_or(f64::INFINITY), b.count)).collect();
        out.encode_descriptor("arrival_to_run", help, Some(&Unit::Seconds), MetricType::Histogram)?
            .encode_histogram::<NoLabelSet>(times.sum_seconds, times.count, &buckets, None)
    }

    fn gang_skew(&self, out: &mut Out<'_>) -> Result<(), Error> {
        let skew = &self.0.gang_skew;
        let help = "By how much the turns of a gang's rows began late";
        out.encode_descriptor("gang_skew", help, Some(&Unit::Seconds), MetricType::Counter)?
            .encode_counter::<NoLabelSet, f64, f64>(&skew.sum_seconds, None)?;
        let help = "By how much a turn of a gang's row began late at most";
        gauge(out, "gang_skew_max", help, Some(Unit::Seconds), skew.max_seconds)?;
        let help = "By how much the clock of turns by beat is ahead of TAI, since a peer's is";
        gauge(out, "clock_ahead", help, Some(Unit::Seconds), self.0.clock_ahead_seconds)
    }
}

#[derive(Debug)]
struct ProcessMetrics(ProcessView);

impl Collector for ProcessMetrics {
    fn encode(&self, mut out: DescriptorEncoder) -> Result<(), Error> {
        let view = &self.0;
        let (seconds, bytes) = (Some(Unit::Seconds), Some(Unit::Bytes));
        let help = "CPU time of the program";
        out.encode_descriptor("process_cpu", help, seconds.as_ref(), MetricType::Counter)?
            .encode_counter::<NoLabelSet, f64, f64>(&view.cpu_seconds, None)?;
        gauge(&mut out, "process_open_fds", "File descriptors that are open", None, view.open_fds as f64)?;
        gauge(&mut out, "process_max_fds", "File descriptors that may be open", None, view.max_fds as f64)?;
        let (space, resident) = (view.virtual_bytes as f64, view.resident_bytes as f64);
        gauge(&mut out, "process_virtual_memory", "Address space of the program", bytes.clone(), space)?;
        gauge(&mut out, "process_resident_memory", "Memory of the program", bytes, resident)?;
        gauge(&mut out, "process_threads", "Threads of the program", None, view.threads as f64)?;
        let help = "When the program was started, since 1970";
        gauge(&mut out, "process_start_time", help, seconds, view.start_time_seconds)
    }
}

fn gauge(out: &mut Out<'_>, name: &str, help: &str, unit: Option<Unit>, value: f64) -> Result<(), Error> {
    out.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?.encode_gauge(&value)
}

fn info(out: &mut Out<'_>, name: &str, help: &str, labels: &[(&str, &String)]) -> Result<(), Error> {
    let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
    out.encode_descriptor(name, help, None, MetricType::Info)?.encode_info(&labels.as_slice())
}

/// The parameters are labels, so that a change of policy shows as another series.
fn policy_info(out: &mut Out<'_>, policy: &PolicyView) -> Result<(), Error> {
    let texts: BTreeMap<&str, String> = policy.choices.texts().collect();
    let none = String::new();
    let parameters = ROWS.iter().map(|row| (row.key, texts.get(row.key).unwrap_or(&none)));
    let labels: Vec<(&str, &String)> = std::iter::once(("policy", &policy.name)).chain(parameters).collect();
    info(out, "policy", "The policy in force, with its parameters", &labels)
}

fn job_metrics(out: &mut Out<'_>, jobs: &[JobView]) -> Result<(), Error> {
    let seconds = Some(&Unit::Seconds);
    let mut family = out.encode_descriptor("job_cpu", "CPU time that a job used", seconds, MetricType::Counter)?;
    for job in jobs {
        family.encode_family(&label(job))?.encode_counter::<NoLabelSet, f64, f64>(&job.cpu_seconds, None)?;
    }
    let help = "CPU time that fair sharing would have given a job";
    let mut family = out.encode_descriptor("job_fair_share", help, seconds, MetricType::Counter)?;
    for job in jobs {
        family.encode_family(&label(job))?.encode_counter::<NoLabelSet, f64, f64>(&job.fair_share_seconds, None)?;
    }
    let help = "CPU time used over fair share since the job was first seen: 1 is fair, more is too much";
    let mut family = out.encode_descriptor("job_fairness_ratio", help, None, MetricType::Gauge)?;
    for (job, ratio) in jobs.iter().filter_map(|job| Some((job, job.fairness_ratio?))) {
        family.encode_family(&label(job))?.encode_gauge(&ratio)?;
    }
    let help = "Time in which a task of a job could run and waited for a CPU (PSI)";
    let mut family = out.encode_descriptor("job_cpu_waiting", help, seconds, MetricType::Counter)?;
    for (job, waiting) in jobs.iter().filter_map(|job| Some((job, job.cpu_waiting_seconds?))) {
        family.encode_family(&label(job))?.encode_counter::<NoLabelSet, f64, f64>(&waiting, None)?;
    }
    let help = "Times that a task of a job ran ahead of the fair order";
    let mut family = out.encode_descriptor("job_boosts", help, None, MetricType::Counter)?;
    for job in jobs {
        family.encode_family(&label(job))?.encode_counter::<NoLabelSet, u64, f64>(&job.boosts, None)?;
    }
    Ok(())
}

fn label(job: &JobView) -> [(&'static str, &str); 1] {
    [(JOB, job.job.as_str())]
}
