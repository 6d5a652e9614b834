// SPDX-License-Identifier: GPL-2.0-only
//! Figures 3 to 5 of Zhang 2000: response times by load, workload and skew. Their curves and bars are not in the text;
//! what it says of them is.

use super::figure::{Claim, Figure, Point, Series};
use super::zhang_cells::{Cell, LOAD, Ran, STRATEGIES, made, row, run};
use super::{How, axis};

/// What jobs ask for, point by point.
const LOADS: [f64; 7] = [0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.2];
/// The workloads of Figure 4, in its order.
const WORKLOADS: [u8; 4] = [4, 5, 2, 3];

fn figure(name: &str, title: &str, how: &How) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis("", false),
        y: axis("response, s", true),
        series: vec![],
        bars: vec![],
        claims: vec![],
        made: made(how),
    }
}

/// The mixed workload, by utilization.
pub fn figure_3(how: &How) -> Figure {
    let cells = STRATEGIES.iter().flat_map(|(_, preset)| LOADS.map(|load| Cell { load, ..Cell::new(preset, 7) }));
    let ran = run("zhang-fig3", &cells.collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-fig3", "response by utilization, WL7", how);
    figure.x = axis("utilization: computing, and messages as long as they take alone", false);
    let mut most = Vec::new();
    for ((name, _), ran) in STRATEGIES.iter().zip(ran.chunks(LOADS.len())) {
        let point = |it: &Ran| Point::new(it.estimate(|it| it.utilization).mean, it.estimate(|it| it.response_s));
        let points: Vec<Point> = ran.iter().map(point).collect();
        most.push((*name, points.iter().map(|point| point.x).fold(0.0, f64::max)));
        figure.series.push(Series { panel: String::new(), name: (*name).into(), points });
    }
    let most = |wanted: &str| most.iter().find(|(name, _)| *name == wanted).map_or(0.0, |(_, most)| *most);
    figure.claims = vec![Claim::about("the largest utilization, GS: \"only as high as 57%\" (4.1)", 0.57, most("GS"))];
    for name in ["PB", "SB", "PB-SB"] {
        let what = format!("the largest utilization, {name}: \"as high as 77% before saturation\"");
        figure.claims.push(Claim::about(what, 0.77, most(name)));
    }
    for name in ["Local", "SY", "DCS", "DCS-SY"] {
        let what = format!("the largest utilization, {name}: saturates \"even before the utilization reaches 50%\"");
        figure.claims.push(Claim::at_most(what, 0.5, most(name)));
    }
    for name in ["DCS-SB", "PB-SY", "PB", "SB", "PB-SB"] {
        let what = format!("the largest utilization, {name}, over that of GS: \"significantly better\"");
        figure.claims.push(Claim::at_least(what, 1.0, most(name) / most("GS")));
    }
    figure
}

/// The response times of some of the strategies.
struct Bars<'a>(&'a [Ran]);

impl Bars<'_> {
    fn at(&self, wanted: &str) -> &Ran {
        let place = STRATEGIES.iter().position(|(name, _)| *name == wanted).expect("it is a strategy");
        &self.0[place]
    }

    fn response(&self, name: &str) -> f64 {
        self.at(name).response_s()
    }

    fn most(&self, names: &[&str]) -> f64 {
        names.iter().map(|name| self.response(name)).fold(0.0, f64::max)
    }

    fn least(&self, names: &[&str]) -> f64 {
        names.iter().map(|name| self.response(name)).fold(f64::INFINITY, f64::min)
    }

    /// The largest over the least.
    fn spread(&self, names: &[&str]) -> f64 {
        self.most(names) / self.least(names)
    }
}

const BEST: [&str; 5] = ["SB", "DCS-SB", "PB", "PB-SB", "PB-SY"];

/// Four workloads.
pub fn figure_4(how: &How) -> Figure {
    let cells = WORKLOADS.iter().flat_map(|&workload| STRATEGIES.map(|(_, preset)| Cell::new(preset, workload)));
    let ran = run("zhang-fig4", &cells.collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-fig4", "response by workload and strategy, s", how);
    for (workload, ran) in WORKLOADS.iter().zip(ran.chunks(STRATEGIES.len())) {
        let cells = |of: fn(&crate::cluster::Outcome) -> f64| {
            STRATEGIES.iter().zip(ran).map(move |((name, _), it)| ((*name).to_string(), it.estimate(of), None))
        };
        let panel = format!("WL{workload}");
        figure.series.push(row(&panel, "response", cells(|it| it.response_s)));
        figure.series.push(row(&panel, "execution", cells(|it| it.execution_s)));
    }
    let bars = |workload: u8| {
        let place = WORKLOADS.iter().position(|&it| it == workload).expect("it is among them");
        Bars(&ran[place * STRATEGIES.len()..][..STRATEGIES.len()])
    };
    let (computing, communicating, reading, mixed) = (bars(4), bars(5), bars(2), bars(3));
    let over = |bars: &Bars<'_>, name: &str, others: &[&str]| bars.response(name) / bars.most(others);
    let is_more = |what: &str, bound: f64, ours: f64| Claim::at_least(what, bound, ours);
    figure.claims = vec![
        is_more(
            "WL4, Local over all but SY: \"simply not acceptable\" (4.2)",
            1.0,
            over(&computing, "Local", &["DCS", "DCS-SY", "GS", "SB", "PB"]),
        ),
        is_more(
            "WL4, SY over all but Local: \"simply not acceptable\"",
            1.0,
            over(&computing, "SY", &["DCS", "DCS-SY", "GS", "SB", "PB"]),
        ),
        is_more("WL4, DCS over GS: \"higher response times than the rest\"", 1.0, over(&computing, "DCS", &["GS"])),
        is_more("WL4, DCS-SY over GS: the same", 1.0, over(&computing, "DCS-SY", &["GS"])),
        is_more("WL4, GS over the other five: \"the next highest\"", 1.0, over(&computing, "GS", &BEST)),
        Claim::about(
            "WL4, the largest over the least of those: \"not a significant difference\"",
            1.0,
            computing.spread(&BEST),
        ),
        is_more("WL5, DCS over GS: \"much worse\"", 1.0, over(&communicating, "DCS", &["GS"])),
        is_more("WL5, DCS-SY over GS: \"much worse\"", 1.0, over(&communicating, "DCS-SY", &["GS"])),
        Claim::about(
            "WL5, the largest over the least of GS, SB, PB-SB and PB-SY: \"comparable\"",
            1.0,
            communicating.spread(&["GS", "SB", "PB-SB", "PB-SY"]),
        ),
        Claim::at_most(
            "WL5, PB over the least of GS, SB, PB-SB and PB-SY: \"the best performance\"",
            1.0,
            communicating.response("PB") / communicating.least(&["GS", "SB", "PB-SB", "PB-SY"]),
        ),
        Claim::about(
            "WL2, the largest over the least of SB, DCS-SB, PB, PB-SB, PB-SY: \"not a significant difference\"",
            1.0,
            reading.spread(&BEST),
        ),
        is_more("WL2, GS over those: I/O \"keeps the CPU idle\"", 1.0, over(&reading, "GS", &BEST)),
        is_more(
            "WL3, GS over SB, PB, PB-SB and PB-SY: \"not as good as\" they",
            1.0,
            over(&mixed, "GS", &["SB", "PB", "PB-SB", "PB-SY"]),
        ),
    ];
    figure.made += &format!(", which ask for {LOAD} of the nodes");
    figure
}

/// Two skews.
pub fn figure_5(how: &How) -> Figure {
    let skews = [0.2, 1.5];
    let cells = skews.iter().flat_map(|&skew| STRATEGIES.map(|(_, preset)| Cell { skew, ..Cell::new(preset, 4) }));
    let ran = run("zhang-fig5", &cells.collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-fig5", "response by skew and strategy, WL4, s", how);
    let (low, high) = ran.split_at(STRATEGIES.len());
    for (skew, ran) in skews.iter().zip([low, high]) {
        let response =
            |((name, _), it): (&(&str, &str), &Ran)| ((*name).to_string(), it.estimate(|it| it.response_s), None);
        let execution =
            |((name, _), it): (&(&str, &str), &Ran)| ((*name).to_string(), it.estimate(|it| it.execution_s), None);
        let panel = format!("s = {:.0}%", skew * 100.0);
        figure.series.push(row(&panel, "response", STRATEGIES.iter().zip(ran).map(response)));
        figure.series.push(row(&panel, "execution", STRATEGIES.iter().zip(ran).map(execution)));
    }
    let grows = |name: &str| {
        let execution = |ran: &[Ran]| Bars(ran).at(name).estimate(|it| it.execution_s).mean;
        execution(high) / execution(low)
    };
    figure.claims =
        vec![Claim::at_least("execution with 150% over that with 20%, GS: \"goes up\" (4.4)", 1.0, grows("GS"))];
    for name in BEST {
        let what = format!("the same, {name}, over that of GS: \"better able to hide\" it");
        figure.claims.push(Claim::at_most(what, 1.0, grows(name) / grows("GS")));
    }
    let mean = |names: &[&str]| names.iter().map(|name| grows(name)).sum::<f64>() / names.len() as f64;
    figure.claims.push(Claim::at_most(
        "the same, who blocks (SB, DCS-SB, PB-SB) over who spins (Local, DCS, PB): \"better able\"",
        1.0,
        mean(&["SB", "DCS-SB", "PB-SB"]) / mean(&["Local", "DCS", "PB"]),
    ));
    figure.made += &format!(", which ask for {LOAD} of the nodes");
    figure
}
