// SPDX-License-Identifier: GPL-2.0-only
//! Lengths of time on the command line.

use std::time::Duration;

use anyhow::{Result, bail};

/// A duration in seconds, for the command line.
pub fn parse_duration(text: &str) -> Result<Duration> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.0..=3600.0).contains(&seconds) => Ok(Duration::from_secs_f64(seconds)),
        _ => bail!("seconds from 0 to 3600 are wanted"),
    }
}

/// The length of a measurement in seconds. A shorter one would see some tasks run and others not.
pub fn parse_length(text: &str) -> Result<Duration> {
    match parse_duration(text)? {
        length if length >= Duration::from_millis(100) => Ok(length),
        _ => bail!("0.1 s is the least"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_seconds() {
        assert_eq!(parse_duration("0.25").unwrap(), Duration::from_millis(250));
        for bad in ["", "x", "-1", "NaN", "inf", "3601"] {
            assert!(parse_duration(bad).is_err(), "{bad}");
        }
        assert!(parse_length("0.05").is_err());
    }
}
