// SPDX-License-Identifier: GPL-2.0-only
//! The configuration file, as far as `run` goes with it before it loads anything.

use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use cosched_rules::costs::Costs;
use scx_cosched::settings::{RunArgs, Settings};
use tempfile::TempDir;

use super::is_one_line;

const COSTS: Costs = Costs { latency_us: 10.0, overhead_us: 2.0, switch_us: 4.0 };

/// A file that is refused is named in one line. One that is taken has the same meaning when it is read again.
pub fn read(bytes: &[u8]) {
    static DIR: OnceLock<TempDir> = OnceLock::new();
    let path = DIR.get_or_init(|| tempfile::tempdir().unwrap()).path().join("c.toml");
    fs::write(&path, bytes).unwrap();
    let args = RunArgs { config: Some(path.clone()), flags: Default::default() };
    match Settings::from_args(&args) {
        Ok(settings) => {
            let again = settings.again().expect("it was taken before");
            assert_eq!(settings.changed(&again), Vec::<String>::new());
            assert_eq!(settings.policy, again.policy);
            settings.policy.to_bpf(&COSTS);
        }
        Err(error) => {
            is_one_line(&error);
            names_its_place(&format!("{error:#}"), &path);
        }
    }
}

/// An error begins with the file; what concerns a missing setting with its flag.
fn names_its_place(message: &str, path: &Path) {
    let path = path.to_str().unwrap();
    assert!(message.starts_with(path) || message.starts_with("--"), "{message:?}");
}
