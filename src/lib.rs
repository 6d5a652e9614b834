// SPDX-License-Identifier: GPL-2.0-only
//! Demand-based coscheduling for Linux: the user-space side of `scx_cosched`.
//!
//! A BPF scheduler decides which task runs; this library loads it, changes its policy while it runs, and
//! shows what it does. One thread owns the loaded scheduler ([`scheduler`]). Everybody else sends it a
//! request and waits for the answer ([`scheduler::requests`]).
//!
//! | what the program is told | |
//! |---|---|
//! | [`cosched_rules`] | the rules, what a policy is made of, and what is known of a setting |
//! | [`cli`] | the commands |
//! | [`settings`] | the table of all settings but a policy's; flags over file over preset, checked as a whole |
//!
//! | what it does | |
//! |---|---|
//! | [`run`] | the order in which things start and end, and what this kernel lacks for it |
//! | [`scheduler`] | loads, attaches, serves and restarts |
//! | [`bpf`] | the skeleton of the C side, and its hooks |
//! | [`node`] | this machine, what messages cost on it, and this process: what it may do, takes, logs and tells systemd |
//! | [`jobs`] | which jobs there are, what they have used, and whose they are |
//! | [`wire`] | epochs on the wire: XDP, sock_ops and tc, loaded by aya |
//! | [`prefetch`] | correspondents on other nodes are asked for ahead of messages |
//! | [`hints`] | what programs say of their waits themselves |
//!
//! | how it is seen | |
//! |---|---|
//! | [`snapshot`] | one moment of the scheduler, which every output shows |
//! | [`control`] | the sockets for root and for hints, and the commands that use the first |
//! | [`metrics`] | OpenMetrics over HTTP, and the `scx_stats` server that scx tools read |
//! | [`top`] | a screen for people, with a lane for each CPU |
//! | [`trace`] | arrivals, decisions and switches as they happen |
#![warn(missing_docs)]

pub mod bpf;
pub mod cli;
pub mod control;
pub mod hints;
pub mod jobs;
pub mod metrics;
pub mod node;
pub mod prefetch;
pub mod run;
pub mod scheduler;
pub mod settings;
pub mod snapshot;
pub mod top;
pub mod trace;
pub mod wire;

pub use cosched_rules::{NAME, VERSION};
