// SPDX-License-Identifier: GPL-2.0-only
//! One CPU under the scheduler, in steps of 1 ms: the fair order and the boosts as in `bpf/`, and the gate "auto"
//! itself. One task is the job's, task 0; the others are competitors of weight 100 that run whenever they may.

#![allow(dead_code)]

use cosched_rules::native;

use crate::rules::{IDLE, MS, cosched_demand, cosched_policy, cosched_window};

const TICK_MS: u64 = 4; // where slices end that would be over within half of one
const MAX_WAIT_MS: f64 = 1_500.0; // within which a debt is paid back, or forgiven
const MAX_BOOSTED_SLICES: f64 = 8.0; // by which boosts may be ahead of the fair order

#[derive(Clone, Copy, PartialEq)]
pub enum State {
    Runnable,
    /// Asleep in a receive: its claim to a share goes on.
    Awaits,
    Sleeps,
}

/// All times are in ms.
pub struct Task {
    pub weight: f64,
    pub state: State,
    /// All that it has run, T_C, and its fair share of the time in which it claimed one, T_E / N.
    pub cpu: f64,
    pub fair: f64,
    vtime: f64,
    slice_vtime: f64,
    slice_left: f64,
}

pub struct Cpu {
    pub tasks: Vec<Task>,
    now: u64,
    clock: f64,
    running: Option<usize>,
    boosted: bool,
    boosted_lead: f64,
    starving: bool,
    // Of the job.
    policy: cosched_policy,
    window: cosched_window,
    seen: (f64, f64), // T_C and T_E / N up to which the window has them
    pending: bool,
    denied: bool,
}

impl Cpu {
    /// A CPU with the job's task, of `weight`.
    pub fn new(policy: cosched_policy, weight: f64) -> Cpu {
        let mut cpu = Cpu {
            tasks: vec![],
            now: 0,
            clock: 0.0,
            running: None,
            boosted: false,
            boosted_lead: 0.0,
            starving: false,
            policy,
            window: cosched_window { cpu_ns: 0, fair_ns: 0, stepped_ns: 0 },
            seen: (0.0, 0.0),
            pending: false,
            denied: false,
        };
        cpu.add(weight);
        cpu
    }

    fn add(&mut self, weight: f64) {
        let (vtime, state) = (self.clock, State::Sleeps);
        self.tasks.push(Task { weight, state, cpu: 0.0, fair: 0.0, vtime, slice_vtime: vtime, slice_left: 0.0 });
        self.set_state(self.tasks.len() - 1, State::Runnable);
    }

    /// From now on there are `n` competitors.
    pub fn set_competitors(&mut self, n: usize) {
        while self.tasks.len() <= n {
            self.add(100.0);
        }
        for i in 1..self.tasks.len() {
            self.set_state(i, if i <= n { State::Runnable } else { State::Sleeps });
        }
    }

    /// A task falls asleep or wakes, which may bring the credit of one slice along.
    fn set_state(&mut self, i: usize, state: State) {
        if std::mem::replace(&mut self.tasks[i].state, state) == state {
            return;
        }
        self.account();
        if state == State::Runnable {
            let floor = self.clock - self.slice() / self.scale(i);
            let task = &mut self.tasks[i];
            (task.vtime, task.slice_left) = (task.vtime.max(floor), 0.0);
            task.slice_vtime = task.vtime;
        } else if self.running == Some(i) {
            self.running = None;
        }
    }

    fn slice(&self) -> f64 {
        self.policy.slice_ns as f64 / MS as f64
    }

    fn runnable(&self) -> impl Iterator<Item = usize> {
        (0..self.tasks.len()).filter(|&i| self.tasks[i].state == State::Runnable)
    }

    fn weight_sum(&self) -> f64 {
        self.runnable().map(|i| self.tasks[i].weight).sum()
    }

    /// The weight of a task over the average: CPU time over time on the fair clock.
    fn scale(&self, i: usize) -> f64 {
        self.tasks[i].weight * self.runnable().count() as f64 / self.weight_sum()
    }

    /// The job's window as of now.
    fn seen_now(&self) -> cosched_window {
        let (job, mut window) = (&self.tasks[0], self.window);
        let [cpu_ns, fair_ns] = [job.cpu - self.seen.0, job.fair - self.seen.1].map(|ms| (ms * MS as f64) as u64);
        native::window_add(&mut window, &self.policy, self.now * MS, cpu_ns, fair_ns);
        window
    }

    fn account(&mut self) {
        (self.window, self.seen) = (self.seen_now(), (self.tasks[0].cpu, self.tasks[0].fair));
    }

    /// For how long the gate would have the job run, if it grants that.
    fn ask(&mut self) -> Option<f64> {
        let cosched_window { cpu_ns, fair_ns, .. } = self.seen_now();
        let demand = cosched_demand { denied: u32::from(self.denied), cpu_ns, fair_ns, ..IDLE };
        self.denied = self.starving || !native::grants(native::decide(&self.policy, &demand));
        (!self.denied).then(|| (native::slice(&self.policy, &demand) as f64 / MS as f64).max(1.0))
    }

    /// Has a task run, for a new slice if it is boosted or has nothing left of the old one.
    fn run(&mut self, i: usize, slice: f64, boosted: bool) {
        let task = &mut self.tasks[i];
        if boosted || task.slice_left < 1.0 {
            (task.slice_vtime, task.slice_left) = (task.vtime, slice);
        }
        (self.running, self.boosted, self.denied) = (Some(i), boosted, self.denied && i != 0);
        let least = self.runnable().map(|i| self.tasks[i].slice_vtime).fold(f64::INFINITY, f64::min);
        self.clock = self.clock.max(least);
    }

    /// The running task, if any, makes way.
    fn stop(&mut self) {
        self.account();
        let Some(i) = self.running.take() else { return };
        let debt = MAX_WAIT_MS / self.runnable().count() as f64;
        let ceiling = self.clock + debt + self.slice() / self.scale(i);
        let task = &mut self.tasks[i];
        task.vtime = task.vtime.min(ceiling);
        task.slice_vtime = if task.slice_left < 1.0 { task.vtime } else { task.slice_vtime.min(ceiling) };
    }

    /// Who runs next: the first in the order, or the job before it if it has a message and the gate grants that.
    fn dispatch(&mut self) {
        self.stop();
        let by_vtime = |a: &usize, b: &usize| self.tasks[*a].slice_vtime.total_cmp(&self.tasks[*b].slice_vtime);
        let Some(first) = self.runnable().min_by(by_vtime) else { return };
        let demand = first != 0 && self.pending && self.tasks[0].state == State::Runnable;
        match demand.then(|| self.ask()).flatten() {
            Some(slice) => self.run(0, slice, true),
            None => self.run(first, self.slice(), false),
        }
    }

    /// A message for the job arrives, and waits for it until it is taken.
    pub fn arrive(&mut self) {
        self.pending = true;
        self.set_state(0, State::Runnable);
        let demand = self.running != Some(0);
        if let Some(slice) = demand.then(|| self.ask()).flatten() {
            self.stop();
            self.run(0, slice, true);
        }
    }

    /// The job takes its messages, and falls asleep.
    pub fn sleep(&mut self, state: State) {
        self.pending = false;
        self.set_state(0, state);
    }

    pub fn step(&mut self) {
        let ends = |i: usize| self.now.is_multiple_of(TICK_MS) && self.tasks[i].slice_left < TICK_MS as f64 / 2.0;
        if self.running.is_none_or(ends) {
            self.running.inspect(|&i| self.tasks[i].slice_left = 0.0);
            self.dispatch();
        }
        self.now += 1;
        let sum = self.weight_sum();
        for task in self.tasks.iter_mut().filter(|t| t.state != State::Sleeps) {
            let sum = if task.state == State::Awaits { sum + task.weight } else { sum };
            task.fair += task.weight / sum;
        }
        let Some(i) = self.running else { return };
        let vtime = 1.0 / self.scale(i);
        let task = &mut self.tasks[i];
        (task.cpu, task.vtime, task.slice_left) = (task.cpu + 1.0, task.vtime + vtime, task.slice_left - 1.0);
        let lead = self.boosted_lead + if self.boosted { 1.0 } else { -MAX_BOOSTED_SLICES };
        self.boosted_lead = lead.max(0.0);
        self.starving = lead >= MAX_BOOSTED_SLICES * self.slice() || (self.starving && lead > 0.0);
    }
}
