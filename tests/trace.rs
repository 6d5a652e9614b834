// SPDX-License-Identifier: GPL-2.0-only
//! Claim: one client can trace at a time, for as long as it lives and the scheduler runs, and what it writes is
//! complete however it ends. What is in a trace is tested in a VM.

mod common;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use common::{error_of, fake_scheduler, needs_root, scx_cosched, trace_maps};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use scx_cosched::control::ControlSocket;
use scx_cosched::scheduler::requests::Owner;
use scx_cosched::trace::event::Wanted;
use scx_cosched::trace::tap::{Client, Tap};
use serde_json::Value;
use tempfile::TempDir;

/// A fake scheduler with its control socket.
fn serve() -> (TempDir, PathBuf, ControlSocket, Owner) {
    let owner = fake_scheduler();
    let (dir, path, control) = common::serve(owner.clone());
    (dir, path, control, owner)
}

/// A trace in a process of its own.
fn start(socket: &Path, file: &Path) -> Child {
    let args = ["trace", "--control-socket", socket.to_str().unwrap(), "--perfetto", file.to_str().unwrap()];
    Command::new(env!("CARGO_BIN_EXE_scx_cosched")).args(args).stderr(Stdio::piped()).spawn().unwrap()
}

fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = Instant::now();
    while !is_so() {
        assert!(since.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn client(pid: i32) -> Arc<Client> {
    Arc::new(Client { pid, wanted: Wanted { arrivals: true, switches: true, ..Wanted::default() } })
}

/// The map in the only place of `rings`.
fn ring_in(rings: &MapHandle) -> Option<u32> {
    let id = rings.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).unwrap();
    id.map(|id| u32::from_ne_bytes(id.try_into().unwrap()))
}

#[test]
fn the_flag_is_set_while_somebody_traces() {
    needs_root();
    let ((rings, stats), flag) = (trace_maps(), AtomicU32::new(0));
    let mut tap = Tap::default();
    tap.close_if_left(&rings, &flag);
    for pid in [7, 8] {
        let first = client(pid);
        let opened = tap.open(&first, &rings, &stats, &flag).unwrap();
        assert_eq!((flag.load(Ordering::Relaxed), ring_in(&rings)), (0b1101, Some(opened.outlet.ring)));
        let error = tap.open(&client(9), &rings, &stats, &flag).unwrap_err().to_string();
        assert_eq!(error, format!("process {pid} traces already (one can at a time: end that one first)"));
        tap.close_if_left(&rings, &flag);
        assert_eq!(flag.load(Ordering::Relaxed), 0b1101);
        drop(first);
        tap.close_if_left(&rings, &flag);
        assert_eq!((flag.load(Ordering::Relaxed), ring_in(&rings)), (0, None));
    }
    // Nobody need have noticed that the one before is gone.
    let opened = tap.open(&client(7), &rings, &stats, &flag).unwrap();
    tap.open(&client(8), &rings, &stats, &flag).unwrap();
    assert_eq!(opened.alive.strong_count(), 1);
    drop(tap);
    assert_eq!(opened.alive.strong_count(), 0);
}

#[test]
fn a_trace_ends_in_its_time() {
    needs_root();
    let (_dir, path, _control, _owner) = serve();
    let at = ["--seconds", "0.1", "--control-socket", path.to_str().unwrap()];
    for form in [&["trace"][..], &["trace", "--json", "--job", "/a*"], &["trace", "--events", "switches"]] {
        let output = scx_cosched(&[form, &at[..]].concat());
        assert!(output.status.success() && output.stdout.is_empty() && output.stderr.is_empty(), "{output:?}");
    }
}

#[test]
fn one_can_trace_at_a_time_and_a_file_is_complete_when_it_is_interrupted() {
    needs_root();
    let (dir, path, _control, _owner) = serve();
    let (file, other) = (dir.path().join("a.json"), dir.path().join("b.json"));
    fs::write(&other, "precious").unwrap();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let mut first = start(&path, &file);
        eventually("the file is begun", || fs::read(&file).is_ok_and(|text| !text.is_empty()));
        let args = ["trace", "--control-socket", path.to_str().unwrap(), "--perfetto", other.to_str().unwrap()];
        let (message, code) = error_of(&args);
        let wanted = format!("process {} traces already (one can at a time: end that one first)", first.id());
        assert_eq!((message, code), (wanted, 1));
        assert_eq!(fs::read_to_string(&other).unwrap(), "precious");

        kill(Pid::from_raw(first.id() as i32), signal).unwrap();
        assert!(first.wait().unwrap().success());
        let text = fs::read(&file).unwrap();
        let json: Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(json["traceEvents"][0]["name"], "process_name", "{json}");
        assert!(json["otherData"]["realtime_offset_ns"].is_u64(), "{json}");
        fs::remove_file(&file).unwrap();
    }
}

#[test]
fn a_tracer_that_is_killed_keeps_nobody_from_tracing() {
    needs_root();
    let (dir, path, _control, _owner) = serve();
    let file = dir.path().join("a.json");
    let mut first = start(&path, &file);
    eventually("the file is begun", || fs::read(&file).is_ok_and(|text| !text.is_empty()));
    first.kill().unwrap();
    first.wait().unwrap();
    let at = ["trace", "--seconds", "0.1", "--control-socket", path.to_str().unwrap()];
    eventually("somebody else can trace", || scx_cosched(&at).status.success());
}

#[test]
fn a_trace_ends_with_the_scheduler_and_says_so() {
    needs_root();
    let (dir, path, _control, owner) = serve();
    let file = dir.path().join("a.json");
    let first = start(&path, &file);
    eventually("the file is begun", || fs::read(&file).is_ok_and(|text| !text.is_empty()));
    owner.stop();
    let output = first.wait_with_output().unwrap();
    let wanted =
        "scx_cosched: error: the scheduler has ended or was loaded again, and the trace with it (start it again)\n";
    assert_eq!((String::from_utf8_lossy(&output.stderr).as_ref(), output.status.code()), (wanted, Some(1)));
    serde_json::from_slice::<Value>(&fs::read(&file).unwrap()).expect("it is complete all the same");
}
