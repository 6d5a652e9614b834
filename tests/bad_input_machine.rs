// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever the machine lacks or somebody else has taken, the program says so in one line, says what to do about
//! it, and leaves nothing behind.

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::{error_of, fake_scheduler, needs_root, serve};

#[test]
fn a_trace_that_cannot_be_written_is_named() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    for file in ["/no/such/file.json", "/"] {
        let args = ["trace", "--perfetto", file, "--control-socket", path.to_str().unwrap()];
        let (message, code) = error_of(&args);
        assert_eq!(code, 1);
        assert!(message.starts_with(&format!("cannot write {file}: ")), "{message}");
        assert!(message.ends_with("(choose another --perfetto)"), "{message}");
    }
}

#[test]
fn a_program_that_should_be_beside_it_is_named() {
    // A link and no copy: while that is written, a child of another test could hold it open, and it would not start.
    let dir = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let alone = dir.path().join("scx_cosched");
    fs::hard_link(env!("CARGO_BIN_EXE_scx_cosched"), &alone).unwrap();
    for command in ["sim", "bench"] {
        let output = Command::new(&alone).args([command, "--help"]).output().unwrap();
        let (stderr, path) = (String::from_utf8_lossy(&output.stderr), alone.display());
        let expected = format!("scx_cosched: error: cannot run {path}-{command}, which comes with scx_cosched: ");
        assert!(stderr.starts_with(&expected) && stderr.lines().count() == 1, "{stderr}");
        assert_eq!(output.status.code(), Some(1));
    }
}

#[test]
fn somebody_who_is_not_root_is_told() {
    needs_root();
    let output = Command::new(env!("CARGO_BIN_EXE_scx_cosched")).arg("run").uid(65534).gid(65534).output();
    // The build directory may be closed to others.
    let Ok(output) = output else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "scx_cosched: error: root: the effective user is 65534 (run it as root, e.g. with sudo)\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_metrics_port_in_use_is_named_before_anything_else_is_tried() {
    needs_root();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (message, code) = error_of(&["run", "--metrics-listen", &address]);
    assert_eq!(code, 1);
    assert!(message.contains(&address) && message.contains("choose another --metrics-listen"), "{message}");
}

#[test]
fn a_kernel_without_sched_ext_is_named_and_nothing_is_left_behind() {
    needs_root();
    if fs::exists("/sys/kernel/sched_ext").unwrap() {
        println!("this kernel has sched_ext: tests/vm/cases/refuses_bad_input_in_one_line.sh tries it without");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("a.sock");
    let args = ["run", "--metrics-listen", "none", "--control-socket", socket.to_str().unwrap()];
    let (message, code) = error_of(&args);
    assert_eq!(code, 1);
    assert!(message.starts_with("sched_ext: ") && message.contains("CONFIG_SCHED_CLASS_EXT=y"), "{message}");
    assert!(!socket.exists());

    let output = common::scx_cosched(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("missing  sched_ext: ") && text.contains("ok       root: "), "{text}");
}

#[test]
fn without_a_running_scheduler_its_clients_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("a.sock");
    let socket = socket.to_str().unwrap();
    let policy = [&["policy", "show"][..], &["policy", "recommend"], &["policy", "set", "local"]];
    for command in [&["status"][..], &["status", "--json"], &["trace"]].iter().chain(&policy) {
        let mut args = command.to_vec();
        args.extend(["--control-socket", socket]);
        let (message, code) = error_of(&args);
        assert_eq!(code, 1);
        assert!(message.starts_with("no scheduler is running at"), "{message}");
    }
    let (message, _) = error_of(&["status", "--control-socket", "/dev/null"]);
    assert!(message.contains("/dev/null"), "{message}");
}
