// SPDX-License-Identifier: GPL-2.0-only
//! What the gates of `policies/` are to know of a CPU, kept beside Zhang's feedback queue, which still says who runs.
//!
//! A gate asks how far a task is ahead of the others on the fair clock of its CPU, what it has had of its share lately,
//! when it was boosted last, and of which epoch its message is. The clock is that of [`Fair`], which is told whatever
//! happens to the tasks and never asked for the next one. The rest is as `bpf/demand.bpf.h` has it, but for what the
//! feedback queue does in its own way: boosts that were cut short are not resumed, and levels that fall take the place
//! of the limit on boosts in a row.

use crate::local::{EFFECTIVE, Fair, LocalScheduler};
use cosched_rules::intf::{
    FAIR_LEAST_SLICE_NS, cosched_demand, cosched_policy, cosched_presence, cosched_share_clock, cosched_window,
};
use cosched_rules::native;

/// What a message takes along.
#[derive(Clone, Copy, Debug, Default)]
pub struct Stamp {
    /// The epoch of its sender's node.
    pub epoch: u64,
    /// What was left of its sender's quantum, in us; 0: nothing is known of it.
    pub rest_us: u32,
}

#[derive(Clone, Copy, Debug)]
struct Task {
    window: cosched_window,
    share_seen: u64,
    last_boost_ns: u64,
    stamp: Stamp,
    denied: bool,
    /// It is to run, or runs, because of a boost, which lasts for so long, in ns.
    granted: bool,
    boosted: bool,
    left_ns: u64,
}

const NEW: Task = Task {
    window: cosched_window { cpu_ns: 0, fair_ns: 0, stepped_ns: 0 },
    share_seen: 0,
    last_boost_ns: 0,
    stamp: Stamp { epoch: 0, rest_us: 0 },
    denied: false,
    granted: false,
    boosted: false,
    left_ns: 0,
};

/// The accounts of one CPU.
#[derive(Clone, Debug)]
pub struct Gate {
    policy: cosched_policy,
    fair: Fair,
    tasks: Vec<Task>,
    shares: cosched_share_clock,
    waiting: cosched_presence,
    epoch: u64,
    epoch_slot: Option<u32>,
}

impl Gate {
    /// Of a CPU with so many slots and nobody in them.
    pub fn new(policy: &cosched_policy, slots: usize) -> Gate {
        let fair = Fair::under(policy, slots);
        let (policy, tasks) = (*policy, vec![NEW; slots]);
        Gate {
            policy,
            fair,
            tasks,
            shares: native::NEW_SHARE_CLOCK,
            waiting: native::NEW_PRESENCE,
            epoch: 0,
            epoch_slot: None,
        }
    }

    fn task(&mut self, slot: u32) -> &mut Task {
        &mut self.tasks[slot as usize]
    }

    /// The clock of shares, and how many waited, are brought up to now, before the number of the runnable changes.
    fn advance_shares(&mut self, now_ns: u64) {
        native::account_advance(&mut self.shares, self.fair.weight(), now_ns);
        if self.policy.rate_average != 0 {
            native::fair_note_presence(&mut self.waiting, self.fair.nr_waiting(), now_ns);
        }
    }

    /// Somebody comes to `slot`.
    pub fn enters(&mut self, slot: u32, now_ns: u64) {
        self.advance_shares(now_ns);
        *self.task(slot) = Task { share_seen: self.shares.ns, ..NEW };
        self.fair.arrive(slot);
    }

    /// `slot`, which slept, can go on; `waited`: for a message, so that its claim to a share has gone on.
    pub fn wakes(&mut self, slot: u32, waited: bool, now_ns: u64) {
        self.advance_shares(now_ns);
        let (others, policy, clock) = (self.fair.weight(), self.policy, self.shares.ns);
        self.fair.wake(slot, false);
        let all = self.fair.weight();
        let task = self.task(slot);
        let share_ns = native::account_awaited(clock - task.share_seen, EFFECTIVE, others, all);
        if waited {
            native::window_add(&mut task.window, &policy, now_ns, 0, share_ns);
        }
        task.share_seen = clock;
    }

    /// `slot`, which ran and has been charged for it, sleeps or is gone.
    pub fn sleeps(&mut self, slot: u32, now_ns: u64) {
        self.advance_shares(now_ns);
        (self.task(slot).granted, self.task(slot).boosted) = (false, false);
        self.fair.sleep(slot);
    }

    /// `slot`, which ran and has been charged for it, makes way.
    pub fn stops(&mut self, slot: u32) {
        self.task(slot).boosted = false;
        self.fair.preempt(slot);
    }

    /// `slot` of this node gets the CPU. A switch that nobody was boosted for begins another epoch (thesis 3.3).
    pub fn takes(&mut self, slot: u32, node: u32) {
        self.fair.boost(slot, None);
        self.fair.pick();
        let epoch = self.epoch;
        let task = self.task(slot);
        (task.boosted, task.granted, task.denied) = (task.granted, false, false);
        let (boosted, stamp) = (task.boosted, task.stamp);
        if self.epoch_slot.replace(slot) != Some(slot) {
            self.epoch = match boosted {
                true => native::epoch_adopt(epoch, stamp.epoch),
                false => native::epoch_next(epoch, node),
            };
        }
    }

    /// `slot` has run for so long since it was last charged. False: its boost is over.
    pub fn ran(&mut self, slot: u32, ran_ns: u64, now_ns: u64) -> bool {
        self.advance_shares(now_ns);
        self.fair.charge(slot, ran_ns);
        let (policy, clock) = (self.policy, self.shares.ns);
        let task = self.task(slot);
        native::window_add(
            &mut task.window,
            &policy,
            now_ns,
            ran_ns,
            native::account_share(clock - task.share_seen, EFFECTIVE),
        );
        task.share_seen = clock;
        task.left_ns = task.left_ns.saturating_sub(ran_ns);
        !task.boosted || task.left_ns > 0
    }

    /// What a message of the process that runs takes along, which has so much left of its quantum.
    pub fn stamp(&self, rest_ns: u64) -> Stamp {
        Stamp { epoch: self.epoch, rest_us: (rest_ns / 1000).min(u64::from(u32::MAX)) as u32 }
    }

    /// A message has come for `slot`.
    pub fn hears(&mut self, slot: u32, stamp: Stamp) {
        self.task(slot).stamp = stamp;
    }

    /// Asks whether `slot`, which waits for the CPU, may be boosted; `quiet`: who runs there communicates with nobody.
    pub fn asks(&mut self, slot: u32, quiet: bool, now_ns: u64) -> bool {
        if self.task(slot).granted {
            return true;
        }
        self.advance_shares(now_ns);
        let (policy, clock, task) = (self.policy, self.shares.ns, self.tasks[slot as usize]);
        let mut window = task.window;
        native::window_add(&mut window, &policy, now_ns, 0, native::account_share(clock - task.share_seen, EFFECTIVE));
        let mut demand = cosched_demand {
            now_ns,
            last_boost_ns: task.last_boost_ns,
            denied: u32::from(task.denied),
            node_quiet: u32::from(quiet),
            cpu_ns: window.cpu_ns,
            fair_ns: window.fair_ns,
            message_epoch: task.stamp.epoch,
            node_epoch: self.epoch,
            mean_waiting: self.waiting.mean,
            ..native::IDLE_DEMAND
        };
        self.fair.describe(&mut demand, slot);
        let granted = native::grants(native::decide(&policy, &demand));
        let mut slice_ns = native::slice(&policy, &demand);
        if policy.residual_slice != 0 && task.stamp.rest_us > 0 {
            slice_ns = slice_ns.min(u64::from(task.stamp.rest_us) * 1000);
        }
        let task = self.task(slot);
        (task.granted, task.denied) = (granted, !granted);
        if granted {
            (task.last_boost_ns, task.left_ns) = (now_ns, slice_ns.max(u64::from(FAIR_LEAST_SLICE_NS)));
        }
        granted
    }

    /// Of those with a demand that was denied the fairest comes first: how far `slot` is ahead of the clock, in ns;
    /// none: it was denied nothing.
    pub fn denied_lead_ns(&self, slot: u32) -> Option<i64> {
        self.tasks[slot as usize].denied.then(|| self.fair.lead_ns(slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cosched_rules::costs::Costs;
    use cosched_rules::presets;

    const MS: u64 = 1_000_000;

    /// Two tasks of which the first runs for so long, and the second for twice as long; then it is asked for again.
    fn asked(policy: &str, ms: u64) -> (Gate, bool) {
        let costs = Costs { latency_us: 0.0, overhead_us: 0.0, switch_us: 0.0 };
        let mut gate = Gate::new(&presets::changed(policy).unwrap().to_bpf(&costs), 2);
        (0..2).for_each(|slot| gate.enters(slot, 0));
        gate.takes(0, 7);
        gate.ran(0, ms * MS, ms * MS);
        gate.stops(0);
        gate.takes(1, 7);
        gate.ran(1, 2 * ms * MS, 3 * ms * MS);
        gate.stops(1);
        gate.takes(0, 7);
        let granted = gate.asks(1, false, 3 * ms * MS);
        (gate, granted)
    }

    #[test]
    fn who_is_ahead_by_more_than_the_gate_allows_is_denied() {
        // The second has run twice as long as the first, so it is ahead by `ms`.
        for (policy, ms, granted) in [
            ("dcs+gate=always", 900, true),
            ("dcs", 50, true),
            ("dcs", 70, false),
            ("dcs+h_ms=-20", 30, false),
            ("dcs+h_ms=20", 1, false),
            ("dcs-sb", 5, true),
            ("dcs-sb", 200, false),
            // Never boosted, so the time since is all there was: 3 ms times 2^E against 2 slices of 20 ms.
            ("dcs+gate=rate", 13, false),
            ("dcs+gate=rate", 14, true),
            ("dcs+gate=rate+rate_exponent=1", 7, true),
            ("local", 1, false),
        ] {
            assert_eq!(asked(policy, ms).1, granted, "{policy} {ms}");
        }
    }

    #[test]
    fn a_boost_lasts_for_what_the_gate_grants_and_no_longer_than_the_senders_slice() {
        let (mut gate, granted) = asked("dcs", 50);
        assert!(granted);
        gate.stops(0);
        gate.takes(1, 7);
        // 10 ms are left of the 60 that it may be ahead.
        assert!(gate.ran(1, 9 * MS, 159 * MS));
        assert!(!gate.ran(1, MS, 160 * MS));
        let (mut gate, _) = asked("dcs+residual_slice=true", 70);
        gate.hears(1, Stamp { epoch: 0, rest_us: 3000 });
        gate.ran(0, 60 * MS, 270 * MS);
        assert!(gate.asks(1, false, 270 * MS));
        gate.stops(0);
        gate.takes(1, 7);
        assert!(gate.ran(1, 2 * MS, 272 * MS) && !gate.ran(1, MS, 273 * MS));
    }

    #[test]
    fn a_message_of_no_later_epoch_is_denied_and_a_boost_adopts_the_later() {
        let (mut gate, granted) = asked("dcs+gate=epochs", 1);
        // Three switches that nobody was boosted for.
        let own = gate.stamp(0).epoch;
        assert_eq!((granted, own), (false, 3 << 16 | 7));
        for (epoch, granted) in [(own, false), (own + 1, true)] {
            gate.hears(1, Stamp { epoch, rest_us: 0 });
            assert_eq!(gate.asks(1, false, 3 * MS), granted);
        }
        gate.stops(0);
        gate.takes(1, 7);
        assert_eq!(gate.stamp(0).epoch, own + 1);
    }

    #[test]
    fn a_claim_goes_on_while_one_waits_for_a_message_and_not_while_it_reads() {
        for (waited, granted) in [(true, true), (false, false)] {
            let (mut gate, _) = asked("dcs-sb", 30);
            // Let it be behind on the clock, and at its target of what is counted.
            gate.stops(0);
            gate.takes(1, 7);
            gate.sleeps(1, 90 * MS);
            gate.takes(0, 7);
            gate.ran(0, 200 * MS, 290 * MS);
            gate.wakes(1, waited, 290 * MS);
            gate.tasks[1].denied = true;
            assert_eq!(gate.asks(1, false, 290 * MS), granted);
        }
    }
}
