// SPDX-License-Identifier: GPL-2.0-only
//! Jobs that come and go, and what all are due meanwhile.

use super::model::{Event, Shared};
use super::task::{Boost, Park, Spends, Step, Wait};
use crate::engine::Queue;
use crate::local::LocalScheduler;
use crate::node::Mode;

impl Shared<'_> {
    /// Whether a task has this slot of this node now.
    pub(super) fn is_present(&self, node: u32, slot: u32) -> bool {
        let (job, _) = self.setup.who_is(node, slot);
        match self.spans.get(job as usize) {
            Some(span) => span.is_here && span.index(node, self.setup.nodes).is_some(),
            None => job - self.setup.jobs < self.competitors[node as usize],
        }
    }

    /// How many tasks share a CPU of this node now, 1 if there are fewer than CPUs.
    fn tasks_a_cpu(&self, node: u32) -> f64 {
        let tasks = (0..self.slots).filter(|&slot| self.is_present(node, slot)).count();
        (tasks as f64 / f64::from(self.setup.cpus)).max(1.0)
    }

    /// Notes what all were due until now. To be called before a job comes or goes.
    pub(super) fn notes_dues(&mut self, now_ns: u64) {
        let passed_ns = (now_ns - self.dues_at_ns) as f64;
        self.dues_at_ns = now_ns;
        let mut least = vec![1.0f64; self.spans.len()];
        for node in 0..self.setup.nodes {
            let share = 1.0 / self.tasks_a_cpu(node);
            for slot in 0..self.slots {
                if !self.is_present(node, slot) {
                    continue;
                }
                self.tasks[(node * self.slots + slot) as usize].due_ns += passed_ns * share;
                if let Some(least) = least.get_mut(self.setup.who_is(node, slot).0 as usize) {
                    *least = least.min(share);
                }
            }
        }
        for (job, least) in least.into_iter().enumerate().filter(|&(job, _)| self.spans[job].is_here) {
            self.dues_ns[job] += passed_ns * least;
        }
    }

    /// The next time that a job comes or goes.
    pub(super) fn schedules_stay(&mut self, job: u32, queue: &mut Queue<Event>) {
        let mean_ns = self.setup.uneven.stay_ns;
        if mean_ns > 0 {
            let stay_ns = mean_ns / 2 + self.stays.below(mean_ns + 1);
            queue.at(queue.now_ns() + stay_ns, Event::Stay { job });
        }
    }

    /// A job goes, or comes back.
    pub(super) fn stay_over(&mut self, job: u32, queue: &mut Queue<Event>) {
        self.notes_dues(queue.now_ns());
        self.schedules_stay(job, queue);
        let goes = self.spans[job as usize].is_here;
        self.spans[job as usize].is_here = !goes;
        let (span, ranks, nodes) = (self.spans[job as usize], self.setup.ranks, self.setup.nodes);
        for node in (span.first..span.first + span.nodes).map(|node| node % nodes) {
            for slot in job * ranks..(job + 1) * ranks {
                let place = node * self.slots + slot;
                if goes { self.task_goes(place, queue) } else { self.task_comes(place, queue) }
            }
        }
    }

    fn task_goes(&mut self, place: u32, queue: &mut Queue<Event>) {
        let (on, slot, now_ns) = (self.tasks[place as usize].cpu as usize, place % self.slots, queue.now_ns());
        let mode = self.cpus[on].node.mode;
        if mode == Mode::Switching(slot) {
            let since_ns = self.cpus[on].node.switching_since_ns();
            self.cpus[on].node.begin(slot, since_ns);
            self.cpus[on].resched = false;
        }
        self.settle(on, now_ns);
        let ran = self.running(on) == Some(slot);
        let cpu = &mut self.cpus[on];
        Self::advance_shares(cpu, now_ns);
        if ran {
            cpu.node.local.sleep(slot);
        }
        cpu.node.local.leave(slot);
        let task = &mut self.tasks[place as usize];
        (task.wait, task.boost, task.boosted, task.park) = (Wait::Sleeps, Boost::None, false, Park::None);
        (task.step, task.left_ns, task.unread, task.owes, task.asked_ns) = (Step::Compute, 0, 0, false, None);
        task.silent = 0;
        (task.denied, task.first_arrival_ns, task.ahead_ns) = (false, 0, 0);
        task.pending.fill(0);
        task.spends(Spends::Away, now_ns);
        if ran {
            self.cpus[on].node.loaded_goes();
            self.dispatch(on, queue);
        }
    }

    fn task_comes(&mut self, place: u32, queue: &mut Queue<Event>) {
        let (on, slot, now_ns) = (self.tasks[place as usize].cpu as usize, place % self.slots, queue.now_ns());
        let cpu = &mut self.cpus[on];
        Self::advance_shares(cpu, now_ns);
        cpu.node.local.arrive(slot);
        let share_seen = cpu.shares.ns;
        let task = &mut self.tasks[place as usize];
        (task.wait, task.share_seen, task.queued_ns, task.iterated_ns) = (Wait::None, share_seen, now_ns, now_ns);
        task.spends(Spends::Queue, now_ns);
        if self.cpus[on].node.mode == Mode::Idle {
            self.dispatch(on, queue);
        }
    }
}
