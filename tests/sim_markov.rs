// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the closed form of thesis 3.1 is right in every state to 10^-9: against the direct solution of the chain
//! whose states say of each single node what it runs, and for up to a million nodes against sums of logarithms.

use common::{error_of, scx_cosched};
use cosched_sim::markov::{Rates, steady_state};
use cosched_sim::scaled::Scaled;

mod common;

const fn rates(switches: f64, messages: f64) -> Rates {
    Rates { switches, messages }
}

/// Symmetric, asymmetric in each rate, and so that the states' probabilities differ by many orders of magnitude.
const CASES: [(Rates, Rates); 7] = [
    (rates(0.005, 0.5), rates(0.005, 0.5)),
    (rates(0.005, 0.49), rates(0.005, 0.5)),
    (rates(0.001, 0.25), rates(0.003, 0.5)),
    (rates(1.0, 0.0), rates(1.0, 0.0)),
    (rates(2.5, 0.0), rates(0.1, 7.0)),
    (rates(1e-6, 300.0), rates(1e-3, 1.0)),
    (rates(100.0, 1e-6), rates(1e-6, 1e-6)),
];

/// The rates from each of the 2^N states, node by node: bit n says that node n runs B.
fn moves(nodes: u32, state: usize, a: Rates, b: Rates) -> Vec<(usize, f64)> {
    let runs_b = |state: usize, node: u32| state >> node & 1 == 1;
    let mut moves = Vec::new();
    for sender in 0..nodes {
        let rates = if runs_b(state, sender) { b } else { a };
        moves.push((state ^ 1 << sender, rates.switches));
        // A message to each of the job's other processes alike: it has the process's node run the job.
        for to in (0..nodes).filter(|&to| to != sender) {
            let after = if runs_b(state, sender) { state | 1 << to } else { state & !(1 << to) };
            moves.push((after, rates.messages / f64::from(nodes - 1)));
        }
    }
    moves.retain(|&(after, rate)| after != state && rate > 0.0);
    moves
}

/// The steady state by the elimination of Grassmann, Taksar and Heyman, which never subtracts and so keeps every digit
/// but a few of every component, however small. Lumped by how many nodes run B.
fn directly(nodes: u32, a: Rates, b: Rates) -> Vec<f64> {
    let n = 1usize << nodes;
    let mut q = vec![vec![0.0; n]; n];
    for (state, row) in q.iter_mut().enumerate() {
        moves(nodes, state, a, b).into_iter().for_each(|(after, rate)| row[after] += rate);
    }
    for k in (1..n).rev() {
        let out: f64 = q[k][..k].iter().sum();
        for i in 0..k {
            q[i][k] /= out;
            for j in (0..k).filter(|&j| j != i) {
                q[i][j] += q[i][k] * q[k][j];
            }
        }
    }
    let mut p = vec![1.0; n];
    for k in 1..n {
        p[k] = (0..k).map(|i| p[i] * q[i][k]).sum();
    }
    let sum: f64 = p.iter().sum();
    let mut lumped = vec![0.0; nodes as usize + 1];
    p.iter().enumerate().for_each(|(state, p)| lumped[state.count_ones() as usize] += p / sum);
    lumped
}

#[test]
fn every_state_is_that_of_the_chain_of_single_nodes() {
    for (a, b) in CASES {
        for nodes in 1..=8 {
            let found = steady_state(nodes, a, b).unwrap();
            let wanted = directly(nodes, a, b);
            assert_eq!(found.len(), wanted.len());
            for (i, (found, wanted)) in found.iter().zip(wanted).enumerate() {
                let error = (found.value() / wanted - 1.0).abs();
                assert!(error < 1e-12, "{nodes} nodes {a:?} {b:?} state {i}: {} for {wanted}", found.value());
            }
        }
    }
}

#[test]
fn what_is_known_by_other_means() {
    // Without messages each node is on its own: binomial, which for a share of 1/2 is symmetric.
    let states = steady_state(10, rates(1.0, 0.0), rates(3.0, 0.0)).unwrap();
    let binomial = |i: i32, n: f64| 0.25f64.powi(i) * 0.75f64.powi(10 - i) * n;
    for (i, n) in [(0, 1.0), (1, 10.0), (2, 45.0), (5, 252.0), (10, 1.0)] {
        assert!((states[i as usize].value() / binomial(i, n) - 1.0).abs() < 1e-13);
    }
    // Thesis 3.1: of jobs that send 0.49 and 0.50 the one is coscheduled 2% of the time, the other three times as
    // often.
    let states = steady_state(64, rates(0.005, 0.49), rates(0.005, 0.5)).unwrap();
    let [a, b] = [states[0].value(), states[64].value()];
    assert!((0.015..0.025).contains(&a) && (2.5..3.5).contains(&(b / a)), "{a} {b}");
    // And with several hundred messages between switches all nodes run one job half of the time.
    let coscheduled = |messages: f64| {
        let states = steady_state(64, rates(1.0, messages), rates(1.0, messages)).unwrap();
        states[0].value() + states[64].value()
    };
    assert!(coscheduled(200.0) < 0.5 && coscheduled(1000.0) > 0.5 && coscheduled(1.0) < 1e-6);
}

/// ln(k!) to all digits, by Stirling's series.
fn ln_factorial(k: f64) -> f64 {
    if k < 20.0 {
        return (1..=k as u64).map(|i| (i as f64).ln()).sum();
    }
    let series = 1.0 / (12.0 * k) - 1.0 / (360.0 * k.powi(3)) + 1.0 / (1260.0 * k.powi(5));
    k * k.ln() - k + 0.5 * (std::f64::consts::TAU * k).ln() + series
}

#[test]
fn a_million_nodes_lose_no_digits() {
    // Without messages and q_S,A = q_S,B, p(i) = N! / (i! (N-i)! 2^N). Near the middle logarithms cancel to what
    // floating point can hold; 2^-N itself is exact at the ends.
    let n = 1_000_000u32;
    let states = steady_state(n, rates(1.0, 0.0), rates(1.0, 0.0)).unwrap();
    for (i, digits, power) in [(0, "1.0100340591980302", "e-301030"), (1_000_000, "1.0100340591980302", "e-301030")] {
        let text = states[i].text();
        let (found, wanted): (f64, f64) = (text[..18].parse().unwrap(), digits.parse().unwrap());
        assert!(text.ends_with(power) && (found / wanted - 1.0).abs() < 1e-9, "{text}");
    }
    let n = f64::from(n);
    let middle = (ln_factorial(n) - 2.0 * ln_factorial(n / 2.0) - n * 2f64.ln()).exp();
    assert!((states[500_000].value() / middle - 1.0).abs() < 1e-7, "as far as the reference goes");
    // Stirling's series of the quotient itself has all digits: sqrt(2 / (pi N)) (1 - 1/(4N) + 1/(32 N^2)).
    let middle = (2.0 / (std::f64::consts::PI * n)).sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (32.0 * n * n));
    assert!((states[500_000].value() / middle - 1.0).abs() < 1e-9);
    let sum = states.iter().fold(Scaled::ZERO, |sum, &state| sum.plus(state));
    assert!((sum.value() - 1.0).abs() < 1e-9);
}

#[test]
fn balance_holds_between_all_neighbours_of_a_large_chain() {
    let (a, b) = (rates(0.002, 0.3), rates(0.004, 0.29));
    let (n, states) = (50_000.0, steady_state(50_000, a, b).unwrap());
    for i in (0..50_000).step_by(7) {
        let k = i as f64;
        let up = (n - k) * (a.switches + k * b.messages / (n - 1.0));
        let down = (k + 1.0) * (b.switches + (n - k - 1.0) * a.messages / (n - 1.0));
        let ratio = states[i + 1].over(states[i]).value();
        assert!((ratio * down / up - 1.0).abs() < 1e-12, "{i}");
    }
}

#[test]
fn a_job_that_is_never_left_keeps_all_nodes() {
    let states = |a, b| steady_state(3, a, b).unwrap().iter().map(|state| state.value()).collect::<Vec<_>>();
    assert_eq!(states(rates(0.0, 1.0), rates(1.0, 1.0)), [1.0, 0.0, 0.0, 0.0]);
    assert_eq!(states(rates(1.0, 0.0), rates(0.0, 1.0)), [0.0, 0.0, 0.0, 1.0]);
    assert!(steady_state(3, rates(0.0, 1.0), rates(0.0, 1.0)).is_err());
}

#[test]
fn the_program_prints_what_it_promises() {
    let args = ["sim", "markov", "--nodes", "2", "--qs-a", "1", "--qs-b", "1", "--qm-a", "0", "--qm-b", "0", "--json"];
    let output = scx_cosched(&args);
    assert!(output.status.success());
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value, serde_json::json!({"states": [0.25, 0.5, 0.25]}));
    let (message, code) = error_of(&["sim", "markov", "--qs-a", "0", "--qs-b", "0"]);
    assert!(code == 2 && message.contains("--qs-a and --qs-b must be above 0"), "{message}");
}
