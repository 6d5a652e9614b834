// SPDX-License-Identifier: GPL-2.0-only
//! Hints: what programs say of their waits themselves (`hints/cosched.h`, `docs/hints.md`).
//!
//! A process that gives hints connects to a socket that is open to every user, and gets a page that it shares with the
//! BPF side alone (`bpf/hints.bpf.h`). The page is made here, so nothing of the process's memory has to be believed or
//! mapped, and a process can only say something of its own threads: the kernel says which process it is that asks.
//!
//! | | |
//! |---|---|
//! | [`crate::control::hints`] | the socket, and the processes that are connected |
//! | [`process`] | which thread of which process is meant |
//! | [`kernel`] | pages and threads in the loaded scheduler |
//! | [`client`] | the other side: libcosched for Rust |

pub mod client;
pub mod kernel;
pub mod process;

use std::sync::Weak;

use libbpf_rs::libbpf_sys::{BPF_F_MMAPABLE, bpf_map_create_opts};
use libbpf_rs::{MapHandle, MapType};
use serde::{Deserialize, Serialize};

use cosched_rules::intf;

/// Where libcosched looks for the socket unless it is told otherwise.
pub const DEFAULT_SOCKET: &str = "/run/scx_cosched-hints.sock";

/// What is to change for the scheduler.
#[derive(Debug)]
pub enum Change {
    /// A process has this page, by a number that none had before.
    Add(u64, MapHandle),
    /// A thread gives its hints there, or has and is to be forgotten (`is_over`), unless it is gone already.
    Place(intf::cosched_hint_place),
    /// The page is not to be read any more.
    Remove(u64),
}

/// It has been done. Can be upgraded for as long as the scheduler that has done it runs.
pub type Done = Weak<()>;

/// Who gives hints just now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hinted {
    /// Processes that have a page.
    pub processes: u32,
    /// Threads that have a place in one.
    pub threads: u32,
}

/// A page for the threads of one process, empty.
///
/// # Errors
/// If the kernel does not give the memory.
pub fn new_page() -> libbpf_rs::Result<MapHandle> {
    let size = size_of::<bpf_map_create_opts>() as u64;
    let opts = bpf_map_create_opts { sz: size, map_flags: BPF_F_MMAPABLE, ..Default::default() };
    let hint = size_of::<intf::cosched_hint>() as u32;
    MapHandle::create(MapType::Array, Some("cosched_hints"), 4, hint, intf::COSCHED_HINT_THREADS, &opts)
}
