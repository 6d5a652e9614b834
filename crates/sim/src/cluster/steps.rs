// SPDX-License-Identifier: GPL-2.0-only
//! What a process does while it has the CPU, and how it waits: the columns of Zhang's Table 1.

use super::gate::Stamp;
use super::model::{Cluster, Event, SPINS};
use super::task::Step;
use super::{Reading, Readings};
use crate::engine::{NEVER_NS, Queue};
use crate::node::Use;
use cosched_rules::intf;
use cosched_rules::native;

impl Cluster<'_> {
    /// The next iteration begins, if there is one.
    pub(super) fn begins_iteration(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let place = self.place_of(node, slot);
        let exchanges = self.setup.readings.exchanges;
        let task = self.task(place);
        if task.iterations_left == 0 {
            // Its slot is free before the CPU is, so that nobody is given to it meanwhile.
            self.gives_up(node, slot, queue);
            return self.leaves(place, queue);
        }
        (task.iterations_left, task.exchanges_left) = (task.iterations_left - 1, exchanges);
        self.begins_computing(node, slot, queue);
    }

    /// The running process computes: all of its iteration, or the part before an exchange.
    fn begins_computing(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (place, skew) = (self.place_of(node, slot), self.setup.skew);
        let readings = self.setup.readings;
        let parts = if readings.has(Reading::Apart) { f64::from(readings.exchanges) } else { 1.0 };
        let task = self.task(place);
        task.step = Step::Compute;
        task.left_ns = task.skewed_ns(task.iteration.compute_ns / parts, skew);
        self.useful_ns[0] += self.task(place).left_ns;
        self.computes(node, slot, queue);
    }

    /// The running process computes for what is left of that.
    pub(super) fn computes(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (place, now_ns) = (self.place_of(node, slot), queue.now_ns());
        let until_ns = now_ns + self.task(place).left_ns;
        let it = &mut self.cpus[node].node;
        it.use_for(Use::Compute, now_ns);
        let timer = it.set_timer(until_ns);
        queue.at(until_ns, Event::Timer { node: node as u32, timer });
    }

    /// The running process has computed, or has spun for as long as it was to.
    pub(super) fn step_over(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (place, skew) = (self.place_of(node, slot), self.setup.skew);
        let Readings { exchanges, io_every, .. } = self.setup.readings;
        let task = self.task(place);
        if task.receives() {
            return self.spin_over(node, slot, queue);
        }
        let has_io = task.exchanges_left == exchanges && task.iterations_left.is_multiple_of(io_every);
        let io_ns = if has_io { task.skewed_ns(task.iteration.io_ns * f64::from(io_every), skew) } else { 0 };
        if io_ns == 0 {
            return self.sends(node, slot, queue);
        }
        (task.step, task.sleeps) = (Step::Io, true);
        queue.at(queue.now_ns() + io_ns, Event::IoDone { place: place as u32 });
        self.gives_up(node, slot, queue);
    }

    /// A disk has done its part. That costs the CPU nothing here, under any policy.
    pub(super) fn io_done(&mut self, place: u32, queue: &mut Queue<Event>) {
        let task = self.task(place as usize);
        (task.step, task.sleeps) = (Step::Send, false);
        let (node, slot) = self.node_of(place);
        self.wakes(node, slot, queue);
    }

    /// To both neighbours, first to the one behind, which receives from this side first. Each message keeps the
    /// interface of the node busy, be they of one process or of several (3.1: "the contention at the interface is
    /// modeled").
    pub(super) fn sends(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (place, now_ns) = (self.place_of(node, slot), queue.now_ns());
        let (latency_ns, interface_ns) = (self.setup.costs.latency_ns, self.setup.interface_ns());
        let burst = self.setup.readings.bursts();
        let task = self.task(place);
        let (neighbours, rounds) = (task.neighbours, if burst { task.exchanges_left } else { 1 });
        let rest_ns = self.cpus[node].node.local.rest_ns(slot);
        let stamp = self.gates.get(node).map_or_else(Stamp::default, |gate| gate.stamp(rest_ns));
        let sent_ns = &mut self.cpus[node].sent_ns;
        for (side, to) in (0..rounds).flat_map(|_| neighbours.into_iter().enumerate().rev()) {
            if let Some(to) = to {
                let leaves_ns = now_ns.max(*sent_ns);
                *sent_ns = leaves_ns + interface_ns;
                // It comes from the other side.
                queue.at(leaves_ns + latency_ns, Event::Message { place: to, side: 1 - side as u8, stamp });
            }
        }
        if neighbours.iter().all(Option::is_none) {
            return self.begins_iteration(node, slot, queue);
        }
        self.begins_exchange(node, slot, queue);
    }

    /// The running process receives what its neighbours sent in an exchange, or in several that are all there.
    fn begins_exchange(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let place = self.place_of(node, slot);
        let task = self.task(place);
        let there = |(to, pending): (&Option<u32>, &u32)| to.map(|_| *pending);
        let there = task.neighbours.iter().zip(&task.pending).filter_map(there).min().unwrap_or(0);
        let rounds = there.min(task.exchanges_left).max(1);
        task.pending.iter_mut().for_each(|pending| *pending = pending.saturating_sub(rounds - 1));
        task.exchanges_left = task.exchanges_left.saturating_sub(rounds);
        let useful_ns = u64::from(rounds) * task.iteration.exchange_ns;
        self.useful_ns[1] += useful_ns;
        self.begins_receive(node, slot, 0, queue);
    }

    /// The running process receives from the neighbour on this side, or from the next that it has.
    fn begins_receive(&mut self, node: usize, slot: u32, side: usize, queue: &mut Queue<Event>) {
        let place = self.place_of(node, slot);
        let task = self.task(place);
        let Some(side) = (side..task.neighbours.len()).find(|&side| task.neighbours[side].is_some()) else {
            let left = task.exchanges_left;
            return match left {
                0 => self.begins_iteration(node, slot, queue),
                _ if self.setup.readings.bursts() => self.begins_exchange(node, slot, queue),
                _ if self.setup.readings.has(Reading::Apart) => self.begins_computing(node, slot, queue),
                _ => self.sends(node, slot, queue),
            };
        };
        task.step = Step::Receive(side);
        let history = task.history;
        let spin_ns = self.spin_ns(&history);
        self.task(place).left_ns = spin_ns;
        self.receives(node, slot, side, queue);
    }

    /// How long a wait spins before it sleeps or yields; one that does neither spins on.
    fn spin_ns(&self, history: &intf::cosched_wait_history) -> u64 {
        let policy = &self.setup.policy;
        if self.setup.leaves_cpu() { native::spin_ns(policy, history) } else { NEVER_NS }
    }

    /// The running process takes the message that it is to receive, or waits for it.
    pub(super) fn receives(&mut self, node: usize, slot: u32, side: usize, queue: &mut Queue<Event>) {
        let (place, now_ns) = (self.place_of(node, slot), queue.now_ns());
        let task = self.task(place);
        if task.pending[side] > 0 {
            task.pending[side] -= 1;
            task.first_arrival_ns = now_ns;
            return self.begins_receive(node, slot, side + 1, queue);
        }
        let left_ns = task.left_ns;
        let it = &mut self.cpus[node].node;
        it.use_for(Use::Communicate, now_ns);
        let timer = it.set_timer(now_ns.saturating_add(left_ns));
        if left_ns != NEVER_NS {
            queue.after(SPINS, left_ns, Event::Timer { node: node as u32, timer });
        }
    }

    /// The running process has spun in vain. It spins on, if its rule says so (Arpaci-Dusseau 3.4); else it sleeps, or
    /// yields and spins on.
    fn spin_over(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (place, now_ns) = (self.place_of(node, slot), queue.now_ns());
        let policy = self.setup.policy;
        let task = self.task(place);
        let Step::Receive(side) = task.step else { return };
        let since_ns = now_ns - task.last_arrival_ns;
        if native::spin_goes_on(&policy, since_ns) {
            task.left_ns = native::spin_interval_ns(&policy).saturating_sub(since_ns).max(1);
            return self.receives(node, slot, side, queue);
        }
        if policy.wait == intf::cosched_wait_COSCHED_WAIT_SPIN_BLOCK {
            task.sleeps = true;
            return self.gives_up(node, slot, queue);
        }
        let history = task.history;
        let spin_ns = self.spin_ns(&history);
        let cost_ns = self.yields(node, slot, queue);
        let once = self.setup.readings.has(Reading::YieldOnce);
        self.task(place).left_ns = if once { NEVER_NS } else { spin_ns + cost_ns };
        self.receives(node, slot, side, queue);
    }
}
