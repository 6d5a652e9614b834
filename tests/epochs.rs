// SPDX-License-Identifier: GPL-2.0-only
//! Claim: with epochs nodes go from job to job together and do not go back for the messages of those that stayed
//! behind (thesis 3.3): a count of spontaneous switches, whose low bits tell apart nodes that have counted equally far.

use cosched_rules::native::{epoch_adopt, epoch_next};
use proptest::prelude::*;
use rules::{
    ALWAYS, AUTO, EPOCHS, EQUALIZING, GATES, IDLE, MS, POLICY, any_demand, any_policy, cosched_demand, cosched_policy,
    grants, reason,
};

#[path = "common/rules.rs"]
mod rules;

/// The epoch after `count` spontaneous switches, of which the last was on `node`.
fn epoch(count: u64, node: u64) -> u64 {
    count << 16 | node
}

/// A node with its epoch and the job that it runs.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Node {
    number: u32,
    epoch: u64,
    job: char,
}

impl Node {
    fn new(number: u32, job: char) -> Node {
        Node { number, epoch: 0, job }
    }

    /// Its slice is over, and it goes on to `job`.
    fn switches(&mut self, job: char) {
        (self.epoch, self.job) = (epoch_next(self.epoch, self.number), job);
    }

    /// A message from `sender` to its process of the sender's job comes, while that is as far as the running one.
    fn hears(&mut self, sender: Node) -> &'static str {
        let policy = cosched_policy { h_ns: -60 * MS as i64, ..cosched_policy { gate: EPOCHS, ..POLICY } };
        let demand = cosched_demand { message_epoch: sender.epoch, node_epoch: self.epoch, ..IDLE };
        let reason = reason(&policy, &demand);
        if self.job != sender.job && reason == "new_epoch" {
            (self.epoch, self.job) = (epoch_adopt(self.epoch, sender.epoch), sender.job);
        }
        reason
    }
}

#[test]
fn a_spontaneous_switch_counts_up_and_leaves_the_nodes_number() {
    for (before, node, after) in [
        (0, 3, epoch(1, 3)),
        (epoch(1, 3), 3, epoch(2, 3)),
        // One that was adopted: the number of the node that counted is replaced, be it higher or lower.
        (epoch(7, 9), 3, epoch(8, 3)),
        (epoch(7, 1), 3, epoch(8, 3)),
        // Only 16 bits of a number fit, and the last count does not wrap.
        (epoch(7, 1), 0x2_0003, epoch(8, 3)),
        (epoch((1 << 48) - 2, 1), 3, epoch((1 << 48) - 1, 3)),
        (epoch((1 << 48) - 1, 1), 3, epoch((1 << 48) - 1, 3)),
    ] {
        assert_eq!(epoch_next(before, node), after, "{before:#x} on node {node}");
    }
}

#[test]
fn a_boost_needs_a_later_epoch_and_the_equalizing_gate() {
    // The lead of the receiver in ms under h = -60, the epochs of message and node, and the answer.
    for (lead, message, node, expected) in [
        (0, epoch(1, 1), epoch(0, 2), "new_epoch"),
        (0, epoch(5, 1), epoch(5, 1), "old_epoch"),
        (0, epoch(4, 9), epoch(5, 1), "old_epoch"),
        // As a whole, with the number in it: of two nodes that have counted equally far one does not hear the other.
        (0, epoch(5, 2), epoch(5, 1), "new_epoch"),
        (0, epoch(5, 1), epoch(5, 2), "old_epoch"),
        (59, epoch(1, 1), 0, "new_epoch"),
        (60, epoch(1, 1), 0, "not_behind"),
        (60, 0, 0, "not_behind"),
    ] {
        let policy = cosched_policy { gate: EPOCHS, h_ns: -60 * MS as i64, ..POLICY };
        let demand =
            cosched_demand { receiver_ran_ns: lead * MS as i64, message_epoch: message, node_epoch: node, ..IDLE };
        assert_eq!(reason(&policy, &demand), expected, "lead {lead} message {message:#x} node {node:#x}");
    }
}

#[test]
fn any_gate_may_be_asked_for_later_epochs_besides() {
    for (gate, allowed) in [(ALWAYS, "always"), (EQUALIZING, "lags"), (AUTO, "below_target")] {
        // A task that has used half of its share lately, and lags.
        let demand = cosched_demand { cpu_ns: 50 * MS, fair_ns: 100 * MS, receiver_ran_ns: -30 * MS as i64, ..IDLE };
        let later = cosched_demand { message_epoch: epoch(2, 1), node_epoch: epoch(1, 2), ..demand };
        let plain = cosched_policy { gate, ..POLICY };
        assert_eq!(reason(&plain, &demand), allowed);
        let policy = cosched_policy { epochs: 1, ..plain };
        assert_eq!(reason(&policy, &demand), "old_epoch", "gate {gate}");
        assert_eq!(reason(&policy, &later), "new_epoch", "gate {gate}");
        // A node that runs somebody whom no messages come for is in no job's turn, so anybody may begin one.
        assert_eq!(reason(&policy, &cosched_demand { node_quiet: 1, ..demand }), allowed, "gate {gate}");
    }
    let thesis = cosched_policy { gate: EPOCHS, ..POLICY };
    let quiet = cosched_demand { node_quiet: 1, receiver_ran_ns: -30 * MS as i64, ..IDLE };
    assert_eq!(reason(&thesis, &quiet), "old_epoch");
}

#[test]
fn a_node_that_has_left_a_job_is_not_drawn_back_and_draws_the_others_along() {
    let mut nodes = [1, 2, 3].map(|number| Node::new(number, 'A'));
    nodes[0].switches('B');
    assert_eq!(nodes[0].hears(nodes[1]), "old_epoch");
    for n in [1, 2] {
        assert_eq!(nodes[n].hears(nodes[0]), "new_epoch");
    }
    // They share an epoch whose low bits are the number of the first, and hear of nothing new in it.
    assert!(nodes.iter().all(|n| (n.epoch, n.job) == (epoch(1, 1), 'B')), "{nodes:?}");
    assert_eq!(nodes[2].hears(nodes[1]), "old_epoch");
    // Whoever goes on next takes them along again.
    nodes[2].switches('A');
    assert_eq!(nodes[0].hears(nodes[2]), "new_epoch");
    assert_eq!(nodes[0], Node { number: 1, epoch: epoch(2, 3), job: 'A' });
}

#[test]
fn of_two_nodes_that_counted_equally_far_to_different_jobs_one_follows() {
    let (mut low, mut high) = (Node::new(1, 'A'), Node::new(2, 'A'));
    low.switches('B');
    high.switches('C');
    assert_ne!(low.epoch, high.epoch);
    assert_eq!(high.hears(low), "old_epoch");
    assert_eq!(low.hears(high), "new_epoch");
    assert_eq!((low.epoch, low.job), (high.epoch, high.job));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_switch_never_goes_back_and_is_the_nodes_own(before in any::<u64>(), node in any::<u32>()) {
        let after = epoch_next(before, node);
        prop_assert_eq!(after & 0xffff, u64::from(node) & 0xffff);
        prop_assert!(after > before || before >> 16 == (1 << 48) - 1);
        prop_assert!(after >> 16 >= before >> 16);
    }

    #[test]
    fn to_adopt_takes_the_later_of_two(a in any::<u64>(), b in any::<u64>()) {
        prop_assert_eq!(epoch_adopt(a, b), a.max(b));
    }

    #[test]
    fn epochs_only_take_away_from_what_equalizing_grants(
        policy in any_policy(EPOCHS..EPOCHS + 1), demand in any_demand(),
    ) {
        let equalizing = cosched_policy { gate: EQUALIZING, ..policy };
        let later = demand.message_epoch > demand.node_epoch;
        prop_assert_eq!(grants(&policy, &demand), grants(&equalizing, &demand) && later);
        prop_assert!(grants(&equalizing, &demand) || reason(&policy, &demand) == reason(&equalizing, &demand));
    }

    #[test]
    fn to_ask_for_later_epochs_only_takes_away_from_what_a_gate_grants(
        policy in any_policy(GATES), demand in any_demand(),
    ) {
        let asking = cosched_policy { epochs: 1, ..policy };
        let heard = demand.message_epoch > demand.node_epoch || demand.node_quiet != 0 && policy.gate != EPOCHS;
        prop_assert_eq!(grants(&asking, &demand), grants(&policy, &demand) && heard);
        prop_assert!(grants(&policy, &demand) || reason(&asking, &demand) == reason(&policy, &demand));
    }

    #[test]
    fn a_message_is_news_only_once(
        policy in any_policy(EPOCHS..EPOCHS + 1), demand in any_demand(), node in any::<u32>(),
    ) {
        // A node that has switched for it does not do so again, nor when it has moved on since.
        let adopted = epoch_adopt(demand.node_epoch, demand.message_epoch);
        for node_epoch in [adopted, epoch_next(adopted, node)] {
            let again = cosched_demand { node_epoch, ..demand };
            prop_assert!(!grants(&policy, &again) || adopted >> 16 == (1 << 48) - 1);
        }
    }

    #[test]
    fn nodes_that_talk_end_up_at_one_job(
        moves in prop::collection::vec((0..4usize, 0..4usize, 0..4u8), 1..50),
    ) {
        let mut nodes = [0, 1, 2, 3].map(|number| Node::new(number, 'A'));
        for (a, b, job) in moves {
            match job {
                0 => drop(nodes[a].hears(nodes[b])),
                job => nodes[a].switches(char::from(b'A' + job)),
            }
            // An epoch names one job: whoever has the same epoch runs the same.
            prop_assert!(nodes.iter().all(|n| nodes.iter().all(|m| n.epoch != m.epoch || n.job == m.job)));
        }
        let latest = *nodes.iter().max_by_key(|n| n.epoch).expect("there are nodes");
        for node in &mut nodes {
            node.hears(latest);
            prop_assert_eq!(node.job, latest.job);
        }
    }
}
