// SPDX-License-Identifier: GPL-2.0-only
//! Claim: under the gate "auto" a job holds its fairness ratio F within 5% of the target, whatever competitors come and
//! go; what it did not use while it slept, and a message that always waits, gain it next to nothing.
//!
//! The gate is asked by a small model of one CPU: common/one_cpu.rs.

use cosched_rules::intf::{COSCHED_SCALE_SHIFT, COSCHED_WINDOW_CREDIT, COSCHED_WINDOW_STEP_NS, COSCHED_WINDOW_STEPS};
use cosched_rules::native;
use one_cpu::{Cpu, State};
use proptest::prelude::*;
use rules::{
    AUTO, IDLE, MS, POLICY, any_demand, any_policy, any_u64, cosched_demand, cosched_policy, cosched_window, grants,
    reason,
};

#[path = "common/one_cpu.rs"]
mod one_cpu;
#[path = "common/rules.rs"]
mod rules;

const BAND: f64 = 0.04;
const STEP_NS: u64 = COSCHED_WINDOW_STEP_NS as u64;
/// Of the window, in ms.
const WIDTH: f64 = (COSCHED_WINDOW_STEPS as u64 * STEP_NS) as f64 / MS as f64;
const CREDIT_NS: u64 = COSCHED_WINDOW_CREDIT as u64 * POLICY.slice_ns;

fn policy(target_permille: u32) -> cosched_policy {
    cosched_policy { gate: AUTO, target_permille, ..POLICY }
}

/// A demand of a task that used `cpu` of its share of `fair` ms.
fn demand(cpu: u64, fair: u64) -> cosched_demand {
    cosched_demand { cpu_ns: cpu * MS, fair_ns: fair * MS, ..IDLE }
}

#[test]
fn the_gate_closes_at_the_upper_end_of_the_band_and_opens_at_the_lower() {
    // T_C and T_E / N in ms, the target; the answer at first, after a denial, and the time granted of a slice of 20.
    for (cpu, fair, target, at_first, after_denial, granted) in [
        // Two fifths of a slice are 8 ms, and a fortieth of the share is less.
        (0, 200, 1000, "below_target", "below_target", 20),
        (191, 200, 1000, "below_target", "below_target", 17),
        (192, 200, 1000, "below_target", "above_target", 16),
        (207, 200, 1000, "below_target", "above_target", 1),
        (208, 200, 1000, "above_target", "above_target", 0),
        (900, 200, 1000, "above_target", "above_target", 0),
        // Here the latter is more.
        (389, 400, 1000, "below_target", "below_target", 20),
        (390, 400, 1000, "below_target", "above_target", 20),
        (409, 400, 1000, "below_target", "above_target", 1),
        (410, 400, 1000, "above_target", "above_target", 0),
        (779, 800, 1000, "below_target", "below_target", 20),
        (780, 800, 1000, "below_target", "above_target", 20),
        (819, 800, 1000, "below_target", "above_target", 1),
        (820, 800, 1000, "above_target", "above_target", 0),
        // Nothing is due yet.
        (0, 0, 1000, "below_target", "above_target", 8),
        // Half of its share, and twice as much.
        (91, 200, 500, "below_target", "below_target", 17),
        (108, 200, 500, "above_target", "above_target", 0),
        (391, 200, 2000, "below_target", "below_target", 17),
        (407, 200, 2000, "below_target", "above_target", 1),
        (408, 200, 2000, "above_target", "above_target", 0),
    ] {
        let (policy, demand) = (policy(target), demand(cpu, fair));
        let again = cosched_demand { denied: 1, ..demand };
        assert_eq!(reason(&policy, &demand), at_first, "{cpu} of {fair}, target {target}");
        assert_eq!(reason(&policy, &again), after_denial, "{cpu} of {fair}, target {target}");
        assert_eq!(native::slice(&policy, &again), granted * MS, "{cpu} of {fair}, target {target}");
    }
}

#[test]
fn the_gate_closes_two_slices_ahead_of_the_others_and_opens_again_at_one_whatever_the_share() {
    for (receiver, others, denied, expected, granted) in [
        (19, 0, 0, "below_target", 20),
        (39, 0, 0, "below_target", 1),
        (40, 0, 0, "not_behind", 0),
        (139, 100, 0, "below_target", 1),
        (140, 100, 0, "not_behind", 0),
        (19, 0, 1, "below_target", 20),
        (20, 0, 1, "not_behind", 20),
        (119, 100, 1, "below_target", 20),
        (120, 100, 1, "not_behind", 20),
    ] {
        let (receiver_ran_ns, running_ran_ns) = (receiver * MS as i64, others * MS as i64);
        let demand = cosched_demand { receiver_ran_ns, running_ran_ns, denied, ..demand(0, 200) };
        assert_eq!(reason(&policy(1000), &demand), expected, "{receiver} against {others}, {denied}");
        assert_eq!(native::slice(&policy(1000), &demand), granted * MS, "{receiver} against {others}, {denied}");
    }
}

/// What is left, of 1, in a window that nothing is added to, asked at these times in ns.
fn left(mut window: cosched_window, times: impl Iterator<Item = u64>) -> [f64; 2] {
    let begun = window;
    times.for_each(|now_ns| native::window_add(&mut window, &policy(1000), now_ns, 0, 0));
    [window.cpu_ns as f64 / begun.cpu_ns as f64, window.fair_ns as f64 / begun.fair_ns as f64]
}

#[test]
fn the_window_forgets_in_steps() {
    const STEPS: u64 = COSCHED_WINDOW_STEPS as u64;
    let start = 77 * STEP_NS;
    let begun = cosched_window { cpu_ns: 1 << 30, fair_ns: 1 << 29, stepped_ns: start };
    let is = |left: [f64; 2], part: f64| left.iter().all(|left| (left - part).abs() < 0.001);
    let one = 1.0 / STEPS as f64;
    // All at once, after so many steps. A step is taken when it is over.
    for (steps, part) in [(0, 1.0), (1, 1.0 - one), (STEPS / 2, 0.5), (STEPS - 1, one), (STEPS, 0.0), (99 * STEPS, 0.0)]
    {
        for late in [0, STEP_NS - 1] {
            let left = left(begun, std::iter::once(start + steps * STEP_NS + late));
            assert!(is(left, part), "after {steps} steps and {late} ns: {left:?}, not {part}");
        }
    }
    // One after the other.
    for steps in [1, 10, STEPS, 3 * STEPS] {
        let left = left(begun, (1..=steps).map(|step| start + step * STEP_NS));
        assert!(is(left, (1.0 - one).powi(steps as i32)), "{steps} steps: {left:?}");
    }
}

/// What a job and its competitors used in each ms so far, summed up, and what the job's share was.
struct Trace {
    cpu: Vec<f64>,
    fair: Vec<f64>,
}

impl Trace {
    /// The job's F from `from` for `ms`.
    fn f(&self, from: usize, ms: usize) -> f64 {
        (self.cpu[from + ms] - self.cpu[from]) / (self.fair[from + ms] - self.fair[from])
    }

    /// The least and the greatest F over any 5 s in `ms` from `from` on.
    fn f_over_5s(&self, from: usize, ms: usize) -> (f64, f64) {
        (from..=from + ms - 5_000)
            .map(|at| self.f(at, 5_000))
            .fold((f64::INFINITY, 0.0), |(least, most), f| (f.min(least), f.max(most)))
    }

    /// The most CPU time in ms that the job has had in any `ms` after `from`.
    fn most(&self, from: usize, ms: usize) -> f64 {
        (from..self.cpu.len() - ms).map(|at| self.cpu[at + ms] - self.cpu[at]).fold(0.0, f64::max)
    }
}

/// Runs a CPU for `ms`, having `script` do with it what it wants in each of them.
fn run(mut cpu: Cpu, ms: usize, mut script: impl FnMut(usize, &mut Cpu)) -> Trace {
    let mut trace = Trace { cpu: vec![0.0], fair: vec![0.0] };
    for at in 0..ms {
        script(at, &mut cpu);
        cpu.step();
        trace.cpu.push(cpu.tasks[0].cpu);
        trace.fair.push(cpu.tasks[0].fair);
    }
    trace
}

const PLATEAU: usize = 12_000;

/// A job that always wants to run, and gets a message each `interval` ms, or for 0 has one that it never takes: as many
/// competitors as `steps` says, for 10 s each.
fn plateaus(target: u32, weight: f64, steps: &[usize], interval: usize) -> Trace {
    run(Cpu::new(policy(target), weight), steps.len() * PLATEAU, |at, cpu| {
        if at % PLATEAU == 0 {
            cpu.set_competitors(steps[at / PLATEAU]);
        }
        if at == 0 || (interval > 0 && at % interval == 0) {
            cpu.arrive();
        }
    })
}

#[test]
fn f_stays_within_5_percent_whatever_competitors_come_and_go() {
    let steps = [4, 1, 8, 4, 0, 8];
    for (weight, interval) in [100.0, 300.0].iter().flat_map(|w| [0, 1, 2, 3, 5, 7, 13, 50].map(|i| (*w, i))) {
        let trace = plateaus(1000, weight, &steps, interval);
        for (nr, competitors) in steps.iter().enumerate() {
            let (least, most) = trace.f_over_5s(nr * PLATEAU + 5_000, PLATEAU - 5_000);
            let whole = trace.f(nr * PLATEAU, PLATEAU);
            assert!(
                least >= 0.95 && most <= 1.05 && (0.95..=1.05).contains(&whole),
                "weight {weight}, a message each {interval} ms, {competitors} competitors in plateau {nr}: \
                 F {least:.3} to {most:.3} over 5 s, {whole:.3} in all"
            );
        }
    }
}

#[test]
fn a_target_below_1_leaves_what_the_fair_order_gives_anyway() {
    let steps = [4, 1, 8];
    let trace = plateaus(500, 100.0, &steps, 1);
    for nr in 0..steps.len() {
        let whole = trace.f(nr * PLATEAU, PLATEAU);
        assert!((0.95..=1.05).contains(&whole), "F {whole:.3} in plateau {nr}");
    }
}

#[test]
fn a_target_above_1_is_reached_if_the_order_leaves_as_much_and_never_made_up_for() {
    // With one competitor a share is a half, and twice that is all of the CPU: boosts have 8 of 9 slices.
    for (steps, reached) in [([4, 4], 2.0), ([1, 1], 16.0 / 9.0), ([1, 8], 2.0), ([0, 8], 2.0)] {
        let trace = plateaus(2000, 100.0, &steps, 1);
        let (least, most) = trace.f_over_5s(PLATEAU + 5_000, PLATEAU - 5_000);
        let whole = trace.f(PLATEAU, PLATEAU);
        assert!(
            (reached - 0.1..=reached + 0.1).contains(&least) && (reached - 0.1..=reached + 0.1).contains(&most),
            "{steps:?}: F {least:.3} to {most:.3}"
        );
        assert!(whole <= reached + 0.1, "{steps:?}: F {whole:.3} in all");
    }
}

/// A job that wants to run for `on` ms, in which a message comes each ms, and sleeps for `off`, in turns, for 40 s.
fn sleeper(competitors: usize, on: usize, off: usize, state: State) -> Trace {
    let mut cpu = Cpu::new(policy(1000), 100.0);
    cpu.set_competitors(competitors);
    run(cpu, 40_000, |at, cpu| if at % (on + off) < on { cpu.arrive() } else { cpu.sleep(state) })
}

const TURNS: [(usize, usize); 7] = [(5, 5), (20, 20), (50, 50), (500, 500), (2_000, 2_000), (5, 45), (300, 30)];

#[test]
fn a_job_that_sleeps_gets_no_more_than_its_share_of_the_whole_time() {
    for ((on, off), n) in TURNS.iter().flat_map(|turn| [1, 4, 8].map(|n| (*turn, n))) {
        for (name, state) in [("sleeps", State::Sleeps), ("awaits", State::Awaits)] {
            let used = sleeper(n, on, off, state).cpu[40_000];
            let share = 40_000.0 / (n + 1) as f64;
            assert!(used <= 1.05 * share, "runs {on}, {name} {off}, {n} competitors: {used} ms of {share}");
        }
    }
}

#[test]
fn a_job_that_awaits_a_message_half_of_the_time_gets_all_of_its_share() {
    for turn in [5, 20, 50] {
        let f = sleeper(4, turn, turn, State::Awaits).f(5_000, 30_000);
        assert!((0.95..=1.05).contains(&f), "turns of {turn} ms: F {f:.3}");
    }
}

/// The most CPU time in ms that a job of one in `n + 1` may have in any `ms`: its share; the credit that it had saved,
/// once; the band above the share in the window, which forgets as much again in the time that the window is wide; and
/// by how much a slice of the order and a tick go beyond.
fn allowed(n: usize, ms: f64) -> f64 {
    let share = 1.0 / (n + 1) as f64;
    let credit = CREDIT_NS as f64 / MS as f64;
    let band = (BAND * (WIDTH * share + credit)).clamp(8.0, 24.0);
    ms * share + credit + band * (1.0 + ms / WIDTH) + 20.0 + 4.0
}

#[test]
fn who_slept_for_seconds_holds_the_cpu_no_longer_than_its_credit_allows() {
    for ((on, off), n) in [(500, 500), (2_000, 3_000), (1_000, 9_000)].iter().flat_map(|t| [2, 4, 8].map(|n| (*t, n))) {
        let trace = sleeper(n, on, off, State::Awaits);
        let most = trace.most(10_000, 2_000);
        let bound = allowed(n, 2_000.0);
        assert!(most <= bound, "runs {on}, awaits {off}, {n} competitors: {most} ms of 2 s, more than {bound:.0}");
        // Which leaves the others most of their share.
        let others = (2_000.0 - bound) / (2_000.0 * n as f64 / (n + 1) as f64);
        assert!(others > 0.87, "{n} competitors: {others:.3}");
    }
}

prop_compose! {
    fn any_window()(cpu_ns in any_u64(), fair_ns in any_u64(), stepped_ns in any_u64()) -> cosched_window {
        cosched_window { cpu_ns, fair_ns, stepped_ns }
    }
}

/// The end of the band on one side, without any shortcut, in numbers so wide that nothing saturates until the end.
fn bound_by_definition(policy: &cosched_policy, demand: &cosched_demand, side: i128) -> u64 {
    let (fair, slice) = (i128::from(demand.fair_ns), i128::from(policy.slice_ns));
    let band = (fair / 40).clamp(slice / 5 * 2, slice / 5 * 6);
    let bound = fair * i128::from(policy.target_permille) / 1000 + side * band;
    u64::try_from(bound.max(0)).unwrap_or(u64::MAX)
}

/// Times of up to 100 days, and slices of up to 18 minutes, of which no sum saturates, so that the order of two is
/// kept.
fn within_months(policy: cosched_policy, demand: cosched_demand) -> (cosched_policy, cosched_demand) {
    let (cpu_ns, fair_ns) = (demand.cpu_ns >> 11, demand.fair_ns >> 11);
    let (receiver_ran_ns, running_ran_ns) = (demand.receiver_ran_ns >> 11, demand.running_ran_ns >> 11);
    let demand = cosched_demand { cpu_ns, fair_ns, receiver_ran_ns, running_ran_ns, ..demand };
    (cosched_policy { slice_ns: policy.slice_ns >> 24, ..policy }, demand)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_gate_is_its_definition_for_all_that_an_operator_can_set(
        policy in any_policy(AUTO..AUTO + 1), demand in any_demand(), target_permille in 100..=10_000u32,
    ) {
        let (policy, demand) = within_months(policy, demand);
        let policy = cosched_policy { target_permille, arrival: POLICY.arrival, ..policy };
        let upper_ns = bound_by_definition(&policy, &demand, 1);
        let bound_ns = if demand.denied != 0 { bound_by_definition(&policy, &demand, -1) } else { upper_ns };
        let lead_ns = i128::from(demand.receiver_ran_ns) - i128::from(demand.running_ran_ns);
        let most_ns = (i128::from(policy.slice_ns) * 2).min(i128::from(demand.max_lead_ns));
        let opens_ns = if demand.denied != 0 { most_ns / 2 } else { most_ns };
        prop_assert_eq!(grants(&policy, &demand), lead_ns < opens_ns && demand.cpu_ns < bound_ns);
        let room_ns = (most_ns - lead_ns).max(0) * i128::from(demand.scale);
        let room_ns = (room_ns.min(i128::from(u64::MAX)) >> COSCHED_SCALE_SHIFT) as u64;
        let left_ns = upper_ns.saturating_sub(demand.cpu_ns);
        prop_assert_eq!(native::slice(&policy, &demand), left_ns.min(room_ns).min(policy.slice_ns));
    }

    #[test]
    fn more_use_or_less_share_never_turns_a_denial_into_a_grant(
        policy in any_policy(AUTO..AUTO + 1), demand in any_demand(), more in any_u64(), less in any_u64(),
    ) {
        let (policy, demand) = within_months(policy, demand);
        let cpu_ns = demand.cpu_ns.saturating_add(more);
        let fair_ns = demand.fair_ns.saturating_sub(less);
        let worse = cosched_demand { cpu_ns, fair_ns, ..demand };
        prop_assert!(grants(&policy, &demand) || !grants(&policy, &worse));
    }

    #[test]
    fn a_window_never_holds_more_credit_than_some_slices(
        slice_ns in any_u64(), begun in any_window(),
        adds in prop::collection::vec((any_u64(), any_u64(), any_u64()), 1..8),
    ) {
        let policy = cosched_policy { slice_ns, ..policy(1000) };
        let credit_ns = slice_ns.saturating_mul(u64::from(COSCHED_WINDOW_CREDIT));
        let mut window = begun;
        for (now_ns, cpu_ns, fair_ns) in adds {
            native::window_add(&mut window, &policy, now_ns, cpu_ns, fair_ns);
            prop_assert!(window.fair_ns <= window.cpu_ns.saturating_add(credit_ns));
            prop_assert!(window.cpu_ns >= cpu_ns);
        }
    }

    #[test]
    fn a_window_that_is_left_alone_only_forgets(begun in any_window(), now_ns in any_u64(), later in any_u64()) {
        let at = |now_ns| {
            let mut window = begun;
            native::window_add(&mut window, &cosched_policy { slice_ns: u64::MAX, ..policy(1000) }, now_ns, 0, 0);
            window
        };
        let (sooner, later) = (at(now_ns), at(now_ns.saturating_add(later)));
        prop_assert!(later.cpu_ns <= sooner.cpu_ns && sooner.cpu_ns <= begun.cpu_ns);
        prop_assert!(later.fair_ns <= sooner.fair_ns && sooner.fair_ns <= begun.fair_ns);
        prop_assert!(later.stepped_ns >= sooner.stepped_ns && sooner.stepped_ns >= begun.stepped_ns);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn f_stays_close_to_1_for_any_steps(
        steps in prop::array::uniform3(0..=8usize), interval in 0..30usize,
        weight in prop::sample::select(vec![100.0, 200.0, 300.0]),
    ) {
        let trace = plateaus(1000, weight, &steps, interval);
        for nr in 0..steps.len() {
            let (least, most) = trace.f_over_5s(nr * PLATEAU + 5_000, PLATEAU - 5_000);
            prop_assert!(least >= 0.94 && most <= 1.06, "F {:.3} to {:.3} in plateau {}", least, most, nr);
        }
    }

    #[test]
    fn whatever_a_job_does_it_gains_no_more_than_5_percent(
        competitors in 1..=8usize,
        turns in prop::collection::vec((1..1_000usize, 0..1_000usize, any::<bool>(), 0..20usize), 10..40),
    ) {
        // It wants to run for a while, with a message each so many ms or one that it never takes, and then sleeps.
        let mut cpu = Cpu::new(policy(1000), 100.0);
        cpu.set_competitors(competitors);
        let mut script = turns.iter().cycle();
        let (mut turn, mut at_turn) = (*script.next().expect("there are turns"), 0);
        let trace = run(cpu, 20_000, |_, cpu| {
            let (on, off, awaits, interval) = turn;
            if at_turn == on {
                cpu.sleep(if awaits { State::Awaits } else { State::Sleeps });
            } else if at_turn == 0 || (at_turn < on && interval > 0 && at_turn % interval == 0) {
                cpu.arrive();
            }
            at_turn += 1;
            if at_turn > on + off {
                (turn, at_turn) = (*script.next().expect("they come again"), 0);
            }
        });
        let share = 20_000.0 / (competitors + 1) as f64;
        prop_assert!(trace.cpu[20_000] <= 1.05 * share, "{} ms of {}", trace.cpu[20_000], share);
        prop_assert!(trace.most(0, 2_000) <= allowed(competitors, 2_000.0), "{} ms of 2 s", trace.most(0, 2_000));
    }
}
