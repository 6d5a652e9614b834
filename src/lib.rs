// SPDX-License-Identifier: GPL-2.0-only
//! Demand-based coscheduling for Linux: the user-space side of `scx_cosched`.
//!
//! A BPF scheduler decides which task runs; this library loads it, changes its policy while it runs, and
//! shows what it does. One thread owns the loaded scheduler ([`scheduler`]). Everybody else sends it a
//! request and waits for the answer ([`requests`]).
//!
//! | what the program is told | |
//! |---|---|
//! | [`cosched_rules`] | the rules, what a policy is made of, and what is known of a setting |
//! | [`settings`], [`limits`] | the table of all other settings; flags over file over preset, checked as a whole |
//! | [`cli`], [`config`] | the commands, and the TOML file with the flags' names as keys |
//!
//! | what it does | |
//! |---|---|
//! | [`run`] | the order in which things start and end |
//! | [`check`] | what this kernel has and lacks |
//! | [`privileges`] | what the process and its threads may do |
//! | [`scheduler`], [`loading`], [`hooks`] | load, attach, serve, restart |
//! | [`service`] | what systemd is told of it |
//! | [`modules`] | hooks on RDMA, whose modules come and go |
//! | [`wire`] | epochs on the wire: XDP, sock_ops and tc, loaded by aya |
//! | [`prefetch`] | correspondents on other nodes are asked for ahead of messages |
//! | [`hints`] | what programs say of their waits themselves |
//! | [`totals`], [`jobs`], [`owners`], [`job_by`] | read the maps; the largest jobs and the rest; who owns a job, and what one is |
//! | [`arrivals`] | what else than sockets and RDMA brings messages |
//! | [`calibration`] | what messages and switches cost on this node |
//! | [`gang`] | which row of the gang's matrix a job is in |
//! | [`kernel_events`], [`process`] | what the kernel counts of the scheduler, and what the process takes |
//! | [`snapshot`] | one moment of the scheduler, which every output shows |
//!
//! | how it is seen | |
//! |---|---|
//! | [`control`], [`commands`] | the root-only socket, and the subcommands that use it |
//! | [`recommend`] | which preset fits what was seen, and why |
//! | [`exporter`], [`metrics`] | OpenMetrics over HTTP |
//! | [`monitor`] | the `scx_stats` server that scx tools read |
//! | [`trace`] | arrivals, decisions and switches as they happen |
//!
//! | what it is made of | |
//! |---|---|
//! | [`bpf`] | the skeleton of the C side |
//! | [`logging`] | one line for each message |
#![warn(missing_docs)]

pub mod arrivals;
pub mod bpf;
pub mod calibration;
pub mod check;
pub mod cli;
pub mod commands;
pub mod config;
pub mod control;
pub mod cpu_max;
pub mod exporter;
pub mod gang;
pub mod hints;
pub mod hooks;
pub mod job_by;
pub mod jobs;
pub mod kernel_events;
pub mod limits;
pub mod loading;
pub mod logging;
pub mod metrics;
pub mod modules;
pub mod monitor;
pub mod owners;
pub mod prefetch;
pub mod privileges;
pub mod process;
pub mod recommend;
pub mod requests;
pub mod run;
pub mod scheduler;
pub mod service;
pub mod settings;
pub mod snapshot;
pub mod socket_file;
pub mod totals;
pub mod trace;
pub mod wire;

pub use cosched_rules::{NAME, VERSION};
