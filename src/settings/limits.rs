// SPDX-License-Identifier: GPL-2.0-only
//! Texts that settings and flags take which are no numbers, and ranges that are in no row.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

use cosched_rules::range::Range;
use cosched_rules::rows::Scalar;

/// For how long to watch the scheduler, s.
pub const WATCH: Range<f64> = Range::new(0.1, 3600.0, "a number of seconds");

/// Between two looks of `top`, s.
pub const INTERVAL: Range<f64> = Range::new(0.1, 60.0, "a number of seconds");

/// Between two lines of statistics, s.
pub const STATS: Range<f64> = Range::new(0.01, 3600.0, "a number of seconds");

/// A UNIX socket's path is at most this long (sockaddr_un), with its NUL.
const SOCKET_PATH_MAX: usize = 108;

/// Reads the path of a socket: absolute, and short enough.
pub fn socket(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        return Err("it takes an absolute path".into());
    }
    if text.len() >= SOCKET_PATH_MAX {
        return Err(format!("the path of a socket has at most {} bytes", SOCKET_PATH_MAX - 1));
    }
    Ok(path)
}

/// Whether the path can be that of a socket.
pub fn check_socket(text: &str) -> Result<(), String> {
    socket(text).map(drop)
}

/// Where metrics are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsListen {
    /// Nowhere.
    Off,
    /// At this address.
    At(SocketAddr),
}

impl Scalar for MetricsListen {}

impl FromStr for MetricsListen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(MetricsListen::Off);
        }
        text.parse()
            .map(MetricsListen::At)
            .map_err(|_| "it takes ADDRESS:PORT, such as 127.0.0.1:29937, or 'none'".into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_are_none_are_refused() {
        for bad in ["NaN", "inf", "-inf", "3600.1", "0x10", "ten"] {
            assert!(STATS.parse(bad).is_err(), "{bad}");
        }
        assert_eq!(STATS.parse("0.5"), Ok(0.5));
    }

    #[test]
    fn an_address_needs_a_port() {
        assert_eq!("none".parse(), Ok(MetricsListen::Off));
        assert!("[::1]:29937".parse::<MetricsListen>().is_ok());
        for bad in ["127.0.0.1", "29937", ":29937", "localhost:29937", "127.0.0.1:99999", ""] {
            assert!(bad.parse::<MetricsListen>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_socket_path_is_absolute_and_short() {
        assert!(socket("/run/a.sock").is_ok());
        assert!(socket("a.sock").is_err());
        assert!(socket(&format!("/{}", "a".repeat(107))).is_err());
    }
}
