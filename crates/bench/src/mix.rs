// SPDX-License-Identifier: GPL-2.0-only
//! `bench mix`: jobs that come, wait for slots on as many nodes as they need, run beside others and go (Zhang 3). The
//! scheduler is the real one. The jobs and where they go are those of `sim cluster`.
//!
//! Nodes are CPUs of this machine. All processes are there before the first job comes, and sleep until theirs has its
//! slots. So to start a program is no part of what is measured. Under gang a slot is a row, and elsewhere nothing.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use comfy_table::Table;
use cosched_rules::VERSION;
use cosched_sim::cluster::place::Slots;
use cosched_sim::cluster::workload::{JobSpec, Stream, Workload};
use serde::Serialize;

use crate::cgroup::Cgroup;
use crate::contender::{Contender, Contenders};
use crate::experiment::check_writable;
use crate::handle::Handle;
use crate::interval::monotonic_ns;
use crate::length::parse_length;
use crate::receiver::Receiver;
use crate::scenario::Rows;
use crate::scheduler::Scheduler;
use crate::stats::Spread;
use crate::table::{empty_table, right_align};
use crate::worker::Start;
use crate::{interrupt, machine};

/// Of a message (Zhang 3.2).
const MESSAGE_BYTES: &str = "4096";
/// How many exchanges of messages are measured of processes that do nothing else, and how often: the least counts.
const EXCHANGES: u64 = 2000;
const SAMPLES: usize = 3;
/// From the moment when all is prepared to the first that a job may come.
const SETTLING: Duration = Duration::from_millis(500);

/// Compare policies by jobs that come and go on the CPUs of this machine, as `sim cluster` does in a model.
#[derive(Args, Clone, Debug)]
pub struct MixArgs {
    /// Which jobs: WL1 to WL6 of one type each, WL7 of all six, WL8 of those with most computation, I/O and
    /// communication (Zhang, Table 2).
    #[arg(long, value_name = "WL", default_value = "WL7")]
    workload: Workload,

    /// Schedulers to compare, as in `bench policies`; 'strategies' are the ten of Zhang, which has no gates. Where one
    /// has receives that leave the CPU, the jobs' receives block, and elsewhere they spin.
    #[arg(long, value_name = "NAME,...", default_value = "strategies,dcs-sb")]
    schedulers: Contenders,

    /// CPUs that stand for a node each, from CPU 0 on.
    #[arg(long, value_name = "N", default_value = "4", value_parser = clap::value_parser!(u32).range(2..=8))]
    nodes: u32,

    /// The multiprogramming level: processes that a node takes at a time.
    #[arg(long, value_name = "N", default_value = "3", value_parser = clap::value_parser!(u32).range(1..=16))]
    mpl: u32,

    /// How many jobs come.
    #[arg(long, value_name = "N", default_value = "12", value_parser = clap::value_parser!(u32).range(1..=100))]
    jobs: u32,

    /// How long a job takes alone, in the mean, in s.
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_length)]
    execution_s: Duration,

    /// What jobs ask for of all that the nodes have, 0.01 to 10: size times execution time over nodes times time.
    #[arg(long, value_name = "RHO", default_value = "1", value_parser = parse_load)]
    load: f64,

    /// By how much computation and I/O differ from process to process and time to time, in %.
    #[arg(long, value_name = "PCT", default_value = "20", value_parser = clap::value_parser!(u16).range(..=200))]
    skew: u16,

    /// Streams of jobs, each under every scheduler.
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u16).range(1..=100))]
    repeats: u16,

    /// What the first stream is drawn from; those after it have the next numbers.
    #[arg(long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32))]
    seed: u32,

    /// A stream that is not done after so many seconds is given up: a scheduler under which that happens is saturated.
    #[arg(long, value_name = "S", default_value = "60", value_parser = parse_length)]
    limit_s: Duration,

    /// Write the results to this file as JSON.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

fn parse_load(text: &str) -> Result<f64> {
    let load = text.parse().ok().filter(|load| (0.01..=10.0).contains(load));
    load.with_context(|| format!("'{text}' is no load: a number from 0.01 to 10 is wanted"))
}

/// What was found, as JSON.
#[derive(Serialize)]
struct Summary {
    kernel: String,
    version: &'static str,
    command: String,
    time: &'static str,
    switch_price_ns: u64,
    nodes: u32,
    /// What the messages of an iteration take two processes alone.
    exchange_us: f64,
    /// The same of more, of which those inside have two neighbours.
    inner_exchange_us: f64,
    results: Vec<Row>,
}

/// All streams under a scheduler. Times are means over the jobs of a stream.
#[derive(Serialize)]
struct Row {
    scheduler: String,
    /// From a job's arrival to its end; of a job that was given up, to then.
    response_s: Spread,
    /// From its arrival until it has its slots.
    wait_s: Spread,
    /// What part of the nodes' time went to what jobs do alone, without I/O, from the first arrival until the last job
    /// was done.
    utilization: Spread,
    /// Jobs that were given up, of all streams.
    given_up: usize,
    runs: Vec<Run>,
}

#[derive(Serialize)]
struct Run {
    seed: u64,
    jobs: Vec<Times>,
}

/// Of a job, in s from the time when the first may come.
#[derive(Clone, Copy, Debug, Serialize)]
struct Times {
    size: u32,
    /// Alone, without skew.
    alone_s: f64,
    /// Of that: computing and messages.
    cpu_s: f64,
    arrived_s: f64,
    /// When it had its slots; none if it never had.
    began_s: Option<f64>,
    /// None if it was given up.
    done_s: Option<f64>,
}

pub fn run(args: &MixArgs) -> Result<ExitCode> {
    args.out.as_deref().map_or(Ok(()), check_writable)?;
    interrupt::catch()?;
    machine::lead();
    let exchange = Exchange::measured(args.nodes)?;
    let mut scheduler = Scheduler::default();
    let measure = |contender| measure(args, contender, exchange, &mut scheduler);
    let results = args.schedulers.0.iter().map(measure).collect::<Result<Vec<Row>>>()?;
    drop(scheduler);

    println!("{}", table(&results));
    println!(
        "{} streams of {} jobs of {}, {} s long in the mean, at a load of {}, on {} nodes with {} slots each.",
        args.repeats,
        args.jobs,
        args.workload,
        args.execution_s.as_secs_f64(),
        args.load,
        args.nodes,
        args.mpl
    );
    let time = machine::time();
    let summary = Summary {
        kernel: machine::kernel(),
        version: VERSION,
        command: std::env::args().collect::<Vec<_>>().join(" "),
        time: time.name(),
        switch_price_ns: time.switch_price_ns,
        nodes: args.nodes,
        exchange_us: exchange.pair_ns as f64 / 1e3,
        inner_exchange_us: exchange.inner_ns as f64 / 1e3,
        results,
    };
    if let Some(file) = &args.out {
        let json = serde_json::to_string_pretty(&summary)? + "\n";
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn table(rows: &[Row]) -> Table {
    let mut table = empty_table();
    table.set_header(["scheduler", "response s", "least-greatest", "wait s", "utilization", "given up"]);
    for row in rows {
        let of = |spread: &Spread| format!("{:.2}", spread.median);
        let range = format!("{:.2}-{:.2}", row.response_s.min, row.response_s.max);
        let (response, wait, utilization) = (of(&row.response_s), of(&row.wait_s), of(&row.utilization));
        table.add_row([row.scheduler.clone(), response, range, wait, utilization, row.given_up.to_string()]);
    }
    right_align(&mut table, 1);
    table
}

/// All streams under this scheduler.
fn measure(args: &MixArgs, contender: &Contender, exchange: Exchange, scheduler: &mut Scheduler) -> Result<Row> {
    let of_row = |row| (format!("row{row}-*"), row);
    let rows = Rows { number: args.mpl as usize, of_each: (0..args.mpl as usize).map(of_row).collect() };
    scheduler.switch(contender, rows)?;
    let stream = Stream {
        workload: args.workload,
        jobs: args.jobs,
        execution_ns: args.execution_s.as_nanos() as f64,
        load: args.load,
        nodes: args.nodes,
    };
    let mut runs = Vec::new();
    for seed in (0..u64::from(args.repeats)).map(|number| number + u64::from(args.seed)) {
        let setting = Setting { args, receiver: contender.receiver(), one_row: contender.is_gang(), exchange };
        let jobs = setting.run(&stream.draw(seed)).with_context(|| format!("{contender}, seed {seed}"))?;
        scheduler.check()?;
        let run = Run { seed, jobs };
        eprintln!("{contender}, seed {seed}: response {:.2} s", run.response_s(args.limit_s));
        runs.push(run);
    }
    let of = |figure: fn(&Run, &MixArgs) -> f64| Spread::of(runs.iter().map(|run| figure(run, args)));
    Ok(Row {
        scheduler: contender.to_string(),
        response_s: of(|run, args| run.response_s(args.limit_s)),
        wait_s: of(|run, args| run.wait_s(args.limit_s)),
        utilization: of(|run, args| run.utilization(args.nodes, args.limit_s)),
        given_up: runs.iter().flat_map(|run| &run.jobs).filter(|job| job.done_s.is_none()).count(),
        runs,
    })
}

/// What is not done at the limit takes so long at the least.
impl Run {
    fn response_s(&self, limit: Duration) -> f64 {
        self.mean(|job| job.done_s.unwrap_or(limit.as_secs_f64()) - job.arrived_s)
    }

    fn wait_s(&self, limit: Duration) -> f64 {
        self.mean(|job| job.began_s.unwrap_or(limit.as_secs_f64()) - job.arrived_s)
    }

    fn mean(&self, of: impl Fn(&Times) -> f64) -> f64 {
        self.jobs.iter().map(of).sum::<f64>() / self.jobs.len() as f64
    }

    fn utilization(&self, nodes: u32, limit: Duration) -> f64 {
        let done = self.jobs.iter().filter(|job| job.done_s.is_some());
        let useful_s: f64 = done.map(|job| f64::from(job.size) * job.cpu_s).sum();
        let ends = self.jobs.iter().map(|job| job.done_s.unwrap_or(limit.as_secs_f64()));
        let first_s = self.jobs.iter().map(|job| job.arrived_s).fold(f64::INFINITY, f64::min);
        useful_s / (f64::from(nodes) * (ends.fold(0.0, f64::max) - first_s))
    }
}

/// What the messages of an iteration take processes on CPUs of their own that do nothing else.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    /// Of two processes, with a neighbour each.
    pair_ns: u64,
    /// Of more: those inside have two neighbours.
    inner_ns: u64,
}

impl Exchange {
    /// On this machine. As many nodes as there are decide how many neighbours there can be.
    fn measured(nodes: u32) -> Result<Exchange> {
        Ok(Exchange { pair_ns: exchange_ns(2)?, inner_ns: exchange_ns(nodes.min(3))? })
    }

    fn of(self, size: u32) -> u64 {
        if size > 2 { self.inner_ns } else { self.pair_ns }
    }
}

fn exchange_ns(size: u32) -> Result<u64> {
    let cpus: Vec<usize> = (0..size as usize).collect();
    let sample = |_| -> Result<u64> {
        let options = [format!("--iterations={EXCHANGES}"), "--receiver=spin".into(), "--compute-us=1".into()];
        let mut job = Job::prepare("exchange", size, &options)?;
        job.begin(&cpus, None)?;
        let reports = job.workers.iter_mut().map(|worker| worker.report()).collect::<Result<Vec<_>>>()?;
        let seconds = reports.iter().map(|report| report.seconds).fold(0.0, f64::max);
        Ok((seconds * 1e9) as u64 / EXCHANGES)
    };
    let samples = (0..SAMPLES).map(sample).collect::<Result<Vec<_>>>()?;
    samples.into_iter().min().context("no sample")
}

/// How a stream is run.
struct Setting<'a> {
    args: &'a MixArgs,
    receiver: Receiver,
    /// A job needs its slots in one row.
    one_row: bool,
    exchange: Exchange,
}

impl Setting<'_> {
    fn run(&self, specs: &[JobSpec]) -> Result<Vec<Times>> {
        let parent = Cgroup::parent();
        let has_rows = parent.is_some() || !self.one_row;
        ensure!(has_rows, "gang needs cgroup v2, mounted on /sys/fs/cgroup: its rows are cgroups");
        let mut jobs = specs
            .iter()
            .enumerate()
            .map(|(number, spec)| Job::prepare(&format!("job{number}"), spec.size, &self.options(spec)))
            .collect::<Result<Vec<_>>>()?;
        let mut slots = Slots::new(self.args.nodes, self.args.mpl);
        let mut times: Vec<Times> = specs.iter().map(Times::of).collect();

        let begin = Instant::now() + SETTLING;
        let at = |s: f64| begin + Duration::from_secs_f64(s);
        let over = begin + self.args.limit_s;
        interrupt::sleep_until(begin)?;
        // Jobs get their slots in the order in which they come, so those before `next` have had theirs.
        let (mut next, mut running) = (0, Vec::<Running>::new());
        loop {
            let now_s = begin.elapsed().as_secs_f64();
            while let Some(place) = running.iter().position(|job| jobs[job.number].is_over()) {
                let Running { number, places, .. } = running.swap_remove(place);
                slots.give(&places);
                times[number].done_s = Some(now_s);
                // Its processes have ended, and its cgroup can go.
                jobs[number].end();
            }
            if times.iter().all(|job| job.done_s.is_some()) || Instant::now() >= over {
                break;
            }
            while next < jobs.len() && times[next].arrived_s <= now_s {
                let Some(places) = slots.take(specs[next].size, self.one_row) else { break };
                let row = places[0] % self.args.mpl;
                let cpus: Vec<usize> = places.iter().map(|place| (place / self.args.mpl) as usize).collect();
                let cgroup = parent.as_ref().map(|parent| parent.child(&format!("row{row}-job{next}"))).transpose()?;
                jobs[next].begin(&cpus, cgroup)?;
                times[next].began_s = Some(now_s);
                running.push(Running { number: next, places });
                next += 1;
            }
            // A job that has come and has no slots waits for the end of another.
            let to_come = times.get(next).filter(|job| job.arrived_s > now_s);
            wait(&mut jobs, &running, to_come.map_or(over, |job| at(job.arrived_s)).min(over))?;
        }
        // What would have come later says nothing.
        times.retain(|job| job.arrived_s < self.args.limit_s.as_secs_f64());
        ensure!(!times.is_empty(), "no job has come within the {} s of --limit-s", self.args.limit_s.as_secs_f64());
        Ok(times)
    }

    /// What an iteration of this job consists of, and how many it has (Zhang 3.2): its messages take what they take,
    /// and the rest follows. A job of one process has no messages, and does the rest.
    fn options(&self, spec: &JobSpec) -> Vec<String> {
        let all_us = self.exchange.of(spec.size) as f64 / 1e3 / spec.mix.communication;
        let (compute_us, io_us) = (all_us * spec.mix.compute, all_us * spec.mix.io);
        let alone_us = if spec.size > 1 { all_us } else { compute_us + io_us };
        let iterations = (spec.execution_ns as f64 / 1e3 / alone_us).round().max(1.0);
        vec![
            format!("--receiver={}", self.receiver),
            format!("--compute-us={}", compute_us.round().max(1.0)),
            format!("--io-us={}", io_us.round()),
            format!("--imbalance={}", self.args.skew),
            format!("--iterations={iterations}"),
        ]
    }
}

impl Times {
    fn of(spec: &JobSpec) -> Times {
        let alone_s = spec.execution_ns as f64 / 1e9;
        // Of one process without messages it is the share of the rest.
        let messages = if spec.size > 1 { spec.mix.communication } else { 0.0 };
        let cpu_s = alone_s * (spec.mix.compute + messages) / (spec.mix.compute + messages + spec.mix.io);
        let arrived_s = spec.arrival_ns as f64 / 1e9;
        Times { size: spec.size, alone_s, cpu_s, arrived_s, began_s: None, done_s: None }
    }
}

/// A job that has its slots.
struct Running {
    number: usize,
    /// The places of its slots.
    places: Vec<u32>,
}

/// Until something happens: a process reports, or it is `deadline`.
fn wait(jobs: &mut [Job], running: &[Running], deadline: Instant) -> Result<()> {
    let sources: Vec<_> =
        running.iter().flat_map(|job| &jobs[job.number].workers).filter_map(|worker| worker.waits()).collect();
    if !interrupt::wait_readable(&sources, deadline)? {
        return Ok(());
    }
    for job in running {
        for worker in &mut jobs[job.number].workers {
            let Some(source) = worker.waits() else { continue };
            if interrupt::is_readable(source)? {
                worker.report()?;
            }
        }
    }
    Ok(())
}

/// The processes of a job, in the order of their ranks.
struct Job {
    // In the order in which they go: a cgroup with processes in it cannot be removed.
    workers: Vec<Handle>,
    cgroup: Option<Cgroup>,
}

impl Job {
    /// They wait for the time to begin.
    fn prepare(name: &str, size: u32, options: &[String]) -> Result<Job> {
        let start = |rank: u32, side: &str| {
            let mut args = vec!["bench", "spmd", "--json", "--pattern=line", "--bytes", MESSAGE_BYTES];
            args.extend(options.iter().map(String::as_str).chain([side].into_iter().filter(|side| !side.is_empty())));
            Handle::start(&format!("{name}.{rank}"), &args, None)
        };
        let mut others = (1..size).map(|rank| start(rank, "--listen=127.0.0.1:0")).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<Option<SocketAddr>> =
            others.iter_mut().map(Handle::wait_ready).collect::<Result<Vec<_>>>()?;
        let addresses: Vec<String> = addresses.into_iter().flatten().map(|address| address.to_string()).collect();
        ensure!(addresses.len() == others.len(), "a process of {name} does not say where it waits");
        let side = if addresses.is_empty() { String::new() } else { format!("--connect={}", addresses.join(",")) };
        let mut first = start(0, &side)?;
        first.wait_ready()?;
        Ok(Job { workers: [first].into_iter().chain(others).collect(), cgroup: None })
    }

    /// They begin on these CPUs, in this cgroup.
    fn begin(&mut self, cpus: &[usize], cgroup: Option<Cgroup>) -> Result<()> {
        if self.cgroup.is_some() || cpus.len() != self.workers.len() {
            bail!("a job of {} processes cannot begin on {} CPUs", self.workers.len(), cpus.len());
        }
        for (worker, &cpu) in self.workers.iter_mut().zip(cpus) {
            cgroup.as_ref().map_or(Ok(()), |cgroup| cgroup.add(worker.pid()))?;
            machine::pin_process(worker.pid(), cpu)?;
        }
        self.cgroup = cgroup;
        let begin_ns = monotonic_ns();
        self.workers.iter_mut().try_for_each(|worker| worker.begin(Start { begin_ns, measure_ns: begin_ns }))
    }

    /// All of its processes have reported.
    fn is_over(&self) -> bool {
        self.workers.iter().all(|worker| worker.waits().is_none())
    }

    fn end(&mut self) {
        self.workers.clear();
        self.cgroup = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_sim::cluster::workload::TYPES;

    fn job(arrived_s: f64, done_s: Option<f64>) -> Times {
        Times { size: 2, alone_s: 1.0, cpu_s: 0.75, arrived_s, began_s: Some(arrived_s), done_s }
    }

    #[test]
    fn a_job_that_is_given_up_took_all_the_time_and_used_nothing() {
        let limit = Duration::from_secs(6);
        let run = |jobs| Run { seed: 1, jobs };
        let done = run(vec![job(1.0, Some(2.0)), job(2.0, Some(4.0))]);
        assert_eq!((done.response_s(limit), done.wait_s(limit), done.utilization(4, limit)), (1.5, 0.0, 0.25));
        let given_up = run(vec![job(0.0, Some(1.0)), Times { began_s: None, ..job(2.0, None) }]);
        let of = (given_up.response_s(limit), given_up.wait_s(limit), given_up.utilization(4, limit));
        assert_eq!(of, (2.5, 2.0, 0.0625));
    }

    #[test]
    fn what_a_job_does_follows_from_its_messages() {
        let spec = JobSpec { arrival_ns: 0, size: 4, execution_ns: 100_000_000, mix: TYPES[0] };
        let args = <crate::BenchArgs as clap::Parser>::try_parse_from(["bench", "mix"]).unwrap();
        let crate::Command::Mix(args) = args.command else { panic!("mix") };
        let exchange = Exchange { pair_ns: 250_000, inner_ns: 500_000 };
        let setting = Setting { args: &args, receiver: Receiver::Block, one_row: false, exchange };
        let options = setting.options(&spec);
        assert_eq!(options[..3], ["--receiver=block", "--compute-us=350", "--io-us=150"]);
        assert_eq!(options[4], "--iterations=100");
        let pair = setting.options(&JobSpec { size: 2, ..spec });
        assert_eq!((pair[1].as_str(), pair[4].as_str()), ("--compute-us=175", "--iterations=200"));
        let one = setting.options(&JobSpec { size: 1, ..spec });
        assert_eq!(one[4], "--iterations=400", "as long without messages");
        let cpu_s = |size| Times::of(&JobSpec { size, ..spec }).cpu_s;
        assert!((cpu_s(4) - 0.085).abs() < 1e-9 && (cpu_s(1) - 0.07).abs() < 1e-9);
    }
}
