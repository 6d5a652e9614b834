// SPDX-License-Identifier: GPL-2.0-only
//! Which numbers a setting may have.

use std::fmt::Display;
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
}
