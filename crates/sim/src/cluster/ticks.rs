// SPDX-License-Identifier: GPL-2.0-only
//! What happens each millisecond: the scheduler looks, and before it the periodic boost (Zhang 2.4.4). And what a
//! process does that yields, since it boosts by the same choice (2.4.2).
//!
//! The choice is that of `policies/boost_choice.h`. The round begins with the running process. If the choice falls on
//! that process, it goes on, on the highest level. A process that the clock boosts runs at once, whatever the level of
//! the running process. A process that an interrupt or a yield boosts becomes the first of the highest level, and runs
//! at once if the running process has a lower level.
//!
//! A millisecond that begins during a switch is dealt with at the end of that.

use super::model::{Cluster, Event, SECONDS, TICKS};
use crate::engine::Queue;
use crate::local::{LocalScheduler, UPDATE_NS};
use crate::node::Mode;
use cosched_rules::intf::{self, cosched_candidate};
use cosched_rules::native;

impl Cluster<'_> {
    /// The scheduler of a node looks.
    pub(super) fn tick(&mut self, node: usize, queue: &mut Queue<Event>) {
        let tick_ns = self.cpus[node].node.local.tick_ns();
        queue.after(TICKS, tick_ns, Event::Tick { node: node as u32 });
        self.cpus[node].seen = match self.cpus[node].node.mode {
            Mode::Running(slot) | Mode::Switching(slot) => Some(slot),
            Mode::Idle => None,
        };
        match self.cpus[node].node.mode {
            Mode::Idle => self.next(node, queue),
            Mode::Switching(_) => self.cpus[node].looks_late = true,
            Mode::Running(slot) => self.looks(node, slot, queue),
        }
    }

    /// Whether the running process goes on.
    pub(super) fn looks(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let boost_over = self.settle(node, queue.now_ns());
        let expired = self.cpus[node].node.local.tick(slot) || boost_over;
        let is_periodic = self.setup.policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_PERIODIC;
        let boosted = if is_periodic {
            let (boosted, looked) = self.choice(node, slot, true);
            self.puts_off(node, looked * self.setup.costs.check_ns);
            boosted
        } else {
            None
        };
        if boosted == Some(slot) && self.gates.is_empty() {
            self.cpus[node].node.local.boost(slot);
        }
        let boosted = boosted.filter(|&boosted| boosted != slot && self.grants(node, boosted, queue.now_ns()));
        self.asks_again(node, queue.now_ns());
        if !expired && boosted.is_none() && !self.cpus[node].node.local.outranks(slot) {
            return;
        }
        self.stop(node, slot, queue.now_ns());
        let local = &mut self.cpus[node].node.local;
        if expired {
            local.expire(slot)
        } else {
            local.preempt(slot)
        }
        if let Some(gate) = self.gates.get_mut(node) {
            gate.stops(slot);
        }
        let local = &mut self.cpus[node].node.local;
        if let Some(boosted) = boosted {
            local.boost(boosted);
            self.puts_off(node, self.setup.costs.move_ns);
        }
        self.next(node, queue);
    }

    /// Another second has passed on a node: all go to the highest level.
    pub(super) fn second(&mut self, node: usize, queue: &mut Queue<Event>) {
        queue.after(SECONDS, UPDATE_NS, Event::Second { node: node as u32 });
        let running = self.running(node);
        self.cpus[node].node.local.update(running);
    }

    /// Whom the policy's choice puts first, of those who could run on a node where `running` does; `itself`: it may be
    /// the choice. And at how many it looked for that.
    fn choice(&self, node: usize, running: u32, itself: bool) -> (Option<u32>, u64) {
        let (level, choice) = (self.setup.level, self.setup.policy.choice);
        let mut looked = 0;
        let candidate = |distance: u32| {
            let slot = (running + distance) % level;
            let task = self.tasks[self.place_of(node, slot)].as_ref().filter(|task| !task.sleeps)?;
            looked += 1;
            let candidate = cosched_candidate {
                distance,
                receives: u32::from(task.receives()),
                pending: task.pending_for_it(),
                reserved: 0,
                arrival_ns: task.first_arrival_ns,
            };
            Some((slot, candidate))
        };
        let chosen = native::choose(choice, (u32::from(!itself)..level).filter_map(candidate));
        (chosen, looked)
    }

    /// The running process drops below the lowest, and somebody else comes to be first. It spins on; the next
    /// millisecond has the other run. Returns what that takes, in ns.
    pub(super) fn yields(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) -> u64 {
        let (chosen, looked) = self.choice(node, slot, false);
        let local = &mut self.cpus[node].node.local;
        local.drop_below_all(slot);
        let mut moves = 1;
        if let Some(chosen) = chosen.filter(|&chosen| self.grants(node, chosen, queue.now_ns())) {
            self.cpus[node].node.local.boost(chosen);
            moves += 1;
        }
        let cost_ns = moves * self.setup.costs.move_ns + looked * self.setup.costs.check_ns;
        self.overhead_ns += cost_ns;
        cost_ns
    }
}
