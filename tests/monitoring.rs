// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the rules for Prometheus do what their tests say, and name only metrics that the program has; so does the
//! dashboard for Grafana, whose panels do not overlap and are all in its picture.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::snapshot;
use cosched_rules::presets;
use roxmltree::Document;
use scx_cosched::metrics;
use serde_json::Value;

const RULES: &str = "packaging/prometheus/scx_cosched.rules.yml";
const TESTS: &str = "packaging/prometheus/scx_cosched.test.yml";
const DASHBOARD: &str = "packaging/grafana/scx_cosched.json";

/// The names of all samples that are served, with the names of their labels.
fn served() -> BTreeMap<String, BTreeSet<String>> {
    let text = metrics::prometheus_text(&snapshot(&presets::find("dcs").unwrap().policy));
    let mut served: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, labels) = line.split_once('{').unwrap_or((line.split(' ').next().unwrap(), ""));
        let labels = labels.split(',').filter_map(|label| label.split_once("=\"")).map(|(label, _)| label.to_string());
        served.entry(name.to_string()).or_default().extend(labels);
    }
    served
}

/// The names of metrics in an expression: those that start as ours do. Names of recorded series have a colon.
fn named(expression: &str) -> BTreeSet<String> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let words = expression.split(|c: char| !is_part(c));
    let ours = |word: &&str| word.starts_with("scx_cosched_") || word.starts_with("process_");
    words.filter(ours).map(String::from).collect()
}

fn promtool(args: &[&str]) {
    let found = Command::new("tests/vm/promtool").output().unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let promtool = PathBuf::from(String::from_utf8(found.stdout).unwrap().trim_end());
    let output = Command::new(promtool).args(args).output().unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(output.status.success() && said.contains("SUCCESS"), "{said}");
}

#[test]
fn rules_raise_what_they_ought_to_and_nothing_else() {
    promtool(&["check", "rules", RULES]);
    promtool(&["test", "rules", TESTS]);
}

#[test]
fn every_alert_and_every_recorded_series_is_tested() {
    let (rules, tests) = (fs::read_to_string(RULES).unwrap(), fs::read_to_string(TESTS).unwrap());
    let names = |key: &str| -> Vec<String> {
        rules.lines().filter_map(|line| Some(line.split_once(key)?.1.trim().to_string())).collect()
    };
    let (alerts, records) = (names("- alert: "), names("- record: "));
    assert!(alerts.len() >= 6 && records.len() >= 4, "{alerts:?} {records:?}");
    for alert in alerts {
        // In both: once where it is not raised, and once where it is.
        assert_eq!(tests.matches(&format!("alertname: {alert}")).count(), 2, "{alert}");
    }
    for record in records {
        assert!(tests.contains(&format!("expr: {record}\n")), "{record}");
    }
}

#[test]
fn rules_name_metrics_that_are_served() {
    let served = served();
    let names = named(&fs::read_to_string(RULES).unwrap().replace("scx_cosched_alerts", ""));
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        assert!(served.contains_key(&name), "{name} is not served");
    }
}

#[test]
fn the_dashboard_names_metrics_and_labels_that_are_served() {
    let (served, dashboard) = (served(), dashboard());
    let mut seen = 0;
    for panel in dashboard["panels"].as_array().unwrap().iter().filter(|panel| panel["type"] != "row") {
        let title = panel["title"].as_str().unwrap();
        assert!(!panel["description"].as_str().unwrap().is_empty(), "{title}");
        for target in panel["targets"].as_array().unwrap() {
            let (query, legend) = (target["expr"].as_str().unwrap(), target["legendFormat"].as_str().unwrap());
            let names = named(query);
            assert!(!names.is_empty(), "{title}: {query}");
            let mut labels = BTreeSet::from(["job".to_string(), "instance".to_string()]);
            for name in &names {
                labels.extend(served.get(name).unwrap_or_else(|| panic!("{title}: {name} is not served")).clone());
            }
            for label in legend.split("{{").skip(1).map(|rest| rest.split("}}").next().unwrap()) {
                assert!(labels.contains(label), "{title}: {query} has no label {label}");
            }
            seen += 1;
        }
    }
    assert!(seen >= 20, "{seen} queries");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let asked: BTreeSet<String> =
        variables.iter().filter_map(|variable| variable["query"]["query"].as_str()).flat_map(named).collect();
    assert!(!asked.is_empty() && asked.iter().all(|name| served.contains_key(name)), "{asked:?}");
}

#[test]
fn panels_have_places_of_their_own() {
    let dashboard = dashboard();
    let (mut taken, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for panel in dashboard["panels"].as_array().unwrap() {
        let place = |key: &str| panel["gridPos"][key].as_u64().unwrap();
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        assert!(place("x") + place("w") <= 24, "{panel}");
        for (x, y) in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            assert!(taken.insert((place("x") + x, place("y") + y)), "{panel} overlaps another");
        }
    }
}

#[test]
fn the_picture_shows_every_panel_and_is_small() {
    let picture = fs::read_to_string("docs/dashboard.svg").unwrap();
    let document = Document::parse(&picture).unwrap();
    let texts = document.descendants().filter(|node| node.has_tag_name(("http://www.w3.org/2000/svg", "text")));
    let words: BTreeSet<&str> = texts.filter_map(|node| Some(node.text()?.trim().trim_start_matches("▾ "))).collect();
    for panel in dashboard()["panels"].as_array().unwrap() {
        let title = panel["title"].as_str().unwrap();
        assert!(words.contains(title), "'{title}' is not in the picture: run tests/vm/picture-dashboard");
    }
    assert!(picture.len() < 200_000, "{} bytes", picture.len());
}

fn dashboard() -> Value {
    serde_json::from_str(&fs::read_to_string(DASHBOARD).unwrap()).unwrap()
}
