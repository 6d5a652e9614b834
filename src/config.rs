// SPDX-License-Identifier: GPL-2.0-only
//! The configuration file: TOML with the flags' names as keys (`h_ms` for `--h-ms`).
//!
//! ```toml
//! policy = "dcs"
//! h_ms = -20
//! metrics_listen = "127.0.0.1:29937"
//!
//! [gang_rows]
//! "/slurm/job_7*" = 1
//! ```
//!
//! A key that is unknown, given twice, of the wrong type or out of range is an error that names its line,
//! and nothing is loaded.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, ValueDeserializer};

use crate::choices::{self, Choices, Kind, Overrides, ROWS, Row};
use crate::gang::NamedRows;
use crate::given::{Given, Origin};
use crate::partial::Partial;
use crate::prefetch::settings as prefetch;
use crate::{gang, limits, presets, report, wire};

/// A configuration file is a page or two. Anything larger is some other file, named by mistake.
const SIZE_MAX: u64 = 1 << 20;

/// The keys that are no choices.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    policy: Option<Spanned<String>>,
    job_by: Option<Spanned<String>>,
    arrivals: Option<Spanned<String>>,
    gang_rows: Option<BTreeMap<Spanned<String>, i64>>,
    peers: Option<Vec<Spanned<String>>>,
    interfaces: Option<Vec<Spanned<String>>>,
    cluster_key: Option<Spanned<String>>,
    node_number: Option<Spanned<i64>>,
    prefetch: Option<Spanned<i64>>,
    prefetch_port: Option<Spanned<i64>>,
    metrics_listen: Option<Spanned<String>>,
    jobs_top: Option<Spanned<i64>>,
    stats: Option<Spanned<f64>>,
    exit_dump_len: Option<Spanned<i64>>,
    verbose: Option<Spanned<bool>>,
    control_socket: Option<Spanned<String>>,
    hints_socket: Option<Spanned<String>>,
}

/// Reads the configuration file at `path`.
///
/// # Errors
/// One line that names the file, the line and the key, and what it takes.
pub fn read(path: &Path) -> Result<Partial> {
    let unreadable = |e: &dyn Display| anyhow!("{}: {e} (--config takes a readable TOML file)", path.display());
    let metadata = std::fs::metadata(path).map_err(|e| unreadable(&e))?;
    if !metadata.is_file() {
        return Err(unreadable(&"not a regular file"));
    }
    if metadata.len() > SIZE_MAX {
        return Err(unreadable(&format!("larger than {SIZE_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(&e))?;
    parse(path, &text)
}

fn parse(path: &Path, text: &str) -> Result<Partial> {
    let file = File { path: Arc::new(path.to_path_buf()), text };
    let document = DeTable::parse(text).map_err(|e| file.syntax(&e))?;
    let span = document.span();
    let (choices, rest): (DeTable, DeTable) =
        document.into_inner().into_iter().partition(|(key, _)| choices::row(key.get_ref()).is_some());
    let overrides = file.overrides(Spanned::new(span.clone(), choices))?;
    let keys = Keys::deserialize(Deserializer::from(Spanned::new(span, rest))).map_err(|e| file.syntax(&e))?;
    file.partial(keys, overrides)
}

struct File<'a> {
    path: Arc<PathBuf>,
    text: &'a str,
}

impl File<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        1 + self.text.bytes().take(span.start).filter(|b| *b == b'\n').count()
    }

    /// What the parser complains about, with line and key.
    fn syntax(&self, error: &toml::de::Error) -> anyhow::Error {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let message = ["i32", "i64", "u32"]
            .iter()
            .fold(message, |message, int| message.replace(&format!("expected {int}"), "expected a whole number"))
            .replace("expected f64", "expected a number")
            .replace("expected a map", "expected a table");
        // The parser that knows the rest does not know the choices.
        let choices: String = ROWS.iter().map(|row| format!("`{}`, ", row.key)).collect();
        let message = message.replace("expected one of ", &format!("expected one of {choices}"));
        let Some(span) = error.span() else {
            return anyhow!("{}: {message}", self.path.display());
        };
        let line = self.line(&span);
        let text = self.text.lines().nth(line - 1).unwrap_or_default();
        let key = text.split_once('=').map_or(text, |(key, _)| key).trim_matches([' ', '\t', '[', ']']);
        let key = if key.chars().all(|c| c.is_ascii_alphanumeric() || "_-.\"/:*".contains(c)) { key } else { "" };
        let key =
            if key.is_empty() || message.contains(&format!("`{key}`")) { String::new() } else { format!("{key}: ") };
        anyhow!("{}:{line}: {key}{message}", self.path.display())
    }

    /// The value of `key`, if it is there, read by `read`.
    fn get<V, T: Clone>(
        &self,
        key: &str,
        value: Option<Spanned<V>>,
        read: impl FnOnce(V) -> std::result::Result<T, String>,
    ) -> Result<Option<Given<T>>> {
        let Some(value) = value else { return Ok(None) };
        let origin = Origin::File { path: self.path.clone(), line: self.line(&value.span()) };
        let read = read(value.into_inner());
        let here = Given { value: (), origin: origin.clone() };
        let value = read.map_err(|e| here.fault(key, e).into_error())?;
        Ok(Some(Given { value, origin }))
    }

    /// The choices, each with its line.
    fn overrides(&self, table: Spanned<DeTable<'_>>) -> Result<Overrides> {
        let mut origins = BTreeMap::new();
        for (key, value) in table.get_ref() {
            let Some(row) = choices::row(key.get_ref()) else { continue };
            let origin = Origin::File { path: self.path.clone(), line: self.line(&key.span()) };
            let here = Given { value: (), origin };
            // A number is checked before its type is: one out of range may be none of the type.
            let checked = number(row, value).map_or(Ok(()), |number| row.check(number));
            checked.map_err(|e| here.fault(row.key, e).into_error())?;
            origins.insert(row.key, here.origin);
        }
        let choices = Choices::deserialize(Deserializer::from(table)).map_err(|e| self.syntax(&e))?;
        Ok(choices.given(|key| origins[key].clone()))
    }

    /// The table of rows, each with its line.
    fn gang_rows(&self, table: BTreeMap<Spanned<String>, i64>) -> Result<NamedRows> {
        let row = |(name, row): (Spanned<String>, i64)| {
            let origin = Origin::File { path: self.path.clone(), line: self.line(&name.span()) };
            let name = name.into_inner();
            // As flags have it: they say what is wrong.
            let read = gang::check_name(&name).and_then(|()| gang::ROW.parse(&row.to_string()));
            let here = Given { value: (), origin };
            let value = read.map_err(|e| here.fault("gang_rows", format!("'{name}': {e}")).into_error())?;
            Ok((name, Given { value, origin: here.origin }))
        };
        table.into_iter().map(row).collect()
    }

    /// A list, each entry with its line.
    fn list<T: Clone + FromStr<Err = String>>(
        &self,
        key: &str,
        texts: Option<Vec<Spanned<String>>>,
    ) -> Result<Vec<Given<T>>> {
        let read = |text: String| text.parse().map_err(|e| format!("'{}': {e}", report::one_line(&text)));
        let entry = |text| self.get(key, Some(text), read).map(|given| given.expect("it is there"));
        texts.unwrap_or_default().into_iter().map(entry).collect()
    }

    fn partial(&self, keys: Keys, overrides: Overrides) -> Result<Partial> {
        // A number goes through its text: one place, limits.rs, then says what is wrong with it.
        let dump = self.get("exit_dump_len", keys.exit_dump_len, |v| limits::EXIT_DUMP_LEN.parse(&v.to_string()))?;
        let control = self.get("control_socket", keys.control_socket, |v| limits::socket(&v))?;
        let hints = self.get("hints_socket", keys.hints_socket, |v| limits::socket(&v))?;
        let node = self.get("node_number", keys.node_number, |v| wire::settings::NODE_NUMBER.parse(&v.to_string()))?;
        let ahead = self.get("prefetch", keys.prefetch, |v| prefetch::CORRESPONDENTS.parse(&v.to_string()))?;
        let port = self.get("prefetch_port", keys.prefetch_port, |v| prefetch::PORT.parse(&v.to_string()))?;
        Ok(Partial {
            policy: self.get("policy", keys.policy, |name| presets::find(&name).map(|_| name))?,
            overrides,
            job_by: value(self.get("job_by", keys.job_by, |v| v.parse())?),
            arrivals: value(self.get("arrivals", keys.arrivals, |v| v.parse())?),
            gang_rows: self.gang_rows(keys.gang_rows.unwrap_or_default())?,
            wire: wire::settings::Partial {
                peers: self.list("peers", keys.peers)?,
                interfaces: self.list("interfaces", keys.interfaces)?,
                cluster_key: self.get("cluster_key", keys.cluster_key, |v| wire::key::key_path(&v))?,
                node_number: node,
                prefetch: ahead,
                prefetch_port: port,
            },
            metrics_listen: value(self.get("metrics_listen", keys.metrics_listen, |v| v.parse())?),
            jobs_top: value(self.get("jobs_top", keys.jobs_top, |v| limits::JOBS_TOP.parse(&v.to_string()))?),
            stats: value(self.get("stats", keys.stats, |v| limits::STATS.check(v))?),
            exit_dump_len: value(dump),
            verbose: value(self.get("verbose", keys.verbose, Ok)?),
            control_socket: value(control),
            hints_socket: value(hints),
        })
    }
}

/// The value of a number, if it is one of the right kind.
fn number(row: &Row, value: &Spanned<DeValue<'_>>) -> Option<f64> {
    let value = ValueDeserializer::from(value.clone());
    match row.kind {
        Kind::Whole(_) => i64::deserialize(value).ok().map(|number| number as f64),
        Kind::Real(_) => f64::deserialize(value).ok(),
        Kind::Rule | Kind::Switch => None,
    }
}

fn value<T>(given: Option<Given<T>>) -> Option<T> {
    given.map(|g| g.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(Path::new("c.toml"), text).unwrap_err().to_string()
    }

    #[test]
    fn every_key_is_read() {
        let all = "policy = \"dcs\"\narrival = \"demand\"\ngate = \"rate\"\nh_ms = -1.5\nrate_exponent = -1\n\
                   rate_constant_ms = 2\nresidual_slice = true\nwait = \"spin\"\nspin_us = 50\nslice_us = 1_000\njob_by = \"session\"\nmetrics_listen = \"none\"\n\
                   jobs_top = 3\nstats = 1\nexit_dump_len = 0\nverbose = true\ncontrol_socket = \"/run/a\"\n";
        let partial = parse(Path::new("c.toml"), all).unwrap();
        let given =
            |key: &str| (partial.overrides[key].value.to_string(), partial.overrides[key].name(key).to_string());
        for (key, value, line) in [
            ("arrival", "\"demand\"", 2),
            ("h_ms", "-1.5", 4),
            ("rate_constant_ms", "2.0", 6),
            ("residual_slice", "true", 7),
            ("spin_us", "50", 9),
            ("slice_us", "1000", 10),
        ] {
            assert_eq!(given(key), (value.into(), format!("c.toml:{line}: {key}")));
        }
        assert_eq!(partial.jobs_top, Some(3));
        assert_eq!(partial.verbose, Some(true));
    }

    #[test]
    fn an_unknown_key_is_named_with_its_line() {
        let error = error("policy = \"dcs\"\nhms = 3\n");
        assert!(error.starts_with("c.toml:2: unknown field `hms`"), "{error}");
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line_and_key() {
        let error = error("\n\nh_ms = \"ten\"\n");
        assert!(error.starts_with("c.toml:3: h_ms: invalid type: string"), "{error}");
    }

    #[test]
    fn a_duplicate_is_named_with_its_line_and_key() {
        let error = error("h_ms = 1\nslice_us = 1000\nh_ms = 2\n");
        assert!(error.starts_with("c.toml:3: h_ms: duplicate key"), "{error}");
    }

    #[test]
    fn a_value_out_of_range_is_named_with_its_line_and_what_it_takes() {
        for (text, wanted) in [
            (
                "slice_us = 5\n",
                "c.toml:1: slice_us: 5 is out of range: it takes a whole number of us from 100 to 1000000",
            ),
            ("\nh_ms = nan\n", "c.toml:2: h_ms: NaN is out of range"),
            ("rate_exponent = 33\n", "c.toml:1: rate_exponent: 33 is out of range"),
            ("jobs_top = -1\n", "c.toml:1: jobs_top: it takes a whole number from 0"),
            (
                "gate = \"open\"\n",
                "c.toml:1: gate: unknown gate 'open' (known: always, equalizing, epochs, rate, auto)",
            ),
            ("metrics_listen = \"29937\"\n", "c.toml:1: metrics_listen: it takes ADDRESS:PORT"),
        ] {
            let error = error(text);
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn what_is_not_toml_is_named_with_its_line() {
        for text in ["policy\n", "[[[", "policy = \"dcs\n", "\u{0}", "[run]\npolicy = \"dcs\"\n"] {
            let error = error(text);
            assert!(error.starts_with("c.toml:1: ") && !error.contains('\n'), "{error}");
        }
    }
}
