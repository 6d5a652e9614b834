// SPDX-License-Identifier: GPL-2.0-only
//! Claim: Slurm's prolog starts the scheduler with the first job of a node and the epilog stops it after the last one;
//! whatever happens to the scheduler, jobs start. A Slurm of Debian's runs them in tests/vm/bench-slurm.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use common::needs_root;

/// Stands for systemctl, scx_cosched and logger: each notes how it was called. The scheduler answers once it was
/// started, unless `/run/broken` is there.
const STUB: &str = r#"#!/bin/sh
echo "$(basename "$0") $*" >>/run/calls
case "$(basename "$0") $1" in
"systemctl start") [ ! -e /run/broken ] && : >/run/started ;;
"systemctl stop") rm -f /run/started ;;
"scx_cosched status") [ -e /run/started ] ;;
esac
"#;

/// What is called by a script of Slurm's events, in a /run of its own. An event is prolog or epilog, and a job.
fn calls(events: &[&str]) -> Vec<String> {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    for name in ["systemctl", "scx_cosched", "logger"] {
        let path = dir.path().join(name);
        fs::write(&path, STUB).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("packaging/slurm");
    let mut script = "set -e; mount -t tmpfs tmpfs /run; : >/run/calls\n".to_string();
    for event in events {
        match event.split_once(' ') {
            Some((name, job)) => script += &format!("SLURM_JOB_ID={job} {}/{name} </dev/null\n", scripts.display()),
            None => script += &format!(": >/run/{event}\n"),
        }
    }
    script += "cat /run/calls\n";
    let path = format!("{}:/usr/bin:/bin", dir.path().display());
    let output = Command::new("unshare").args(["--mount", "sh", "-c", &script]).env("PATH", path).output().unwrap();
    assert!(output.status.success(), "{events:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().lines().map(String::from).collect()
}

const STATUS: &str = "scx_cosched status";
const START: &str = "systemctl start scx_cosched";
/// Before a start, since systemd allows ten in ten minutes.
const RESET: &str = "systemctl reset-failed scx_cosched";
const STOP: &str = "systemctl stop scx_cosched";

#[test]
fn the_scheduler_runs_from_the_first_job_to_the_last() {
    assert_eq!(calls(&["prolog 1", "epilog 1"]), [STATUS, RESET, START, STOP]);
    assert_eq!(
        calls(&["prolog 1", "prolog 2", "epilog 1", "prolog 3", "epilog 3", "epilog 2"]),
        [STATUS, RESET, START, STATUS, STATUS, STOP]
    );
    // Slurm may run either script of a job again.
    assert_eq!(calls(&["prolog 1", "prolog 1", "epilog 1"]), [STATUS, RESET, START, STATUS, STOP]);
    assert_eq!(calls(&["prolog 1", "epilog 2", "epilog 1"]), [STATUS, RESET, START, STOP]);
}

#[test]
fn a_scheduler_that_does_not_start_keeps_no_job_from_starting() {
    let said = calls(&["broken", "prolog 7", "epilog 7"]);
    assert_eq!(said[..3], [STATUS, RESET, START]);
    assert!(said[3].starts_with("logger -t scx_cosched job 7: 'systemctl start scx_cosched' failed"), "{said:?}");
    assert_eq!(said[4], STOP);
}
