// SPDX-License-Identifier: GPL-2.0-only
//! The points of a sweep: every combination of the values that its file gives to the flags of a model.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result};
use clap::Parser;
use serde::Deserialize;

use crate::cli::Model;
use crate::report;
use cosched_rules::report::{usage, what_is_wrong};

/// More points than anybody waits for.
const MOST: usize = 10_000_000;
/// Flags that make no sense at a point, with why.
const REFUSED: [(&str, &str); 2] =
    [("json", "results of a sweep are JSON lines anyhow"), ("trace", "all points would write the same file")];

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    model: String,
    #[serde(default)]
    fixed: BTreeMap<String, toml::Value>,
    #[serde(default)]
    grid: BTreeMap<String, Vec<toml::Value>>,
}

/// A point: the flags of a model, and their values as text.
#[derive(Clone, Debug)]
pub struct Point {
    /// Which model.
    pub model: String,
    /// Its flags, without the dashes before them; "true" of one that takes no value.
    pub args: BTreeMap<String, String>,
    /// What is run.
    pub run: Model,
}

/// `sim` with one of its models.
#[derive(Parser)]
#[command(name = "sim", disable_help_flag = true, disable_version_flag = true, disable_help_subcommand = true)]
struct Line {
    #[command(subcommand)]
    model: Model,
}

/// A flag with a value; no text of one that is off.
type Flag = (String, Option<String>);

/// Reads the file at `path`, and takes all its points apart before any is run. The last flag by name goes round
/// fastest.
///
/// # Errors
/// One line that names the file, the line in it and what to do, if it is no such file or a point would be refused on
/// the command line.
pub fn points(path: &Path) -> Result<Vec<Point>> {
    let name = path.display();
    let text = std::fs::read_to_string(path).with_context(|| format!("{name}: it cannot be read"))?;
    let file: File = toml::from_str(&text).map_err(|error| usage(format!("{name}: {error}")))?;
    let at = |key: &str| format!("{name}:{}: {key}", line_of(&text, key));
    let fixed =
        file.fixed.iter().map(|(key, value)| flag(key, value).map_err(|why| usage(format!("{}: {why}", at(key)))));
    let fixed = fixed.collect::<Result<Vec<Flag>>>()?;

    let mut axes: Vec<Vec<Flag>> = Vec::new();
    for (key, values) in &file.grid {
        if file.fixed.contains_key(key) {
            return Err(usage(format!("{}: it is in [fixed] and in [grid] (leave out one)", at(key))));
        }
        let flags = values.iter().map(|value| flag(key, value).map_err(|why| usage(format!("{}: {why}", at(key)))));
        axes.push(flags.collect::<Result<_>>()?);
        if values.is_empty() {
            return Err(usage(format!("{}: no value (give it one at least, or leave it out)", at(key))));
        }
    }
    let count = axes.iter().try_fold(1usize, |count, axis| count.checked_mul(axis.len()));
    let count = count
        .filter(|&count| count <= MOST)
        .ok_or_else(|| usage(format!("{name}: the grid has more than {MOST} points (split it into several files)")))?;
    (0..count).map(|i| point(&file.model, &fixed, &axes, i, &at)).collect()
}

/// The first line that begins with `key`, or the first of all.
fn line_of(text: &str, key: &str) -> usize {
    let begins = |line: &str| {
        let line = line.trim_start().trim_start_matches('"');
        line.strip_prefix(key).is_some_and(|rest| rest.trim_start_matches(['"', ' ', '\t']).starts_with('='))
    };
    text.lines().position(begins).map_or(1, |line| line + 1)
}

fn flag(key: &str, value: &toml::Value) -> Result<Flag, String> {
    let name = key.replace('_', "-");
    if let Some((_, why)) = REFUSED.iter().find(|(refused, _)| *refused == name) {
        return Err(format!("{why} (leave it out)"));
    }
    let value = match value {
        toml::Value::Boolean(on) => on.then(|| "true".to_string()),
        toml::Value::String(text) => Some(text.clone()),
        toml::Value::Integer(number) => Some(number.to_string()),
        toml::Value::Float(number) => Some(number.to_string()),
        _ => return Err("it takes a number, a text, true or false".into()),
    };
    Ok((name, value))
}

fn point(
    model: &str,
    fixed: &[Flag],
    axes: &[Vec<Flag>],
    mut place: usize,
    at: &dyn Fn(&str) -> String,
) -> Result<Point> {
    let mut flags: Vec<&Flag> = fixed.iter().collect();
    for axis in axes.iter().rev() {
        flags.push(&axis[place % axis.len()]);
        place /= axis.len();
    }
    let args: BTreeMap<String, String> =
        flags.into_iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?))).collect();
    let mut line = vec!["sim".to_string(), model.to_string()];
    for (flag, value) in &args {
        match value.as_str() {
            "true" => line.push(format!("--{flag}")),
            value => line.push(format!("--{flag}={value}")),
        }
    }
    let wrong = |what: String| {
        let flag = args.keys().find(|flag| what.contains(&format!("--{flag}")));
        usage(match flag {
            Some(flag) => format!("{}: {what}", at(flag)),
            None => format!("{}: {what}", at("model")),
        })
    };
    let run = Line::try_parse_from(&line).map_err(|error| wrong(what_is_wrong(&error)))?.model;
    report::check(&run).map_err(|error| wrong(error.to_string()))?;
    Ok(Point { model: model.into(), args, run })
}
