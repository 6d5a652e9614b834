// SPDX-License-Identifier: GPL-2.0-only
//! What a trace shows: events by name and in real time, and which of them somebody wants.

use std::str::FromStr;

use anyhow::{Context, Result, anyhow};
use nix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use cosched_rules::intf::{
    cosched_event, cosched_event_flag_COSCHED_EVENT_BOOSTED as BOOSTED,
    cosched_event_flag_COSCHED_EVENT_PARKED as PARKED, cosched_event_flag_COSCHED_EVENT_RUNNABLE as RUNNABLE,
    cosched_event_flag_COSCHED_EVENT_RUNNING as RUNNING, cosched_event_flag_COSCHED_EVENT_WON as WON,
    cosched_event_kind_COSCHED_EVENT_ARRIVAL as ARRIVAL, cosched_event_kind_COSCHED_EVENT_CLOCK as CLOCK,
    cosched_event_kind_COSCHED_EVENT_DECISION as DECISION, cosched_event_kind_COSCHED_EVENT_SWITCH_IN as SWITCH_IN,
    cosched_event_kind_COSCHED_EVENT_SWITCH_OUT as SWITCH_OUT, cosched_event_kind_COSCHED_EVENT_TURN as TURN,
    cosched_verdict_COSCHED_VERDICT_ALIKE as ALIKE, cosched_verdict_COSCHED_VERDICT_FIRST as FIRST,
    cosched_verdict_COSCHED_VERDICT_UNLIKE as UNLIKE,
};
use cosched_rules::native;

/// What happened to a task, or to a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Event {
    /// When, ns (CLOCK_REALTIME).
    pub time_ns: u64,
    /// The CPU that the task was on, whether it ran or not.
    pub cpu: u32,
    /// The task; 0: it happened to a job.
    #[serde(skip_serializing_if = "is_none")]
    pub pid: u32,
    /// Its name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub comm: String,
    /// The job that it is a member of.
    pub job: String,
    /// What it was.
    #[serde(flatten)]
    pub what: What,
    /// Of a switch: the CPU time that the task had used by then, ns.
    #[serde(skip)]
    pub cpu_ns: u64,
}

fn is_none(pid: &u32) -> bool {
    *pid == 0
}

/// What kind of event it was, and what is to be said of it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum What {
    /// A message arrived for the task.
    Arrival {
        /// At what kind of endpoint.
        endpoint: &'static str,
        /// It found the task running.
        running: bool,
    },
    /// The gate was asked whether the task may have a boost.
    Decision {
        /// The answer.
        granted: bool,
        /// Why.
        reason: &'static str,
        /// How long the boost is to last, ns of CPU time; 0 if it was denied.
        granted_ns: u64,
    },
    /// The task runs from here on. If it runs already, it goes on like this.
    SwitchIn {
        /// Because of a boost.
        boosted: bool,
        /// It was parked until now.
        parked: bool,
    },
    /// The task has left its CPU.
    SwitchOut {
        /// It ran because of a boost.
        boosted: bool,
        /// It is to be parked, or to yield: it polled in vain.
        parked: bool,
        /// It does not sleep.
        runnable: bool,
        /// The CPU time that it has used since it was switched in; absent if that was before the trace.
        ran_ns: Option<u64>,
    },
    /// Beat: the job has won a turn, or has not though it has on another CPU.
    Turn {
        /// The number of the turn.
        turn: u64,
        /// It has won it here.
        won: bool,
        /// The CPU that drew for the job before came to the same; absent if there was none.
        alike: Option<bool>,
    },
    /// Beat: the clock of turns goes forward, since that of a peer of the job is later.
    Clock {
        /// By so much.
        by_ns: u64,
        /// It is ahead of TAI by so much then.
        ahead_ns: u64,
    },
}

impl Event {
    /// What the BPF side wrote, with the name of its job. `offset_ns` is between its clock and the real time.
    ///
    /// # Errors
    /// If it is none that this program knows.
    pub fn of(raw: &cosched_event, job: String, offset_ns: u64) -> Result<Event> {
        let unknown = || anyhow!("the running scheduler is of another version: restart it");
        let flag = |flag| raw.flags & flag != 0;
        let detail = raw.detail as usize;
        let what = match raw.kind {
            ARRIVAL => {
                What::Arrival { endpoint: native::endpoints().get(detail).ok_or_else(unknown)?, running: flag(RUNNING) }
            }
            DECISION => {
                let reason = native::reasons().get(detail).ok_or_else(unknown)?;
                What::Decision { granted: reason.grants, reason: reason.name, granted_ns: raw.ns }
            }
            SWITCH_IN => What::SwitchIn { boosted: flag(BOOSTED), parked: flag(PARKED) },
            SWITCH_OUT => {
                What::SwitchOut { boosted: flag(BOOSTED), parked: flag(PARKED), runnable: flag(RUNNABLE), ran_ns: None }
            }
            TURN => {
                let alike = match raw.detail {
                    FIRST => None,
                    ALIKE => Some(true),
                    UNLIKE => Some(false),
                    _ => return Err(unknown()),
                };
                What::Turn { turn: raw.ns, won: flag(WON), alike }
            }
            CLOCK => What::Clock { by_ns: raw.detail.into(), ahead_ns: raw.ns },
            _ => return Err(unknown()),
        };
        let comm: Vec<u8> = raw.comm.iter().map(|c| *c as u8).take_while(|c| *c != 0).collect();
        Ok(Event {
            time_ns: raw.time_ns.wrapping_add(offset_ns),
            cpu: raw.cpu,
            pid: raw.pid,
            comm: String::from_utf8_lossy(&comm).into_owned(),
            job,
            what,
            cpu_ns: raw.ns,
        })
    }
}

fn read(clock: ClockId) -> Result<u64> {
    let time = clock_gettime(clock).context("cannot read the clock")?;
    Ok(time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64)
}

/// CLOCK_MONOTONIC, by which the BPF side goes, ns.
///
/// # Errors
/// If there is no such clock.
pub fn monotonic_ns() -> Result<u64> {
    read(ClockId::CLOCK_MONOTONIC)
}

/// What to add to CLOCK_MONOTONIC to get the real time, ns.
///
/// # Errors
/// If there is no such clock.
pub fn realtime_offset_ns() -> Result<u64> {
    // The closer the two readings are, the better: nobody came in between.
    let mut best = (u64::MAX, 0);
    for _ in 0..10 {
        let before = monotonic_ns()?;
        let realtime = read(ClockId::CLOCK_REALTIME)?;
        let apart = monotonic_ns()? - before;
        best = best.min((apart, realtime.wrapping_sub(before + apart / 2)));
    }
    Ok(best.1)
}

/// Which events are wanted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    /// Arrivals of messages.
    pub arrivals: bool,
    /// Decisions of the gate.
    pub decisions: bool,
    /// Switches to a task and away from it.
    pub switches: bool,
    /// Turns by beat, and their clock.
    pub turns: bool,
}

impl Wanted {
    /// As the BPF side has it: a set of 1 << enum cosched_event_kind.
    pub fn mask(self) -> u32 {
        let kinds = [(self.arrivals, ARRIVAL), (self.decisions, DECISION)];
        let switches = [(self.switches, SWITCH_IN), (self.switches, SWITCH_OUT)];
        let turns = [(self.turns, TURN), (self.turns, CLOCK)];
        kinds.iter().chain(&switches).chain(&turns).filter(|(wanted, _)| *wanted).map(|(_, kind)| 1 << kind).sum()
    }
}

impl FromStr for Wanted {
    type Err = String;

    fn from_str(text: &str) -> Result<Wanted, String> {
        let mut wanted = Wanted::default();
        for name in text.split(',') {
            match name {
                "arrivals" => wanted.arrivals = true,
                "decisions" => wanted.decisions = true,
                "switches" => wanted.switches = true,
                "turns" => wanted.turns = true,
                _ => {
                    return Err("it takes any of arrivals, decisions, switches and turns, with commas between".into());
                }
            }
        }
        Ok(wanted)
    }
}

/// The names of the jobs that are wanted: with a `*` for any part of a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobPattern(String);

impl FromStr for JobPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<JobPattern, String> {
        match text.is_empty() || text.contains(char::is_control) {
            true => Err("it takes a job's name as 'status' shows it, with a '*' for any part of it".into()),
            false => Ok(JobPattern(text.into())),
        }
    }
}

impl JobPattern {
    /// Whether a job of this name is wanted.
    pub fn matches(&self, name: &str) -> bool {
        let Some((start, rest)) = self.0.split_once('*') else { return self.0 == name };
        let Some(mut name) = name.strip_prefix(start) else { return false };
        let (middle, end) = rest.rsplit_once('*').unwrap_or(("", rest));
        for part in middle.split('*') {
            let Some((_, after)) = name.split_once(part) else { return false };
            name = after;
        }
        name.ends_with(end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The event of a task on CPU 1, as the BPF side writes it.
    fn raw(kind: u32, detail: u32, flags: u32, ns: u64) -> cosched_event {
        let mut comm = [0; 16];
        comm.iter_mut().zip(b"token").for_each(|(to, from)| *to = *from as _);
        cosched_event { time_ns: 500, job: 0, ns, pid: 77, cpu: 1, kind, detail, flags, reserved: 0, comm }
    }

    fn what(raw: &cosched_event) -> Result<What> {
        Ok(Event::of(raw, "/a".into(), 0)?.what)
    }

    #[test]
    fn what_the_bpf_side_writes_has_names() {
        let event = Event::of(&raw(ARRIVAL, 2, RUNNING, 0), "/a".into(), 1_000).unwrap();
        let json = serde_json::to_value(&event).unwrap();
        let wanted = serde_json::json!({ "time_ns": 1500, "cpu": 1, "pid": 77, "comm": "token", "job": "/a",
            "event": "arrival", "endpoint": "unix", "running": true });
        assert_eq!(json, wanted);

        for (number, reason) in native::reasons().iter().enumerate() {
            let wanted = What::Decision { granted: reason.grants, reason: reason.name, granted_ns: 5 };
            assert_eq!(what(&raw(DECISION, number as u32, 0, 5)).unwrap(), wanted);
        }
        let run = What::SwitchIn { boosted: true, parked: false };
        assert_eq!(what(&raw(SWITCH_IN, 0, BOOSTED, 5)).unwrap(), run);
        let stop = What::SwitchOut { boosted: false, parked: true, runnable: true, ran_ns: None };
        assert_eq!(what(&raw(SWITCH_OUT, 0, PARKED | RUNNABLE, 5)).unwrap(), stop);
        for (verdict, alike) in [(FIRST, None), (ALIKE, Some(true)), (UNLIKE, Some(false))] {
            assert_eq!(what(&raw(TURN, verdict, WON, 5)).unwrap(), What::Turn { turn: 5, won: true, alike });
        }
        assert_eq!(what(&raw(CLOCK, 3, 0, 5)).unwrap(), What::Clock { by_ns: 3, ahead_ns: 5 });
    }

    #[test]
    fn what_happens_to_a_job_is_of_no_task() {
        let raw = cosched_event { pid: 0, comm: [0; 16], ..raw(TURN, UNLIKE, 0, 7) };
        let json = serde_json::to_value(Event::of(&raw, "/a".into(), 0).unwrap()).unwrap();
        let wanted = serde_json::json!({ "time_ns": 500, "cpu": 1, "job": "/a", "event": "turn", "turn": 7,
            "won": false, "alike": false });
        assert_eq!(json, wanted);
    }

    #[test]
    fn what_nobody_knows_is_another_version() {
        for (kind, detail) in
            [(ARRIVAL, native::endpoints().len() as u32), (DECISION, native::reasons().len() as u32), (TURN, 3), (9, 0)]
        {
            let error = what(&raw(kind, detail, 0, 0)).unwrap_err().to_string();
            assert!(error.contains("of another version"), "{error}");
        }
    }

    #[test]
    fn a_name_that_fills_its_place_has_no_end_mark() {
        let mut raw = raw(SWITCH_IN, 0, 0, 0);
        raw.comm = [b'x' as _; 16];
        assert_eq!(Event::of(&raw, "/".into(), 0).unwrap().comm, "x".repeat(16));
    }

    #[test]
    fn the_real_time_is_that_of_everybody() {
        let now = clock_gettime(ClockId::CLOCK_MONOTONIC).unwrap().tv_sec() as u64;
        let unix = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
        let seconds = now + realtime_offset_ns().unwrap() / 1_000_000_000;
        assert!(seconds.abs_diff(unix) <= 2, "{seconds} {unix}");
    }

    #[test]
    fn any_events_can_be_wanted() {
        let mask = |text: &str| text.parse::<Wanted>().map(Wanted::mask);
        assert_eq!(mask("arrivals"), Ok(1 << ARRIVAL));
        assert_eq!(mask("switches,decisions"), Ok(1 << DECISION | 1 << SWITCH_IN | 1 << SWITCH_OUT));
        assert_eq!(mask("arrivals,decisions,switches"), Ok(0b1111));
        assert_eq!(mask("turns"), Ok(1 << TURN | 1 << CLOCK));
        for bad in ["", "Arrivals", "arrivals,", "arrivals decisions", "all"] {
            assert!(mask(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_star_stands_for_any_part_of_a_name() {
        for (pattern, good, bad) in [
            ("/a", &["/a"][..], &["/", "/a/", "/ab"][..]),
            ("*", &["", "/", "/a"], &[]),
            ("/a*", &["/a", "/a/b"], &["/", "/b/a"]),
            ("*/b", &["/b", "/a/b"], &["/b/", "b"]),
            ("/a*c", &["/ac", "/a/b/c"], &["/a", "/a/b", "a/c"]),
            ("/*_7*/x*", &["/job_7/x", "/job_77/x_1", "/_7/_7/x"], &["/job_7", "/x_7", "/job_/7x"]),
            ("aba*aba", &["abaaba", "abacaba"], &["aba", "ababa"]),
        ] {
            let pattern: JobPattern = pattern.parse().unwrap();
            good.iter().for_each(|name| assert!(pattern.matches(name), "{pattern:?} {name}"));
            bad.iter().for_each(|name| assert!(!pattern.matches(name), "{pattern:?} {name}"));
        }
        assert!("".parse::<JobPattern>().is_err() && "/a\nb".parse::<JobPattern>().is_err());
    }
}
