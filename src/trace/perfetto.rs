// SPDX-License-Identifier: GPL-2.0-only
//! A trace as a file of Chrome's trace events, which Perfetto shows: ui.perfetto.dev, or chrome://tracing.
//!
//! A node is a process, and each of its CPUs a thread. A run of a task is a slice of the category `boosted` or `fair`,
//! arrivals and decisions are instants, and an arrow leads from the arrival of a message to the run of its receiver.
//!
//! Files of several nodes can be put together: join their lists `traceEvents`. Therefore all times are real time, a
//! node's number is a hash of its name and boot, and a CPU's number and those of the arrows are made of it.
//!
//! Times are whole microseconds. They count from 1970, and readers that keep them as floating-point numbers would round
//! finer ones, each time and each length for itself, until slices overlap that do not.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde::Serialize;
use serde_json::json;

use super::Sink;
use super::event::{Event, What};
use super::lines::lost_words;
use super::runs::Run;
use cosched_rules::hash::fnv1a;

/// Who a trace is of.
#[derive(Clone, Debug)]
pub struct Node {
    /// What it is called.
    pub name: String,
    /// What tells this boot of it from all others.
    pub boot: String,
    /// What to add to its CLOCK_MONOTONIC to get the real time, ns.
    pub realtime_offset_ns: u64,
}

/// One of Chrome's trace events. All but the first three parts depend on what it is.
#[derive(Default, Serialize)]
struct Entry<'a, Args> {
    ph: &'a str,
    name: &'a str,
    pid: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cat: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cname: Option<&'a str>,
    /// Of an instant: how wide it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<&'a str>,
    /// Of an arrow: which.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    /// Of the end of an arrow: at the slice that is there, not at the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    args: Option<Args>,
}

/// What is said of an instant.
#[derive(Default, Serialize)]
struct About<'a> {
    comm: &'a str,
    pid: u32,
    job: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    running: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    granted_us: Option<u64>,
}

/// What is said of a run.
#[derive(Default, Serialize)]
struct AboutRun<'a> {
    pid: u32,
    job: &'a str,
    boosted: bool,
    parked: bool,
    ran_us: Option<u64>,
}

/// A file that is being written. It is complete after [`Sink::end`].
pub struct Perfetto<W> {
    out: W,
    node: Node,
    /// The number of the node.
    pid: u32,
    /// The CPUs that have a name.
    named: BTreeSet<u32>,
    /// By task: since when a message waits for it to run, and the number of the arrow from there.
    waiting: BTreeMap<u32, (u64, u32)>,
    arrows: u32,
}

impl<W: Write> Perfetto<W> {
    /// Begins to write a trace of `node` to `out`.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn new(mut out: W, node: Node) -> io::Result<Perfetto<W>> {
        // Of 30 bits, so that the numbers of CPUs fit behind it.
        let pid = (fnv1a(&format!("{}\n{}", node.name, node.boot)) >> 34) as u32 | 1;
        let name = json!({ "ph": "M", "name": "process_name", "pid": pid, "args": { "name": node.name } });
        write!(out, "{{\"traceEvents\":[\n{name}")?;
        Ok(Perfetto { out, node, pid, named: BTreeSet::new(), waiting: BTreeMap::new(), arrows: 0 })
    }

    fn write(&mut self, entry: &impl Serialize) -> io::Result<()> {
        self.out.write_all(b",\n")?;
        Ok(serde_json::to_writer(&mut self.out, entry)?)
    }

    /// The number of `cpu`, which has a name from then on.
    fn track(&mut self, cpu: u32) -> io::Result<u32> {
        let (pid, tid) = (self.pid, self.pid + 1 + cpu);
        if self.named.insert(cpu) {
            let name = json!({ "name": format!("CPU {cpu}") });
            for (what, args) in [("thread_name", name), ("thread_sort_index", json!({ "sort_index": cpu }))] {
                self.write(&json!({ "ph": "M", "name": what, "pid": pid, "tid": tid, "args": args }))?;
            }
        }
        Ok(tid)
    }

    /// One end of an arrow: `ph` is `s` where it starts, and `f` where it ends.
    fn arrow(&mut self, ph: &str, number: u32, cpu: u32, time_ns: u64) -> io::Result<()> {
        let (tid, id) = (self.track(cpu)?, format!("{:x}", u64::from(self.pid) << 32 | u64::from(number)));
        self.write(&Entry::<()> {
            ph,
            name: "message",
            cat: Some("message"),
            id: Some(&id),
            bp: (ph == "f").then_some("e"),
            pid: self.pid,
            tid: Some(tid),
            ts: Some(us(time_ns)),
            ..Default::default()
        })
    }

    fn instant(&mut self, event: &Event, cat: &str, name: &str, about: About<'_>) -> io::Result<()> {
        let tid = self.track(event.cpu)?;
        self.write(&Entry {
            ph: "i",
            name,
            cat: Some(cat),
            s: Some("t"),
            pid: self.pid,
            tid: Some(tid),
            ts: Some(us(event.time_ns)),
            args: Some(about),
            ..Default::default()
        })
    }

    fn slice(&mut self, run: &Run) -> io::Result<()> {
        let tid = self.track(run.cpu)?;
        let (cat, color) = if run.boosted { ("boosted", "good") } else { ("fair", "generic_work") };
        let Run { pid, job, boosted, parked, .. } = run;
        let (since_us, until_us) = (us(run.since_ns), us(run.until_ns));
        self.write(&Entry {
            ph: "X",
            name: &run.comm,
            cat: Some(cat),
            cname: Some(color),
            pid: self.pid,
            tid: Some(tid),
            ts: Some(since_us),
            dur: Some(until_us - since_us),
            args: Some(AboutRun { pid: *pid, job, boosted: *boosted, parked: *parked, ran_us: run.ran_ns.map(us) }),
            ..Default::default()
        })
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let about = About { comm: &event.comm, pid: event.pid, job: &event.job, ..Default::default() };
        match event.what {
            What::Arrival { endpoint, running } => {
                let name = format!("arrival: {endpoint}");
                self.instant(event, "arrival", &name, About { running: Some(running), ..about })?;
                if running || self.waiting.contains_key(&event.pid) {
                    return Ok(());
                }
                self.arrows += 1;
                self.waiting.insert(event.pid, (event.time_ns, self.arrows));
                self.arrow("s", self.arrows, event.cpu, event.time_ns)
            }
            What::Decision { granted, reason, granted_ns } => {
                let name = format!("{}: {reason}", if granted { "granted" } else { "denied" });
                let granted_us = granted.then(|| us(granted_ns));
                self.instant(event, "decision", &name, About { granted_us, ..about })
            }
            What::Turn { won, alike, .. } => {
                let name = match (won, alike) {
                    (true, None) => "turn won",
                    (true, Some(true)) => "turn won alike",
                    (true, Some(false)) => "turn won unlike",
                    (false, _) => "turn not won",
                };
                self.instant(event, "turn", name, about)
            }
            What::Clock { .. } => self.instant(event, "turn", "clock forward", about),
            // Seen when the run is over.
            What::SwitchIn { .. } | What::SwitchOut { .. } => Ok(()),
        }
    }

    fn run(&mut self, run: &Run) -> io::Result<()> {
        self.slice(run)?;
        // The events of two CPUs may come in another order than they happened in.
        let waiting = self.waiting.get(&run.pid).filter(|(arrived_ns, _)| *arrived_ns <= run.since_ns);
        let Some((_, number)) = waiting.copied() else { return Ok(()) };
        self.waiting.remove(&run.pid);
        self.arrow("f", number, run.cpu, run.since_ns)
    }

    fn lost(&mut self, time_ns: u64, count: u64) -> io::Result<()> {
        self.waiting.clear();
        self.write(&Entry::<()> {
            ph: "i",
            name: &lost_words(count),
            cat: Some("lost"),
            s: Some("p"),
            pid: self.pid,
            tid: Some(self.pid),
            ts: Some(us(time_ns)),
            ..Default::default()
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn end(&mut self) -> io::Result<()> {
        let Node { name, realtime_offset_ns, .. } = &self.node;
        let clock = json!({ "node": name, "clock": "CLOCK_REALTIME", "realtime_offset_ns": realtime_offset_ns });
        writeln!(self.out, "\n],\n\"otherData\":{clock}}}")?;
        self.flush()
    }
}

fn us(ns: u64) -> u64 {
    ns / 1000
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::runs::Runs;
    use super::super::runs::tests::{BOOSTED, IN, OUT, event};
    use super::*;

    const ARRIVAL: What = What::Arrival { endpoint: "tcp", running: false };
    const GRANTED: What = What::Decision { granted: true, reason: "lags", granted_ns: 20_000_000 };
    /// Some day in 2026.
    const START_US: u64 = 1_795_000_000_000_000;

    fn node(name: &str) -> Node {
        Node { name: name.into(), boot: "b".into(), realtime_offset_ns: 17 }
    }

    /// The file that becomes of events: time in us, CPU, task, what.
    fn file(node: Node, events: &[(u64, u32, u32, What)]) -> Value {
        let mut out = Vec::new();
        let mut perfetto = Perfetto::new(&mut out, node).unwrap();
        let mut runs = Runs::default();
        for (us, cpu, pid, what) in events {
            let mut event = event((START_US + us) * 1000 + 999, *cpu, *pid, *what, 1000 * us);
            let run = runs.follow(&mut event);
            perfetto.event(&event).unwrap();
            run.iter().for_each(|run| perfetto.run(run).unwrap());
        }
        runs.end((START_US + 100) * 1000).for_each(|run| perfetto.run(&run).unwrap());
        perfetto.end().unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    /// Those of the events that have this value at this key.
    fn with<'a>(file: &'a Value, key: &str, value: &str) -> Vec<&'a Value> {
        file["traceEvents"].as_array().unwrap().iter().filter(|event| event[key] == value).collect()
    }

    #[test]
    fn a_message_leads_to_the_run_that_it_causes() {
        let events = [
            (0, 1, 8, IN),
            (10, 1, 7, ARRIVAL),
            (11, 1, 7, ARRIVAL),
            (12, 1, 7, GRANTED),
            (13, 1, 8, OUT),
            (14, 1, 7, BOOSTED),
            (15, 1, 7, What::Arrival { endpoint: "udp", running: true }),
            (40, 1, 7, OUT),
            (50, 1, 7, IN),
        ];
        let file = file(node("n"), &events);
        let names: Vec<_> = with(&file, "ph", "i").iter().map(|event| event["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["arrival: tcp", "arrival: tcp", "granted: lags", "arrival: udp"]);

        let runs = with(&file, "ph", "X");
        let brief = |run: &&Value| (run["name"].clone(), run["cat"].clone(), run["ts"].clone(), run["dur"].clone());
        let wanted =
            |name: &str, cat: &str, at: u64, dur: u64| (name.into(), cat.into(), (START_US + at).into(), dur.into());
        let all: Vec<_> = runs.iter().map(brief).collect();
        let rest = wanted("task7", "fair", 50, 50);
        assert_eq!(all, [wanted("task8", "fair", 0, 13), wanted("task7", "boosted", 14, 26), rest]);

        let (starts, ends) = (with(&file, "ph", "s"), with(&file, "ph", "f"));
        assert_eq!((starts.len(), ends.len()), (1, 1), "{file}");
        assert_eq!((&starts[0]["ts"], &ends[0]["ts"]), (&json!(START_US + 10), &runs[1]["ts"]));
        assert_eq!((&starts[0]["id"], &starts[0]["tid"]), (&ends[0]["id"], &runs[1]["tid"]));
        assert_eq!(file["otherData"]["realtime_offset_ns"], 17);
    }

    #[test]
    fn a_message_that_comes_after_the_switch_waits_for_the_next_one() {
        let events = [(10, 0, 7, IN), (12, 0, 7, ARRIVAL), (15, 0, 7, OUT), (20, 0, 7, IN), (25, 0, 7, OUT)];
        let file = file(node("n"), &events);
        let ends: Vec<_> = with(&file, "ph", "f").iter().map(|end| end["ts"].clone()).collect();
        assert_eq!(ends, [json!(START_US + 20)]);
    }

    #[test]
    fn each_cpu_has_a_name_once_and_the_node_has_one() {
        let file = file(node("alpha"), &[(0, 0, 7, IN), (1, 3, 8, ARRIVAL), (2, 0, 7, OUT), (3, 0, 9, ARRIVAL)]);
        let names =
            |kind: &str| with(&file, "name", kind).iter().map(|e| e["args"]["name"].clone()).collect::<Vec<_>>();
        assert_eq!(names("process_name"), ["alpha"]);
        assert_eq!(names("thread_name"), ["CPU 3", "CPU 0"]);
        let tids: BTreeSet<u64> =
            with(&file, "name", "thread_name").iter().map(|e| e["tid"].as_u64().unwrap()).collect();
        assert_eq!(tids.len(), 2);
    }

    #[test]
    fn files_of_two_nodes_share_no_number() {
        let events = [(0, 0, 7, ARRIVAL), (1, 0, 7, IN), (2, 0, 7, OUT)];
        let nodes = [node("alpha"), node("beta"), Node { boot: "c".into(), ..node("alpha") }];
        let files = nodes.map(|node| file(node, &events));
        for key in ["pid", "tid", "id"] {
            let values = |file: &Value| {
                let events = file["traceEvents"].as_array().unwrap();
                events.iter().filter_map(|e| Some(e.get(key)?.to_string())).collect::<BTreeSet<_>>()
            };
            let [a, b, c] = files.each_ref().map(values);
            assert!(a.len() == 1 && a.is_disjoint(&b) && a.is_disjoint(&c) && b.is_disjoint(&c), "{key}: {a:?} {b:?}");
        }
        // And the times are such that a reader with floating-point numbers has them as they are.
        let time = files[0]["traceEvents"][4]["ts"].as_u64().unwrap();
        assert_eq!(time as f64 as u64, time);
    }

    #[test]
    fn what_is_lost_is_shown_and_no_arrow_leads_over_it() {
        let mut out = Vec::new();
        let mut perfetto = Perfetto::new(&mut out, node("n")).unwrap();
        perfetto.event(&event(1_000, 0, 7, ARRIVAL, 0)).unwrap();
        perfetto.lost(2_000, 12).unwrap();
        let mut runs = Runs::default();
        runs.follow(&mut event(3_000, 0, 7, IN, 0));
        perfetto.run(&runs.follow(&mut event(4_000, 0, 7, OUT, 0)).unwrap()).unwrap();
        perfetto.end().unwrap();
        let file: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(with(&file, "cat", "lost").len(), 1);
        assert_eq!(with(&file, "ph", "f").len(), 0);
    }
}
