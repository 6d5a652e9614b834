// SPDX-License-Identifier: GPL-2.0-only
//! What a process does that has the CPU: the steps of its program, and how its waits end.

use super::Wakeup;
use super::model::{Bsp, Event, GAPS, SPINS};
use super::process::Process;
use crate::engine::{NEVER_NS, Queue};
use crate::jobs::Step;
use crate::local::LocalScheduler;
use crate::node::Use;
use crate::policy::WaitFor;

impl<S: LocalScheduler + Clone> Bsp<'_, S> {
    /// The process in `slot` has the CPU, and first of all handles what has come.
    pub(super) fn resume(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let process = self.process_on(node, slot);
        self.handle_messages(process, queue);
        let it = &mut self.processes[process];
        if std::mem::take(&mut it.woken) {
            if it.satisfied {
                self.nodes[node].local.unblock(slot);
                return self.next(node, queue);
            }
            if self.setup.wakeup == Wakeup::Urgent {
                return self.sleep(node, slot, queue);
            }
            it.left_ns = self.setup.costs.switch_ns;
        }
        match it.step {
            Step::Wait(..) if it.satisfied => self.complete(node, slot, queue),
            Step::Done => self.go_on(node, slot, queue),
            _ => self.go(node, slot, queue),
        }
    }

    /// The running process goes on with its step, for what is left of it.
    pub(super) fn go(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (now_ns, process) = (queue.now_ns(), self.process_on(node, slot));
        let Process { step, left_ns, .. } = self.processes[process];
        if let (Step::Wait(..), 0) = (step, left_ns) {
            return self.sleep(node, slot, queue);
        }
        let it = &mut self.nodes[node];
        let timer = it.set_timer(now_ns.saturating_add(left_ns));
        let event = Event::Timer { node: node as u32, timer };
        let used_for = match step {
            Step::Wait(wait, _) => {
                if left_ns != NEVER_NS {
                    queue.after(SPINS, left_ns, event);
                }
                if wait == WaitFor::Read { Use::Communicate } else { Use::Synchronize }
            }
            Step::Gap(_) => {
                queue.after(GAPS, left_ns, event);
                Use::Compute
            }
            Step::Compute | Step::Done => {
                queue.at(now_ns + left_ns, event);
                Use::Compute
            }
        };
        it.use_for(used_for, now_ns);
    }

    /// The running process has done its step, and takes the next.
    pub(super) fn go_on(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let process = self.process_on(node, slot);
        let it = &mut self.processes[process];
        it.step = self.setup.program.next(it.step);
        it.left_ns = match it.step {
            Step::Compute => {
                it.iterations_left -= 1;
                if it.iterations_left == 0 {
                    return self.finish(node, slot, queue);
                }
                self.setup.program.compute_ns(&mut it.random)
            }
            Step::Wait(wait, _) => {
                (it.wait_began_ns, it.satisfied, it.slept, it.expires) = (queue.now_ns(), false, false, false);
                self.waits.spin_ns(wait, &it.history).unwrap_or(NEVER_NS)
            }
            _ => self.setup.program.gap_ns,
        };
        if let Step::Wait(wait, read) = it.step {
            self.ask(node, slot, wait, read, queue);
        }
        self.go(node, slot, queue);
    }

    /// The wait of the running process is over.
    pub(super) fn complete(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let process = self.process_on(node, slot);
        let it = &mut self.processes[process];
        let Step::Wait(wait, _) = it.step else { return };
        let kind = &mut self.successes[wait as usize];
        (kind[0], kind[1]) = (kind[0] + u64::from(!it.slept), kind[1] + 1);
        it.satisfied = false;
        if wait != WaitFor::Read && self.waits.learns() {
            self.waits.hear(&mut it.history, it.heard_us);
            if wait == WaitFor::OpeningBarrier {
                self.waits.learn(&mut it.history, queue.now_ns() - it.wait_began_ns);
            }
        }
        self.go_on(node, slot, queue);
    }

    fn sleep(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let process = self.process_on(node, slot);
        (self.processes[process].sleeps, self.processes[process].slept) = (true, true);
        self.nodes[node].charge(queue.now_ns());
        self.nodes[node].local.sleep(slot);
        self.next(node, queue);
    }

    fn finish(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let barrier = &mut self.barriers[slot as usize];
        (barrier.running, barrier.done_ns) = (barrier.running - 1, queue.now_ns());
        if barrier.running == 0 {
            self.jobs_left -= 1;
        }
        self.nodes[node].local.sleep(slot);
        self.next(node, queue);
    }

    /// What comes at the very moment in which a spin ends ends the wait: S = 2L spins through a round trip
    /// (Arpaci-Dusseau 5.1). So before it is over, all that was sent before has its turn.
    pub(super) fn spin_over(&mut self, node: usize, slot: u32, queue: &mut Queue<Event>) {
        let (process, now_ns) = (self.process_on(node, slot), queue.now_ns());
        if !std::mem::replace(&mut self.processes[process].expires, true) {
            let timer = self.nodes[node].set_timer(now_ns);
            return queue.at(now_ns, Event::Timer { node: node as u32, timer });
        }
        self.processes[process].expires = false;
        match self.waits.goes_on_until(now_ns, self.processes[process].arrival_ns) {
            Some(until_ns) => {
                self.processes[process].left_ns = until_ns - now_ns;
                self.go(node, slot, queue);
            }
            None => self.sleep(node, slot, queue),
        }
    }
}
