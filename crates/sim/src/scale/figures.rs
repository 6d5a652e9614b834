// SPDX-License-Identifier: GPL-2.0-only
//! The figures: which loads, and what of their runs is shown.

use super::How;
use super::points::{Cell, Ran, load, policy_of, run};
use crate::paper::figure::{Axis, Figure, Point, Series};
use crate::shared::program::Pattern;
use crate::shared::{Faults, Setup};
use crate::stats::Estimate;

const SIZES: [u32; 6] = [2, 16, 128, 1024, 8192, 65_536];
const PATTERNS: [(&str, Pattern); 2] = [("neighbours", Pattern::Ring), ("and meetings of all", Pattern::Meeting)];
/// Of the figures whose x axis is another.
const NODES: u32 = 256;
const TWO_JOBS: (u32, u32) = (2, 0);
/// Two jobs and two competitors on each node.
const CROWDED: (u32, u32) = (2, 2);

const EPOCHS: &str = "dcs-sb+epochs=true";
const LONG: &str = "dcs-sb+epochs=true+slice_us=60000";

fn figure(
    name: &str,
    title: &str,
    x: (&str, bool),
    y: (&str, bool),
    ran: &[Ran],
    of: impl Fn(&Ran) -> Estimate,
) -> Figure {
    let mut series: Vec<Series> = Vec::new();
    for it in ran {
        let Cell { panel, series: curve, x, .. } = &it.cell;
        let point = Point::new(*x, of(it));
        match series.iter_mut().find(|known| known.panel == *panel && known.name == *curve) {
            Some(known) => known.points.push(point),
            None => series.push(Series { panel: (*panel).into(), name: curve.clone(), points: vec![point] }),
        }
    }
    let runs = ran.iter().map(|it| it.outcomes.len()).max().unwrap_or(0);
    let axis = |(label, log): (&str, bool)| Axis { label: label.into(), log };
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis(x),
        y: axis(y),
        series,
        bars: vec![],
        claims: vec![],
        near: None,
        made: format!("{runs} runs of each point, one of those above 2048 nodes"),
    }
}

fn slowdowns(name: &str, title: &str, x: (&str, bool), ran: &[Ran]) -> Figure {
    figure(name, title, x, ("slowdown", true), ran, Ran::slowdown)
}

/// The same load on more and more nodes.
pub fn nodes(how: &How) -> Vec<Figure> {
    let mut cells = Vec::new();
    for (panel, pattern) in PATTERNS {
        for name in ["local", "dcs-sb", EPOCHS, LONG, "gang"] {
            for nodes in SIZES.into_iter().filter(|nodes| *nodes <= how.most_nodes) {
                let setup = load(name, pattern, nodes, CROWDED);
                cells.push(Cell { panel, series: name.into(), x: f64::from(nodes), setup });
            }
        }
    }
    let ran = run("nodes", cells, how);
    let x = ("nodes", true);
    let coscheduled = |ran: &Ran| ran.estimate(|outcome| outcome.mean(|job| job.coscheduled));
    let fairness = |ran: &Ran| ran.estimate(|outcome| outcome.mean(|job| job.fairness));
    vec![
        slowdowns("scale-slowdown", "slowdown of two jobs beside two competitors", x, &ran),
        figure(
            "scale-coscheduled",
            "messages that find their receiver running",
            x,
            ("degree of coscheduling", false),
            &ran,
            coscheduled,
        ),
        figure("scale-fairness", "F of the jobs, 1 being fair", x, ("F", false), &ran, fairness),
    ]
}

/// More and more jobs on each node.
pub fn jobs(how: &How) -> Vec<Figure> {
    let mut cells = Vec::new();
    for (panel, pattern) in PATTERNS {
        for name in ["local", "dcs-sb", EPOCHS, LONG, "gang"] {
            for jobs in [1, 2, 3, 4, 6, 8] {
                let setup = load(name, pattern, NODES.min(how.most_nodes), (jobs, 1));
                cells.push(Cell { panel, series: name.into(), x: f64::from(jobs), setup });
            }
        }
    }
    vec![slowdowns(
        "scale-jobs",
        "several jobs and a competitor on 256 nodes",
        ("jobs", false),
        &run("jobs", cells, how),
    )]
}

/// More and more messages lost.
pub fn loss(how: &How) -> Vec<Figure> {
    let mut cells = Vec::new();
    for (panel, tasks) in [("a job alone", (1, 0)), ("two jobs, two competitors", CROWDED)] {
        for (pattern_name, pattern) in PATTERNS {
            for (resend_ms, resend_ns) in [(200, 200_000_000), (1, 1_000_000)] {
                for per_million in [0.1, 1.0, 10.0, 100.0, 1000.0] {
                    let faults = Faults { loss: per_million / 1e6, resend_ns, skew_ns: 0 };
                    let setup = Setup { faults, ..load("dcs-sb", pattern, NODES.min(how.most_nodes), tasks) };
                    let series = format!("{pattern_name}, sent again after {resend_ms} ms");
                    cells.push(Cell { panel, series, x: per_million, setup });
                }
            }
        }
    }
    vec![slowdowns(
        "scale-loss",
        "lost messages, 256 nodes, dcs-sb",
        ("lost, of a million", true),
        &run("loss", cells, how),
    )]
}

/// Slower and slower networks.
pub fn latency(how: &How) -> Vec<Figure> {
    let mut cells = Vec::new();
    for (panel, pattern) in PATTERNS {
        for name in ["local", "dcs-sb", EPOCHS, "gang"] {
            for latency_us in [2u32, 20, 200, 1000, 5000] {
                let mut setup = load(name, pattern, NODES.min(how.most_nodes), CROWDED);
                setup.costs.latency_ns = u64::from(latency_us) * 1000;
                setup.policy.latency_ns = setup.costs.latency_ns;
                cells.push(Cell { panel, series: name.into(), x: f64::from(latency_us), setup });
            }
        }
    }
    vec![slowdowns(
        "scale-latency",
        "slow networks, two jobs, two competitors, 256 nodes",
        ("L, us", true),
        &run("latency", cells, how),
    )]
}

/// One node of all has another policy.
pub fn mistuned(how: &How) -> Vec<Figure> {
    let first = [
        ("all alike", None),
        ("local", Some("local")),
        ("slices of 100 ms", Some("dcs-sb+slice_us=100000")),
        ("no gate", Some("dcs-sb+gate=always")),
        ("F at most 0.5", Some("dcs-sb+target_fairness=0.5")),
    ];
    let mut cells = Vec::new();
    for (panel, pattern) in PATTERNS {
        for (series, name) in first {
            for nodes in [2, 16, 128, 1024, 8192].into_iter().filter(|nodes| *nodes <= how.most_nodes) {
                let first = name.map(|name| policy_of(name, CROWDED));
                let setup = Setup { first, ..load("dcs-sb", pattern, nodes, CROWDED) };
                cells.push(Cell { panel, series: series.into(), x: f64::from(nodes), setup });
            }
        }
    }
    vec![slowdowns(
        "scale-mistuned",
        "one node of all with another policy than dcs-sb, two jobs, two competitors",
        ("nodes", true),
        &run("mistuned", cells, how),
    )]
}

/// Turns that all nodes draw alike, beside the others, where all of a job meet.
pub fn beat(how: &How) -> Vec<Figure> {
    let mut cells = Vec::new();
    for (panel, competitors_more) in [("two competitors", 0), ("one to three", 2)] {
        for name in ["dcs-sb", "gang", "beat", "beat+quantum_ms=5"] {
            for nodes in [2, 16, 128, 1024, 4096].into_iter().filter(|nodes| *nodes <= how.most_nodes) {
                let fewer = competitors_more / 2;
                let mut setup = load(name, Pattern::Meeting, nodes, (2, 2 - fewer));
                setup.uneven.competitors_more = competitors_more;
                setup.policy = policy_of(name, (2, 2 + fewer));
                cells.push(Cell { panel, series: name.into(), x: f64::from(nodes), setup });
            }
        }
    }
    let ran = run("beat", cells, how);
    let longest = |ran: &Ran| ran.estimate(|outcome| outcome.mean(|job| job.longest_ms));
    vec![
        slowdowns("beat-slowdown", "slowdown of two jobs that meet every 5 ms", ("nodes", true), &ran),
        figure("beat-longest", "longest iteration", ("nodes", true), ("ms", true), &ran, longest),
    ]
}

/// A gang by clocks that differ.
pub fn skew(how: &How) -> Vec<Figure> {
    let mut cells = Vec::new();
    for (panel, pattern) in PATTERNS {
        for nodes in [2, 256, 4096].into_iter().filter(|nodes| *nodes <= how.most_nodes) {
            for skew_ms in [0.0, 1.0, 5.0, 10.0, 20.0, 50.0, 100.0] {
                let mut setup = load("gang", pattern, nodes, TWO_JOBS);
                setup.faults.skew_ns = (skew_ms * 1e6) as u64;
                cells.push(Cell { panel, series: format!("{nodes} nodes"), x: skew_ms, setup });
            }
        }
    }
    vec![slowdowns(
        "scale-skew",
        "gang in turns of 100 ms, two jobs",
        ("clocks differ by up to, ms", false),
        &run("skew", cells, how),
    )]
}
