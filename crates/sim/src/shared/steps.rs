// SPDX-License-Identifier: GPL-2.0-only
//! What a task does while it has the CPU, and how it waits.

use super::model::{Event, MESSAGES, Shared};
use super::program::Receiver;
use super::task::{Spends, Step, Wait};
use crate::engine::{NEVER_NS, Queue};
use crate::node::Use;
use cosched_rules::native;

impl Shared<'_> {
    /// `slot` runs on: with its computation, or with its wait.
    pub(super) fn resume(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        match self.task(on, slot).step {
            Step::Compute => self.computes(on, slot, queue),
            Step::Send(round) => self.sends(on, slot, round, queue),
            Step::Receive(round, index) => self.receives(on, slot, round, index, queue),
        }
    }

    /// The next iteration begins.
    fn begins_iteration(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let (program, now_ns) = (self.setup.program, queue.now_ns());
        let work_ns = program.work_ns(self.processes_of(slot), self.setup.costs.overhead_ns);
        let task = self.task(on, slot);
        let uneven_ns = if program.imbalance_ns > 0 { task.random.below(program.imbalance_ns + 1) } else { 0 };
        task.iterations += 1;
        (task.longest_ns, task.iterated_ns) = (task.longest_ns.max(now_ns - task.iterated_ns), now_ns);
        task.step = Step::Compute;
        task.left_ns = (work_ns + uneven_ns).saturating_sub(program.imbalance_ns / 2).max(1);
        self.computes(on, slot, queue);
    }

    fn computes(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        let task = self.task(on, slot);
        (task.wait, task.progressed) = (Wait::None, true);
        let until_ns = now_ns.saturating_add(task.left_ns);
        let it = &mut self.cpus[on].node;
        let timer = it.set_timer(until_ns);
        if until_ns != NEVER_NS {
            queue.at(until_ns, Event::Timer { cpu: on as u32, timer });
        }
    }

    /// The running task has computed, or has spun for as long as it was to.
    pub(super) fn step_over(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        if self.task(on, slot).wait == Wait::Spins {
            return self.spin_over(on, slot, queue);
        }
        match self.setup.program.rounds(self.processes_of(slot)) {
            0 => self.begins_iteration(on, slot, queue),
            _ => self.sends(on, slot, 0, queue),
        }
    }

    fn sends(&mut self, on: usize, slot: u32, number: u8, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        let (rank, processes) = (self.rank_of(on, slot), self.processes_of(slot));
        let round = self.setup.program.round(number, rank, processes);
        self.settle(on, now_ns);
        let (cpu, news) = (&self.cpus[on], self.beat_tells(on, slot, now_ns));
        let (epoch, rest_us) = match news.sizes {
            0 => (cpu.epoch, (cpu.node.local.rest_ns(slot) / 1000) as u32),
            _ => (news.tai_ns, news.theta),
        };
        for (distance, channel) in round.sends.into_iter().flatten() {
            let place = self.place_of_rank(slot, (rank + distance) % processes);
            let message = Event::Message { place, channel, epoch, rest_us, sizes: news.sizes };
            match self.late_ns() {
                0 => queue.after(MESSAGES, self.setup.costs.latency_ns, message),
                late_ns => queue.at(now_ns + self.setup.costs.latency_ns + late_ns, message),
            }
        }
        let task = self.task(on, slot);
        task.asked_ns = None;
        self.receives(on, slot, number, 0, queue);
    }

    /// By how much a message comes later, since it was lost and sent again, in ns.
    fn late_ns(&mut self) -> u64 {
        let faults = self.setup.faults;
        let mut late_ns = 0;
        while faults.loss > 0.0 && self.losses.unit() <= faults.loss {
            late_ns += faults.resend_ns;
        }
        late_ns
    }

    /// The running task takes the message with this place in the round, or waits for it.
    fn receives(&mut self, on: usize, slot: u32, number: u8, index: u8, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        let round = self.setup.program.round(number, self.rank_of(on, slot), self.processes_of(slot));
        let setup = self.setup;
        let task = self.task(on, slot);
        (task.step, task.unread, task.silent) = (Step::Receive(number, index), 0, 0);
        let Some(channel) = round.receives.get(usize::from(index)).copied().flatten() else {
            return self.round_over(on, slot, number, queue);
        };
        let pending = &mut task.pending[usize::from(channel)];
        if *pending > 0 {
            *pending -= 1;
            task.progressed = true;
            if setup.messages.demand(setup.program.pattern, channel) {
                task.asked_ns = Some(now_ns);
            }
            return self.receives(on, slot, number, index + 1, queue);
        }
        self.waits(on, slot, queue);
    }

    fn round_over(&mut self, on: usize, slot: u32, number: u8, queue: &mut Queue<Event>) {
        if number + 1 < self.setup.program.rounds(self.processes_of(slot)) {
            self.task(on, slot).step = Step::Send(number + 1);
            return self.sends(on, slot, number + 1, queue);
        }
        self.begins_iteration(on, slot, queue);
    }

    /// The running task finds no message.
    fn waits(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let now_ns = queue.now_ns();
        let meets = matches!(self.task(on, slot).step, Step::Receive(1.., _));
        let (used_for, spends) =
            if meets { (Use::Synchronize, Spends::Synchronize) } else { (Use::Communicate, Spends::Communicate) };
        self.cpus[on].node.use_for(used_for, now_ns);
        self.spends(on, slot, spends, now_ns);
        if self.setup.program.receiver == Receiver::Spin {
            self.task(on, slot).wait = Wait::Polls;
            self.cpus[on].node.set_timer(NEVER_NS);
            return;
        }
        let policy = self.policy(on);
        let task = self.task(on, slot);
        let spin_ns = native::wait_begin(policy, &mut task.history);
        if spin_ns == 0 {
            return self.goes_to_sleep(on, slot, queue);
        }
        (task.wait, task.wait_since_ns) = (Wait::Spins, now_ns);
        self.spins_until(on, now_ns + spin_ns, queue);
    }

    fn spins_until(&mut self, on: usize, until_ns: u64, queue: &mut Queue<Event>) {
        let timer = self.cpus[on].node.set_timer(until_ns);
        queue.at(until_ns, Event::Timer { cpu: on as u32, timer });
    }

    /// The running task has spun in vain. It spins on if its rule says so (Arpaci-Dusseau 3.4), else it sleeps.
    fn spin_over(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let (now_ns, policy) = (queue.now_ns(), self.policy(on));
        let task = self.task(on, slot);
        let since_ns = task.wait_since_ns.max(task.last_arrival_ns);
        if native::spin_goes_on(policy, now_ns - since_ns) {
            let until_ns = (since_ns + native::spin_interval_ns(policy)).max(now_ns + 1);
            return self.spins_until(on, until_ns, queue);
        }
        native::wait_end(policy, &mut task.history, false);
        self.goes_to_sleep(on, slot, queue);
    }

    fn goes_to_sleep(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        self.settle(on, queue.now_ns());
        self.sleeps(on, slot, queue.now_ns());
        self.dispatch(on, queue);
    }

    /// A message has come on the channel that the running `slot` waits for: it goes on.
    pub(super) fn wait_ends(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let (now_ns, policy) = (queue.now_ns(), self.policy(on));
        let task = self.task(on, slot);
        if task.wait == Wait::Spins {
            native::spin_learn(policy, &mut task.history, now_ns - task.wait_since_ns);
            native::wait_end(policy, &mut task.history, true);
        }
        task.wait = Wait::None;
        self.cpus[on].node.use_for(Use::Compute, now_ns);
        self.spends(on, slot, Spends::Compute, now_ns);
        let Step::Receive(number, index) = self.task(on, slot).step else { return };
        self.receives(on, slot, number, index, queue);
    }

    /// Whether `slot` receives on this channel.
    pub(super) fn receives_on(&self, on: usize, slot: u32, channel: u8) -> bool {
        let Step::Receive(number, index) = self.tasks[self.place_of(on, slot)].step else { return false };
        let round = self.setup.program.round(number, self.rank_of(on, slot), self.processes_of(slot));
        round.receives.get(usize::from(index)) == Some(&Some(channel))
    }
}
