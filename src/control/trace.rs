// SPDX-License-Identifier: GPL-2.0-only
//! `trace`: prints arrivals, decisions and switches as they happen.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::control::commands::{self, ClientArgs};
use crate::control::{self, Held, Question};
use crate::jobs::owners::Owners;
use crate::node::host::Host;
use crate::node::logging;
use crate::settings::limits;
use crate::snapshot::Snapshot;
use crate::trace::event::{self, Event, JobPattern, Wanted};
use crate::trace::perfetto::{Node, Perfetto};
use crate::trace::reader::Reader;
use crate::trace::runs::{Run, Runs};
use crate::trace::tap::Outlet;
use crate::trace::{Sink, lines};

/// Between two looks at the ring. It holds what a busy node writes in far longer.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// `trace`.
#[derive(Args, Debug)]
pub struct TraceArgs {
    /// What to print: any of arrivals, decisions, switches and turns, with commas between them. The rest costs nothing.
    /// Turns are those of beat: which job has won one, whether another CPU drew alike, and by how much their clock
    /// moved.
    #[arg(long, value_name = "LIST", default_value = "arrivals,decisions,switches,turns")]
    pub events: Wanted,

    /// Only the tasks of jobs with this name, as status shows it; a * stands for any part of it.
    #[arg(long, value_name = "JOB")]
    pub job: Option<JobPattern>,

    /// For how long, in seconds, 0.1 to 3600. [default: until Ctrl-C]
    #[arg(long, value_name = "S", value_parser = |s: &str| limits::WATCH.parse(s), allow_hyphen_values = true)]
    pub seconds: Option<f64>,

    /// Print nothing, and write a file of Chrome's trace events, which Perfetto shows. Those of several nodes, whose
    /// clocks agree, can be put together by joining their lists traceEvents.
    #[arg(long, value_name = "FILE", conflicts_with = "json")]
    pub perfetto: Option<PathBuf>,

    /// Where and how to ask.
    #[command(flatten)]
    pub client: ClientArgs,
}

/// Prints what the running scheduler does, until it is told to stop.
///
/// # Errors
/// If no scheduler is running, somebody else traces, the trace cannot be written, or the scheduler ends before the
/// trace.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    logging::init(false);
    let socket = commands::socket(&args.client);
    let status: Snapshot = control::ask(socket, &Question::Status {})?;
    let offset_ns = event::realtime_offset_ns()?;
    let told_to_stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, told_to_stop.clone()).context("cannot handle signals")?;
    }
    if args.events.arrivals && !status.hooks.resting.is_empty() {
        log::warn!("the hooks rest under policy {}, so no arrival is seen (policy set dcs-sb)", status.policy.name);
    }

    let (outlet, connection) = control::hold::<Outlet>(socket, &Question::Trace { wanted: args.events })?;
    let jobs =
        Jobs { owners: Owners::new(status.job_by, Host::new(Path::new("/")).cgroup_root()), pattern: args.job.clone() };
    let reader = Reader::open(&outlet)?;
    // Now that nobody refuses, a file may be overwritten.
    let mut sink = sink(args, offset_ns)?;
    let mut trace = Trace { reader, jobs, runs: Runs::default(), sink: &mut *sink, offset_ns, last_ns: 0, written: 0 };
    let deadline = args.seconds.map(|seconds| Instant::now() + Duration::from_secs_f64(seconds));
    let over = || told_to_stop.load(Ordering::Relaxed) || deadline.is_some_and(|end| Instant::now() >= end);
    let result = trace.follow(&connection, over);
    trace.end().context("cannot write the trace")?;
    let written = trace.written;
    result?;
    if let Some(path) = &args.perfetto {
        println!("{written} events in {} (open it at https://ui.perfetto.dev)", path.display());
    }
    Ok(ExitCode::SUCCESS)
}

fn sink(args: &TraceArgs, realtime_offset_ns: u64) -> Result<Box<dyn Sink>> {
    let Some(path) = &args.perfetto else {
        let out = BufWriter::new(io::stdout());
        return Ok(if args.client.json { Box::new(lines::Json(out)) } else { Box::new(lines::Text(out)) });
    };
    let name = nix::unistd::gethostname().context("this node has no name")?.to_string_lossy().into_owned();
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let open = File::create(path)
        .and_then(|file| Perfetto::new(BufWriter::new(file), Node { name, boot, realtime_offset_ns }));
    let perfetto = open.map_err(|e| anyhow!("cannot write {}: {e} (choose another --perfetto)", path.display()))?;
    Ok(Box::new(perfetto))
}

/// The names of the jobs of events, and which of them somebody wants to see.
struct Jobs {
    owners: Owners,
    pattern: Option<JobPattern>,
}

impl Jobs {
    /// The name of the job with `id`, if somebody wants to see it.
    fn wanted(&mut self, id: u64) -> Option<String> {
        let name = self.owners.name(id);
        self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&name)).then_some(name)
    }
}

struct Trace<'a> {
    reader: Reader,
    jobs: Jobs,
    runs: Runs,
    sink: &'a mut dyn Sink,
    offset_ns: u64,
    /// When the last event happened.
    last_ns: u64,
    written: u64,
}

impl Trace<'_> {
    /// Until it is over, or the scheduler ends. Where this is behind, as on a busy node, what has happened by the end is
    /// still in the ring, and is written too.
    fn follow(&mut self, connection: &Held, over: impl Fn() -> bool) -> Result<()> {
        let mut end_ns = None;
        loop {
            if end_ns.is_none() && over() {
                end_ns = Some(event::monotonic_ns()?.wrapping_add(self.offset_ns));
            }
            let more = self.look()?;
            if end_ns.is_some_and(|end_ns| !more || self.last_ns >= end_ns) {
                return Ok(());
            }
            if more {
                continue;
            }
            if connection.is_over() {
                return Err(anyhow!(
                    "the scheduler has ended or was loaded again, and the trace with it (start it again)"
                ));
            }
            std::thread::sleep(LOOK_INTERVAL);
        }
    }

    /// Writes what has come. Returns whether there may be more.
    fn look(&mut self) -> Result<bool> {
        let (events, more) = self.reader.read()?;
        for raw in &events {
            self.last_ns = self.last_ns.max(raw.time_ns.wrapping_add(self.offset_ns));
            let Some(job) = self.jobs.wanted(raw.job) else { continue };
            let mut event = Event::of(raw, job, self.offset_ns)?;
            let run = self.runs.follow(&mut event);
            self.write(&event, run).context("cannot write the trace")?;
        }
        let lost = self.reader.lost()?;
        if lost > 0 {
            self.runs.forget();
            self.sink.lost(self.last_ns, lost).context("cannot write the trace")?;
        }
        self.sink.flush().context("cannot write the trace")?;
        Ok(more)
    }

    fn write(&mut self, event: &Event, run: Option<Run>) -> io::Result<()> {
        self.written += 1;
        self.sink.event(event)?;
        run.map_or(Ok(()), |run| self.sink.run(&run))
    }

    fn end(&mut self) -> io::Result<()> {
        for run in self.runs.end(self.last_ns) {
            self.sink.run(&run)?;
        }
        self.sink.end()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::*;
    use crate::jobs::job_by::JobBy;

    #[test]
    fn a_job_that_begins_during_the_trace_is_found() {
        let root = tempfile::tempdir().unwrap();
        let begin = |name: &str| -> u64 {
            let path: PathBuf = root.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::metadata(&path).unwrap().ino()
        };
        let owners = Owners::new(JobBy::Cgroup, Some(root.path().into()));
        let mut jobs = Jobs { owners, pattern: Some("/job_*".parse().unwrap()) };
        assert_eq!(jobs.wanted(begin("job_1")), Some("/job_1".into()));
        // Too soon after the last look at the hierarchy for another one.
        let second = begin("job_2");
        assert_eq!(jobs.wanted(second), None);
        // A second later there may be one, or a while after that if the first took long.
        let end = Instant::now() + Duration::from_secs(30);
        while jobs.wanted(second).is_none() {
            assert!(Instant::now() < end, "it is not found");
            std::thread::sleep(Duration::from_millis(50));
        }
        assert_eq!(jobs.wanted(second), Some("/job_2".into()));
    }
}
