// SPDX-License-Identifier: GPL-2.0-only
//! Claim: without a command the program does what `run` does with the same flags, which is how scx_loader and
//! scx.service start it. What they are told in packaging/scx_loader.toml are flags that it takes, and with which it
//! starts where the service allows Unix sockets alone.

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Parser;
use common::flags::{File, SETTINGS, Switch, flags_of};
use common::{error_of, needs_root};
use scx_cosched::cli::{Cli, Command as Chosen};
use toml::Table;

/// Flags that it takes, and with which it cannot start.
const ELSEWHERE: [&str; 4] = ["--metrics-listen", "none", "--control-socket", "/no/such/directory/a.sock"];

fn parsed(args: &[&str]) -> Cli {
    Cli::try_parse_from([&["scx_cosched"], args].concat()).unwrap_or_else(|e| panic!("{args:?}: {e}"))
}

/// As Debug shows them: what `run` is told with `args` after it, and what the program is told with them alone.
fn both(args: &[&str]) -> (String, String) {
    let bare = parsed(args);
    assert!(bare.command.is_none(), "{args:?}");
    match parsed(&[&["run"], args].concat()).command {
        Some(Chosen::Run(run)) => (format!("{run:?}"), format!("{:?}", bare.run)),
        other => panic!("{args:?}: {other:?}"),
    }
}

#[test]
fn every_flag_of_run_means_the_same_without_run() {
    let (nothing, _) = both(&[]);
    for setting in SETTINGS.iter().filter(|setting| flags_of(&["run"]).contains(setting.flag)) {
        let (flag, value) = (setting.arg(), if setting.kind == File { "/no/such/file" } else { setting.any() });
        let args: &[&str] = if setting.kind == Switch { &[&flag] } else { &[&flag, value] };
        let (run, bare) = both(args);
        assert_eq!(run, bare, "{flag}");
        assert_ne!(run, nothing, "{flag} says nothing");
    }
}

#[test]
fn both_end_with_the_same_error() {
    assert_eq!(error_of(&ELSEWHERE), error_of(&[&["run"], &ELSEWHERE[..]].concat()));
    assert_eq!(error_of(&ELSEWHERE).1, 1);
}

#[test]
fn it_wants_to_be_root_and_not_a_command() {
    needs_root();
    let output = Command::new(env!("CARGO_BIN_EXE_scx_cosched")).uid(65534).gid(65534).output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.starts_with("scx_cosched: error: ") && stderr.contains("as root"), "{stderr}");
}

#[test]
fn the_modes_of_scx_loader_start_where_metrics_have_no_address() {
    needs_root();
    // If it is not to be had here either, so much the better.
    let _taken = TcpListener::bind("127.0.0.1:29937");
    let text = fs::read_to_string("packaging/scx_loader.toml").unwrap();
    let config: Table = text.parse().unwrap();
    let modes = config["scheds"]["scx_cosched"].as_table().unwrap();
    let names: Vec<&str> = modes.keys().map(String::as_str).collect();
    assert_eq!(names, ["auto_mode", "gaming_mode", "lowlatency_mode", "powersave_mode", "server_mode"]);
    for (mode, flags) in modes {
        let flags: Vec<&str> = flags.as_array().unwrap().iter().map(|flag| flag.as_str().unwrap()).collect();
        // What it does not like is what comes after the address.
        let (message, code) = error_of(&[&flags[..], &["--control-socket", "/no/such/directory/a.sock"]].concat());
        assert!(code == 1 && !message.contains("metrics"), "{mode}: {message}");
    }
}
