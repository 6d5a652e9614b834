// SPDX-License-Identifier: GPL-2.0-only
//! `trace`: prints arrivals, decisions and switches as they happen.
//!
//! The BPF side writes events to a ring while a flag is set (`bpf/trace.bpf.h`). This process asks the loader for that over
//! the control socket ([`tap`]), reads the ring ([`reader`]), gives events their names ([`event`]), makes runs of switches
//! ([`runs`]), and writes lines ([`lines`]) or a file for Perfetto ([`perfetto`]).

pub mod event;
pub mod lines;
pub mod perfetto;
pub mod reader;
pub mod runs;
pub mod tap;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::cli::TraceArgs;
use crate::control::commands;
use crate::control::{self, Held, Question};
use crate::jobs::owners::Owners;
use crate::node::check::Host;
use crate::snapshot::Snapshot;
use event::{Event, JobPattern};
use perfetto::{Node, Perfetto};
use reader::Reader;
use runs::{Run, Runs};
use tap::Outlet;

/// Between two looks at the ring. It holds what a busy node writes in far longer.
const LOOK_INTERVAL: Duration = Duration::from_millis(50);

/// What a trace becomes.
pub trait Sink {
    /// Something has happened.
    ///
    /// # Errors
    /// If it cannot be written.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// A run is over.
    ///
    /// # Errors
    /// If it cannot be written.
    fn run(&mut self, _run: &Run) -> io::Result<()> {
        Ok(())
    }

    /// So many events are missing here.
    ///
    /// # Errors
    /// If it cannot be written.
    fn lost(&mut self, time_ns: u64, count: u64) -> io::Result<()>;

    /// Somebody looks.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> io::Result<()>;

    /// There is no more.
    ///
    /// # Errors
    /// If it cannot be written.
    fn end(&mut self) -> io::Result<()> {
        self.flush()
    }
}

/// Prints what the running scheduler does, until it is told to stop.
///
/// # Errors
/// If no scheduler is running, somebody else traces, the trace cannot be written, or the scheduler ends before the trace.
pub fn run(args: &TraceArgs) -> Result<ExitCode> {
    crate::run::logging::init(false);
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
    let jobs = Jobs {
        owners: Owners::new(status.job_by, Host::new(Path::new("/")).cgroup_root()),
        pattern: args.job.clone(),
        known: HashMap::new(),
    };
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

/// The jobs of events, by number: their names, and whether somebody wants to see them.
struct Jobs {
    owners: Owners,
    pattern: Option<JobPattern>,
    known: HashMap<u64, (String, bool)>,
}

impl Jobs {
    /// The name of the job with `id`, if somebody wants to see it.
    fn wanted(&mut self, id: u64) -> Option<&str> {
        let (name, wanted) = self.known.entry(id).or_insert_with(|| {
            let name = self.owners.name(id);
            let wanted = self.pattern.as_ref().is_none_or(|pattern| pattern.matches(&name));
            (name, wanted)
        });
        wanted.then_some(name.as_str())
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
    /// Until it is over, or the scheduler ends.
    fn follow(&mut self, connection: &Held, over: impl Fn() -> bool) -> Result<()> {
        loop {
            let more = self.look()?;
            if over() {
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
            let mut event = Event::of(raw, job.into(), self.offset_ns)?;
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
