// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever comes from outside, no reader of it panics, and each keeps what it promises. Here the readers get
//! the seeds, among them what a fuzzer has found before. `make fuzz` builds the same file for libFuzzer, which changes
//! the seeds for as long as it is told to (tests/fuzz/run).
#![cfg_attr(fuzzing, no_main)]

#[path = "../common/mod.rs"]
mod common;
mod config;
mod control;
mod hints;
mod swf;

/// A reader: it is handed bytes, and fails by a panic.
type Target = fn(&[u8]);

/// All readers, by the names of their directories of seeds. The parser of the wire is in C, in wire.c beside this file.
const TARGETS: [(&str, Target); 4] =
    [("config", config::read), ("control", control::ask), ("hints", hints::talk), ("swf", swf::read)];

/// What every error of the program has to be: one line, once it is printed, that says something.
fn is_one_line(error: &anyhow::Error) {
    let message = cosched_rules::report::one_line(&format!("{error:#}"));
    assert!(!message.is_empty() && !message.contains(['\n', '\r']), "{message:?}");
}

#[cfg(not(fuzzing))]
mod seeds {
    use std::fs;
    use std::path::Path;

    use super::{TARGETS, Target};

    /// Runs a reader on each of its seeds.
    fn replay(name: &str, target: Target) {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/seeds").join(name);
        let seeds: Vec<_> = fs::read_dir(&dir).expect("it has seeds").map(|entry| entry.unwrap().path()).collect();
        assert!(seeds.len() >= 3, "{name} has {} seeds", seeds.len());
        for seed in seeds {
            println!("{}", seed.display());
            target(&fs::read(&seed).unwrap());
        }
    }

    #[test]
    fn readers_take_their_seeds() {
        for (name, target) in TARGETS {
            replay(name, target);
        }
    }
}

#[cfg(fuzzing)]
mod fuzzer {
    use std::sync::OnceLock;

    use super::{TARGETS, Target};

    /// The reader that the environment names.
    fn target() -> Target {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        // A reader may be a thread of its own: its panic ends the process too, so that libFuzzer sees it.
        let print = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            print(panic);
            std::process::abort();
        }));
        restart_calls();
        let known = TARGETS.iter().find(|(known, _)| *known == name);
        known.unwrap_or_else(|| panic!("FUZZ_TARGET: no such reader: '{name}' (tests/fuzz/run sets it)")).1
    }

    /// libFuzzer looks at its watch by a signal. Whatever call a reader waits in goes on then.
    fn restart_calls() {
        // SAFETY: the signal's handler stays as it is, and a flag is added.
        unsafe {
            let mut action = std::mem::zeroed();
            libc::sigaction(libc::SIGALRM, std::ptr::null(), &raw mut action);
            action.sa_flags |= libc::SA_RESTART;
            libc::sigaction(libc::SIGALRM, &raw const action, std::ptr::null_mut());
        }
    }

    /// What libFuzzer calls for each input.
    #[unsafe(no_mangle)]
    extern "C" fn LLVMFuzzerTestOneInput(data: *const u8, size: usize) -> i32 {
        static TARGET: OnceLock<Target> = OnceLock::new();
        let bytes = match size {
            0 => &[],
            // SAFETY: libFuzzer hands over so many bytes, for as long as this runs.
            _ => unsafe { std::slice::from_raw_parts(data, size) },
        };
        TARGET.get_or_init(target)(bytes);
        0
    }
}
