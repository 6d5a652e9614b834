// SPDX-License-Identifier: GPL-2.0-only
//! Pages and threads in the loaded scheduler.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::slice;
use std::sync::{Arc, Weak};

use anyhow::{Context, Result, bail};
use libbpf_rs::libbpf_sys::bpf_map_get_fd_by_id;
use libbpf_rs::{MapCore, MapFlags, ProgramInput, ProgramMut};

use super::{Change, Done, Hinted};
use cosched_rules::intf::cosched_hint_place;

/// What one run of the scheduler knows of those who give hints.
#[derive(Default)]
pub struct Pages {
    known: BTreeSet<u64>,
    alive: Arc<()>,
}

impl Pages {
    /// Does what `change` says, with the map `hint_pages` and the program `place_hint`.
    ///
    /// # Errors
    /// If the kernel does not take the page, or there is no such thread.
    pub fn apply(&mut self, change: Change, pages: &impl MapCore, place: &ProgramMut<'_>) -> Result<Done> {
        match change {
            Change::Add(page, map) => {
                let fd = map.as_fd().as_raw_fd().to_ne_bytes();
                pages.update(&page.to_ne_bytes(), &fd, MapFlags::NO_EXIST).context("no place for a page of hints")?;
                self.known.insert(page);
            }
            // An earlier run of the scheduler had the page: whoever asks is about to hear that it is gone.
            Change::Place(wanted) if wanted.is_over == 0 && !self.known.contains(&wanted.page) => {
                bail!("no such page of hints")
            }
            Change::Place(wanted) => match run(place, wanted)? {
                0 => {}
                // It has ended, or has gone to another page.
                code if wanted.is_over != 0 && code == -libc::ESRCH => {}
                code => return Err(io::Error::from_raw_os_error(-code)).context("no such thread"),
            },
            Change::Remove(page) => {
                // One of an earlier run of the scheduler is not there.
                if self.known.remove(&page) {
                    pages.delete(&page.to_ne_bytes()).context("cannot take a page of hints away")?;
                }
            }
        }
        Ok(Arc::downgrade(&self.alive))
    }

    /// Who gives hints just now; the BPF side counts the `threads`.
    pub fn hinted(&self, threads: u32) -> Hinted {
        Hinted { processes: self.known.len() as u32, threads }
    }
}

/// Has the BPF side note where a thread gives its hints, or that it does so no longer. Returns its answer, 0 if all is
/// well.
fn run(place: &ProgramMut<'_>, mut wanted: cosched_hint_place) -> Result<i32> {
    // SAFETY: integers without padding, for as long as the slice is used.
    let context = unsafe { slice::from_raw_parts_mut((&raw mut wanted).cast::<u8>(), size_of::<cosched_hint_place>()) };
    let input = ProgramInput { context_in: Some(context), ..Default::default() };
    Ok(place.test_run(input).context("cannot run place_hint")?.return_value as i32)
}

/// Which of these maps are gone for good.
pub fn freed(mut maps: Vec<u32>) -> Vec<u32> {
    maps.retain(|id| {
        // SAFETY: passes no memory.
        let fd = unsafe { bpf_map_get_fd_by_id(*id) };
        if fd >= 0 {
            // SAFETY: it has just been opened, for us.
            drop(unsafe { OwnedFd::from_raw_fd(fd) });
        }
        fd == -libc::ENOENT
    });
    maps
}

/// Whether the scheduler that has done something runs on.
pub fn is_alive(done: &Done) -> bool {
    Weak::strong_count(done) > 0
}
