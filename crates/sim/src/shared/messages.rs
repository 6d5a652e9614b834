// SPDX-License-Identifier: GPL-2.0-only
//! What messages are to the scheduler: correspondents that are asked for before there is one (`bpf/prefetch.bpf.h`;
//! thesis 6.2.3, 6.2.6), and some that are no demand to run their receiver (thesis 6.2.5).

use super::model::{Event, MESSAGES, Shared};
use super::program::Pattern;
use super::task::{Boost, Correspondent};
use crate::engine::Queue;
use crate::node::Mode;

/// A process that was heard from in this time is a correspondent, in ns.
const RECENT_NS: u64 = 1_000_000_000;
/// The most correspondents of a task that are asked for, as in the kernel.
pub const MOST_PREFETCHED: u32 = 8;

/// Which messages are demands to run their receiver. All wake a receiver that sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum Demands {
    /// All.
    #[default]
    All,
    /// Those of neighbours.
    Exchange,
    /// Those with which all meet.
    Meeting,
}

/// How messages are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Messages {
    /// How many correspondents of a task are asked for when its slice begins; 0: none.
    pub prefetch: u32,
    /// Which are demands.
    pub demands: Demands,
}

impl Messages {
    /// Whether a message on this channel is a demand.
    pub fn demand(&self, pattern: Pattern, channel: u8) -> bool {
        let meets = pattern == Pattern::Meeting && channel > 1;
        match self.demands {
            Demands::All => true,
            Demands::Exchange => !meets,
            Demands::Meeting => meets,
        }
    }
}

impl Shared<'_> {
    /// A message has come for `slot` on this channel: who has sent it is a correspondent, in the place of the one that
    /// was heard from longest ago.
    pub(super) fn hears_from(&mut self, on: usize, slot: u32, channel: u8, now_ns: u64) {
        let most = self.setup.messages.prefetch as usize;
        if most == 0 {
            return;
        }
        let all = &mut self.task(on, slot).correspondents;
        if let Some(it) = all.iter_mut().find(|it| it.channel == channel) {
            it.heard_ns = now_ns;
            return;
        }
        if all.len() == most {
            let oldest = (0..most).min_by_key(|&place| all[place].heard_ns).unwrap_or(0);
            all.swap_remove(oldest);
        }
        all.push(Correspondent { channel, heard_ns: now_ns, told_ns: None });
    }

    /// `slot` has begun to run: in a new slice it has its correspondents asked for, each once in the time of a slice.
    pub(super) fn asks_ahead(&mut self, on: usize, slot: u32, queue: &mut Queue<Event>) {
        let is_new = self.cpus[on].node.local.is_new_slice(slot);
        if !is_new || !self.arrivals_demand(on, queue.now_ns()) || self.task(on, slot).correspondents.is_empty() {
            return;
        }
        let (now_ns, slice_ns) = (queue.now_ns(), self.policy(on).slice_ns);
        let (rank, processes, program) = (self.rank_of(on, slot), self.processes_of(slot), self.setup.program);
        let (epoch, rest_us) = (self.cpus[on].epoch, (self.cpus[on].node.local.rest_ns(slot) / 1000) as u32);
        let place = self.place_of(on, slot);
        let mut told = Vec::new();
        for it in &mut self.tasks[place].correspondents {
            let waits = it.told_ns.is_some_and(|told_ns| now_ns - told_ns < slice_ns);
            if !waits && now_ns - it.heard_ns < RECENT_NS {
                it.told_ns = Some(now_ns);
                told.push(program.source(it.channel, rank, processes));
            }
        }
        for source in told {
            let place = self.place_of_rank(slot, source);
            self.prefetches[0] += 1;
            queue.after(MESSAGES, self.setup.costs.latency_ns, Event::Ahead { place, epoch, rest_us });
        }
    }

    /// A correspondent of the task in this place has begun its slice. The gate is asked once, and nothing is left of it.
    pub(super) fn asked_ahead(&mut self, place: u32, epoch: u64, rest_us: u32, queue: &mut Queue<Event>) -> bool {
        let (on, slot) = (self.cpu_of(place), place % self.slots);
        let runs = matches!(self.cpus[on].node.mode, Mode::Running(it) | Mode::Switching(it) if it == slot);
        let is_here = self.is_present(self.node_of(on), slot);
        let task = self.task(on, slot);
        let is_free = !task.sleeps() && task.boost == Boost::None;
        if runs || !is_here || !is_free || !self.arrivals_demand(on, queue.now_ns()) {
            return false;
        }
        let task = self.task(on, slot);
        (task.message_epoch, task.message_slice_ns) = (epoch, u64::from(rest_us) * 1000);
        if self.asks(on, slot, queue.now_ns()) {
            self.prefetches[1] += 1;
            self.reschedule(on, queue);
        }
        true
    }
}
