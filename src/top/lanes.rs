// SPDX-License-Identifier: GPL-2.0-only
//! Who ran on each CPU, from switches to a line of characters.

use std::collections::{BTreeMap, VecDeque};

use super::letters::Letters;
use crate::trace::event::Event;
use crate::trace::runs::{Run, Runs};

/// Nobody ran.
pub const IDLE: char = '.';
/// Not known: before the first switch, or switches are missing.
pub const UNKNOWN: char = ' ';

/// What is known of each CPU since not long ago.
#[derive(Debug, Default)]
pub struct Lanes {
    runs: Runs,
    past: BTreeMap<u32, Lane>,
}

/// A CPU.
#[derive(Clone, Debug, Default)]
struct Lane {
    /// In the order of time, without gaps other than those in which it was idle.
    runs: VecDeque<Run>,
    /// From when on all is known.
    since_ns: u64,
}

impl Lanes {
    /// Takes note of `event`.
    pub fn follow(&mut self, event: &mut Event) {
        let since_ns = event.time_ns;
        let lane = self.past.entry(event.cpu).or_insert_with(|| Lane { since_ns, ..Lane::default() });
        lane.runs.extend(self.runs.follow(event));
    }

    /// Switches are missing: nobody knows who ran, up to the next one.
    pub fn forget(&mut self) {
        self.runs.forget();
        self.past.clear();
    }

    /// What happened from `since_ns` until `until_ns`. What was before is dropped.
    pub fn window(&mut self, since_ns: u64, until_ns: u64) -> Window {
        for lane in self.past.values_mut() {
            while lane.runs.front().is_some_and(|run| run.until_ns <= since_ns) {
                lane.runs.pop_front();
            }
        }
        let mut lanes = self.past.clone();
        let current: BTreeMap<u32, Run> = self.runs.current(until_ns).map(|run| (run.cpu, run)).collect();
        for run in current.values() {
            lanes.entry(run.cpu).or_default().runs.push_back(run.clone());
        }
        Window { lanes, current, since_ns, until_ns }
    }
}

/// Who ran on each CPU in a length of time.
#[derive(Clone, Debug, Default)]
pub struct Window {
    lanes: BTreeMap<u32, Lane>,
    current: BTreeMap<u32, Run>,
    since_ns: u64,
    until_ns: u64,
}

/// What a column's time went to.
#[derive(Clone, Default)]
struct Column {
    known_ns: u64,
    /// By letter: for how long, and whether a part of it was boosted.
    jobs: BTreeMap<char, (u64, bool)>,
}

impl Window {
    /// Its length, s.
    pub fn seconds(&self) -> f64 {
        (self.until_ns - self.since_ns) as f64 / 1e9
    }

    /// The task that runs on `cpu` at the end, and whether because of a boost.
    pub fn current(&self, cpu: u32) -> Option<&Run> {
        self.current.get(&cpu)
    }

    /// A character for each column: the letter of the job that most of the column's time went to, a capital if it had
    /// a boost there; a dot if most of it was idle; a space if it is not known.
    pub fn strip(&self, cpu: u32, columns: usize, letters: &Letters) -> String {
        let Some(lane) = self.lanes.get(&cpu) else { return UNKNOWN.to_string().repeat(columns) };
        let mut tally = vec![Column::default(); columns];
        self.spread(lane.since_ns, self.until_ns, columns, |column, ns| tally[column].known_ns += ns);
        for run in &lane.runs {
            let letter = letters.of(&run.job);
            self.spread(run.since_ns, run.until_ns, columns, |column, ns| {
                let (total, boosted) = tally[column].jobs.entry(letter).or_default();
                *total += ns;
                *boosted |= run.boosted;
            });
        }
        tally.iter().map(Column::character).collect()
    }

    /// Calls `add` for each column that the time from `since_ns` to `until_ns` touches, with how long it does.
    fn spread(&self, since_ns: u64, until_ns: u64, columns: usize, mut add: impl FnMut(usize, u64)) {
        let length = u128::from(self.until_ns - self.since_ns);
        let start = |column: usize| self.since_ns + (length * column as u128 / columns as u128) as u64;
        let (since, until) = (since_ns.max(self.since_ns), until_ns.min(self.until_ns));
        if since >= until {
            return;
        }
        let first = (u128::from(since - self.since_ns) * columns as u128 / length) as usize;
        for column in first.saturating_sub(1)..columns {
            let (begins, ends) = (start(column).max(since), start(column + 1).min(until));
            if begins < ends {
                add(column, ends - begins);
            } else if start(column) >= until {
                break;
            }
        }
    }
}

impl Column {
    fn character(&self) -> char {
        let ran_ns: u64 = self.jobs.values().map(|(ns, _)| ns).sum();
        let idle_ns = self.known_ns.saturating_sub(ran_ns);
        match self.jobs.iter().max_by_key(|(_, (ns, _))| *ns) {
            Some((letter, (ns, boosted))) if *ns >= idle_ns => {
                if *boosted {
                    letter.to_ascii_uppercase()
                } else {
                    *letter
                }
            }
            _ if idle_ns > 0 => IDLE,
            _ => UNKNOWN,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::runs::tests::{BOOSTED, IN, OUT, event};

    fn lanes(events: &[Event]) -> Lanes {
        let mut lanes = Lanes::default();
        events.iter().for_each(|event| lanes.follow(&mut event.clone()));
        lanes
    }

    fn letters() -> Letters {
        let mut letters = Letters::default();
        letters.follow(["/a".into(), "/b".into()].iter());
        letters
    }

    fn of_b(event: Event) -> Event {
        Event { job: "/b".into(), ..event }
    }

    #[test]
    fn a_column_has_the_job_that_ran_longest_in_it() {
        let mut lanes = lanes(&[
            event(20, 0, 7, IN, 0),
            event(32, 0, 7, OUT, 12),
            of_b(event(32, 0, 8, BOOSTED, 0)),
            of_b(event(50, 0, 8, OUT, 18)),
            event(70, 0, 7, IN, 12),
        ]);
        let window = lanes.window(0, 100);
        assert_eq!(window.strip(0, 10, &letters()), "  aBB..aaa");
        assert_eq!(window.strip(0, 2, &letters()), "Ba");
        assert_eq!(window.strip(1, 3, &letters()), "   ", "nothing is known of a CPU without a switch");
        assert_eq!(window.current(0).map(|run| run.pid), Some(7));
        assert!(window.current(1).is_none());
    }

    #[test]
    fn a_window_drops_what_was_before_and_keeps_what_reaches_into_it() {
        let mut lanes = lanes(&[event(0, 0, 7, IN, 0), event(40, 0, 7, OUT, 40), event(60, 0, 7, IN, 40)]);
        assert_eq!(lanes.window(20, 80).strip(0, 6, &letters()), "aa..aa");
        assert_eq!(lanes.window(60, 100).strip(0, 4, &letters()), "aaaa");
        assert!(lanes.past[&0].runs.is_empty());
    }

    #[test]
    fn after_a_loss_nobody_is_known_to_run() {
        let mut lanes = lanes(&[event(0, 0, 7, IN, 0)]);
        lanes.forget();
        assert_eq!(lanes.window(0, 100).strip(0, 4, &letters()), "    ");
        lanes.follow(&mut event(50, 0, 7, OUT, 50));
        let window = lanes.window(0, 100);
        assert_eq!(window.strip(0, 4, &letters()), "  ..");
        assert!(window.current(0).is_none());
    }
}
