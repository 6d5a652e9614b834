// SPDX-License-Identifier: GPL-2.0-only
//! What ticks and timers do: slices end, who polls in vain is found out and leaves its CPU, somebody is boosted
//! periodically, rows take turns (`bpf/pulse.bpf.h`, `bpf/park.bpf.h`).

use super::beat::is_beat;
use super::dispatch::Leaves;
use super::model::{Event, PULSES, Shared, TICKS};
use super::task::{Park, Spends, Wait};
use crate::engine::Queue;
use crate::local::LocalScheduler;
use cosched_rules::intf;
use cosched_rules::native;

impl Shared<'_> {
    fn parks(&self, on: usize) -> bool {
        native::wait_parks(self.policy(on))
    }

    /// How often the scheduler's own timer beats, in ns; none: what a tick finds early enough needs no timer.
    pub(super) fn pulse_ns(&self, on: usize) -> Option<u64> {
        let policy = self.policy(on);
        let periodic = policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_PERIODIC;
        let beats = periodic || (self.parks(on) && policy.interval_ns < self.setup.tick_ns);
        (beats && policy.interval_ns > 0).then_some(policy.interval_ns)
    }

    /// The kernel's clock ticks.
    pub(super) fn tick(&mut self, on: usize, queue: &mut Queue<Event>) {
        queue.after(TICKS, self.setup.tick_ns, Event::Tick { cpu: on as u32 });
        let now_ns = queue.now_ns();
        let Some(slot) = self.running(on) else { return };
        let averages = self.policy(on).rate_average != 0;
        let cpu = &mut self.cpus[on];
        native::fair_note_presence(&mut cpu.presence, native::fair_room(cpu.node.local.weight()), now_ns);
        if averages {
            native::fair_note_presence(&mut cpu.waiting, cpu.node.local.nr_waiting(), now_ns);
        }
        self.settle(on, now_ns);
        let in_vain = self.parks(on) && self.pulse_ns(on).is_none() && self.finds_waiting(on, slot, now_ns);
        // Slices end with turns.
        let expired = !is_beat(self.policy(on)) && self.cpus[on].node.local.tick(slot);
        let boosted = self.task(on, slot).boosted;
        let outranked = !boosted && !is_beat(self.policy(on)) && self.cpus[on].node.local.outranks(slot);
        if expired || in_vain || outranked {
            let how = if expired && !in_vain { Leaves::Expired } else { Leaves::Preempted };
            self.stops(on, slot, how, queue);
            self.dispatch(on, queue);
        }
    }

    /// The scheduler's own timer beats.
    pub(super) fn pulse(&mut self, on: usize, queue: &mut Queue<Event>) {
        let Some(interval_ns) = self.pulse_ns(on) else { return };
        queue.after(PULSES, interval_ns, Event::Pulse { cpu: on as u32 });
        let (now_ns, policy) = (queue.now_ns(), self.policy(on));
        let Some(slot) = self.running(on) else { return };
        self.settle(on, now_ns);
        let short = self.task(on, slot).granted_ns < policy.slice_ns;
        let over = self.task(on, slot).boosted && short && self.cpus[on].node.local.rest_ns(slot) == 0;
        let in_vain = self.parks(on) && self.finds_waiting(on, slot, now_ns);
        let periodic = policy.arrival == intf::cosched_arrival_COSCHED_ARRIVAL_PERIODIC;
        let boosts = periodic && self.boosts_one(on, slot, true, now_ns);
        if over || in_vain || boosts {
            self.stops(on, slot, Leaves::Preempted, queue);
            self.dispatch(on, queue);
        }
    }

    /// The next time that a kernel thread takes a CPU.
    pub(super) fn schedules_kernel_thread(&mut self, on: usize, queue: &mut Queue<Event>) {
        let mean_ns = self.setup.uneven.kernel_thread_ns;
        if mean_ns > 0 {
            let after_ns = self.kernel_threads.exponential_ns(mean_ns as f64);
            queue.at(queue.now_ns() + after_ns, Event::KernelThread { cpu: on as u32 });
        }
    }

    /// A kernel thread has run on a CPU, which looks anew for whom to run. How long it took does not count.
    pub(super) fn kernel_thread(&mut self, on: usize, queue: &mut Queue<Event>) {
        self.schedules_kernel_thread(on, queue);
        if let Some(slot) = self.running(on) {
            self.stops(on, slot, Leaves::Preempted, queue);
            self.dispatch(on, queue);
        }
    }

    /// Gang, beat: a turn is over. Returns whether it is.
    pub(super) fn turn(&mut self, on: usize, queue: &mut Queue<Event>) -> bool {
        let policy = self.policy(on);
        if is_beat(policy) {
            return self.beat_turn_over(on, queue);
        }
        let rest_ns = native::gang_rest_ns(policy, self.tai_ns(on, queue.now_ns()));
        queue.at(queue.now_ns() + rest_ns, Event::Turn { cpu: on as u32 });
        self.reschedule(on, queue);
        true
    }

    /// Whether the running `slot` has polled in vain for longer than its spin time, as far as looks tell. If so it is
    /// to leave, and under spin-yield somebody is boosted.
    fn finds_waiting(&mut self, on: usize, slot: u32, now_ns: u64) -> bool {
        let (policy, wanted) = (self.policy(on), self.cpus[on].node.local.is_wanted());
        let task = self.task(on, slot);
        if task.wait == Wait::Spins || !task.talks || !wanted {
            return false;
        }
        if task.wait != Wait::Polls || std::mem::take(&mut task.progressed) {
            (task.wait_since_ns, task.progressed) = (now_ns, false);
            return false;
        }
        if now_ns - task.wait_since_ns < native::spin_ns(policy, &task.history) || !self.sees() {
            return false;
        }
        self.task(on, slot).park = Park::Wanted;
        if policy.wait == intf::cosched_wait_COSCHED_WAIT_SPIN_YIELD {
            self.boosts_one(on, slot, false, now_ns);
        }
        true
    }

    /// Whether `slot`, whose turn is over while it polls, is to be parked at once.
    pub(super) fn looks_at_preempted(&mut self, on: usize, slot: u32) -> bool {
        let blocks = self.policy(on).wait == intf::cosched_wait_COSCHED_WAIT_SPIN_BLOCK;
        let has_rest = self.cpus[on].node.local.has_rest(slot);
        let task = self.task(on, slot);
        blocks && !has_rest && task.wait == Wait::Polls && !task.progressed && self.sees()
    }

    /// Whether a look at a task that polls finds it inside its receive.
    fn sees(&mut self) -> bool {
        let in_vain = self.setup.uneven.looks_in_vain;
        in_vain <= 0.0 || self.looks.unit() > in_vain
    }

    /// `slot`, which is in the queue again, lets the others go first if it was to: until its message comes, or until
    /// they have had their turn. False: it was not, or has its message.
    pub(super) fn leaves_to_others(&mut self, on: usize, slot: u32, now_ns: u64) -> bool {
        let yields = self.policy(on).wait == intf::cosched_wait_COSCHED_WAIT_SPIN_YIELD;
        let place = self.place_of(on, slot);
        let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
        if task.park != Park::Wanted {
            return false;
        }
        task.park = Park::None;
        if task.has_message() {
            return false;
        }
        if yields {
            cpu.node.local.lets_one_go_first(slot);
            return true;
        }
        task.park = Park::Parked;
        task.spends(Spends::Off, now_ns);
        cpu.parked_looked_ns.get_or_insert(now_ns);
        cpu.node.local.park(slot);
        true
    }

    /// Gives those their place in the order back who are parked and have a message, or are to look again.
    pub(super) fn unparks(&mut self, on: usize, now_ns: u64) {
        let due = |looked_ns: u64| now_ns - looked_ns >= self.setup.tick_ns;
        if !std::mem::take(&mut self.cpus[on].unpark) && !self.cpus[on].parked_looked_ns.is_some_and(due) {
            return;
        }
        let recheck_ns = self.policy(on).recheck_ns;
        self.cpus[on].parked_looked_ns = None;
        for slot in 0..self.slots {
            let place = self.place_of(on, slot);
            let (cpu, task) = (&mut self.cpus[on], &mut self.tasks[place]);
            if task.park != Park::Parked || !cpu.node.local.queue().contains(&slot) {
                continue;
            }
            if task.unread == 0 && now_ns - task.queued_ns < recheck_ns {
                cpu.parked_looked_ns = Some(now_ns);
                continue;
            }
            task.park = Park::None;
            task.spends(Spends::Queue, now_ns);
            cpu.node.local.unpark(slot);
        }
    }
}
