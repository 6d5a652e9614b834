// SPDX-License-Identifier: GPL-2.0-only
//! The results of a sweep: a JSON line for each point, whole or not there, and all of them as CSV.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use anyhow::{Context, Result, anyhow};
use nix::fcntl::{Flock, FlockArg};
use serde::Deserialize;
use serde_json::Value;

use super::grid::Point;
use crate::paper::figure::quoted;

/// What tells a point from others.
pub type Key = (String, BTreeMap<String, String>);

/// The key of a point.
pub fn key(point: &Point) -> Key {
    (point.model.clone(), point.args.clone())
}

/// A line.
#[derive(Deserialize)]
struct Line {
    model: String,
    args: BTreeMap<String, String>,
    result: Value,
}

/// All results that are in `dir`, whoever has written them.
///
/// # Errors
/// If a file cannot be read, or a line that is not its last is no result.
pub fn results(dir: &Path) -> Result<BTreeMap<Key, Value>> {
    let mut results = BTreeMap::new();
    let mut paths: Vec<PathBuf> =
        fs::read_dir(dir)?.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| is_lines(path)).collect();
    paths.sort();
    for path in paths {
        let text = fs::read_to_string(&path).with_context(|| format!("{}: it cannot be read", path.display()))?;
        // What has no end was cut short when its writer was killed, or is just being written.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        for (i, line) in whole.lines().enumerate() {
            let line: Line = serde_json::from_str(line).map_err(|error| {
                anyhow!("{}:{}: it is no result of a sweep: {error} (move the file away)", path.display(), i + 1)
            })?;
            results.insert((line.model, line.args), line.result);
        }
    }
    Ok(results)
}

fn is_lines(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "jsonl")
}

/// Where new results go: one process has it at a time.
pub struct Store(Mutex<Flock<File>>);

impl Store {
    /// Opens the file at `path`, and cuts off what a writer that was killed has left.
    ///
    /// # Errors
    /// If it cannot be written, or another process has it.
    pub fn open(path: &Path) -> Result<Store> {
        let name = path.display();
        let options = OpenOptions::new().read(true).append(true).create(true).open(path);
        let file = options.with_context(|| format!("{name}: it cannot be written"))?;
        let mut file = Flock::lock(file, FlockArg::LockExclusiveNonblock).map_err(|_| {
            anyhow!("{name}: another sweep writes to it (wait for it, or choose another --out or --shard)")
        })?;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(0))?;
        file.read_to_end(&mut bytes)?;
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        file.set_len(whole as u64)?;
        Ok(Store(Mutex::new(file)))
    }

    /// Adds the result of a point, which is JSON, in one write.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn add(&self, point: &Point, result: &str) -> Result<()> {
        let (model, args) = (serde_json::to_string(&point.model)?, serde_json::to_string(&point.args)?);
        let line = format!("{{\"model\": {model}, \"args\": {args}, \"result\": {result}}}\n");
        let mut file = self.0.lock().expect("no writer panics");
        file.write_all(line.as_bytes()).context("a result cannot be written")
    }
}

/// The numbers and texts in a result, by their names; those within others behind a dot. Lists are left out.
fn fields(prefix: &str, value: &Value, fields_of: &mut Vec<(String, String)>) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let name = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
                fields(&name, value, fields_of);
            }
        }
        Value::Array(_) => {}
        Value::Null => fields_of.push((prefix.into(), String::new())),
        Value::String(text) => fields_of.push((prefix.into(), text.clone())),
        other => fields_of.push((prefix.into(), other.to_string())),
    }
}

/// The points that have a result as CSV, in their order: a column for each flag, then one for each field of the
/// results.
pub fn csv(points: &[Point], results: &BTreeMap<Key, Value>) -> String {
    let mut flags: Vec<&String> = points.iter().flat_map(|point| point.args.keys()).collect();
    flags.sort();
    flags.dedup();
    let mut names: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    for point in points {
        let Some(result) = results.get(&key(point)) else { continue };
        let mut found = Vec::new();
        fields("", result, &mut found);
        for (name, _) in &found {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        rows.push((point, found.into_iter().collect::<BTreeMap<_, _>>()));
    }
    let header = flags.iter().map(|flag| flag.as_str()).chain(names.iter().map(String::as_str));
    let mut csv = header.map(quoted).collect::<Vec<_>>().join(",") + "\n";
    for (point, found) in &rows {
        let args = flags.iter().map(|flag| point.args.get(*flag));
        let cells = args.chain(names.iter().map(|name| found.get(name)));
        csv += &(cells.map(|cell| quoted(cell.map_or("", String::as_str))).collect::<Vec<_>>().join(",") + "\n");
    }
    csv
}
