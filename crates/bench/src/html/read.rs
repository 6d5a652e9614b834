// SPDX-License-Identifier: GPL-2.0-only
//! Reads what the benches have written. `bench demo` and `bench policies` write a row for each job under each
//! scheduler; `tests/vm/bench-mpi` and `bench-rdma` a row for each program, with its schedulers in it. Older files lack
//! some values.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use serde_json::Value;

/// What one bench has found.
#[derive(Debug)]
pub struct Bench {
    /// Its file.
    pub name: String,
    /// Machine, kernel, versions and commands: all that the file says besides results.
    pub facts: Vec<(String, String)>,
    /// What can be compared, in the order of the file.
    pub groups: Vec<Group>,
}

/// One job, under several schedulers.
#[derive(Debug)]
pub struct Group {
    pub title: String,
    /// What is counted in a second.
    pub unit: &'static str,
    pub rows: Vec<Row>,
}

/// A job under a scheduler.
#[derive(Debug, Default)]
pub struct Row {
    pub scheduler: String,
    pub rate: Rate,
    /// Of each run.
    pub runs: Vec<f64>,
    /// Of all runs, by the powers of two of us; empty if the file does not say.
    pub round_trips_by_log2_us: Vec<u64>,
    pub times_eevdf: Option<f64>,
    pub fairness: Vec<f64>,
    pub efficiency: Option<f64>,
    pub p50_us: Option<f64>,
    pub p99_us: Option<f64>,
    pub max_us: Option<f64>,
    /// Why the figures are not to be believed.
    pub doubt: Option<String>,
}

/// A median with what is known of its spread.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
pub struct Rate {
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub q1: Option<f64>,
    pub q3: Option<f64>,
}

/// The summaries in the directory `path`, or the file `path` itself.
fn files(path: &Path) -> Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.into()]);
    }
    let entries = fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
    let entries: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    let name = |path: &PathBuf| path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
    let is_summary = |path: &PathBuf| name(path).starts_with("summary") && name(path).ends_with(".json");
    let mut found: Vec<PathBuf> = entries.into_iter().filter(is_summary).collect();
    found.sort();
    match found.is_empty() {
        true => Err(anyhow!("{} has no summary.json (a bench writes it: make demo)", path.display())),
        false => Ok(found),
    }
}

/// All benches of `paths`.
pub fn benches(paths: &[PathBuf]) -> Result<Vec<Bench>> {
    let files: Vec<PathBuf> = paths.iter().map(|path| files(path)).collect::<Result<Vec<_>>>()?.concat();
    files.iter().map(|file| bench(file)).collect()
}

fn bench(file: &Path) -> Result<Bench> {
    let name = file.display().to_string();
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {name}"))?;
    let what = || format!("{name} is no summary of a bench");
    let mut fields: BTreeMap<String, Value> = serde_json::from_str(&text).with_context(what)?;
    let groups = match (fields.remove("results"), fields.remove("rows")) {
        (Some(results), _) => by_job(serde_json::from_value(results).with_context(what)?),
        (None, Some(rows)) => by_program(serde_json::from_value(rows).with_context(what)?),
        (None, None) => return Err(anyhow!("{}: it has no results", what())),
    };
    Ok(Bench { name, facts: facts(fields), groups })
}

/// What a file says besides results, as words.
fn facts(fields: BTreeMap<String, Value>) -> Vec<(String, String)> {
    let words = |value: Value| match value {
        Value::String(text) => text,
        Value::Array(values) => {
            let texts = values.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), String::from));
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Object(values) => {
            values.iter().map(|(key, value)| format!("{key} {value}")).collect::<Vec<_>>().join(", ")
        }
        value => value.to_string(),
    };
    let known = fields.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(key, value)| (key.replace('_', " "), words(value))).collect()
}

/// As summary.rs has it.
#[derive(Deserialize)]
struct JobRow {
    receiver: String,
    scheduler: String,
    competitors: usize,
    scenario: Option<String>,
    #[serde(default)]
    job: usize,
    #[serde(default)]
    jobs: usize,
    round_trips_per_s: Rate,
    ratio_to_eevdf: Option<f64>,
    fairness: f64,
    efficiency: Option<f64>,
    not_measured: Option<String>,
    p50_us: f64,
    p99_us: f64,
    max_us: f64,
    #[serde(default)]
    runs: Vec<JobRun>,
}

#[derive(Deserialize)]
struct JobRun {
    round_trips_per_s: f64,
    #[serde(default)]
    round_trips_by_log2_us: Vec<u64>,
}

impl JobRow {
    fn title(&self) -> String {
        let alone = if self.competitors == 0 { "alone".into() } else { format!("beside {}", self.competitors) };
        let scenario = self.scenario.clone().unwrap_or_else(|| format!("{}, {alone}", self.receiver));
        if self.jobs > 1 { format!("{scenario}, job {} of {}", self.job + 1, self.jobs) } else { scenario }
    }

    fn row(self) -> Row {
        let mut by_log2_us = vec![0; self.runs.iter().map(|run| run.round_trips_by_log2_us.len()).max().unwrap_or(0)];
        for run in &self.runs {
            by_log2_us.iter_mut().zip(&run.round_trips_by_log2_us).for_each(|(sum, count)| *sum += count);
        }
        Row {
            scheduler: self.scheduler,
            rate: self.round_trips_per_s,
            runs: self.runs.iter().map(|run| run.round_trips_per_s).collect(),
            round_trips_by_log2_us: by_log2_us,
            times_eevdf: self.ratio_to_eevdf,
            fairness: vec![self.fairness],
            efficiency: self.efficiency,
            p50_us: Some(self.p50_us),
            p99_us: Some(self.p99_us),
            max_us: Some(self.max_us),
            doubt: self.not_measured,
        }
    }
}

fn by_job(rows: Vec<JobRow>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for row in rows {
        let title = row.title();
        match groups.iter_mut().find(|group| group.title == title) {
            Some(group) => group.rows.push(row.row()),
            None => groups.push(Group { title, unit: "round trips", rows: vec![row.row()] }),
        }
    }
    groups
}

/// As `summarize` of tests/vm/contenders.sh has it.
#[derive(Deserialize)]
struct ProgramRow {
    by: String,
    program: String,
    schedulers: BTreeMap<String, ProgramFigures>,
}

#[derive(Deserialize)]
struct ProgramFigures {
    steps_per_s: f64,
    quartiles: [f64; 2],
    least: f64,
    greatest: f64,
    fairness: Vec<f64>,
    times_eevdf: Option<f64>,
    efficiency: Option<f64>,
}

fn by_program(rows: Vec<ProgramRow>) -> Vec<Group> {
    let row = |(scheduler, figures): (String, ProgramFigures)| Row {
        scheduler,
        rate: Rate {
            median: figures.steps_per_s,
            min: figures.least,
            max: figures.greatest,
            q1: Some(figures.quartiles[0]),
            q3: Some(figures.quartiles[1]),
        },
        times_eevdf: figures.times_eevdf,
        fairness: figures.fairness,
        efficiency: figures.efficiency,
        ..Row::default()
    };
    let group = |of: ProgramRow| Group {
        title: format!("{} by {}", of.program, of.by),
        unit: "steps",
        rows: of.schedulers.into_iter().map(row).collect(),
    };
    rows.into_iter().map(group).collect()
}
