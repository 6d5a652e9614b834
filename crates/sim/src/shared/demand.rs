// SPDX-License-Identifier: GPL-2.0-only
//! What the arrival of a message does: the demand to run its receiver, and the gate that says when that is fair
//! (`bpf/demand.bpf.h`).

use super::beat::is_beat;
use super::is_gang;
use super::model::{Event, Shared};
use super::task::{Boost, Park, Wait};
use super::uneven::Piece;
use crate::engine::Queue;
use crate::local::{EFFECTIVE, LocalScheduler};
use crate::node::Mode;
use cosched_rules::intf::{self, FAIR_LEAST_SLICE_NS, cosched_beat_news, cosched_candidate, cosched_demand};
use cosched_rules::native;

impl Shared<'_> {
    /// Whether the arrival of a message is a demand by itself. Under beat it is while no job goes first.
    pub(super) fn arrivals_demand(&self, on: usize, now_ns: u64) -> bool {
        match self.policy(on).arrival {
            intf::cosched_arrival_COSCHED_ARRIVAL_DEMAND => true,
            intf::cosched_arrival_COSCHED_ARRIVAL_BEAT => {
                self.has(Piece::Demand) && self.beat_first(on, now_ns).is_none()
            }
            _ => false,
        }
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
        if is_demand && self.arrivals_demand(on, queue.now_ns()) && self.asks(on, slot, queue.now_ns()) {
            return self.reschedule(on, queue);
        }
        if self.task(on, slot).park == Park::Parked {
            self.cpus[on].unpark = true;
            self.makes_way(on, slot, queue);
        } else if is_beat(self.policy(on)) && self.beat_preempts(on, slot, queue.now_ns()) == Some(true) {
            self.reschedule(on, queue);
        }
    }

    /// `slot` has just become runnable.
    fn woken(&mut self, on: usize, slot: u32, is_demand: bool, queue: &mut Queue<Event>) {
        if self.cpus[on].node.mode == Mode::Idle {
            return self.dispatch(on, queue);
        }
        if is_demand && self.arrivals_demand(on, queue.now_ns()) && self.asks(on, slot, queue.now_ns()) {
            return self.reschedule(on, queue);
        }
        self.makes_way(on, slot, queue);
    }

    /// Has the running task make way for `slot` if its row or the fair order says so.
    fn makes_way(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let (policy, now_ns) = (self.policy(on), queue.now_ns());
        self.settle(on, now_ns);
        self.unparks(on, now_ns);
        if is_beat(policy) {
            match self.beat_preempts(on, slot, now_ns) {
                Some(true) => return self.reschedule(on, queue),
                Some(false) => return,
                None => {}
            }
        }
        if is_gang(policy) {
            return self.gang_preempts(on, slot, queue);
        }
        let Some(running) = self.running(on) else { return };
        if self.cpus[on].node.local.outranks(running) {
            self.reschedule(on, queue);
        }
    }

    /// Gang: has who runs, or is switched to, make way for `slot` if only the row of `slot` has its turn, or if it is
    /// not ahead of the fair order.
    fn gang_preempts(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let (Mode::Running(other) | Mode::Switching(other)) = self.cpus[on].node.mode else { return };
        let [turn, other_turn] = [slot, other].map(|slot| self.has_turn(on, slot, queue.now_ns()));
        if !turn || other_turn {
            if !self.cpus[on].node.local.precedes(slot, other) {
                return;
            }
            self.cpus[on].front = Some(slot);
        }
        self.reschedule(on, queue);
    }

    /// Asks the gate whether `slot`, which is in the queue and has a demand, may run now. If so, it is the next.
    pub(super) fn asks(&mut self, on: usize, slot: u32, now_ns: u64) -> bool {
        self.settle(on, now_ns);
        let (policy, demand) = (self.policy(on), self.describe(on, slot, now_ns));
        let (place, beats, demands) = (self.place_of(on, slot), is_beat(policy), self.arrivals_demand(on, now_ns));
        let may = native::grants(native::decide(policy, &demand))
            && (!beats || native::beat_may_demand(self.surplus_ns(on, slot)));
        let cpu = &mut self.cpus[on];
        let granted = may && cpu.loan.starving == 0;
        self.tasks[place].denied = !granted;
        cpu.demand |= granted || demands;
        if !granted {
            return false;
        }
        let mut slice_ns = if beats { self.beat_rest_ns(on, now_ns) } else { native::slice(policy, &demand) };
        let task = &mut self.tasks[place];
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
            mean_waiting: cpu.waiting.mean,
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
        let (mut taken, mut more, demands) = (None, false, self.arrivals_demand(on, now_ns));
        let last = self.cpus[on].node.loaded();
        for index in 0..self.cpus[on].node.local.queue().len() {
            let slot = self.cpus[on].node.local.queue()[index];
            let task = self.task(on, slot);
            let (boost, waits) = (task.boost, task.denied && task.has_demand());
            if boost == Boost::None && !(demands && task.denied) {
                continue;
            }
            // What is left of a boost comes when the task that cut it is done.
            let is_cut = boost == Boost::Resumed && last == Some(slot);
            let boosted = boost != Boost::None && !is_cut;
            if taken.is_none() && (boosted || (!is_cut && waits && self.asks(on, slot, now_ns))) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Model;
    use crate::shared::Setup;
    use crate::shared::cpus::tests::setup;
    use crate::shared::model::LANES;
    use crate::shared::program::{Pattern, Program, Receiver};

    const MS: u64 = 1_000_000;

    /// A boost that a gate has granted.
    struct Grant {
        on: usize,
        slot: u32,
        now_ns: u64,
        /// Which task ran because of another boost, and when that was granted.
        cut: Option<(u32, u64)>,
    }

    /// Has the model look at each boost that two jobs and a competitor on two nodes are granted.
    fn each_grant(preset: &str, mut look: impl FnMut(&Shared<'_>, &Grant)) {
        let program = Program { pattern: Pattern::Ring, receiver: Receiver::Spin, grain_ns: MS, imbalance_ns: MS };
        let setup = Setup { length_ns: 16_000 * MS, ..setup(preset, program, 1, 1) };
        let setup = Setup { ranks: 1, ..setup };
        let (mut queue, mut model) = (Queue::new(LANES), Shared::new(&setup, 1));
        model.start(&mut queue);
        while !model.is_over() {
            let event = queue.pop().unwrap();
            let boosted_ns: Vec<u64> = model.tasks.iter().map(|task| task.last_boost_ns).collect();
            let runs = |on: usize| model.running(on).filter(|&slot| model.tasks[model.place_of(on, slot)].boosted);
            let ran: Vec<Option<u32>> = (0..model.cpus.len()).map(runs).collect();
            model.handle(event, &mut queue);
            for place in (0..model.tasks.len()).filter(|&place| model.tasks[place].last_boost_ns != boosted_ns[place]) {
                let (on, slot) = (model.cpu_of(place as u32), place as u32 % model.slots);
                let cut = ran[on].filter(|&other| other != slot);
                let cut = cut.map(|other| (other, boosted_ns[model.place_of(on, other)]));
                look(&model, &Grant { on, slot, now_ns: queue.now_ns(), cut });
            }
        }
    }

    #[test]
    fn under_beat_those_behind_their_share_have_demands_in_turns_that_no_job_has_won() {
        let mut grants = 0;
        each_grant("beat", |model, grant| {
            let surplus_ns = model.surplus_ns(grant.on, grant.slot);
            assert!(model.cpus[grant.on].beat.winner.is_none() && surplus_ns < 0, "{surplus_ns} at {}", grant.now_ns);
            let left_ns = model.beat_rest_ns(grant.on, grant.now_ns).max(u64::from(FAIR_LEAST_SLICE_NS));
            assert_eq!(model.tasks[model.place_of(grant.on, grant.slot)].granted_ns, left_ns);
            grants += 1;
        });
        assert!(grants > 20, "{grants} grants");
    }

    #[test]
    fn what_is_left_of_a_boost_waits_for_the_one_that_cut_it() {
        let mut cuts = 0;
        each_grant("dcs-sb", |model, grant| {
            let Some((cut, boosted_ns)) = grant.cut else { return };
            let goes_on = model.running(grant.on) == Some(cut);
            let asked_again = model.tasks[model.place_of(grant.on, cut)].last_boost_ns != boosted_ns;
            assert!(!goes_on || asked_again, "the boost of {} cuts none at {}", grant.slot, grant.now_ns);
            cuts += u32::from(!goes_on);
        });
        assert!(cuts > 20, "{cuts} cuts");
    }
}
