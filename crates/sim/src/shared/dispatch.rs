// SPDX-License-Identifier: GPL-2.0-only
//! Which task has the CPU: what `bpf/switch.bpf.h`, `bpf/dispatch.bpf.h` and `bpf/enqueue.bpf.h` do together.

use super::beat::is_beat;
use super::is_gang;
use super::model::{Cpu, Event, SWITCHES, Shared};
use super::task::{Boost, Park, Spends, Wait};
use crate::engine::{NEVER_NS, Queue};
use crate::local::{EFFECTIVE, LocalScheduler};
use crate::node::{Mode, Use};
use cosched_rules::intf;
use cosched_rules::native;

/// How a task comes to leave its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaves {
    /// Its slice is over.
    Expired,
    /// Somebody else is to run now.
    Preempted,
}

impl Shared<'_> {
    /// The clock of shares is brought up to now, before the number of the runnable changes.
    pub(super) fn advance_shares(cpu: &mut Cpu, now_ns: u64) {
        native::account_advance(&mut cpu.shares, cpu.node.local.weight(), now_ns);
    }

    /// Notes for the gate, and for turns by draw, what `slot` has run and what its fair share was.
    pub(super) fn notes(&mut self, on: usize, slot: u32, now_ns: u64, cpu_ns: u64, fair_ns: u64) {
        let (place, policy) = (self.place_of(on, slot), self.policy(on));
        let task = &mut self.tasks[place];
        if task.talks && policy.gate == intf::cosched_gate_COSCHED_GATE_AUTO {
            native::window_add(&mut task.window, policy, now_ns, cpu_ns, fair_ns);
        }
        if task.talks && is_beat(policy) {
            task.ahead_ns = native::beat_charge(task.ahead_ns, policy, cpu_ns, fair_ns);
        }
    }

    /// Charges the task that runs for what it has run since the last charge.
    pub(super) fn settle(&mut self, on: usize, now_ns: u64) {
        let Some(slot) = self.running(on) else { return };
        let (place, policy) = (self.place_of(on, slot), self.policy(on));
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        let ran_ns = cpu.node.charge(now_ns);
        Self::advance_shares(cpu, now_ns);
        let share_ns = native::account_share(cpu.shares.ns - task.share_seen, EFFECTIVE);
        task.share_seen = cpu.shares.ns;
        task.cpu_ns += ran_ns;
        self.notes(on, slot, now_ns, ran_ns, share_ns);
        let (cpu, task) = (&mut self.cpus[on], &self.tasks[place]);
        native::account_loan(&mut cpu.loan, policy, task.boosted, ran_ns);
    }

    /// Who runs is to make way for somebody in the queue: at once, or when the switch to it is over.
    pub(super) fn reschedule(&mut self, on: usize, queue: &mut Queue<Event>) {
        match self.cpus[on].node.mode {
            Mode::Idle => self.dispatch(on, queue),
            Mode::Switching(_) => self.cpus[on].resched = true,
            Mode::Running(slot) => {
                self.stops(on, slot, Leaves::Preempted, queue);
                self.dispatch(on, queue);
            }
        }
    }

    /// `slot`, which runs, leaves its CPU: to the queue, or to sleep if it spins before that, since nobody waits for
    /// one that does (`bpf/waits.bpf.h`).
    pub(super) fn stops(&mut self, on: usize, slot: u32, how: Leaves, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        self.settle(on, now_ns);
        if self.task(on, slot).wait == Wait::Spins {
            return self.sleeps(on, slot, now_ns);
        }
        let (until_ns, rows) = (self.cpus[on].node.until_ns, is_gang(self.policy(on)));
        let parks = self.looks_at_preempted(on, slot);
        self.spends(on, slot, Spends::Queue, now_ns);
        let place = self.place_of(on, slot);
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        if task.wait == Wait::None && until_ns != NEVER_NS {
            task.left_ns = until_ns.saturating_sub(now_ns);
        }
        (task.wait, task.owes) = (Wait::None, task.is_asked(now_ns));
        if parks {
            task.park = Park::Wanted;
        }
        let keeps = task.boosted && how == Leaves::Preempted && cpu.node.local.has_rest(slot);
        let resumes = keeps && cpu.loan.starving == 0 && task.park == Park::None;
        (task.boost, task.boosted) = (if resumes { Boost::Resumed } else { Boost::None }, false);
        task.queued_ns = now_ns;
        task.slept &= how == Leaves::Preempted && !native::fair_has_had_time(cpu.node.local.used_ns(slot));
        if task.slept && rows {
            cpu.front.get_or_insert(slot);
        }
        match how {
            Leaves::Expired => cpu.node.local.expire(slot),
            Leaves::Preempted => cpu.node.local.preempt(slot),
        }
        cpu.demand |= resumes;
        if self.leaves_to_others(on, slot, now_ns) || resumes {
            return;
        }
        if self.task(on, slot).has_demand() && self.arrivals_demand(on, now_ns) {
            self.asks(on, slot, now_ns);
        }
    }

    /// The running `slot` sleeps until a message comes. Its claim to a share goes on.
    pub(super) fn sleeps(&mut self, on: usize, slot: u32, now_ns: u64) {
        let place = self.place_of(on, slot);
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        (task.wait, task.wait_since_ns, task.boost, task.boosted) = (Wait::Sleeps, now_ns, Boost::None, false);
        (task.owes, task.park) = (false, Park::None);
        task.spends(Spends::Off, now_ns);
        cpu.node.local.sleep(slot);
    }

    /// `slot`, which slept, has a message: it is runnable, in the fair order, at its place.
    pub(super) fn awakes(&mut self, on: usize, slot: u32, now_ns: u64) {
        let place = self.place_of(on, slot);
        let cpu = &mut self.cpus[on];
        Self::advance_shares(cpu, now_ns);
        let passed_ns = cpu.shares.ns - self.tasks[place].share_seen;
        let others = cpu.node.local.weight();
        cpu.node.local.wake(slot, false);
        let share_ns = native::account_awaited(passed_ns, EFFECTIVE, others, cpu.node.local.weight());
        self.notes(on, slot, now_ns, 0, share_ns);
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        (task.share_seen, task.wait, task.queued_ns) = (cpu.shares.ns, Wait::None, now_ns);
        task.slept = true;
        task.spends(Spends::Queue, now_ns);
    }

    /// The CPU is free: somebody with a boost has it, the row whose turn it is, or the first in the fair order.
    pub(super) fn dispatch(&mut self, on: usize, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        self.unparks(on, now_ns);
        if !self.takes_row(on, now_ns) && !self.takes_turn(on, true, now_ns) && !self.takes_boosted(on, now_ns) {
            self.pulls(on, now_ns);
            self.takes_turn(on, false, now_ns);
        }
        self.takes_from_others(on, now_ns);
        let costs = self.setup.costs;
        let it = &mut self.cpus[on].node;
        let was_idle = it.mode == Mode::Idle;
        let switch_ns = if was_idle { costs.idle_switch_ns } else { costs.switch_ns };
        if let Some(timer) = it.take_next(now_ns, switch_ns) {
            queue.after(SWITCHES, switch_ns, Event::Timer { cpu: on as u32, timer });
        } else if let Mode::Running(slot) = it.mode {
            if was_idle {
                let timer = it.switch_to(slot, now_ns, switch_ns);
                queue.after(SWITCHES, switch_ns, Event::Timer { cpu: on as u32, timer });
            } else {
                self.begins(on, slot, now_ns, queue);
            }
        }
        if let Mode::Switching(slot) = self.cpus[on].node.mode {
            self.spends(on, slot, Spends::Switch, now_ns);
        }
    }

    /// Gang: whether the row of `slot` has its turn. Jobs and competitors have a row each, as far as there are rows.
    pub(super) fn has_turn(&self, on: usize, slot: u32, now_ns: u64) -> bool {
        let (policy, job) = (self.policy(on), self.setup.who_is(self.node_of(on), slot).0);
        native::gang_row_at(policy, self.tai_ns(on, now_ns)) == job % policy.rows.max(1)
    }

    /// Gang: who has preempted goes first, and then the first of the row whose turn it is. False: there are no rows.
    fn takes_row(&mut self, on: usize, now_ns: u64) -> bool {
        let policy = self.policy(on);
        if !is_gang(policy) {
            return false;
        }
        let front = self.cpus[on].front.take();
        let waiting = self.cpus[on].node.local.queue();
        if let Some(&slot) = waiting.iter().find(|&&slot| Some(slot) == front) {
            self.cpus[on].node.local.boost(slot, None);
            return true;
        }
        let first = waiting.iter().copied().find(|&slot| self.has_turn(on, slot, now_ns));
        if let Some(slot) = first {
            self.cpus[on].node.local.boost(slot, Some(policy.slice_ns));
        }
        true
    }

    /// What a CPU does is over, if this timer is the one that counts.
    pub(super) fn timer(&mut self, on: usize, timer: u32, queue: &mut Queue<Event>) -> bool {
        let now_ns = queue.now_ns();
        let it = &mut self.cpus[on].node;
        if it.timer != timer {
            return false;
        }
        match it.mode {
            Mode::Idle => {}
            Mode::Switching(slot) => {
                // Charged to the task that comes.
                it.begin(slot, it.switching_since_ns());
                if std::mem::take(&mut self.cpus[on].resched) {
                    // It goes on with nothing yet: what it still has to compute is as much as before.
                    self.cpus[on].node.until_ns = NEVER_NS;
                    self.arrives_at_cpu(on, slot, now_ns);
                    self.stops(on, slot, Leaves::Preempted, queue);
                    self.dispatch(on, queue);
                } else {
                    self.begins(on, slot, now_ns, queue);
                }
            }
            Mode::Running(slot) => self.step_over(on, slot, queue),
        }
        true
    }

    /// `slot` has the CPU, and goes on with what it does.
    fn begins(&mut self, on: usize, slot: u32, now_ns: u64, queue: &mut Queue<Event>) {
        self.arrives_at_cpu(on, slot, now_ns);
        self.cpus[on].node.use_for(Use::Compute, now_ns);
        self.spends(on, slot, Spends::Compute, now_ns);
        self.asks_ahead(on, slot, queue);
        self.resume(on, slot, queue);
    }

    /// `slot` has the CPU from now on.
    fn arrives_at_cpu(&mut self, on: usize, slot: u32, now_ns: u64) {
        let (place, policy) = (self.place_of(on, slot), self.policy(on));
        // Without a wire, among the CPUs of one machine, epochs count switches.
        let wire_ns = (!self.setup.aligned).then(|| self.tai_ns(on, now_ns));
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        if cpu.epoch_slot != Some(slot) {
            cpu.epoch_slot = Some(slot);
            cpu.epoch = match wire_ns {
                _ if task.boosted => native::epoch_adopt(cpu.epoch, task.message_epoch),
                Some(tai_ns) => native::wire_epoch_next(cpu.epoch, on as u32, tai_ns),
                None => native::epoch_next(cpu.epoch, on as u32),
            };
        }
        if task.boosted {
            self.boosts += 1;
        }
        if task.park != Park::None {
            native::spin_learn(policy, &mut task.history, now_ns - task.wait_since_ns);
        }
        (task.boost, task.denied, task.owes, task.park) = (Boost::None, false, false, Park::None);
        (task.first_arrival_ns, task.wait_since_ns, task.progressed) = (0, now_ns, false);
    }
}
