// SPDX-License-Identifier: GPL-2.0-only
//! The C side as the build generated it: the skeleton of `bpf/main.bpf.c`, and in [`intf`] the shapes that
//! both sides share.

pub use skel::*;

/// The object that the skeleton is of.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/bpf.bpf.o"));

/// `bpf/intf.h` and `policies/policy.h`, by bindgen.
#[allow(missing_docs, dead_code, non_camel_case_types, non_upper_case_globals, non_snake_case)]
#[allow(clippy::all)]
pub mod intf {
    include!(concat!(env!("OUT_DIR"), "/bpf_intf.rs"));
}

#[allow(missing_docs, dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}
