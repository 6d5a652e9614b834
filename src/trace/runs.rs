// SPDX-License-Identifier: GPL-2.0-only
//! From switches to runs: who ran where, from when to when.

use std::collections::BTreeMap;

use super::event::{Event, What};

/// A task has run on a CPU.
#[derive(Clone, Debug, PartialEq)]
pub struct Run {
    /// The CPU.
    pub cpu: u32,
    /// The task.
    pub pid: u32,
    /// Its name.
    pub comm: String,
    /// The job that it is a member of.
    pub job: String,
    /// From when, ns (CLOCK_REALTIME).
    pub since_ns: u64,
    /// Until when.
    pub until_ns: u64,
    /// Because of a boost.
    pub boosted: bool,
    /// It had been parked.
    pub parked: bool,
    /// The CPU time that it used, ns, if that is known.
    pub ran_ns: Option<u64>,
    /// The CPU time that it had used before, ns.
    cpu_ns: u64,
}

/// Those that run.
#[derive(Debug, Default)]
pub struct Runs(BTreeMap<u32, Run>);

impl Runs {
    /// Takes note of `event`, and completes it if it ends a run. Returns the run that it ends.
    pub fn follow(&mut self, event: &mut Event) -> Option<Run> {
        match &mut event.what {
            What::SwitchIn { boosted, parked } => {
                let run = Run {
                    cpu: event.cpu,
                    pid: event.pid,
                    comm: event.comm.clone(),
                    job: event.job.clone(),
                    since_ns: event.time_ns,
                    until_ns: event.time_ns,
                    boosted: *boosted,
                    parked: *parked,
                    ran_ns: None,
                    cpu_ns: event.cpu_ns,
                };
                // Somebody who runs already goes on with a boost, or without one.
                self.0.insert(event.cpu, run).map(|run| run.ended(event))
            }
            What::SwitchOut { .. } => {
                let run = self.0.remove(&event.cpu).filter(|run| run.pid == event.pid)?.ended(event);
                if let What::SwitchOut { ran_ns, .. } = &mut event.what {
                    *ran_ns = run.ran_ns;
                }
                Some(run)
            }
            _ => None,
        }
    }

    /// Events are missing: nobody knows any more who runs.
    pub fn forget(&mut self) {
        self.0.clear();
    }

    /// The runs that have not ended by `time_ns`, up to then.
    pub fn current(&self, time_ns: u64) -> impl Iterator<Item = Run> {
        self.0.values().map(move |run| Run { until_ns: time_ns.max(run.since_ns), ..run.clone() })
    }

    /// The same at the end of the trace.
    pub fn end(&mut self, time_ns: u64) -> impl Iterator<Item = Run> + use<> {
        let runs: Vec<Run> = self.current(time_ns).collect();
        self.forget();
        runs.into_iter()
    }
}

impl Run {
    fn ended(self, event: &Event) -> Run {
        let ran_ns = (self.pid == event.pid).then(|| event.cpu_ns.saturating_sub(self.cpu_ns));
        Run { until_ns: event.time_ns.max(self.since_ns), ran_ns, ..self }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An event of task `pid` on `cpu`.
    pub(crate) fn event(time_ns: u64, cpu: u32, pid: u32, what: What, cpu_ns: u64) -> Event {
        Event { time_ns, cpu, pid, comm: format!("task{pid}"), job: "/a".into(), what, cpu_ns }
    }

    pub(crate) const IN: What = What::SwitchIn { boosted: false, parked: false };
    pub(crate) const BOOSTED: What = What::SwitchIn { boosted: true, parked: false };
    pub(crate) const OUT: What = What::SwitchOut { boosted: false, parked: false, runnable: true, ran_ns: None };

    /// CPU, task, from, until, CPU time and boost of a run.
    fn brief(run: &Run) -> (u32, u32, u64, u64, Option<u64>, bool) {
        (run.cpu, run.pid, run.since_ns, run.until_ns, run.ran_ns, run.boosted)
    }

    #[test]
    fn a_run_is_from_switch_to_switch_and_each_cpu_has_its_own() {
        let mut runs = Runs::default();
        assert_eq!(runs.follow(&mut event(10, 0, 7, IN, 100)), None);
        assert_eq!(runs.follow(&mut event(11, 1, 8, BOOSTED, 5)), None);
        let mut out = event(30, 0, 7, OUT, 118);
        assert_eq!(brief(&runs.follow(&mut out).unwrap()), (0, 7, 10, 30, Some(18), false));
        assert!(matches!(out.what, What::SwitchOut { ran_ns: Some(18), .. }), "{out:?}");
        let rest: Vec<Run> = runs.end(40).collect();
        assert_eq!(rest.iter().map(brief).collect::<Vec<_>>(), [(1, 8, 11, 40, None, true)]);
    }

    #[test]
    fn who_goes_on_with_a_boost_begins_another_run() {
        let mut runs = Runs::default();
        runs.follow(&mut event(10, 0, 7, IN, 0));
        let first = runs.follow(&mut event(20, 0, 7, BOOSTED, 9)).unwrap();
        let second = runs.follow(&mut event(35, 0, 7, OUT, 20)).unwrap();
        assert_eq!(brief(&first), (0, 7, 10, 20, Some(9), false));
        assert_eq!(brief(&second), (0, 7, 20, 35, Some(11), true));
    }

    #[test]
    fn a_switch_whose_beginning_nobody_saw_is_no_run() {
        let mut runs = Runs::default();
        let mut out = event(10, 0, 7, OUT, 5);
        assert_eq!(runs.follow(&mut out), None);
        assert!(matches!(out.what, What::SwitchOut { ran_ns: None, .. }));
        // Nor is one of which the end was lost.
        runs.follow(&mut event(20, 0, 7, IN, 5));
        runs.forget();
        assert_eq!(runs.follow(&mut event(30, 0, 7, OUT, 9)), None);
        assert_eq!(runs.end(50).count(), 0);
    }
}
