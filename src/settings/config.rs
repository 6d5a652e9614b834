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

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, anyhow, bail};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use cosched_rules::report;
use cosched_rules::rows::{Entries, Given, Kind, Origin, Row};

/// A configuration file is a page or two. Anything larger is some other file, named by mistake.
const SIZE_MAX: u64 = 1 << 20;

/// Reads the configuration file at `path`, whose keys are those of `rows`.
///
/// # Errors
/// One line that names the file, the line and the key, and what it takes.
pub fn read(path: &Path, rows: impl Iterator<Item = &'static Row>) -> Result<Entries> {
    let unreadable = |e: &dyn Display| anyhow!("{}: {e} (--config takes a readable TOML file)", path.display());
    let metadata = std::fs::metadata(path).map_err(|e| unreadable(&e))?;
    if !metadata.is_file() {
        return Err(unreadable(&"not a regular file"));
    }
    if metadata.len() > SIZE_MAX {
        return Err(unreadable(&format!("larger than {SIZE_MAX} bytes")));
    }
    let text = std::fs::read_to_string(path).map_err(|e| unreadable(&e))?;
    parse(path, &text, rows)
}

fn parse(path: &Path, text: &str, rows: impl Iterator<Item = &'static Row>) -> Result<Entries> {
    let file = File { path: Arc::new(path.to_path_buf()), text, rows: rows.collect() };
    let document = DeTable::parse(text).map_err(|e| file.syntax(&e))?;
    let mut settings: Vec<_> = document.into_inner().into_iter().collect();
    settings.sort_by_key(|(key, _)| key.span().start);
    settings.into_iter().map(|(key, value)| file.setting(&key, value)).collect()
}

struct File<'a> {
    path: Arc<PathBuf>,
    text: &'a str,
    rows: Vec<&'static Row>,
}

impl File<'_> {
    fn line(&self, span: &Range<usize>) -> usize {
        1 + self.text.bytes().take(span.start).filter(|b| *b == b'\n').count()
    }

    /// What the parser complains about, with line and key.
    fn syntax(&self, error: &toml::de::Error) -> anyhow::Error {
        let message = error.message().lines().collect::<Vec<_>>().join(", ");
        let message = message
            .replace("expected i64", "expected a whole number")
            .replace("expected f64", "expected a number")
            .replace("expected a map", "expected a table");
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

    /// What is given for `key`.
    fn setting(
        &self,
        key: &Spanned<Cow<'_, str>>,
        value: Spanned<DeValue<'_>>,
    ) -> Result<(&'static str, Vec<Given<String>>)> {
        let Some(row) = self.rows.iter().copied().find(|row| row.key == key.get_ref()) else {
            let known: Vec<String> = self.rows.iter().map(|row| format!("`{}`", row.key)).collect();
            let (path, line) = (self.path.display(), self.line(&key.span()));
            bail!("{path}:{line}: unknown field `{}`, expected one of {}", key.get_ref(), known.join(", "));
        };
        let span = value.span();
        let texts = texts(row.kind, ValueDeserializer::from(value)).map_err(|e| self.syntax(&e))?;
        let entry = |text: Text| {
            let line = self.line(text.span.as_ref().unwrap_or(&span));
            let given = Given { value: text.value, origin: Origin::File { path: self.path.clone(), line }, row };
            let prefix = text.label.map_or_else(String::new, |label| format!("'{label}': "));
            let wrong = |what| given.fault(format!("{prefix}{what}")).into_error();
            (row.check)(row, &given.value).map_err(wrong)?;
            Ok(given)
        };
        Ok((row.key, texts.into_iter().map(entry).collect::<Result<_>>()?))
    }
}

/// A value as its flag has it.
struct Text {
    value: String,
    /// Of an entry of a list or a table: where it is, and what an error calls it.
    span: Option<Range<usize>>,
    label: Option<String>,
}

/// What flags would give in place of `value`. A number becomes a text too: its row then says what is wrong with it.
fn texts(kind: Kind, value: ValueDeserializer<'_>) -> Result<Vec<Text>, toml::de::Error> {
    let one = |value| Ok(vec![Text { value, span: None, label: None }]);
    let entry = |name: Spanned<String>, value| {
        let span = Some(name.span());
        Text { value, span, label: Some(report::one_line(name.get_ref())) }
    };
    match kind {
        Kind::Text(_) => one(String::deserialize(value)?),
        Kind::Truth | Kind::Switch => one(bool::deserialize(value)?.to_string()),
        Kind::Whole(_) => one(i64::deserialize(value)?.to_string()),
        Kind::Real(_) => one(f64::deserialize(value)?.to_string()),
        Kind::List => {
            let list = Vec::<Spanned<String>>::deserialize(value)?;
            Ok(list.into_iter().map(|name| entry(name.clone(), name.into_inner())).collect())
        }
        Kind::Table => {
            let table = BTreeMap::<Spanned<String>, i64>::deserialize(value)?;
            let line =
                |(name, row): (Spanned<String>, i64)| entry(name.clone(), format!("{}={row}", name.into_inner()));
            Ok(table.into_iter().map(line).collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings;

    fn error(text: &str) -> String {
        parse(Path::new("c.toml"), text, settings::rows()).unwrap_err().to_string()
    }

    #[test]
    fn every_key_is_read() {
        let all = "policy = \"dcs\"\narrival = \"demand\"\ngate = \"rate\"\nh_ms = -1.5\nrate_exponent = -1\n\
                   rate_constant_ms = 2\nresidual_slice = true\nwait = \"spin\"\nspin_us = 50\nslice_us = 1_000\njob_by = \"session\"\nmetrics_listen = \"none\"\n\
                   jobs_top = 3\nstats = 1\nexit_dump_len = 0\nverbose = true\ncontrol_socket = \"/run/a\"\n";
        let entries = parse(Path::new("c.toml"), all, settings::rows()).unwrap();
        for (key, value, line) in [
            ("arrival", "demand", 2),
            ("h_ms", "-1.5", 4),
            ("rate_constant_ms", "2", 6),
            ("residual_slice", "true", 7),
            ("spin_us", "50", 9),
            ("slice_us", "1000", 10),
            ("jobs_top", "3", 13),
            ("verbose", "true", 16),
        ] {
            let given = &entries[key][0];
            assert_eq!(given.value, value);
            assert_eq!(given.fault("").message(), format!("c.toml:{line}: {key}: "));
        }
        assert_eq!(entries.len(), all.lines().count());
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
            ("jobs_top = -1\n", "c.toml:1: jobs_top: -1 is out of range: it takes a whole number from 0"),
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
