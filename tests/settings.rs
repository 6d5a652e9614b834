// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a setting is one row. What is in the table is a flag with its range and default in `--help`, a key of the
//! configuration file, and has its range in the message about a wrong value.

mod common;

use common::refusals::{refuses, refuses_config};
use common::scx_cosched;
use cosched_rules::rows::{Kind, Row};
use scx_cosched::settings::rows;

/// Both ends of its range, and what a message says of a value beyond.
fn range(row: &Row) -> Option<(String, String)> {
    match row.kind {
        Kind::Whole(range) => Some((range.bounds(), range.describe())),
        Kind::Real(range) => Some((range.bounds(), range.describe())),
        _ => None,
    }
}

#[test]
fn a_row_is_a_flag_with_its_range_and_default_in_the_help() {
    for command in [&["run", "--help"][..], &["--help"]] {
        let help = String::from_utf8(scx_cosched(command).stdout).unwrap();
        let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
        for row in rows() {
            let value = if row.value.is_empty() { String::new() } else { format!(" <{}>", row.value) };
            let range = range(row).map_or(String::new(), |(bounds, _)| format!(" [{bounds}]"));
            let is_shown = !row.default.is_empty() && row.default != "false";
            let default = if is_shown { format!(" [default: {}]", row.default) } else { String::new() };
            let wanted = format!("--{}{value} {}{range}{default}", row.flag(), row.help.trim().trim_end_matches('.'));
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
