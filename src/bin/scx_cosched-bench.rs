// SPDX-License-Identifier: GPL-2.0-only
//! The benchmark: `scx_cosched bench`.

use std::process::ExitCode;

fn main() -> ExitCode {
    cosched_bench::main()
}
