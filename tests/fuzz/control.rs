// SPDX-License-Identifier: GPL-2.0-only
//! What comes over the control socket, to the server that the scheduler has.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::OnceLock;

use scx_cosched::control::{ControlSocket, Question};
use serde_json::Value;
use tempfile::TempDir;

use super::common::{fake_scheduler, needs_root, serve};

/// Whatever a client says, it gets one line of JSON: an answer or an error. A request that is read is the same when it
/// has been written and is read again.
pub fn ask(bytes: &[u8]) {
    static SERVER: OnceLock<(TempDir, PathBuf, ControlSocket)> = OnceLock::new();
    let (_, path, _) = SERVER.get_or_init(|| {
        needs_root();
        serve(fake_scheduler())
    });
    let mut stream = UnixStream::connect(path).unwrap();
    // A server that has heard enough does not take the rest.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    // If there was more to say, the server's end is a reset.
    let _ = stream.read_to_end(&mut answer);
    let line = answer.strip_suffix(b"\n").unwrap_or_else(|| panic!("no line: {answer:?}"));
    let value: Value = serde_json::from_slice(line).unwrap_or_else(|e| panic!("{line:?}: {e}"));
    assert!(value.get("ok").is_some() || value["error"].is_string(), "{value}");

    let first = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    if let Ok(question) = serde_json::from_slice::<Question>(first) {
        let written = serde_json::to_vec(&question).unwrap();
        assert_eq!(serde_json::from_slice::<Question>(&written).unwrap(), question);
    }
}
