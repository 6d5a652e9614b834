// SPDX-License-Identifier: GPL-2.0-only
//! The cluster's key, and the file that it comes from.

use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::unistd::geteuid;

use cosched_rules::intf;

/// A key file is a line. Anything larger is some other file, named by mistake.
const KEY_FILE_MAX: u64 = 4096;

/// Whether a text can be the path of a key file.
///
/// # Errors
/// If there is none.
pub fn check_path(text: &str) -> std::result::Result<(), String> {
    match text.is_empty() {
        true => Err("it takes the path of a file with 32 hexadecimal digits".into()),
        false => Ok(()),
    }
}

/// Of a cluster without a key, as the C side takes it.
pub const NO_KEY: intf::cosched_wire_key = intf::cosched_wire_key { words: [0; 2], is_set: 0, reserved: 0 };

/// The cluster's key, 128 bits.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key([u8; 16]);

/// It must not reach a log.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// A key of these bytes.
    pub fn new(bytes: [u8; 16]) -> Key {
        Key(bytes)
    }

    /// Reads a key file: 32 hexadecimal digits, and a line's end. Nobody but its owner may read it.
    ///
    /// # Errors
    /// What is wrong with the file, without a word of its content.
    pub fn read(path: &Path) -> std::result::Result<Key, String> {
        let wrong = |what: &dyn fmt::Display| {
            format!(
                "{}: {what} (--cluster-key takes a file that was made with: umask 077; openssl rand -hex 16 >FILE)",
                path.display()
            )
        };
        // What is checked is what is read, whatever the path names meanwhile. A pipe would have whoever opens it wait.
        let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        let file = opened.map_err(|e| wrong(&e))?;
        let metadata = file.metadata().map_err(|e| wrong(&e))?;
        if !metadata.is_file() || metadata.len() > KEY_FILE_MAX {
            return Err(wrong(&"not a file with 32 hexadecimal digits"));
        }
        if metadata.permissions().mode() & 0o077 != 0 {
            return Err(format!("{}: others may read it (chmod 600 {0})", path.display()));
        }
        let own = geteuid().as_raw();
        if ![0, own].contains(&metadata.uid()) {
            return Err(format!(
                "{}: it is user {}'s, who may change it (chown {own} {0})",
                path.display(),
                metadata.uid()
            ));
        }
        let text = io::read_to_string(file.take(KEY_FILE_MAX)).map_err(|e| wrong(&e))?;
        Key::parse(text.trim_end()).ok_or_else(|| wrong(&"not a file with 32 hexadecimal digits"))
    }

    fn parse(text: &str) -> Option<Key> {
        let all = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u128::from_str_radix(text, 16).ok().filter(|_| all)?;
        Some(Key(number.to_be_bytes()))
    }

    /// As the C side takes it.
    pub fn to_bpf(self) -> intf::cosched_wire_key {
        let [low, high] = [0, 8].map(|at| u64::from_le_bytes(self.0[at..at + 8].try_into().expect("8 bytes")));
        intf::cosched_wire_key { words: [low, high], is_set: 1, reserved: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_read_from_a_file_that_nobody_else_reads() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let write = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Key::read(&path)
        };
        let good = "000102030405060708090a0b0c0d0e0f";
        let bpf = write(&format!("{good}\n"), 0o600).unwrap().to_bpf();
        assert_eq!(bpf.words, [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908]);
        assert!(write(good, 0o640).unwrap_err().contains("chmod 600"));
        for bad in ["", "00", &good[1..], &format!("{good}0"), &format!("+{}", &good[1..]), "g"] {
            let error = write(bad, 0o600).unwrap_err();
            assert!(error.contains("32 hexadecimal digits"), "{error}");
        }
        assert!(Key::read(&dir.path().join("none")).unwrap_err().contains("openssl rand"));
        assert!(!format!("{:?}", Key([7; 16])).contains('7'));
    }
}
