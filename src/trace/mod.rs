// SPDX-License-Identifier: GPL-2.0-only
//! Arrivals, decisions and switches as they happen, for the command `trace`.
//!
//! The BPF side writes events to a ring while a flag is set (`bpf/trace.bpf.h`). A process asks the loader for that
//! over the control socket ([`tap`]), reads the ring ([`reader`]), gives events their names ([`event`]), makes runs of
//! switches ([`runs`]), and writes lines ([`lines`]) or a file for Perfetto ([`perfetto`]).

pub mod event;
pub mod lines;
pub mod perfetto;
pub mod reader;
pub mod runs;
pub mod tap;

use std::io;

use event::Event;
use runs::Run;

/// What a trace becomes.
pub trait Sink {
    /// Something has happened.
    ///
    /// # Errors
    /// If it cannot be written.
    fn event(&mut self, event: &Event) -> io::Result<()>;

    /// A run is over.
    ///
    /// # Errors
    /// If it cannot be written.
    fn run(&mut self, _run: &Run) -> io::Result<()> {
        Ok(())
    }

    /// So many events are missing here.
    ///
    /// # Errors
    /// If it cannot be written.
    fn lost(&mut self, time_ns: u64, count: u64) -> io::Result<()>;

    /// Somebody looks.
    ///
    /// # Errors
    /// If it cannot be written.
    fn flush(&mut self) -> io::Result<()>;

    /// There is no more.
    ///
    /// # Errors
    /// If it cannot be written.
    fn end(&mut self) -> io::Result<()> {
        self.flush()
    }
}
