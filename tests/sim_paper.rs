// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `sim paper` writes what it says it writes, the papers' numbers beside ours, the same each time; and its page
//! has every figure that is there.

use std::fs;
use std::path::Path;

use common::{error_of, scx_cosched};
use cosched_sim::paper::figure::{Axis, Claim, Figure, Point, Series};
use serde_json::Value;

mod common;

fn paper(dir: &Path, args: &[&str]) -> String {
    let output = scx_cosched(&[&["sim", "paper", "--out", dir.to_str().unwrap()], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn read(dir: &Path, name: &str) -> String {
    fs::read_to_string(dir.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Width and height of a PNG, which says them in its header.
fn png_size(bytes: &[u8]) -> (u32, u32) {
    assert_eq!(bytes[..8], [0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a]);
    let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}

#[test]
fn the_closed_forms_come_out_as_the_thesis_has_them() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("new/figures");
    let said = paper(&out, &["thesis-3-2", "thesis-3-3"]);
    assert!(said.contains("thesis-3-2: ") && said.contains("\"only about 2% of the time\""), "{said}");
    let figure: Figure = serde_json::from_str(&read(&out, "thesis-3-3.json")).unwrap();
    assert_eq!(figure.series[0].points.len(), 65);
    // 2% and three times as often.
    assert!(figure.claims.iter().all(|claim| claim.error().abs() < 0.2), "{:?}", figure.claims);
    let csv = read(&out, "thesis-3-3.csv");
    assert_eq!(csv.lines().count(), 1 + 65 + figure.claims.len());
    assert!(csv.lines().last().unwrap().starts_with("claim,"), "{csv}");
    let svg = read(&out, "thesis-3-3.svg");
    assert!(svg.starts_with("<svg") && svg.contains("nodes that run job B") && svg.contains("polyline"), "{svg}");
    assert_eq!(png_size(&fs::read(out.join("thesis-3-3.png")).unwrap()), (960, 600));
}

#[test]
fn a_sample_of_the_stored_figures_comes_out_the_same_again() {
    // As `make reproduction` runs them.
    let sample = ["thesis-3-2", "thesis-3-4", "thesis-3-5"];
    let (dir, stored) = (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reproduction"));
    paper(dir.path(), &[&sample[..], &["--runs", "2"]].concat());
    paper(dir.path(), &["dusseau-2", "--runs", "3", "--iterations", "100000"]);
    let files = sample.iter().flat_map(|name| [format!("{name}.json"), format!("{name}.svg")]);
    for name in files.chain(["dusseau-2.json".into(), "dusseau-2-time.svg".into()]) {
        assert!(read(dir.path(), &name) == read(&stored, &name), "{name} is not what is made today");
    }
}

#[test]
fn a_cell_of_each_stored_figure_of_dusseau_comes_out_the_same_by_itself() {
    let figures: [(&str, &[&str]); 7] = [
        ("dusseau-3", &["--wait", "immediate"]),
        ("dusseau-5", &["--wait", "fixed"]),
        ("dusseau-8", &["--wait", "oracle"]),
        ("dusseau-9", &["--wait", "adaptive-local"]),
        ("dusseau-10", &["--wait", "adaptive-global"]),
        ("dusseau-11", &["--ticks", "aligned"]),
        ("dusseau-12", &["--scheduler", "round-robin"]),
    ];
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reproduction");
    for (name, flags) in figures {
        let figure: Figure = serde_json::from_str(&read(&stored, &format!("{name}.json"))).unwrap();
        let series = figure.series.iter().find(|series| series.panel == "NEWS" && series.name == "g 5 ms").unwrap();
        let point = series.points.iter().find(|point| point.x == 1.0).unwrap();
        let iterations = point.iterations.unwrap().to_string();
        let cell = ["sim", "bsp", "--json", "--runs", "3", "--granularity-us", "5000", "--imbalance", "1"];
        let output = scx_cosched(&[&cell[..], &["--iterations", &iterations], flags].concat());
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(found["slowdown"], point.y, "{name}");
    }
}

#[test]
fn a_table_has_the_papers_numbers_in_their_places_and_comes_out_the_same_again() {
    let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // No job may have more iterations, so all have five, and the interval has no say.
    let args = ["dusseau-4", "--runs", "2", "--iterations", "5"];
    paper(first.path(), &args);
    paper(second.path(), &args);
    for name in ["dusseau-4.csv", "dusseau-4.json", "dusseau-4.svg", "dusseau-4.png"] {
        let bytes = |dir: &Path| fs::read(dir.join(name)).unwrap();
        assert_eq!(bytes(first.path()), bytes(second.path()), "{name}");
    }
    let figure: Figure = serde_json::from_str(&read(first.path(), "dusseau-4.json")).unwrap();
    assert_eq!((figure.series.len(), figure.errors().len()), (12, 72));
    assert!(figure.series.iter().flat_map(|series| &series.points).all(|point| point.iterations == Some(5)));
    // The largest of NEWS is that of CS 200, L 10.
    let news =
        figure.series.iter().find(|series| series.panel == "NEWS" && series.name == "CS 200 us, L 10 us").unwrap();
    assert_eq!(news.points[0].paper, Some(13.1));
    let transpose = figure.series.iter().find(|series| series.panel == "TRANSPOSE").unwrap();
    assert_eq!(transpose.points[0].paper, Some(0.82));
    assert_eq!(png_size(&fs::read(first.path().join("dusseau-4.png")).unwrap()), (1500, 600));
}

#[test]
fn readings_are_held_against_the_paper_in_the_column_in_which_all_hold() {
    let dir = tempfile::tempdir().unwrap();
    paper(dir.path(), &["dusseau-readings", "--runs", "1", "--iterations", "2"]);
    let figure: Figure = serde_json::from_str(&read(dir.path(), "dusseau-readings.json")).unwrap();
    assert!(figure.series.len() > 8);
    for series in &figure.series {
        let columns: Vec<_> = series.points.iter().map(|point| point.column.as_deref().unwrap()).collect();
        assert_eq!(columns, ["none", "tick", "round-trip", "tick,round-trip"]);
        let papers: Vec<_> = series.points.iter().map(|point| point.paper.is_some()).collect();
        assert_eq!(papers, [false, false, false, true], "{}", series.name);
    }
}

#[test]
fn bars_have_all_parts_of_the_time_and_are_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let (out, page) = (dir.path().join("figures"), dir.path().join("page.md"));
    paper(&out, &["dusseau-2", "dusseau-10", "--runs", "1", "--iterations", "3"]);
    for name in ["dusseau-2", "dusseau-10"] {
        let figure: Figure = serde_json::from_str(&read(&out, &format!("{name}.json"))).unwrap();
        assert_eq!(figure.bars.len(), 3 * 6 * 6, "{name}");
        for bar in &figure.bars {
            let sum: f64 = bar.points.iter().map(|point| point.y).sum();
            assert!((sum - 1.0).abs() < 1e-9, "{name} {}: {bar:?}", bar.panel);
            let [_, communicating, ..] = &bar.points[..] else { panic!("{bar:?}") };
            assert_eq!(communicating.y == 0.0, bar.panel == "BARRIER", "{name}: who reads communicates: {bar:?}");
        }
        assert!(read(&out, &format!("{name}-time.svg")).contains("context-switching"));
        assert_eq!(png_size(&fs::read(out.join(format!("{name}-time.png"))).unwrap()), (1500, 600));
    }
    assert!(!out.join("dusseau-2.svg").exists(), "it has no curves");
    paper(&out, &["--page", page.to_str().unwrap()]);
    let text = read(dir.path(), "page.md");
    for wanted in ["(figures/dusseau-2-time.svg)", "| % of the time | | computing |", "g 500 ms, v 2 g"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(text.contains("Of 108 intervals 0 are within 2%"), "{text}");
    assert!(text.contains("| NEWS, g 100 us, v / g = 0.25 | ") && text.contains(" | 3 |"), "{text}");
}

#[test]
fn the_page_has_every_figure_that_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let (out, page) = (dir.path().join("figures"), dir.path().join("page.md"));
    paper(&out, &["thesis-3-3"]);
    paper(&out, &["dusseau-4", "--runs", "1", "--iterations", "2"]);
    paper(&out, &["--page", page.to_str().unwrap()]);
    let text = read(dir.path(), "page.md");
    for wanted in ["## thesis-3-3", "![", "(figures/dusseau-4.svg)", "| 72 |", "(13.1)", "TRANSPOSE"] {
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
    assert!(!text.contains("## thesis-3-2"), "{text}");
    // What is said of where we disagree.
    assert!(text.contains("How the tables are read") && !text.contains("the finest programs"), "{text}");
    assert!(text.find("## thesis-3-3").unwrap() < text.find("## dusseau-4").unwrap());
}

#[test]
fn errors_and_fields_of_the_csv_are_right() {
    let point =
        |x, y, paper| Point { x, column: Some("a, b".into()), y, ci90: Some(0.5), paper, iterations: Some(500) };
    let axis = |label: &str| Axis { label: label.into(), log: false };
    let points = vec![point(0.0, 1.5, Some(2.0)), point(1.0, 3.0, None)];
    let figure = Figure {
        name: "x".into(),
        title: "y".into(),
        x: axis("x"),
        y: axis("y"),
        series: vec![Series { panel: String::new(), name: "s".into(), points: points.clone() }],
        bars: vec![Series { panel: "p".into(), name: "b".into(), points: points[1..].to_vec() }],
        claims: vec![Claim::at_most("less \"than\" that", 2.0, 3.0)],
        near: None,
        made: String::new(),
    };
    assert_eq!(figure.errors(), [0.25]);
    let wanted = "kind,panel,name,x,column,ours,ci90,paper,sense,error,iterations\npoint,,s,0,\"a, b\",1.5,0.5,2,about,-0.25,500\n\
         point,,s,1,\"a, b\",3,0.5,,,,500\npart,p,b,1,\"a, b\",3,0.5,,,,500\n\
         claim,,\"less \"\"than\"\" that\",,,3,,2,at-most,0.5,\n";
    assert_eq!(figure.csv(), wanted);
    let json: Value = serde_json::to_value(&figure).unwrap();
    assert_eq!(serde_json::from_value::<Figure>(json).unwrap(), figure);
}

#[test]
fn what_makes_no_sense_is_refused_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let refused = |args: &[&str]| {
        let (message, code) = error_of(&[&["sim", "paper", "--out", out.to_str().unwrap()], args].concat());
        assert!(code == 2 && !out.exists(), "{args:?}: {code} {message}");
        message
    };
    assert!(refused(&["thesis-3-3", "dusseau-7"]).contains("unknown figure 'dusseau-7' (known: thesis-3-2, "));
    assert!(refused(&[]).contains("no figure (known: thesis-3-2"));
    assert!(refused(&["thesis-3-3", "--iterations", "0"]).contains("it takes a whole number from 1 to 100000000"));
    assert!(refused(&["thesis-3-3", "--runs", "0"]).contains("--runs"));
    let (message, code) = error_of(&["sim", "paper", "thesis-3-3", "--out", "/proc/no/such"]);
    assert!(code == 1 && message.contains("--out: /proc/no/such: it cannot be made"), "{message}");
    fs::write(dir.path().join("thesis-3-3.json"), "{}").unwrap();
    let args = ["sim", "paper", "--out", dir.path().to_str().unwrap(), "--page", "/no/such/page.md"];
    let (message, code) = error_of(&args);
    assert!(code == 1 && message.contains("thesis-3-3.json: it is no figure (make it again)"), "{message}");
}
