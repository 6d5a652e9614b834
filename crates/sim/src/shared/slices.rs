// SPDX-License-Identifier: GPL-2.0-only
//! Which task had which CPU, and when: what the picture of the README draws.

use super::Setup;
use super::model::{LANES, Shared};
use crate::engine::{Model, Queue};

/// A task had a CPU for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slice {
    /// The CPU; with one CPU a node, the node.
    pub cpu: u32,
    /// The task: its slot of the node. Processes of jobs come first, and then competitors.
    pub slot: u32,
    /// From when, ns.
    pub since_ns: u64,
    /// Until when.
    pub until_ns: u64,
}

/// The slices of the run that `seed` decides, in the order of their ends, without those of the time before anything
/// counts. Times are from the start of the run.
pub fn slices(setup: &Setup, seed: u64) -> Vec<Slice> {
    let mut queue = Queue::new(LANES);
    let mut model = Shared::new(setup, seed);
    model.start(&mut queue);
    let mut slices = Vec::new();
    let mut runs: Vec<(Option<u32>, u64)> = (0..model.cpus.len()).map(|cpu| (model.running(cpu), 0)).collect();
    while !model.is_over() {
        let Some(event) = queue.pop() else { break };
        model.handle(event, &mut queue);
        for (cpu, run) in runs.iter_mut().enumerate() {
            let now = model.running(cpu);
            if now != run.0 || model.is_over() {
                let (slot, since_ns) = std::mem::replace(run, (now, queue.now_ns()));
                slices.extend(slot.map(|slot| Slice { cpu: cpu as u32, slot, since_ns, until_ns: queue.now_ns() }));
            }
        }
    }
    slices.retain(|slice| slice.until_ns > setup.warmup_ns);
    slices
}
