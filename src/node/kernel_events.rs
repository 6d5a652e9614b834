// SPDX-License-Identifier: GPL-2.0-only
//! What the kernel's sched_ext core counts of the scheduler (`SCX_EV_*`, Linux 6.15 or newer): above all, for how long
//! it has bypassed it.

use std::collections::BTreeMap;
use std::fs;

use serde::{Deserialize, Serialize};

/// Where the kernel shows them, while a scheduler is loaded.
const EVENTS: &str = "/sys/kernel/sched_ext/root/events";
/// This event is a time, in ns. All others are numbers.
const BYPASS_DURATION: &str = "bypass_duration";

/// Counts by name, in lower case and without the kernel's prefix. Empty on kernels that do not count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KernelEvents(BTreeMap<String, u64>);

impl KernelEvents {
    /// Of the scheduler that is loaded now. None if the kernel does not say.
    pub fn read() -> Option<KernelEvents> {
        fs::read_to_string(EVENTS).ok().map(|text| KernelEvents::parse(&text))
    }

    /// From what the kernel shows: a line for each, `SCX_EV_NAME COUNT`.
    pub fn parse(text: &str) -> KernelEvents {
        let event = |line: &str| {
            let (name, count) = line.strip_prefix("SCX_EV_")?.split_once(' ')?;
            Some((name.to_lowercase(), count.trim().parse().ok()?))
        };
        KernelEvents(text.lines().filter_map(event).collect())
    }

    /// Adds `other` to this.
    pub fn add(&mut self, other: &KernelEvents) {
        for (name, count) in &other.0 {
            *self.0.entry(name.clone()).or_default() += count;
        }
    }

    /// All that are numbers, by name.
    pub fn counts(&self) -> impl Iterator<Item = (&str, u64)> {
        self.0.iter().filter(|(name, _)| *name != BYPASS_DURATION).map(|(name, count)| (name.as_str(), *count))
    }

    /// For how long the kernel has bypassed the scheduler, s. None if it does not say.
    pub fn bypass_seconds(&self) -> Option<f64> {
        self.0.get(BYPASS_DURATION).map(|ns| *ns as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHOWN: &str = "SCX_EV_SELECT_CPU_FALLBACK 2\nSCX_EV_BYPASS_ACTIVATE 1\nSCX_EV_BYPASS_DURATION 1500000000\n";

    #[test]
    fn a_time_is_told_from_numbers() {
        let events = KernelEvents::parse(SHOWN);
        assert_eq!(events.counts().collect::<Vec<_>>(), [("bypass_activate", 1), ("select_cpu_fallback", 2)]);
        assert_eq!(events.bypass_seconds(), Some(1.5));
        assert_eq!(KernelEvents::default().bypass_seconds(), None);
    }

    #[test]
    fn what_is_no_event_is_left_out() {
        assert_eq!(KernelEvents::parse("nr_rejected 3\nSCX_EV_X y\nSCX_EV_\n"), KernelEvents::default());
    }

    #[test]
    fn runs_add_up() {
        let mut events = KernelEvents::parse(SHOWN);
        events.add(&KernelEvents::parse("SCX_EV_BYPASS_DURATION 500000000\nSCX_EV_REFILL_SLICE_DFL 7\n"));
        assert_eq!(events.bypass_seconds(), Some(2.0));
        assert_eq!(events.counts().find(|(name, _)| *name == "refill_slice_dfl"), Some(("refill_slice_dfl", 7)));
    }
}
