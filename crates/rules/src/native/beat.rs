// SPDX-License-Identifier: GPL-2.0-only
//! Turns that nodes agree on without being told, as native functions (`policies/beat.h`). Times are in ns, chances in
//! 1 / 2^32.

use crate::intf::cosched_policy as Policy;
use crate::intf::{
    self, cosched_beat_clock as Clock, cosched_beat_hold as Hold, cosched_beat_job as Job, cosched_beat_news as News,
    cosched_window as Window,
};

/// Of a CPU that has heard nothing.
pub const NEW_BEAT_CLOCK: Clock = Clock { ahead_ns: 0, stepped_ns: 0, turn: 0 };
/// Of a message without news.
pub const NO_NEWS: News = News { tai_ns: 0, theta: 0, sizes: 0 };
/// Of a CPU that no job holds.
pub const NEW_BEAT_HOLD: Hold = Hold { name: 0, until_ns: 0 };

/// Whether `turn` is drawn for the job `name`, whose chance has been `theta` since the block of turns began.
pub fn beat_draws(name: u64, turn: u64, theta: u32) -> bool {
    // SAFETY: pure functions of numbers.
    unsafe { intf::beat_draws(name, turn, intf::beat_draws_in(name, intf::beat_block(name, turn), theta)) != 0 }
}

/// Settles how often the job is drawn in the block of `turn`, unless that is settled.
pub fn beat_settle(job: &mut Job, turn: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::beat_settle(job, turn) }
}

/// The chance of a job of this weight where those after it have weights that sum up to `after`.
pub fn beat_theta(weight: u64, after: u64) -> u32 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::beat_theta(weight, after) }
}

/// The weight of a task that is due `due` and used what its window holds, in 1 / 2^`shift` of its CPU.
pub fn beat_weight(window: &Window, due: u32, shift: u32) -> u32 {
    // SAFETY: only reads what is borrowed here.
    unsafe { intf::beat_weight(window, due, shift) }
}

/// The sketch of one node.
pub fn beat_sketch(node: u64) -> u32 {
    // SAFETY: a pure function of a number.
    unsafe { intf::beat_sketch(node) }
}

/// The sketch of the nodes of both.
pub fn beat_sketch_merge(a: u32, b: u32) -> u32 {
    // SAFETY: a pure function of numbers.
    unsafe { intf::beat_sketch_merge(a, b) }
}

/// The size that a sketch stands for: about 4 log2 of how many nodes it has seen.
pub fn beat_size(sizes: u32) -> u32 {
    // SAFETY: a pure function of a number.
    unsafe { intf::beat_size(sizes) }
}

/// Whether `a` draws before `b`.
pub fn beat_is_before(a: &Job, b: &Job) -> bool {
    // SAFETY: a pure function that reads its arguments.
    unsafe { intf::beat_is_before(a, b) != 0 }
}

/// The job `name` as it comes to a node in `period`.
pub fn beat_job(name: u64, node: u64, period: u64) -> Job {
    // What an earlier job has left there.
    let mut job = Job {
        name: 9,
        period: 9,
        theta: 9,
        heard: 9,
        sizes: 9,
        heard_sizes: 9,
        astray: 9,
        heard_astray: 9,
        draws: 9,
        block: 9,
    };
    // SAFETY: changes its first argument.
    unsafe { intf::beat_job_begin(&mut job, name, node, period) };
    job
}

/// In `turn`: what was heard in the last period counts in this one, but no theta above `here`.
pub fn beat_renew(job: &mut Job, here: u32, turn: u64) {
    // SAFETY: changes its first argument.
    unsafe { intf::beat_renew(job, here, turn) }
}

/// What a message of the job says when its sender's clock shows `clock_ns`.
pub fn beat_tell(job: &Job, clock_ns: u64) -> News {
    let mut news = News { tai_ns: 0, theta: 0, sizes: 0 };
    // SAFETY: changes its first argument and reads the second.
    unsafe { intf::beat_tell(&mut news, job, clock_ns) };
    news
}

/// A message of the job has come with `news`.
pub fn beat_hear(job: &mut Job, policy: &Policy, news: &News) {
    // SAFETY: changes its first argument and reads the others.
    unsafe { intf::beat_hear(job, policy, news) }
}

/// Adds `news`, which came when the clock here showed `clock_ns`, to `all` that a task has heard in this period.
pub fn beat_gather(all: &mut News, policy: &Policy, news: &News, clock_ns: u64) {
    // SAFETY: changes its first argument and reads the others.
    unsafe { intf::beat_gather(all, policy, news, clock_ns) }
}

/// Whether the job wins `turn`, if a job before it has `won` or not.
pub fn beat_wins(job: &Job, turn: u64, won: bool) -> bool {
    // SAFETY: only reads what is borrowed here.
    unsafe { intf::beat_wins(job, turn, won.into()) != 0 }
}

/// By how much a task is ahead of its share that was by `ahead_ns`, and has used `cpu_ns` while it was due `fair_ns`.
pub fn beat_charge(ahead_ns: i64, policy: &Policy, cpu_ns: u64, fair_ns: u64) -> i64 {
    // SAFETY: only reads what is borrowed here.
    unsafe { intf::beat_charge(ahead_ns, policy, cpu_ns, fair_ns) }
}

/// Does a node not draw whose connection has brought nothing for so long, when a message comes from there?
pub fn beat_is_silent(policy: &Policy, silent_ns: u64) -> bool {
    // SAFETY: only reads what is borrowed here.
    unsafe { intf::beat_is_silent(policy, silent_ns) != 0 }
}

/// May a task of the job that has won the turn go first, which is so much ahead of its share?
pub fn beat_may_lead(policy: &Policy, surplus_ns: i64) -> bool {
    // SAFETY: only reads what is borrowed here.
    unsafe { intf::beat_may_lead(policy, surplus_ns) != 0 }
}

/// May a message have its receiver run, which is so much ahead of its share, in a turn that no job has won?
pub fn beat_may_demand(surplus_ns: i64) -> bool {
    // SAFETY: a pure function of a number.
    unsafe { intf::beat_may_demand(surplus_ns) != 0 }
}

/// A message of the job has come without news.
pub fn beat_hear_nothing(job: &mut Job) {
    // SAFETY: changes its argument.
    unsafe { intf::beat_hear_nothing(job) }
}

/// Whether the job, which has a message, takes the CPU and holds it because it is astray. The leads are those of the
/// job and of the running task, in ns.
pub fn beat_follows(
    hold: &mut Hold,
    policy: &Policy,
    job: &Job,
    lead_ns: i64,
    running_lead_ns: i64,
    now_ns: u64,
) -> bool {
    // SAFETY: changes its first argument and reads the others.
    unsafe { intf::beat_follows(hold, policy, job, lead_ns, running_lead_ns, now_ns) != 0 }
}

/// The job that goes first at `now_ns`: the job that holds the CPU, or else the winner of the turn.
pub fn beat_first(hold: &Hold, winner: u64, now_ns: u64) -> u64 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::beat_first(hold, winner, now_ns) }
}

/// What the clock of a CPU shows at this TAI.
pub fn beat_clock_ns(clock: &Clock, tai_ns: u64) -> u64 {
    // SAFETY: a pure function that reads its first argument.
    unsafe { intf::beat_clock_ns(clock, tai_ns) }
}

/// A turn may have begun: the clock goes back by what is due.
pub fn beat_clock_turn(clock: &mut Clock, policy: &Policy, tai_ns: u64) {
    // SAFETY: changes its first argument and reads the second.
    unsafe { intf::beat_clock_turn(clock, policy, tai_ns) }
}

/// A peer's clock shows `heard_ns`, and the own TAI is `tai_ns`. Returns by how much the clock went forward, in ns.
pub fn beat_clock_hear(clock: &mut Clock, policy: &Policy, tai_ns: u64, heard_ns: u64) -> u64 {
    // SAFETY: changes its first argument and reads the second.
    unsafe { intf::beat_clock_hear(clock, policy, tai_ns, heard_ns) }
}
