// SPDX-License-Identifier: GPL-2.0-only
//! What the side that starts a token finds out of its round trips.

use anyhow::{Context, Result};
use hdrhistogram::Histogram;

use crate::interval::Phase;
use crate::worker::RoundTrips;

/// The round trips of the interval.
pub struct Record {
    end_ns: u64,
    histogram_ns: Histogram<u64>,
    /// How long the one under way at the end had taken by then: it may be the longest of all.
    unfinished_ns: u64,
}

impl Record {
    pub fn new(end_ns: u64) -> Result<Record> {
        // Up to a minute, to one part in a thousand.
        let histogram_ns = Histogram::new_with_bounds(1, 60_000_000_000, 3).context("no histogram")?;
        Ok(Record { end_ns, histogram_ns, unfinished_ns: 0 })
    }

    pub fn round_trip(&mut self, started: u64, now: u64, phase: Phase) {
        if phase == Phase::Measured {
            self.histogram_ns.saturating_record(now - started);
        } else if now >= self.end_ns && started < self.end_ns {
            self.unfinished_ns = self.end_ns - started;
        }
    }

    /// Both, of two threads with the same interval.
    pub fn merge(mut self, other: Record) -> Record {
        // They have the same bounds, so there is nothing that would not fit.
        self.histogram_ns += other.histogram_ns;
        self.unfinished_ns = self.unfinished_ns.max(other.unfinished_ns);
        self
    }

    /// How many there are in each bucket, and how many ms they took together.
    fn by_log2_us(&self) -> (Vec<u64>, Vec<f64>) {
        let (mut counts, mut ms) = (Vec::new(), Vec::new());
        for step in self.histogram_ns.iter_recorded() {
            let (ns, count) = (step.value_iterated_to(), step.count_since_last_iteration());
            let bucket = ns.div_ceil(1000).max(1).next_power_of_two().ilog2() as usize;
            counts.resize(counts.len().max(bucket + 1), 0);
            ms.resize(counts.len(), 0.0);
            counts[bucket] += count;
            ms[bucket] += ns as f64 * count as f64 / 1e6;
        }
        (counts, ms)
    }

    /// If there was none at all, the one under way is all that is known.
    pub fn figures(mut self) -> RoundTrips {
        let count = self.histogram_ns.len();
        if count == 0 {
            self.histogram_ns.saturating_record(self.unfinished_ns);
        }
        let us = |ns: u64| ns as f64 / 1e3;
        let (by_log2_us, ms_by_log2_us) = self.by_log2_us();
        RoundTrips {
            count,
            by_log2_us,
            ms_by_log2_us,
            p50_us: us(self.histogram_ns.value_at_quantile(0.5)),
            p99_us: us(self.histogram_ns.value_at_quantile(0.99)),
            max_us: us(self.histogram_ns.max().max(self.unfinished_ns)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_what_ends_in_the_interval() {
        let mut record = Record::new(10_000).unwrap();
        record.round_trip(0, 1_000, Phase::WarmUp);
        record.round_trip(1_000, 3_000, Phase::Measured);
        record.round_trip(3_000, 4_000, Phase::Measured);
        record.round_trip(4_000, 12_000, Phase::Linger);
        record.round_trip(12_000, 13_000, Phase::Linger);
        let figures = record.figures();
        assert_eq!(figures.count, 2);
        assert_eq!(figures.p50_us, 1.0);
        assert_eq!(figures.by_log2_us, [1, 1], "of 1 and of 2 us");
        assert_eq!(figures.ms_by_log2_us, [0.001, 0.002]);
        assert_eq!(figures.max_us, 6.0, "the one under way at the end took 6 µs of the interval");
    }

    #[test]
    fn no_round_trip_at_all_is_as_long_as_the_interval() {
        let mut record = Record::new(10_000).unwrap();
        record.round_trip(0, 12_000, Phase::Linger);
        let figures = record.figures();
        assert_eq!(figures.count, 0);
        // The histogram is right to one part in a thousand.
        assert!((figures.p50_us - 10.0).abs() < 0.02 && (figures.max_us - 10.0).abs() < 0.02, "{figures:?}");
    }

    #[test]
    fn what_two_threads_found_is_one() {
        let thread = |round_trip: u64| {
            let mut record = Record::new(2_000).unwrap();
            record.round_trip(0, round_trip, Phase::Measured);
            record.round_trip(round_trip, 3_000, Phase::Linger);
            record
        };
        let figures = thread(1_800).merge(thread(500)).figures();
        assert_eq!(figures.count, 2);
        assert_eq!((figures.p50_us, figures.max_us), (0.5, 1.8));
        let figures = thread(500).merge(Record::new(2_000).unwrap()).figures();
        assert_eq!((figures.count, figures.max_us), (1, 1.5), "the one under way at the end is the longest");
    }
}
