// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a sweep runs every point of its grid once, in however many pieces and after whatever kill, and refuses a file
//! that is not as it should be before it writes anything.

use std::fs;
use std::path::Path;
use std::process::Output;

use common::{error_of, scx_cosched};
use serde_json::Value;

mod common;

const FILE: &str = r#"
model = "bsp"
[fixed]
nodes = 4
iterations = 20
runs = 2
[grid]
wait = ["immediate", "adaptive-global"]
granularity-us = [100, 250.5, 1000]
"#;

fn sweep(dir: &Path, file: &str, more: &[&str]) -> Output {
    let path = dir.join("sweep.toml");
    fs::write(&path, file).unwrap();
    let out = dir.join("out");
    let args = ["sim", "sweep", path.to_str().unwrap(), "--out", out.to_str().unwrap()];
    let output = scx_cosched(&[&args, more].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The lines of the CSV, without the columns that depend on the machine's speed.
fn csv(dir: &Path, name: &str) -> Vec<Vec<String>> {
    let text = fs::read_to_string(dir.join("out").join(name)).unwrap();
    let lines: Vec<Vec<String>> = text.lines().map(|line| line.split(',').map(String::from).collect()).collect();
    let speed = lines[0].iter().position(|name| name == "events_per_s").expect("a column");
    let without = |mut line: Vec<String>| {
        line.remove(speed);
        line
    };
    lines.into_iter().map(without).collect()
}

#[test]
fn every_point_runs_once_and_says_what_the_model_says() {
    let dir = tempfile::tempdir().unwrap();
    assert!(said(&sweep(dir.path(), FILE, &[])).starts_with("6 points: 6 run, 0 were there"));
    let lines = fs::read_to_string(dir.path().join("out/points.jsonl")).unwrap();
    let lines: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 6);
    let line = lines.iter().find(|line| line["args"]["granularity-us"] == "250.5").expect("a point");
    let wait = line["args"]["wait"].as_str().unwrap();
    let args =
        ["sim", "bsp", "--nodes=4", "--iterations=20", "--runs=2", "--granularity-us=250.5", "--json", "--wait", wait];
    let alone: Value = serde_json::from_slice(&scx_cosched(&args).stdout).unwrap();
    assert_eq!(line["result"]["slowdown"], alone["slowdown"]);
    assert_eq!(line["result"]["breakdown"], alone["breakdown"]);

    let csv = csv(dir.path(), "points.csv");
    assert_eq!(csv.len(), 7);
    assert_eq!(csv[0][..5], ["granularity-us", "iterations", "nodes", "runs", "wait"]);
    assert!(csv[0].contains(&"breakdown.compute".to_string()) && csv[0].contains(&"ci90".to_string()), "{:?}", csv[0]);
    // In the order of the grid, the last flag by name fastest.
    assert_eq!((csv[1][0].as_str(), csv[1][4].as_str()), ("100", "immediate"));
    assert_eq!((csv[2][0].as_str(), csv[2][4].as_str()), ("100", "adaptive-global"));
}

#[test]
fn what_was_killed_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    sweep(dir.path(), FILE, &[]);
    let whole = csv(dir.path(), "points.csv");
    let path = dir.path().join("out/points.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    // Four lines are whole, and of the fifth there is half.
    let kept: Vec<&str> = text.lines().take(4).collect();
    fs::write(&path, format!("{}\n{}", kept.join("\n"), &text.lines().nth(4).unwrap()[..40])).unwrap();
    fs::remove_file(dir.path().join("out/points.csv")).unwrap();

    assert!(said(&sweep(dir.path(), FILE, &[])).starts_with("6 points: 2 run, 4 were there"));
    let again = fs::read_to_string(&path).unwrap();
    assert_eq!(again.lines().take(4).collect::<Vec<_>>(), kept);
    assert_eq!((again.lines().count(), csv(dir.path(), "points.csv")), (6, whole));
    assert!(said(&sweep(dir.path(), FILE, &[])).starts_with("6 points: 0 run, 6 were there"));
    // A point with another value is another point.
    let more = FILE.replace("250.5", "300");
    assert!(said(&sweep(dir.path(), &more, &[])).starts_with("6 points: 2 run, 4 were there"));
}

#[test]
fn shards_are_all_points_and_none_twice() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let shards = ["0/4", "1/4", "2/4", "3/4"].map(|shard| said(&sweep(dir.path(), FILE, &["--shard", shard])));
    let sizes = shards.map(|said| said.chars().next().unwrap());
    assert_eq!(sizes, ['2', '2', '1', '1']);
    assert!(said(&sweep(dir.path(), FILE, &[])).starts_with("6 points: 0 run, 6 were there"));
    sweep(other.path(), FILE, &[]);
    assert_eq!(csv(dir.path(), "points.csv"), csv(other.path(), "points.csv"));
    assert_eq!(csv(dir.path(), "points-1-of-4.csv").len(), 3);
}

#[test]
fn the_other_models_sweep_too() {
    let dir = tempfile::tempdir().unwrap();
    let continuous =
        "model = 'continuous'\n[fixed]\nnodes = 2\niterations = 1\nspread_roots = true\n[grid]\ngap-us = [500, 1000]";
    sweep(dir.path(), continuous, &[]);
    let markov = "model = 'markov'\n[grid]\nnodes = [2, 4096]";
    sweep(dir.path(), markov, &[]);
    let dynamic = "model = 'dynamic'\n[fixed]\nnodes = 4\ncycles = 500\n[grid]\nseed = [1, 2]\nh-cycles = [-10, 10]";
    assert!(said(&sweep(dir.path(), dynamic, &[])).starts_with("4 points: 4 run, 0 were there"));
    let lines = fs::read_to_string(dir.path().join("out/points.jsonl")).unwrap();
    assert_eq!(lines.lines().count(), 2 + 2 + 4);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("sweep.toml"), dir.path().join("out"));
    let refused = |file: &str, more: &[&str]| {
        fs::write(&path, file).unwrap();
        let args = ["sim", "sweep", path.to_str().unwrap(), "--out", out.to_str().unwrap()];
        let (message, code) = error_of(&[&args, more].concat());
        assert!(!out.exists() && code == 2, "{file}: {code} {message}");
        message
    };
    for (file, wanted) in [
        ("model = 'ring'", "sweep.toml:1: model: unrecognized subcommand 'ring'"),
        ("[grid]\nnodes = [1]", "missing field `model`"),
        (
            "model = 'bsp'\n[grid]\nnodes = [4, 0]",
            "sweep.toml:3: nodes: invalid value '0' for '--nodes <P>': 0 is out of range",
        ),
        ("model = 'bsp'\n[grid]\n\nspeed = [1]", "sweep.toml:4: speed: unexpected argument '--speed' found"),
        ("model = 'bsp'\n[grid]\nnodes = 4", "invalid type: integer `4`, expected a sequence"),
        ("model = 'bsp'\n[grid]\nnodes = []", "sweep.toml:3: nodes: no value"),
        ("model = 'bsp'\n[fixed]\nnodes = 2\n[grid]\nnodes = [4]", "nodes: it is in [fixed] and in [grid]"),
        ("model = 'bsp'\n[fixed]\ntrace = 'x'", "sweep.toml:3: trace: all points would write the same file"),
        ("model = 'bsp'\n[fixed]\nnodes = [1]", "sweep.toml:3: nodes: it takes a number, a text, true or false"),
        ("model = 'bsp'\nspeed = 3", "unknown field `speed`"),
        ("model = 'bsp", "sweep.toml"),
    ] {
        let message = refused(file, &[]);
        assert!(message.contains(wanted), "{file}: {message}");
    }
    for shard in ["4/4", "1", "-1/4", "a/b", "0/0", "0/100001"] {
        let message = refused("model = 'bsp'", &["--shard", shard]);
        assert!(message.contains("it takes I/N"), "{shard}: {message}");
    }
    let (message, code) = error_of(&["sim", "sweep", "/no/such/file.toml", "--out", out.to_str().unwrap()]);
    assert!(code == 1 && message.contains("/no/such/file.toml: it cannot be read"), "{message}");
}

#[test]
fn flags_that_do_not_go_together_are_said_before_anything_runs() {
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("sweep.toml"), dir.path().join("out"));
    fs::write(&path, "model = 'bsp'\n[fixed]\nspin-us = 5\n[grid]\nwait = ['fixed', 'oracle']").unwrap();
    let (message, code) = error_of(&["sim", "sweep", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(
        code == 2 && message.contains("--spin-us: it has no effect with wait 'oracle'") && !out.exists(),
        "{message}"
    );
}

#[test]
fn a_line_that_is_no_result_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    fs::create_dir(&out).unwrap();
    fs::write(out.join("points-0-of-2.jsonl"), "{}\n").unwrap();
    let path = dir.path().join("sweep.toml");
    fs::write(&path, FILE).unwrap();
    let (message, code) = error_of(&["sim", "sweep", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    assert!(code == 1 && message.contains("points-0-of-2.jsonl:1: it is no result of a sweep"), "{message}");
}
