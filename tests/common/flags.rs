// SPDX-License-Identifier: GPL-2.0-only
//! Every flag, what it takes and what it does not.

#![allow(dead_code)]

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::str::FromStr;
use std::sync::LazyLock;

use cosched_rules::rows::{Kind as RowKind, Row};
use scx_cosched::settings::rows;
use serde_json::Value;

use super::command_line::command_line;
use super::error_of;

/// What a value is made of, which decides what is of a wrong type in TOML.
#[derive(Clone, Copy, PartialEq)]
pub enum Kind {
    Text,
    Whole,
    Number,
    /// True or false.
    Truth,
    /// A flag without a value.
    Switch,
    /// No key of the configuration file: it cannot name itself.
    File,
    /// A flag for each line of a table.
    Lines,
    /// A flag for each entry of a list.
    List,
}
pub use Kind::{File, Lines, List, Number, Switch, Text, Truth, Whole};

/// A flag, which is a key of the configuration file too if it is one of `run`.
#[derive(Clone, Copy)]
pub struct Setting {
    /// Without its dashes.
    pub flag: &'static str,
    /// What its value is made of.
    pub kind: Kind,
    /// Values that it takes: of a number, both ends.
    pub good: &'static [&'static str],
    /// Values that it does not take: of a number, beyond both ends.
    pub bad: &'static [&'static str],
    /// How the message says what it takes.
    pub takes: &'static str,
    /// All that it needs to have an effect.
    pub needs: &'static [Need],
}

/// One of these rules is needed on this axis, as an error says of the first.
pub struct Need {
    /// The axis of the policy.
    pub axis: &'static str,
    /// The rules there.
    pub rules: &'static [&'static str],
    /// Or one of these on another axis.
    pub or: (&'static str, &'static [&'static str]),
}

/// Every flag, but for those of `bench` and `sim`. One that is missing makes `every_flag_has_a_row` fail. What the
/// program's own row says of a setting is not said again: of a number its range, of a rule its names, of all what they
/// need. So a new setting has a row here only if it is a text of a form of its own.
pub static SETTINGS: LazyLock<Vec<Setting>> = LazyLock::new(|| {
    let known = |row: &'static Row| derived(row).or_else(|| TEXTS.iter().find(|text| text.flag == row.flag()).copied());
    rows()
        .map(|row| known(row).unwrap_or_else(|| panic!("{}: TEXTS has no values of it", row.key)))
        .chain(OTHERS)
        .collect()
});

/// Settings that are texts of a form of their own.
#[rustfmt::skip]
const TEXTS: [Setting; 11] = [
    row("policy", Text, &["dcs", "local"], &["dsc", "", "DCS", "a\nb"], "(known: beat, cc, dcs"),
    row("job-by", Text, &["cgroup", "session", "process"], &["user", "", "Cgroup"],
        "it takes cgroup, session or process"),
    row("arrivals", Text, &["futex", "pipe,eventfd", "futex,futex"], &["", "tcp", "futex,", "Pipe", "futex pipe", "all"],
        "it takes futex, pipe and eventfd, with commas between them"),
    row("gang-row", Lines, &["/a=0", "/slurm/job_7=1023", "/a=b*=5", "*=1"],
        &["", "/a", "=1", "/a=", "/a=1024", "/a=-1", "/a=1.5", "/a=one", "/a=4294967296", "/a*b=1", "/a\nb=1"],
        "it takes "),
    row("job-name", List, &["a=/a", "ocean=/system.slice/ocean-*", "a=/b=c*", "a b=*"],
        &["", "/a", "=/a", "a=", "a*=/a", "a\nb=/a", "a=/b*c", "a=/b\nc"], "it takes "),
    row("peer", List, &["10.1.0.0/16", "fd00::/64", "0.0.0.0/0", "::/0", "10.0.0.1/32"],
        &["", "10.1.0.0", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/+8", "fd00::/129", "host/8", "10.1.2.3/16", "10.1/16", "/8"],
        "it takes a network, such as 10.1.0.0/16 or fd00::/64"),
    row("interface", List, &["auto", "eth0", "no_such_if", "abcdefghijklmno"],
        &["", "abcdefghijklmnop", "a/b", "a b", "..", "eth0:1"], "it takes the name of a network interface, or 'auto'"),
    row("cluster-key", Text, &["/no/such/key"], &[""], "it takes the path of a file with 32 hexadecimal digits"),
    row("metrics-listen", Text, &["none"],
        &["29937", "", ":29937", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "localhost:29937", "::1:29937"],
        "it takes ADDRESS:PORT"),
    row("control-socket", Text, &["/no/such/directory/a.sock"], &["relative.sock", "./a", ""],
        "it takes an absolute path"),
    row("hints-socket", Text, &["/no/such/directory/b.sock"], &["relative.sock", "./b", ""],
        "it takes an absolute path"),
];

/// Flags that are no settings.
#[rustfmt::skip]
const OTHERS: [Setting; 10] = [
    row("interval", Number, &[], &["0.09", "60.5", "0", "-1", "NaN", "inf", "long", ""],
        "it takes a number of seconds from 0.1 to 60"),
    row("no-colour", Switch, &[], &["1", "true"], "no more were expected"),
    row("seconds", Number, &[], &["0.09", "3600.5", "0", "-1", "NaN", "inf", "long", ""],
        "it takes a number of seconds from 0.1 to 3600"),
    row("events", Text, &["arrivals", "switches,decisions", "arrivals,decisions,switches,turns"],
        &["", "Arrivals", "arrivals,", "arrivals decisions", "all"], "it takes any of arrivals, decisions, switches and turns"),
    row("job", Text, &["/slurm/job_7*"], &["", "/a\nb"], "it takes a job's name as 'status' shows it"),
    row("perfetto", File, &[], &[""], "a value is required"),
    row("config", File, &[], &[""], "a value is required"),
    row("json", Switch, &[], &["1", "true"], "no more were expected"),
    row("monitor", Number, &[], &["0.009", "3600.5", "0", "-1", "NaN", "x", ""],
        "it takes a number of seconds from 0.01 to 3600"),
    row("help-stats", Switch, &[], &["1"], "no more were expected"),
];

const fn row(
    flag: &'static str,
    kind: Kind,
    good: &'static [&'static str],
    bad: &'static [&'static str],
    takes: &'static str,
) -> Setting {
    Setting { flag, kind, good, bad, takes, needs: &[] }
}

/// What the program's row says of a setting; None: its type knows more than the row.
fn derived(row: &'static Row) -> Option<Setting> {
    let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (kind, good, bad, takes) = match row.kind {
        RowKind::Whole(range) => {
            let (min, max) = ends::<i64>(&range.bounds());
            let beyond = [min - 1, max + 1, min + (1 << 32), max - (1 << 32)].map(|value| value.to_string());
            let wrong = words(&["99999999999999999999", "1.5", "one", "1ms", ""]);
            (Whole, vec![min.to_string(), max.to_string()], [&beyond[..], &wrong].concat(), range.describe())
        }
        RowKind::Real(range) => {
            let (min, max) = ends::<f64>(&range.bounds());
            let beyond = [min - 0.001, max + 0.5].map(|value| value.to_string());
            let wrong = words(&["-1e9", "1e300", "NaN", "inf", "-inf", "ten", "1 ms", ""]);
            (Number, vec![min.to_string(), max.to_string()], [&beyond[..], &wrong].concat(), range.describe())
        }
        RowKind::Truth => {
            (Truth, words(&["true", "false"]), words(&["1", "yes", "True", ""]), "it takes true or false".into())
        }
        RowKind::Switch => (Switch, vec![], words(&["1", "true", "false"]), "no more were expected".into()),
        RowKind::Text(_) => {
            let message = (row.check)(row, "?").err()?;
            let takes = &message[message.find("(known: ")?..];
            let known: Vec<String> = takes[8..].trim_end_matches(')').split(", ").map(String::from).collect();
            let bad = ["?", "", &known[0].to_uppercase(), "a\nb"].map(String::from).to_vec();
            (Text, known, bad, takes.to_string())
        }
        RowKind::List | RowKind::Table => return None,
    };
    let needs = row.needs.iter().map(|need| Need {
        axis: need[0].0,
        rules: need[0].1,
        or: need.get(1).copied().unwrap_or(("wait", &[])),
    });
    Some(Setting {
        flag: row.flag().leak(),
        kind,
        good: leak(good),
        bad: leak(bad),
        takes: takes.leak(),
        needs: needs.collect::<Vec<_>>().leak(),
    })
}

/// Both ends of a range, as the program says them.
fn ends<T: FromStr<Err: Debug>>(bounds: &str) -> (T, T) {
    let (min, max) = bounds.split_once(" to ").unwrap();
    (min.parse().unwrap(), max.parse().unwrap())
}

/// For as long as the test runs, as the rows of the program are there.
fn leak(texts: Vec<String>) -> &'static [&'static str] {
    texts.into_iter().map(|text| &*text.leak()).collect::<Vec<_>>().leak()
}

impl Setting {
    /// As it stands on the command line.
    pub fn arg(&self) -> String {
        format!("--{}", self.flag)
    }

    /// As it stands in the configuration file.
    pub fn key(&self) -> String {
        self.flag.replace('-', "_") + if matches!(self.kind, Lines | List) { "s" } else { "" }
    }

    /// `value` as TOML, if it can be written as what this is made of.
    pub fn toml(&self, value: &str) -> String {
        match self.kind {
            Text => format!("{value:?}"),
            Number => value.to_lowercase(),
            List => format!("[{value:?}]"),
            Lines => value.rsplit_once('=').map_or(value.into(), |(job, row)| format!("{{ {job:?} = {row} }}")),
            _ => value.into(),
        }
    }

    /// A value that it takes.
    pub fn any(&self) -> &'static str {
        self.good.first().copied().unwrap_or("1")
    }

    /// The flag without which it is of no use, and a value of that.
    pub fn company(&self) -> &'static [&'static str] {
        match self.flag {
            "prefetch" => &["--peer", "10.1.0.0/16", "--cluster-key", "/no/such/key"],
            "prefetch-port" => &["--peer", "10.1.0.0/16", "--cluster-key", "/no/such/key", "--prefetch", "1"],
            "interface" | "cluster-key" | "node-number" => &["--peer", "10.1.0.0/16"],
            _ => &[],
        }
    }

    /// Every rule under which it has no effect, the other axes being those of the default policy.
    pub fn moot_with(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        self.needs.iter().flat_map(|need| {
            let rules = choices(need.axis);
            assert!(need.rules.iter().all(|needed| rules.iter().any(|rule| rule == needed)), "{}", need.axis);
            let others = rules.into_iter().filter(|rule| !need.rules.contains(&rule.as_str()));
            others.map(|rule| (need.axis, rule, need.rules[0]))
        })
    }

    /// The first of its needs that `policy` does not meet.
    pub fn unmet(&self, policy: &Value) -> Option<&'static Need> {
        let is = |axis: &str, rules: &[&str]| policy[axis].as_str().is_some_and(|rule| rules.contains(&rule));
        self.needs.iter().find(|need| !is(need.axis, need.rules) && !is(need.or.0, need.or.1))
    }
}

/// All choices on this axis, as the program knows them.
pub fn choices(axis: &str) -> Vec<String> {
    let (message, _) = error_of(&["run", &format!("--{axis}"), "?"]);
    let known = message.split_once("(known: ").unwrap().1.trim_end_matches(')');
    known.split(", ").map(String::from).collect()
}

/// Each command but `bench` and `sim` with its flags; the first is the program itself.
pub fn commands() -> Vec<(Vec<String>, BTreeSet<String>)> {
    fn walk(path: Vec<String>, command: &clap::Command, found: &mut Vec<(Vec<String>, BTreeSet<String>)>) {
        for sub in command.get_subcommands().filter(|sub| !["bench", "sim"].contains(&sub.get_name())) {
            walk([path.clone(), vec![sub.get_name().into()]].concat(), sub, found);
        }
        found.push((path, command.get_arguments().filter_map(|arg| arg.get_long().map(String::from)).collect()));
    }
    let mut found = Vec::new();
    walk(Vec::new(), &command_line(), &mut found);
    found.reverse();
    found
}

/// The flags of the command `path`.
pub fn flags_of(path: &[&str]) -> BTreeSet<String> {
    commands().into_iter().find(|(found, _)| found == path).unwrap().1
}
