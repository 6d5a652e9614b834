// SPDX-License-Identifier: GPL-2.0-only
//! The simulator: `scx_cosched sim`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cosched_sim::main()
}
