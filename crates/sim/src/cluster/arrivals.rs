// SPDX-License-Identifier: GPL-2.0-only
//! What a message does that comes: nothing, an interrupt that wakes its receiver, or one that boosts it (Zhang 2.4.1,
//! 2.4.3).
//!
//! The network interface knows which process its CPU had at the last millisecond, and which processes sleep in a
//! receive. It interrupts for a message that a sleeper waits for, and under demand-based coscheduling for one whose
//! receiver does not run, as far as it knows.

use super::gate::Stamp;
use super::model::{Cluster, Event, INTERRUPTS};
use crate::engine::Queue;
use cosched_rules::intf::{self, cosched_demand};
use cosched_rules::native;

impl Cluster<'_> {
    /// A message comes from the neighbour on this side.
    pub(super) fn message(&mut self, place: u32, side: usize, stamp: Stamp, queue: &mut Queue<Event>) {
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
        if let Some(gate) = self.gates.get_mut(node) {
            gate.hears(slot, stamp);
        }
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
        } else if !running && !task.sleeps && self.grants(node, slot, queue.now_ns()) {
            self.cpus[node].node.local.boost(slot);
        }
    }

    /// Whether the gate allows a boost of `slot`, which waits for its CPU. Zhang's strategies have none: their gate is
    /// `always`.
    pub(super) fn grants(&mut self, node: usize, slot: u32, now_ns: u64) -> bool {
        if !self.gates.is_empty() {
            self.settle(node, now_ns);
            let quiet = self.running(node).is_some_and(|slot| !self.talks(node, slot));
            return self.gates[node].asks(slot, quiet, now_ns);
        }
        let demand = cosched_demand { now_ns, nr_runnable: self.setup.level, ..native::IDLE_DEMAND };
        native::grants(native::decide(&self.setup.policy, &demand))
    }

    /// Who was denied a boost asks again, the fairest first (`bpf/demand.bpf.h`).
    pub(super) fn asks_again(&mut self, node: usize, now_ns: u64) {
        let is_demand = self.setup.policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND;
        if self.gates.is_empty() || !is_demand {
            return;
        }
        let denied = |slot: u32| {
            let task = self.tasks[self.place_of(node, slot)].as_ref()?;
            let waits = !task.sleeps && task.pending_for_it() > 0 && self.running(node) != Some(slot);
            Some((self.gates[node].denied_lead_ns(slot).filter(|_| waits)?, slot))
        };
        let fairest = (0..self.setup.level).filter_map(denied).min();
        if let Some((_, slot)) = fairest.filter(|&(_, slot)| self.grants(node, slot, now_ns)) {
            self.cpus[node].node.local.boost(slot);
        }
    }

    fn talks(&self, node: usize, slot: u32) -> bool {
        let task = self.tasks[self.place_of(node, slot)].as_ref();
        task.is_some_and(|task| task.neighbours.iter().any(Option::is_some))
    }
}
