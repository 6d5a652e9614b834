// SPDX-License-Identifier: GPL-2.0-only
//! Claim: nodes that never talk about turns agree on them. Draws are even, wins have the shares that weights give, a
//! job that wins where most compete wins on all of its nodes, what messages carry becomes common, and a peer that lies
//! moves clocks and shares by no more than `policies/beat.h` says.

use cosched_rules::intf::{
    BEAT_AHEAD_TURNS, BEAT_BLOCK_SHIFT, BEAT_FORGIVES, BEAT_LEAK, BEAT_ONE, BEAT_PERIOD_TURNS, BEAT_STEPS,
    BEAT_SURPLUS_TURNS, cosched_beat_job as Job, cosched_beat_news as News, cosched_window,
};
use cosched_rules::native::*;
use proptest::prelude::*;
use rules::{BEAT, MS, POLICY, cosched_policy};

#[path = "common/rules.rs"]
mod rules;

const S: u64 = 20 * MS;
const BEATS: cosched_policy = cosched_policy { arrival: BEAT, quantum_ns: S, ..POLICY };
const PERIOD_TURNS: u64 = BEAT_PERIOD_TURNS as u64;
const BLOCK: u64 = 1 << BEAT_BLOCK_SHIFT;
/// A time with which periods begin, in turns.
const FIRST: u64 = PERIOD_TURNS << 20;

/// One node: its jobs in the order of their draws, and the weight of the rest.
struct Node {
    jobs: Vec<(Job, u64)>,
    rest: u64,
}

impl Node {
    fn new(number: u64, jobs: &[(u64, u64)], rest: u64) -> Node {
        let job = |&(name, weight): &(u64, u64)| (beat_job(name, number, FIRST / PERIOD_TURNS - 2), weight);
        Node { jobs: jobs.iter().map(job).collect(), rest }
    }

    fn renew(&mut self, turn: u64) {
        self.jobs.sort_by(|(a, _), (b, _)| beat_is_before(b, a).cmp(&beat_is_before(a, b)));
        let mut after: u64 = self.rest + self.jobs.iter().map(|(_, weight)| weight).sum::<u64>();
        for (job, weight) in &mut self.jobs {
            after -= *weight;
            beat_renew(job, beat_theta(*weight, after), turn);
        }
    }

    /// The name of the job that wins, and none in a turn of the rest.
    fn winner(&self, turn: u64) -> Option<u64> {
        let wins = |(job, _): &&(Job, u64)| beat_wins(job, turn, false);
        self.jobs.iter().find(wins).map(|(job, _)| job.name)
    }

    fn news(&self, name: u64, turn: u64) -> Option<News> {
        self.jobs.iter().find(|(job, _)| job.name == name).map(|(job, _)| beat_tell(job, turn * S))
    }

    fn hear(&mut self, name: u64, news: &News) {
        if let Some((job, _)) = self.jobs.iter_mut().find(|(job, _)| job.name == name) {
            beat_hear(job, &BEATS, news);
        }
    }
}

/// In a turn each node tells all that it knows to the node after it, on a ring, until all have heard all.
fn gossip(nodes: &mut [Node], turn: u64) {
    nodes.iter_mut().for_each(|node| node.renew(turn));
    let many = nodes.len();
    for from in (0..2 * many).map(|at| at % many) {
        let names: Vec<u64> = nodes[from].jobs.iter().map(|(job, _)| job.name).collect();
        for name in names {
            let news = nodes[from].news(name, turn).unwrap();
            nodes.iter_mut().for_each(|node| node.hear(name, &news));
        }
    }
}

#[test]
fn theta_is_the_weight_among_those_that_come_no_earlier() {
    let half = 1 << 31;
    for (weight, after, theta) in [
        (1, 1, half),
        (1, 3, half / 2),
        (1600, 1600, half),
        (3, 1, half + half / 2),
        (1, 0, BEAT_ONE),
        (0, 0, BEAT_ONE),
        (0, 5, 0),
        (u64::MAX, 1, BEAT_ONE),
        (1, u64::MAX, 0),
    ] {
        assert_eq!(beat_theta(weight, after), theta, "{weight} before {after}");
    }
}

#[test]
fn a_task_that_has_had_more_than_its_share_does_not_go_first() {
    let most = i64::from(BEAT_SURPLUS_TURNS) * S as i64;
    for (surplus, may) in [(i64::MIN, true), (0, true), (most, true), (most + 1, false), (i64::MAX, false)] {
        assert_eq!(beat_may_lead(&BEATS, surplus), may, "{surplus}");
    }
}

#[test]
fn a_task_weighs_what_it_is_due_and_no_more_than_twice_what_it_uses() {
    // Of a CPU: in the window, and here in 1 / 2^20.
    let (whole, fifth) = (2000 * MS, (1 << 20) / 5);
    for (cpu_ns, weight) in [
        (whole / 5, fifth),
        (whole / 8, fifth),
        (whole / 2, fifth),
        (whole / 100, fifth / 10),
        (0, 0),
        (u64::MAX, fifth),
    ] {
        let got = beat_weight(&cosched_window { cpu_ns, fair_ns: 0, stepped_ns: 0 }, fifth, 20);
        assert!(got.abs_diff(weight) < 100, "used {cpu_ns}, due {fifth}: {got}, not {weight}");
    }
}

#[test]
fn draws_are_the_same_in_every_version() {
    // Nodes of two versions must not disagree.
    let drawn = |theta| (1000..1064).filter(|&turn| beat_draws(7, turn, theta)).map(|turn| turn - 1000).collect();
    let (fifth, tenth): (Vec<u64>, Vec<u64>) = (drawn(BEAT_ONE / 5), drawn(BEAT_ONE / 10));
    assert_eq!(fifth, [3, 8, 13, 18, 23, 28, 33, 38, 43, 48, 52, 57, 62]);
    assert_eq!(tenth, [6, 15, 24, 33, 42, 51, 60]);
    assert_eq!([beat_sketch(0), beat_sketch(1), beat_sketch(2)], [0x100, 0x50000, 0x100]);
}

#[test]
fn wins_have_the_shares_that_weights_give() {
    let turns = FIRST..FIRST + (1 << 15);
    for (weights, rest) in [
        (vec![1], 1),
        (vec![1, 1], 2),
        (vec![1, 1, 1, 1], 1),
        (vec![1; 8], 1),
        (vec![3, 1], 4),
        (vec![1, 3], 4),
        (vec![1, 1], 0),
        (vec![200, 100, 50], 1000),
    ] {
        for seed in 0..8 {
            let jobs: Vec<(u64, u64)> = weights.iter().enumerate().map(|(at, &w)| (seed * 97 + at as u64, w)).collect();
            let mut node = Node::new(0, &jobs, rest);
            let mut wins = vec![0u64; jobs.len()];
            for turn in turns.clone() {
                node.renew(turn);
                if let Some(name) = node.winner(turn) {
                    wins[jobs.iter().position(|job| job.0 == name).unwrap()] += 1;
                }
            }
            let all = (rest + weights.iter().sum::<u64>()) as f64;
            for (at, &won) in wins.iter().enumerate() {
                let (share, fair) = (won as f64 / (1 << 15) as f64, weights[at] as f64 / all);
                // Blocks are independent of each other, 512 of them: this is five times the deviation.
                assert!((share - fair).abs() < 0.01, "{weights:?}, {rest}: job {at} has {share}, not {fair}");
            }
        }
    }
}

#[test]
fn no_two_jobs_are_unlucky_with_each_other_for_long() {
    // As many turns as 82 s have. In each of 200 pairs the second wins a third of what the first leaves to it.
    let turns = FIRST..FIRST + (1 << 12);
    for seed in 0..200 {
        let mut node = Node::new(0, &[(seed, 1), (seed + 1000, 1)], 2);
        let winners = turns.clone().map(|turn| {
            node.renew(turn);
            node.winner(turn)
        });
        let winners: Vec<_> = winners.collect();
        for name in [seed, seed + 1000] {
            let share = winners.iter().filter(|&&winner| winner == Some(name)).count() as f64 / (1 << 12) as f64;
            assert!((share - 0.25).abs() < 0.01, "{seed}: {share}");
        }
    }
}

#[test]
fn the_winner_where_most_compete_wins_everywhere() {
    // Two jobs on 12 nodes with none to eleven competitors.
    let jobs = [(11, 100), (22, 100)];
    let mut nodes: Vec<Node> = (0..12).map(|n| Node::new(n, &jobs, 100 * n)).collect();
    // They know theta after two periods, and draw by it from the next block on.
    let agree = FIRST + 2 * PERIOD_TURNS + BLOCK;
    for turn in FIRST..agree {
        gossip(&mut nodes, turn);
    }
    let mut wins = 0;
    for turn in agree..FIRST + 500 * PERIOD_TURNS {
        gossip(&mut nodes, turn);
        let winner = nodes[11].winner(turn);
        wins += u64::from(winner.is_some());
        assert!(nodes.iter().all(|node| node.winner(turn) == winner), "in turn {turn}");
    }
    let share = wins as f64 / (498 * PERIOD_TURNS - BLOCK) as f64;
    assert!((share - 2.0 / 13.0).abs() < 0.01, "{share}");
}

#[test]
fn a_larger_job_elsewhere_costs_no_agreement_where_it_is_not() {
    // The large job is on nodes 0 to 7, the small one on 6 to 9.
    let of = |n: u64| match n {
        0..6 => vec![(5, 1)],
        6..8 => vec![(5, 1), (4, 1)],
        _ => vec![(4, 1)],
    };
    let mut nodes: Vec<Node> = (0..10).map(|n| Node::new(n, &of(n), 2)).collect();
    for turn in FIRST..FIRST + 2 * PERIOD_TURNS {
        gossip(&mut nodes, turn);
    }
    let (mut large, mut small) = (0, 0);
    for turn in FIRST + 2 * PERIOD_TURNS..FIRST + 1000 * PERIOD_TURNS {
        gossip(&mut nodes, turn);
        let wins = |from: usize, to: usize, name| (from..to).all(|n| nodes[n].winner(turn) == Some(name));
        assert_eq!(wins(0, 8, 5), nodes[6].winner(turn) == Some(5), "all of the large job, in turn {turn}");
        large += u64::from(wins(0, 8, 5));
        small += u64::from(wins(6, 10, 4));
    }
    let share = |wins: u64| wins as f64 / (998 * PERIOD_TURNS) as f64;
    // A quarter for each, since four share nodes 6 and 7.
    assert!((share(large) - 0.25).abs() < 0.01 && (share(small) - 0.25).abs() < 0.02, "{large} {small}");
}

#[test]
fn what_changes_on_one_node_is_known_on_all_in_two_periods() {
    let mut nodes: Vec<Node> = (0..5).map(|n| Node::new(n, &[(1, 1)], 1)).collect();
    let mut turn = FIRST;
    let mut pass = |nodes: &mut [Node], turns: u64| {
        (0..turns).for_each(|_| {
            gossip(nodes, turn);
            turn += 1;
        });
        nodes.iter().map(|node| node.jobs[0].0.theta).collect::<Vec<_>>()
    };
    assert_eq!(pass(&mut nodes, 2 * PERIOD_TURNS), [beat_theta(1, 1); 5]);
    nodes[3].rest = 4;
    assert_eq!(pass(&mut nodes, 2 * PERIOD_TURNS), [beat_theta(1, 4); 5]);
    nodes[3].rest = 2;
    assert_eq!(pass(&mut nodes, 2 * PERIOD_TURNS), [beat_theta(1, 2); 5]);
    // What a message of another period says does not count.
    let before = nodes[0].jobs[0].0;
    let news = News { tai_ns: (FIRST - 1) * S, theta: 1, sizes: 0x4040_4040 };
    nodes[0].hear(1, &news);
    assert_eq!(format!("{:?}", nodes[0].jobs[0].0), format!("{before:?}"));
}

#[test]
fn sizes_are_told_apart_and_the_same_on_all_nodes() {
    let sketch = |nodes: std::ops::Range<u64>| nodes.map(beat_sketch).fold(0, beat_sketch_merge);
    for first in [0, 1000, 1 << 40] {
        let sizes: Vec<u32> = [1, 16, 256, 4096, 65_536].map(|n| beat_size(sketch(first..first + n))).to_vec();
        assert!(sizes.windows(2).all(|pair| pair[0] + 4 < pair[1]), "{sizes:?}");
    }
    // 4 log2 of the nodes in each byte, and a constant: within 3 deviations.
    for n in [64u64, 1024, 16_384] {
        let size = f64::from(beat_size(sketch(0..n)));
        let wanted = 4.0 * ((n as f64 / 4.0).log2() + 1.33);
        assert!((size - wanted).abs() < 12.0, "{n}: {size}, not {wanted}");
    }
}

const SECOND: u64 = 1000 * MS;
#[test]
fn a_job_with_a_node_that_does_not_draw_draws_nowhere_until_that_is_over() {
    let mut nodes: Vec<Node> = (0..4).map(|n| Node::new(n, &[(1, 1), (2, 1)], 1)).collect();
    let mut turn = FIRST;
    let mut pass = |nodes: &mut [Node], is_heard: bool| {
        let mut wins = [0, 0];
        for _ in 0..2 * PERIOD_TURNS {
            if is_heard {
                let found = nodes[2].jobs.iter_mut().find(|(job, _)| job.name == 2);
                beat_hear_nothing(&mut found.unwrap().0);
            }
            gossip(nodes, turn);
            for (at, name) in [1, 2].into_iter().enumerate() {
                wins[at] += nodes.iter().filter(|node| node.winner(turn) == Some(name)).count();
            }
            turn += 1;
        }
        wins
    };
    pass(&mut nodes, true);
    let wins = pass(&mut nodes, true);
    assert!(wins[0] > 0 && wins[1] == 0, "{wins:?}");
    pass(&mut nodes, false);
    let wins = pass(&mut nodes, false);
    assert!(wins[0] > 0 && wins[1] > 0, "{wins:?}");
}

#[test]
fn a_job_that_is_astray_holds_the_cpu_for_a_quarter_of_a_turn_while_that_is_fair() {
    let job = Job { astray: 1, ..beat_job(3, 1, 0) };
    let other = Job { astray: 1, ..beat_job(4, 1, 0) };
    let ahead = 3 * S as i64;
    for (lead, running, follows) in [
        (0, 0, true),
        (-1, i64::MAX, true),
        (0, i64::MAX, true),
        (ahead - 1, 0, true),
        (ahead, 1, true),
        (ahead, 0, false),
        (i64::MAX, i64::MIN, false),
    ] {
        let mut hold = NEW_BEAT_HOLD;
        assert_eq!(beat_follows(&mut hold, &BEATS, &job, lead, running, NOW), follows, "{lead} {running}");
        assert_eq!((hold.name, hold.until_ns), if follows { (3, NOW + S / 4) } else { (0, 0) });
    }
    let mut hold = NEW_BEAT_HOLD;
    assert!(!beat_follows(&mut hold, &BEATS, &beat_job(3, 1, 0), 0, 0, NOW), "it is not astray");
    assert!(beat_follows(&mut hold, &BEATS, &job, 0, 0, NOW));
    for (at, is_held) in [(NOW, true), (NOW + S / 4 - 1, true), (NOW + S / 4, false)] {
        let mut held = hold;
        assert_eq!(beat_follows(&mut held, &BEATS, &other, 0, 0, at), !is_held);
        assert_eq!(beat_first(&hold, 4, at), if is_held { 3 } else { 4 });
    }
}

/// TAI of some moment, in ns, far from 0.
const NOW: u64 = 1_800_000_000 * SECOND;

#[test]
fn clocks_come_to_the_latest_by_small_steps_or_whole_turns() {
    for off in [0, 1, MS, 4 * MS, S / 2, S - 1, S, S + MS, 3 * S + MS] {
        let mut clock = NEW_BEAT_CLOCK;
        for turn in 0..25 {
            let tai = NOW + turn * S;
            beat_clock_turn(&mut clock, &BEATS, tai);
            let before = clock.ahead_ns;
            for _ in 0..5 {
                beat_clock_hear(&mut clock, &BEATS, tai, tai + off);
            }
            let step = clock.ahead_ns - before;
            assert!(step % S <= S / u64::from(BEAT_STEPS), "{off}: a step of {step} in turn {turn}");
        }
        assert!(off - clock.ahead_ns <= S / u64::from(BEAT_LEAK), "{off}: {clock:?}");
    }
}

#[test]
fn a_peer_that_lies_moves_a_clock_no_further_than_the_bound_and_it_comes_back() {
    let bound = u64::from(BEAT_AHEAD_TURNS) * S;
    for lie in [S / 20, S / 2, S, 10 * S, NOW / 2] {
        let mut clock = NEW_BEAT_CLOCK;
        let (mut turns, mut forward) = (0, 0);
        for turn in 0..10_000 {
            let tai = NOW + turn * S;
            let before = (clock.ahead_ns, clock.turn);
            beat_clock_turn(&mut clock, &BEATS, tai);
            for _ in 0..3 {
                let (told, at_first) = (beat_clock_ns(&clock, tai) + lie, clock.ahead_ns);
                beat_clock_hear(&mut clock, &BEATS, tai, told);
                forward += clock.ahead_ns - at_first;
            }
            assert!(clock.ahead_ns <= bound, "{lie}: {clock:?}");
            turns += (clock.ahead_ns.saturating_sub(before.0)) / S;
        }
        // At once by the bound, and later by what has leaked meanwhile.
        let most = u64::from(BEAT_AHEAD_TURNS) + 10_000 / u64::from(BEAT_LEAK) + 1;
        assert!(turns <= most, "{lie}: {turns} turns were left out");
        assert!(forward <= bound + 10_000 * S / u64::from(BEAT_LEAK), "{lie}: {forward} ns forward in all");
        let back = u64::from(BEAT_AHEAD_TURNS * BEAT_LEAK) + 2 * u64::from(BEAT_AHEAD_TURNS);
        for turn in 10_000..10_000 + back + 10 {
            beat_clock_turn(&mut clock, &BEATS, NOW + turn * S);
        }
        assert_eq!(clock.ahead_ns, 0, "{lie}");
    }
}

#[test]
fn a_clock_whose_tai_is_set_back_steps_and_comes_back_as_before() {
    let mut clock = NEW_BEAT_CLOCK;
    beat_clock_turn(&mut clock, &BEATS, NOW + 10_000 * S);
    for turn in 0..10 * u64::from(BEAT_LEAK) {
        let tai = NOW + turn * S;
        beat_clock_turn(&mut clock, &BEATS, tai);
        // A peer is ahead by a little, and then no more.
        let later = tai + clock.ahead_ns + S / 100;
        assert!(turn >= 5 || beat_clock_hear(&mut clock, &BEATS, tai, later) > 0, "turn {turn}");
    }
    assert_eq!(clock.ahead_ns, 0);
}

/// What three entities have of a CPU in which `heard` is what peers say of the chances of two jobs: shares, and in
/// which order they draw. The third are those that do not communicate. A job that is far ahead of its share does not go
/// first.
fn shares(heard: [Option<u32>; 2], sizes: [u32; 2], weights: [u64; 3], turns: u64) -> [f64; 3] {
    let mut node = Node::new(1, &[(5, weights[0]), (6, weights[1])], weights[2]);
    let all: u64 = weights.iter().sum();
    let (mut ran, mut surplus) = ([0u64; 3], [0i64; 3]);
    for turn in FIRST..FIRST + turns {
        node.renew(turn);
        let lead = |ran: &[u64; 3], at: usize| {
            let fair = ran.iter().sum::<u64>() * weights[at] / all;
            // As in policies/fair.h: on the clock of one of the default weight, which all here have in the mean.
            (ran[at] as i64 - fair as i64) * all as i64 / (3 * weights[at]) as i64
        };
        for (at, name) in [(0, 5), (1, 6)] {
            let news = News { tai_ns: turn * S, theta: heard[at].unwrap_or(BEAT_ONE), sizes: sizes[at] };
            node.hear(name, &news);
        }
        let mut runs = None;
        for (job, _) in &node.jobs {
            if beat_wins(job, turn, runs.is_some()) {
                runs = Some(usize::from(job.name == 6));
            }
        }
        let first = (0..3).min_by_key(|&at| lead(&ran, at)).unwrap();
        let runs = runs.filter(|&at| beat_may_lead(&BEATS, surplus[at])).unwrap_or(first);
        ran[runs] += S;
        for at in 0..3 {
            surplus[at] = beat_charge(surplus[at], &BEATS, if at == runs { S } else { 0 }, S * weights[at] / all);
        }
    }
    ran.map(|ns| ns as f64 / (turns * S) as f64)
}

#[test]
fn a_peer_that_lies_about_shares_or_sizes_moves_no_share_by_more_than_2_percent() {
    // Of twenty seconds.
    let turns = 1000;
    for weights in [[1, 1, 1], [1, 1, 2], [2, 1, 1], [1, 3, 2], [1, 1, 8]] {
        let all = weights.iter().sum::<u64>() as f64;
        for heard in [None, Some(0), Some(1), Some(BEAT_ONE / 10), Some(BEAT_ONE)] {
            for other in [None, Some(0), Some(BEAT_ONE)] {
                for sizes in [[0, 0], [0x3c3c_3c3c, 0], [0, 0x3c3c_3c3c], [u32::MAX, u32::MAX]] {
                    let found = shares([heard, other], sizes, weights, turns);
                    for at in 0..3 {
                        let off = found[at] - weights[at] as f64 / all;
                        assert!(off.abs() < 0.02, "{weights:?}, {heard:?}, {other:?}, {sizes:?}: {found:?}");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 5000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn news_that_are_gathered_say_what_each_of_them_says(
        all in prop::collection::vec((0..3 * PERIOD_TURNS, any::<u32>(), 0..1000u64), 0..8), turn in 0..PERIOD_TURNS,
    ) {
        let of = |&(turn, theta, node): &(u64, u32, u64)| {
            News { tai_ns: (FIRST + turn) * S, theta, sizes: beat_sketch(node) }
        };
        let period = FIRST / PERIOD_TURNS + 1;
        let mut one_by_one = beat_job(7, 1, period);
        let mut at_once = one_by_one;
        // What was gathered in the period before does not count.
        let mut gathered = News { tai_ns: FIRST * S, theta: 0, sizes: beat_sketch(5000) };
        for news in all.iter().map(of) {
            beat_hear(&mut one_by_one, &BEATS, &news);
            beat_gather(&mut gathered, &BEATS, &news, (FIRST + PERIOD_TURNS + turn) * S);
        }
        beat_hear(&mut at_once, &BEATS, &gathered);
        prop_assert_eq!(format!("{one_by_one:?}"), format!("{at_once:?}"));
    }

    #[test]
    fn the_longest_wait_of_a_job_that_draws_first(name: u64, first in 0..u64::MAX / 2, theta in BEAT_ONE / 64..=BEAT_ONE) {
        // In any block it counts to this, or one more.
        let counts = ((u64::from(theta) + 1) * BLOCK) >> 32;
        let mut idle = 0;
        for turn in first..first + 4 * BLOCK {
            idle = if beat_draws(name, turn, theta) { 0 } else { idle + 1 };
            prop_assert!(idle * (counts - 1) < BLOCK, "no win in {} turns, and {} in a block", idle, counts);
        }
    }

    #[test]
    fn a_share_that_goes_to_and_fro_makes_no_longer_wait(
        name: u64, first in 0..u64::MAX / 2, theta in BEAT_ONE / 64..=BEAT_ONE / 2,
    ) {
        // By as much as makes one draw in a block.
        let (other, counts) = (theta - BEAT_ONE / BLOCK as u32, ((u64::from(theta) + 1) * BLOCK) >> 32);
        let mut job = beat_job(name, 1, first / PERIOD_TURNS - 2);
        let mut idle = 0;
        for turn in first..first + 8 * BLOCK {
            beat_renew(&mut job, if (turn / PERIOD_TURNS).is_multiple_of(2) { theta } else { other }, turn);
            idle = if beat_wins(&job, turn, false) { 0 } else { idle + 1 };
            let is_in_time = counts < 3 || idle * (counts - 2) < BLOCK;
            prop_assert!(is_in_time, "no win in {} turns, and {} in a block", idle, counts);
        }
    }

    #[test]
    fn one_wins(names: [u64; 4], thetas: [u32; 4], turn: u64) {
        let mut winner = None;
        for at in 0..4 {
            let mut job = Job { theta: thetas[at], ..beat_job(names[at], 1, 0) };
            beat_settle(&mut job, turn);
            if beat_wins(&job, turn, winner.is_some()) {
                prop_assert!(winner.is_none() && beat_draws(names[at], turn, thetas[at]));
                winner = Some(at);
            }
        }
    }

    #[test]
    fn a_task_gains_no_more_by_turns_than_the_bound_whatever_is_forgiven(
        lies in prop::collection::vec((any::<bool>(), 1..3000usize), 1..6), share in 2..20u64, others: bool,
    ) {
        // In a turn that it may not have first, the task has its share, or nothing. What it was ahead is forgiven.
        let (mut ahead, mut turn) = (0, 0u64);
        let (mut gained, mut least, mut most) = (0i64, 0i64, 0i64);
        for (wins, turns) in lies {
            for _ in 0..turns {
                turn += 1;
                let fair = S / share;
                let leads = (wins || turn % share == 0) && beat_may_lead(&BEATS, ahead);
                let ran = if leads { S } else if others && turn % 3 == 0 { 0 } else { fair };
                ahead = beat_charge(ahead, &BEATS, ran, fair);
                gained += ran as i64 - (fair + fair / u64::from(BEAT_FORGIVES)) as i64;
                least = least.min(gained);
                most = most.max(gained - least);
            }
        }
        prop_assert!(most <= i64::from(2 * BEAT_SURPLUS_TURNS + 1) * S as i64, "{most} ns within some time");
    }

    #[test]
    fn every_clock_and_message_is_survived(
        quantum_ns in prop_oneof![any::<u64>(), 0..1000u64, MS..SECOND], ahead_ns: u64, stepped_ns: u64, turn: u64,
        tai_ns: u64, heard_ns: u64,
    ) {
        let policy = cosched_policy { quantum_ns, ..BEATS };
        let mut clock = cosched_rules::intf::cosched_beat_clock { ahead_ns, stepped_ns, turn };
        beat_clock_turn(&mut clock, &policy, tai_ns);
        // By going back a little a clock that wraps, after 584 years, comes to another turn: that begins too.
        beat_clock_turn(&mut clock, &policy, tai_ns);
        let before = clock.ahead_ns;
        let by_ns = beat_clock_hear(&mut clock, &policy, tai_ns, heard_ns);
        prop_assert_eq!(clock.ahead_ns, before.wrapping_add(by_ns));
        prop_assert!(clock.ahead_ns >= before || before > u64::MAX - quantum_ns);
    }

    #[test]
    fn sketches_come_together_in_any_order(a: u32, b: u32, c: u32) {
        let merge = beat_sketch_merge;
        prop_assert_eq!(merge(a, b), merge(b, a));
        prop_assert_eq!(merge(merge(a, b), c), merge(a, merge(b, c)));
        prop_assert_eq!(merge(a, a), a);
        prop_assert!(beat_size(merge(a, b)) >= beat_size(a).max(beat_size(b)));
    }
}
