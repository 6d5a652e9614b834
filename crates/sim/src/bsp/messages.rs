// SPDX-License-Identifier: GPL-2.0-only
//! Messages of the model: who is asked, what comes, and what its receiver does with it.

use super::Wakeup;
use super::model::{Bsp, Event};
use super::process::NOBODY;
use crate::engine::Queue;
use crate::jobs::Step;
use crate::local::LocalScheduler;
use crate::node::Mode;
use crate::policy::WaitFor;

impl<S: LocalScheduler + Clone> Bsp<'_, S> {
    /// Sends what a wait begins with.
    pub(super) fn ask(&mut self, node: usize, slot: u32, wait: WaitFor, read: u32, queue: &mut Queue<Event>) {
        let event = if wait == WaitFor::Read {
            let by = self.process_on(node, slot);
            let source = self.setup.program.source(node as u32, read, &mut self.processes[by].random);
            Event::Asked { process: self.process_on(source as usize, slot) as u32, by: by as u32 }
        } else {
            Event::Arrived { job: slot }
        };
        self.network.send(queue, event);
    }

    /// A message has come for `process`, and is noted.
    pub(super) fn deliver(&mut self, process: usize, queue: &mut Queue<Event>) {
        let (node, slot) = self.place_of(process);
        let it = &mut self.processes[process];
        it.arrival_ns = queue.now_ns();
        if it.sleeps {
            (it.sleeps, it.woken) = (false, true);
            self.nodes[node].local.wake(slot, self.setup.wakeup == Wakeup::Urgent);
            match self.nodes[node].mode {
                Mode::Idle => self.next(node, queue),
                _ => self.preempt_if_due(node, queue),
            }
        } else if self.nodes[node].mode == Mode::Running(slot) {
            self.handle_messages(process, queue);
            if self.processes[process].satisfied {
                self.complete(node, slot, queue);
            }
        }
    }

    /// The running process answers reads; the root of a barrier counts, and releases all when all are there.
    pub(super) fn handle_messages(&mut self, process: usize, queue: &mut Queue<Event>) {
        let mut asker = std::mem::replace(&mut self.processes[process].first_asker, NOBODY);
        while asker != NOBODY {
            self.network.send(queue, Event::Answered { process: asker });
            asker = self.processes[asker as usize].next_asker;
        }
        let (_, job) = self.place_of(process);
        if self.barriers[job as usize].buffered > 0 && process == self.root_of(job) {
            self.count_arrivals(process, job, queue);
        }
    }

    fn count_arrivals(&mut self, root: usize, job: u32, queue: &mut Queue<Event>) {
        let barrier = &mut self.barriers[job as usize];
        barrier.counted += std::mem::take(&mut barrier.buffered);
        if barrier.counted < self.setup.nodes {
            return;
        }
        barrier.counted = 0;
        // Until the release is there.
        let longest_ns = queue.now_ns() + self.setup.costs.latency_ns - barrier.first_ns;
        let it = &mut self.processes[root];
        let estimate_us = match it.step {
            Step::Wait(WaitFor::OpeningBarrier, _) => self.waits.estimate_us(&mut it.history, longest_ns),
            _ => it.history.estimate_us,
        };
        for node in 0..self.setup.nodes as usize {
            let process = self.process_on(node, job) as u32;
            self.network.send(queue, Event::Released { process, estimate_us });
        }
    }
}
