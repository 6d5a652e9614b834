// SPDX-License-Identifier: GPL-2.0-only
//! The benchmark's processes measure what they should, with no scheduler loaded: a token goes round, or one
//! for each thread, with work in between or without, CPU time is shared with a competitor, and nothing
//! outlasts its time.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

fn bench(args: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_scx_cosched"))
        .arg("bench")
        .args(args)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Starts the side of a token that waits, and says where it does.
fn listener(args: &[&str]) -> (Child, String) {
    listener_of("token", args)
}

fn listener_of(kind: &str, args: &[&str]) -> (Child, String) {
    let mut child = bench(&[&[kind, "--listen", "127.0.0.1:0"], args].concat());
    let mut line = String::new();
    // Byte by byte: what comes after this line has to stay in the pipe.
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::with_capacity(1, stdout).read_line(&mut line).unwrap();
    let address = line.trim().strip_prefix("listening on ").unwrap().to_owned();
    (child, address)
}

fn succeed(child: Child) -> String {
    let Output { status, stdout, stderr } = child.wait_with_output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The first number in the line of `report` that begins with `name`.
fn figure(report: &str, name: &str) -> f64 {
    let line = report.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{report}"));
    line.split_whitespace().find_map(|word| word.trim_end_matches(',').parse().ok()).unwrap()
}

/// A CPU that this process may use.
fn cpu() -> String {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    (0..1024).find(|&cpu| set.is_set(cpu).unwrap()).unwrap().to_string()
}

/// As long as it is there nothing else is measured on that CPU.
fn alone() -> MutexGuard<'static, ()> {
    static CPU: Mutex<()> = Mutex::new(());
    CPU.lock().unwrap_or_else(PoisonError::into_inner)
}

#[test]
fn token_and_hog_share_a_cpu() {
    let _alone = alone();
    let (cpu, begun) = (cpu(), Instant::now());
    let timing = ["--seconds", "0.5", "--warm-up", "0.1", "--cpu", &cpu];
    for receiver in ["spin", "block", "twophase"] {
        let args = [&timing, ["--receiver", receiver].as_slice()].concat();
        let hog = bench(&[&["hog"], timing.as_slice()].concat());
        let (waiting, address) = listener(&args);
        let starting = bench(&[&["token", "--connect", &address], args.as_slice()].concat());
        let (starting, waiting, hog) = (succeed(starting), succeed(waiting), succeed(hog));

        assert!(figure(&starting, "round trips ") >= 1.0, "{starting}");
        let longest = starting.split("max ").nth(1).unwrap().lines().next().unwrap();
        assert!(longest.parse::<f64>().unwrap() <= 1e6, "{starting}");
        assert!(!waiting.contains("round trips"), "only who starts the token measures it: {waiting}");

        let used = [&starting, &waiting, &hog].map(|report| figure(report, "CPU time"));
        assert!(used.iter().all(|&seconds| seconds > 0.0), "{used:?}");
        // Their intervals are not quite the same, hence the margin.
        assert!(used.iter().sum::<f64>() < 0.7, "one CPU has no more to give in 0.5 s: {used:?}");
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// A run of both sides on one CPU: what the one that starts the tokens reports, and the other.
fn run_both(args: &[&str]) -> [String; 2] {
    let _alone = alone();
    let cpu = cpu();
    let args = [["--seconds", "0.5", "--warm-up", "0.1", "--cpu", &cpu].as_slice(), args].concat();
    let (waiting, address) = listener(&args);
    let starting = bench(&[&["token", "--connect", &address], args.as_slice()].concat());
    [starting, waiting].map(succeed)
}

#[test]
fn the_time_of_all_threads_is_counted_once() {
    for receiver in ["spin", "block"] {
        let reports = run_both(&["--threads", "3", "--receiver", receiver]);
        assert!(figure(&reports[0], "round trips ") >= 1.0, "{reports:?}");
        assert!(!reports[1].contains("round trips"), "{reports:?}");
        let used = reports.each_ref().map(|report| figure(report, "CPU time"));
        assert!(used.iter().all(|&seconds| seconds > 0.0), "{used:?}");
        assert!(used.iter().sum::<f64>() < 0.7, "one CPU has no more to give in 0.5 s: {used:?}");
    }
}

#[test]
fn a_barrier_is_over_when_all_have_come() {
    let _alone = alone();
    let cpu = cpu();
    let timing = ["--seconds", "0.5", "--warm-up", "0.1", "--receiver", "block", "--cpu", &cpu];
    // Only the last computes, and all wait for it.
    let leaves = ["0", "0", "20000"].map(|us| listener(&[&timing, ["--compute-us", us].as_slice()].concat()));
    let addresses = leaves.each_ref().map(|(_, address)| address.as_str()).join(",");
    let root = bench(&[&["token", "--connect", &addresses], timing.as_slice()].concat());
    let report = succeed(root);
    leaves.into_iter().for_each(|(leaf, _)| drop(succeed(leaf)));
    // A host that slows the calibration down makes the work shorter, but not to half.
    assert!((1.0..=50.0).contains(&figure(&report, "round trips ")), "25 of 20 ms are in 0.5 s: {report}");
    assert!(figure(&report, "round trip µs") >= 10_000.0, "{report}");
}

/// All three processes of a job, the first one first: what they report.
fn run_job(args: &[&str]) -> Vec<String> {
    let others = [(); 2].map(|()| listener_of("spmd", args));
    let addresses = others.each_ref().map(|(_, address)| address.as_str()).join(",");
    let first = bench(&[&["spmd", "--connect", &addresses], args].concat());
    [first].into_iter().chain(others.map(|(other, _)| other)).map(succeed).collect()
}

#[test]
fn processes_of_a_job_meet_and_read_from_each_other() {
    let _alone = alone();
    let cpu = cpu();
    for pattern in ["bulk", "news", "transpose", "random", "line"] {
        for receiver in ["spin", "block", "oracle"] {
            let job = ["--pattern", pattern, "--receiver", receiver, "--compute-us", "1000", "--imbalance", "150"];
            let reports = run_job(&[&["--seconds", "0.3", "--warm-up", "0.1", "--cpu", &cpu], job.as_slice()].concat());
            let iterations = figure(&reports[0], "round trips ");
            assert!((1.0..=250.0).contains(&iterations), "three times 1 ms are on one CPU: {pattern}: {reports:?}");
            assert!(reports[1..].iter().all(|report| !report.contains("round trips")), "{reports:?}");
            let used: f64 = reports.iter().map(|report| figure(report, "CPU time")).sum();
            assert!(0.0 < used && used < 0.5, "one CPU has no more to give in 0.3 s: {reports:?}");
        }
    }
}

#[test]
fn a_job_of_so_many_iterations_ends_with_them() {
    let _alone = alone();
    let args = ["--pattern", "line", "--receiver", "block", "--compute-us", "2000", "--io-us", "500"];
    let args = [args.as_slice(), &["--bytes", "4096", "--iterations", "40"]].concat();
    let alone = succeed(bench(&[&["spmd"], args.as_slice()].concat()));
    for pattern in ["bulk", "news", "transpose"] {
        succeed(bench(&["spmd", "--pattern", pattern, "--iterations", "3"]));
    }
    succeed(bench(&["spmd", "--pattern", "random", "--seconds", "0.1", "--warm-up", "0"]));
    for report in run_job(&args).iter().chain([&alone]) {
        let used = figure(report, "CPU time");
        assert!((0.04..=2.0).contains(&used), "40 times 2 ms, on a machine that may have more to do: {report}");
        let seconds: f64 = report.split(" of ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(seconds >= used + 0.015, "it sleeps for 20 ms besides: {report}");
    }
}

/// What the process consists of: its tasks' CPUs, a line each, and how many sockets it has.
fn anatomy(child: &Child) -> (Vec<String>, usize) {
    let proc = format!("/proc/{}", child.id());
    let entries = |of: &str| fs::read_dir(format!("{proc}/{of}")).unwrap().map(|entry| entry.unwrap().path());
    let cpus = |status: String| {
        let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    // A task or a file may go while it is looked at.
    let tasks = entries("task").filter_map(|task| fs::read_to_string(task.join("status")).ok()).map(cpus);
    let links = entries("fd").filter_map(|fd| fs::read_link(fd).ok());
    (tasks.collect(), links.filter(|link| link.to_string_lossy().starts_with("socket:")).count())
}

#[test]
fn each_thread_has_a_connection_and_stays_on_the_cpu() {
    let cpu = cpu();
    let args = ["--seconds", "60", "--threads", "3", "--receiver", "block", "--cpu", &cpu];
    let (waiting, address) = listener(&args);
    let mut starting = bench(&[["token", "--connect", &address].as_slice(), &args].concat());
    let wanted = (vec![cpu; 3], 3);
    let deadline = Instant::now() + Duration::from_secs(20);
    for side in [&starting, &waiting] {
        // They meet and start their threads first. Who listens has one more socket until all have come.
        while anatomy(side) != wanted {
            assert!(Instant::now() < deadline, "{:?} instead of {wanted:?}", anatomy(side));
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    starting.kill().unwrap();
    starting.wait().unwrap();
    let Output { status, stderr, .. } = waiting.wait_with_output().unwrap();
    let error = String::from_utf8(stderr).unwrap();
    assert!(!status.success() && error.contains("the peer left before the measurement was over"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
}

#[test]
fn work_between_messages_takes_its_time() {
    for receiver in ["spin", "block"] {
        let [starting, waiting] = run_both(&["--compute-us", "5000", "--receiver", receiver]);
        let trips = figure(&starting, "round trips ");
        // Two times 5 ms of one CPU for each make 50 in half a second, and thousands without. A machine that
        // is busy elsewhere makes fewer; one that was so only while the loop was calibrated makes a few more.
        assert!((1.0..=400.0).contains(&trips), "{starting}");
        let used = [starting, waiting].map(|report| figure(&report, "CPU time"));
        assert!(used.iter().all(|&seconds| seconds > 0.0), "{used:?}");
    }
}

#[test]
fn a_hog_that_waits_for_files_leaves_a_third_of_the_cpu() {
    let used = |options: &[&str]| {
        let timing = ["hog", "--seconds", "0.5", "--warm-up", "0.1"];
        figure(&succeed(bench(&[&timing, options].concat())), "CPU time")
    };
    let reads = used(&["--io"]);
    assert!(0.0 < reads && reads < 0.42, "10 ms in 15 are 0.33 s of 0.5, not {reads}");
}

#[test]
fn a_hog_has_its_nice_level() {
    let mut hog = bench(&["hog", "--seconds", "60", "--nice", "7"]);
    let deadline = Instant::now() + Duration::from_secs(20);
    // SAFETY: there is no memory in it.
    while unsafe { libc::getpriority(libc::PRIO_PROCESS, hog.id()) } != 7 {
        assert!(Instant::now() < deadline && hog.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(20));
    }
    hog.kill().unwrap();
    hog.wait().unwrap();
}

#[test]
fn a_peer_that_leaves_ends_it() {
    let begun = Instant::now();
    let (waiting, address) = listener(&["--seconds", "30", "--receiver", "block"]);
    drop(TcpStream::connect(address).unwrap());

    let Output { status, stderr, .. } = waiting.wait_with_output().unwrap();
    let error = String::from_utf8(stderr).unwrap();
    assert!(!status.success());
    assert!(error.contains("the peer left before the measurement was over"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
}

#[test]
fn says_what_is_wrong_with_its_arguments() {
    for (args, what) in [
        (vec!["token"], "--listen"),
        (vec!["token", "--listen", "nowhere"], "nowhere"),
        (vec!["token", "--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1"], "--connect"),
        (vec!["token", "--listen", "127.0.0.1:0", "--receiver", "nap"], "nap"),
        (vec!["token", "--listen", "127.0.0.1:0", "--threads", "0"], "0 is not in 1..=64"),
        (vec!["token", "--listen", "127.0.0.1:0", "--threads", "65"], "65 is not in 1..=64"),
        (vec!["token", "--listen", "127.0.0.1:0", "--compute-us", "100001"], "100001 is not in 0..=100000"),
        (vec!["hog", "--seconds", "0"], "0.1 s is the least"),
        (vec!["hog", "--cpu", "100000"], "100000"),
        (vec!["demo", "--testbed", "three"], "three"),
        (vec!["demo", "--repeats", "0"], "--repeats"),
        (vec!["demo", "--schedulers", "eevdf,nonsense"], "unknown policy 'nonsense' (known: "),
        (vec!["demo", "--testbed", "two", "--node", "0"], "--peer"),
        (vec!["policies", "--scenarios", "spin-4,nap-4"], "'nap-4' is no scenario: "),
        (vec!["policies", "--scenarios", "spin-2x2-t65"], "'spin-2x2-t65' is no scenario: "),
        (vec!["policies", "--schedulers", "peer:x"], "'peer:x' is no peer: peer:NAME=/path/to/binary is wanted"),
        (vec!["policies", "--schedulers", "peer:x=/nowhere"], "'/nowhere' is no program that can be run"),
        (vec!["policies", "--schedulers", "eevdf+slice_us=1"], "eevdf takes slice_us=US, from 100 to 1000000"),
        (vec!["policies", "--nodes", "3"], "'3' is no number of nodes: 2, 4, 6 or 8 are wanted"),
        (vec!["policies", "--loss-percent", "51"], "'51' is no loss: a number from 0 to 50 is wanted"),
        (vec!["policies", "--out", "/nowhere/summary.json"], "--out /nowhere/summary.json: give a file"),
        (
            vec!["policies", "--loss-percent", "1", "--scenarios", "spin-3x0-100us-news"],
            "spin-3x0-100us-news takes no --loss-percent: its messages are datagrams",
        ),
        (vec!["spmd", "--listen", "127.0.0.1:0", "--connect", "127.0.0.1:1"], "--connect"),
        (vec!["spmd", "--pattern", "ring"], "ring"),
        (vec!["spmd", "--compute-us", "0"], "0 is not in 1..=100000"),
        (vec!["spmd", "--imbalance", "201"], "201 is not in 0..=200"),
        (vec!["spmd", "--bytes", "8193"], "8193 is not in 16..=8192"),
        (vec!["spmd", "--iterations", "0"], "0 is not in 1.."),
        (vec!["spmd", "--iterations", "5", "--seconds", "1"], "--seconds"),
        (vec!["mix", "--workload", "WL9"], "unknown workload 'WL9' (known: WL1 to WL8)"),
        (vec!["mix", "--load", "0"], "'0' is no load: a number from 0.01 to 10 is wanted"),
        (vec!["spmd", "--iterations", "5", "--pattern", "random"], "--iterations is not for the pattern random"),
        (
            vec!["token", "--listen", "127.0.0.1:0", "--receiver", "oracle"],
            "one of spin, block, poll, twophase is wanted",
        ),
        (vec!["demo", "--receivers", "spin,oracle"], "one of spin, block, poll, twophase is wanted"),
        (vec!["spmd", "--receiver", "poll"], "one of spin, block, twophase, oracle is wanted"),
        (vec!["policies", "--scenarios", "oracle-4"], "'oracle-4' is no scenario: "),
        (vec!["policies", "--scenarios", "poll-4-1000us-news"], "'poll-4-1000us-news' is no scenario: "),
        (vec!["mix", "--nodes", "9"], "9 is not in 2..=8"),
        (vec!["mix", "--schedulers", "strategies,sb"], "'sb' is there twice"),
        (vec!["mix", "--out", "/nowhere/summary.json"], "--out /nowhere/summary.json: give a file"),
    ] {
        let mut child = bench(&args);
        let mut error = String::new();
        child.stderr.take().unwrap().read_to_string(&mut error).unwrap();
        assert!(!child.wait().unwrap().success(), "{args:?}");
        assert!(error.contains(what), "{args:?}: {error}");
        assert_eq!(error.lines().count(), 1, "{args:?}: {error}");
    }
}

#[test]
fn what_is_wrong_leaves_nothing_behind() {
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("summary.json");
    for wrong in [["--scenarios", "spin"], ["--schedulers", "eevdf,eevdf"], ["--schedulers", "peer:eevdf=/bin/true"]] {
        let child = bench(&[&["policies", "--out", out.to_str().unwrap()], wrong.as_slice()].concat());
        assert_eq!(child.wait_with_output().unwrap().status.code(), Some(2), "{wrong:?}");
        assert!(!out.exists(), "{wrong:?}");
    }
}

#[test]
fn the_plan_is_listed_and_not_carried_out() {
    let args = ["--scenarios", "spin-2x2,spin-8", "--schedulers", "eevdf,peer:x=/bin/false", "--repeats", "2"];
    let plan = succeed(bench(&[&["policies", "--dry-run", "--seconds", "3"], args.as_slice()].concat()));
    let turn = |scheduler| format!("spin-2x2 {scheduler} 3\nspin-8 {scheduler} 3\n");
    let alone = |scheduler| format!("spin-0 {scheduler} 1\n");
    let (eevdf, x) = (turn("eevdf"), turn("x"));
    assert_eq!(
        plan,
        [alone("eevdf"), eevdf.clone(), alone("x"), x.repeat(2), alone("x"), eevdf.clone(), alone("eevdf")].concat()
    );

    let without =
        succeed(bench(&[&["policies", "--dry-run", "--without-alone", "--seconds", "3"], args.as_slice()].concat()));
    assert_eq!(without, [eevdf.clone(), x.repeat(2), eevdf].concat());
}

#[test]
fn every_kind_of_job_in_the_plan_is_measured_alone() {
    let args = ["--scenarios", "spin-2x2-t3-mixed,block-1x4", "--schedulers", "eevdf", "--repeats", "1"];
    let plan = succeed(bench(&[&["policies", "--dry-run"], args.as_slice()].concat()));
    let scenarios: Vec<&str> = plan.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let alone = ["spin-0", "spin-0-200us", "block-0", "block-0-200us", "block-0-awake", "block-0-200us-awake"];
    let backwards: Vec<&str> = alone.into_iter().rev().collect();
    assert_eq!(scenarios, [&alone[..], &["spin-2x2-mixed-t3", "block-4"], &backwards].concat());
}

#[test]
fn two_jobs_at_once_have_a_row_each() {
    let set = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
    // Fails rather than skips: a test that is skipped is one that nobody misses.
    let both = set.is_set(0).unwrap() && set.is_set(1).unwrap();
    assert!(both, "this test needs two CPUs, 0 and 1, which are the two nodes: run it where it may use both");
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("summary.json");
    // Without the runs alone: in real time, beside other tests, a baseline may well move.
    let load = ["--scenarios", "spin-2x1-mixed-t2", "--schedulers", "eevdf", "--without-alone"];
    let args = [&load[..], &["--repeats", "1", "--seconds", "2"]].concat();
    let text = succeed(bench(&[&["policies", "--out", out.to_str().unwrap()], args.as_slice()].concat()));
    assert!(text.contains("1 of 2") && text.contains("scenario, all jobs"), "{text}");

    let summary: serde_json::Value = serde_json::from_slice(&fs::read(out).unwrap()).unwrap();
    let rows = summary["results"].as_array().unwrap();
    let brief = |key: &str| rows.iter().map(|row| row[key].as_u64().unwrap()).collect::<Vec<_>>();
    assert_eq!((brief("jobs"), brief("job")), (vec![2, 2], vec![0, 1]));
    assert_eq!((brief("competitors"), brief("threads")), (vec![1, 1], vec![2, 2]));
    assert_eq!(brief("compute_us"), [0, 200]);
    let rate = |row: &serde_json::Value| row["round_trips_per_s"]["median"].as_f64().unwrap();
    let both = rate(&rows[0]) + rate(&rows[1]);
    // There is one run, so the total is that of the medians; a sum may be rounded otherwise.
    assert!(rows.iter().all(|row| (row["total_round_trips_per_s"].as_f64().unwrap() / both - 1.0).abs() < 1e-9));
    for row in rows {
        assert_eq!((&row["gate"], &row["wait"]), (&"none".into(), &"none".into()), "{row}");
        assert!(rate(row) > 0.0, "{row}");
        assert!(row["cpu_share"].as_f64().unwrap() > 0.0, "{row}");
    }
}
