// SPDX-License-Identifier: GPL-2.0-only
//! What the tests of simulated jobs have in common.

use cosched_sim::bsp::{Outcome, Scheduler, Setup, Wakeup, simulate};
use cosched_sim::jobs::Program;
use cosched_sim::policy::{Costs, WaitRule};

/// So many of these jobs on as many nodes as one has processes, under SVR4 as in Dusseau 1996.
pub fn on_svr4(jobs: u32, program: Program, costs: Costs, wait: WaitRule) -> Setup {
    Setup {
        nodes: program.processes,
        jobs,
        program,
        costs,
        wait,
        scheduler: Scheduler::Svr4,
        by_tick: false,
        wakeup: Wakeup::Urgent,
        aligned: false,
        has_clocks: true,
        spread_roots: false,
    }
}

/// What comes of it, from seed 1.
pub fn run(setup: &Setup) -> Outcome {
    simulate(setup, 1, &mut |_, _| {})
}
