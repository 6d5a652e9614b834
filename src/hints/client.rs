// SPDX-License-Identifier: GPL-2.0-only
//! libcosched, for programs in Rust: what `hints/cosched.h` says of each function holds here.

use std::marker::PhantomData;

unsafe extern "C" {
    fn cosched_self() -> *mut Opaque;
    fn cosched_wait_begin();
    fn cosched_wait_end();
    fn cosched_message_pending(thread: *mut Opaque);
    fn cosched_is_heard() -> i32;
}

#[repr(C)]
struct Opaque([u8; 0]);

/// A thread of this process that others may tell the scheduler of messages for. It must not outlive that thread, which
/// the closure given to [`with_thread`] sees to.
pub struct Thread<'a>(*mut Opaque, PhantomData<&'a ()>);

// SAFETY: the one thing that can be done with it is an atomic store.
unsafe impl Sync for Thread<'_> {}

impl Thread<'_> {
    /// There is something for this thread, which the caller has just put where it will look.
    pub fn message_pending(&self) {
        // SAFETY: its thread is still there.
        unsafe { cosched_message_pending(self.0) }
    }
}

/// Calls `then` with the calling thread, which is known to the scheduler from here on if there is one.
pub fn with_thread<T>(then: impl FnOnce(&Thread<'_>) -> T) -> T {
    // SAFETY: takes nothing, and what it returns is valid until this thread ends.
    then(&Thread(unsafe { cosched_self() }, PhantomData))
}

/// Calls `look` again and again until it finds something, and says meanwhile that the calling thread waits.
pub fn wait<T>(mut look: impl FnMut() -> Option<T>) -> T {
    if let Some(found) = look() {
        return found;
    }
    let _waits = Waits::begin();
    loop {
        match look() {
            Some(found) => return found,
            None => std::hint::spin_loop(),
        }
    }
}

/// The calling thread waits for as long as there is this.
pub struct Waits(PhantomData<*mut ()>);

impl Waits {
    /// It has found nothing, and looks again and again from here on.
    pub fn begin() -> Waits {
        // SAFETY: takes nothing, and may be called at any time.
        unsafe { cosched_wait_begin() };
        Waits(PhantomData)
    }
}

impl Drop for Waits {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { cosched_wait_end() };
    }
}

/// Whether a scheduler heard the calling thread when it was last asked, a second ago at most.
pub fn is_heard() -> bool {
    // SAFETY: reads what this thread and its process know.
    unsafe { cosched_is_heard() != 0 }
}
