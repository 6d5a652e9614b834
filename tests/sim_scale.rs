// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `sim scale` writes each figure in all its forms, the same each time, and a page of what is there.

use std::fs;
use std::path::Path;

use common::scx_cosched;
use cosched_sim::paper::figure::Figure;

mod common;

fn scale(dir: &Path, args: &[&str]) -> String {
    let args = [&["sim", "scale", "--runs", "1", "--most-nodes", "2", "--out", dir.to_str().unwrap()], args].concat();
    let output = scx_cosched(&args);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn figures_are_written_and_shown_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let (out, page) = (dir.path().join("docs/scale"), dir.path().join("docs/scale.md"));
    let said = scale(&out, &["nodes", "skew"]);
    assert!(said.contains("scale-slowdown: ") && said.contains("scale-skew: "), "{said}");
    for name in ["scale-slowdown", "scale-coscheduled", "scale-fairness", "scale-skew"] {
        for ending in ["csv", "json", "svg", "png"] {
            let file = out.join(format!("{name}.{ending}"));
            assert!(fs::metadata(&file).is_ok_and(|file| file.len() > 100), "{}", file.display());
        }
    }
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let figure: Figure = serde_json::from_str(&read("scale-slowdown.json")).unwrap();
    let of = |panel: &str, name: &str| {
        let series = figure.series.iter().find(|series| series.panel == panel && series.name == name);
        series.unwrap_or_else(|| panic!("no {name} in {panel}")).points[0].y
    };
    // Two of a gang are together; two that know nothing of each other meet by chance.
    assert!((0.9..1.1).contains(&of("neighbours", "gang")), "{figure:?}");
    assert!(of("neighbours", "local") > 1.2, "{figure:?}");

    let before = read("scale-skew.csv");
    scale(&out, &["skew", "--page", page.to_str().unwrap()]);
    assert_eq!(read("scale-skew.csv"), before, "one seed makes one figure");
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("## scale-skew\n") && page.contains("](scale/scale-skew.svg)"), "{page}");
    assert!(!page.contains("## scale-loss"), "it is not there: {page}");
}
