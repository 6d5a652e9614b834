// SPDX-License-Identifier: GPL-2.0-only
//! Claim: events happen in the order of (time, sequence), whatever way they were scheduled in, and one seed makes one
//! trace, byte for byte.

use std::fs;

use common::scx_cosched;
use cosched_sim::engine::{Lane, Model, Queue, run};
use cosched_sim::random::Random;
use proptest::prelude::*;

mod common;

/// Pops all, as (time, event).
fn drain(queue: &mut Queue<u32>) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| queue.pop().map(|event| (queue.now_ns(), event))).collect()
}

#[test]
fn of_equal_times_the_first_scheduled_comes_first() {
    let mut queue = Queue::new(2);
    queue.at(5, 0);
    queue.after(Lane(0), 5, 1);
    queue.at(3, 2);
    queue.after(Lane(1), 5, 3);
    queue.at(5, 4);
    queue.after(Lane(0), 5, 5);
    assert_eq!(queue.len(), 6);
    assert_eq!(drain(&mut queue), [(3, 2), (5, 0), (5, 1), (5, 3), (5, 4), (5, 5)]);
    assert!(queue.is_empty());
}

#[test]
fn a_lane_whose_delay_is_not_constant_keeps_the_order() {
    let mut queue = Queue::new(1);
    for (event, delay_ns) in [(0, 10), (1, 4), (2, 10), (3, 7)] {
        queue.after(Lane(0), delay_ns, event);
    }
    assert_eq!(drain(&mut queue), [(4, 1), (7, 3), (10, 0), (10, 2)]);
}

/// Schedules what a random program says, and notes what happens.
struct Chatter {
    random: Random,
    seen: Vec<(u64, u32)>,
    left: u32,
}

impl Model for Chatter {
    type Event = u32;

    fn handle(&mut self, event: u32, queue: &mut Queue<u32>) -> bool {
        self.seen.push((queue.now_ns(), event));
        for _ in 0..self.random.below(3) {
            self.left -= 1;
            match self.random.below(3) {
                0 => queue.at(queue.now_ns() + self.random.below(50), self.left),
                lane => queue.after(Lane(lane as usize - 1), 10 * lane, self.left),
            }
            if self.left == 0 {
                break;
            }
        }
        !event.is_multiple_of(3)
    }

    fn is_over(&self) -> bool {
        self.left == 0
    }
}

#[test]
fn an_event_that_was_cancelled_does_not_count() {
    let mut queue = Queue::new(2);
    (0..100).for_each(|i| queue.at(i, 0));
    let mut model = Chatter { random: Random::new(1, 1), seen: vec![], left: 50_000 };
    let mut told = 0;
    let events = run(&mut model, &mut queue, |_, _| told += 1);
    assert_eq!(told, model.seen.len());
    assert_eq!(events as usize, model.seen.iter().filter(|(_, event)| event % 3 != 0).count());
    assert!(model.seen.is_sorted_by_key(|&(time, _)| time));
}

/// What `sim bsp` writes as its trace with this seed.
fn trace(seed: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("trace");
    let args = ["sim", "bsp", "--nodes", "8", "--iterations", "50", "--imbalance", "1", "--runs", "2", "--seed", seed];
    let output = scx_cosched(&[&args[..], &["--trace", path.to_str().unwrap()]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(&path).unwrap()
}

#[test]
fn one_seed_makes_one_trace_and_another_another() {
    let first = trace("7");
    assert!(first.len() > 100_000, "{} bytes", first.len());
    assert!(trace("7") == first);
    assert!(trace("8") != first);
}

#[test]
fn streams_are_independent_and_their_numbers_as_they_should_be() {
    let sum = |stream| {
        let mut random = Random::new(3, stream);
        (0..100_000).map(|_| random.exponential_ns(1e6) as f64).sum::<f64>() / 1e5
    };
    // The mean of 100,000 has a deviation of 1 / 316.
    assert!((sum(0) / 1e6 - 1.0).abs() < 0.015 && sum(0) != sum(1));
    let mut random = Random::new(3, 0);
    let mut counts = [0; 7];
    (0..70_000).for_each(|_| counts[random.below(7) as usize] += 1);
    assert!(counts.iter().all(|&count: &i32| (count - 10_000).abs() < 500), "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_scheduled_comes_in_order(
        steps in prop::collection::vec((0..4usize, 0..100u64, any::<bool>()), 1..300),
    ) {
        let mut queue = Queue::new(3);
        let (mut wanted, mut found) = (Vec::new(), Vec::new());
        for (sequence, (way, delay_ns, pops)) in steps.into_iter().enumerate() {
            let due_ns = queue.now_ns() + delay_ns;
            match way {
                3 => queue.at(due_ns, sequence as u32),
                lane => queue.after(Lane(lane), delay_ns, sequence as u32),
            }
            wanted.push((due_ns, sequence as u32));
            if pops && let Some(event) = queue.pop() {
                found.push((queue.now_ns(), event));
            }
        }
        found.extend(drain(&mut queue));
        prop_assert!(found.is_sorted_by_key(|&(time, _)| time));
        // What is popped between may be later than what is scheduled after it; of one time the order is that of
        // sequence.
        prop_assert!(found.windows(2).all(|w| w[0].0 < w[1].0 || w[0].1 < w[1].1));
        found.sort_unstable();
        wanted.sort_unstable();
        prop_assert_eq!(found, wanted);
    }
}
