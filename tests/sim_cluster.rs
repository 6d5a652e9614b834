// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `sim cluster` does with a few jobs what can be reckoned by hand, under every preset, and with many what
//! Zhang's strategies are for.

use common::scx_cosched;
use cosched_rules::presets;
use cosched_sim::cluster::workload::{JobSpec, Mix, Stream, TYPES};
use cosched_sim::cluster::{Costs, Outcome, Reading, Readings, Setup, kernel_policy_of, policy_of, simulate};
use cosched_sim::stats::Estimate;
use serde_json::Value;

mod common;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;
const S: u64 = 1_000_000_000;

fn setup(preset: &str, nodes: u32, level: u32) -> Setup {
    let switch_ns = if preset == "gang" { 2000 * US } else { 200 * US };
    let costs = Costs { switch_ns, interrupt_ns: 50 * US, latency_ns: 185 * US, move_ns: 3 * US, check_ns: 2 * US };
    // A wait alone takes up to two latencies, and a few looks at endpoints, one on each node. Whoever does not spin for
    // as long has its neighbours sleep too.
    let policy = policy_of(preset, &costs, 450 * US, 200 * MS).unwrap();
    let readings = with_exchanges(Readings::NONE, 1);
    Setup { nodes, level, readings, policy, costs, skew: 0.0, warmup: 0.0 }
}

fn with_exchanges(mut readings: Readings, exchanges: u32) -> Readings {
    readings.exchanges = exchanges;
    readings
}

/// All but the one whose turns are drawn, which this model refuses.
fn presets_here() -> impl Iterator<Item = &'static String> {
    presets::all().keys().filter(|name| *name != "beat")
}

fn job(arrival_ns: u64, size: u32, execution_ns: u64, mix: Mix) -> JobSpec {
    JobSpec { arrival_ns, size, execution_ns, mix }
}

fn close(found: f64, wanted: f64, within: f64) -> bool {
    (found / wanted - 1.0).abs() <= within
}

#[test]
fn alone_a_job_takes_what_it_is_said_to_take_under_every_preset() {
    for preset in presets_here() {
        for mix in TYPES {
            for size in [1, 2, 4] {
                let found = simulate(&setup(preset, 4, 3), &[job(0, size, 2 * S, mix)], 1);
                // The gang begins with the next quantum. Looking at endpoints each millisecond takes 2 us of it.
                let begins_s = if preset == "gang" { 0.202 } else { 0.0002 };
                assert!(close(found.response_s, 2.0 + begins_s, 0.01), "{preset} {mix:?} {size}: {}", found.response_s);
                assert_eq!(found.wait_s, 0.0);
                let busy = f64::from(size) / 4.0;
                let useful = mix.compute + if size > 1 { mix.communication } else { 0.0 };
                let useful = if size > 1 { useful } else { mix.compute / (mix.compute + mix.io) };
                // The gang's first quantum is idle.
                let share = 2.0 / found.end_s;
                assert!(close(found.utilization, busy * useful * share, 0.02), "{preset} {mix:?} {size}: {found:?}");
            }
        }
    }
}

#[test]
fn who_does_not_fit_waits_for_who_came_before() {
    // One slot a node, so one after the other, and the third, which would fit beside the first, after the second.
    let jobs = [job(0, 3, S, TYPES[3]), job(MS, 4, S, TYPES[3]), job(2 * MS, 1, S, TYPES[3])];
    for preset in ["local", "sb", "pb"] {
        let found = simulate(&setup(preset, 4, 1), &jobs, 1);
        let wanted = (1.0 + 1.999 + 2.998) / 3.0;
        assert!(close(found.response_s, wanted, 0.01), "{preset}: {}", found.response_s);
        assert!(close(found.wait_s, (0.0 + 0.999 + 1.998) / 3.0, 0.01), "{preset}: {}", found.wait_s);
        assert!(close(found.execution_s, 1.0, 0.01), "{preset}: {}", found.execution_s);
        assert!(close(found.throughput_per_s, 1.0, 0.01), "{preset}: {}", found.throughput_per_s);
    }
}

#[test]
fn rows_of_the_gang_take_turns_and_an_io_is_no_reason_for_another() {
    // Two jobs, a row each: 1.9 s of work each in turns of 200 ms from 0.2 s on, of which 2 go to the switch. The last
    // of ten turns of the second begins at 4 s, and 118 ms are left for it.
    for mix in [TYPES[3], TYPES[1]] {
        let jobs = [job(0, 4, 1900 * MS, mix), job(0, 4, 1900 * MS, mix)];
        let found = simulate(&setup("gang", 4, 2), &jobs, 1);
        assert!(close(found.end_s, 4.0 + 0.002 + 0.118, 0.01), "{mix:?}: {}", found.end_s);
    }
    // The same beside one another on fewer nodes than two rows need: all in one row.
    let halves = [job(0, 2, 2 * S, TYPES[3]), job(0, 2, 2 * S, TYPES[3])];
    let found = simulate(&setup("gang", 4, 2), &halves, 1);
    assert!(close(found.end_s, 2.202, 0.01), "{}", found.end_s);
}

#[test]
fn who_sleeps_for_io_leaves_the_cpu_to_others() {
    // Half of it is I/O: two jobs of one process have their CPU in turn, and neither waits for long.
    let mix = Mix { compute: 0.5, io: 0.5, communication: 0.0 };
    let jobs = [job(0, 1, 2 * S, mix), job(0, 1, 2 * S, mix)];
    let mut setup = setup("local", 1, 2);
    (setup.costs.latency_ns, setup.costs.switch_ns) = (10 * MS, 0);
    let found = simulate(&setup, &jobs, 1);
    assert!(found.end_s < 2.4, "{}", found.end_s);
    assert!(close(found.compute, 2.0 / found.end_s, 0.01), "{found:?}");
}

fn outcomes(preset: &str, workload: &str, level: u32) -> Vec<Outcome> {
    let setup = Setup { skew: 0.2, warmup: 0.1, ..setup(preset, 16, level) };
    let workload = workload.parse().unwrap();
    let stream = Stream { workload, jobs: 12, execution_ns: 3e8, load: 0.8, nodes: 16 };
    (1..=2).map(|seed| simulate(&setup, &stream.draw(seed), seed)).collect()
}

#[test]
fn every_preset_ends_the_same_work_and_one_seed_makes_one_run() {
    let work = |outcomes: &[Outcome]| outcomes.iter().map(|it| it.end_s).collect::<Vec<_>>();
    for preset in presets_here() {
        let first = outcomes(preset, "WL7", 3);
        assert_eq!(first, outcomes(preset, "WL7", 3), "{preset}");
        assert!(work(&first)[0] != work(&first)[1], "{preset}: two seeds make two runs");
        for it in first {
            let sum = it.spin + it.switch + it.idle;
            assert!(sum > 0.0 && sum < 1.0, "{preset}: {it:?}");
            assert!(it.utilization >= it.compute && it.utilization < 1.0, "{preset}: {it:?}");
            assert!(it.response_s >= it.execution_s && it.slowdown >= 1.0, "{preset}: {it:?}");
        }
    }
}

fn as_kernel(policy: &str, setup: &Setup) -> Setup {
    Setup { policy: kernel_policy_of(policy, &setup.costs, 200 * MS).unwrap(), ..setup.clone() }
}

fn outcome(setup: &Setup, workload: &str) -> Outcome {
    let workload = workload.parse().unwrap();
    simulate(setup, &Stream { workload, jobs: 12, execution_ns: 3e8, load: 0.8, nodes: 16 }.draw(1), 1)
}

#[test]
fn every_preset_runs_as_the_kernel_has_it_and_every_gate_with_it() {
    let gates = ["always", "equalizing", "epochs", "rate", "auto"].map(|gate| format!("dcs-sb+gate={gate}"));
    let presets = presets_here().cloned();
    for policy in presets.chain(gates).chain(["pb-sb+epochs=true".into(), "dcs+residual_slice=true".into()]) {
        let setup = as_kernel(&policy, &Setup { skew: 0.2, ..setup("gang", 16, 3) });
        let found = outcome(&setup, "WL7");
        assert_eq!(found, outcome(&setup, "WL7"), "{policy}");
        assert!(found.utilization > 0.0 && found.utilization < 1.0 && found.slowdown >= 1.0, "{policy}: {found:?}");
    }
}

#[test]
fn a_gate_that_never_opens_leaves_nothing_but_the_local_scheduler_and_none_leaves_all() {
    let mut free = setup("local", 16, 3);
    // Nothing that only a boost costs.
    (free.costs.interrupt_ns, free.costs.move_ns, free.costs.check_ns) = (0, 0, 0);
    let local = outcome(&as_kernel("local", &free), "WL5");
    let never = outcome(&as_kernel("pb+h_ms=60000", &free), "WL5");
    assert_eq!(Outcome { events: 0, ..never }, Outcome { events: 0, ..local });
    let ungated = outcome(&Setup { policy: policy_of("pb", &free.costs, 0, 200 * MS).unwrap(), ..free.clone() }, "WL5");
    assert_eq!(outcome(&as_kernel("pb+gate=always", &free), "WL5"), ungated);
    assert!(ungated.response_s < 0.5 * local.response_s, "{} {}", ungated.response_s, local.response_s);
    // What a gate lets through is between the two.
    let some = outcome(&as_kernel("pb+h_ms=-20", &free), "WL5");
    assert!(some.response_s < 0.9 * local.response_s, "{} {}", some.response_s, local.response_s);
}

#[test]
fn coordination_is_worth_it_for_jobs_that_communicate() {
    let response = |preset| outcomes(preset, "WL5", 3).iter().map(|it| it.response_s).sum::<f64>();
    let local = response("local");
    for preset in ["gang", "sb", "dcs-sb", "pb", "pb-sb"] {
        let found = response(preset);
        assert!(found < 0.7 * local, "{preset}: {found}, local {local}");
    }
}

fn json(args: &[&str]) -> Value {
    let output = scx_cosched(&[&["sim", "cluster", "--json"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_program_prints_what_it_promises() {
    let flags = "--workload WL2 --policy sb --mpl 3 --skew 150 --nodes 8 --switch-us 100 --interrupt-us 25 --quantum-ms 100 \
                 --jobs 10 --execution-s 0.1 --runs 3";
    let found = json(&flags.split_whitespace().collect::<Vec<_>>());
    for field in ["response_s", "wait_s", "execution_s", "utilization", "throughput_per_s"] {
        assert!(found[field].as_f64().is_some_and(|value| value >= 0.0), "{field}: {found}");
        assert!(found["ci90"][field].as_f64().is_some(), "{field}: {found}");
    }
    let sum = found["wait_s"].as_f64().unwrap() + found["execution_s"].as_f64().unwrap();
    assert!(close(found["response_s"].as_f64().unwrap(), sum, 1e-9), "{found}");
    let alone = json(&["--jobs", "5", "--execution-s", "0.05", "--runs", "1"]);
    assert!(alone["ci90"]["response_s"].is_null(), "{alone}");
}

/// A line of a trace: number, submit time, run time, processors, executable.
fn line(number: u32, submit_s: u32, run_s: i32, size: i32, executable: i32) -> String {
    format!("{number} {submit_s} -1 {run_s} {size} -1 -1 -1 -1 -1 1 -1 -1 {executable} -1 -1 -1 -1\n")
}

#[test]
fn a_trace_is_run_with_what_the_sidecar_says_of_its_jobs() {
    let dir = tempfile::tempdir().unwrap();
    let (trace, mixes) = (dir.path().join("a.swf"), dir.path().join("mixes.toml"));
    // Two jobs that take all nodes, one after the other, and one that never ran. The trace begins at 100 s.
    let lines = [line(1, 100, 10, 4, 7), line(2, 100, 20, 4, 8), line(3, 101, -1, -1, 8)].concat();
    std::fs::write(&trace, format!("; Version: 2.2\n;\n{lines}")).unwrap();
    let text = "[default]\ncompute = 100\nio = 0\ncommunication = 0\n[executable.8]\ncompute = 40\nio = 0\ncommunication = 60\n";
    std::fs::write(&mixes, text).unwrap();
    let (trace, mixes) = (trace.to_str().unwrap(), mixes.to_str().unwrap());
    let args = ["--swf", trace, "--nodes", "4", "--mpl", "1", "--time-scale", "0.1", "--warmup", "0", "--runs", "1"];
    // A switch would come with each I/O, and a wait for the next millisecond.
    let args = [&args[..], &["--skew", "0", "--switch-us", "0", "--readings", "none"]].concat();
    let found = json(&[&args[..], &["--mixes", mixes]].concat());
    assert_eq!((found["jobs"].as_u64(), found["left_out"].as_u64()), (Some(2), Some(1)));
    let number = |field: &str| found[field].as_f64().unwrap();
    assert!(close(number("response_s"), (1.0 + 3.0) / 2.0, 0.01), "{found}");
    assert!(close(number("wait_s"), 0.5, 0.01) && close(number("execution_s"), 1.5, 0.01), "{found}");
    // Of the first all is computing, of the second 40%.
    assert!(close(found["shares"]["compute"].as_f64().unwrap(), (1.0 + 0.8) / 3.0, 0.01), "{found}");
    // Without a sidecar they have all three alike.
    assert!(close(json(&args)["shares"]["compute"].as_f64().unwrap(), 0.35, 0.01));
}

/// The setup of a preset under these readings.
fn reads(preset: &str, nodes: u32, level: u32, readings: &[Reading], exchanges: u32) -> Setup {
    let readings = readings.iter().fold(Readings::NONE, |all, reading| all.with(*reading));
    Setup { readings: with_exchanges(readings, exchanges), ..setup(preset, nodes, level) }
}

/// What WL5, a little out of balance, comes to on 16 nodes.
fn skewed(preset: &str, level: u32, readings: &[Reading], exchanges: u32) -> Outcome {
    outcome(&Setup { skew: 0.2, ..reads(preset, 16, level, readings, exchanges) }, "WL5")
}

#[test]
fn a_block_costs_a_switch_on_an_idle_cpu_too() {
    // One process that reads 100 times: nobody else has its CPU meanwhile.
    let mix = Mix { compute: 0.5, io: 0.5, communication: 0.0 };
    let end_s = |readings: &[Reading]| {
        let mut setup = reads("local", 1, 1, readings, 1);
        setup.costs.latency_ns = 10 * MS;
        simulate(&setup, &[job(0, 1, S, mix)], 1).end_s
    };
    let more_s = end_s(&[Reading::Block]) - end_s(&[]);
    assert!(close(more_s, 100.0 * 200e-6, 0.02), "{more_s}");
}

#[test]
fn a_job_alone_takes_as_long_in_every_reading_of_its_messages() {
    for reading in [&[][..], &[Reading::Burst]] {
        for (interface, size) in [(1.0, 2), (1.0, 8), (0.25, 8), (0.0, 8)] {
            let mut setup = reads("local", 8, 2, reading, 4);
            setup.readings.interface = interface;
            let found = simulate(&setup, &[job(0, size, 2 * S, TYPES[3])], 1);
            assert!(close(found.response_s, 2.0, 0.01), "{reading:?} {interface} {size}: {found:?}");
        }
    }
}

#[test]
fn messages_that_are_there_are_received_though_a_process_comes_late() {
    // A burst of 1000 exchanges, which the slower of two neighbours finds complete.
    let mut setup = reads("local", 4, 1, &[Reading::Burst], 1000);
    setup.skew = 2.0;
    let found = simulate(&setup, &[job(0, 4, 20 * S, TYPES[4])], 1);
    assert!(found.utilization > 0.0 && found.end_s > 10.0, "{found:?}");
}

#[test]
fn a_process_that_yields_once_spins_on_and_one_that_yields_again_does_not() {
    let response_s = |readings: &[Reading]| skewed("sy", 5, readings, 1).response_s;
    let (again, once) = (response_s(&[]), response_s(&[Reading::YieldOnce]));
    assert!(once > 2.0 * again, "{once} {again}");
}

#[test]
fn who_comes_to_the_front_runs_at_the_next_millisecond() {
    let response_s = |readings: &[Reading]| skewed("dcs", 5, readings, 1).response_s;
    let (lower, any) = (response_s(&[]), response_s(&[Reading::Front]));
    assert!(any < 0.5 * lower, "{any} {lower}");
}

#[test]
fn a_burst_has_a_boosted_process_do_more_with_its_millisecond() {
    let response_s = |readings: &[Reading]| skewed("pb", 3, readings, 8).response_s;
    let (apart, burst) = (response_s(&[]), response_s(&[Reading::Burst]));
    assert!(burst < 0.8 * apart, "{burst} {apart}");
}

#[test]
fn an_idle_cpu_waits_for_its_millisecond() {
    // One process whose reads end 10.25 ms after it was taken: 0.75 ms before the next millisecond.
    let mix = Mix { compute: 0.5, io: 0.5, communication: 0.0 };
    let end_s = |readings: &[Reading]| {
        let mut setup = reads("local", 1, 1, readings, 1);
        (setup.costs.latency_ns, setup.costs.switch_ns) = (10_250 * US, 0);
        simulate(&setup, &[job(0, 1, S, mix)], 1).end_s
    };
    let (at_once, waits) = (end_s(&[]), end_s(&[Reading::Idle]));
    assert!(close(at_once, 98.0 * 10.25e-3, 0.001) && close(waits, 98.0 * 11e-3, 0.002), "{at_once} {waits}");
}

#[test]
fn a_process_that_a_boost_preempts_leaves_the_rest_of_a_millisecond_to_one_that_has_waited() {
    let response_s = |readings: &[Reading]| skewed("pb", 5, readings, 1).response_s;
    let (before, behind) = (response_s(&[]), response_s(&[Reading::Back]));
    assert!(behind < 0.7 * before, "{behind} {before}");
}

#[test]
fn clocks_change_what_they_are_read_as_and_the_gang_has_none() {
    let found = |preset: &str, readings: &[Reading]| skewed(preset, 5, readings, 1);
    assert!(found("pb", &[Reading::Clocks]) != found("pb", &[]));
    for reading in [Reading::Back, Reading::Clocks, Reading::Front, Reading::Idle, Reading::Keep, Reading::Row] {
        assert_eq!(found("gang", &[reading]), found("gang", &[]), "{reading:?}");
    }
}

/// The response over that of the gang, run by run with the same jobs for both, as in the paper's figures.
fn over_the_gang(preset: &str, workload: &str, runs: u64) -> Estimate {
    let response_s = |preset: &str, seed: u64| {
        let it = setup(preset, 32, 5);
        let policy = policy_of(preset, &it.costs, 200 * US, 200 * MS).unwrap();
        let workload = workload.parse().unwrap();
        let jobs = Stream { workload, jobs: 100, execution_ns: 1e9, load: 0.7, nodes: 32 }.draw(seed);
        simulate(&Setup { policy, readings: Readings::CHOSEN, skew: 0.2, warmup: 0.1, ..it }, &jobs, seed).response_s
    };
    let ratios = (1..=runs).map(|seed| response_s(preset, seed) / response_s("gang", seed));
    Estimate::of(&ratios.collect::<Vec<_>>())
}

#[test]
fn sy_is_behind_the_gang_on_wl4_and_sb_beside_it_on_wl5() {
    let (sy, sb) = (over_the_gang("sy", "WL4", 16), over_the_gang("sb", "WL5", 8));
    assert!(sy.mean - sy.ci90.unwrap() > 1.0, "{sy:?}");
    let sb_ci90 = sb.ci90.unwrap();
    assert!(sb.mean - sb_ci90 > 0.75 && sb.mean + sb_ci90 < 1.25, "{sb:?}");
}

#[test]
fn a_job_alone_takes_as_long_with_computation_apart_and_with_rare_io() {
    for (reading, io_every) in [(&[Reading::Apart][..], 1), (&[], 8)] {
        for mix in [TYPES[1], TYPES[4]] {
            let mut setup = reads("local", 8, 2, reading, 4);
            setup.readings.io_every = io_every;
            let found = simulate(&setup, &[job(0, 8, 4 * S, mix)], 1);
            assert!(close(found.response_s, 4.0, 0.02), "{reading:?} {io_every} {mix:?}: {found:?}");
        }
    }
}

#[test]
fn a_job_has_a_row_of_its_own_where_rows_are_read() {
    // Two of two processes on three nodes: in rows of their own they share a node, on the emptiest nodes they do too,
    // but of the second job another process.
    let found = |reading: &[Reading]| {
        let jobs = [job(0, 2, S, TYPES[3]), job(MS, 2, S, TYPES[3]), job(2 * MS, 1, S, TYPES[3])];
        simulate(&reads("local", 3, 2, reading, 2), &jobs, 1)
    };
    assert!(found(&[Reading::Row]) != found(&[]));
}

#[test]
fn the_program_reads_the_paper_as_its_figures_do() {
    let flags = ["--jobs", "5", "--execution-s", "0.05", "--runs", "1", "--nodes", "8", "--policy", "sy"];
    let with = |more: &[&str]| json(&[&flags[..], more].concat())["response_s"].as_f64().unwrap();
    let chosen = Readings::CHOSEN.to_string();
    assert_eq!(with(&[]), with(&["--readings", &chosen, "--exchanges", "2", "--interface", "100"]));
    for other in [["--readings", "none"], ["--exchanges", "1"], ["--interface", "0"], ["--io-every", "4"]] {
        assert!(with(&other) != with(&[]), "{other:?}");
    }
}
