// SPDX-License-Identifier: GPL-2.0-only
//! Claim: a group has what its `cpu.max` says (`policies/limit.h`): no more, however late its slices end, and no less
//! if it wants it and its weight gives it. Limits nest, and no task waits without bound.
//!
//! The machine below does what bpf/limits.bpf.h and bpf/aside.bpf.h do with the same rules. Its order by weights is the
//! simplest there is, since tests/fair.rs sees to that.

use cosched_rules::intf::{LIMIT_LEAST_NS, LIMIT_PORTION_NS, LIMIT_WAIT_NS, cosched_limit, cosched_portion};
use cosched_rules::native::{
    NEW_LIMIT, NEW_PORTION, limit_part, limit_return, limit_set, limit_slice, limit_take, limit_until, limit_waited,
};
use proptest::prelude::*;
use random::Random;
use rules::{MS, SEC, US};

#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const SLICE_NS: u64 = 20 * MS;
/// What a CPU takes at a time of a group that is nowhere else.
const PART_NS: u64 = LIMIT_PORTION_NS as u64;
const PORTION_NS: i64 = PART_NS as i64;
const ROOT: usize = 0;

fn limit(quota_ns: u64, period_ns: u64, burst_ns: u64) -> cosched_limit {
    let mut limit = NEW_LIMIT;
    limit_set(&mut limit, quota_ns, period_ns, burst_ns, 0);
    limit
}

#[test]
fn the_example_in_the_rules_is_true() {
    let mut limit = limit(10 * MS, 100 * MS, 0);
    let mut cpus = [NEW_PORTION; 2];
    for cpu in &mut cpus {
        assert_eq!(limit_take(&mut limit, cpu, PART_NS, 0), PORTION_NS);
    }
    assert_eq!(limit.left_ns, 0);
    cpus[0].left_ns -= 6 * MS as i64;
    cpus[1].left_ns -= 2 * MS as i64;
    assert_eq!(limit_until(&limit, &cpus[0], 7 * MS), 100 * MS, "CPU 0 has a debt, and the pool is empty");
    limit_return(&mut limit, &mut cpus[1]);
    assert_eq!((limit.left_ns, cpus[1].left_ns), (3 * MS as i64, 0));
    assert_eq!(limit_until(&limit, &cpus[0], 8 * MS), 0);
    assert_eq!(limit_take(&mut limit, &mut cpus[0], PART_NS, 8 * MS), 2 * MS as i64);
    assert_eq!(limit.left_ns, 0);
}

#[test]
fn a_cpu_takes_its_part_of_a_quota_at_a_time() {
    let least_ns = u64::from(LIMIT_LEAST_NS);
    for (quota_ns, counts, weight, expected) in [
        (3 * MS, 50, 100, 1_500 * US),
        (3 * MS, 100, 100, 3 * MS),
        (3 * MS, 1, 100, least_ns),
        (50 * US, 100, 100, least_ns),
        (3 * SEC, 50, 100, PART_NS),
    ] {
        let of_quota = limit(quota_ns, SEC, 0);
        assert_eq!(limit_part(&of_quota, counts, weight), expected, "{counts} of {weight}, of {quota_ns} ns");
    }
}

/// Of two CPUs that come at the end of each period, one right after the other, both have something of a small quota.
#[test]
fn the_first_after_a_refill_leaves_something_to_the_others() {
    let mut limit = limit(3 * MS, 20 * MS, 0);
    let mut cpus = [NEW_PORTION; 2];
    for period in 0..10 {
        for cpu in &mut cpus {
            let part_ns = limit_part(&limit, 1, 2);
            let left_ns = limit_take(&mut limit, cpu, part_ns, period * 20 * MS);
            assert_eq!(left_ns as u64, 1_500 * US, "period {period}");
            cpu.left_ns = 0;
        }
    }
}

/// What a CPU has used of its part it may take again, as long as there is something.
#[test]
fn a_part_that_nobody_takes_goes_to_who_runs() {
    let mut limit = limit(3 * MS, 20 * MS, 0);
    let mut portion = NEW_PORTION;
    let part_ns = limit_part(&limit, 1, 2);
    for expected in [1_500 * US, 1_500 * US, 0] {
        assert_eq!(limit_take(&mut limit, &mut portion, part_ns, 0) as u64, expected);
        portion.left_ns = 0;
    }
}

#[test]
fn what_is_left_is_carried_over_up_to_the_burst() {
    for (burst, periods, expected) in [(0, 1, 10), (0, 9, 10), (4, 1, 14), (10, 1, 20), (10, 9, 20)] {
        let mut limit = limit(10 * MS, 100 * MS, burst * MS);
        let mut all = 0;
        let mut now_ns = periods * 100 * MS;
        loop {
            let mut portion = NEW_PORTION;
            let got = limit_take(&mut limit, &mut portion, PART_NS, now_ns);
            now_ns += US;
            if got == 0 {
                break;
            }
            all += got;
        }
        assert_eq!(all as u64, expected * MS, "burst {burst} ms, after {periods} periods");
    }
}

#[test]
fn a_portion_of_an_earlier_period_comes_back_as_far_as_the_burst_has_room() {
    for (burst, expected) in [(0, 10), (3, 13), (5, 15), (10, 15)] {
        let mut limit = limit(10 * MS, 100 * MS, burst * MS);
        let (mut here, mut there) = (NEW_PORTION, NEW_PORTION);
        limit_take(&mut limit, &mut here, PART_NS, 0);
        limit_take(&mut limit, &mut there, PART_NS, 0);
        // One is used and one is not; the second period begins.
        there.left_ns = 0;
        limit_take(&mut limit, &mut there, PART_NS, 100 * MS);
        limit_return(&mut limit, &mut here);
        let left = limit.left_ns + there.left_ns;
        assert_eq!(left as u64, expected * MS, "burst {burst} ms");
    }
}

#[test]
fn a_debt_is_paid_before_anything_is_had() {
    let mut limit = limit(10 * MS, 100 * MS, 0);
    let mut portion = NEW_PORTION;
    limit_take(&mut limit, &mut portion, PART_NS, 0);
    portion.left_ns -= 35 * MS as i64;
    for period in 0..3 {
        let now_ns = period * 100 * MS + MS;
        // A refill that is due, and is not enough, lets nobody run.
        assert_eq!(limit_until(&limit, &portion, now_ns), (period + 1) * 100 * MS, "period {period}");
        let got = limit_take(&mut limit, &mut portion, PART_NS, now_ns);
        assert_eq!(got > 0, period == 3, "period {period}");
        assert_eq!(limit_until(&limit, &portion, now_ns), if got > 0 { 0 } else { (period + 1) * 100 * MS });
    }
    assert_eq!(
        limit_take(&mut limit, &mut portion, PART_NS, 300 * MS),
        PORTION_NS,
        "35 + 5 ms are four periods' quota"
    );
}

#[test]
fn a_debt_of_more_than_the_pool_holds_is_paid_all_the_same() {
    let limit = limit(10 * MS, 100 * MS, 0);
    let portion = cosched_portion { left_ns: -(25 * MS as i64), number: 1 };
    for (now, expected) in [(50, 100), (150, 200), (250, 0)] {
        let (mut limit, mut portion) = (limit, portion);
        assert_eq!(limit_until(&limit, &portion, now * MS), expected * MS, "after {now} ms");
        assert_eq!(limit_take(&mut limit, &mut portion, PART_NS, now * MS) > 0, expected == 0, "after {now} ms");
    }
}

#[test]
fn a_debt_is_no_more_than_ten_seconds_bring() {
    for (quota, period) in [(1, 1000), (10, 100), (1, 1)] {
        let mut limit = limit(quota * MS, period * MS, 0);
        let mut portion = cosched_portion { left_ns: -(3_600 * SEC as i64), number: 0 };
        limit_return(&mut limit, &mut portion);
        let after_ns = LIMIT_WAIT_NS + 2 * period * MS;
        assert!(limit_take(&mut limit, &mut portion, PART_NS, after_ns) > 0, "{quota} ms of {period}");
    }
}

#[test]
fn a_slice_is_what_is_left_and_no_less_than_the_least() {
    assert_eq!(limit_slice(SLICE_NS, 3 * MS as i64), 3 * MS);
    assert_eq!(limit_slice(2 * MS, 3 * MS as i64), 2 * MS);
    for left_ns in [i64::MIN, -1, 0, 1, LIMIT_LEAST_NS as i64] {
        assert_eq!(limit_slice(SLICE_NS, left_ns), u64::from(LIMIT_LEAST_NS));
    }
    assert!(!limit_waited(u64::from(u32::MAX)) && limit_waited(LIMIT_WAIT_NS));
}

#[test]
fn a_new_limit_knows_nothing_of_the_old_one() {
    let mut limit = limit(500 * MS, SEC, 500 * MS);
    let mut portion = NEW_PORTION;
    limit_take(&mut limit, &mut portion, PART_NS, 3 * SEC);
    limit_set(&mut limit, 10 * MS, 100 * MS, 0, 3 * SEC);
    limit_return(&mut limit, &mut portion);
    assert_eq!((limit.left_ns, limit.refill_at_ns), (10 * MS as i64, 3 * SEC + 100 * MS));
    limit_set(&mut limit, 0, 100 * MS, 0, 4 * SEC);
    assert_eq!(limit_until(&limit, &portion, 4 * SEC), 0, "a quota of 0 is no limit");
}

/// What happens to a pool that four CPUs share.
#[derive(Clone, Copy, Debug)]
enum Event {
    /// A CPU takes a portion, and runs for this part of it, in 1/8; more than 8 is late.
    Runs {
        cpu: usize,
        eighths: u64,
    },
    Returns {
        cpu: usize,
    },
    Passes {
        ns: u64,
    },
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        (0..4usize, 0..=8u64).prop_map(|(cpu, eighths)| Event::Runs { cpu, eighths }),
        (0..4usize, 0..=10u64).prop_map(|(cpu, eighths)| Event::Runs { cpu, eighths }),
        (0..4usize).prop_map(|cpu| Event::Returns { cpu }),
        (0..300 * MS).prop_map(|ns| Event::Passes { ns }),
        (0..5 * MS).prop_map(|ns| Event::Passes { ns }),
    ];
    proptest::collection::vec(event, 1..400)
}

proptest! {
    /// In whatever order CPUs come, the group has no more than the quotas of the periods that have begun, and what it
    /// had late is missing from what it has left.
    #[test]
    fn nobody_has_more_than_the_quotas(
        quota_us in 1_000..2_000_000u64,
        period_us in 1_000..1_000_000u64,
        burst in 0..=4u64,
        events in events(),
    ) {
        let (quota_ns, period_ns) = (quota_us * US, period_us * US);
        let mut limit = limit(quota_ns, period_ns, quota_ns * burst / 4);
        let mut cpus = [NEW_PORTION; 4];
        let (mut now_ns, mut ran_ns) = (0, 0i128);
        for event in events {
            match event {
                Event::Passes { ns } => now_ns += ns,
                Event::Returns { cpu } => limit_return(&mut limit, &mut cpus[cpu]),
                Event::Runs { cpu, eighths } => {
                    if limit_until(&limit, &cpus[cpu], now_ns) > 0 {
                        continue;
                    }
                    let left_ns = limit_take(&mut limit, &mut cpus[cpu], PART_NS, now_ns);
                    prop_assert!(left_ns <= PORTION_NS);
                    let run_ns = left_ns.max(0) * eighths as i64 / 8;
                    cpus[cpu].left_ns -= run_ns;
                    ran_ns += i128::from(run_ns);
                }
            }
            let left_ns = limit.left_ns + cpus.iter().map(|cpu| cpu.left_ns).sum::<i64>();
            let begun = i128::from(limit.refill_at_ns / period_ns);
            prop_assert!(ran_ns + i128::from(left_ns) <= begun * i128::from(quota_ns), "{limit:?} {cpus:?}");
            prop_assert!(limit.left_ns <= (quota_ns + limit.burst_ns) as i64);
        }
    }
}

struct Group {
    limit: cosched_limit,
    portions: [cosched_portion; 2],
    weight: u64,
    parent: usize,
    /// By weight, on each CPU.
    vtime: [u64; 2],
    ran_ns: u64,
}

/// It computes for ever, on one CPU.
struct Task {
    group: usize,
    cpu: usize,
    vtime: u64,
    ran_ns: u64,
    waits_since_ns: u64,
    longest_wait_ns: u64,
    away: bool,
}

struct Machine {
    groups: Vec<Group>,
    tasks: Vec<Task>,
    cpus: usize,
    /// By how much every fourth slice ends late at most; the others by 0.3 ms.
    tick_ns: u64,
    random: Random,
}

impl Machine {
    fn new(cpus: usize, seed: u64) -> Machine {
        let mut machine = Machine { groups: vec![], tasks: vec![], cpus, tick_ns: 4 * MS, random: Random::new(seed) };
        machine.group(ROOT, 100, NEW_LIMIT);
        machine
    }

    fn group(&mut self, parent: usize, weight: u64, limit: cosched_limit) -> usize {
        self.groups.push(Group { limit, portions: [NEW_PORTION; 2], weight, parent, vtime: [0; 2], ran_ns: 0 });
        self.groups.len() - 1
    }

    fn task(&mut self, group: usize, cpu: usize) {
        let (vtime, ran_ns, waits_since_ns, longest_wait_ns, away) = (0, 0, 0, 0, false);
        self.tasks.push(Task { group, cpu, vtime, ran_ns, waits_since_ns, longest_wait_ns, away });
    }

    /// The group and those above it, without the root.
    fn up(&self, mut group: usize) -> Vec<usize> {
        let mut up = vec![];
        while group != ROOT {
            up.push(group);
            group = self.groups[group].parent;
        }
        up
    }

    /// held_until()
    fn is_held(&self, task: &Task, now_ns: u64) -> bool {
        let keeps = |&group: &usize| {
            let Group { limit, portions, .. } = &self.groups[group];
            limit_until(limit, &portions[task.cpu], now_ns) > 0
        };
        !limit_waited(now_ns - task.waits_since_ns) && self.up(task.group).iter().any(keeps)
    }

    /// Who is least ahead in the order of its group, of the group least ahead in the one above, and so on.
    fn choose(&mut self, cpu: usize, now_ns: u64) -> Option<usize> {
        let held: Vec<bool> = self.tasks.iter().map(|task| self.is_held(task, now_ns)).collect();
        for task in (0..self.tasks.len()).filter(|&task| self.tasks[task].cpu == cpu).collect::<Vec<_>>() {
            if !held[task] && self.tasks[task].away {
                self.comes_back(task, &held_of(&held, task));
            }
            self.tasks[task].away = held[task];
        }
        let mut group = ROOT;
        loop {
            let wants: Vec<usize> = (0..self.tasks.len()).filter(|&t| self.tasks[t].cpu == cpu && !held[t]).collect();
            let inside = |other: usize| wants.iter().any(|&t| self.up(self.tasks[t].group).contains(&other));
            let groups = (1..self.groups.len()).filter(|&g| self.groups[g].parent == group && inside(g));
            let first = groups.min_by_key(|&g| self.groups[g].vtime[cpu]);
            let task =
                wants.iter().copied().filter(|&t| self.tasks[t].group == group).min_by_key(|&t| self.tasks[t].vtime);
            match (first, task) {
                (Some(first), _) => group = first,
                (None, task) => return task,
            }
        }
    }

    /// A group that comes back is behind the others by no more than a slice.
    fn comes_back(&mut self, task: usize, held: &[bool]) {
        let cpu = self.tasks[task].cpu;
        for group in self.up(self.tasks[task].group) {
            let parent = self.groups[group].parent;
            let runs = |other: usize| {
                (0..self.tasks.len())
                    .any(|t| self.tasks[t].cpu == cpu && !held[t] && self.up(self.tasks[t].group).contains(&other))
            };
            if runs(group) {
                return;
            }
            let others = (1..self.groups.len()).filter(|&g| g != group && self.groups[g].parent == parent && runs(g));
            let Some(least) = others.map(|g| self.groups[g].vtime[cpu]).min() else { continue };
            let Group { vtime, weight, .. } = &mut self.groups[group];
            vtime[cpu] = vtime[cpu].max(least.saturating_sub(SLICE_NS * 100 / *weight));
        }
    }

    /// bound_slice(), and the run. A slice ends late. Returns how long it was.
    fn run_one(&mut self, task: usize, now_ns: u64) -> u64 {
        let Task { group, cpu, waits_since_ns, .. } = self.tasks[task];
        let up = self.up(group);
        let mut left_ns = i64::MAX;
        for &group in &up {
            let Group { limit, portions, .. } = &mut self.groups[group];
            if limit.quota_ns > 0 {
                // As many tasks of it are on each CPU.
                let part_ns = limit_part(limit, 1, self.cpus as u64);
                left_ns = left_ns.min(limit_take(limit, &mut portions[cpu], part_ns, now_ns));
            }
        }
        // The others look again after a ms, so that who comes back need not wait for long.
        let most_ns = if self.random.below(4) == 0 { self.tick_ns } else { 300 * US };
        let late_ns = self.random.below(most_ns);
        let ran_ns = limit_slice(MS, left_ns) + late_ns;
        for &group in &up {
            let Group { portions, weight, vtime, ran_ns: all_ns, .. } = &mut self.groups[group];
            portions[cpu].left_ns -= ran_ns as i64;
            vtime[cpu] += ran_ns * 100 / *weight;
            *all_ns += ran_ns;
        }
        let task = &mut self.tasks[task];
        task.longest_wait_ns = task.longest_wait_ns.max(now_ns - waits_since_ns);
        task.waits_since_ns = now_ns + ran_ns;
        task.vtime += ran_ns;
        task.ran_ns += ran_ns;
        ran_ns
    }

    fn run(&mut self, from_ns: u64, until_ns: u64) {
        let mut free_ns = [from_ns; 2];
        loop {
            let cpu = (0..self.cpus).min_by_key(|&cpu| free_ns[cpu]).unwrap();
            let now_ns = free_ns[cpu];
            if now_ns >= until_ns {
                return;
            }
            free_ns[cpu] += match self.choose(cpu, now_ns) {
                Some(task) => self.run_one(task, now_ns),
                None => 100 * US,
            };
        }
    }

    /// What each group would have in a second if all was divided as finely as can be.
    fn due(&self) -> Vec<f64> {
        let mut due = vec![0.0; self.groups.len()];
        due[ROOT] = self.most(ROOT);
        for group in 0..self.groups.len() {
            let (mut left, mut hungry) = (due[group], self.below(group));
            while !hungry.is_empty() {
                let sum: f64 = hungry.iter().map(|&g| self.groups[g].weight as f64).sum();
                let part = |g: usize| left * self.groups[g].weight as f64 / sum;
                let full: Vec<usize> = hungry.iter().copied().filter(|&g| self.most(g) <= part(g)).collect();
                if full.is_empty() {
                    hungry.iter().for_each(|&g| due[g] = part(g));
                    break;
                }
                for &g in &full {
                    due[g] = self.most(g);
                }
                left -= full.iter().map(|&g| self.most(g)).sum::<f64>();
                hungry.retain(|g| !full.contains(g));
            }
        }
        due
    }

    fn below(&self, group: usize) -> Vec<usize> {
        (1..self.groups.len()).filter(|&g| self.groups[g].parent == group).collect()
    }

    fn most(&self, group: usize) -> f64 {
        let Group { limit, .. } = &self.groups[group];
        let by_limit = if limit.quota_ns > 0 { limit.quota_ns as f64 / limit.period_ns as f64 } else { f64::INFINITY };
        let below = self.below(group);
        let wanted = if below.is_empty() { self.cpus as f64 } else { below.iter().map(|&g| self.most(g)).sum() };
        by_limit.min(wanted).min(self.cpus as f64)
    }
}

/// `held`, as if `task` still was: it has not come back yet.
fn held_of(held: &[bool], task: usize) -> Vec<bool> {
    let mut held = held.to_vec();
    held[task] = true;
    held
}

/// A tree with a busy task on each CPU in each group that has none below.
fn random_tree(seed: u64) -> Machine {
    let mut random = Random::new(seed);
    let cpus = 1 + random.below(2) as usize;
    let mut machine = Machine::new(cpus, seed);
    // Of one period: while a group of a longer one takes its time all at once, a shorter one may pass by unused.
    let period_ns = [5, 10, 20, 50, 100, 250, 500, 1000][random.below(8) as usize] * MS;
    // Nobody can have 1 ms of each 5 on a CPU that others keep for 4 ms longer.
    machine.tick_ns = if period_ns >= 50 * MS { 4 * MS } else { 300 * US };
    for _ in 0..2 + random.below(5) {
        let parent = if random.below(3) > 0 { ROOT } else { random.below(machine.groups.len() as u64) as usize };
        let quota_ns = period_ns * [0, 5, 10, 15, 20, 30, 50, 80, 120][random.below(9) as usize] / 100;
        let burst_ns = quota_ns * random.below(3) / 2;
        let limit = if quota_ns > 0 { limit(quota_ns, period_ns, burst_ns) } else { NEW_LIMIT };
        machine.group(parent, [50, 100, 100, 200, 300][random.below(5) as usize], limit);
    }
    for group in 1..machine.groups.len() {
        if machine.below(group).is_empty() {
            (0..cpus).for_each(|cpu| machine.task(group, cpu));
        }
    }
    machine
}

#[test]
fn in_any_tree_each_group_has_its_limit_or_what_its_weight_gives() {
    for seed in 0..200 {
        let mut machine = random_tree(seed);
        machine.run(0, 2 * SEC);
        let before: Vec<u64> = machine.groups.iter().map(|group| group.ran_ns).collect();
        machine.run(2 * SEC, 7 * SEC);
        let due = machine.due();
        for group in 1..machine.groups.len() {
            let has = (machine.groups[group].ran_ns - before[group]) as f64 / (5 * SEC) as f64;
            let due = due[group];
            // A turn at either end of 5 s is some more or less for those with little.
            assert!((has - due).abs() <= 0.03 * due + 0.002, "seed {seed}, group {group}: {has} of {due}");
        }
    }
}

#[test]
fn nobody_waits_for_longer_than_half_of_the_kernels_patience() {
    for (tasks, quota_us, period_ms) in [(20, 1000, 1000), (100, 1000, 1000), (4, 1000, 100), (300, 5000, 100)] {
        let mut machine = Machine::new(2, 1);
        let group = machine.group(ROOT, 100, limit(quota_us * US, period_ms * MS, 0));
        (0..tasks).for_each(|task| machine.task(group, task % 2));
        machine.run(0, 30 * SEC);
        for (n, task) in machine.tasks.iter().enumerate() {
            let longest_ns = task.longest_wait_ns.max(30 * SEC - task.waits_since_ns.min(30 * SEC));
            assert!(task.ran_ns > 0, "{tasks} tasks, {n} never ran");
            assert!(longest_ns < LIMIT_WAIT_NS + SEC, "{tasks} tasks, {n} waited {} ms", longest_ns / MS);
        }
    }
}
