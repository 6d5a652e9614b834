// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the unit is one that systemd understands and finds little exposed, and systemd is told when the scheduler
//! runs and that it still answers. A configuration is read again by `reload`.

mod common;

use std::fs;
use std::os::unix::net::UnixDatagram;
use std::process::Command;
use std::time::Duration;

use clap::Parser;
use common::{fake_scheduler, needs_root, scx_cosched, serve};
use scx_cosched::cli::Cli;
use scx_cosched::node::service::{self, Watchdog};
use scx_cosched::settings::RunArgs;
use scx_cosched::settings::Settings;

const UNIT: &str = "packaging/scx_cosched.service";
/// The largest exposure that "systemd-analyze security" may find, of 10.
const EXPOSURE_MAX: f64 = 3.5;

fn analyze(args: &[&str]) -> (String, bool) {
    let output = Command::new("systemd-analyze").args(args).output().expect("systemd-analyze is installed (systemd)");
    (String::from_utf8([output.stdout, output.stderr].concat()).unwrap(), output.status.success())
}

#[test]
fn systemd_finds_it_little_exposed() {
    let (said, _) = analyze(&["--no-pager", "security", "--offline=true", UNIT]);
    let line = said.lines().find(|line| line.contains("Overall exposure level")).unwrap_or_else(|| panic!("{said}"));
    let level = line.split_once("scx_cosched.service: ").unwrap().1.split(' ').next().unwrap();
    let level: f64 = level.parse().unwrap_or_else(|_| panic!("{line}"));
    assert!(level <= EXPOSURE_MAX, "{said}");
}

#[test]
fn systemd_understands_the_unit() {
    let dir = tempfile::tempdir().unwrap();
    let unit = dir.path().join("scx_cosched.service");
    let text = fs::read_to_string(UNIT).unwrap().replace("/usr/bin/scx_cosched", env!("CARGO_BIN_EXE_scx_cosched"));
    fs::write(&unit, text).unwrap();
    let (said, understood) = analyze(&["verify", "--man=no", unit.to_str().unwrap()]);
    // Only of these the unit itself says that systemd before version 254 does not know them.
    let newer = ["'RestartSteps'", "'RestartMaxDelaySec'"];
    let about = |line: &&str| line.contains("scx_cosched.service") && !newer.iter().any(|key| line.contains(key));
    let wrong: Vec<&str> = said.lines().filter(about).collect();
    assert!(understood && wrong.is_empty(), "{said}");
}

#[test]
fn the_command_lines_of_the_unit_are_taken() {
    let unit = fs::read_to_string(UNIT).unwrap();
    for (key, flags) in [("ExecStart=", "--policy dcs"), ("ExecReload=", "")] {
        let line = unit.lines().find_map(|line| line.strip_prefix(key)).unwrap().replace("$SCX_COSCHED_FLAGS", flags);
        Cli::try_parse_from(line.split_whitespace()).unwrap_or_else(|error| panic!("{line}: {error}"));
    }
}

#[test]
fn the_default_configuration_changes_nothing_and_its_comments_are_settings() {
    let read = |text: &str| {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, text).unwrap();
        settings(&["--config", path.to_str().unwrap()])
    };
    let text = fs::read_to_string("packaging/config.toml").unwrap();
    let is_setting = |line: &str| line.starts_with('#') && !line.starts_with("# ") && line.len() > 1;
    let all: String = text.lines().filter(|line| is_setting(line)).map(|line| format!("{}\n", &line[1..])).collect();
    assert!(all.lines().count() >= 5, "{all}");
    let (nothing, asked) = (read(&text), read(&all));
    let default = settings(&[]);
    for settings in [&nothing, &asked] {
        assert_eq!(settings.policy.view(), default.policy.view());
        assert_eq!(settings.changed(&default), Vec::<String>::new());
    }
}

fn settings(args: &[&str]) -> Settings {
    #[derive(Parser)]
    struct Run {
        #[command(flatten)]
        args: RunArgs,
    }
    Settings::from_args(&Run::parse_from([&["run"], args].concat()).args).unwrap()
}

#[test]
fn a_file_that_has_changed_is_read_again_and_flags_still_win() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    fs::write(&path, "policy = \"dcs\"\n").unwrap();
    let before = settings(&["--config", path.to_str().unwrap(), "--slice-us", "4000"]);
    fs::write(&path, "policy = \"local\"\njobs_top = 3\njob_by = \"session\"\nslice_us = 1000\n").unwrap();
    let after = before.again().unwrap();
    assert_eq!(after.policy.view().name, "local+slice_us=4000");
    assert_eq!(before.changed(&after), ["job_by", "jobs_top"]);

    fs::write(&path, "policy = \"nonsense\"\n").unwrap();
    let error = before.again().unwrap_err().to_string();
    assert!(error.contains("c.toml:1: policy: unknown policy 'nonsense'"), "{error}");
    let error = settings(&[]).again().unwrap_err().to_string();
    assert!(error.starts_with("no configuration file was named") && error.contains("--config"), "{error}");
}

#[test]
fn reload_says_what_is_in_force_and_what_waits() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let output = scx_cosched(&["reload", "--control-socket", path.to_str().unwrap()]);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].starts_with("dcs (arrival demand"), "{said}");
    assert_eq!(lines[1..], ["a restart is needed for: job_by"]);
}

/// The only test of this program that reads or sets these variables.
#[test]
fn the_service_manager_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let said = || {
        let mut buffer = [0; 256];
        let n = manager.recv(&mut buffer).expect("the manager is told something");
        String::from_utf8(buffer[..n].to_vec()).unwrap()
    };
    let set = |name: &str, value: &str| {
        // SAFETY: no other thread of this program reads or writes the environment of these names, and glibc's own reads
        // are of others.
        unsafe { std::env::set_var(name, value) }
    };
    set("NOTIFY_SOCKET", path.to_str().unwrap());
    set("WATCHDOG_PID", &std::process::id().to_string());
    set("WATCHDOG_USEC", "900000");

    service::ready("dcs");
    assert_eq!(said().trim_end(), "READY=1\nSTATUS=policy dcs");
    service::policy("local");
    assert_eq!(said().trim_end(), "STATUS=policy local");

    let mut watchdog = Watchdog::from_environment();
    watchdog.alive();
    watchdog.alive();
    std::thread::sleep(Duration::from_millis(350));
    watchdog.alive();
    service::stopping();
    // The second call came too early to be passed on.
    assert_eq!(
        [said(), said(), said()].map(|said| said.trim_end().to_string()),
        ["WATCHDOG=1", "WATCHDOG=1", "STOPPING=1"]
    );
}
