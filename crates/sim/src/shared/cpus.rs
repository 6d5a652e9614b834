// SPDX-License-Identifier: GPL-2.0-only
//! On which CPU of its node a task is (`bpf/enqueue.bpf.h`, `bpf/dispatch.bpf.h`, `bpf/balance.bpf.h`).
//!
//! Each CPU has a queue of its own, and a task waits for its turn there. It moves in three cases. Two leave no CPU idle
//! while a task of its node is runnable: one that wakes goes to an idle CPU, if its own is busy; and a CPU that has
//! nobody left takes the first of another's queue. And now and then a busy CPU takes one from a busier one's. A task
//! takes its distance to the fair clock along (`enter_order`). What its fair share was of the time that it waited in
//! the other queue stays due, and what it was of the time that it slept there is not counted, as in the kernel
//! (`become_runnable` in `bpf/switch.bpf.h`).

use std::ops::Range;

use super::model::{Cpu, Shared};
use super::task::{Park, Spends, Wait};
use crate::local::{EFFECTIVE, LocalScheduler, WEIGHT};
use crate::node::Mode;
use cosched_rules::intf::COSCHED_WAITS_PARTS;
use cosched_rules::native;

/// How often a busy CPU looks for a busier one, at the average (`bpf/balance.bpf.h`).
const BALANCE_INTERVAL_NS: u64 = 100_000_000;
/// A task that was taken stays where it is for so long.
const STAY_NS: u64 = 500_000_000;

impl Shared<'_> {
    /// The CPUs of the node that `on` is one of, from the one behind it on, and `on` last.
    fn others(&self, on: usize) -> impl Iterator<Item = usize> + use<> {
        let (cpus, first) = (self.setup.cpus as usize, (self.node_of(on) * self.setup.cpus) as usize);
        (1..=cpus).map(move |i| first + (on - first + i) % cpus)
    }

    /// The tasks of a node begin, in this order, on these CPUs: as evenly as they can be, and processes of one job on
    /// different ones, where those who start them put them.
    pub(super) fn deal(&mut self, cpus: Range<u32>, order: &[u32]) {
        let has_rank = |slot: u32| slot < self.setup.jobs * self.setup.ranks;
        let mut dealt: Vec<Vec<u32>> = cpus.clone().map(|_| Vec::new()).collect();
        let mut on_cpu = vec![0; order.len()];
        let competitors = order.iter().filter(|&&slot| !has_rank(slot));
        for &slot in order.iter().filter(|&&slot| has_rank(slot)).chain(competitors) {
            let job = |slot: u32| if has_rank(slot) { slot / self.setup.ranks } else { slot };
            let same = |there: &Vec<u32>| there.iter().filter(|&&other| job(other) == job(slot)).count();
            let least = (0..dealt.len()).min_by_key(|&cpu| (same(&dealt[cpu]), dealt[cpu].len())).unwrap_or(0);
            dealt[least].push(slot);
            on_cpu[slot as usize] = cpus.start + least as u32;
        }
        let first = cpus.start as usize;
        for &slot in order {
            let on = on_cpu[slot as usize].max(cpus.start) as usize;
            self.task(on, slot).cpu = on as u32;
            if self.is_present(self.node_of(first), slot) {
                self.cpus[on].node.local.arrive(slot);
            } else {
                let task = self.task(on, slot);
                (task.wait, task.spends) = (Wait::Sleeps, Spends::Away);
            }
        }
    }

    /// On which CPU `slot`, which slept on `on`, is to wake: there, unless that one is busy and another idles.
    pub(super) fn wakes_where(&mut self, on: usize, slot: u32, now_ns: u64) -> usize {
        let is_idle = |&cpu: &usize| self.cpus[cpu].node.mode == Mode::Idle;
        if self.setup.cpus == 1 || is_idle(&on) {
            return on;
        }
        let Some(idle) = self.others(on).find(is_idle) else { return on };
        self.moves(slot, on, idle, now_ns);
        idle
    }

    /// The CPU `on` has nobody to run: it takes the first of the next CPU of its node that has somebody waiting.
    pub(super) fn takes_from_others(&mut self, on: usize, now_ns: u64) {
        if self.setup.cpus == 1 || !self.cpus[on].node.local.queue().is_empty() {
            return;
        }
        let first = |cpu: usize| Some((cpu, *self.cpus[cpu].node.local.queue().first()?));
        if let Some((from, slot)) = self.others(on).find_map(first) {
            self.moves(slot, from, on, now_ns);
        }
    }

    /// The CPU `on`, whose task has left it, takes one that waits on a busier CPU, and has it run next.
    pub(super) fn pulls(&mut self, on: usize, now_ns: u64) {
        let cpu = &mut self.cpus[on];
        if self.setup.cpus == 1 || now_ns < cpu.balance_ns {
            return;
        }
        cpu.balance_ns = now_ns + BALANCE_INTERVAL_NS / 2 + self.looks.below(BALANCE_INTERVAL_NS);
        let load = cpu.load();
        let is_busier = |cpu: &Cpu| native::load_differs(load, cpu.load(), WEIGHT, COSCHED_WAITS_PARTS, false);
        let first = |cpu: usize| {
            let mut waiting = self.cpus[cpu].node.local.queue().iter();
            let task = |slot: u32| &self.tasks[self.place_of(cpu, slot)];
            let may_move = |slot: u32| task(slot).park != Park::Parked && task(slot).stays_until_ns <= now_ns;
            waiting.find(|&&slot| may_move(slot)).map(|&slot| (cpu, slot))
        };
        if let Some((from, slot)) = self.others(on).filter(|&cpu| is_busier(&self.cpus[cpu])).find_map(first) {
            self.moves(slot, from, on, now_ns);
            self.cpus[on].node.local.boost(slot, None);
            self.task(on, slot).stays_until_ns = now_ns + STAY_NS;
        }
    }

    fn moves(&mut self, slot: u32, from: usize, to: usize, now_ns: u64) {
        Self::advance_shares(&mut self.cpus[from], now_ns);
        Self::advance_shares(&mut self.cpus[to], now_ns);
        let standing = self.cpus[from].node.local.leave(slot);
        self.cpus[to].node.local.join(slot, standing);
        if !self.task(from, slot).sleeps() {
            let passed_ns = self.cpus[from].shares.ns - self.task(from, slot).share_seen;
            let share_ns = native::account_share(passed_ns, EFFECTIVE);
            self.notes(from, slot, now_ns, 0, share_ns);
        }
        let share_seen = self.cpus[to].shares.ns;
        let task = self.task(to, slot);
        (task.cpu, task.share_seen) = (to as u32, share_seen);
        self.moves += 1;
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::engine::{Model, NEVER_NS, Queue};
    use crate::shared::messages::Messages;
    use crate::shared::model::LANES;
    use crate::shared::program::{Pattern, Program, Receiver};
    use crate::shared::task::{Step, Task};
    use crate::shared::uneven::Uneven;
    use crate::shared::{Costs, Faults, Setup};
    use cosched_rules::costs::Costs as NodeCosts;
    use cosched_rules::presets;

    const US: u64 = 1_000;
    const MS: u64 = 1_000_000;

    /// Two jobs and some competitors on two nodes.
    pub fn setup(preset: &str, program: Program, cpus: u32, competitors: u32) -> Setup {
        let costs = NodeCosts { latency_us: 5.0, overhead_us: 20.0, switch_us: 60.0 };
        Setup {
            nodes: 2,
            cpus,
            jobs: 2,
            ranks: cpus - 1,
            competitors,
            program,
            policy: presets::changed(preset).unwrap().to_bpf(&costs),
            is_eevdf: false,
            first: None,
            costs: Costs { latency_ns: 5 * US, overhead_ns: 20 * US, switch_ns: 60 * US, idle_switch_ns: 150 * US },
            faults: Faults { loss: 0.01, resend_ns: 30 * MS, skew_ns: 0 },
            tick_ns: 4 * MS,
            uneven: Uneven { kernel_thread_ns: 10 * MS, ..Uneven::default() },
            messages: Messages::default(),
            aligned: false,
            warmup_ns: 0,
            length_ns: 400 * MS,
        }
    }

    /// Whether a CPU idles while a task of its node waits.
    fn idles_beside_work(model: &Shared<'_>, node: usize) -> bool {
        let cpus = model.setup.cpus as usize;
        let of_node = &model.cpus[node * cpus..(node + 1) * cpus];
        let idle = of_node.iter().any(|cpu| cpu.node.mode == Mode::Idle);
        idle && of_node.iter().any(|cpu| !cpu.node.local.queue().is_empty())
    }

    /// Each task is on one CPU of its node, and that knows how many it has.
    fn is_counted(model: &Shared<'_>, on: usize) -> bool {
        let slots = 0..model.slots;
        let here = slots.map(|slot| &model.tasks[model.place_of(on, slot)]).filter(|task| task.cpu as usize == on);
        let runnable = here.filter(|task| !task.sleeps()).count() as u32;
        let cpu = &model.cpus[on];
        let has_cpu = u32::from(cpu.node.mode != Mode::Idle);
        cpu.node.local.nr_runnable() == runnable && cpu.node.local.queue().len() as u32 + has_cpu == runnable
    }

    /// A competitor computes and does nothing else, whatever preempts it and when.
    fn competes(task: &Task) -> bool {
        task.talks || (task.step == Step::Compute && task.left_ns == NEVER_NS)
    }

    /// After each event of a run no CPU idles beside work. Returns how many moves and idle CPUs there were.
    fn conserves_work(setup: &Setup) -> (u64, u64) {
        let (mut queue, mut idle) = (Queue::new(LANES), 0);
        let mut model = Shared::new(setup, 3);
        model.start(&mut queue);
        while !model.is_over() {
            let event = queue.pop().unwrap();
            model.handle(event, &mut queue);
            let now_ns = queue.now_ns();
            for node in 0..setup.nodes as usize {
                assert!(!idles_beside_work(&model, node), "node {node} at {now_ns} after {event:?}");
            }
            assert!(model.tasks.iter().all(competes), "at {now_ns} after {event:?}");
            for on in 0..model.cpus.len() {
                assert!(is_counted(&model, on), "CPU {on} at {now_ns} after {event:?}");
                idle += u64::from(model.cpus[on].node.mode == Mode::Idle);
            }
        }
        (model.moves, idle)
    }

    #[test]
    fn no_cpu_idles_while_a_task_of_its_node_is_runnable() {
        let (mut moves, mut idle) = (0, 0);
        let presets = presets::all().keys().map(String::as_str);
        for preset in presets.chain(["dcs+gate=always", "dcs-sb+epochs=true"]) {
            for (cpus, competitors) in [(2, 0), (2, 1), (4, 0), (4, 3)] {
                for receiver in [Receiver::Spin, Receiver::Block] {
                    for pattern in [Pattern::Token, Pattern::Ring, Pattern::Meeting] {
                        let program = Program { pattern, receiver, grain_ns: 300 * US, imbalance_ns: 300 * US };
                        let found = conserves_work(&setup(preset, program, cpus, competitors));
                        (moves, idle) = (moves + found.0, idle + found.1);
                    }
                }
            }
        }
        assert!(moves > 1000 && idle > 1000, "it was not put to the test: {moves} moves, {idle} idle CPUs");
    }

    #[test]
    fn tasks_that_do_not_divide_by_the_cpus_have_the_same_in_the_long_run() {
        for (cpus, competitors) in [(2, 1), (4, 3), (3, 5)] {
            let program = Program { pattern: Pattern::Ring, receiver: Receiver::Spin, grain_ns: MS, imbalance_ns: 0 };
            let setup = Setup {
                nodes: 1,
                jobs: 2,
                ranks: 1,
                length_ns: 16_000 * MS,
                ..setup("local", program, cpus, competitors)
            };
            let share = f64::from(cpus) / f64::from(2 + competitors);
            for seed in 1..6 {
                let mut queue = Queue::new(LANES);
                let mut model = Shared::new(&setup, seed);
                model.start(&mut queue);
                while !model.is_over() {
                    let event = queue.pop().unwrap();
                    model.handle(event, &mut queue);
                }
                for task in &model.tasks {
                    let fairness = task.cpu_ns as f64 / (share * setup.length_ns as f64);
                    let is_fair = (fairness - 1.0).abs() < 0.1;
                    assert!(is_fair, "{cpus} CPUs, {competitors} competitors, seed {seed}: {fairness}");
                }
            }
        }
    }

    #[test]
    fn tasks_begin_evenly_and_processes_of_a_job_apart() {
        let program = Program { pattern: Pattern::Ring, receiver: Receiver::Spin, grain_ns: MS, imbalance_ns: 0 };
        let setup = Setup { ranks: 4, ..setup("local", program, 4, 4) };
        for seed in 1..20 {
            let mut model = Shared::new(&setup, seed);
            model.start(&mut Queue::new(LANES));
            for on in 0..model.cpus.len() {
                let is_here = |&slot: &u32| model.tasks[model.place_of(on, slot)].cpu as usize == on;
                let jobs = (0..model.slots).filter(is_here).map(|slot| setup.who_is(0, slot).0);
                let mut jobs: Vec<u32> = jobs.filter(|&job| job < setup.jobs).collect();
                jobs.sort_unstable();
                assert_eq!((jobs, model.cpus[on].node.local.nr_runnable()), (vec![0, 1], 3), "CPU {on}, seed {seed}");
            }
        }
    }
}
