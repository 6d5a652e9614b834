// SPDX-License-Identifier: GPL-2.0-only
//! Values together with where they came from, so that an error can name the flag or the line to change.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// Where a value was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
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

/// A value that somebody gave, as opposed to a default.
#[derive(Clone, Debug, PartialEq)]
pub struct Given<T> {
    /// What was given.
    pub value: T,
    /// Where.
    pub origin: Origin,
}

impl<T> Given<T> {
    /// A value from the command line.
    pub fn flag(value: T) -> Self {
        Given { value, origin: Origin::Flag }
    }

    /// The setting called `key` as the user wrote it: `--h-ms`, or `cosched.toml:3: h_ms`.
    pub fn name<'a>(&'a self, key: &'a str) -> Name<'a> {
        Name { origin: &self.origin, key }
    }
}

impl<T: Clone> Given<T> {
    /// What is wrong with this setting, which is called `key`.
    pub fn fault(&self, key: &str, message: impl fmt::Display) -> Fault {
        Fault { message: format!("{}: {message}", self.name(key)), origin: self.origin.clone() }
    }
}

/// What is wrong with a value, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// One line that starts with the setting's name.
    pub message: String,
    /// Who gave it.
    pub origin: Origin,
}

impl Fault {
    /// As an error: a flag is a matter of usage, a file is not.
    pub fn into_error(self) -> anyhow::Error {
        match self.origin {
            Origin::Flag => crate::report::usage(self.message),
            Origin::File { .. } => anyhow::anyhow!(self.message),
        }
    }
}

/// A setting's name as the user wrote it.
pub struct Name<'a> {
    origin: &'a Origin,
    key: &'a str,
}

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.origin {
            Origin::Flag => write!(f, "--{}", self.key.replace('_', "-")),
            Origin::File { path, line } => write!(f, "{}:{line}: {}", path.display(), self.key),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_what_the_user_wrote() {
        let origin = Origin::File { path: Arc::new("a.toml".into()), line: 3 };
        assert_eq!(Given::flag(1).name("h_ms").to_string(), "--h-ms");
        assert_eq!(Given { value: 1, origin }.name("h_ms").to_string(), "a.toml:3: h_ms");
    }
}
