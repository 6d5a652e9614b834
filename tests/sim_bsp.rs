// SPDX-License-Identifier: GPL-2.0-only
//! Claim: `sim bsp` does with small workloads what can be reckoned by hand, learns what Dusseau's processes learn, and
//! holds itself to a kilobyte for each task.

use bsp::{on_svr4, run};
use common::{error_of, scx_cosched};
use cosched_rules::intf::cosched_wait_history;
use cosched_sim::bsp::{Scheduler, Setup, Wakeup};
use cosched_sim::jobs::{Pattern, Program};
use cosched_sim::policy::{Costs, NEW_HISTORY, WaitFor, WaitRule, Waits};
use serde_json::Value;

#[path = "common/bsp.rs"]
mod bsp;
mod common;

const US: u64 = 1_000;
const MS: u64 = 1_000_000;

/// g = 100 us, v = 0, L = 10 us, CS = 50 us, c = 8 us.
fn setup(pattern: Pattern, nodes: u32, jobs: u32, iterations: u32, wait: WaitRule) -> Setup {
    let program =
        Program { pattern, processes: nodes, granularity_ns: 100 * US, imbalance_ns: 0, gap_ns: 8 * US, iterations };
    let costs = Costs { latency_ns: 10 * US, switch_ns: 50 * US, spin_ns: 1000 * US, ..Costs::default() };
    on_svr4(jobs, program, costs, wait)
}

#[test]
fn alone_an_iteration_is_computation_round_trips_and_gaps() {
    for (pattern, iteration_us) in [
        (Pattern::Barrier, 100 + 20),
        (Pattern::News, 100 + 20 + 4 * (8 + 20) + 8 + 20),
        (Pattern::Transpose, 100 + 20 + 6 * (8 + 20) + 8 + 20),
    ] {
        let setup = setup(pattern, 6, 1, 50, WaitRule::Fixed);
        let outcome = run(&setup);
        // The job is switched to once, by either.
        let wanted_ns = (50 + 50 * iteration_us) * US;
        assert_eq!((outcome.local_ns, outcome.ideal_ns), (wanted_ns, wanted_ns), "{pattern}");
        assert!(outcome.successful.iter().all(|share| share.is_none_or(|share| share == 1.0)));
        assert_eq!(setup.program.iteration_ns(10 * US), iteration_us as f64 * 1000.0);
    }
}

#[test]
fn coscheduling_is_all_jobs_in_turn_and_a_switch_each_half_second() {
    // 3 jobs of 2000 iterations of 120 us: 720 ms, so two turns.
    let outcome = run(&setup(Pattern::Barrier, 4, 3, 2000, WaitRule::Fixed));
    assert_eq!(outcome.ideal_ns, 3 * 2000 * 120 * US + 2 * 50 * US);
    let wanted = [600_000.0, 0.0, 120_000.0, 100.0, 0.0].map(|us| us / 720_100.0);
    for (found, wanted) in outcome.ideal.parts().into_iter().zip(wanted) {
        assert!((found - wanted).abs() < 1e-12, "{:?}", outcome.ideal);
    }
}

#[test]
fn who_is_woken_during_a_switch_waits_for_it_and_for_another() {
    // Two jobs of one process each on one node, one iteration, no spinning (Dusseau, Figure 7). All in us:
    //   0 switch to A, 50 A computes, 150 A waits and sleeps, switch to B, 160 A's message to the root, itself, comes,
    // 200 B is there but A urgent: switch to A, 250 A releases itself and sleeps, switch to B, 260 the release comes,
    // 300 switch to A, 350 A is done, switch to B, 400 B computes, 500 B waits and sleeps, and nobody else is there:
    // 510 B releases itself without a switch, 520 B is done.
    let outcome = run(&setup(Pattern::Barrier, 1, 2, 1, WaitRule::Immediate));
    assert_eq!(outcome.local_ns, 520 * US);
    let share = |us: f64| us / 520.0;
    let found = outcome.breakdown;
    assert!((found.compute - share(200.0)).abs() < 1e-12 && (found.switch - share(300.0)).abs() < 1e-12, "{found:?}");
    assert!((found.idle - share(20.0)).abs() < 1e-12 && found.synchronize == 0.0, "{found:?}");
}

#[test]
fn who_spins_keeps_the_cpu_until_its_time_is_over() {
    // As above, but with spins of 15 us: A sends at 150, counts itself at 160, and its release would come at 170; at
    // 165 it sleeps. Then as above: 215 B, 265 A has its release and is done, 315 B, 415 spins, 430 sleeps, 435 is
    // done.
    let mut setup = setup(Pattern::Barrier, 1, 2, 1, WaitRule::Fixed);
    setup.costs.spin_ns = 15 * US;
    let outcome = run(&setup);
    assert_eq!(outcome.local_ns, 435 * US);
    assert_eq!(outcome.successful, [None, Some(0.0), None]);
    // A spin that is just long enough is one, and one that ends before the release comes is none.
    setup.costs.spin_ns = 20 * US - 1;
    assert_eq!(run(&setup).successful[1], Some(0.0));
    setup.costs.spin_ns = 20 * US;
    let outcome = run(&setup);
    assert_eq!((outcome.local_ns, outcome.successful[1]), (2 * (50 + 120) * US, Some(1.0)));
}

#[test]
fn every_scheduler_ends_the_same_work_and_time_adds_up() {
    let schedulers = [Scheduler::Svr4, Scheduler::RoundRobin(20 * MS), Scheduler::Feedback, Scheduler::Fair(20 * MS)];
    for scheduler in schedulers {
        for wakeup in [Wakeup::Urgent, Wakeup::Ordinary] {
            for wait in [WaitRule::Immediate, WaitRule::Fixed, WaitRule::Conditional, WaitRule::AdaptiveGlobal] {
                let mut setup = setup(Pattern::News, 9, 3, 200, wait);
                (setup.scheduler, setup.wakeup, setup.program.imbalance_ns) = (scheduler, wakeup, 50 * US);
                let outcome = run(&setup);
                let found = outcome.breakdown;
                for breakdown in [found, outcome.ideal] {
                    let sum: f64 = breakdown.parts().iter().sum();
                    assert!((sum - 1.0).abs() < 1e-9, "{scheduler:?} {wait}: {breakdown:?}");
                }
                // What was computed is the work of all: g in the mean, and c before each of five events.
                let computed_ns = found.compute * outcome.local_ns as f64;
                let work_ns = 3.0 * 200.0 * (100.0 + 5.0 * 8.0) * 1000.0;
                assert!((computed_ns / work_ns - 1.0).abs() < 0.01, "{scheduler:?} {wait}: {computed_ns} {work_ns}");
                assert!(outcome.slowdown() > 0.6, "{scheduler:?} {wait}: {}", outcome.slowdown());
            }
        }
    }
}

#[test]
fn waits_spin_as_the_papers_say() {
    // Dusseau 6.1 with CS = 200 us, L = 10 us: S = 2 CS, and v + 2 L at barriers up to v = 10 CS.
    let waits = |rule, imbalance_us: u64| {
        let (latency_ns, switch_ns, spin_ns, imbalance_ns) = (10 * US, 200 * US, 70 * US, imbalance_us * US);
        Waits::new(rule, Costs { latency_ns, switch_ns, spin_ns, imbalance_ns, ..Costs::default() })
    };
    let spin_us = |rule, imbalance_us, wait| waits(rule, imbalance_us).spin_ns(wait, &NEW_HISTORY).map(|ns| ns / US);
    use WaitFor::{ClosingBarrier, OpeningBarrier, Read};
    for (imbalance_us, at_barrier) in [(0, 400), (380, 400), (381, 401), (2000, 2020), (2001, 400)] {
        assert_eq!(spin_us(WaitRule::Oracle, imbalance_us, OpeningBarrier), Some(at_barrier));
        assert_eq!(spin_us(WaitRule::Oracle, imbalance_us, ClosingBarrier), Some(at_barrier));
        assert_eq!(spin_us(WaitRule::Oracle, imbalance_us, Read), Some(400));
    }
    // S is longer by the network's time, if that is how note 3 is read.
    let costs = Costs { switch_ns: 200 * US, network_ns: 20 * US, ..Costs::default() };
    assert_eq!(Waits::new(WaitRule::Oracle, costs).spin_ns(Read, &NEW_HISTORY), Some(420 * US));
    for wait in [OpeningBarrier, Read] {
        assert_eq!(spin_us(WaitRule::Busy, 0, wait), None);
        assert_eq!(spin_us(WaitRule::Immediate, 0, wait), Some(0));
        assert_eq!(spin_us(WaitRule::Fixed, 0, wait), Some(70));
        assert_eq!(spin_us(WaitRule::Baseline, 0, wait), Some(220));
        assert_eq!(spin_us(WaitRule::Conditional, 0, wait), Some(220));
        assert_eq!(spin_us(WaitRule::AdaptiveGlobal, 0, wait), Some(400));
    }
    // Conditional goes on until 3 W after the last message, and nobody else does.
    assert_eq!(waits(WaitRule::Conditional, 0).goes_on_until(900 * US, 400 * US), Some(1000 * US));
    assert_eq!(waits(WaitRule::Conditional, 0).goes_on_until(1000 * US, 400 * US), None);
    assert_eq!(waits(WaitRule::Baseline, 0).goes_on_until(900 * US, 899 * US), None);
}

fn spin_us(waits: &Waits, history: &cosched_wait_history) -> Option<u64> {
    waits.spin_ns(WaitFor::OpeningBarrier, history).map(|ns| ns / US)
}

#[test]
fn the_root_teaches_all_and_the_others_learn_for_themselves() {
    let costs = Costs { latency_ns: 10 * US, switch_ns: 200 * US, ..Costs::default() };
    let (global, local) = (Waits::new(WaitRule::AdaptiveGlobal, costs), Waits::new(WaitRule::AdaptiveLocal, costs));

    let (mut root, mut other) = (NEW_HISTORY, NEW_HISTORY);
    let estimate_us = (0..20).map(|_| global.estimate_us(&mut root, 900 * US)).last().unwrap();
    assert_eq!(estimate_us, 900);
    global.learn(&mut other, 1500 * US);
    assert_eq!(spin_us(&global, &other), Some(400), "it learns nothing from its own waits");
    global.hear(&mut other, estimate_us);
    assert_eq!(spin_us(&global, &other), Some(920));

    let mut own = NEW_HISTORY;
    local.hear(&mut own, 900);
    assert_eq!((local.estimate_us(&mut own, 900 * US), spin_us(&local, &own)), (0, Some(400)));
    local.learn(&mut own, 700 * US);
    assert_eq!(spin_us(&local, &own), Some(720));
}

fn json(args: &[&str]) -> Value {
    let output = scx_cosched(&[&["sim", "bsp", "--json"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn the_program_prints_what_it_promises_and_the_same_again() {
    let args = ["--pattern", "news", "--nodes", "8", "--iterations", "100", "--runs", "3", "--seed", "9"];
    let mut first = json(&args);
    for key in ["slowdown", "ci90", "events", "events_per_s"] {
        assert!(first[key].as_f64().is_some_and(|value| value > 0.0), "{key}: {first}");
    }
    let parts = ["compute", "communicate", "synchronize", "switch", "idle"];
    for breakdown in ["breakdown", "ideal_breakdown"] {
        let sum: f64 = parts.iter().map(|part| first[breakdown][part].as_f64().expect("a share")).sum();
        assert!((sum - 1.0).abs() < 1e-9, "{first}");
    }
    let mut second = json(&args);
    for view in [&mut first, &mut second] {
        view.as_object_mut().unwrap().remove("events_per_s");
    }
    assert_eq!(first, second);
    assert!(json(&["--nodes", "4", "--iterations", "10", "--runs", "1"])["ci90"].is_null());
}

#[test]
fn a_wakeup_that_is_charged_takes_a_switch_on_an_idle_cpu_too() {
    // One job, so who sleeps at a barrier finds its CPU idle and its own.
    let local_ns = |wakeup| {
        let setup = Setup { wakeup, ..setup(Pattern::Barrier, 4, 1, 100, WaitRule::Immediate) };
        (run(&setup).local_ns, setup.costs.switch_ns)
    };
    let (free, switch_ns) = local_ns(Wakeup::Ordinary);
    assert!(local_ns(Wakeup::Charged).0 >= free + 90 * switch_ns);
}

#[test]
fn a_preset_is_the_wait_rule_that_it_has() {
    for model in ["bsp", "continuous"] {
        let result = |args: &[&str]| {
            let mut all =
                vec!["sim", model, "--json", "--nodes", "8", "--jobs", "2", "--iterations", "3", "--runs", "1"];
            all.extend(args);
            let output = scx_cosched(&all);
            assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
            let mut found: Value = serde_json::from_slice(&output.stdout).unwrap();
            found.as_object_mut().unwrap().remove("events_per_s");
            found
        };
        assert_eq!(result(&["--policy", "implicit"]), result(&["--wait", "conditional"]));
        assert_eq!(result(&["--policy", "sb"]), result(&["--wait", "fixed", "--spin-us", "200"]));
        assert_eq!(result(&["--policy", "sb+spin=immediate"]), result(&["--wait", "immediate"]));
        // Who spins for ever always finds its message spinning, or is not there.
        let local = result(&["--policy", "local"]);
        assert_eq!((&local["successful_reads"], &local["breakdown"]["idle"]), (&1.0.into(), &0.0.into()), "{local}");
        assert!(local["slowdown"].as_f64() > result(&["--policy", "implicit"])["slowdown"].as_f64());
    }
}

#[test]
fn what_makes_no_sense_is_refused_and_no_trace_is_left() {
    for (args, wanted) in [
        (&["--latency-us", "-1"][..], "--latency-us"),
        (&["--latency-us", "-1"], "it takes a number of us from 0 to 1000000"),
        (&["--switch-us", "NaN"], "--switch-us"),
        (&["--granularity-us", "0"], "it takes a number of us from 1 to 100000000"),
        (&["--imbalance", "2.1"], "it takes a multiple of g from 0 to 2"),
        (&["--nodes", "0"], "it takes a whole number from 1 to 65536"),
        (&["--jobs", "0"], "--jobs"),
        (&["--runs", "-3"], "--runs"),
        (&["--pattern", "ring"], "unknown pattern 'ring' (known: barrier, news, transpose)"),
        (&["--wait", "busy"], "unknown wait rule 'busy' (known: immediate, fixed"),
        (&["--scheduler", "eevdf"], "svr4, round-robin, feedback, fair"),
        (&["--spin-us", "5"], "--spin-us: it has no effect with wait 'adaptive-global'"),
        (&["--quantum-ms", "5"], "--quantum-ms: it has no effect with this scheduler"),
        (&["--policy", "bs"], "--policy: unknown policy 'bs' (known: beat, cc, dcs"),
        (&["--policy", "local+h_ms=5"], "--policy: --h-ms: it has no effect"),
        (&["--policy", "dcs-sb"], "--policy: 'dcs-sb' makes no sense in this model: it boosts who waits for a CPU"),
        (&["--policy", "cc"], "--policy: 'cc' makes no sense in this model: it boosts who waits for a CPU"),
        (&["--policy", "sy"], "--policy: 'sy' makes no sense in this model: its processes put others first"),
        (
            &["--policy", "gang"],
            "--policy: 'gang' makes no sense in this model: it is what the slowdown is measured against",
        ),
        (&["--policy", "sb", "--wait", "fixed"], "--wait"),
        (&["--policy", "sb", "--spin-us", "5"], "--spin-us"),
        (&["--speed", "5"], "--speed"),
        (&["--readings", "ticks"], "unknown reading 'ticks' (known: tick, round-trip; or none)"),
        (&["--readings", "tick", "--scheduler", "fair"], "--readings: 'tick' has no effect with this scheduler"),
        (
            &["--readings", "round-trip", "--wait", "fixed"],
            "--readings: 'round-trip' has no effect with this wait rule",
        ),
    ] {
        let (message, code) = error_of(&[&["sim", "bsp"], args].concat());
        assert!(code == 2 && message.contains(wanted), "{args:?}: {message}");
    }
    let (message, code) = error_of(&["sim", "bsp", "--trace", "/no/such/directory/trace"]);
    assert!(code == 1 && message.contains("--trace: /no/such/directory/trace: it cannot be written"), "{message}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    error_of(&["sim", "bsp", "--nodes", "0", "--trace", path.to_str().unwrap()]);
    error_of(&["sim", "bsp", "--spin-us", "5", "--trace", path.to_str().unwrap()]);
    assert!(!path.exists());
}

/// The most memory that any child has had so far, in bytes.
fn peak_bytes() -> u64 {
    // SAFETY: getrusage fills in the structure that it is given.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        assert_eq!(libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage), 0);
        usage
    };
    usage.ru_maxrss as u64 * 1024
}

#[test]
fn a_task_takes_less_than_a_kilobyte() {
    let run = |nodes: &str| {
        json(&["--nodes", nodes, "--jobs", "3", "--iterations", "4", "--runs", "1", "--imbalance", "1"]);
        peak_bytes()
    };
    let (small, large) = (run("32"), run("16384"));
    let bytes = (large - small) as f64 / ((16384 - 32) * 3) as f64;
    assert!(bytes > 0.0 && bytes < 1024.0, "{bytes} bytes a task");
}
