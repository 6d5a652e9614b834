// SPDX-License-Identifier: GPL-2.0-only
//! The skeleton of `bpf/main.bpf.c`, as the build generated it.

pub mod hooks;
pub mod modules;

use scx_utils::NR_CPU_IDS;

pub use skel::*;

/// The object that the skeleton is of.
pub static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/bpf.bpf.o"));

#[allow(missing_docs, dead_code, clippy::all)]
mod skel {
    include!(concat!(env!("OUT_DIR"), "/bpf_skel.rs"));
}

/// The size of a map that drops what was used least lately, if it is to keep `wanted` entries. Until Linux 6.16 each
/// CPU keeps 128 free places for itself, whatever the size, and what is in use makes way for them.
pub fn lru_entries(wanted: u32) -> u32 {
    lru_entries_of(wanted, *NR_CPU_IDS)
}

fn lru_entries_of(wanted: u32, cpus: usize) -> u32 {
    wanted.max(256 * cpus as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cpus_keep_for_themselves_leaves_half_of_a_map_at_least() {
        assert_eq!(lru_entries_of(1024, 2), 1024);
        for cpus in [8, 64, 1024] {
            assert!(lru_entries_of(1024, cpus) as usize >= 2 * 128 * cpus);
        }
    }
}
