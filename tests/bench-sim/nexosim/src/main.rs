// SPDX-License-Identifier: GPL-2.0-only
//! The workload of `make bench-sim` in NeXosim: a model per process, one thread.
//!
//!   bench-sim-nexosim NODES ITERATIONS SEED G_NS V_NS C_NS L_NS
//!
//! A message is an event that its sender schedules at its receiver, L later, by a handle of the scheduler. The way of
//! NeXosim's guide, where the sender schedules an event at itself that sends from a port, goes through two mailboxes
//! instead of one, as does a receiver that delays what has come: both take 1.3 to 2.9 times as long.

use std::env;
use std::error::Error;
use std::fs;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use nexosim::model::{Context, Model, schedulable};
use nexosim::ports::EventSource;
use nexosim::simulation::{EventId, Mailbox, Scheduler, SimInit};
use nexosim::time::MonotonicTime;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Reads in an iteration.
const READS: u32 = 4;

/// How messages get to processes, by their rank.
struct Network {
    scheduler: Scheduler,
    arrived: EventId<()>,
    released: Vec<EventId<()>>,
    asked: Vec<EventId<u32>>,
    answered: Vec<EventId<u32>>,
}

/// A model is a value that can be saved, which a scheduler cannot; and there is one only when the models are in place.
static NETWORK: OnceLock<Network> = OnceLock::new();
static DELIVERED: AtomicU64 = AtomicU64::new(0);
static END_NS: AtomicU64 = AtomicU64::new(0);

fn network() -> &'static Network {
    NETWORK.get().expect("it is there before the first event")
}

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Workload {
    nodes: u32,
    height: u32,
    iterations: u32,
    granularity_ns: u64,
    imbalance_ns: u64,
    gap: Duration,
    latency: Duration,
}

impl Workload {
    /// From whom `rank` reads: its neighbours on a torus (crates/sim/src/jobs.rs).
    fn source(&self, rank: u32, read: u32) -> usize {
        let (height, width) = (self.height, self.nodes / self.height);
        let (row, column) = (rank / width, rank % width);
        let source = match read {
            0 => (row + height - 1) % height * width + column,
            1 => row * width + (column + 1) % width,
            2 => row * width + (column + width - 1) % width,
            _ => (row + 1) % height * width + column,
        };
        source as usize
    }
}

#[derive(Serialize, Deserialize)]
struct Process {
    workload: Workload,
    rank: u32,
    iterations_left: u32,
    /// Whether the barrier that comes is the opening one.
    opening: bool,
    /// The root's: how many are at the barrier.
    counted: u32,
    delivered: u64,
    #[serde(skip)]
    random: Option<Xoshiro256PlusPlus>,
}

#[Model]
impl Process {
    #[nexosim(init)]
    async fn init(&mut self, cx: &Context<Self>) {
        self.begin(cx);
    }

    fn begin(&mut self, cx: &Context<Self>) {
        if self.iterations_left == 0 {
            DELIVERED.fetch_add(self.delivered, Ordering::Relaxed);
            let now = cx.time().duration_since(MonotonicTime::EPOCH);
            END_NS.fetch_max(now.as_nanos() as u64, Ordering::Relaxed);
            return;
        }
        self.iterations_left -= 1;
        self.opening = true;
        let Workload { granularity_ns, imbalance_ns, .. } = self.workload;
        let number = self.random.as_mut().expect("no process was ever saved").next_u64();
        let uneven_ns = ((u128::from(number) * u128::from(imbalance_ns + 1)) >> 64) as u64;
        self.compute(Duration::from_nanos(granularity_ns - imbalance_ns / 2 + uneven_ns), READS, cx);
    }

    /// Computes, and then does what has this number: a read, or after the last of them the barrier.
    fn compute(&self, time: Duration, next: u32, cx: &Context<Self>) {
        cx.schedule_event(time, schedulable!(Self::computed), next).expect("it is in the future");
    }

    fn send<T: Send + Clone + 'static>(&self, to: &EventId<T>, what: T) {
        network().scheduler.schedule_event(self.workload.latency, to, what).expect("it is in the future");
    }

    #[nexosim(schedulable)]
    fn computed(&mut self, next: u32) {
        if next < READS {
            self.send(&network().asked[self.workload.source(self.rank, next)], next);
        } else {
            self.send(&network().arrived, ());
        }
    }

    fn arrived(&mut self) {
        self.delivered += 1;
        self.counted += 1;
        if self.counted == self.workload.nodes {
            self.counted = 0;
            network().released.iter().for_each(|process| self.send(process, ()));
        }
    }

    fn released(&mut self, _: (), cx: &Context<Self>) {
        self.delivered += 1;
        if std::mem::take(&mut self.opening) { self.compute(self.workload.gap, 0, cx) } else { self.begin(cx) }
    }

    fn asked(&mut self, read: u32) {
        self.delivered += 1;
        // Who reads from its neighbour on one side is that on the other.
        self.send(&network().answered[self.workload.source(self.rank, READS - 1 - read)], read);
    }

    fn answered(&mut self, read: u32, cx: &Context<Self>) {
        self.delivered += 1;
        self.compute(self.workload.gap, read + 1, cx);
    }
}

/// As in crates/sim/src/random.rs.
fn scramble(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// What this process, which has one thread, has used of the CPU.
fn cpu_seconds() -> Result<f64, Box<dyn Error>> {
    let used = fs::read_to_string("/proc/self/schedstat")?;
    let used_ns: u64 = used.split(' ').next().unwrap_or("").parse()?;
    Ok(used_ns as f64 / 1e9)
}

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> = env::args().skip(1).map(|text| text.parse()).collect::<Result<_, _>>()?;
    let &[nodes, iterations, seed, granularity_ns, imbalance_ns, gap_ns, latency_ns] = numbers.as_slice() else {
        return Err("usage: bench-sim-nexosim NODES ITERATIONS SEED G_NS V_NS C_NS L_NS".into());
    };
    let (began, nodes) = (Instant::now(), u32::try_from(nodes)?);
    let workload = Workload {
        nodes,
        height: (1..=nodes.isqrt()).rev().find(|side| nodes.is_multiple_of(*side)).ok_or("NODES: 0")?,
        iterations: u32::try_from(iterations)?,
        granularity_ns,
        imbalance_ns,
        gap: Duration::from_nanos(gap_ns),
        latency: Duration::from_nanos(latency_ns),
    };
    let mut bench = SimInit::with_num_threads(1);
    let (mut arrived, mut released, mut asked, mut answered) = (None, vec![], vec![], vec![]);
    for rank in 0..nodes {
        let stream = scramble(scramble(seed) ^ (1 + u64::from(rank)));
        let process = Process {
            workload,
            rank,
            iterations_left: workload.iterations,
            opening: false,
            counted: 0,
            delivered: 0,
            random: Some(Xoshiro256PlusPlus::seed_from_u64(stream)),
        };
        let mailbox = Mailbox::new();
        released.push(EventSource::new().connect(Process::released, &mailbox).register(&mut bench));
        asked.push(EventSource::new().connect(Process::asked, &mailbox).register(&mut bench));
        answered.push(EventSource::new().connect(Process::answered, &mailbox).register(&mut bench));
        if rank == 0 {
            arrived = Some(EventSource::new().connect(Process::arrived, &mailbox).register(&mut bench));
        }
        bench = bench.add_model(process, mailbox, &rank.to_string());
    }
    let mut simulation = bench.init(MonotonicTime::EPOCH)?;
    let (scheduler, arrived) = (simulation.scheduler(), arrived.ok_or("NODES: 0")?);
    let _ = NETWORK.set(Network { scheduler, arrived, released, asked, answered });
    let (setup_cpu_s, setup_s) = (cpu_seconds()?, began.elapsed().as_secs_f64());
    simulation.run()?;
    let (end_ns, messages) = (END_NS.load(Ordering::Relaxed), DELIVERED.load(Ordering::Relaxed));
    println!(r#"{{"end_ns": {end_ns}, "messages": {messages}, "setup_cpu_s": {setup_cpu_s}, "setup_s": {setup_s}}}"#);
    Ok(())
}
