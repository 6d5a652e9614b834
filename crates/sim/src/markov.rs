// SPDX-License-Identifier: GPL-2.0-only
//! The Markov model of the gate `always` (thesis 3.1): two jobs A and B of N processes each on N nodes.
//!
//! In state i, i nodes run B and N - i run A. A node leaves what it runs
//!
//! - spontaneously, at the rate q_S of the job that it runs, and
//! - for a message of the other job. A node that runs B sends at the rate q_M,B to one of the other N - 1 processes of B,
//!   each of them alike. N - i of those are on nodes that run A, and such a node switches.
//!
//! So i goes up by one at the rate (N - i) (q_S,A + i q_M,B / (N - 1)), and down by one at i (q_S,B + (N - i) q_M,A /
//! (N - 1)). It never leaps, so in the steady state as much goes from i to i + 1 as comes back:
//!
//! ```text
//! p(i+1) (i+1) (q_S,B + (N-i-1) q_M,A / (N-1)) = p(i) (N-i) (q_S,A + i q_M,B / (N-1))
//! ```
//!
//! which with the sum of all being 1 is the closed form. A single node has nobody to hear from.

use crate::scaled::Scaled;

/// The rates of a job, per unit of time; any unit, the same everywhere.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// q_S: of spontaneous switches away from each of its processes while that runs.
    pub switches: f64,
    /// q_M: of messages that each of its processes sends while it runs.
    pub messages: f64,
}

/// The steady-state probabilities of the states 0 to `nodes`: that so many nodes run job B. Each has a relative error
/// below 10^-9 for up to a million nodes.
///
/// # Errors
/// One line, if neither job is ever left spontaneously: then the first state in which all nodes run one job lasts for
/// ever, and which that is depends on the start.
pub fn steady_state(nodes: u32, a: Rates, b: Rates) -> Result<Vec<Scaled>, String> {
    if a.switches == 0.0 && b.switches == 0.0 {
        return Err("without spontaneous switches no state is steady (one of --qs-a and --qs-b must be above 0)".into());
    }
    let n = nodes as usize;
    let mut states = vec![Scaled::ZERO; n + 1];
    // A job that is never left keeps all nodes.
    if b.switches == 0.0 {
        states[n] = Scaled::ONE;
        return Ok(states);
    }
    states[0] = Scaled::ONE;
    for i in 0..n {
        states[i + 1] = states[i].times(ratio(nodes, i as f64, a, b));
    }
    let sum = states.iter().fold(Scaled::ZERO, |sum, &state| sum.plus(state));
    states.iter_mut().for_each(|state| *state = state.over(sum));
    Ok(states)
}

/// p(i+1) / p(i), above and below multiplied by N - 1.
fn ratio(nodes: u32, i: f64, a: Rates, b: Rates) -> f64 {
    let n = f64::from(nodes);
    // With one node nobody hears a message, and the factor only has to be the same on both sides.
    let (others, heard) = if nodes > 1 { (n - 1.0, 1.0) } else { (1.0, 0.0) };
    let up = (n - i) * (a.switches * others + i * b.messages * heard);
    let down = (i + 1.0) * (b.switches * others + (n - i - 1.0) * a.messages * heard);
    up / down
}
