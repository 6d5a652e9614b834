// SPDX-License-Identifier: GPL-2.0-only
//! A trace as lines: for people, and as JSON.

use std::io::{self, Write};

use serde_json::json;

use super::Sink;
use super::event::{Event, What};

/// A line for each event, for people.
pub struct Text<W>(pub W);

/// A line of JSON for each event.
pub struct Json<W>(pub W);

impl<W: Write> Sink for Text<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        let task = match event.pid {
            0 => String::new(),
            pid => format!("{} {pid}", printable(&event.comm)),
        };
        let (time, job) = (time_of_day(event.time_ns), printable(&event.job));
        writeln!(self.0, "{time}  cpu {:<3} {task:<24} {:<44} {job}", event.cpu, words(&event.what))
    }

    fn lost(&mut self, time_ns: u64, count: u64) -> io::Result<()> {
        writeln!(self.0, "{}  {}", time_of_day(time_ns), lost_words(count))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl<W: Write> Sink for Json<W> {
    fn event(&mut self, event: &Event) -> io::Result<()> {
        serde_json::to_writer(&mut self.0, event)?;
        writeln!(self.0)
    }

    fn lost(&mut self, time_ns: u64, count: u64) -> io::Result<()> {
        writeln!(self.0, "{}", json!({ "time_ns": time_ns, "event": "lost", "count": count }))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// UTC, to a microsecond.
fn time_of_day(time_ns: u64) -> String {
    let seconds = time_ns / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:06}", seconds % 60, time_ns / 1000 % 1_000_000)
}

/// How a gap in a trace is announced.
pub fn lost_words(count: u64) -> String {
    format!("{count} events are missing here: they came faster than they were read")
}

/// What happened, in words.
fn words(what: &What) -> String {
    let ms = |ns: u64| format!("{:.3} ms", ns as f64 / 1e6);
    match *what {
        What::Arrival { endpoint, running } => {
            format!("arrival   {endpoint}, the receiver {}", if running { "runs" } else { "does not run" })
        }
        What::Decision { granted: true, reason, granted_ns } => format!("granted   {reason}, for {}", ms(granted_ns)),
        What::Decision { granted: false, reason, .. } => format!("denied    {reason}"),
        What::SwitchIn { boosted, parked } => {
            let order = if boosted { "boosted" } else { "in the fair order" };
            format!("in        {order}{}", if parked { ", was parked" } else { "" })
        }
        What::SwitchOut { boosted, parked, runnable, ran_ns } => {
            let then = match (runnable, parked) {
                (false, _) => "sleeps",
                (true, false) => "waits for its turn",
                (true, true) => "polls in vain",
            };
            let ran = ran_ns.map_or(String::new(), |ns| format!(" after {}", ms(ns)));
            format!("out       {then}{ran}{}", if boosted { ", boosted" } else { "" })
        }
        What::Turn { turn, won, alike } => {
            let peers = match alike {
                None => "",
                Some(true) => ", as on another CPU",
                Some(false) => ", unlike on another CPU",
            };
            format!("turn      {turn} {}{peers}", if won { "won" } else { "not won" })
        }
        What::Clock { by_ns, ahead_ns } => format!("clock     forward by {}, {} ahead of TAI", ms(by_ns), ms(ahead_ns)),
    }
}

/// Whoever may make a cgroup chooses its name, and must not thereby control the terminal. So may tasks theirs.
pub fn printable(name: &str) -> String {
    let escape = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    name.chars().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::runs::tests::{BOOSTED, event};
    use super::*;

    const WHATS: [What; 6] = [
        What::Arrival { endpoint: "tcp", running: false },
        What::Decision { granted: true, reason: "lags", granted_ns: 20_000_000 },
        BOOSTED,
        What::SwitchOut { boosted: true, parked: false, runnable: false, ran_ns: Some(1_234_567) },
        What::Turn { turn: 9, won: true, alike: Some(false) },
        What::Clock { by_ns: 1_000_000, ahead_ns: 7_000_000 },
    ];

    /// A trace of one task, as a sink writes it.
    fn written(write: impl Fn(&mut Vec<u8>)) -> String {
        let mut text = Vec::new();
        write(&mut text);
        String::from_utf8(text).unwrap()
    }

    #[test]
    fn people_get_a_line_for_each_event() {
        let text = written(|out| {
            let mut text = Text(out);
            let times = [45_296_123_456_999, 86_400_000_000_000, 0, 1_000, 1_000, 2_000];
            let pids = [77, 77, 77, 77, 0, 0];
            let events = WHATS.iter().zip(times).zip(pids).map(|((what, time), pid)| event(time, 1, pid, *what, 0));
            events.for_each(|event| text.event(&event).unwrap());
            text.lost(2_000, 12).unwrap();
        });
        let wanted = "\
12:34:56.123456  cpu 1   task77 77                arrival   tcp, the receiver does not run     /a
00:00:00.000000  cpu 1   task77 77                granted   lags, for 20.000 ms                /a
00:00:00.000000  cpu 1   task77 77                in        boosted                            /a
00:00:00.000001  cpu 1   task77 77                out       sleeps after 1.235 ms, boosted     /a
00:00:00.000001  cpu 1   turn 9 won, unlike on another CPU /a
00:00:00.000002  cpu 1   clock forward by 1.000 ms, 7.000 ms ahead of TAI /a
00:00:00.000002  12 events are missing here: they came faster than they were read
";
        let squeezed = |text: &str| text.lines().map(cosched_rules::report::one_line).collect::<Vec<_>>();
        assert_eq!(squeezed(&text), squeezed(wanted));
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let mut nasty = event(0, 0, 7, BOOSTED, 0);
        (nasty.comm, nasty.job) = ("a\x1b[2J".into(), "/b\nc".into());
        let text = written(|out| Text(out).event(&nasty).unwrap());
        assert!(!text.contains('\x1b') && text.lines().count() == 1, "{text:?}");
        let json = written(|out| Json(out).event(&nasty).unwrap());
        assert!(!json.contains('\x1b') && json.lines().count() == 1, "{json:?}");
    }

    #[test]
    fn json_is_an_object_for_each_line() {
        let text = written(|out| {
            let mut json = Json(out);
            WHATS.iter().for_each(|what| json.event(&event(7, 1, 77, *what, 0)).unwrap());
            json.lost(8, 12).unwrap();
        });
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let kinds: Vec<&str> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
        assert_eq!(kinds, ["arrival", "decision", "switch_in", "switch_out", "turn", "clock", "lost"]);
        assert_eq!((&lines[1]["reason"], &lines[1]["granted_ns"]), (&"lags".into(), &20_000_000.into()));
        assert_eq!((&lines[3]["ran_ns"], &lines[6]["count"]), (&1_234_567.into(), &12.into()));
        assert!(lines.iter().all(|line| line["time_ns"].is_u64()));
    }
}
