// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever is wrong with the flags of `sim cluster`, `shared`, `replay` or `scale`, with a trace or with a
//! summary of the bench, the program says so in one line, says where and what to do about it, and runs nothing. The
//! flags of all else are in
//! `bad_input.rs`, but for those of other models, which are in their tests.

use std::collections::BTreeSet;
use std::fs;

use common::command_line::command_line;
use common::error_of;

mod common;

/// A flag, values that it does not take, and how the message says what it takes.
type Row = (&'static str, &'static [&'static str], &'static str);

const SWITCH: &str = "no more were expected";

#[rustfmt::skip]
const CLUSTER: &[Row] = &[
    ("workload", &["WL0", "WL9", "wl1", "7", "WL11", ""], "(known: WL1 to WL8)"),
    ("policy", &["psb", "", "PB", "gs"], "(known: beat, cc, dcs"),
    ("as-kernel", &["1", "true"], SWITCH),
    ("mpl", &["0", "1025", "-1", "1.5", "4294967297", "five", ""], "it takes a whole number from 1 to 1024"),
    ("skew", &["-0.5", "200.5", "NaN", "inf", "20%", ""], "it takes a number of % from 0 to 200"),
    ("nodes", &["0", "65537", "-1", "1.5", "4294967297", ""], "it takes a whole number from 1 to 65536"),
    ("switch-us", &["-0.5", "1000000.5", "NaN", "inf", "1us", ""], "it takes a number of us from 0 to 1000000"),
    ("interrupt-us", &["-0.5", "1000000.5", "NaN", "inf", "1us", ""], "it takes a number of us from 0 to 1000000"),
    ("queue-move-us", &["-0.5", "1000000.5", "NaN", "inf", "3us", ""], "it takes a number of us from 0 to 1000000"),
    ("endpoint-check-us", &["-0.5", "1000000.5", "NaN", "inf", "2us", ""], "it takes a number of us from 0 to 1000000"),
    ("quantum-ms", &["0", "60001", "-1", "1.5", "1s", ""], "it takes a whole number of ms from 1 to 60000"),
    ("latency-us", &["0", "0.5", "1000000.5", "-1", "NaN", "inf", ""], "it takes a number of us from 1 to 1000000"),
    ("exchanges", &["0", "1001", "-1", "1.5", ""], "it takes a whole number from 1 to 1000"),
    ("io-every", &["0", "1001", "-1", "1.5", ""], "it takes a whole number from 1 to 1000"),
    ("interface", &["-0.5", "100.5", "NaN", "inf", "50%", ""], "it takes a number of % from 0 to 100"),
    ("readings", &["", "all", "Block", "none,block", "block,"], "(known: apart, back, block, burst, "),
    ("spin-us", &["-0.5", "1000000.5", "NaN", "inf", "1us", ""], "it takes a number of us from 0 to 1000000"),
    ("load", &["0", "0.009", "10.5", "-1", "NaN", "inf", "60%", ""], "it takes a number from 0.01 to 10"),
    ("jobs", &["0", "1000001", "-1", "1.5", ""], "it takes a whole number from 1 to 1000000"),
    ("execution-s", &["0", "1000000.5", "-1", "NaN", "inf", "1s", ""], "it takes a number of s from 0.001 to 1000000"),
    ("warmup", &["-0.5", "90.5", "NaN", "inf", "10%", ""], "it takes a number of % from 0 to 90"),
    ("time-scale", &["0", "1000.5", "-1", "NaN", "inf", ""], "it takes a number from 0.000000001 to 1000"),
    ("seed", &["-1", "18446744073709551616", "1.5", "x", ""], "it takes a whole number from 0 to 18446744073709551615"),
    ("runs", &["0", "100001", "-3", "1.5", ""], "it takes a whole number from 1 to 100000"),
    ("swf", &[""], "a value is required"),
    ("mixes", &[""], "a value is required"),
    ("json", &["1", "true"], SWITCH),
];

#[rustfmt::skip]
const SHARED: &[Row] = &[
    ("policy", &["psb", "", "PB", "dcs+h_ms=x", "local+h_ms=-20"], "--policy: "),
    ("mistuned", &["psb", "", "dcs+colour=red"], "--mistuned: "),
    ("pattern", &["news", "", "Ring"], "possible values: token, ring, meeting"),
    ("receiver", &["poll", "", "Spin"], "possible values: spin, block"),
    ("nodes", &["0", "65537", "-1", "1.5", "4294967297", ""], "it takes a whole number from 1 to 65536"),
    ("cpus", &["0", "65", "-1", "1.5", "4294967297", "two", ""], "it takes a whole number from 1 to 64"),
    ("ranks", &["0", "65", "-1", "1.5", ""], "it takes a whole number from 1 to 64"),
    ("jobs", &["0", "65", "-1", "1.5", ""], "it takes a whole number from 1 to 64"),
    ("competitors", &["65", "-1", "1.5", ""], "it takes a whole number from 0 to 64"),
    ("grain-us", &["0", "0.5", "1000000.5", "-1", "NaN", "inf", ""], "it takes a number of us from 1 to 1000000"),
    ("imbalance", &["-0.5", "2.5", "NaN", "inf", "10%", ""], "it takes a multiple of the grain from 0 to 2"),
    ("latency-us", &["-0.5", "1000000.5", "NaN", "inf", "1us", ""], "it takes a number of us from 0 to 1000000"),
    ("overhead-us", &["0", "-0.5", "1000000.5", "NaN", "inf", ""], "it takes a number of us from 0.05 to 1000000"),
    ("switch-us", &["0", "-0.5", "1000000.5", "NaN", "inf", ""], "it takes a number of us from 0.05 to 1000000"),
    ("prefetch", &["9", "-1", "1.5", ""], "it takes a whole number from 0 to 8"),
    ("demands", &["none", "", "All"], "possible values: all, exchange, meeting"),
    ("loss", &["-0.5", "50.5", "NaN", "inf", "1%", ""], "it takes a number of % from 0 to 50"),
    ("resend-ms", &["0", "60000.5", "-1", "NaN", "inf", ""], "it takes a number of ms from 0.01 to 60000"),
    ("mistuned-every", &["1", "65537", "-1", "1.5", ""], "it takes a whole number from 2 to 65536"),
    ("most-competitors", &["65", "-1", "1.5", ""], "it takes a whole number from 0 to 64"),
    ("least-nodes", &["1", "65537", "-1", "1.5", ""], "it takes a whole number from 2 to 65536"),
    ("stay-s", &["0", "0.04", "3600.5", "-1", "NaN", ""], "it takes a number of s from 0.05 to 3600"),
    ("start-lead-ms", &["-0.5", "10000.5", "NaN", ""], "it takes a number of ms from 0 to 10000"),
    ("clock-drift-ppm", &["-0.5", "10000.5", "NaN", ""], "it takes a number of parts per million from 0 to 10000"),
    ("beat-without", &["turns", "", "Demand"], "possible values: demand, clock, share, size, astray"),
    ("clock-skew-ms", &["-0.5", "10000.5", "NaN", "inf", ""], "it takes a number of ms from 0 to 10000"),
    ("tick-us", &["0", "99", "10001", "-1", "1.5", ""], "it takes a whole number of us from 100 to 10000"),
    ("seconds", &["0", "3600.5", "-1", "NaN", "inf", "1s", ""], "it takes a number of s from 0.01 to 3600"),
    ("warmup-s", &["-0.5", "3600.5", "NaN", "inf", "1s", ""], "it takes a number of s from 0 to 3600"),
    ("seed", &["-1", "18446744073709551616", "1.5", "x", ""], "it takes a whole number from 0 to 18446744073709551615"),
    ("runs", &["0", "100001", "-3", "1.5", ""], "it takes a whole number from 1 to 100000"),
    ("json", &["1", "true"], SWITCH),
];

#[rustfmt::skip]
const REPLAY: &[Row] = &[
    ("latency-us", &["-0.5", "1000000.5", "NaN", "inf", "1us", ""], "it takes a number of us from 0 to 1000000"),
    ("overhead-us", &["0", "-0.5", "1000000.5", "NaN", "inf", ""], "it takes a number of us from 0.05 to 1000000"),
    ("switch-us", &["0", "-0.5", "1000000.5", "NaN", "inf", ""], "it takes a number of us from 0.05 to 1000000"),
    ("tick-us", &["0", "99", "10001", "-1", "1.5", ""], "it takes a whole number of us from 100 to 10000"),
    ("out", &[""], "a value is required"),
    ("seed", &["-1", "18446744073709551616", "1.5", "x", ""], "it takes a whole number from 0 to 18446744073709551615"),
    ("runs", &["0", "100001", "-3", "1.5", ""], "it takes a whole number from 1 to 100000"),
    ("json", &["1", "true"], SWITCH),
];

#[rustfmt::skip]
const SCALE: &[Row] = &[
    ("most-nodes", &["0", "65537", "-1", "1.5", ""], "it takes a whole number from 1 to 65536"),
    ("out", &[""], "a value is required"),
    ("page", &[""], "a value is required"),
    ("seed", &["-1", "18446744073709551616", "1.5", "x", ""], "it takes a whole number from 0 to 18446744073709551615"),
    ("runs", &["0", "100001", "-3", "1.5", ""], "it takes a whole number from 1 to 100000"),
    ("json", &["1", "true"], SWITCH),
];

/// Each command, with what it needs besides its flags.
const COMMANDS: [(&str, &[&str], &[Row]); 4] = [
    ("cluster", &[], CLUSTER),
    ("shared", &[], SHARED),
    ("replay", &["/no/such.json"], REPLAY),
    ("scale", &["nodes"], SCALE),
];

fn refuses(args: &[&str], code: i32, wanted: &[&str]) {
    refuses_of("cluster", args, code, wanted);
}

fn refuses_of(command: &str, args: &[&str], code: i32, wanted: &[&str]) {
    let (message, found) = error_of(&[&["sim", command], args].concat());
    assert_eq!(found, code, "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: {message:?} has no {part:?}");
    }
}

#[test]
fn every_flag_has_a_row() {
    let command = command_line();
    for (name, _, rows) in COMMANDS {
        let sim = command.find_subcommand("sim").and_then(|sim| sim.find_subcommand(name)).unwrap();
        let flags: BTreeSet<&str> = sim.get_arguments().filter_map(|arg| arg.get_long()).collect();
        let rows: BTreeSet<&str> = rows.iter().map(|(flag, ..)| *flag).collect();
        assert_eq!(rows, flags, "{name}: a flag without a row, or a row without a flag");
    }
}

#[test]
fn a_value_that_a_flag_does_not_take_is_refused() {
    for (command, needs, rows) in COMMANDS {
        let refuses = |args: &[&str], wanted: &[&str]| refuses_of(command, &[needs, args].concat(), 2, wanted);
        for (flag, bad, takes) in rows {
            let flag = format!("--{flag}");
            for value in *bad {
                match *takes {
                    SWITCH => refuses(&[&format!("{flag}={value}")], &[&flag, value, takes]),
                    _ => refuses(&[&flag, value], &[&flag, value, takes]),
                }
            }
            match *takes {
                SWITCH => refuses(&[&flag, &flag], &[&flag, "cannot be used multiple times"]),
                _ => refuses(&[&flag], &[&flag, "a value is required"]),
            }
        }
    }
    refuses(&["--speed", "5"], 2, &["--speed"]);
    refuses(&["WL1"], 2, &["WL1"]);
}

#[test]
fn what_has_no_effect_or_leaves_nothing_is_refused() {
    for (flag, value) in [("--workload", "WL1"), ("--load", "0.5"), ("--jobs", "5"), ("--execution-s", "1")] {
        refuses(&["--swf", "/no/such.swf", flag, value], 2, &[flag, "it has no effect with --swf"]);
    }
    for (flag, value) in [("--mixes", "/no/such.toml"), ("--time-scale", "0.5")] {
        refuses(&[flag, value], 2, &[flag, "it has no effect without a trace", "--swf"]);
    }
    refuses(
        &["--as-kernel", "--spin-us", "300"],
        2,
        &["--spin-us: it has no effect with --as-kernel", "sb+spin_us=300"],
    );
    for name in ["dcs+gate=rate", "sb+spin_us=300"] {
        refuses(&["--policy", name], 2, &[&format!("--policy: unknown policy '{name}'"), "--as-kernel"]);
    }
    refuses(&["--as-kernel", "--policy", "local+h_ms=-20"], 2, &["--policy: ", "no effect"]);
    refuses(
        &["--policy", "gang", "--quantum-ms", "2"],
        2,
        &["--switch-us: 2000 leaves nothing of a quantum of 2 ms", "--quantum-ms"],
    );
}

#[test]
fn flags_of_shared_that_do_not_go_together_are_refused() {
    let refuses = |args: &[&str], wanted: &[&str]| refuses_of("shared", args, 2, wanted);
    refuses(&["--pattern", "token", "--nodes", "3"], &["--nodes: 3 nodes make no pairs", "even"]);
    refuses(&["--nodes", "65536", "--cpus", "2"], &["--cpus: 65536 nodes of 2 CPUs are 131072", "65536 CPUs"]);
    refuses(&["--cpus", "2", "--ranks", "3"], &["--ranks: 3 processes of a job have 2 CPUs", "--cpus"]);
    refuses(&["--resend-ms", "5"], &["--resend-ms: it has no effect without losses", "--loss"]);
    refuses(&["--clock-skew-ms", "5"], &["--clock-skew-ms: only gang and beat look at the clock", "--policy gang"]);
    refuses(&["--clock-drift-ppm", "5"], &["--clock-drift-ppm: only gang and beat look at the clock", "--policy gang"]);
    refuses(&["--beat-without", "clock"], &["--beat-without: these are pieces of beat", "--policy beat"]);
    refuses(&["--prefetch", "2", "--policy", "pb"], &["--prefetch: no arrival of a message is a demand", "dcs-sb"]);
    let meeting = ["--demands", "meeting", "--pattern", "meeting", "--policy", "beat"];
    refuses(&meeting, &["--demands: no arrival of a message is a demand under 'beat'", "dcs-sb"]);
    refuses(&["--demands", "meeting"], &["--demands: all messages are alike in this pattern", "--pattern meeting"]);
    refuses(&["--mistuned-every", "9"], &["--mistuned-every: no node is mistuned", "--mistuned"]);
    refuses(&["--least-nodes", "65"], &["--least-nodes: there are 64 nodes", "at most so many"]);
    refuses(&["--least-nodes", "6", "--pattern", "token"], &["--least-nodes: an odd number", "--pattern ring"]);
    refuses(&["--competitors", "3", "--most-competitors", "2"], &["--most-competitors: 2 are fewer than the 3"]);
}

#[test]
fn figures_of_scale_that_are_none_are_named_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let out = out.to_str().unwrap();
    refuses_of("scale", &["nodes", "nope", "--out", out], 2, &["unknown figure 'nope' (known: nodes, jobs", "all"]);
    refuses_of("scale", &["--out", out], 2, &["no figure (known: nodes", "--page"]);
    assert!(!fs::exists(out).unwrap());
    fs::write(dir.path().join("file"), "").unwrap();
    let in_a_file = format!("{}/file/out", dir.path().display());
    refuses_of("scale", &["skew", "--out", &in_a_file], 1, &["--out: ", "it cannot be made"]);
    fs::create_dir(out).unwrap();
    fs::write(format!("{out}/scale-skew.json"), "{}").unwrap();
    refuses_of(
        "scale",
        &["--out", out, "--page", &format!("{out}/page.md")],
        1,
        &["scale-skew.json: it is no figure (make it"],
    );
}

const ALONE: &str = r#"{"receiver": "spin", "scheduler": "eevdf", "competitors": 0, "fairness": 1.0,
    "round_trips_per_s": {"median": 10000.0, "min": 9000.0, "max": 11000.0}}"#;

#[test]
fn a_summary_that_is_none_or_says_too_little_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.json");
    let path = path.to_str().unwrap();
    let summary = |results: &str| format!(r#"{{"testbed": "one", "seconds": 2, "results": [{results}]}}"#);
    let beside = ALONE.replace("\"competitors\": 0", "\"competitors\": 4");
    let both = summary(&format!("{ALONE}, {beside}"));
    let costs = &["--latency-us", "5", "--switch-us", "100"][..];
    let cases: [(String, &[&str], i32, &str); 11] = [
        (String::new(), costs, 1, ": EOF while parsing"),
        ("{".into(), costs, 1, ": EOF while parsing an object at line 1 column 1 (it takes the summary.json"),
        ("7".into(), costs, 1, ": invalid type: integer `7`"),
        (r#"{"testbed": "three", "seconds": 2, "results": []}"#.into(), costs, 1, ": unknown variant `three`"),
        (summary(ALONE).replace("\"fairness\": 1.0,", ""), costs, 1, ": missing field `fairness`"),
        (both.replace("\"seconds\": 2", "\"seconds\": -2"), costs, 1, ": seconds: -2 is out of range"),
        (
            both.replace("\"competitors\": 4", "\"competitors\": 99"),
            costs,
            1,
            ": results[1]: competitors: 99 is not from",
        ),
        (summary(&beside), costs, 2, ": no spinning pair alone in it"),
        (summary(ALONE), costs, 2, ": nothing in it can be replayed"),
        (
            both.clone(),
            &["--switch-us", "100"],
            2,
            ": it has no costs, as benches of before have not (give --latency-us",
        ),
        (both.clone(), &["--latency-us", "50", "--switch-us", "100"], 2, ": the costs are more than the 100.0 us"),
    ];
    for (text, args, code, wanted) in cases {
        fs::write(path, &text).unwrap();
        refuses_of("replay", &[&[path], args].concat(), code, &[&format!("{path}{wanted}")]);
    }
    refuses_of("replay", &["/no/such.json"], 1, &["/no/such.json: it cannot be read (give the summary.json"]);
    refuses_of("replay", &["/"], 1, &["/: it cannot be read"]);
    fs::write(path, both).unwrap();
    let in_a_file = format!("{path}/out");
    refuses_of(
        "replay",
        &[&[path, "--runs", "1", "--out", &in_a_file], costs].concat(),
        1,
        &["--out: ", "it cannot be made"],
    );
}

/// What is wrong with a trace of a good line and then `line`, after the name of the file.
fn error_of_trace(line: &[u8], args: &[&str]) -> String {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.swf");
    let good = b"; Version: 2.2\n1 10 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n";
    fs::write(&path, [&good[..], line].concat()).unwrap();
    let path = path.to_str().unwrap();
    let (message, code) = error_of(&[&["sim", "cluster", "--time-scale", "1e-6", "--swf", path], args].concat());
    assert_eq!(code, 1, "{message}");
    message.strip_prefix(path).unwrap_or_else(|| panic!("{message}")).to_string()
}

#[test]
fn a_trace_that_is_cut_short_or_malformed_is_named_with_line_and_field() {
    let cases: [(&str, &str); 15] = [
        (
            "2 11 0 60",
            ":3: field 5 (number of allocated processors): it is missing, the line ends after 4 of 18 fields (get the trace again",
        ),
        ("2", ":3: field 2 (submit time): it is missing"),
        ("2 11 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1", ":3: field 18 (think time from preceding job): it is missing"),
        ("2 11 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1 5", ":3: '5' comes after the 18 fields"),
        ("x 11 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", ":3: field 1 (job number): 'x' is no number (mend it"),
        ("2 11 0 1h 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", ":3: field 4 (run time): '1h' is no number"),
        ("2 11 0 NaN 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1", ":3: field 4 (run time): 'NaN' is no number"),
        (
            "2 11 0 1e300 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1",
            ":3: field 4 (run time): 1e300 is out of range: it takes a number from -1 to",
        ),
        (
            "2 11 0 60 4.5 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1",
            ":3: field 5 (number of allocated processors): '4.5' is no whole number",
        ),
        (
            "2 11 0 60 -4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1",
            ":3: field 5 (number of allocated processors): -4 is out of range",
        ),
        (
            "2 -1 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1",
            ":3: field 2 (submit time): -1 is out of range: it takes a number from 0",
        ),
        (
            "2 9 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1",
            ":3: field 2 (submit time): 9 is before the 10 of the job above (sort",
        ),
        (
            "\n\n2 11 0 60 33 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1",
            ":5: field 5 (number of allocated processors): 33 is more than the 32 nodes (choose --nodes 33 or more",
        ),
        (
            "2 11 0 60 -1 -1 -1 64 -1 -1 1 1 1 1 1 1 -1 -1",
            ":3: field 8 (requested number of processors): 64 is more than the 32 nodes",
        ),
        ("<html>", ":3: field 1 (job number): '<html>' is no number"),
    ];
    for (line, wanted) in cases {
        let message = error_of_trace(line.as_bytes(), &[]);
        assert!(message.starts_with(wanted), "{line:?}: {message}");
    }
    let message = error_of_trace(b"\x1f\x8b\x08\xff", &[]);
    assert!(message.starts_with(":3: it is no text"), "{message}");
}

#[test]
fn a_trace_that_is_no_trace_is_named() {
    refuses(&["--swf", "/no/such.swf"], 1, &["/no/such.swf: it cannot be read (--swf takes"]);
    refuses(&["--swf", "/"], 1, &["/: it cannot be read"]);
    refuses(&["--swf", "/dev/null"], 1, &["/dev/null: no job in it ran"]);
}

#[test]
fn a_sidecar_that_is_wrong_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (path, trace) = (dir.path().join("m.toml"), dir.path().join("a.swf"));
    fs::write(&trace, "1 0 0 60 4 -1 -1 4 -1 -1 1 1 1 1 1 1 -1 -1\n").unwrap();
    let (path, trace) = (path.to_str().unwrap(), trace.to_str().unwrap());
    let third = "compute = 50\nio = 25\ncommunication = 25\n";
    for (text, wanted) in [
        ("[default]\ncompute = 50\nio = 25\n", ":1: missing field `communication` (it takes [default]"),
        ("\n[defaults]\n", ":2: unknown field `defaults`"),
        ("[default]\ncompute = \"x\"\n", ":2: invalid type"),
        ("compute = 1 2\n", ":1: "),
        (
            "[default]\ncompute = -1\nio = 1\ncommunication = 100\n",
            ": [default]: compute: -1 is out of range: it takes a number of %",
        ),
        (
            "[job.3]\ncompute = 50\nio = 25\ncommunication = 20\n",
            ": [job.3]: compute, io and communication add up to 95 % (they take 100",
        ),
        (
            format!("[executable.x]\n{third}").as_str(),
            ": [executable.x]: it takes a whole number, as field 14 of the trace has it",
        ),
    ] {
        fs::write(path, text).unwrap();
        refuses(&["--swf", trace, "--mixes", path], 1, &[&format!("{path}{wanted}")]);
    }
    refuses(&["--swf", trace, "--mixes", "/no/such.toml"], 1, &["/no/such.toml: it cannot be read (--mixes takes"]);
}
