// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the control socket serves root and nobody else, one scheduler at a time, and no client, however
//! it behaves, keeps another from being served.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use common::{error_of, fake_scheduler, needs_root, scx_cosched, serve};
use scx_cosched::control::ControlSocket;
use scx_cosched::snapshot::Snapshot;
use serde_json::Value;

/// Sends `bytes` and returns the answer.
fn exchange(path: &Path, bytes: &[u8]) -> Value {
    let mut stream = UnixStream::connect(path).unwrap();
    // A server that turns us away does not take what we say; its answer is there all the same.
    let _ = stream.write_all(bytes);
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer).unwrap();
    serde_json::from_str(&answer).unwrap_or_else(|e| panic!("{answer:?}: {e}"))
}

fn json(args: &[&str]) -> Value {
    let output = scx_cosched(args);
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn status_and_policy_go_over_it() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let socket = path.to_str().unwrap();
    let at = ["--control-socket", socket];

    let status = json(&["status", "--json", at[0], at[1]]);
    let snapshot: Snapshot = serde_json::from_value(status.clone()).unwrap();
    assert_eq!(serde_json::to_value(snapshot).unwrap(), status);
    assert_eq!(status["policy"]["name"], "dcs");

    let set = json(&["policy", "set", "--h-ms", "-20", "--json", at[0], at[1]]);
    assert_eq!((&set["name"], &set["h_ms"]), (&"dcs+h_ms=-20".into(), &(-20.0).into()));
    // Without a name, the policy in force is changed; with one, it starts afresh.
    let set = json(&["policy", "set", "--slice-us", "5000", "--json", at[0], at[1]]);
    assert_eq!(set["name"], "dcs+h_ms=-20+slice_us=5000");
    let set = json(&["policy", "set", "--gate", "rate", "--rate-exponent", "-1", "--json", at[0], at[1]]);
    assert_eq!(set["name"], "dcs+gate=rate+rate_exponent=-1+rate_average=false+rate_constant_ms=0+slice_us=5000");
    assert_eq!(set["h_ms"], Value::Null);
    let set = json(&["policy", "set", "implicit", "--latency-us", "9", "--json", at[0], at[1]]);
    assert_eq!((&set["name"], &set["gate"]), (&"implicit+latency_us=9".into(), &"always".into()));
    let costs = json(&["status", "--json", at[0], at[1]])["costs"].clone();
    assert_eq!((&costs["latency_us"], &costs["source"]), (&9.0.into(), &"measured, but L set by hand".into()));
    let set = json(&["policy", "set", "local", "--json", at[0], at[1]]);
    assert_eq!((&set["name"], &set["arrival"]), (&"local".into(), &"none".into()));

    let text = String::from_utf8(scx_cosched(&["status", at[0], at[1]]).stdout).unwrap();
    for part in [
        "policy          local (arrival none, gate always, wait busy, slice_us=20000)",
        "costs           L ",
        " us (measured)",
        "/slurm/job_7",
        "on_epoll",
        "1.200",
        "quoted\\name\"\\n",
        "10.0 MiB resident",
        "\narrivals: udp ",
        "runnable        9 tasks on 2 CPUs, 5 on the one with most",
        "gang skew       mean 12.3 us, max 0.8 ms of 400 turns",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
}

#[test]
fn a_recommendation_changes_nothing() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let at = ["--control-socket", path.to_str().unwrap(), "--seconds", "0.2"];
    let recommend = [&["policy", "recommend"], &at[..]].concat();

    // The counters of this one never move.
    let advice = json(&[&recommend[..], &["--json"]].concat());
    assert_eq!((&advice["preset"], &advice["confidence"]), (&"local".into(), &"high".into()));
    assert_eq!(advice["reasons"], serde_json::json!(["no message arrived"]));
    assert_eq!((&advice["figures"]["messages"], &advice["figures"]["tasks_per_busy_cpu"]), (&0.into(), &4.5.into()));

    let text = String::from_utf8(scx_cosched(&recommend).stdout).unwrap();
    for part in [
        "advice      local (policy set local), dcs is in force\n",
        "reasons     no message arrived\n",
        "judged by   0 messages in 0.",
        "\n            runnable tasks on a busy CPU: 4.50\n",
    ] {
        assert!(text.contains(part), "{part:?} is not in\n{text}");
    }
    assert_eq!(json(&["policy", "show", "--json", at[0], at[1]])["name"], "dcs");
}

#[test]
fn a_change_that_is_refused_changes_nothing() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let at = ["--control-socket", path.to_str().unwrap()];
    for change in [&["--rate-exponent", "1"][..], &["local", "--gate", "always"], &["dcs", "--rate-constant-ms", "1"]] {
        let mut args = vec!["policy", "set"];
        args.extend(change);
        args.extend(at);
        let (message, code) = error_of(&args);
        assert_eq!(code, 1);
        assert!(message.contains("has no effect with"), "{message}");
        assert_eq!(json(&["policy", "show", "--json", at[0], at[1]])["name"], "dcs");
    }
    // Past the client's own checks.
    for change in [
        r#"{"h_ms":1e12}"#,
        r#"{"slice_us":1}"#,
        r#"{"name":"dsc"}"#,
        r#"{"h":1}"#,
        r#"{"rate_exponent":99}"#,
        r#"{"gate":"open"}"#,
        r#"{"residual_slice":1}"#,
        r#"{"name":"sb","latency_us":1}"#,
        r#"{"slice_us":-1}"#,
    ] {
        let line = format!("{{\"request\":\"set_policy\",\"change\":{change}}}\n");
        assert!(exchange(&path, line.as_bytes())["error"].is_string(), "{change}");
        assert_eq!(json(&["policy", "show", "--json", at[0], at[1]])["name"], "dcs");
    }
}

#[test]
fn a_second_instance_names_the_first() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let (message, code) = error_of(&["run", "--control-socket", path.to_str().unwrap()]);
    let pid = std::process::id();
    assert_eq!(code, 1);
    assert_eq!(message, format!("scx_cosched is already running as process {pid} (stop it first: kill {pid})"));
    assert!(path.exists(), "the first one's socket is still there");
}

#[test]
fn what_a_killed_scheduler_left_is_replaced_and_nothing_else_is() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    drop(UnixListener::bind(&path).unwrap());
    assert!(path.exists());
    let control = ControlSocket::bind(&path).expect("a socket that nobody serves is replaced");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    drop(control);
    assert!(!path.exists(), "it is removed at the end");

    fs::write(&path, "precious").unwrap();
    let error = ControlSocket::bind(&path).err().unwrap().to_string();
    assert!(error.contains("is not a socket"), "{error}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn nonsense_is_answered_with_an_error() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    let long = [vec![b' '; 1 << 16], b"\n".to_vec()].concat();
    for bytes in [
        &b"\n"[..],
        b"hello\n",
        b"{}\n",
        b"{\"request\":\"explode\"}\n",
        b"{\"request\":\"set_policy\"}\n",
        b"{\"request\":\"status\",\"more\":1}\n",
        b"\xff\xfe\n",
        &long,
    ] {
        let answer = exchange(&path, bytes);
        assert!(answer["error"].is_string(), "{:?}: {answer}", &bytes[..bytes.len().min(40)]);
    }
    assert_eq!(exchange(&path, b"{\"request\":\"ping\"}\n")["ok"]["pid"], std::process::id());
}

#[test]
fn clients_that_stall_or_flood_disturb_nobody() {
    needs_root();
    let (_dir, path, _control) = serve(fake_scheduler());
    // Some say nothing, some stop in the middle, some never end, some leave at once.
    let silent: Vec<UnixStream> = (0..3).map(|_| UnixStream::connect(&path).unwrap()).collect();
    for stream in &silent[..1] {
        (&*stream).write_all(b"{\"request\":").unwrap();
    }
    for _ in 0..50 {
        UnixStream::connect(&path).unwrap().shutdown(Shutdown::Both).unwrap();
    }
    let before = Instant::now();
    let mut answer = exchange(&path, b"{\"request\":\"ping\"}\n");
    while answer["error"].as_str().is_some_and(|e| e.contains("too many clients")) {
        assert!(before.elapsed() < Duration::from_secs(4), "still too many clients");
        std::thread::sleep(Duration::from_millis(20));
        answer = exchange(&path, b"{\"request\":\"ping\"}\n");
    }
    assert_eq!(answer["ok"]["pid"], std::process::id());
    assert!(before.elapsed() < Duration::from_secs(2), "{:?}", before.elapsed());

    // More than are served at once: the rest is told, and served when the others have been timed out.
    let crowd: Vec<UnixStream> = (0..20).map(|_| UnixStream::connect(&path).unwrap()).collect();
    let told = exchange(&path, b"");
    assert!(told["error"].is_string(), "{told}");
    std::thread::sleep(Duration::from_millis(2500));
    assert_eq!(exchange(&path, b"{\"request\":\"ping\"}\n")["ok"]["pid"], std::process::id());
    drop((silent, crowd));
}
