// SPDX-License-Identifier: GPL-2.0-only
//! What there is on this node: its kernel, its CPUs' costs, and this process with what it may do.

pub mod calibration;
pub mod core_scheduling;
pub mod cpu_max;
pub mod host;
pub mod kernel_events;
pub mod logging;
pub mod privileges;
pub mod process;
pub mod service;
pub mod socket_file;
