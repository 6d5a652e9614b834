// SPDX-License-Identifier: GPL-2.0-only
//! The engine alone, beside Cimba's (`make bench-sim`): one server, a queue, and as many customers as asked for.
//!
//! `mm1 CUSTOMERS SEED` prints the mean time from arrival to departure, in means of a service, as JSON. Times are
//! exponential, and nine in ten of the server's time are asked for. `tests/bench-sim/cimba.c` draws the same.

use std::collections::VecDeque;

use cosched_sim::engine::{self, Model, Queue};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

const SERVICE_NS: f64 = 1e6;
const LOAD: f64 = 0.9;

/// `SplitMix64` is short enough to be written down in C too.
fn exponential_ns(stream: &mut SplitMix64, mean_ns: f64) -> u64 {
    let unit = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    (-(1.0 - unit).ln() * mean_ns) as u64
}

#[derive(Clone, Copy)]
enum Event {
    Arrives,
    Departs,
}

struct Server {
    arrivals: SplitMix64,
    services: SplitMix64,
    waiting: VecDeque<u64>,
    left: u64,
    served: u64,
    sum_ns: u64,
}

impl Server {
    fn serves(&mut self, queue: &mut Queue<Event>) {
        let service_ns = exponential_ns(&mut self.services, SERVICE_NS);
        queue.at(queue.now_ns() + service_ns, Event::Departs);
    }

    fn awaits(&mut self, queue: &mut Queue<Event>) {
        if self.left > 0 {
            self.left -= 1;
            let between_ns = exponential_ns(&mut self.arrivals, SERVICE_NS / LOAD);
            queue.at(queue.now_ns() + between_ns, Event::Arrives);
        }
    }
}

impl Model for Server {
    type Event = Event;

    fn handle(&mut self, event: Event, queue: &mut Queue<Event>) -> bool {
        match event {
            Event::Arrives => {
                self.waiting.push_back(queue.now_ns());
                if self.waiting.len() == 1 {
                    self.serves(queue);
                }
                self.awaits(queue);
            }
            Event::Departs => {
                let came_ns = self.waiting.pop_front().expect("somebody is served");
                self.sum_ns += queue.now_ns() - came_ns;
                self.served += 1;
                if !self.waiting.is_empty() {
                    self.serves(queue);
                }
            }
        }
        true
    }

    fn is_over(&self) -> bool {
        false
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|text| text.parse::<u64>().expect("CUSTOMERS SEED"));
    let (Some(customers), Some(seed)) = (numbers.next(), numbers.next()) else { panic!("CUSTOMERS SEED") };
    let (arrivals, services) = (SplitMix64::seed_from_u64(seed), SplitMix64::seed_from_u64(!seed));
    let mut server = Server { arrivals, services, waiting: VecDeque::new(), left: customers, served: 0, sum_ns: 0 };
    let mut queue = Queue::new(0);
    server.awaits(&mut queue);
    let events = engine::run(&mut server, &mut queue, |_, _| {});
    let mean = server.sum_ns as f64 / server.served as f64 / SERVICE_NS;
    println!(r#"{{"mean": {mean}, "served": {}, "events": {events}}}"#, server.served);
}
