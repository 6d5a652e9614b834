// SPDX-License-Identifier: GPL-2.0-only
//! Everything that is known of a setting, in one row. Its flag, its key in the configuration file, its help and what
//! is said of a wrong value follow from the row.
//!
//! The rows of a policy's choices are in [`choices`](crate::choices), those of the loader where it has its settings.
//! Flags and file both end as texts, each with its row and where it was given ([`Entries`]); a text that its row takes
//! becomes a value of the setting's type once, after flags and file have been merged.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Arg, ArgAction, ArgMatches};

use crate::range::Range;

/// What is known of a setting.
#[derive(Debug)]
pub struct Row {
    /// Its key in the configuration file. The flag has hyphens, and where it names one of several no final `s`.
    pub key: &'static str,
    /// What it is for. Range and default are added to that in `--help`.
    pub help: &'static str,
    /// What `--help` calls its value.
    pub value: &'static str,
    /// Which values it takes.
    pub kind: Kind,
    /// Its value unless somebody gives another, as text; empty: it has none.
    pub default: &'static str,
    /// Which rules it needs to have an effect: all of these.
    pub needs: &'static [Need],
    /// The setting without which it has none; empty: it needs no other.
    pub with: &'static str,
    /// Whether its type takes a text; if not, what it takes instead.
    pub check: fn(&'static Row, &str) -> Result<(), String>,
}

/// One of these rules, each with its axis, is needed. The first is the one that an error names.
pub type Need = &'static [(&'static str, &'static [&'static str])];

/// Which values a setting takes.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// A text that its type reads, if this has nothing against it.
    Text(fn(&str) -> Result<(), String>),
    /// True or false.
    Truth,
    /// A flag without a value, which has its first letter as a short form; in the file true or false.
    Switch,
    /// A whole number.
    Whole(Range<i64>),
    /// Any number.
    Real(Range<f64>),
    /// A flag for each entry; in the file a list.
    List,
    /// A flag NAME=NUMBER for each line; in the file a table.
    Table,
}

/// Every text that the setting's type reads.
pub const TEXT: Kind = Kind::Text(|_| Ok(()));

/// The whole numbers from `min` to `max`; `what` they are, in words: "a whole number of ms".
pub const fn whole(min: i64, max: i64, what: &'static str) -> Kind {
    Kind::Whole(Range::new(min, max, what))
}

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere.
    Default,
    /// On the command line.
    Flag,
    /// In a configuration file.
    File {
        /// The file.
        path: Arc<PathBuf>,
        /// The line, from 1.
        line: usize,
    },
}

/// A value with its setting and where it was given, so that an error can name the flag or the line to change.
#[derive(Clone, Debug)]
pub struct Given<T> {
    /// What was given.
    pub value: T,
    /// Where.
    pub origin: Origin,
    /// For which setting.
    pub row: &'static Row,
}

/// Where it was given makes no difference to a value.
impl<T: PartialEq> PartialEq for Given<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T> Given<T> {
    /// What is wrong with this value.
    pub fn fault(&self, what: impl Display) -> Fault {
        self.row.fault(&self.origin, what)
    }
}

/// What is wrong with a value, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    what: String,
    /// The setting's name as the user wrote it: `--h-ms`, or `cosched.toml:3: h_ms`.
    name: String,
    origin: Origin,
}

impl Fault {
    /// One line that starts with the setting's name.
    pub fn message(&self) -> String {
        format!("{}: {}", self.name, self.what)
    }

    /// As an error: a flag is a matter of usage, a file is not.
    pub fn into_error(self) -> anyhow::Error {
        match self.origin {
            Origin::File { .. } => anyhow::anyhow!(self.message()),
            Origin::Default | Origin::Flag => crate::report::usage(self.message()),
        }
    }
}

/// What flags or file give, by the settings' keys: one text, or of a list or table one for each entry.
pub type Entries = BTreeMap<&'static str, Vec<Given<String>>>;

/// What the file gives, and what flags give in its place. Lines of a table are added to those of the file.
pub fn merge(file: Entries, flags: Entries) -> Entries {
    let mut all = file;
    for (key, entries) in flags {
        let place = all.entry(key).or_default();
        place.retain(|entry| matches!(entry.row.kind, Kind::Table));
        place.extend(entries);
    }
    all
}

/// What the command line gives.
pub fn entries(rows: impl Iterator<Item = &'static Row>, matches: &ArgMatches) -> Entries {
    let texts = |row: &'static Row| -> Vec<String> {
        match row.kind {
            Kind::Switch => matches.get_flag(row.key).then(|| "true".to_owned()).into_iter().collect(),
            _ => matches.get_many::<String>(row.key).into_iter().flatten().cloned().collect(),
        }
    };
    let given = |row| texts(row).into_iter().map(|value| Given { value, origin: Origin::Flag, row }).collect();
    rows.map(|row| (row.key, given(row))).filter(|(_, entries): &(_, Vec<_>)| !entries.is_empty()).collect()
}

impl Row {
    /// Its flag, without dashes.
    pub fn flag(&self) -> String {
        let key = if matches!(self.kind, Kind::List | Kind::Table) { self.key.trim_end_matches('s') } else { self.key };
        key.replace('_', "-")
    }

    /// Its flag, as clap takes it.
    pub fn arg(&'static self) -> Arg {
        let arg = Arg::new(self.key).long(self.flag()).help(self.help_text());
        let action = match self.kind {
            Kind::Switch => return arg.short(self.key.chars().next()).action(ArgAction::SetTrue),
            Kind::List | Kind::Table => ArgAction::Append,
            _ => ArgAction::Set,
        };
        arg.action(action)
            .value_name(self.value)
            .value_parser(move |text: &str| (self.check)(self, text).map(|()| text.to_owned()))
            .allow_hyphen_values(matches!(self.kind, Kind::Whole(_) | Kind::Real(_)))
    }

    fn help_text(&self) -> String {
        let help = self.help.trim().trim_end_matches('.');
        let range = match self.kind {
            Kind::Whole(range) => format!(" [{}]", range.bounds()),
            Kind::Real(range) => format!(" [{}]", range.bounds()),
            _ => String::new(),
        };
        let default = match (self.kind, self.default) {
            (Kind::Switch, _) | (_, "") => String::new(),
            (_, default) => format!(" [default: {default}]"),
        };
        format!("{help}{range}{default}")
    }

    /// What is wrong with a value of this setting that was given at `origin`.
    pub fn fault(&self, origin: &Origin, what: impl Display) -> Fault {
        let name = match origin {
            Origin::Default | Origin::Flag => format!("--{}", self.flag()),
            Origin::File { path, line } => format!("{}:{line}: {}", path.display(), self.key),
        };
        Fault { what: what.to_string(), name, origin: origin.clone() }
    }

    /// The setting's value among `given`.
    ///
    /// # Errors
    /// Names the first text that it does not take.
    pub fn value<T: Value>(&'static self, given: &Entries) -> Result<T, Fault> {
        T::read(self, given.get(self.key).map_or(&[], Vec::as_slice))
    }

    /// Reads a value.
    ///
    /// # Errors
    /// What it takes instead.
    pub fn read<T: Scalar>(&self, text: &str) -> Result<T, String> {
        match self.kind {
            Kind::Text(check) => check(text)?,
            Kind::Truth | Kind::Switch => text.parse::<bool>().map(drop).map_err(|_| "it takes true or false")?,
            Kind::Whole(range) => range.parse(text).map(drop)?,
            Kind::Real(range) => range.parse(text).map(drop)?,
            Kind::List | Kind::Table => (),
        }
        text.parse().map_err(|error: T::Err| error.to_string())
    }
}

/// What a setting's type is: a [`Scalar`] if it has a default, an `Option` of one if not, a list or a table.
pub trait Value: Sized {
    /// What was given for the setting.
    ///
    /// # Errors
    /// Names the first text that it does not take.
    fn read(row: &'static Row, entries: &[Given<String>]) -> Result<Self, Fault>;

    /// Whether the setting takes a text.
    ///
    /// # Errors
    /// What it takes instead.
    fn check(row: &'static Row, text: &str) -> Result<(), String> {
        let given = Given { value: text.to_owned(), origin: Origin::Flag, row };
        Self::read(row, &[given]).map(drop).map_err(|fault| fault.what)
    }
}

/// What is one text.
pub trait Scalar: FromStr<Err: Display> {}

macro_rules! scalars {
    ($($type:ty),+) => { $(impl Scalar for $type {})+ };
}
scalars!(bool, u16, u32, i32, f64, String, PathBuf);

impl<T: Scalar> Value for Option<T> {
    fn read(row: &'static Row, entries: &[Given<String>]) -> Result<Self, Fault> {
        entries.last().map(|given| row.read(&given.value).map_err(|what| given.fault(what))).transpose()
    }
}

/// A setting with a default of which it matters whether it was given.
impl<T: Scalar> Value for Given<T> {
    fn read(row: &'static Row, entries: &[Given<String>]) -> Result<Self, Fault> {
        let (text, origin) = entries.last().map_or((row.default, &Origin::Default), |e| (&e.value, &e.origin));
        let value = row.read(text).map_err(|what| row.fault(origin, what))?;
        Ok(Given { value, origin: origin.clone(), row })
    }
}

impl<T: Scalar> Value for T {
    fn read(row: &'static Row, entries: &[Given<String>]) -> Result<Self, Fault> {
        Given::<T>::read(row, entries).map(|given| given.value)
    }
}

impl<T: Scalar> Value for Vec<Given<T>> {
    fn read(row: &'static Row, entries: &[Given<String>]) -> Result<Self, Fault> {
        entries.iter().map(|entry| Given::read(row, std::slice::from_ref(entry))).collect()
    }
}
