// SPDX-License-Identifier: GPL-2.0-only
//! What several tests need: the program, and a scheduler that only answers.

#![allow(dead_code)]

pub mod command_line;
pub mod docs;
pub mod flags;
pub mod hints;
pub mod refusals;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::atomic::AtomicU32;
use std::thread;

use cosched_rules::costs::Costs;
use cosched_rules::intf::cosched_cpu_stats;
use cosched_rules::native;
use cosched_rules::policy::{CostsView, Policy};
use cosched_rules::presets;
use libbpf_rs::libbpf_sys::bpf_map_create_opts;
use libbpf_rs::{MapHandle, MapType};
use scx_cosched::bpf::hooks::HookStates;
use scx_cosched::control::ControlSocket;
use scx_cosched::hints::Hinted;
use scx_cosched::jobs::JobView;
use scx_cosched::jobs::job_by::JobBy;
use scx_cosched::node::kernel_events::KernelEvents;
use scx_cosched::node::process::ProcessView;
use scx_cosched::prefetch::PrefetchView;
use scx_cosched::scheduler::requests::{Owner, Request};
use scx_cosched::settings::Reloaded;
use scx_cosched::snapshot::{GangSkew, Histogram, Memory, Runnable, Snapshot};
use scx_cosched::trace::tap::Tap;
use tempfile::TempDir;

/// Runs the program.
pub fn scx_cosched(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_scx_cosched")).args(args).output().expect("the program starts")
}

/// What the program says on stderr, which must be one line of the usual form, with the exit code.
pub fn error_of(args: &[&str]) -> (String, i32) {
    let output = scx_cosched(args);
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.stdout.is_empty(), "{args:?} printed {:?}", String::from_utf8_lossy(&output.stdout));
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr:?}");
    let message =
        stderr.trim_end().strip_prefix("scx_cosched: error: ").unwrap_or_else(|| panic!("{args:?}: {stderr:?}"));
    (message.to_string(), output.status.code().expect("an exit code"))
}

/// Fails rather than skips: a test that is skipped is one that nobody misses.
pub fn needs_root() {
    assert!(nix::unistd::geteuid().is_root(), "this test needs root: run `make test` as root");
}

/// A snapshot with something in every place, under `policy`.
pub fn snapshot(policy: &Policy) -> Snapshot {
    let numbered = |grants: bool| {
        let reasons = native::reasons().iter().filter(|r| r.grants == grants);
        reasons.enumerate().map(|(i, r)| (r.name.to_string(), i as u64 + 1)).collect::<BTreeMap<_, _>>()
    };
    let job = |name: &str, ratio| JobView {
        job: name.into(),
        cpu_seconds: 1.5,
        fair_share_seconds: 1.25,
        fairness_ratio: ratio,
        cpu_waiting_seconds: ratio.map(|_| 0.75),
        boosts: 7,
    };
    Snapshot {
        version: "0.0.0".into(),
        kernel: "test".into(),
        pid: std::process::id(),
        uptime_seconds: 12.5,
        starting: false,
        policy: policy.view(),
        costs: policy.costs(&CostsView {
            costs: Costs { latency_us: 12.3, overhead_us: 2.1, switch_us: 4.5 },
            source: "measured".into(),
        }),
        job_by: JobBy::Cgroup,
        limits_not_kept: vec!["/slurm/job_7 has 10000 100000, which is not kept".into()],
        hooks: HookStates {
            attached: vec!["on_readable".into()],
            resting: vec![],
            idle: vec![],
            missing: vec!["on_epoll".into()],
        },
        memory: Memory { resident_bytes: 10 << 20, maps_bytes: 1 << 20 },
        process: ProcessView {
            cpu_seconds: 0.25,
            open_fds: 12,
            max_fds: 4096,
            virtual_bytes: 20 << 20,
            resident_bytes: 10 << 20,
            threads: 9,
            start_time_seconds: 1_700_000_000.5,
        },
        kernel_events: KernelEvents::parse("SCX_EV_BYPASS_ACTIVATE 2\nSCX_EV_BYPASS_DURATION 1500000000\n"),
        runnable: Runnable::new(&[4, 0, 5], 3),
        counters: native::counters().iter().enumerate().map(|(i, c)| (c.name.to_string(), 200 - i as u64)).collect(),
        endpoint_arrivals: native::endpoints().iter().zip(300..).map(|(name, n)| (name.to_string(), n)).collect(),
        granted: numbered(true),
        denied: numbered(false),
        arrival_to_run: Histogram::from_powers_of_two(&[1, 0, 2, 4], 20_000),
        gang_skew: GangSkew { turns: 400, sum_seconds: 0.004_92, mean_seconds: 12.3e-6, max_seconds: 0.000_8 },
        clock_ahead_seconds: 0.006_1,
        prefetch: Some(PrefetchView { correspondents: 4, port: 9938 }),
        hinted: Some(Hinted { processes: 3, threads: 12 }),
        jobs: vec![job("/slurm/job_7", Some(1.2)), job("/a \"quoted\\name\"\n", Some(0.5)), job("other", None)],
    }
}

/// A BPF map with one place, as the scheduler has them.
pub fn map(kind: MapType, value_size: usize, inner: Option<&MapHandle>) -> MapHandle {
    let size = size_of::<bpf_map_create_opts>() as u64;
    let inner_map_fd = inner.map_or(0, |map| map.as_fd().as_raw_fd() as u32);
    let opts = bpf_map_create_opts { sz: size, inner_map_fd, ..Default::default() };
    MapHandle::create(kind, Some("trace_test"), 4, value_size as u32, 1, &opts)
        .expect("this test makes BPF maps, as root")
}

/// The maps of the scheduler that a trace needs: that of rings, and the counters.
pub fn trace_maps() -> (MapHandle, MapHandle) {
    let opts = bpf_map_create_opts { sz: size_of::<bpf_map_create_opts>() as u64, ..Default::default() };
    let ring = MapHandle::create(MapType::RingBuf, Some("trace_test"), 0, 0, 1 << 16, &opts);
    let ring = ring.expect("this test makes BPF maps, as root");
    (map(MapType::ArrayOfMaps, 4, Some(&ring)), map(MapType::PercpuArray, size_of::<cosched_cpu_stats>(), None))
}

/// `owner` behind a control socket, which is there for as long as what this returns.
pub fn serve(owner: Owner) -> (TempDir, PathBuf, ControlSocket) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let control = ControlSocket::bind(&path).unwrap();
    control.serve(owner).unwrap();
    (dir, path, control)
}

/// A scheduler that is not there: it answers as if it were. A trace of it has no events.
pub fn fake_scheduler() -> Owner {
    let (owner, requests) = Owner::new();
    thread::spawn(move || {
        let (mut tap, flag, mut maps) = (Tap::default(), AtomicU32::new(0), None);
        let mut policy = presets::find("dcs").expect("dcs is a preset").policy;
        for request in requests {
            match request {
                Request::Snapshot(answer) => drop(answer.send(Ok(snapshot(&policy)))),
                Request::SetPolicy(change, answer) => {
                    let changed = change.apply(&policy);
                    if let Ok(new) = &changed {
                        policy = new.clone();
                    }
                    drop(answer.send(changed.map(|p| p.view())));
                }
                Request::Reload(answer) => {
                    drop(answer.send(Ok(Reloaded { policy: policy.view(), restart_needed: vec!["job_by".into()] })));
                }
                Request::Trace(client, answer) => {
                    let (rings, stats) = maps.get_or_insert_with(trace_maps);
                    drop(answer.send(tap.open(&client, rings, stats, &flag).map_err(|e| format!("{e:#}"))));
                }
                Request::Hint(_, answer) => drop(answer.send(Err("it hears no hints".into()))),
                Request::Freed(..) => {}
                Request::Stop => break,
            }
        }
    });
    owner
}
