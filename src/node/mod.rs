// SPDX-License-Identifier: GPL-2.0-only
//! What there is on this node: its kernel, its CPUs' costs, and this process with what it may do.

pub mod calibration;
pub mod check;
pub mod cpu_max;
pub mod kernel_events;
pub mod privileges;
pub mod process;
