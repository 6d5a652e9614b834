// SPDX-License-Identifier: GPL-2.0-only
//! Figures 3 to 5 of Zhang 2000: response times by load, workload and skew. Their curves and bars are not in the text;
//! what it says of them is.

use std::cmp::Ordering;

use super::figure::{Claim, Figure, Point, Series};
use super::zhang_cells::{
    Cell, LOAD, Of, RESPONSE, Ran, STRATEGIES, UTILIZATION, made, means, ratio, ratios, row, run,
};
use super::{How, axis};
use crate::stats::Estimate;

/// What jobs ask for, point by point.
const LOADS: [f64; 7] = [0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 1.2];
/// The workloads of Figure 4, in its order.
const WORKLOADS: [u8; 4] = [4, 5, 2, 3];

const EXECUTION: Of = |it| it.execution_s;

fn figure(name: &str, title: &str, how: &How) -> Figure {
    Figure {
        name: name.into(),
        title: title.into(),
        x: axis("", false),
        y: axis("response, s", true),
        series: vec![],
        bars: vec![],
        claims: vec![],
        near: None,
        made: made(how),
    }
}

/// The mixed workload, by utilization.
pub fn figure_3(how: &How) -> Figure {
    let cells = STRATEGIES.iter().flat_map(|(_, preset)| LOADS.map(|load| Cell { load, ..Cell::new(preset, 7) }));
    let ran = run("zhang-fig3", &cells.collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-fig3", "response by utilization, WL7", how);
    figure.x = axis("utilization: computing, and messages as long as they take alone", false);
    let mut most: Vec<(&str, Vec<f64>)> = Vec::new();
    for ((name, _), ran) in STRATEGIES.iter().zip(ran.chunks(LOADS.len())) {
        let point = |it: &Ran| Point::new(it.estimate(UTILIZATION).mean, it.estimate(RESPONSE));
        let points: Vec<Point> = ran.iter().map(point).collect();
        let largest = ran.iter().max_by(|a, b| by_mean(&a.estimate(UTILIZATION), &b.estimate(UTILIZATION)));
        most.push((*name, largest.map_or(vec![], |it| it.each(UTILIZATION))));
        figure.series.push(Series { panel: String::new(), name: (*name).into(), points });
    }
    let each = |wanted: &str| &most.iter().find(|(name, _)| *name == wanted).expect("it is a strategy").1;
    let most = |name: &str| Estimate::of(each(name));
    figure.claims = vec![Claim::about("most utilization, GS: \"only as high as 57%\" (4.1)", 0.57, most("GS"))];
    for name in ["PB", "SB", "PB-SB"] {
        let what = format!("most utilization, {name}: \"as high as 77% before saturation\"");
        figure.claims.push(Claim::about(what, 0.77, most(name)).between(0.7, 0.8));
    }
    for name in ["Local", "SY", "DCS", "DCS-SY"] {
        let what = format!("most utilization, {name}: saturates \"even before ... 50%\"");
        figure.claims.push(Claim::at_most(what, 0.5, most(name)).strictly());
    }
    for name in ["DCS-SB", "PB-SY", "PB", "SB", "PB-SB"] {
        let what = format!("most utilization, {name}, over that of GS: \"significantly better\"");
        figure.claims.push(Claim::at_least(what, 1.0, ratio(each(name), each("GS"))).strictly());
    }
    figure
}

fn by_mean(a: &Estimate, b: &Estimate) -> Ordering {
    a.mean.total_cmp(&b.mean)
}

/// The response times of all strategies, run by run.
struct Bars<'a>(&'a [Ran]);

impl Bars<'_> {
    fn at(&self, wanted: &str) -> &Ran {
        let place = STRATEGIES.iter().position(|(name, _)| *name == wanted).expect("it is a strategy");
        &self.0[place]
    }

    fn over(&self, name: &str, others: &[&str]) -> impl Iterator<Item = Estimate> {
        let each = |name: &str| self.at(name).each(RESPONSE);
        others.iter().map(move |other| ratio(&each(name), &each(other)))
    }

    /// Over that of the one of `others` that has the largest: all have less.
    fn over_all(&self, name: &str, others: &[&str]) -> Estimate {
        self.over(name, others).min_by(by_mean).expect("there is one")
    }

    /// Over that of the one of `others` that has the least.
    fn over_least(&self, name: &str, others: &[&str]) -> Estimate {
        self.over(name, others).max_by(by_mean).expect("there is one")
    }

    /// The largest over the least.
    fn spread(&self, names: &[&str]) -> Estimate {
        names.iter().map(|name| self.over_least(name, names)).max_by(by_mean).expect("there is one")
    }
}

const BEST: [&str; 5] = ["SB", "DCS-SB", "PB", "PB-SB", "PB-SY"];

/// Four workloads.
pub fn figure_4(how: &How) -> Figure {
    let cells = WORKLOADS.iter().flat_map(|&workload| STRATEGIES.map(|(_, preset)| Cell::new(preset, workload)));
    let ran = run("zhang-fig4", &cells.collect::<Vec<_>>(), how);
    let mut figure = figure("zhang-fig4", "response by workload and strategy, s", how);
    for (workload, ran) in WORKLOADS.iter().zip(ran.chunks(STRATEGIES.len())) {
        let cells = |of: Of| {
            STRATEGIES.iter().zip(ran).map(move |((name, _), it)| ((*name).to_string(), it.estimate(of), None))
        };
        let panel = format!("WL{workload}");
        figure.series.push(row(&panel, "response", cells(RESPONSE)));
        figure.series.push(row(&panel, "execution", cells(EXECUTION)));
    }
    let bars = |workload: u8| {
        let place = WORKLOADS.iter().position(|&it| it == workload).expect("it is among them");
        Bars(&ran[place * STRATEGIES.len()..][..STRATEGIES.len()])
    };
    let (computing, communicating, reading, mixed) = (bars(4), bars(5), bars(2), bars(3));
    let over = |bars: &Bars<'_>, name: &str, others: &[&str]| bars.over_all(name, others);
    let is_more = |what: &str, bound: f64, ours: Estimate| Claim::at_least(what, bound, ours).strictly();
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
            "WL5, PB over the least of GS, SB, PB-SB, PB-SY: \"the best performance\"",
            1.0,
            communicating.over_least("PB", &["GS", "SB", "PB-SB", "PB-SY"]),
        )
        .strictly(),
        Claim::about(
            "WL2, the largest over the least of those five: \"not a significant difference\"",
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
        let response = |((name, _), it): (&(&str, &str), &Ran)| ((*name).to_string(), it.estimate(RESPONSE), None);
        let execution = |((name, _), it): (&(&str, &str), &Ran)| ((*name).to_string(), it.estimate(EXECUTION), None);
        let panel = format!("s = {:.0}%", skew * 100.0);
        figure.series.push(row(&panel, "response", STRATEGIES.iter().zip(ran).map(response)));
        figure.series.push(row(&panel, "execution", STRATEGIES.iter().zip(ran).map(execution)));
    }
    let grows = |name: &str| -> Vec<f64> {
        let execution = |ran: &[Ran]| Bars(ran).at(name).each(EXECUTION);
        ratios(&execution(high), &execution(low))
    };
    let gang = grows("GS");
    let goes_up = "execution with 150% over that with 20%, GS: \"goes up\" (4.4)";
    figure.claims = vec![Claim::at_least(goes_up, 1.0, Estimate::of(&gang)).strictly()];
    for name in BEST {
        let what = format!("the same, {name}, over that of GS: \"better able to hide\" it");
        figure.claims.push(Claim::at_most(what, 1.0, ratio(&grows(name), &gang)).strictly());
    }
    let mean = |names: &[&str]| means(&names.iter().map(|name| grows(name)).collect::<Vec<_>>());
    let who = "the same, SB, DCS-SB, PB-SB over Local, DCS, PB: \"better able\"";
    let blocks = ratio(&mean(&["SB", "DCS-SB", "PB-SB"]), &mean(&["Local", "DCS", "PB"]));
    figure.claims.push(Claim::at_most(who, 1.0, blocks).strictly());
    figure.made += &format!(", which ask for {LOAD} of the nodes");
    figure
}
