// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the fair order (`policies/fair.h`) gives all tasks on a CPU what weights say, in any tree of groups: those
//! that always run, that sleep, that take turns and that come and go. And none waits for ever.
//!
//! The order of one CPU, which does what bpf/fair.bpf.h does with the same rules.

use cosched_rules::intf::{FAIR_LEAST_SLICE_NS, FAIR_MEAN_SHIFT, FAIR_PRESENCE_NS, FAIR_ROUND_NS, FAIR_WAIT_NS};
use cosched_rules::intf::{FAIR_WEIGHT_SHIFT, FAIR_WEIGHT_UNIT, cosched_order, cosched_place};
use cosched_rules::native::{self, NEW_ORDER, NEW_PLACE, NEW_PRESENCE};
use cosched_sim::policy::NOTHING;
use random::Random;
use rules::cosched_policy;

#[path = "common/random.rs"]
mod random;
#[path = "common/rules.rs"]
mod rules;

const MS: u64 = 1_000_000;
const SEC: u64 = 1000 * MS;
const STEP_NS: u64 = MS / 4;
const POLICY: cosched_policy = cosched_policy { slice_ns: 20 * MS, ..NOTHING };
const ROOT: usize = 0;

/// What a task does: compute for so long, then sleep for so long; or, with no end, compute.
#[derive(Clone, Copy)]
struct Habit {
    compute_ns: u64,
    sleep_ns: u64,
}

const BUSY: Habit = Habit { compute_ns: u64::MAX, sleep_ns: 0 };

struct Group {
    order: cosched_order,
    place: cosched_place,
    weight: u32,
    parent: usize,
}

struct Task {
    place: cosched_place,
    weight: u32,
    group: usize,
    habit: Habit,
    left_ns: u64,
    wakes_ns: u64,
    key: u64,
    slice_ns: u64,
    used_ns: u64,
    waits_since_ns: u64,
    longest_wait_ns: u64,
    ran_ns: u64,
    newcomer: bool,
}

struct Cpu {
    groups: Vec<Group>,
    tasks: Vec<Task>,
    runs: Option<usize>,
    now_ns: u64,
}

impl Cpu {
    fn new() -> Cpu {
        let root = Group { order: NEW_ORDER, place: NEW_PLACE, weight: 100, parent: ROOT };
        Cpu { groups: vec![root], tasks: Vec::new(), runs: None, now_ns: 0 }
    }

    /// A group of this weight, as of cpu.weight.
    fn group(&mut self, parent: usize, weight: u32) -> usize {
        let weight = weight * FAIR_WEIGHT_UNIT;
        self.groups.push(Group { order: NEW_ORDER, place: NEW_PLACE, weight, parent });
        self.groups.len() - 1
    }

    /// A task of this weight, 100 being that of nice level 0.
    fn task(&mut self, group: usize, weight: u32, habit: Habit) -> usize {
        let weight = weight * FAIR_WEIGHT_UNIT;
        self.tasks.push(Task {
            place: NEW_PLACE,
            weight,
            group,
            habit,
            left_ns: 0,
            wakes_ns: self.now_ns,
            key: 0,
            slice_ns: 0,
            used_ns: 0,
            waits_since_ns: 0,
            longest_wait_ns: 0,
            ran_ns: 0,
            newcomer: false,
        });
        self.tasks.len() - 1
    }

    fn nr(&self) -> u32 {
        self.tasks.iter().filter(|task| task.place.weight > 0).count() as u32
    }

    /// settle_groups()
    fn settle(&mut self, mut group: usize, credit_ns: u64) {
        while group != ROOT {
            let parent = self.groups[group].parent;
            let weight = if self.groups[group].order.weight > 0 { self.groups[group].weight } else { 0 };
            let mut place = self.groups[group].place;
            if place.weight == u64::from(weight) {
                return;
            }
            let order = &mut self.groups[parent].order;
            if place.weight > 0 {
                native::fair_leave(order, &mut place);
            } else {
                let lead = native::fair_lead(order, &place);
                place.vtime = native::fair_place(order, lead, place.lag, weight, credit_ns, POLICY.slice_ns);
            }
            if weight > 0 {
                native::fair_enter(order, &mut place, weight);
            }
            self.groups[group].place = place;
            group = parent;
        }
    }

    /// stand(): the lead on the root's clock, and the effective weight.
    fn stands(&self, task: usize) -> (i64, u64) {
        let task = &self.tasks[task];
        let mut group = task.group;
        let mut lead = native::fair_lead(&self.groups[group].order, &task.place);
        let mut effective = u64::from(task.weight) << FAIR_WEIGHT_SHIFT;
        while group != ROOT {
            let Group { order, place, parent, .. } = &self.groups[group];
            lead = native::fair_lead_above(lead, order, place.weight)
                + native::fair_lead(&self.groups[*parent].order, place);
            effective = effective * place.weight / order.weight;
            group = *parent;
        }
        (lead, effective.max(1))
    }

    fn key(&self, task: usize) -> u64 {
        self.groups[ROOT].order.clock.wrapping_add_signed(self.stands(task).0)
    }

    fn wake(&mut self, task: usize, credit_ns: u64) {
        let (group, weight) = (self.tasks[task].group, self.tasks[task].weight);
        let mut place = self.tasks[task].place;
        let order = &mut self.groups[group].order;
        let lead = native::fair_lead(order, &place);
        place.vtime = native::fair_place(order, lead, place.lag, weight, credit_ns, POLICY.slice_ns);
        native::fair_enter(order, &mut place, weight);
        self.tasks[task].place = place;
        self.settle(group, credit_ns);
        (self.tasks[task].left_ns, self.tasks[task].used_ns) = (self.tasks[task].habit.compute_ns, 0);
        self.tasks[task].newcomer = true;
        self.queue(task);
        let Some(running) = self.runs else { return };
        let ahead = self.key(running).wrapping_sub(self.tasks[task].key) as i64;
        if native::fair_preempts(ahead, self.groups[ROOT].order.weight, self.nr()) {
            self.queue(running);
            self.takes(task);
        }
    }

    fn queue(&mut self, task: usize) {
        if !native::fair_has_rest(self.tasks[task].slice_ns, self.tasks[task].used_ns) {
            let (key, effective) = (self.key(task), self.stands(task).1);
            let slice_ns = native::fair_slice(POLICY.slice_ns, effective, self.groups[ROOT].order.weight);
            let task = &mut self.tasks[task];
            (task.key, task.slice_ns, task.used_ns) = (key, slice_ns, 0);
        }
        self.tasks[task].waits_since_ns = self.now_ns;
    }

    fn takes(&mut self, task: usize) {
        let now_ns = self.now_ns;
        if self.tasks[task].used_ns == 0 {
            // Others may have come since it was queued.
            let sum = self.groups[ROOT].order.weight;
            self.tasks[task].slice_ns = native::fair_slice(POLICY.slice_ns, self.stands(task).1, sum);
        }
        let it = &mut self.tasks[task];
        it.newcomer = false;
        it.longest_wait_ns = it.longest_wait_ns.max(now_ns - it.waits_since_ns);
        self.runs = Some(task);
    }

    fn sleep(&mut self, task: usize) {
        let group = self.tasks[task].group;
        native::fair_leave(&mut self.groups[group].order, &mut self.tasks[task].place);
        self.settle(group, 0);
        self.runs = None;
    }

    /// refresh_last() and the choice of the next.
    fn dispatch(&mut self) {
        let clock = self.groups[ROOT].order.clock;
        let waits = |&task: &usize| self.tasks[task].place.weight > 0;
        let lead = |&task: &usize| self.tasks[task].key.wrapping_sub(clock) as i64;
        let waiting: Vec<usize> = (0..self.tasks.len()).filter(waits).collect();
        let (first, last) = (waiting.iter().copied().min_by_key(lead), waiting.iter().copied().max_by_key(lead));
        let Some(last) = last else { return };
        let key = self.key(last);
        if (key.wrapping_sub(self.tasks[last].key) as i64) < 0 {
            self.tasks[last].key = key;
        }
        self.takes(first.unwrap());
    }

    fn charge(&mut self, task: usize, ns: u64) {
        let mut group = self.tasks[task].group;
        native::fair_charge(&mut self.groups[group].order, &mut self.tasks[task].place, ns);
        while group != ROOT {
            let (parent, mut place) = (self.groups[group].parent, self.groups[group].place);
            native::fair_charge(&mut self.groups[parent].order, &mut place, ns);
            self.groups[group].place = place;
            group = parent;
        }
        let task = &mut self.tasks[task];
        task.used_ns += ns;
        task.ran_ns += ns;
        task.left_ns = task.left_ns.saturating_sub(ns);
    }

    /// Runs for so long; `done` is told of who has computed for as long as it wanted to, and says who wakes for it.
    fn run(&mut self, ns: u64, mut done: impl FnMut(&mut Cpu, usize)) {
        let end_ns = self.now_ns + ns;
        while self.now_ns < end_ns {
            for task in 0..self.tasks.len() {
                if self.tasks[task].place.weight == 0 && self.tasks[task].wakes_ns <= self.now_ns {
                    let others = self.tasks.iter().filter(|task| task.newcomer).count() as u32;
                    let credit_ns = native::fair_credit(&POLICY, others, false);
                    self.wake(task, credit_ns);
                }
            }
            if self.runs.is_none() {
                self.dispatch();
            }
            self.now_ns += STEP_NS;
            let Some(task) = self.runs else { continue };
            self.charge(task, STEP_NS);
            if self.tasks[task].left_ns == 0 {
                self.sleep(task);
                self.tasks[task].wakes_ns = self.now_ns + self.tasks[task].habit.sleep_ns;
                done(self, task);
            } else if self.tasks[task].used_ns + STEP_NS > self.tasks[task].slice_ns {
                self.runs = None;
                self.queue(task);
            }
        }
    }

    /// What of the time since the start it has had.
    fn share(&self, task: usize) -> f64 {
        self.tasks[task].ran_ns as f64 / self.now_ns as f64
    }

    /// The share by weights alone, of one among others that always run.
    fn due(&self, task: usize) -> f64 {
        let weight_in = |group: usize| {
            let tasks = self.tasks.iter().filter(|task| task.group == group).map(|task| task.weight);
            let groups = self.groups.iter().skip(1).filter(|it| it.parent == group && it.order.weight > 0);
            f64::from(tasks.chain(groups.map(|it| it.weight)).sum::<u32>())
        };
        let mut group = self.tasks[task].group;
        let mut share = f64::from(self.tasks[task].weight) / weight_in(group);
        while group != ROOT {
            let Group { weight, parent, .. } = self.groups[group];
            share *= f64::from(weight) / weight_in(parent);
            group = parent;
        }
        share
    }
}

#[test]
fn in_any_tree_those_that_always_run_have_what_weights_say() {
    let mut random = Random::new(20);
    for seed in 0..100 {
        let mut cpu = Cpu::new();
        for _ in 0..random.below(8) {
            let parent = random.below(cpu.groups.len() as u64) as usize;
            cpu.group(parent, [10, 50, 100, 100, 300, 1000][random.below(6) as usize]);
        }
        for _ in 0..2 + random.below(12) {
            let group = random.below(cpu.groups.len() as u64) as usize;
            cpu.task(group, [15, 100, 100, 100, 300][random.below(5) as usize], BUSY);
        }
        cpu.run(60 * SEC, |_, _| ());
        for task in 0..cpu.tasks.len() {
            let (share, due) = (cpu.share(task), cpu.due(task));
            // Of 60 s, one turn is some more or less for those with little.
            assert!((share - due).abs() < 0.03 * due + 0.001, "seed {seed}, task {task}: {share} of {due}");
            let wait_ns = cpu.tasks[task].longest_wait_ns;
            let bound_ns = FAIR_WAIT_NS as u64 + 2 * FAIR_ROUND_NS as u64;
            assert!(wait_ns < bound_ns || due < 0.001, "seed {seed}, task {task}: waited {} ms", wait_ns / MS);
        }
    }
}

#[test]
fn a_group_whose_tasks_take_turns_has_the_share_of_the_group() {
    for (tasks, compute_ms) in [(8, 1), (2, 5), (30, 3)] {
        let mut cpu = Cpu::new();
        let (one, other) = (cpu.group(ROOT, 100), cpu.group(ROOT, 100));
        let busy = cpu.task(one, 100, BUSY);
        let habit = Habit { compute_ns: compute_ms * MS, sleep_ns: u64::MAX / 2 };
        let first = (0..tasks).map(|_| cpu.task(other, 100, habit)).min().unwrap();
        (first + 1..first + tasks).for_each(|task| cpu.tasks[task].wakes_ns = u64::MAX);
        cpu.run(10 * SEC, |cpu, task| {
            let next = first + (task - first + 1) % tasks;
            cpu.tasks[next].wakes_ns = cpu.now_ns;
        });
        let share = cpu.share(busy);
        assert!((0.45..=0.55).contains(&share), "{tasks} tasks of {compute_ms} ms: {share}");
    }
}

#[test]
fn a_chain_of_processes_has_no_more_than_one_that_goes_on() {
    let mut cpu = Cpu::new();
    let busy = [cpu.task(ROOT, 100, BUSY), cpu.task(ROOT, 100, BUSY)];
    let habit = Habit { compute_ns: 4 * MS, sleep_ns: u64::MAX / 2 };
    cpu.task(ROOT, 100, habit);
    cpu.run(10 * SEC, |cpu, task| {
        // A child starts where its parent stands, without credit.
        let child = cpu.task(ROOT, 100, habit);
        cpu.tasks[child].place.vtime = cpu.tasks[task].place.vtime;
        (cpu.tasks[child].wakes_ns, cpu.tasks[task].wakes_ns) = (u64::MAX, u64::MAX);
        cpu.wake(child, 0);
    });
    for task in busy {
        assert!((0.30..=0.46).contains(&cpu.share(task)), "{}", cpu.share(task));
    }
}

#[test]
fn who_sleeps_most_of_the_time_runs_at_once() {
    for others in [1, 4, 20] {
        let mut cpu = Cpu::new();
        (0..others).for_each(|_| _ = cpu.task(ROOT, 100, BUSY));
        let wakes = cpu.task(ROOT, 100, Habit { compute_ns: STEP_NS, sleep_ns: 10 * MS });
        cpu.run(2 * SEC, |_, _| ());
        cpu.tasks[wakes].longest_wait_ns = 0;
        cpu.run(10 * SEC, |_, _| ());
        let wait_ns = cpu.tasks[wakes].longest_wait_ns;
        assert!(wait_ns <= 2 * STEP_NS, "beside {others}: {} us", wait_ns / 1000);
    }
}

/// Light tasks wait further behind the clock than a heavy one may be when it comes from sleep: a slice of its own. So it
/// has to wait for several of their slices. It had 0.036 in all three when it lost what it waited for in its next sleep.
#[test]
fn what_a_task_has_waited_for_outlasts_its_sleep() {
    for (others, weight) in [(3, 300), (3, 100), (6, 100)] {
        let mut cpu = Cpu::new();
        (0..others).for_each(|_| _ = cpu.task(ROOT, 30, BUSY));
        let wakes = cpu.task(ROOT, weight, Habit { compute_ns: STEP_NS, sleep_ns: 9 * STEP_NS });
        cpu.run(20 * SEC, |_, _| ());
        let share = cpu.share(wakes);
        assert!(share > 0.08, "beside {others}, of {weight}: {share} of 0.1");
    }
}

#[test]
fn a_task_that_promised_to_sleep_has_a_millisecond_for_it() {
    assert!(!native::fair_has_had_time(0));
    assert!(!native::fair_has_had_time(MS - 1));
    assert!(native::fair_has_had_time(MS));
}

#[test]
fn in_a_crowd_all_have_a_turn_within_two_rounds() {
    for crowd in [50, 400, 1200] {
        let mut cpu = Cpu::new();
        let group = cpu.group(ROOT, 100);
        (0..crowd).for_each(|_| _ = cpu.task(group, 100, BUSY));
        cpu.run(8 * SEC, |_, _| ());
        let longest_ns = cpu.tasks.iter().map(|task| task.longest_wait_ns).max().unwrap();
        assert!(longest_ns <= 2 * FAIR_ROUND_NS as u64, "{crowd}: {} ms", longest_ns / MS);
        assert!(cpu.tasks.iter().all(|task| task.slice_ns >= FAIR_LEAST_SLICE_NS.into()));
    }
}

#[test]
fn a_group_has_its_weight_once_on_all_cpus_together() {
    let mut random = Random::new(21);
    for _ in 0..1000 {
        let cpus: Vec<u64> = (0..1 + random.below(64)).map(|_| random.below(5) * 1600).collect();
        let all: u64 = cpus.iter().sum();
        let portions: u64 =
            cpus.iter().filter(|&&it| it > 0).map(|&here| native::fair_portion(1600, here, here, all)).sum();
        let exact = if all > 0 { 1600 } else { 0 };
        assert!(portions <= exact && portions + cpus.len() as u64 >= exact, "{portions} on {cpus:?}");
    }
    // A group that wakes on a CPU where it has not been counted, with as much elsewhere, has half of its weight there.
    assert_eq!(native::fair_portion(1600, 1600, 0, 1600), 800);
    // A group that was there until now, and nowhere else, has all of it at once. And no group has nothing.
    assert_eq!(native::fair_portion(1600, 1600, 1200, 1200), 1600);
    assert_eq!(native::fair_portion(16, 16, 16, 1 << 30), 1);
}

#[test]
fn presence_is_half_forgotten_in_its_time_however_often_it_is_noted() {
    for steps in [1, 4, 64, 1000, 30_000] {
        let mut presence = NEW_PRESENCE;
        native::fair_note_presence(&mut presence, 1600, 100 * SEC);
        assert_eq!(presence.mean >> FAIR_MEAN_SHIFT, 1600);
        for step in 1..=steps {
            let passed_ns = u64::from(FAIR_PRESENCE_NS) * step / steps;
            native::fair_note_presence(&mut presence, 0, 100 * SEC + passed_ns);
        }
        let mean = presence.mean >> FAIR_MEAN_SHIFT;
        assert!((575..=800).contains(&mean), "{mean} after {steps} steps");
        native::fair_note_presence(&mut presence, 0, 102 * SEC);
        assert_eq!(presence.mean, 0);
    }
}

#[test]
fn the_presence_of_a_group_that_is_kept_from_running_stays_for_a_second() {
    let mut presence = NEW_PRESENCE;
    native::fair_note_presence(&mut presence, 1600, 100 * SEC);
    native::fair_hold_presence(&mut presence, 800, 100 * SEC);
    let mean_at = |ns| {
        let mut later = presence;
        native::fair_note_presence(&mut later, 0, ns);
        assert_eq!(later.at_ns, ns, "a group that runs again counts from then on");
        later.mean >> FAIR_MEAN_SHIFT
    };
    assert_eq!((mean_at(100 * SEC + 10 * MS), mean_at(101 * SEC)), (1600, 1600));
    assert!(mean_at(101 * SEC + 200 * MS) < 30, "its tasks may have ended");
}

#[test]
fn who_is_kept_from_running_at_once_counts_as_one_that_runs() {
    let mut presence = NEW_PRESENCE;
    native::fair_note_presence(&mut presence, 0, 100 * SEC);
    native::fair_note_presence(&mut presence, 1600, 100 * SEC + 20_000);
    native::fair_hold_presence(&mut presence, 1600, 100 * SEC + 20_000);
    native::fair_note_presence(&mut presence, 0, 100 * SEC + 500 * MS);
    assert_eq!(presence.mean >> FAIR_MEAN_SHIFT, 1600);
}

#[test]
fn a_group_of_another_weight_is_ahead_by_as_much_time_as_before() {
    let mut random = Random::new(22);
    for _ in 0..1000 {
        let mut order = NEW_ORDER;
        let mut places = [NEW_PLACE; 3];
        for place in &mut places {
            place.vtime = random.below(100 * MS);
            native::fair_enter(&mut order, place, 1 + random.below(10_000) as u32);
        }
        let [mut changed, other, _] = places;
        let (was, others) = (changed.weight as f64, native::fair_lead(&order, &other));
        let lead = native::fair_lead(&order, &changed) as f64;
        let weight = 1 + random.below(10_000) as u32;
        native::fair_reweigh(&mut order, &mut changed, weight);
        let off = native::fair_lead(&order, &changed) as f64 * f64::from(weight) - lead * was;
        assert!(off.abs() <= 4.0 * (f64::from(weight) + was), "off by {off}");
        assert!((native::fair_lead(&order, &other) - others).abs() <= 4, "the others stay");
    }
}
