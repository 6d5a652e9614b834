// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever is wrong, the program says so in one line, says what to do about it, and loads nothing.
//!
//! Faults of the command line have exit code 2, all others 1. What only a kernel with sched_ext shows (a
//! scheduler that is loaded already) is tested in a VM.

mod common;

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::process::Command;

use common::{error_of, needs_root};

/// The program refuses `args` with exit code 2 and a line that has all of `wanted`.
fn refuses(args: &[&str], wanted: &[&str]) {
    let (message, code) = error_of(args);
    assert_eq!(code, 2, "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: {message}");
    }
}

#[test]
fn a_flag_of_a_wrong_type_is_refused() {
    for (flag, value, takes) in [
        ("--arrival", "sometimes", "known: none, demand"),
        ("--gate", "open", "known: always, equalizing, rate"),
        ("--h-ms", "ten", "a number of ms from -3600000 to 3600000"),
        ("--rate-exponent", "1.5", "a whole number from -32 to 32"),
        ("--rate-constant-ms", "", "a number of ms"),
        ("--slice-us", "20ms", "a whole number of us from 100 to 1000000"),
        ("--job-by", "user", "cgroup, session or process"),
        ("--metrics-listen", "9937", "ADDRESS:PORT"),
        ("--jobs-top", "all", "a whole number from 0"),
        ("--stats", "often", "a number of seconds"),
        ("--exit-dump-len", "1M", "a whole number of bytes from 0 to 16777216"),
        ("--control-socket", "relative.sock", "an absolute path"),
    ] {
        refuses(&["run", flag, value], &[flag, value, takes]);
    }
    refuses(&["--monitor", "x"], &["--monitor", "a number of seconds"]);
    for flag in ["--arrival", "--gate", "--h-ms", "--rate-exponent", "--rate-constant-ms", "--slice-us"] {
        refuses(&["policy", "set", flag, "x"], &[flag]);
    }
}

#[test]
fn a_flag_out_of_range_is_refused() {
    for (flag, value) in [
        ("--h-ms", "3600000.5"),
        ("--h-ms", "-1e9"),
        ("--h-ms", "NaN"),
        ("--rate-exponent", "33"),
        ("--rate-exponent", "-33"),
        ("--rate-constant-ms", "1e300"),
        ("--slice-us", "99"),
        ("--slice-us", "1000001"),
        ("--jobs-top", "4097"),
        ("--stats", "0"),
        ("--stats", "-1"),
        ("--stats", "inf"),
        ("--stats", "3601"),
        ("--exit-dump-len", "16777217"),
    ] {
        refuses(&["run", flag, value], &[flag, value, "is out of range"]);
    }
    // Not even a number of the right kind.
    refuses(&["run", "--jobs-top", "-1"], &["--jobs-top", "from 0"]);
    refuses(&["run", "--slice-us", "99999999999999999999"], &["--slice-us"]);
    refuses(&["run", "--metrics-listen", "127.0.0.1:65536"], &["--metrics-listen"]);
    refuses(&["--monitor", "0"], &["--monitor"]);
}

#[test]
fn flags_that_contradict_each_other_are_refused() {
    let gate = &["has no effect with gate", "leave it out, or choose gate"];
    let arrival = &["has no effect with arrival 'none'", "choose arrival 'demand'"];
    refuses(&["run", "--gate", "rate", "--h-ms", "-20"], gate);
    refuses(&["run", "--gate", "always", "--h-ms", "1"], gate);
    refuses(&["run", "--rate-exponent", "1"], gate);
    refuses(&["run", "--policy", "dcs", "--rate-constant-ms", "1"], gate);
    refuses(&["run", "--policy", "local", "--gate", "rate"], arrival);
    refuses(&["run", "--policy", "local", "--h-ms", "1"], arrival);
    refuses(&["run", "--arrival", "none", "--gate", "equalizing"], arrival);
    refuses(&["run", "--h-ms", "1", "--h-ms", "2"], &["--h-ms"]);
    refuses(&["--monitor", "1", "run"], &["run"]);
}

#[test]
fn what_nobody_knows_is_refused() {
    refuses(&["run", "--policy", "dsc"], &["--policy: unknown policy 'dsc'", "known: dcs, local"]);
    refuses(&["policy", "set", "dsc"], &["unknown policy 'dsc'", "known: dcs, local"]);
    refuses(&["policy", "set"], &["nothing to set"]);
    refuses(&["run", "--frobnicate"], &["--frobnicate"]);
    refuses(&["run", "now"], &["now"]);
    refuses(&["start"], &["start"]);
    refuses(&["run", "--gate"], &["--gate"]);
    refuses(&[], &["no command", "--help"]);
}

/// The program refuses the configuration with exit code 1 and a line that starts with the file and `wanted`.
fn refuses_config(text: &str, wanted: &str) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    fs::write(&path, text).unwrap();
    let (message, code) = error_of(&["run", "--config", path.to_str().unwrap()]);
    let start = format!("{}{wanted}", path.display());
    assert_eq!(code, 1, "{message}");
    assert!(message.starts_with(&start), "{message:?} should start with {start:?}");
}

#[test]
fn a_fault_of_the_configuration_is_named_with_its_line() {
    refuses_config("# nothing\nslice = 5\n", ":2: unknown field `slice`");
    refuses_config("\nslice_us = \"fast\"\n", ":2: slice_us: invalid type");
    refuses_config("verbose = 1\n", ":1: verbose: invalid type");
    refuses_config("h_ms = 1\nh_ms = 1\n", ":2: h_ms: duplicate key");
    refuses_config("\n\nslice_us = 99\n", ":3: slice_us: 99 is out of range");
    refuses_config("policy = \"dsc\"\n", ":1: policy: unknown policy 'dsc' (known: dcs, local)");
    refuses_config("gate = \"rate\"\nh_ms = 1\n", ":2: h_ms: it has no effect with gate 'rate'");
    refuses_config("policy = \"local\"\n\ngate = \"rate\"\n", ":3: gate: it has no effect with arrival 'none'");
    refuses_config("= 1\n", ":1: ");
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    for path in ["/no/such/file.toml", "/", "/dev/null"] {
        let (message, code) = error_of(&["run", "--config", path]);
        assert_eq!(code, 1);
        assert!(message.starts_with(path) && message.contains("readable TOML file"), "{message}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("latin1.toml");
    fs::write(&path, b"policy = \"\xe4\"\n").unwrap();
    let (message, _) = error_of(&["run", "--config", path.to_str().unwrap()]);
    assert!(message.contains("UTF-8"), "{message}");
}

#[test]
fn a_flag_wins_over_the_configuration() {
    // The file's h_ms is moot under the flag's gate; the next thing to go wrong is another one.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.toml");
    fs::write(&path, "policy = \"dcs\"\nh_ms = -20\n").unwrap();
    let config = path.to_str().unwrap();
    for flags in [["--gate", "rate"], ["--policy", "local"], ["--h-ms", "-10"], ["--arrival", "none"]] {
        let mut args = vec!["run", "--config", config, "--control-socket", "/no/such/directory/a.sock"];
        args.extend(flags);
        let (message, code) = error_of(&args);
        assert_eq!(code, 1, "{flags:?}: {message}");
        assert!(!message.contains("h_ms") && !message.contains("--"), "{flags:?}: {message}");
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
    for command in [&["status"][..], &["status", "--json"], &["policy", "show"], &["policy", "set", "local"]] {
        let mut args = command.to_vec();
        args.extend(["--control-socket", socket]);
        let (message, code) = error_of(&args);
        assert_eq!(code, 1);
        assert!(message.starts_with("no scheduler is running at"), "{message}");
    }
    let (message, _) = error_of(&["status", "--control-socket", "/dev/null"]);
    assert!(message.contains("/dev/null"), "{message}");
}
