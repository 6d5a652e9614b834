// SPDX-License-Identifier: GPL-2.0-only
//! What the arrival of a message does: the demand to run its receiver, and the gate that says when that is fair
//! (`bpf/demand.bpf.h`).

use super::beat::is_beat;
use super::is_gang;
use super::model::{Event, Shared};
use super::task::{Boost, Park, Wait};
use crate::engine::Queue;
use crate::local::{EFFECTIVE, LocalScheduler};
use crate::node::Mode;
use cosched_rules::intf::{self, FAIR_LEAST_SLICE_NS, cosched_beat_news, cosched_candidate, cosched_demand};
use cosched_rules::native;

impl Shared<'_> {
    /// Whether the arrival of a message is a demand by itself.
    pub(super) fn arrivals_demand(&self, on: usize) -> bool {
        self.policy(on).arrival == intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND
    }

    /// A message comes.
    pub(super) fn message(
        &mut self,
        place: u32,
        channel: u8,
        (epoch, rest_us, sizes): (u64, u32, u32),
        queue: &mut Queue<Event>,
    ) -> bool {
        let (on, slot) = (self.cpu_of(place), place % self.slots);
        if !self.is_present(self.node_of(on), slot) {
            return false;
        }
        let news = cosched_beat_news { tai_ns: epoch, theta: rest_us, sizes };
        self.beat_hears(on, slot, &news, queue);
        let (epoch, rest_us) = if sizes == 0 { (epoch, rest_us) } else { (0, 0) };
        self.arrives(on, slot, channel, (epoch, u64::from(rest_us) * 1000), queue);
        true
    }

    fn arrives(&mut self, on: usize, slot: u32, channel: u8, (epoch, rest_ns): (u64, u64), queue: &mut Queue<Event>) {
        let (now_ns, runs) = (queue.now_ns(), self.running(on) == Some(slot));
        let is_demand = self.setup.messages.demand(self.setup.program.pattern, channel);
        self.hears_from(on, slot, channel, now_ns);
        let task = self.task(on, slot);
        task.pending[usize::from(channel)] += 1;
        (task.last_arrival_ns, task.message_epoch, task.message_slice_ns) = (now_ns, epoch, rest_ns);
        task.arrivals[0] += 1;
        let waits = task.wait != Wait::None;
        if runs {
            (task.arrivals[1], task.progressed) = (task.arrivals[1] + 1, true);
            task.unread += u32::from(!waits);
            task.silent += u32::from(!waits && !is_demand);
            if waits && self.receives_on(on, slot, channel) {
                self.wait_ends(on, slot, queue);
            }
            return;
        }
        task.unread += 1;
        task.silent += u32::from(!is_demand);
        if task.first_arrival_ns == 0 {
            task.first_arrival_ns = now_ns;
        }
        // The CPU is on its way to it.
        if self.cpus[on].node.mode == Mode::Switching(slot) {
            return;
        }
        if !self.task(on, slot).sleeps() {
            return self.demands(on, slot, is_demand, queue);
        }
        if self.receives_on(on, slot, channel) {
            let on = self.wakes_where(on, slot, now_ns);
            self.awakes(on, slot, now_ns);
            self.woken(on, slot, is_demand, queue);
        }
    }

    /// A message has come for `slot`, which waits for its CPU.
    fn demands(&mut self, on: usize, slot: u32, is_demand: bool, queue: &mut Queue<Event>) {
        if self.task(on, slot).boost == Boost::Granted {
            return;
        }
        if is_demand && self.arrivals_demand(on) && self.asks(on, slot, queue.now_ns()) {
            return self.reschedule(on, queue);
        }
        let parked = self.task(on, slot).park == Park::Parked;
        self.cpus[on].unpark |= parked;
        if parked || is_beat(self.policy(on)) {
            self.makes_way(on, slot, queue);
        }
    }

    /// `slot` has just become runnable.
    fn woken(&mut self, on: usize, slot: u32, is_demand: bool, queue: &mut Queue<Event>) {
        if self.cpus[on].node.mode == Mode::Idle {
            return self.dispatch(on, queue);
        }
        if is_demand && self.arrivals_demand(on) && self.asks(on, slot, queue.now_ns()) {
            return self.reschedule(on, queue);
        }
        self.makes_way(on, slot, queue);
    }

    /// Has the running task make way for `slot` if its row or the fair order says so.
    fn makes_way(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let (policy, now_ns) = (self.policy(on), queue.now_ns());
        self.settle(on, now_ns);
        // A known difference: in the kernel a parked task whose demand the gate has denied is unparked too, and may
        // preempt. Here it waits for the next dispatch. docs/scale.md was made so, and `make scale` would change it.
        if !self.arrivals_demand(on) {
            self.unparks(on, now_ns);
        }
        if is_beat(policy) {
            if self.beat_preempts(on, slot, now_ns) {
                self.reschedule(on, queue);
            }
            return;
        }
        let Some(running) = self.running(on) else { return };
        let rows = is_gang(policy) && self.has_turn(on, slot, now_ns) && !self.has_turn(on, running, now_ns);
        if rows || self.cpus[on].node.local.outranks(running) {
            self.reschedule(on, queue);
        }
    }

    /// Asks the gate whether `slot`, which is in the queue and has a demand, may run now. If so, it is the next.
    pub(super) fn asks(&mut self, on: usize, slot: u32, now_ns: u64) -> bool {
        self.settle(on, now_ns);
        let (policy, demand) = (self.policy(on), self.describe(on, slot, now_ns));
        let place = self.place_of(on, slot);
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        let granted = native::grants(native::decide(policy, &demand)) && cpu.loan.starving == 0;
        task.denied = !granted;
        cpu.demand |= granted || policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND;
        if !granted {
            return false;
        }
        let mut slice_ns = native::slice(policy, &demand);
        if policy.residual_slice != 0 && task.message_slice_ns > 0 {
            slice_ns = slice_ns.min(task.message_slice_ns);
        }
        (task.last_boost_ns, task.granted_ns, task.boost) =
            (now_ns, slice_ns.max(u64::from(FAIR_LEAST_SLICE_NS)), Boost::Granted);
        true
    }

    /// What the gate is to know.
    fn describe(&mut self, on: usize, slot: u32, now_ns: u64) -> cosched_demand {
        let (place, policy) = (self.place_of(on, slot), self.policy(on));
        let runs = match self.cpus[on].node.mode {
            Mode::Running(slot) | Mode::Switching(slot) => Some(slot),
            Mode::Idle => None,
        };
        let talks = runs.is_some_and(|slot| self.tasks[self.place_of(on, slot)].talks);
        let (cpu, task) = (&mut self.cpus[on], &self.tasks[place]);
        Self::advance_shares(cpu, now_ns);
        let mut window = task.window;
        if policy.gate == intf::cosched_gate_COSCHED_GATE_AUTO {
            native::window_add(
                &mut window,
                policy,
                now_ns,
                0,
                native::account_share(cpu.shares.ns - task.share_seen, EFFECTIVE),
            );
        }
        let mut demand = cosched_demand {
            now_ns,
            last_boost_ns: task.last_boost_ns,
            denied: u32::from(task.denied),
            node_quiet: u32::from(!talks),
            cpu_ns: window.cpu_ns,
            fair_ns: window.fair_ns,
            message_epoch: task.message_epoch,
            node_epoch: cpu.epoch,
            ..native::IDLE_DEMAND
        };
        cpu.node.local.describe(&mut demand, slot);
        demand
    }

    /// Puts the fairest task with a boost first, or a task whose boost was denied and is granted now. False: none.
    pub(super) fn takes_boosted(&mut self, on: usize, now_ns: u64) -> bool {
        if !std::mem::take(&mut self.cpus[on].demand) {
            return false;
        }
        let (mut taken, mut more, demands) = (None, false, self.arrivals_demand(on));
        for index in 0..self.cpus[on].node.local.queue().len() {
            let slot = self.cpus[on].node.local.queue()[index];
            let task = self.task(on, slot);
            let (boost, waits) = (task.boost, task.denied && task.has_demand());
            if boost == Boost::None && !(demands && task.denied) {
                continue;
            }
            if taken.is_none() && (boost != Boost::None || (waits && self.asks(on, slot, now_ns))) {
                taken = Some(slot);
            } else {
                more = true;
            }
        }
        self.cpus[on].demand = more;
        let Some(slot) = taken else { return false };
        let task = self.task(on, slot);
        let slice_ns = (task.boost != Boost::Resumed).then_some(task.granted_ns);
        (task.boost, task.boosted) = (Boost::None, true);
        self.cpus[on].node.local.boost(slot, slice_ns);
        true
    }

    /// Boosts the task that the policy chooses in the queue, if the gate allows. With `itself` it may choose the
    /// running task too. True: another task is to run instead.
    pub(super) fn boosts_one(&mut self, on: usize, running: u32, itself: bool, now_ns: u64) -> bool {
        let choice = self.policy(on).choice;
        let candidate = |slot: u32| {
            let task = &self.tasks[self.place_of(on, slot)];
            let candidate = cosched_candidate {
                distance: (slot + self.slots - running) % self.slots,
                receives: u32::from(task.receives()),
                pending: task.unread - task.silent,
                reserved: 0,
                arrival_ns: task.first_arrival_ns,
            };
            (slot, candidate)
        };
        let queued = self.cpus[on].node.local.queue().iter().copied();
        let all = itself.then_some(running).into_iter().chain(queued).map(candidate);
        let Some(slot) = native::choose(choice, all).filter(|&slot| slot != running) else { return false };
        self.task(on, slot).boost == Boost::None && self.asks(on, slot, now_ns)
    }
}
