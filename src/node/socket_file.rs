// SPDX-License-Identifier: GPL-2.0-only
//! Sockets with a name in the file system: how one comes to be, and goes.

use std::fmt::Display;
use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail};
use nix::sys::stat::{Mode, umask};

/// Held while the process's umask is another.
static UMASK: Mutex<()> = Mutex::new(());

/// The name of a socket. It is removed when this is dropped.
pub struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Nothing can be done if it is gone already.
        let _ = fs::remove_file(&self.0);
    }
}

/// Has `bind` make the socket `path`, which `flag` names, with this mode. One that nobody listens at any more, which a
/// killed scheduler has left behind, is replaced: whether that is so, the caller has seen. Call it before there are
/// threads: it sets the process's umask for a moment.
///
/// # Errors
/// If the path cannot be used.
pub fn bind<T, E: Display>(
    path: &Path,
    flag: &str,
    mode: u32,
    bind: impl FnOnce() -> Result<T, E>,
) -> Result<(SocketFile, T)> {
    match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.file_type().is_socket() => {
            fs::remove_file(path).with_context(|| format!("cannot replace {}", path.display()))?;
        }
        Ok(_) => bail!("{} exists and is not a socket (choose another {flag})", path.display()),
        Err(_) => {}
    }
    // With a mode set later there would be a moment in which everybody could connect.
    let _alone = UMASK.lock().unwrap_or_else(PoisonError::into_inner);
    let old = umask(Mode::from_bits_truncate(!mode & 0o777));
    let bound = bind();
    umask(old);
    let bound = bound.map_err(|error| cannot_create(path, flag, &error))?;
    Ok((SocketFile(path.into()), bound))
}

/// The error that there is no socket at `path`, which `flag` names.
pub fn cannot_create(path: &Path, flag: &str, error: &impl Display) -> anyhow::Error {
    anyhow!("cannot create {}: {error} (choose another {flag})", path.display())
}
