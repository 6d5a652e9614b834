// SPDX-License-Identifier: GPL-2.0-only
//! What the program does not take, by flag and by configuration file.

#![allow(dead_code)]

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::error_of;

/// The program refuses `args` with exit code 2 and a line that has all of `wanted`.
pub fn refuses(args: &[&str], wanted: &[&str]) {
    let (message, code) = error_of(args);
    assert_eq!(code, 2, "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: {message}");
    }
}

/// The program takes `args`, since what it does not like is what comes next: exit code 1, and not their fault.
pub fn accepts(args: &[&str]) {
    let mut all = [&["run"], args].concat();
    for elsewhere in [["--metrics-listen", "none"], ["--control-socket", "/no/such/directory/a.sock"]] {
        if !args.contains(&elsewhere[0]) {
            all.extend(elsewhere);
        }
    }
    let (message, code) = error_of(&all);
    assert_eq!(code, 1, "{all:?}: {message}");
    assert!(!message.contains(".toml"), "{all:?}: {message}");
}

/// A configuration file.
pub struct Config {
    _dir: TempDir,
    path: PathBuf,
}

impl Config {
    /// With this text, in a directory of its own that is gone with it.
    pub fn new(text: impl AsRef<[u8]>) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, text).unwrap();
        Config { _dir: dir, path }
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// What `run` says of the configuration without the path of the file, with the exit code.
pub fn error_of_config(text: &str, flags: &[&str]) -> (String, i32) {
    let config = Config::new(text);
    let (message, code) = error_of(&[&["run", "--config", config.path()], flags].concat());
    (message.replace(config.path(), ""), code)
}

/// The program refuses the configuration with exit code 1 and a line that starts with the file and `wanted`.
pub fn refuses_config(text: &str, wanted: &str) {
    let (message, code) = error_of_config(text, &[]);
    assert_eq!(code, 1, "{text:?}: {message}");
    assert!(message.starts_with(wanted), "{text:?}: {message:?} should start with {wanted:?}");
}
