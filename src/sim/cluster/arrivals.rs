// SPDX-License-Identifier: GPL-2.0-only
//! What a message does that comes: nothing, an interrupt that wakes its receiver, or one that boosts it (Zhang 2.4.1, 2.4.3).
//!
//! The network interface knows which process its CPU had at the last millisecond, and which processes sleep in a receive. It
//! interrupts for a message that a sleeper waits for, and under demand-based coscheduling for one whose receiver does not
//! run, as far as it knows.

use super::model::{Cluster, Event, INTERRUPTS};
use crate::bpf::intf::{self, cosched_demand};
use crate::native;
use crate::sim::engine::Queue;

impl Cluster<'_> {
    /// A message comes from the neighbour on this side.
    pub(super) fn message(&mut self, place: u32, side: usize, queue: &mut Queue<Event>) {
        let (node, slot) = self.node_of(place);
        let now_ns = queue.now_ns();
        let running = self.running(node) == Some(slot);
        let is_demand = self.setup.policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND;
        let unseen = is_demand && self.cpus[node].seen != Some(slot);
        let task = self.task(place as usize);
        if task.pending.iter().all(|pending| *pending == 0) {
            task.first_arrival_ns = now_ns;
        }
        task.pending[side] += 1;
        task.last_arrival_ns = now_ns;
        let awaited = task.receives_from(side);
        let wakes = awaited && task.sleeps && !task.wakes;
        task.wakes |= wakes;
        let job = task.job;
        if wakes || unseen {
            self.puts_off(node, self.setup.costs.interrupt_ns + self.setup.costs.move_ns);
            queue.after(INTERRUPTS, self.setup.costs.interrupt_ns, Event::Interrupt { place, job });
        }
        if running && awaited {
            self.receives(node, slot, side, queue);
        }
    }

    /// The interrupt for a message has been dealt with.
    pub(super) fn interrupt(&mut self, place: u32, job: u32, queue: &mut Queue<Event>) {
        let (node, slot) = self.node_of(place);
        let running = self.running(node) == Some(slot);
        // It may have received all and be gone.
        let Some(task) = self.tasks[place as usize].as_mut().filter(|task| task.job == job) else { return };
        if task.wakes {
            (task.wakes, task.sleeps) = (false, false);
            self.wakes(node, slot, queue);
        } else if !running && !task.sleeps && self.grants(queue.now_ns()) {
            self.cpus[node].node.local.boost(slot);
        }
    }

    /// Whether the gate allows a boost. Zhang's strategies have none, and neither have the nodes here what other gates ask
    /// for: their gate is `always`.
    pub(super) fn grants(&self, now_ns: u64) -> bool {
        let demand = cosched_demand { now_ns, nr_runnable: self.setup.level, ..native::IDLE_DEMAND };
        native::grants(native::decide(&self.setup.policy, &demand))
    }
}
