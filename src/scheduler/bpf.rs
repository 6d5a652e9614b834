// SPDX-License-Identifier: GPL-2.0-only
//! The skeleton of `bpf/main.bpf.c`, as the build generated it.

pub use skel::*;

/// The object that the skeleton is of.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/bpf.bpf.o"));

#[allow(missing_docs, dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}
