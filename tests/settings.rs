// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a setting is one row. What is in the table is a flag with its range and default in `--help`, a key of the
//! configuration file, and has its range in the message about a wrong value.

mod common;

use std::collections::BTreeSet;

use common::refusals::{refuses, refuses_config};
use common::scx_cosched;
use cosched_rules::rows::{Kind, Row};
use scx_cosched::settings::rows;
use serde_json::{Map, Value};

/// Both ends of its range, and what a message says of a value beyond.
fn range(row: &Row) -> Option<(String, String)> {
    match row.kind {
        Kind::Whole(range) => Some((range.bounds(), range.describe())),
        Kind::Real(range) => Some((range.bounds(), range.describe())),
        _ => None,
    }
}

/// What the presets have for `key`, as the program lists them, each once.
fn of_presets(key: &str) -> Vec<String> {
    let listed = scx_cosched(&["policy", "list", "--json"]).stdout;
    let presets: Vec<Map<String, Value>> = serde_json::from_slice(&listed).unwrap();
    let text = |value: &Value| value.as_f64().map_or_else(|| value.to_string().replace('"', ""), |f| f.to_string());
    let values: BTreeSet<String> = presets.iter().filter_map(|preset| preset.get(key)).map(text).collect();
    values.into_iter().collect()
}

/// What the help of a setting says of its default; empty: a flag without a value has none.
fn default(row: &Row) -> String {
    let of_presets = of_presets(row.key);
    let says = match (row.kind, row.default, &of_presets[..]) {
        (Kind::Switch, ..) => return String::new(),
        _ if row.help.contains("[default: ") => return String::new(),
        (_, "", []) => match row.key {
            "latency_us" | "overhead_us" | "switch_us" => "measured",
            // No preset has the gate `rate`.
            "rate_exponent" | "rate_constant_ms" => "0",
            "rate_average" => "false",
            _ => "none",
        },
        (_, "", [one]) => one.as_str(),
        (_, "", _) => "by preset, see 'policy list --json'",
        (_, default, _) => default,
    };
    format!(" [default: {says}]")
}

#[test]
fn a_row_is_a_flag_with_its_range_and_default_in_the_help() {
    for command in [&["run", "--help"][..], &["--help"]] {
        let help = String::from_utf8(scx_cosched(command).stdout).unwrap();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for row in rows() {
            let value = if row.value.is_empty() { String::new() } else { format!(" <{}>", row.value) };
            let range = range(row).map_or(String::new(), |(bounds, _)| format!(" [{bounds}]"));
            let says = row.help.trim().trim_end_matches('.');
            let wanted = format!("--{}{value} {says}{range}{}", row.flag(), default(row));
            assert!(help.contains(&wanted), "{command:?} has no {wanted:?}");
        }
    }
}

#[test]
fn a_row_has_its_range_in_the_message_of_flag_and_file() {
    for (row, takes) in rows().filter_map(|row| Some((row, range(row)?.1))) {
        let beyond = "99999999999";
        refuses(&["run", &format!("--{}={beyond}", row.flag())], &[&format!("--{}", row.flag()), &takes]);
        let says = format!(":2: {}: {beyond} is out of range: {takes}", row.key);
        refuses_config(&format!("\n{} = {beyond}\n", row.key), &says);
    }
}

#[test]
fn a_default_is_a_value_that_the_row_takes() {
    for row in rows().filter(|row| !row.default.is_empty()) {
        (row.check)(row, row.default).unwrap_or_else(|wrong| panic!("{}: {wrong}", row.key));
    }
}
