// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `bench report` makes one page of what the benches have written, that of today and what is stored. The page is
//! well-formed, needs nothing but itself, has every figure of the files in a table and a bar for each, and a browser
//! shows it. The last takes Chromium: `make report-test`.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::docs::read;
use common::scx_cosched;
use roxmltree::{Document, Node, ParsingOptions};
use serde_json::{Value, json};
use tempfile::TempDir;

/// What `bench demo` writes: a pair beside four, by run, with the lengths of round trips.
fn of_demo() -> Value {
    let run = |rate: f64| json!({ "round_trips_per_s": rate, "round_trips_by_log2_us": [0, 0, 5, 900, 80, 0, 1] });
    let row = |scheduler: &str, rates: [f64; 3], doubt: Option<&str>| {
        json!({
            "receiver": "spin", "scheduler": scheduler, "gate": "auto", "competitors": 4,
            "round_trips_per_s":
                { "median": rates[1], "min": rates[0], "max": rates[2], "q1": rates[0], "q3": rates[2] },
            "ratio_to_eevdf": rates[1] / 400.0, "cpu_share": 0.2, "fairness": 1.01, "fairness_by_node": [1.0, 1.02],
            "efficiency": 0.83, "not_measured": doubt, "competitor_fairness_min": 0.98,
            "p50_us": 61.0, "p99_us": 900.0, "max_us": 12_345.0, "runs": rates.map(run),
        })
    };
    json!({
        "kernel": "6.18.0", "version": "0.1.0", "commands": ["scx_cosched-bench demo --receivers spin"],
        "testbed": "one", "nodes": 2, "time": "virtual", "cpu": "a <CPU> & \"more\"", "clocksource": null,
        "costs": { "latency_us": 5.5, "overhead_us": 1.0, "switch_us": 2.0 }, "seconds": 1.5, "repeats": 3,
        "results": [
            row("eevdf", [390.0, 400.0, 410.0], None),
            row("dcs<&>", [1500.0, 1607.0, 1700.0], Some("it was <odd> & more")),
        ],
    })
}

/// What `tests/vm/bench-mpi` writes.
fn of_mpi() -> Value {
    let figures = |rate: f64| {
        json!({ "steps_per_s": rate, "quartiles": [rate - 1.0, rate + 1.0], "least": rate - 2.0, "greatest": rate + 2.0,
                "fairness": [0.97, 1.03], "runs": 5, "times_eevdf": rate / 50.0, "of_a_share": 0.9, "efficiency": 0.7 })
    };
    let schedulers = json!({ "eevdf": figures(50.0), "dcs-sb": figures(77.0) });
    json!({ "testbed": "two", "time": "real", "jobs": 2, "competitors": 3, "seconds": 5,
            "rows": [{ "by": "openmpi", "program": "stencil", "schedulers": schedulers }] })
}

/// The page of all there is, with the directory that has it.
fn made() -> (TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    for (name, summary) in [("demo", of_demo()), ("mpi", of_mpi())] {
        fs::create_dir(dir.path().join(name)).unwrap();
        fs::write(dir.path().join(name).join("summary.json"), summary.to_string()).unwrap();
    }
    let page = dir.path().join("report.html");
    let of = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let output = scx_cosched(&[
        "bench",
        "report",
        &of("demo"),
        &of("mpi"),
        "docs/measurements/every-policy.json",
        "--out",
        page.to_str().unwrap(),
    ]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stdout).contains(&format!("the report is in {}", page.display())));
    (dir, read(page))
}

fn parsed(page: &str) -> Document<'_> {
    Document::parse_with_options(page, ParsingOptions { allow_dtd: true, ..ParsingOptions::default() }).unwrap()
}

fn named<'a>(document: &'a Document<'a>, name: &'a str) -> impl Iterator<Item = Node<'a, 'a>> {
    document.descendants().filter(move |node| node.tag_name().name() == name)
}

fn words(node: Node) -> String {
    node.descendants().filter_map(|node| node.text().filter(|_| node.is_text())).collect::<Vec<_>>().join(" ")
}

#[test]
fn it_is_well_formed_and_has_every_figure() {
    let (_dir, page) = made();
    let document = parsed(&page);
    let stored: Value = serde_json::from_str(&read("docs/measurements/every-policy.json")).unwrap();
    let stored = stored["results"].as_array().unwrap();
    let rows: Vec<String> = named(&document, "tr").map(words).collect();
    let whole = |value: &Value| format!("{:.0}", value.as_f64().unwrap());
    for row in stored {
        let (scheduler, rate) = (row["scheduler"].as_str().unwrap(), &row["round_trips_per_s"]);
        // Rates of the store are above 100, all but a few.
        let is_of = |text: &&String| text.starts_with(scheduler) && text.contains(&whole(&rate["median"]));
        assert!(rate["median"].as_f64().unwrap() < 100.0 || rows.iter().any(|text| is_of(&text)), "{row}");
    }
    let of_tables = rows.iter().filter(|row| row.contains(" to ")).count();
    assert_eq!(of_tables, stored.len() + 4, "a row for each");
    for part in [
        "kernel 6.18.0",
        "scx_cosched-bench demo --receivers spin",
        "latency_us 5.5",
        "dcs<&>",
        "it was <odd> & more",
        "a <CPU> & \"more\"",
        "stencil by openmpi",
        "spin, beside 4",
        "0.97, 1.03",
    ] {
        assert!(
            words(document.root_element()).split_whitespace().collect::<Vec<_>>().join(" ").contains(part),
            "{part}"
        );
    }
}

#[test]
fn each_group_has_a_picture_with_a_bar_for_each_scheduler() {
    let (_dir, page) = made();
    let document = parsed(&page);
    let groups = named(&document, "h3").count();
    let pictures: Vec<Node> = named(&document, "svg").collect();
    assert_eq!(pictures.len(), groups + 1, "and one has histograms");
    let rectangles = |svg: &Node| svg.descendants().filter(|node| node.tag_name().name() == "rect").count();
    let of_demo = &pictures[0];
    assert_eq!((words(*of_demo).contains("dcs<&>"), rectangles(of_demo)), (true, 2));
    let circles = of_demo.descendants().filter(|node| node.tag_name().name() == "circle").count();
    assert_eq!(circles, 6, "a circle for each run");
    // Four lengths of round trips under each of two schedulers.
    assert_eq!(rectangles(&pictures[1]), 8);
    assert!(words(pictures[1]).contains("8 us") && !page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn it_needs_nothing_else() {
    let (_dir, page) = made();
    let document = parsed(&page);
    for name in ["script", "link", "img", "iframe", "object", "image"] {
        assert_eq!(named(&document, name).count(), 0, "{name}");
    }
    for node in document.descendants() {
        for attribute in node.attributes().filter(|attribute| ["href", "src"].contains(&attribute.name())) {
            assert!(attribute.value().starts_with('#'), "{} leads elsewhere", attribute.value());
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
}

fn refused(args: &[&str]) -> String {
    let output = scx_cosched(&[&["bench", "report"], args].concat());
    assert!(!output.status.success() && output.stdout.is_empty());
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    stderr
}

#[test]
fn what_is_no_summary_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let (page, path) = (dir.path().join("page.html"), dir.path().to_str().unwrap());
    let page_text = page.to_str().unwrap();
    assert!(refused(&[path, "--out", page_text]).contains("has no summary.json (a bench writes it: make demo)"));
    let file = dir.path().join("summary.json");
    for (text, wanted) in [
        ("[]", "is no summary of a bench"),
        ("{\"kernel\":\"x\"}", "it has no results"),
        ("{\"results\":[{}]}", "is no summary of a bench: missing field"),
        ("", "is no summary of a bench"),
    ] {
        fs::write(&file, text).unwrap();
        let line = refused(&[path, "--out", page_text]);
        assert!(line.contains(wanted) && line.contains(file.to_str().unwrap()), "{line}");
    }
    assert!(refused(&["/no/such/file.json", "--out", page_text]).contains("cannot read /no/such/file.json"));
    assert!(!page.exists());
    fs::write(&file, of_demo().to_string()).unwrap();
    assert!(refused(&[path, "--out", "/no/such/directory/page.html"]).contains("choose another --out"));
}

/// Chromium draws a window of this size.
const WINDOW: (u32, u32) = (1000, 1400);

fn chromium(page: &Path, args: &[&str]) -> Vec<u8> {
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new("chromium")
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"])
        .arg(format!("--window-size={},{}", WINDOW.0, WINDOW.1))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(args)
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("this test needs Chromium (Debian: apt install chromium)");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[test]
#[ignore = "it takes Chromium, which is no small package: make report-test"]
fn chromium_shows_it() {
    let (dir, page) = made();
    let file = dir.path().join("report.html");
    let shown = String::from_utf8(chromium(&file, &["--dump-dom"])).unwrap();
    let count = |text: &str, mark: &str| text.matches(mark).count();
    for mark in ["<svg", "<table", "<h3", "<rect", "<circle"] {
        assert!(count(&page, mark) > 0);
        assert_eq!(count(&shown, mark), count(&page, mark), "{mark}");
    }
    let picture = dir.path().join("report.png");
    chromium(&file, &[&format!("--screenshot={}", picture.display())]);
    let mut reader = png::Decoder::new(std::io::BufReader::new(fs::File::open(&picture).unwrap())).read_info().unwrap();
    assert_eq!((reader.info().width, reader.info().height), WINDOW);
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let size = info.color_type.samples();
    let of_colour = |[r, g, b]: [u8; 3]| pixels.chunks(size).filter(|pixel| pixel[..3] == [r, g, b]).count();
    // The bars of the kernel's scheduler and of ours, and text.
    assert!(of_colour([230, 159, 0]) > 1000, "no orange bar");
    assert!(of_colour([86, 180, 233]) > 1000, "no blue bar");
    assert!(of_colour([255, 255, 255]) > 100_000 && of_colour([34, 34, 34]) > 100, "no page");
}
