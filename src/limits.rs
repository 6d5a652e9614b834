// SPDX-License-Identifier: GPL-2.0-only
//! Which values settings may have; the ranges themselves are in the settings' rows.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;

/// The values from `min` to `max`, both included.
#[derive(Clone, Copy, Debug)]
pub struct Range<T> {
    min: T,
    max: T,
    what: &'static str,
}

impl<T> Range<T> {
    /// The values from `min` to `max`; `what` they are, in words: "a number of ms".
    pub const fn new(min: T, max: T, what: &'static str) -> Self {
        Range { min, max, what }
    }
}

impl<T: PartialOrd + Display + Copy + FromStr> Range<T> {
    /// `value`, if it is within the range (NaN never is); else a message that says what would be.
    pub fn check(&self, value: T) -> Result<T, String> {
        if value >= self.min && value <= self.max {
            Ok(value)
        } else {
            Err(format!("{value} is out of range: {self_text}", self_text = self.describe()))
        }
    }

    /// Reads a value as the command line gives it.
    pub fn parse(&self, text: &str) -> Result<T, String> {
        let value = text.parse().map_err(|_| self.describe())?;
        self.check(value)
    }

    /// What a value must be.
    pub fn describe(&self) -> String {
        format!("it takes {} from {} to {}", self.what, self.min, self.max)
    }

    /// Both ends.
    pub fn bounds(&self) -> String {
        format!("{} to {}", self.min, self.max)
    }
}

/// Between two lines of statistics, s.
pub const STATS: Range<f64> = Range { min: 0.01, max: 3600.0, what: "a number of seconds" };

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
    fn both_ends_are_allowed_and_nothing_beyond() {
        let range = Range::new(0, 4096, "a whole number");
        for good in ["0", "4096"] {
            assert!(range.parse(good).is_ok(), "{good}");
        }
        for bad in ["4097", "-1", "1e3", "", "20ms", "4294967297"] {
            assert!(range.parse(bad).is_err(), "{bad}");
        }
    }

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
