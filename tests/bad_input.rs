// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever is wrong, the program says so in one line, says what to do about it, and loads nothing. Here: flags,
//! and what has no effect with the rest. What is wrong in a configuration, with peers and on the machine is in
//! `bad_input_*.rs`.
//!
//! Faults of the command line have exit code 2, all others 1. What only a kernel with sched_ext shows (a
//! scheduler that is loaded already) is tested in a VM.

mod common;

use std::collections::BTreeSet;

use common::flags::{File, Lines, List, Need, SETTINGS, Setting, Switch, commands, flags_of};
use common::refusals::{Config, accepts, error_of_config, refuses, refuses_config};
use common::{error_of, fake_scheduler, needs_root, serve};
use cosched_rules::presets;

#[test]
fn every_flag_has_a_row() {
    let rows: BTreeSet<String> = SETTINGS.iter().map(|setting| setting.flag.into()).collect();
    let flags: BTreeSet<String> = commands().into_iter().flat_map(|(_, flags)| flags).collect();
    assert_eq!(rows, flags, "a flag without a row, or a row without a flag");
    assert_eq!(rows.len(), SETTINGS.len(), "one is there twice");
}

#[test]
fn every_flag_of_run_is_a_key_of_the_configuration() {
    let (message, _) = error_of_config("x = 1\n", &[]);
    let keys: BTreeSet<String> = message.split('`').skip(3).step_by(2).map(String::from).collect();
    let flags = SETTINGS.iter().filter(|setting| setting.kind != File && flags_of(&["run"]).contains(setting.flag));
    assert_eq!(keys, flags.map(Setting::key).collect());
}

#[test]
fn a_value_that_a_flag_does_not_take_is_refused() {
    for (command, flags) in commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        for setting in SETTINGS.iter().filter(|setting| flags.contains(setting.flag)) {
            let flag = setting.arg();
            for value in setting.bad {
                let folded = value.split_whitespace().collect::<Vec<_>>().join(" ");
                let wanted = [flag.as_str(), &folded, setting.takes];
                match setting.kind {
                    Switch => refuses(&[&command[..], &[&format!("{flag}={value}")]].concat(), &wanted),
                    _ => refuses(&[&command[..], &[&flag, value]].concat(), &wanted),
                }
            }
        }
    }
    let long = format!("/{}", "a".repeat(107));
    for flag in ["--control-socket", "--hints-socket"] {
        refuses(&["run", flag, &long], &[flag, "at most 107 bytes"]);
    }
}

#[test]
fn a_flag_without_a_value_or_given_twice_is_refused() {
    for (command, flags) in commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        for setting in SETTINGS.iter().filter(|setting| flags.contains(setting.flag)) {
            let flag = setting.arg();
            let given: &[&str] = if setting.kind == Switch { &[&flag] } else { &[&flag, setting.any()] };
            let says =
                if matches!(setting.kind, Lines | List) { "is given twice" } else { "cannot be used multiple times" };
            refuses(&[&command[..], given, given].concat(), &[&flag, says]);
            if setting.kind != Switch {
                refuses(&[&command[..], &[&flag]].concat(), &[&flag, "a value is required"]);
            }
        }
    }
}

#[test]
fn a_value_that_a_flag_takes_is_not_refused() {
    for setting in SETTINGS.iter().filter(|setting| flags_of(&["run"]).contains(setting.flag)) {
        let (flag, key) = (setting.arg(), setting.key());
        for value in setting.good {
            let needs: Vec<String> =
                setting.needs.iter().map(|need| format!("--{}={}", need.axis, need.rules[0])).collect();
            let needs: Vec<&str> = needs.iter().map(String::as_str).chain(setting.company().iter().copied()).collect();
            accepts(&[&needs[..], &[&flag, value]].concat());
            let config = Config::new(format!("{key} = {}\n", setting.toml(value)));
            accepts(&[&needs[..], &["--config", config.path()]].concat());
        }
    }
    accepts(&["--config", Config::new("verbose = false\n").path()]);
}

#[test]
fn a_flag_of_another_command_is_refused() {
    for (command, flags) in commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        for setting in SETTINGS.iter().filter(|setting| !flags.contains(setting.flag)) {
            refuses(&[&command[..], &[&setting.arg()]].concat(), &[&setting.arg(), "unexpected argument"]);
        }
        // Those of the program itself go with no command.
        if let Some(name) = command.first() {
            refuses(&[&["--monitor", "1"], &command[..]].concat(), &["--monitor", name]);
            refuses(&[&["--help-stats"], &command[..]].concat(), &["--help-stats", name]);
        }
    }
    // They load nothing, and so they do not go with the flags of what would.
    for setting in SETTINGS.iter().filter(|setting| flags_of(&["run"]).contains(setting.flag)) {
        let flag = setting.arg();
        let given: &[&str] = if setting.kind == Switch { &[&flag] } else { &[&flag, setting.any()] };
        refuses(&[&["--monitor", "1"], given].concat(), &["--monitor", "cannot be used with", &flag]);
        refuses(&[&["--help-stats"], given].concat(), &["--help-stats", "cannot be used with", &flag]);
    }
}

#[test]
fn what_has_no_effect_with_the_rest_is_refused() {
    for setting in SETTINGS.iter() {
        let (flag, key, value) = (setting.arg(), setting.key(), setting.any());
        let toml = setting.toml(value);
        for (axis, choice, needed) in setting.moot_with() {
            let line = format!("it has no effect with {axis} '{choice}' (leave it out, or choose {axis} '{needed}')");
            let by_flag = format!("{flag}: {line}");
            refuses(&["run", "--policy", "dcs", &format!("--{axis}"), &choice, &flag, value], &[&by_flag]);
            let rules = format!("{axis} = \"{choice}\"\npolicy = \"dcs\"\n");
            let (message, code) = error_of_config(&rules, &[&flag, value]);
            assert_eq!((message, code), (by_flag, 2));
            refuses_config(&format!("{rules}{key} = {toml}\n"), &format!(":3: {key}: {line}"));
            refuses_config(&format!("{key} = {toml}\n{rules}"), &format!(":1: {key}: {line}"));

            // The file is not wrong if it is a flag that makes a line of it moot.
            let config = Config::new(format!("{key} = {toml}\n"));
            accepts(&["--config", config.path(), "--policy", "dcs", &format!("--{axis}"), &choice]);
        }
        for (name, preset) in presets::all() {
            let has = serde_json::to_value(preset.policy.view()).unwrap();
            let Some(Need { axis, rules: [needed, ..], .. }) = setting.unmet(&has) else { continue };
            let choice = has[axis].as_str().unwrap();
            let line = format!("it has no effect with {axis} '{choice}' (leave it out, or choose {axis} '{needed}')");
            refuses(&["run", "--policy", name, &flag, value], &[&format!("{flag}: {line}")]);
            refuses_config(&format!("policy = \"{name}\"\n{key} = {toml}\n"), &format!(":2: {key}: {line}"));
        }
    }
}

#[test]
fn what_has_no_effect_with_the_policy_in_force_is_refused() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let refuses = |args: &[&str], wanted: &str| {
        let args = [&["policy", "set", "--control-socket", path.to_str().unwrap()], args].concat();
        let (message, code) = error_of(&args);
        assert_eq!(code, 1, "{args:?}: {message}");
        assert!(message.starts_with(wanted), "{args:?}: {message}");
    };
    for setting in SETTINGS.iter() {
        let (flag, value) = (setting.arg(), setting.any());
        for (axis, choice, _) in setting.moot_with() {
            let wanted = format!("{flag}: it has no effect with {axis} '{choice}'");
            refuses(&[&format!("--{axis}"), &choice, &flag, value], &wanted);
        }
        if let [Need { axis: "arrival", .. }, ..] = setting.needs {
            refuses(&["local", &flag, value], &format!("{flag}: it has no effect with arrival 'none'"));
        }
    }
    // Under dcs, which is in force.
    refuses(&["--rate-exponent", "1"], "--rate-exponent: it has no effect with gate 'equalizing'");
}

#[test]
fn what_nobody_knows_is_refused() {
    refuses(&["run", "--policy", "dsc"], &["--policy: unknown policy 'dsc'", "known: beat, cc, dcs"]);
    refuses(&["policy", "set", "dsc"], &["unknown policy 'dsc'", "known: beat, cc, dcs"]);
    refuses(&["policy", "set"], &["nothing to set"]);
    refuses(&["policy", "set", "--json"], &["nothing to set"]);
    refuses(&["policy", "set", "dcs", "local"], &["local"]);
    refuses(&["policy", "change"], &["change"]);
    refuses(&["policy"], &["no command", "--help"]);
    refuses(&["run", "--frobnicate"], &["--frobnicate"]);
    refuses(&["run", "now"], &["now"]);
    refuses(&["start"], &["start"]);
    refuses(&["run", "--gate"], &["--gate"]);
    refuses(&["--monitor", "1", "--help-stats"], &["--monitor", "--help-stats"]);
    refuses(&["run", "--gate", "a\n\nb"], &["--gate", "known: always"]);
    refuses(&["trace", "--json", "--perfetto", "a"], &["--json", "cannot be used with '--perfetto <FILE>'"]);
    refuses(&["trace", "/a"], &["/a"]);
}
