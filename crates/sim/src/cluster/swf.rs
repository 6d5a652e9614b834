// SPDX-License-Identifier: GPL-2.0-only
//! Traces of real clusters in the Standard Workload Format, version 2.2 (Chapin et al. 1999; Feitelson's Parallel
//! Workloads Archive), with a sidecar that says what the jobs do, which no trace knows.
//!
//! A line of a trace is a job: 18 numbers, -1 being what nobody knows; lines that begin with a semicolon are comments.
//! Taken are the job's number (1), its submit time in s (2), its run time in s (4), its processors, allocated (5) or
//! else requested (8), and its executable (14) for the sidecar. Jobs that never ran, with a run time or processors of 0
//! or -1, are left out and counted.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;

use super::workload::{JobSpec, Mix, TYPES};

/// The fields of a line, in their order.
const FIELDS: [&str; 18] = [
    "job number",
    "submit time",
    "wait time",
    "run time",
    "number of allocated processors",
    "average CPU time used",
    "used memory",
    "requested number of processors",
    "requested time",
    "requested memory",
    "status",
    "user ID",
    "group ID",
    "executable number",
    "queue number",
    "partition number",
    "preceding job number",
    "think time from preceding job",
];

/// The largest time, in s: a century.
const MOST_S: f64 = 100.0 * 366.0 * 86400.0;

/// A trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    /// Its jobs, in the order in which they came.
    pub jobs: Vec<JobSpec>,
    /// How many lines are of jobs that did not run.
    pub left_out: usize,
}

/// What jobs do, as the sidecar has it, in %.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Percent {
    compute: f64,
    io: f64,
    communication: f64,
}

/// The sidecar.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Sidecar {
    default: Option<Percent>,
    #[serde(default)]
    executable: BTreeMap<String, Percent>,
    #[serde(default)]
    job: BTreeMap<String, Percent>,
}

/// What jobs do: by their numbers, else by their executables', else all the same.
struct Mixes {
    default: Mix,
    executable: BTreeMap<i64, Mix>,
    job: BTreeMap<i64, Mix>,
}

impl Mixes {
    fn read(path: Option<&Path>) -> Result<Mixes> {
        let Some(path) = path else {
            return Ok(Mixes { default: TYPES[2], executable: BTreeMap::new(), job: BTreeMap::new() });
        };
        let name = path.display();
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{name}: it cannot be read (--mixes takes a readable TOML file)"))?;
        let file: Sidecar = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
            anyhow!("{name}:{line}: {} (it takes [default], [executable.N] and [job.N], each with compute, io and communication in %)", error.message())
        })?;
        let numbered = |kind: &str, table: &BTreeMap<String, Percent>| {
            let one = |(number, percent): (&String, &Percent)| {
                let place = format!("{name}: [{kind}.{number}]");
                let number = number.parse().map_err(|_| {
                    anyhow!(
                        "{place}: it takes a whole number, as field {} of the trace has it",
                        if kind == "job" { 1 } else { 14 }
                    )
                })?;
                Ok::<_, anyhow::Error>((number, mix(&place, *percent)?))
            };
            table.iter().map(one).collect::<Result<BTreeMap<i64, Mix>>>()
        };
        let default = file.default.map_or(Ok(TYPES[2]), |percent| mix(&format!("{name}: [default]"), percent))?;
        Ok(Mixes { default, executable: numbered("executable", &file.executable)?, job: numbered("job", &file.job)? })
    }

    fn of(&self, job: i64, executable: i64) -> Mix {
        *self.job.get(&job).or_else(|| self.executable.get(&executable)).unwrap_or(&self.default)
    }
}

fn mix(place: &str, percent: Percent) -> Result<Mix> {
    let Percent { compute, io, communication } = percent;
    let parts = [("compute", compute), ("io", io), ("communication", communication)];
    if let Some((part, value)) = parts.iter().find(|(_, value)| !(0.0..=100.0).contains(value)) {
        return Err(anyhow!("{place}: {part}: {value} is out of range: it takes a number of % from 0 to 100"));
    }
    let sum = compute + io + communication;
    if (sum - 100.0).abs() > 0.01 {
        return Err(anyhow!("{place}: compute, io and communication add up to {sum} % (they take 100 % in all)"));
    }
    Ok(Mix { compute: compute / sum, io: io / sum, communication: communication / sum })
}

/// Reads the trace at `path`, with what its jobs do from `mixes`; its times are multiplied by `scale`.
///
/// # Errors
/// One line that names the file, the line and the field, and what to do, if either file is not as it should be, or a
/// job needs more than `nodes`.
pub fn read(path: &Path, mixes: Option<&Path>, scale: f64, nodes: u32) -> Result<Trace> {
    let name = path.display();
    let mixes = Mixes::read(mixes)?;
    let text =
        std::fs::read(path).with_context(|| format!("{name}: it cannot be read (--swf takes a readable trace)"))?;
    let mut trace = Trace { jobs: Vec::new(), left_out: 0 };
    let mut last = 0.0;
    let lines = text.split(|&byte| byte == b'\n').enumerate();
    for (i, line) in lines {
        let at = |what: String| anyhow!("{name}:{}: {what}", i + 1);
        let line =
            std::str::from_utf8(line).map_err(|_| at("it is no text (take the trace out of its archive)".into()));
        let line = line?.trim();
        if line.is_empty() || line.starts_with(';') {
            continue;
        }
        let fields = fields(line).map_err(at)?;
        let [number, submit_s, run_s, executable] = [0, 1, 3, 13].map(|field| fields[field]);
        if submit_s < last {
            return Err(at(format!(
                "field 2 (submit time): {submit_s} is before the {last} of the job above (sort the trace by it)"
            )));
        }
        last = submit_s;
        let size = if fields[4] > 0.0 { fields[4] } else { fields[7] };
        if run_s <= 0.0 || size <= 0.0 {
            trace.left_out += 1;
            continue;
        }
        if size > f64::from(nodes) {
            let field = if fields[4] > 0.0 { 5 } else { 8 };
            return Err(at(format!(
                "field {field} ({}): {size} is more than the {nodes} nodes (choose --nodes {size} or more, or leave the job out)",
                FIELDS[field - 1]
            )));
        }
        trace.jobs.push(JobSpec {
            arrival_ns: (submit_s * scale * 1e9) as u64,
            size: size as u32,
            execution_ns: ((run_s * scale * 1e9) as u64).max(1),
            mix: mixes.of(number as i64, executable as i64),
        });
    }
    if trace.jobs.is_empty() {
        return Err(anyhow!("{name}: no job in it ran (--swf takes a trace with one job at least)"));
    }
    let first_ns = trace.jobs[0].arrival_ns;
    trace.jobs.iter_mut().for_each(|job| job.arrival_ns -= first_ns);
    Ok(trace)
}

/// The numbers of a line.
fn fields(line: &str) -> Result<[f64; 18], String> {
    let mut numbers = [0.0; 18];
    let mut words = line.split_whitespace();
    for (i, (number, field)) in numbers.iter_mut().zip(FIELDS).enumerate() {
        let place = format!("field {} ({field})", i + 1);
        let word = words.next().ok_or_else(|| {
            format!("{place}: it is missing, the line ends after {i} of 18 fields (get the trace again, or take the line out)")
        })?;
        *number = word
            .parse()
            .ok()
            .filter(|number: &f64| number.is_finite())
            .ok_or_else(|| format!("{place}: '{word}' is no number (mend it, or write -1 for what is unknown)"))?;
        // Averages have fractions, and times may.
        let whole = ![1, 2, 3, 5, 6, 8, 9, 17].contains(&i);
        if whole && number.fract() != 0.0 {
            return Err(format!("{place}: '{word}' is no whole number (mend it, or write -1 for what is unknown)"));
        }
        let least = if i == 1 { 0.0 } else { -1.0 };
        if *number < least || ([1, 3].contains(&i) && *number > MOST_S) {
            let most = if [1, 3].contains(&i) { format!(" to {MOST_S}") } else { " on".into() };
            return Err(format!("{place}: {word} is out of range: it takes a number from {least}{most}"));
        }
    }
    match words.next() {
        Some(word) => Err(format!("'{word}' comes after the 18 fields (mend the line, or take it out)")),
        None => Ok(numbers),
    }
}
