// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the picture of the README, docs/slices.svg, is what the simulator does: when two nodes run the two processes
//! of a job, first under `local` and then under `dcs-sb`. `make docs` draws it anew.

mod common;

use std::fmt::Write;

use common::docs::is_committed;
use cosched_rules::costs;
use cosched_rules::presets;
use cosched_sim::shared::messages::Messages;
use cosched_sim::shared::program::{Pattern, Program, Receiver};
use cosched_sim::shared::slices::{Slice, slices};
use cosched_sim::shared::uneven::Uneven;
use cosched_sim::shared::{Costs, Faults, Setup};

const US: u64 = 1000;
const MS: u64 = 1000 * US;
/// What is shown, after nodes have had time to agree.
const WARMUP: u64 = 5000 * MS;
const SHOWN: u64 = 1000 * MS;
const COMPETITORS: u32 = 4;
/// Costs of a message and of a switch, in us: `sim shared` has the same by default.
const COSTS: costs::Costs = costs::Costs { latency_us: 20.0, overhead_us: 5.0, switch_us: 10.0 };

const LEFT: f64 = 70.0;
const WIDTH: f64 = 800.0;
const LANE: f64 = 26.0;

/// A pair that passes a token and spins, beside four competitors on each node, as in the demo.
fn setup(preset: &str) -> Setup {
    let ns = |us: f64| (us * 1e3) as u64;
    Setup {
        nodes: 2,
        cpus: 1,
        jobs: 1,
        ranks: 1,
        competitors: COMPETITORS,
        program: Program { pattern: Pattern::Token, receiver: Receiver::Spin, grain_ns: 0, imbalance_ns: 0 },
        policy: presets::find(preset).unwrap().policy.to_bpf(&COSTS),
        is_eevdf: false,
        first: None,
        costs: Costs {
            latency_ns: ns(COSTS.latency_us),
            overhead_ns: ns(COSTS.overhead_us),
            switch_ns: ns(COSTS.switch_us),
            idle_switch_ns: ns(COSTS.switch_us),
        },
        faults: Faults { loss: 0.0, resend_ns: 200 * MS, skew_ns: 0 },
        uneven: Uneven::default(),
        messages: Messages::default(),
        tick_ns: 4 * MS,
        aligned: false,
        warmup_ns: WARMUP,
        length_ns: SHOWN,
    }
}

/// A run.
struct Run {
    slices: Vec<Slice>,
    /// When both nodes ran the job, from and until.
    both: Vec<(u64, u64)>,
}

impl Run {
    fn of(preset: &str, seed: u64) -> Run {
        let slices = slices(&setup(preset), seed);
        let job = |node: u32| slices.iter().filter(move |slice| slice.slot == 0 && slice.cpu == node);
        let overlap = |a: &Slice, b: &Slice| (a.since_ns.max(b.since_ns).max(WARMUP), a.until_ns.min(b.until_ns));
        let both = job(0).flat_map(|a| job(1).map(move |b| overlap(a, b)));
        let both: Vec<(u64, u64)> = both.filter(|(since, until)| since < until).collect();
        Run { slices, both }
    }

    /// The run, of nine, in which both nodes run the job for the median time.
    fn median(preset: &str) -> Run {
        let mut runs: Vec<Run> = (1..=9).map(|seed| Run::of(preset, seed)).collect();
        runs.sort_by_key(Run::both_ns);
        runs.remove(4)
    }

    fn both_ns(&self) -> u64 {
        self.both.iter().map(|(since, until)| until - since).sum()
    }
}

fn x(time_ns: u64) -> f64 {
    LEFT + WIDTH * (time_ns.max(WARMUP) - WARMUP) as f64 / SHOWN as f64
}

fn rect(svg: &mut String, (since, until): (u64, u64), y: f64, fill: &str) {
    let width = x(until) - x(since);
    writeln!(svg, r#"<rect x="{:.2}" y="{y}" width="{width:.2}" height="{LANE}" fill="{fill}"/>"#, x(since)).unwrap();
}

fn label(svg: &mut String, (x, y): (f64, f64), anchor: &str, text: &str) {
    writeln!(svg, r##"<text x="{x:.1}" y="{y:.1}" text-anchor="{anchor}" fill="#222">{text}</text>"##).unwrap();
}

const OTHERS: [&str; 2] = ["#e6e6e6", "#d4d4d4"];
const ONE: &str = "#f4a582";
const BOTH: &str = "#2166ac";

/// Two lanes from `y` on, and what they show above them.
fn panel(svg: &mut String, y: f64, title: &str, run: &Run) {
    label(svg, (LEFT, y), "start", title);
    let both = format!("both nodes run the job for {} ms of {}", run.both_ns() / MS, SHOWN / MS);
    label(svg, (LEFT + WIDTH, y), "end", &both);
    for node in 0..2 {
        let top = y + 8.0 + f64::from(node) * (LANE + 4.0);
        label(svg, (LEFT - 8.0, top + LANE * 0.68), "end", &format!("node {node}"));
        for slice in run.slices.iter().filter(|slice| slice.cpu == node) {
            let fill = if slice.slot == 0 { ONE } else { OTHERS[slice.slot as usize % 2] };
            rect(svg, (slice.since_ns, slice.until_ns), top, fill);
        }
        run.both.iter().for_each(|&both| rect(svg, both, top, BOTH));
    }
}

fn picture(before: &Run, after: &Run) -> String {
    let (width, height) = (LEFT + WIDTH + 40.0, 262.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" \
         font-size=\"13\">\n<title>Which task two nodes run, without and with coscheduling</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    panel(&mut svg, 22.0, "each node for itself (local)", before);
    panel(&mut svg, 116.0, "messages run their receivers (dcs-sb)", after);
    for part in 0..=5 {
        let time = SHOWN / 5 * part;
        label(&mut svg, (x(WARMUP + time), 203.0), "middle", &format!("{} ms", time / MS));
    }
    let legend = [(BOTH, "both nodes run the job"), (ONE, "one node runs it, and waits"), (OTHERS[1], "other tasks")];
    for (i, (fill, text)) in legend.iter().enumerate() {
        let left = LEFT + 240.0 * i as f64;
        writeln!(svg, r#"<rect x="{left}" y="224" width="16" height="16" fill="{fill}"/>"#).unwrap();
        label(&mut svg, (left + 24.0, 237.0), "start", text);
    }
    svg + "</svg>\n"
}

#[test]
fn the_picture_is_what_the_simulator_does() {
    let (before, after) = (Run::median("local"), Run::median("dcs-sb"));
    assert!(before.both_ns() * 2 < after.both_ns(), "{} and {} ns", before.both_ns(), after.both_ns());
    is_committed("docs/slices.svg", &picture(&before, &after));
}

#[test]
fn slices_of_a_node_do_not_overlap_and_leave_no_gap_wider_than_switches_there_and_back() {
    let run = Run::of("dcs-sb", 1);
    for node in 0..2 {
        let of_node: Vec<&Slice> = run.slices.iter().filter(|slice| slice.cpu == node).collect();
        // A message may have the CPU switch back before the other task has run.
        let most_ns = 2 * (COSTS.switch_us * 1e3) as u64;
        for pair in of_node.windows(2) {
            let gap = pair[1].since_ns.checked_sub(pair[0].until_ns).expect("they overlap");
            assert!(gap <= most_ns, "{:?} and {:?}", pair[0], pair[1]);
        }
        let of_job: u64 = of_node.iter().filter(|slice| slice.slot == 0).map(|s| s.until_ns - s.since_ns).sum();
        assert!(of_job > 0 && of_job < SHOWN, "{of_job} ns");
    }
}
