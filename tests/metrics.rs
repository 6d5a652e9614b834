// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the metrics are valid in both formats, say what the snapshot says, and are served at /metrics and
//! nowhere else.

mod common;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use common::{fake_scheduler, snapshot};
use cosched_rules::{native, presets};
use scx_cosched::metrics;
use scx_cosched::metrics::exporter::Exporter;
use scx_cosched::scheduler::requests::{Owner, Request};
use scx_cosched::settings::limits::MetricsListen;

fn both() -> (String, String) {
    let snapshot = snapshot(&presets::find("dcs").unwrap().policy);
    (metrics::openmetrics(&snapshot), metrics::prometheus_text(&snapshot))
}

#[test]
fn every_number_is_there() {
    let (openmetrics, text) = both();
    for (i, counter) in native::counters().iter().enumerate() {
        let sample = format!("scx_cosched_{}_total {}", counter.name, 200 - i);
        assert!(openmetrics.lines().any(|l| l == sample) && text.lines().any(|l| l == sample), "{sample}");
    }
    for sample in [
        "scx_cosched_endpoint_arrivals_total{endpoint=\"tcp\"} 300",
        "scx_cosched_endpoint_arrivals_total{endpoint=\"unix\"} 302",
        "scx_cosched_decisions_total{decision=\"granted\",reason=\"always\"} 1",
        "scx_cosched_decisions_total{decision=\"denied\",reason=\"no_demand\"}",
        "scx_cosched_arrival_to_run_seconds_sum 0.00002",
        "scx_cosched_arrival_to_run_seconds_count 7",
        "scx_cosched_arrival_to_run_seconds_bucket{le=\"0.000004\"} 3",
        "scx_cosched_arrival_to_run_seconds_bucket{le=\"+Inf\"} 7",
        "scx_cosched_job_cpu_seconds_total{parallel_job=\"/slurm/job_7\"} 1.5",
        "scx_cosched_job_fair_share_seconds_total{parallel_job=\"other\"} 1.25",
        "scx_cosched_job_fairness_ratio{parallel_job=\"/slurm/job_7\"} 1.2",
        "scx_cosched_job_boosts_total{parallel_job=\"other\"} 7",
        "scx_cosched_policy_info{policy=\"dcs\",arrival=\"demand\",gate=\"equalizing\"",
        "scx_cosched_build_info{version=\"0.0.0\",kernel=\"test\"} 1",
        "scx_cosched_hook_attached{hook=\"on_readable\"} 1",
        "scx_cosched_hook_attached{hook=\"on_epoll\"} 0",
        "scx_cosched_uptime_seconds 12.5",
        "process_resident_memory_bytes 10485760",
        "process_cpu_seconds_total 0.25",
        "process_start_time_seconds 1700000000.5",
        "process_open_fds 12",
        "process_max_fds 4096",
        "process_threads 9",
        "process_virtual_memory_bytes 20971520",
        "scx_cosched_kernel_events_total{event=\"bypass_activate\"} 2",
        "scx_cosched_kernel_bypass_seconds_total 1.5",
        "scx_cosched_job_cpu_waiting_seconds_total{parallel_job=\"/slurm/job_7\"} 0.75",
        "scx_cosched_maps_memory_bytes 1048576",
        "scx_cosched_runnable_tasks 9",
        "scx_cosched_runnable_tasks_max 5",
        "scx_cosched_gang_skew_seconds_total 0.00492",
        "scx_cosched_gang_skew_max_seconds 0.0008",
    ] {
        for format in [&openmetrics, &text] {
            assert!(format.lines().any(|l| l.starts_with(sample)), "{sample} is not in\n{format}");
        }
    }
}

#[test]
fn a_job_that_is_due_nothing_has_no_ratio() {
    assert!(!both().0.contains("fairness_ratio{parallel_job=\"other\"}"));
}

#[test]
fn names_of_jobs_cannot_break_the_format() {
    for format in [both().0, both().1] {
        assert!(format.contains(r#"{parallel_job="/a \"quoted\\name\"\n"}"#), "{format}");
    }
}

#[test]
fn quotes_in_a_help_are_escaped_where_the_format_asks_for_it() {
    let (openmetrics, text) = both();
    let help = "# HELP scx_cosched_jobs_full";
    assert!(openmetrics.lines().any(|l| l.starts_with(help) && l.contains(r#"under \"other\""#)), "{openmetrics}");
    assert!(text.lines().any(|l| l.starts_with(help) && l.contains(r#"under "other""#)), "{text}");
}

#[test]
fn openmetrics_has_its_types_and_its_end() {
    let (openmetrics, _) = both();
    for line in [
        "# TYPE scx_cosched_arrivals counter",
        "# TYPE scx_cosched_policy info",
        "# UNIT scx_cosched_arrival_to_run_seconds seconds",
        "# TYPE scx_cosched_job_cpu_seconds counter",
        "# TYPE scx_cosched_gang_skew_seconds counter",
        "# TYPE scx_cosched_gang_skew_max_seconds gauge",
    ] {
        assert!(openmetrics.lines().any(|l| l == line), "{line} is not in\n{openmetrics}");
    }
    assert!(openmetrics.ends_with("# EOF\n"));
}

#[test]
fn the_linter_of_prometheus_has_nothing_to_say() {
    let found = Command::new("tests/vm/promtool").output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let mut promtool = Command::new(String::from_utf8(found.stdout).unwrap().trim_end())
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    promtool.stdin.take().unwrap().write_all(both().1.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    assert!(output.status.success() && said.is_empty(), "{}", String::from_utf8_lossy(&said));
}

fn http(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

fn get(address: SocketAddr, path: &str, headers: &str) -> String {
    http(address, &format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}\r\n"))
}

#[test]
fn they_are_served_in_the_format_that_is_asked_for_and_nothing_else_is() {
    let exporter = Exporter::bind(MetricsListen::At("127.0.0.1:0".parse().unwrap())).unwrap();
    let address = exporter.address().unwrap();
    exporter.serve(fake_scheduler()).unwrap();

    let text = get(address, "/metrics", "");
    assert!(text.starts_with("HTTP/1.1 200 OK\r\n"), "{text}");
    assert!(text.contains("content-type: text/plain; version=0.0.4"), "{text}");
    assert!(text.contains("# TYPE scx_cosched_arrivals_total counter\n"), "{text}");

    let accept = "Accept: application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.1\r\n";
    let openmetrics = get(address, "/metrics", accept);
    assert!(openmetrics.contains("content-type: application/openmetrics-text; version=1.0.0"), "{openmetrics}");
    assert!(openmetrics.ends_with("# EOF\n"), "{openmetrics}");

    for path in ["/", "/metrics/", "/metricsx", "/..%2fmetrics"] {
        assert!(get(address, path, "").starts_with("HTTP/1.1 404 "), "{path}");
    }
    assert!(
        http(address, "POST /metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").starts_with("HTTP/1.1 405 ")
    );
    assert!(http(address, "nonsense\r\n\r\n").starts_with("HTTP/1.1 400 "));
}

#[test]
fn a_scheduler_that_has_ended_is_an_error_of_the_server() {
    let exporter = Exporter::bind(MetricsListen::At("127.0.0.1:0".parse().unwrap())).unwrap();
    let address = exporter.address().unwrap();
    let owner = fake_scheduler();
    owner.stop();
    exporter.serve(owner).unwrap();
    assert!(get(address, "/metrics", "").starts_with("HTTP/1.1 503 "));
}

#[test]
fn scrapes_whose_clients_have_left_are_not_made() {
    let exporter = Exporter::bind(MetricsListen::At("127.0.0.1:0".parse().unwrap())).unwrap();
    let address = exporter.address().unwrap();
    let (owner, requests) = Owner::new();
    exporter.serve(owner).unwrap();
    for _ in 0..200 {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    }
    // All of them have left before anybody answers.
    let last = thread::spawn(move || get(address, "/metrics", ""));
    let policy = &presets::find("dcs").unwrap().policy;
    let mut asked = 0;
    thread::sleep(Duration::from_millis(500));
    while !last.is_finished() {
        if let Ok(Request::Snapshot(answer)) = requests.recv_timeout(Duration::from_millis(10)) {
            asked += 1;
            drop(answer.send(Ok(snapshot(policy))));
        }
    }
    assert!(last.join().unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(asked <= 10, "{asked} snapshots for one client that waits, and two that were asked for before");
}

#[test]
fn those_who_connect_and_say_nothing_keep_nobody_from_the_metrics() {
    let exporter = Exporter::bind(MetricsListen::At("127.0.0.1:0".parse().unwrap())).unwrap();
    let address = exporter.address().unwrap();
    exporter.serve(fake_scheduler()).unwrap();
    let connect = || TcpStream::connect(address).unwrap();

    // More than there may be at once: the oldest have been closed.
    let mut idle: Vec<TcpStream> = (0..300).map(|_| connect()).collect();
    let began = Instant::now();
    assert!(get(address, "/metrics", "").starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!(idle[0].read(&mut [0]).unwrap(), 0);
    drop(idle);

    let mut slow = connect();
    slow.write_all(b"GET /metrics HTTP/1.1\r\nHost:").unwrap();
    slow.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    slow.read_to_end(&mut Vec::new()).expect("one whose request never ends is cut off");
}
