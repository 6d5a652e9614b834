// SPDX-License-Identifier: GPL-2.0-only
//! Turns that all nodes draw alike (`policies/beat.h`).
//!
//! Each CPU draws for itself: the jobs that have tasks on it take part, with the weight of these. What a message says
//! goes to the CPU of its receiver.

use std::cmp::{Ordering, Reverse};

use super::beat::{Beat, is_beat};
use super::dispatch::Leaves;
use super::model::{Event, Shared};
use super::task::Park;
use super::uneven::Piece;
use crate::engine::Queue;
use crate::local::{EFFECTIVE, WEIGHT};
use crate::node::Mode;
use cosched_rules::intf::{cosched_beat_job, cosched_beat_news};
use cosched_rules::native;

impl Shared<'_> {
    /// TAI of the node of the CPU `on`, as its clock has it.
    pub(super) fn tai_ns(&self, on: usize, now_ns: u64) -> u64 {
        let cpu = &self.cpus[on];
        cpu.tai_ns + now_ns + (now_ns as f64 * cpu.drift_ppm / 1e6) as u64
    }

    pub(super) fn has(&self, piece: Piece) -> bool {
        !self.setup.uneven.without.contains(&piece)
    }

    fn beat_clock_ns(&self, on: usize, now_ns: u64) -> u64 {
        native::beat_clock_ns(&self.cpus[on].beat.clock, self.tai_ns(on, now_ns))
    }

    /// Starts the turns of a CPU.
    pub(super) fn beat_starts(&mut self, on: usize, queue: &mut Queue<Event>) {
        self.beat_turns(on, queue.now_ns());
        self.beat_schedules(on, queue);
    }

    fn beat_schedules(&mut self, on: usize, queue: &mut Queue<Event>) {
        let rest_ns = self.beat_rest_ns(on, queue.now_ns());
        // A clock that goes too fast ends it earlier.
        let rest_ns = (rest_ns as f64 / (1.0 + self.cpus[on].drift_ppm / 1e6)).ceil() as u64;
        self.cpus[on].beat.ends_ns = queue.now_ns() + rest_ns;
        queue.at(self.cpus[on].beat.ends_ns, Event::Turn { cpu: on as u32 });
    }

    /// What is left of the turn, in ns.
    pub(super) fn beat_rest_ns(&self, on: usize, now_ns: u64) -> u64 {
        native::gang_rest_ns(self.policy(on), self.beat_clock_ns(on, now_ns)).max(1)
    }

    /// A turn ends on this CPU, if its clock was not moved meanwhile. Returns whether it was not.
    pub(super) fn beat_turn_over(&mut self, on: usize, queue: &mut Queue<Event>) -> bool {
        if self.cpus[on].beat.ends_ns != queue.now_ns() {
            return false;
        }
        self.beat_changes(on, queue);
        true
    }

    /// The clock of the CPU is another than before: by the time that has passed, or by what it has heard.
    fn beat_changes(&mut self, on: usize, queue: &mut Queue<Event>) {
        let turns = self.beat_turns(on, queue.now_ns());
        self.beat_schedules(on, queue);
        if !turns {
            return;
        }
        match self.cpus[on].node.mode {
            Mode::Idle => self.dispatch(on, queue),
            Mode::Switching(_) => self.cpus[on].resched = true,
            Mode::Running(slot) => {
                self.stops(on, slot, Leaves::Expired, queue);
                self.dispatch(on, queue);
            }
        }
    }

    /// Draws for the turn that it is, unless that is done. Returns whether it is a new one.
    fn beat_turns(&mut self, on: usize, now_ns: u64) -> bool {
        let policy = self.policy(on);
        let tai_ns = self.tai_ns(on, now_ns);
        native::beat_clock_turn(&mut self.cpus[on].beat.clock, policy, tai_ns);
        let clock_ns = self.beat_clock_ns(on, now_ns);
        let turn = clock_ns / policy.quantum_ns.max(1);
        if self.cpus[on].beat.turn == Some(turn) {
            return false;
        }
        self.settle(on, now_ns);
        let mut beat = std::mem::replace(&mut self.cpus[on].beat, Beat::new(0, &[]));
        beat.turn = Some(turn);
        self.beat_draws(on, turn, &mut beat);
        self.cpus[on].beat = beat;
        true
    }

    /// Draws which job has this turn.
    fn beat_draws(&self, on: usize, turn: u64, beat: &mut Beat) {
        let (node, jobs) = (self.node_of(on), self.setup.jobs);
        let (mut weights, mut after) = (vec![0u64; jobs as usize], 0);
        for slot in (0..self.slots).filter(|&slot| self.is_present(node, slot)) {
            if self.tasks[self.place_of(on, slot)].cpu as usize != on {
                continue;
            }
            let job = self.setup.who_is(node, slot).0 as usize;
            after += u64::from(WEIGHT);
            if let Some(weight) = weights.get_mut(job) {
                *weight += u64::from(WEIGHT);
            }
        }
        let mut order: Vec<usize> = (0..jobs as usize).filter(|&job| weights[job] > 0).collect();
        order.sort_by(|&a, &b| self.beat_order(&beat.jobs[a], &beat.jobs[b]));
        beat.winner = None;
        for job in order {
            after -= weights[job];
            let here = native::beat_theta(weights[job], after);
            let it = &mut beat.jobs[job];
            native::beat_renew(it, here, turn);
            if !self.has(Piece::Share) {
                it.theta = here;
                native::beat_settle(it, turn);
            }
            if native::beat_wins(it, turn, beat.winner.is_some()) {
                beat.winner = Some(job);
            }
        }
    }

    fn beat_order(&self, a: &cosched_beat_job, b: &cosched_beat_job) -> Ordering {
        if !self.has(Piece::Size) {
            return a.name.cmp(&b.name);
        }
        native::beat_is_before(b, a).cmp(&native::beat_is_before(a, b))
    }

    /// By how much `slot` is ahead of its share, up to where the clock of shares was brought.
    pub(super) fn surplus_ns(&self, on: usize, slot: u32) -> i64 {
        let (cpu, task) = (&self.cpus[on], &self.tasks[self.place_of(on, slot)]);
        task.ahead_ns.saturating_sub_unsigned(native::account_share(cpu.shares.ns - task.share_seen, EFFECTIVE))
    }

    /// The name of the job that goes first now. A job that holds the CPU does, or else the winner of the turn.
    pub(super) fn beat_first(&self, on: usize, now_ns: u64) -> Option<u64> {
        let beat = &self.cpus[on].beat;
        let winner = beat.winner.map_or(0, |job| beat.jobs[job].name);
        Some(native::beat_first(&beat.hold, winner, now_ns)).filter(|&name| name != 0)
    }

    /// Whether `slot` goes before others now.
    fn beat_leads(&self, on: usize, slot: u32, now_ns: u64) -> bool {
        let job = self.setup.who_is(self.node_of(on), slot).0 as usize;
        // No job has the name of one that competes.
        let name = self.cpus[on].beat.jobs.get(job).map(|job| job.name);
        let is_first = name.is_some() && name == self.beat_first(on, now_ns);
        is_first && native::beat_may_lead(self.policy(on), self.surplus_ns(on, slot))
    }

    /// Puts first, for the rest of this turn, the first in the fair order that is not parked; with `leads` only a task
    /// that goes before others in this turn. False: nobody is put first.
    pub(super) fn takes_turn(&mut self, on: usize, leads: bool, now_ns: u64) -> bool {
        if !is_beat(self.policy(on)) {
            return false;
        }
        self.beat_turns(on, now_ns);
        Self::advance_shares(&mut self.cpus[on], now_ns);
        let rest_ns = self.beat_rest_ns(on, now_ns);
        let queue = self.cpus[on].node.local.queue().iter().copied();
        let waits = queue.filter(|&slot| self.tasks[self.place_of(on, slot)].park != Park::Parked);
        let ranks = waits.map(|slot| (Reverse(self.beat_leads(on, slot, now_ns)), slot));
        // Of equals the first in the fair order.
        match ranks.min_by_key(|&(rank, _)| rank) {
            Some((Reverse(has_turn), slot)) if !leads || has_turn => {
                self.cpus[on].node.local.boost(slot, Some(rest_ns));
                true
            }
            _ => false,
        }
    }

    /// Whether `slot`, which has a message, is to run instead of the task that runs or is switched to. None: the fair
    /// order says that.
    pub(super) fn beat_preempts(&mut self, on: usize, slot: u32, now_ns: u64) -> Option<bool> {
        let (Mode::Running(other) | Mode::Switching(other)) = self.cpus[on].node.mode else { return Some(false) };
        if !self.has(Piece::Demand) {
            return Some(false);
        }
        Self::advance_shares(&mut self.cpus[on], now_ns);
        if self.beat_follows(on, slot, other, now_ns) {
            return Some(true);
        }
        let (leads, other_leads) = (self.beat_leads(on, slot, now_ns), self.beat_leads(on, other, now_ns));
        (leads != other_leads).then_some(leads)
    }

    /// Whether `slot` takes the CPU from `other` because its job is astray.
    fn beat_follows(&mut self, on: usize, slot: u32, other: u32, now_ns: u64) -> bool {
        let (policy, node) = (self.policy(on), self.node_of(on));
        let [job, of_other] = [slot, other].map(|slot| self.setup.who_is(node, slot).0);
        let surplus_ns = self.surplus_ns(on, slot);
        let cpu = &mut self.cpus[on];
        let [lead_ns, other_lead_ns] = [slot, other].map(|slot| cpu.node.local.lead_ns(slot));
        let it = &cpu.beat.jobs[job as usize];
        job != of_other
            && native::beat_may_lead(policy, surplus_ns)
            && native::beat_follows(&mut cpu.beat.hold, policy, it, lead_ns, other_lead_ns, now_ns)
    }

    /// What a message of `slot` says; nothing under other rules, which is a sketch of nobody.
    pub(super) fn beat_tells(&self, on: usize, slot: u32, now_ns: u64) -> cosched_beat_news {
        if !is_beat(self.policy(on)) {
            return native::NO_NEWS;
        }
        let job = self.setup.who_is(self.node_of(on), slot).0 as usize;
        native::beat_tell(&self.cpus[on].beat.jobs[job], self.beat_clock_ns(on, now_ns))
    }

    /// A message has come for `slot`, with what it says.
    pub(super) fn beat_hears(&mut self, on: usize, slot: u32, news: &cosched_beat_news, queue: &mut Queue<Event>) {
        let policy = self.policy(on);
        if !is_beat(policy) {
            return;
        }
        let (now_ns, job) = (queue.now_ns(), self.setup.who_is(self.node_of(on), slot).0 as usize);
        if news.sizes == 0 {
            if self.has(Piece::Astray) {
                native::beat_hear_nothing(&mut self.cpus[on].beat.jobs[job]);
            }
            return;
        }
        let tai_ns = self.tai_ns(on, now_ns);
        native::beat_hear(&mut self.cpus[on].beat.jobs[job], policy, news);
        if self.has(Piece::Clock)
            && native::beat_clock_hear(&mut self.cpus[on].beat.clock, policy, tai_ns, news.tai_ns) > 0
        {
            self.beat_changes(on, queue);
        }
    }
}
