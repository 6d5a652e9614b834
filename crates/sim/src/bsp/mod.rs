// SPDX-License-Identifier: GPL-2.0-only
//! `sim bsp`: bulk-synchronous jobs under implicit scheduling, against ideal coscheduling (Dusseau 1996).
//!
//! Slowdown is the time in which local scheduling completes all jobs over that of coscheduling without skew, which
//! gives each job all nodes for 500 ms in turn, and has its processes spin in all waits. That is as long as the jobs
//! take one after the other, each alone, plus a switch every 500 ms; the same random numbers serve both.

mod messages;
mod model;
mod process;
mod readings;
mod steps;

use serde::Serialize;

use super::engine::{self, Queue};
use super::jobs::Program;
use super::local::{Fair, Feedback, LocalScheduler, Svr4};
use super::node::{USES, Use};
use super::policy::{Costs, WaitRule};
use model::{Bsp, Event, LANES};
pub use readings::{Reading, Readings};

/// How long a job has all nodes under coscheduling, in ns (Dusseau 3.4).
const COSCHEDULING_QUANTUM_NS: u64 = 500_000_000;

/// What a message does with a process that sleeps, if that is not what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wakeup {
    /// It handles the message before all others on its CPU, and sleeps again at once (Dusseau 3.3).
    Urgent,
    /// It gets the level of one that returns from sleep, and when it has its turn spins for W before it sleeps again
    /// (Arpaci-Dusseau 4, note 5).
    Ordinary,
    /// The same, and it takes W on an idle CPU too, whoever ran last there (Arpaci-Dusseau 3.1, 3.3).
    Charged,
}

/// Which local scheduler each CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheduler {
    /// Time-sharing of System V Release 4.
    Svr4,
    /// One level, with this quantum in ns.
    RoundRobin(u64),
    /// Zhang's feedback queue.
    Feedback,
    /// The fair order of `bpf/`, with this slice in ns.
    Fair(u64),
}

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Setup {
    /// How many nodes there are, and processes in each job.
    pub nodes: u32,
    /// How many jobs there are, all alike.
    pub jobs: u32,
    /// What they do.
    pub program: Program,
    /// Of messages and switches.
    pub costs: Costs,
    /// How a process waits.
    pub wait: WaitRule,
    /// Which process has the CPU.
    pub scheduler: Scheduler,
    /// SVR4 and round robin: whether a process that left its CPU in the present tick comes back before its equals.
    pub by_tick: bool,
    /// What a message does with a process that sleeps.
    pub wakeup: Wakeup,
    /// Whether the clocks of all CPUs tick at the same time (Dusseau 7.1).
    pub aligned: bool,
    /// Whether there are clocks at all.
    pub has_clocks: bool,
    /// Whether the barriers' roots are on different nodes; else all are on the first.
    pub spread_roots: bool,
}

/// What the CPUs' time went to: shares of the whole, in the mean over CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Breakdown {
    /// Computing.
    pub compute: f64,
    /// Spinning for the answers to reads.
    pub communicate: f64,
    /// Spinning at barriers.
    pub synchronize: f64,
    /// Switching.
    pub switch: f64,
    /// Idle.
    pub idle: f64,
}

impl Breakdown {
    /// Of CPUs that were there for `cpu_ns`, all together.
    fn of(used_ns: [u64; USES], cpu_ns: u64) -> Breakdown {
        Breakdown::from(used_ns.map(|ns| ns as f64 / cpu_ns.max(1) as f64))
    }

    /// The parts, in the order of [`Use`](crate::node::Use).
    pub fn parts(&self) -> [f64; USES] {
        [self.compute, self.communicate, self.synchronize, self.switch, self.idle]
    }

    /// The mean of several.
    pub fn mean<'a>(all: impl Iterator<Item = &'a Breakdown> + Clone) -> Breakdown {
        let count = all.clone().count().max(1) as f64;
        Breakdown::from(std::array::from_fn(|part| all.clone().map(|it| it.parts()[part]).sum::<f64>() / count))
    }
}

impl From<[f64; USES]> for Breakdown {
    fn from([compute, communicate, synchronize, switch, idle]: [f64; USES]) -> Breakdown {
        Breakdown { compute, communicate, synchronize, switch, idle }
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Of local scheduling, in ns.
    pub local_ns: u64,
    /// Of ideal coscheduling, in ns.
    pub ideal_ns: u64,
    /// Of local scheduling.
    pub breakdown: Breakdown,
    /// Of ideal coscheduling.
    pub ideal: Breakdown,
    /// The shares of reads, of opening barriers and of closing ones that ended while their process spun; none if there
    /// were none.
    pub successful: [Option<f64>; 3],
    /// Of both simulations.
    pub events: u64,
}

impl Outcome {
    /// Local scheduling over coscheduling.
    pub fn slowdown(&self) -> f64 {
        self.local_ns as f64 / self.ideal_ns as f64
    }
}

/// What a simulation of the model says.
struct Simulated {
    done_ns: u64,
    used_ns: [u64; USES],
    successful: [Option<f64>; 3],
    events: u64,
}

fn simulate_with<S: LocalScheduler + Clone>(
    setup: &Setup,
    first_job: u32,
    seed: u64,
    local: &S,
    seen: &mut dyn FnMut(u64, &Event),
) -> Simulated {
    let mut queue = Queue::new(LANES);
    let mut model = Bsp::new(setup, first_job, seed, local);
    model.start(&mut queue, seed);
    let events = engine::run(&mut model, &mut queue, seen);
    let successful = model.successes.map(|[good, all]| (all > 0).then(|| good as f64 / all as f64));
    Simulated { done_ns: model.done_ns(), used_ns: model.used_ns(), successful, events }
}

fn simulate_local(setup: &Setup, seed: u64, seen: &mut dyn FnMut(u64, &Event)) -> Simulated {
    let slots = setup.jobs as usize;
    match setup.scheduler {
        Scheduler::Svr4 => simulate_with(setup, 0, seed, &Svr4::new(slots).by_tick(setup.by_tick), seen),
        Scheduler::RoundRobin(quantum_ns) => {
            let local = Svr4::round_robin(slots, quantum_ns).by_tick(setup.by_tick);
            simulate_with(setup, 0, seed, &local, seen)
        }
        Scheduler::Feedback => simulate_with(setup, 0, seed, &Feedback::new(slots), seen),
        Scheduler::Fair(slice_ns) => simulate_with(setup, 0, seed, &Fair::new(slots, slice_ns), seen),
    }
}

/// Ideal coscheduling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coscheduled {
    /// How long it takes, in ns.
    pub ns: u64,
    /// What the CPUs' time goes to.
    pub breakdown: Breakdown,
    events: u64,
}

/// Simulates all jobs one after the other, and adds the switches.
pub fn coschedule(setup: &Setup, seed: u64) -> Coscheduled {
    let alone = Setup { jobs: 1, wait: WaitRule::Busy, has_clocks: false, ..setup.clone() };
    let local = Svr4::round_robin(1, COSCHEDULING_QUANTUM_NS);
    let (mut alone_ns, mut used_ns, mut events) = (0, [0; USES], 0);
    for job in 0..setup.jobs {
        // Each has the random numbers of its place among all, and does not pay for being loaded once.
        let one = simulate_with(&alone, job, seed, &local, &mut |_, _| {});
        alone_ns += one.done_ns - setup.costs.switch_ns;
        used_ns.iter_mut().zip(one.used_ns).for_each(|(sum, used)| *sum += used);
        events += one.events;
    }
    let (switches, nodes) = (alone_ns / COSCHEDULING_QUANTUM_NS + 1, u64::from(setup.nodes));
    let ns = alone_ns + switches * setup.costs.switch_ns;
    used_ns[Use::Switch as usize] = nodes * switches * setup.costs.switch_ns;
    Coscheduled { ns, breakdown: Breakdown::of(used_ns, nodes * ns), events }
}

/// Simulates local scheduling and ideal coscheduling of the same work. `seed` decides all that is random; `seen` is
/// told of each event under local scheduling, with its time in ns: the trace.
pub fn simulate(setup: &Setup, seed: u64, seen: &mut dyn FnMut(u64, &dyn std::fmt::Debug)) -> Outcome {
    let local = simulate_local(setup, seed, &mut |now_ns, event| seen(now_ns, event));
    let ideal = coschedule(setup, seed);
    Outcome {
        local_ns: local.done_ns,
        ideal_ns: ideal.ns,
        breakdown: Breakdown::of(local.used_ns, u64::from(setup.nodes) * local.done_ns),
        ideal: ideal.breakdown,
        successful: local.successful,
        events: local.events + ideal.events,
    }
}
