// SPDX-License-Identifier: GPL-2.0-only
//! The rules of `policies/` for programs in Rust: what they are called, which values they take, and what they decide.
//! The scheduler's loader, its benchmark and the simulator share them.
//!
//! | | |
//! |---|---|
//! | [`intf`], [`native`] | the C side: shapes, and the rules as native functions |
//! | [`axes`], [`choices`] | the rules on each axis; the table of all that a policy is made of |
//! | [`policy`], [`presets`] | a rule on each axis with parameters, and the papers' names for some of them |
//! | [`costs`] | what messages and switches cost, which some rules go by |
//! | [`rows`], [`range`] | what is known of a setting, and what follows from it |
//! | [`hash`] | names as numbers that all nodes have alike |
//! | [`report`] | the command line's errors, one line each |
#![warn(missing_docs)]

pub mod axes;
pub mod choices;
pub mod costs;
pub mod hash;
pub mod native;
pub mod policy;
pub mod presets;
pub mod range;
pub mod report;
pub mod rows;

/// The name of the program, in messages and in the socket's path.
pub const NAME: &str = "scx_cosched";

/// The version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `policies/native.h`, by bindgen: the rules as they are in C, and `bpf/intf.h`.
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, non_snake_case)]
#[allow(clippy::all)]
pub mod intf {
    include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
}
