// SPDX-License-Identifier: GPL-2.0-only
//! Random inputs for the rules, the same on every machine.

#![allow(dead_code)]

use crate::rules::{
    EQUAL_WEIGHTS, POLICY, cosched_candidate, cosched_demand, cosched_policy, cosched_wait_history, cosched_window,
};

/// splitmix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    /// A number of any size, or one at an end of a range: there the arithmetic has its corners.
    pub fn number(&mut self) -> u64 {
        const CORNERS: [u64; 9] =
            [0, 1, u64::MAX, i64::MAX as u64, i64::MIN as u64, 1 << 32, (1 << 32) - 1, u64::MAX - 1, 1 << 62];
        match self.below(4) {
            0 => CORNERS[self.below(CORNERS.len() as u64) as usize],
            1 => self.below(1 << 30),
            _ => {
                let shift = self.below(64);
                self.next() >> shift
            }
        }
    }

    fn signed(&mut self) -> i64 {
        let number = self.number() as i64;
        if self.below(2) == 0 { number } else { number.wrapping_neg() }
    }

    /// Mostly below `n`, which is where the numbers are that mean something.
    fn mostly_below(&mut self, n: u64) -> u32 {
        if self.below(4) > 0 { self.below(n) as u32 } else { self.number() as u32 }
    }

    fn exponent(&mut self) -> i32 {
        match self.below(4) {
            0 => self.next() as i32,
            1 => [i32::MIN, i32::MAX, -64, 64, -63, 63][self.below(6) as usize],
            _ => self.below(140) as i32 - 70,
        }
    }

    /// Of the rules on each axis one is that nobody knows.
    pub fn policy(&mut self) -> cosched_policy {
        cosched_policy {
            arrival: if self.below(16) == 0 { self.below(5) as u32 } else { POLICY.arrival },
            gate: self.below(6) as u32,
            wait: self.below(5) as u32,
            spin: self.below(7) as u32,
            choice: self.below(5) as u32,
            residual_slice: 0,
            slice_ns: self.number(),
            interval_ns: self.number(),
            h_ns: self.signed(),
            rate_constant_ns: self.signed(),
            rate_exponent: self.exponent(),
            target_permille: self.mostly_below(10_000),
            spin_ns: self.number(),
            latency_ns: self.number(),
            overhead_ns: self.number(),
            switch_ns: self.number(),
            recheck_ns: self.number(),
            quantum_ns: self.number(),
            rows: self.mostly_below(20),
            epochs: self.mostly_below(2),
            rate_average: u64::from(self.mostly_below(2)),
        }
    }

    pub fn demand(&mut self) -> cosched_demand {
        cosched_demand {
            now_ns: self.number(),
            last_boost_ns: self.number(),
            receiver_ran_ns: self.signed(),
            running_ran_ns: self.signed(),
            nr_runnable: self.number() as u32,
            denied: if self.below(2) == 0 { 0 } else { self.number() as u32 },
            scale: if self.below(2) == 0 { EQUAL_WEIGHTS } else { self.number() as u32 },
            max_lead_ns: if self.below(2) == 0 { u64::MAX } else { self.number() },
            cpu_ns: self.number(),
            fair_ns: self.number(),
            message_epoch: self.number(),
            node_epoch: self.number(),
            node_quiet: self.below(2) as u32,
            mean_waiting: self.number(),
        }
    }

    pub fn window(&mut self) -> cosched_window {
        cosched_window { cpu_ns: self.number(), fair_ns: self.number(), stepped_ns: self.number() }
    }

    /// Two of them are often alike.
    pub fn candidate(&mut self) -> cosched_candidate {
        cosched_candidate {
            distance: self.mostly_below(3),
            receives: self.mostly_below(2),
            pending: self.mostly_below(3),
            reserved: 0,
            arrival_ns: self.mostly_below(3).into(),
        }
    }

    pub fn history(&mut self) -> cosched_wait_history {
        let waits_us = std::array::from_fn(|_| self.mostly_below(3_000));
        cosched_wait_history {
            skips: self.mostly_below(300),
            skips_left: if self.below(2) == 0 { 0 } else { self.number() as u32 },
            waits_us,
            nr_waits: self.mostly_below(40),
            estimate_us: self.mostly_below(3_000),
            heard_us: self.mostly_below(3_000),
        }
    }
}
