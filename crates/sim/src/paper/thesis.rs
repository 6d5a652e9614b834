// SPDX-License-Identifier: GPL-2.0-only
//! Figures 3-2 to 3-5 of the thesis: how many nodes run which of two jobs. 64 nodes, 100,000 cycles.

use rayon::prelude::{IntoParallelRefIterator, ParallelIterator};

use super::figure::{Axis, Claim, Figure, Point, Series};
use super::{How, axis};
use crate::dynamic::{self, Occupancy, Setup};
use crate::markov::{self, Rates};
use crate::report::run_seed;
use crate::stats::Estimate;
use cosched_rules::intf;

const NODES: u32 = 64;
const CYCLES: u64 = 100_000;
/// That is near enough to one job on all nodes to count as coscheduled in [`gathered`].
const MOST: usize = 7;

fn states_axis() -> Axis {
    axis("nodes that run job B", false)
}

fn chain(a: Rates, b: Rates) -> Vec<f64> {
    let states = markov::steady_state(NODES, a, b).expect("there are spontaneous switches");
    states.iter().map(|state| state.value()).collect()
}

fn curve(name: String, states: &[f64]) -> Series {
    let point = |(i, &share): (usize, &f64)| Point::new(i as f64, Estimate { mean: share, ci90: None });
    Series { panel: String::new(), name, points: states.iter().enumerate().map(point).collect() }
}

/// Both jobs alike, by messages per spontaneous switch.
pub fn figure_3_2() -> Figure {
    let states_at = |ratio: f64| {
        let rates = Rates { switches: 1.0 / ratio, messages: 1.0 };
        chain(rates, rates)
    };
    let ratios = [1.0, 10.0, 50.0, 100.0, 300.0, 1000.0];
    let series = ratios.iter().map(|&ratio| curve(format!("{ratio} messages per switch"), &states_at(ratio))).collect();
    let ends = |ratio| {
        let states = states_at(ratio);
        states[0] + states[NODES as usize]
    };
    let half = |states: &[f64]| states.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(i, _)| i);
    Figure {
        name: "thesis-3-2".into(),
        title: "steady state under `always`, in closed form".into(),
        x: states_axis(),
        y: axis("probability", true),
        series,
        bars: vec![],
        claims: vec![
            Claim::about(
                "all nodes run one job, at 300 messages per switch: \"several hundred ... about one-half\"",
                0.5,
                ends(300.0),
            ),
            Claim::about("the same at 500", 0.5, ends(500.0)),
            Claim::about(
                "the likeliest number of nodes that run B, at 1 message per switch",
                32.0,
                half(&states_at(1.0)) as f64,
            ),
        ],
        near: None,
        made: "in closed form".into(),
    }
}

/// One sends a little more than the other.
pub fn figure_3_3() -> Figure {
    let rates = |messages| Rates { switches: 0.005, messages };
    let states = chain(rates(0.49), rates(0.5));
    let (a, b) = (states[0], states[NODES as usize]);
    Figure {
        name: "thesis-3-3".into(),
        title: "unfair with messages at 0.49 and 0.5, switches at 0.005".into(),
        x: states_axis(),
        y: axis("probability", false),
        series: vec![curve("closed form".into(), &states)],
        bars: vec![],
        claims: vec![
            Claim::about("all nodes run A: \"only about 2% of the time\"", 0.02, a),
            Claim::about("all nodes run B, times as often: \"about three times\"", 3.0, b / a),
        ],
        near: None,
        made: "in closed form".into(),
    }
}

fn setup(gate: u32, messages_per_slice: f64) -> Setup {
    let switches = 0.375 / messages_per_slice;
    let rates = [Rates { switches, messages: 0.25 }, Rates { switches, messages: 0.5 }];
    let policy = dynamic::policy(gate, -1000.0);
    Setup {
        nodes: NODES,
        cycles: CYCLES,
        warmup: CYCLES / 10,
        rates,
        policy,
        node_numbers: false,
        kernel_cycle_ns: None,
    }
}

struct Slices {
    messages: f64,
    runs: Vec<Occupancy>,
}

impl Slices {
    fn mean(&self, of: impl Fn(&Occupancy) -> f64) -> f64 {
        self.runs.iter().map(of).sum::<f64>() / self.runs.len() as f64
    }

    fn states(&self) -> Vec<f64> {
        (0..=NODES as usize).map(|i| self.mean(|run| run.states[i])).collect()
    }

    /// Whether no state is likelier than that all nodes run one job, on either side.
    fn gathers(&self) -> bool {
        let states = self.states();
        let middle = states[1..states.len() - 1].iter().copied().fold(0.0, f64::max);
        states[0].min(states[states.len() - 1]) > middle
    }

    /// For how much of the time no more than a few nodes run the other job.
    fn gathered(&self) -> f64 {
        let states = self.states();
        states[..=MOST].iter().chain(&states[states.len() - 1 - MOST..]).sum()
    }
}

fn simulate(gate: u32, how: &How) -> Vec<Slices> {
    let messages = [100.0, 150.0, 200.0, 250.0, 300.0, 350.0, 400.0, 600.0, 1000.0];
    let cells: Vec<(f64, u32)> = messages.iter().flat_map(|&m| (0..how.runs).map(move |run| (m, run))).collect();
    let run = |&(messages, run): &(f64, u32)| dynamic::simulate(&setup(gate, messages), run_seed(how.seed, run));
    let runs: Vec<Occupancy> = cells.par_iter().map(run).collect();
    let slices = messages.iter().zip(runs.chunks(how.runs as usize));
    slices.map(|(&messages, runs)| Slices { messages, runs: runs.to_vec() }).collect()
}

fn dynamic_figure(name: &str, title: &str, slices: &[Slices], how: &How) -> Figure {
    let shown = slices.iter().filter(|slice| [100.0, 200.0, 300.0, 400.0, 600.0, 1000.0].contains(&slice.messages));
    let series = |slice: &Slices| {
        let estimate = |i| Estimate::of(&slice.runs.iter().map(|run| run.states[i]).collect::<Vec<_>>());
        let points = (0..=NODES as usize).map(|i| Point::new(i as f64, estimate(i))).collect();
        Series { panel: String::new(), name: format!("{} messages per slice", slice.messages), points }
    };
    let worst = slices
        .iter()
        .map(|slice| slice.mean(|run| run.share_a))
        .fold(0.5, |worst: f64, share: f64| if (share - 0.5).abs() > (worst - 0.5).abs() { share } else { worst });
    Figure {
        name: name.into(),
        title: title.into(),
        x: states_axis(),
        y: axis("share of the time", false),
        series: shown.map(series).collect(),
        bars: vec![],
        claims: vec![Claim::about("job A's share of the CPU time, where it is farthest from fair", 0.5, worst)],
        near: None,
        made: how.made(&format!("{CYCLES} cycles, a tenth of them before anything is counted")),
    }
}

/// The gate `equalizing`, with h = -1000.
pub fn figure_3_4(how: &How) -> Figure {
    let slices = simulate(intf::cosched_gate_COSCHED_GATE_EQUALIZING, how);
    dynamic_figure("thesis-3-4", "messages at 0.25 and 0.5, `equalizing`", &slices, how)
}

/// The gate `epochs`, with the same h.
pub fn figure_3_5(how: &How) -> Figure {
    let slices = simulate(intf::cosched_gate_COSCHED_GATE_EPOCHS, how);
    let equalizing = simulate(intf::cosched_gate_COSCHED_GATE_EQUALIZING, how);
    let mut figure = dynamic_figure("thesis-3-5", "messages at 0.25 and 0.5, `epochs`", &slices, how);
    let threshold = slices.iter().find(|slice| slice.gathers()).map_or(f64::INFINITY, |slice| slice.messages);
    figure.claims.push(Claim::about(
        "messages per slice from which all nodes at one job is the likeliest: \"more than about 300\"",
        300.0,
        threshold,
    ));
    let at_300 = |slices: &[Slices]| slices.iter().find(|slice| slice.messages == 300.0).map_or(0.0, Slices::gathered);
    figure.claims.push(Claim::at_least(
        format!("all but {MOST} of {NODES} nodes at one job, at 300 messages per slice, against `equalizing`"),
        1.0,
        at_300(&slices) / at_300(&equalizing),
    ));
    figure
}
