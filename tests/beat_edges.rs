// SPDX-License-Identifier: GPL-2.0-only
//! Claim: what nodes have to compute alike to agree on turns (`policies/beat.h`) is exact, at the edges too.

use cosched_rules::intf::{
    BEAT_AHEAD_TURNS, BEAT_BLOCK_SHIFT, BEAT_LEAK, BEAT_ONE, BEAT_PERIOD_TURNS, BEAT_RANK_MAX, BEAT_SIZES, BEAT_STEPS,
    cosched_beat_clock as Clock, cosched_beat_job as Job, cosched_beat_news as News,
};
use cosched_rules::native::*;
use rules::{BEAT, MS, POLICY, cosched_policy};

#[path = "common/rules.rs"]
mod rules;

const S: u64 = 20 * MS;
const BEATS: cosched_policy = cosched_policy { arrival: BEAT, quantum_ns: S, ..POLICY };
const PERIOD: u64 = 1 << 20;
const PERIOD_NS: u64 = BEAT_PERIOD_TURNS as u64 * S;

/// All of a job that can be told.
fn parts(job: &Job) -> [u64; 8] {
    let of = [job.theta, job.heard, job.sizes, job.heard_sizes, job.astray, job.heard_astray].map(u64::from);
    [job.name, job.period, of[0], of[1], of[2], of[3], of[4], of[5]]
}

#[test]
fn theta_does_not_overflow() {
    let all = u64::from(BEAT_ONE);
    for (weight, after, theta) in [
        (all, (1 << 61) + 1, 7),
        (all, (1 << 62) - 1, 3),
        (all, 3 << 61, 3),
        (all, u64::MAX, 3),
        (all, 1, BEAT_ONE),
        (1, 1 << 32, 0),
        (1 << 32, 5, 0),
    ] {
        assert_eq!(beat_theta(weight, after), theta, "{weight} before {after}");
    }
}

/// SplitMix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[test]
fn a_sketch_counts_the_zeroes_below_the_lowest_one() {
    let mut most = 0;
    // One in 32,768 is beyond the greatest rank.
    for node in 0..300_000 {
        let hash = mix(node ^ 0x6265_6174_7369_7a65);
        let zeroes = (hash >> 2).trailing_zeros();
        most = most.max(zeroes + 1);
        let rank = (zeroes + 1).min(BEAT_RANK_MAX);
        assert_eq!(beat_sketch(node), rank << (8 * (hash as u32 % BEAT_SIZES)), "{node}");
    }
    assert!(most > BEAT_RANK_MAX);
}

#[test]
fn sketches_are_merged_and_summed_up_byte_by_byte() {
    for (a, b, both) in [(0x0102_0304, 0x0403_0201, 0x0403_0304), (0xff00_0001, 0x00ff_0100, 0xffff_0101), (7, 0, 7)] {
        assert_eq!(beat_sketch_merge(a, b), both, "{a:x} and {b:x}");
    }
    for (sketch, size) in [(0, 0), (0x0101_0101, 4), (0x0100_00ff, 256), (0x0f0e_0d0c, 54), (u32::MAX, 1020)] {
        assert_eq!(beat_size(sketch), size, "{sketch:x}");
    }
}

#[test]
fn the_larger_job_draws_first_and_of_two_equal_ones_that_of_the_lesser_name() {
    let job = |name, sizes| Job { sizes, ..beat_job(name, 1, 0) };
    for (a, b, before) in [
        (job(9, 0x0500), job(1, 0x0400), true),
        (job(1, 0x0400), job(9, 0x0500), false),
        (job(1, 0x0203), job(9, 0x0005), true),
        (job(9, 0x0203), job(1, 0x0005), false),
        (job(1, 0x0203), job(1, 0x0005), false),
    ] {
        assert_eq!(beat_is_before(&a, &b), before, "{a:?}, {b:?}");
    }
}

#[test]
fn a_job_comes_with_nothing_heard() {
    let (one, sketch) = (u64::from(BEAT_ONE), u64::from(beat_sketch(3)));
    let job = beat_job(7, 3, PERIOD);
    assert_eq!(parts(&job), [7, PERIOD, one, one, sketch, sketch, 0, 0]);
    assert_eq!((job.draws, job.block), (0, 0));
}

#[test]
fn what_was_heard_in_a_period_counts_in_the_next_one_only() {
    let job = Job { theta: 900, heard: 500, sizes: 1, heard_sizes: 2, heard_astray: 1, ..beat_job(7, 3, PERIOD) };
    for (here, period, renewed) in [
        // Within the period: nothing but what is told.
        (400, PERIOD, [7, PERIOD, 900, 400, 1, 2, 0, 1]),
        (600, PERIOD, [7, PERIOD, 900, 500, 1, 2, 0, 1]),
        // In the next one: whatever it is here by then.
        (600, PERIOD + 1, [7, PERIOD + 1, 500, 600, 2, 2, 1, 0]),
        (400, PERIOD + 1, [7, PERIOD + 1, 500, 400, 2, 2, 1, 0]),
        // Later: what was heard is too old.
        (600, PERIOD + 2, [7, PERIOD + 2, 600, 600, 2, 2, 1, 0]),
        (600, PERIOD - 1, [7, PERIOD - 1, 600, 600, 2, 2, 1, 0]),
    ] {
        let mut job = job;
        beat_renew(&mut job, here, period * u64::from(BEAT_PERIOD_TURNS));
        assert_eq!(parts(&job), renewed, "{here} in {period}");
    }
}

#[test]
fn the_last_bit_of_theta_says_whether_the_job_is_astray() {
    let tell = |heard, heard_astray| {
        let job = Job { theta: 3, heard, sizes: 4, heard_sizes: 5, astray: 1, heard_astray, ..beat_job(7, 3, PERIOD) };
        let news = beat_tell(&job, 99);
        (news.tai_ns, news.theta, news.sizes)
    };
    assert_eq!([tell(0x1000, 0), tell(0x1001, 0)], [(99, 0x1001, 5); 2]);
    assert_eq!([tell(0x1000, 1), tell(0x1001, 1)], [(99, 0x1000, 5); 2]);
    for (heard, theta, least, astray) in
        [(9, 5, 5, 0), (9, 4, 5, 1), (6, 4, 5, 1), (5, 4, 5, 1), (4, 4, 4, 1), (4, 6, 4, 1), (4, 7, 4, 0)]
    {
        let mut job = Job { heard, heard_sizes: 0x0102, ..beat_job(7, 3, PERIOD) };
        let before = parts(&job);
        let mut news = News { tai_ns: (PERIOD + 1) * PERIOD_NS, theta, sizes: 0x0201 };
        beat_hear(&mut job, &BEATS, &news);
        assert_eq!(parts(&job), before, "of the next period");
        news.tai_ns -= 1;
        beat_hear(&mut job, &BEATS, &news);
        assert_eq!((job.heard, job.heard_astray, job.heard_sizes), (least, astray, 0x0202), "{theta} after {heard}");
    }
    let mut job = beat_job(7, 3, PERIOD);
    beat_hear_nothing(&mut job);
    assert_eq!((job.heard_astray, job.astray), (1, 0));
}

#[test]
fn a_job_wins_what_it_draws_unless_it_is_astray_or_comes_too_late() {
    let theta = BEAT_ONE / 4;
    let drawn = (1000..).find(|&turn| beat_draws(7, turn, theta)).unwrap();
    let other = (1000..).find(|&turn| !beat_draws(7, turn, theta)).unwrap();
    let job = Job { theta, ..beat_job(7, 1, 0) };
    for (turn, won, wins) in [(drawn, false, true), (other, false, false), (drawn, true, false)] {
        let mut job = job;
        beat_settle(&mut job, turn);
        assert_eq!(beat_wins(&job, turn, won), wins, "{turn}, {won}");
        assert!(!beat_wins(&Job { astray: 1, ..job }, turn, won));
    }
}

#[test]
fn a_job_that_is_due_less_than_one_turn_of_a_block_draws_none() {
    let one = (1 << (32 - BEAT_BLOCK_SHIFT)) - 1;
    for (theta, draws) in [(0, 0), (one - 1, 0), (one, 100), (one + one / 4, 125), (2 * one, 200)] {
        let drawn = (0..100 << BEAT_BLOCK_SHIFT).filter(|&turn| beat_draws(7, turn, theta)).count();
        assert!(drawn.abs_diff(draws) <= if draws > 0 { 15 } else { 0 }, "{theta}: {drawn}, not {draws}");
    }
}

#[test]
fn all_turns_are_drawn_with_a_chance_of_1_and_none_with_a_chance_of_0() {
    for turn in (0..1000).chain(u64::MAX - 1000..=u64::MAX) {
        assert!(beat_draws(7, turn, BEAT_ONE), "{turn}");
        assert!(!beat_draws(7, turn, 0), "{turn}");
    }
}

#[test]
fn a_task_is_charged_for_what_it_has_beyond_its_share_within_bounds() {
    let turn = S as i64;
    for (ahead_ns, cpu_ns, fair_ns, then) in [
        (0, 0, 0, 0),
        (7, 12_800, 0, 12_807),
        (0, 0, 12_800, -12_900),
        (0, 127, 127, 0),
        (0, 128, 128, -1),
        (4 * turn, S, 0, 5 * turn),
        (4 * turn + 1, S, 0, 5 * turn),
        (5 * turn, 1, 0, 5 * turn),
        (3 - 4 * turn, 0, 3, -4 * turn),
        (3 - 4 * turn, 0, 4, -4 * turn),
        (i64::MAX, 1, 0, 5 * turn),
        (i64::MIN, 0, 1, -4 * turn),
    ] {
        assert_eq!(beat_charge(ahead_ns, &BEATS, cpu_ns, fair_ns), then, "{ahead_ns}, {cpu_ns} of {fair_ns}");
    }
}

#[test]
fn a_connection_is_silent_after_two_periods() {
    for (ns, silent) in [(0, false), (2 * PERIOD_NS - 1, false), (2 * PERIOD_NS, true), (u64::MAX, true)] {
        assert_eq!(beat_is_silent(&BEATS, ns), silent, "{ns}");
    }
}

#[test]
fn a_clock_goes_back_once_a_turn() {
    let back_ns = S / u64::from(BEAT_LEAK);
    let mut clock = Clock { ahead_ns: MS, stepped_ns: 77, turn: 10 };
    for (tai_ns, left) in [
        (10 * S, (MS, 77, 10)),
        (11 * S - MS - 1, (MS, 77, 10)),
        (11 * S - MS, (MS - back_ns, 0, 11)),
        (11 * S, (MS - back_ns, 0, 11)),
        (20 * S, (MS - 2 * back_ns, 0, 20)),
    ] {
        beat_clock_turn(&mut clock, &BEATS, tai_ns);
        assert_eq!((clock.ahead_ns, clock.stepped_ns, clock.turn), left, "at {tai_ns}");
    }
    for (ahead_ns, left_ns) in [(back_ns + 1, 1), (back_ns, 0), (back_ns - 1, 0)] {
        let mut clock = Clock { ahead_ns, stepped_ns: 0, turn: 0 };
        beat_clock_turn(&mut clock, &BEATS, 5 * S);
        assert_eq!(clock.ahead_ns, left_ns);
    }
    assert_eq!(beat_clock_ns(&clock, 5), 5 + clock.ahead_ns);
}

#[test]
fn a_clock_stands_in_its_turn_until_tai_is_set_back_by_more_than_it_can_be_ahead() {
    for (turn, left) in [(11, 11), (10, 10), (6, 10), (5, 5), (0, 0)] {
        assert_eq!(BEAT_AHEAD_TURNS, 4);
        let mut clock = Clock { ahead_ns: 0, stepped_ns: 0, turn: 10 };
        beat_clock_turn(&mut clock, &BEATS, turn * S);
        assert_eq!(clock.turn, left, "TAI is in turn {turn}");
    }
}

#[test]
fn tasks_have_demands_while_they_are_behind_their_share() {
    assert_eq!([-1, 0, 1].map(beat_may_demand), [true, false, false]);
}

#[test]
fn a_clock_follows_later_ones_by_steps_or_whole_turns_up_to_the_bound() {
    let (step, bound, now) = (S / u64::from(BEAT_STEPS), u64::from(BEAT_AHEAD_TURNS) * S, 1000 * S);
    for (ahead_ns, stepped_ns, later_ns, by_ns) in [
        (0, 0, 0, 0),
        (0, 0, 1, 1),
        (0, 0, step - 1, step - 1),
        (0, 0, step, step),
        (0, 0, S - 1, step),
        (0, 1, S - 1, step - 1),
        (0, step, S - 1, 0),
        (0, step + 1, S - 1, 0),
        (0, step, S, S),
        (0, 0, 2 * S - 1, S),
        (0, 0, 3 * S, 3 * S),
        (0, 0, 100 * S, bound),
        (1, 0, 100 * S, bound - S),
        (bound - S - 1, 0, 100 * S, S),
        (bound - 5, 0, 9, 5),
        (bound - 5, 0, S, 0),
        (bound, 0, 9, 0),
        (bound + 1, 0, 9, 0),
    ] {
        let turn = (now + ahead_ns) / S;
        let mut clock = Clock { ahead_ns, stepped_ns, turn };
        let moved_ns = beat_clock_hear(&mut clock, &BEATS, now, now + ahead_ns + later_ns);
        let stepped = if later_ns < S { stepped_ns + by_ns } else { stepped_ns };
        assert_eq!(
            (moved_ns, clock.ahead_ns, clock.stepped_ns, clock.turn),
            (by_ns, ahead_ns + by_ns, stepped, turn),
            "a peer is {later_ns} later, and the clock {ahead_ns} ahead after steps of {stepped_ns}"
        );
    }
}

/// Messages that come between the begin of a turn and its first draw do not add a step to those of the turn.
#[test]
fn a_clock_goes_by_the_steps_of_one_turn_whether_or_not_it_has_drawn() {
    let (step, back) = (S / u64::from(BEAT_STEPS), S / u64::from(BEAT_LEAK));
    let mut clock = Clock { ahead_ns: step, stepped_ns: 0, turn: 10 };
    let begin = 11 * S - step;
    assert_eq!(beat_clock_hear(&mut clock, &BEATS, begin, begin + S / 2), step);
    assert_eq!((clock.ahead_ns, clock.stepped_ns, clock.turn), (2 * step - back, step, 11));
    beat_clock_turn(&mut clock, &BEATS, begin + MS);
    assert_eq!(beat_clock_hear(&mut clock, &BEATS, begin + 2 * MS, begin + 2 * MS + S / 2), 0);
}

#[test]
fn the_bound_of_a_clock_does_not_wrap_however_long_a_turn_is() {
    let longest_ns = u64::MAX / u64::from(BEAT_AHEAD_TURNS);
    for (quantum_ns, turns) in [(longest_ns, 3), (longest_ns + 1, 1)] {
        let mut clock = Clock { ahead_ns: 0, stepped_ns: 0, turn: 0 };
        beat_clock_hear(&mut clock, &cosched_policy { quantum_ns, ..BEATS }, 0, 3 * quantum_ns);
        assert_eq!(clock.ahead_ns, turns * quantum_ns, "a turn takes {quantum_ns} ns");
    }
}
