// SPDX-License-Identifier: GPL-2.0-only
//! Which process has the CPU: the first of the node's feedback queue (Zhang 2.3), or the process in the row whose turn
//! it is (2.2).
//!
//! An empty row has no turn. At the end of a quantum all nodes go on to the next row, if there is another,
//! and switch for as long as that takes them together. Until the next quantum a CPU idles whose process reads or
//! writes, has done all or is not there; a job that gets its row in the midst of a turn of it waits for the next.

use super::Reading;
use super::model::{Cluster, Event, SWITCHES};
use super::task::Step;
use crate::engine::{NEVER_NS, Queue};
use crate::local::LocalScheduler;
use crate::node::Mode;
use cosched_rules::native;

impl Cluster<'_> {
    /// A process has come to a slot.
    pub(super) fn enters(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        if self.setup.is_gang() {
            return;
        }
        let it = &mut self.cpus[node].node;
        it.local.reset(slot);
        it.local.arrive(slot);
        if let Some(gate) = self.gates.get_mut(node) {
            gate.enters(slot, queue.now_ns());
        }
        self.may_take(node, queue);
    }

    /// A process that slept can go on.
    pub(super) fn wakes(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let it = &mut self.cpus[node].node;
        if self.setup.is_gang() {
            // Its row may have its turn, and the CPU idles for it.
            if self.row == Some(slot) && it.mode == Mode::Idle {
                it.begin(slot, queue.now_ns());
                self.resume(node, slot, queue);
            }
            return;
        }
        it.local.wake(slot, false);
        if !self.gates.is_empty() {
            let waited = self.task(self.place_of(node, slot)).receives();
            self.gates[node].wakes(slot, waited, queue.now_ns());
        }
        self.may_take(node, queue);
    }

    /// A process has come to the queue: an idle CPU takes it, unless it is read to wait until its scheduler looks.
    fn may_take(&mut self, node: usize, queue: &mut Queue<Event>) {
        if self.cpus[node].node.mode == Mode::Idle && !self.setup.readings.has(Reading::Idle) {
            self.next(node, queue);
        }
    }

    /// The running process sleeps, or has done all.
    pub(super) fn gives_up(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        if self.setup.is_gang() {
            return self.cpus[node].node.idle(queue.now_ns());
        }
        self.settle(node, queue.now_ns());
        if let Some(gate) = self.gates.get_mut(node) {
            gate.sleeps(slot, queue.now_ns());
        }
        self.cpus[node].node.local.sleep(slot);
        self.next(node, queue);
    }

    /// The CPU is free: the next process has it.
    pub(super) fn next(&mut self, node: usize, queue: &mut Queue<Event>) {
        let (it, switch_ns) = (&mut self.cpus[node].node, self.setup.costs.switch_ns);
        let timer = it.take_next(queue.now_ns(), switch_ns);
        if let (Some(gate), Mode::Switching(slot) | Mode::Running(slot)) = (self.gates.get_mut(node), it.mode) {
            gate.takes(slot, node as u32);
        }
        if it.mode == Mode::Idle && self.setup.readings.has(Reading::Block) {
            it.loaded_goes();
        }
        if let Some(timer) = timer {
            queue.after(SWITCHES, switch_ns, Event::Timer { node: node as u32, timer });
        } else if let Mode::Running(slot) = it.mode {
            self.resume(node, slot, queue);
        }
    }

    /// The gate's accounts of the running process are brought up to now. True: it was boosted, for so long and no
    /// longer.
    pub(super) fn settle(&mut self, node: usize, now_ns: u64) -> bool {
        let Some(gate) = self.gates.get_mut(node) else { return false };
        let it = &mut self.cpus[node].node;
        let Mode::Running(slot) = it.mode else { return false };
        !gate.ran(slot, it.charge(now_ns), now_ns)
    }

    /// The running process makes way, with what is left of its step.
    pub(super) fn stop(&mut self, node: usize, slot: u32, now_ns: u64) {
        let until_ns = self.cpus[node].node.until_ns;
        if until_ns != NEVER_NS {
            let place = self.place_of(node, slot);
            self.task(place).left_ns = until_ns.saturating_sub(now_ns);
        }
    }

    /// What a CPU does is over, if this timer is the one that counts and nothing has put it off.
    pub(super) fn timer(&mut self, node: u32, timer: u32, queue: &mut Queue<Event>) -> bool {
        let it = &mut self.cpus[node as usize].node;
        if it.timer != timer {
            return false;
        }
        if it.until_ns > queue.now_ns() {
            queue.at(it.until_ns, Event::Timer { node, timer });
            return false;
        }
        match it.mode {
            Mode::Idle => {}
            Mode::Switching(slot) => self.switched(node as usize, slot, queue),
            Mode::Running(slot) => self.step_over(node as usize, slot, queue),
        }
        true
    }

    /// The CPU does something else for `ns`, and what it was at takes as much longer.
    pub(super) fn puts_off(&mut self, node: usize, ns: u64) {
        self.overhead_ns += ns;
        let it = &mut self.cpus[node].node;
        if it.mode != Mode::Idle && it.until_ns != NEVER_NS {
            it.until_ns += ns;
        }
    }

    /// Another quantum begins.
    pub(super) fn turn(&mut self, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        queue.at(now_ns + self.setup.policy.quantum_ns, Event::Turn);
        let rows = self.slots.rows();
        let mut policy = self.setup.policy;
        policy.rows = rows.len() as u32;
        let row = rows.get(native::gang_row_at(&policy, now_ns) as usize).copied();
        let same = row == self.row;
        for node in 0..self.cpus.len() {
            match self.running(node) {
                // It goes on.
                Some(_) if same => continue,
                Some(slot) => self.stop(node, slot, now_ns),
                None => {}
            }
            self.takes_turn(node, row, same, queue);
        }
        self.row = row;
    }

    fn switched(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        // Under the gang the row's process has the CPU even if it sleeps.
        if self.task(self.place_of(node, slot)).sleeps {
            return self.cpus[node].node.idle(queue.now_ns());
        }
        self.cpus[node].node.begin(slot, queue.now_ns());
        self.resume(node, slot, queue);
        if let Some(slot) = self.running(node).filter(|_| self.cpus[node].looks_late) {
            self.cpus[node].looks_late = false;
            self.looks(node, slot, queue);
        }
    }

    fn takes_turn(&mut self, node: usize, row: Option<u32>, same: bool, queue: &mut Queue<Event>) {
        let there = |row: u32| self.tasks[self.place_of(node, row)].is_some();
        let Some(row) = row.filter(|&row| there(row)) else {
            return self.cpus[node].node.idle(queue.now_ns());
        };
        let switch_ns = if same { 0 } else { self.setup.costs.switch_ns };
        let timer = self.cpus[node].node.switch_to(row, queue.now_ns(), switch_ns);
        queue.at(queue.now_ns() + switch_ns, Event::Timer { node: node as u32, timer });
    }

    /// The process in `slot` has the CPU: it goes on with its step.
    pub(super) fn resume(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let place = self.place_of(node, slot);
        match self.task(place).step {
            Step::Begin => self.begins_iteration(node, slot, queue),
            Step::Compute => self.computes(node, slot, queue),
            Step::Io | Step::Send => self.sends(node, slot, queue),
            Step::Receive(side) => self.receives(node, slot, side, queue),
        }
    }
}
