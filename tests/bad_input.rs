// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever is wrong, the program says so in one line, says what to do about it, and loads nothing.
//!
//! Faults of the command line have exit code 2, all others 1. What only a kernel with sched_ext shows (a
//! scheduler that is loaded already) is tested in a VM.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use clap::CommandFactory;
use common::{error_of, fake_scheduler, needs_root};
use scx_cosched::cli::Cli;
use scx_cosched::control::ControlSocket;
use scx_cosched::presets;
use serde_json::Value;
use tempfile::TempDir;

/// The program refuses `args` with exit code 2 and a line that has all of `wanted`.
fn refuses(args: &[&str], wanted: &[&str]) {
    let (message, code) = error_of(args);
    assert_eq!(code, 2, "{args:?}: {message}");
    for part in wanted {
        assert!(message.contains(part), "{args:?}: {message}");
    }
}

/// What a value is made of, which decides what is of a wrong type in TOML.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
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
use Kind::{File, Lines, List, Number, Switch, Text, Truth, Whole};

/// A flag, which is a key of the configuration file too if it is one of `run`.
struct Setting {
    flag: &'static str,
    kind: Kind,
    /// Values that it takes: of a number, both ends.
    good: &'static [&'static str],
    /// Values that it does not take: of a number, beyond both ends.
    bad: &'static [&'static str],
    /// How the message says what it takes.
    takes: &'static str,
    /// All that it needs to have an effect.
    needs: &'static [Need],
}

/// One of these rules is needed on this axis, as an error says of the first.
struct Need {
    axis: &'static str,
    rules: &'static [&'static str],
    /// Or one of these on another axis.
    or: (&'static str, &'static [&'static str]),
}

const fn need(axis: &'static str, rules: &'static [&'static str]) -> Need {
    Need { axis, rules, or: ("wait", &[]) }
}

const BOOSTS: Need = Need { or: ("wait", &["spin-yield"]), ..need("arrival", &["demand", "periodic"]) };
const CHOOSES: Need = Need { or: ("wait", &["spin-yield"]), ..need("arrival", &["periodic"]) };
const PULSES: Need = Need { or: ("wait", &["spin-block", "spin-yield"]), ..need("arrival", &["periodic"]) };
const SPINS: Need = need("wait", &["spin", "spin-block", "spin-yield"]);
const RECKONS: Need = need("spin", &["baseline", "conditional", "adaptive-local", "adaptive-global"]);

/// Every flag, but for those of `bench` and `sim`. One that is missing makes `every_flag_has_a_row` fail.
#[rustfmt::skip]
const SETTINGS: &[Setting] = &[
    row("policy", Text, &["dcs", "local"], &["dsc", "", "DCS", "a\nb"], "(known: cc, dcs", &[]),
    row("arrival", Text, &["none", "demand", "periodic", "gang"], &["sometimes", "", "Demand"],
        "(known: none, demand, periodic, gang", &[]),
    row("gate", Text, &["always", "equalizing", "epochs", "rate", "auto"], &["open", "", "Rate"],
        "(known: always, equalizing, epochs, rate, auto", &[BOOSTS]),
    row("h-ms", Number, &["-3600000", "3600000"],
        &["-3600000.5", "3600000.5", "-1e9", "NaN", "inf", "-inf", "ten", "", "1 ms"],
        "it takes a number of ms from -3600000 to 3600000", &[BOOSTS, need("gate", &["equalizing", "epochs"])]),
    row("target-fairness", Number, &["0.1", "10"], &["0.09", "10.5", "0", "-1", "NaN", "inf", "fair", ""],
        "it takes a number from 0.1 to 10", &[BOOSTS, need("gate", &["auto"])]),
    row("rate-exponent", Whole, &["-32", "32"], &["-33", "33", "1.5", "-4294967297", "two", ""],
        "it takes a whole number from -32 to 32", &[BOOSTS, need("gate", &["rate"])]),
    row("rate-constant-ms", Number, &["-3600000", "3600000"],
        &["-3600000.5", "3600000.5", "1e300", "NaN", "inf", "-inf", "ten", "", "1 ms"],
        "it takes a number of ms from -3600000 to 3600000", &[BOOSTS, need("gate", &["rate"])]),
    row("epochs", Truth, &["true", "false"], &["1", "yes", "True", ""], "it takes true or false",
        &[BOOSTS, need("gate", &["auto", "equalizing", "always", "rate"])]),
    row("residual-slice", Truth, &["true", "false"], &["1", "yes", "True", ""], "it takes true or false",
        &[need("arrival", &["demand", "periodic"])]),
    row("boost-choice", Text, &["round-robin", "next-pending", "most-pending", "longest-waiting"],
        &["random", "", "round_robin"], "(known: round-robin, next-pending, most-pending, longest-waiting", &[CHOOSES]),
    row("wait", Text, &["busy", "spin", "spin-block", "spin-yield"], &["sleep", "none", "", "Spin", "spin_block"],
        "(known: busy, spin, spin-block, spin-yield", &[]),
    row("spin", Text, &["immediate", "fixed", "baseline", "conditional", "adaptive-local", "adaptive-global"],
        &["adaptive", "", "Fixed"], "(known: immediate, fixed, baseline, conditional, adaptive-local, adaptive-global",
        &[SPINS]),
    row("spin-us", Whole, &["1", "10000"], &["0", "10001", "-1", "4294967297", "1.5", "20us", ""],
        "it takes a whole number of us from 1 to 10000", &[SPINS, need("spin", &["fixed"])]),
    row("recheck-ms", Whole, &["1", "1000"], &["0", "1001", "-1", "4294967297", "1.5", "20ms", ""],
        "it takes a whole number of ms from 1 to 1000", &[need("wait", &["spin-block"])]),
    row("interval-us", Whole, &["100", "100000"], &["99", "100001", "-1", "4294967396", "100.5", "1ms", ""],
        "it takes a whole number of us from 100 to 100000", &[PULSES]),
    row("quantum-ms", Whole, &["1", "60000"], &["0", "60001", "-1", "4294967297", "1.5", "1s", ""],
        "it takes a whole number of ms from 1 to 60000", &[need("arrival", &["gang"])]),
    row("rows", Whole, &["1", "1024"], &["0", "1025", "-1", "4294967297", "1.5", "five", ""],
        "it takes a whole number from 1 to 1024", &[need("arrival", &["gang"])]),
    row("slice-us", Whole, &["100", "1000000"],
        &["99", "1000001", "-1", "4294967396", "99999999999999999999", "1e3", "20ms", ""],
        "it takes a whole number of us from 100 to 1000000", &[]),
    row("latency-us", Number, &["0", "1000000"], &["-0.5", "1000000.5", "NaN", "inf", "1us", ""],
        "it takes a number of us from 0 to 1000000", &[SPINS, RECKONS]),
    row("overhead-us", Number, &["0", "1000000"], &["-0.5", "1000000.5", "NaN", "inf", "1us", ""],
        "it takes a number of us from 0 to 1000000", &[SPINS, RECKONS]),
    row("switch-us", Number, &["0", "1000000"], &["-0.5", "1000000.5", "NaN", "inf", "1us", ""],
        "it takes a number of us from 0 to 1000000", &[SPINS, RECKONS]),
    row("job-by", Text, &["cgroup", "session", "process"], &["user", "", "Cgroup"],
        "it takes cgroup, session or process", &[]),
    row("arrivals", Text, &["futex", "pipe,eventfd", "futex,futex"], &["", "tcp", "futex,", "Pipe", "futex pipe", "all"],
        "it takes futex, pipe and eventfd, with commas between them", &[]),
    row("gang-row", Lines, &["/a=0", "/slurm/job_7=1023", "/a=b*=5", "*=1"],
        &["", "/a", "=1", "/a=", "/a=1024", "/a=-1", "/a=1.5", "/a=one", "/a=4294967296", "/a*b=1", "/a\nb=1"],
        "it takes ", &[]),
    row("peer", List, &["10.1.0.0/16", "fd00::/64", "0.0.0.0/0", "::/0", "10.0.0.1/32"],
        &["", "10.1.0.0", "10.1.0.0/33", "10.1.0.0/-1", "10.1.0.0/+8", "fd00::/129", "host/8", "10.1.2.3/16", "10.1/16", "/8"],
        "it takes a network, such as 10.1.0.0/16 or fd00::/64", &[]),
    row("interface", List, &["auto", "eth0", "no_such_if", "abcdefghijklmno"],
        &["", "abcdefghijklmnop", "a/b", "a b", "..", "eth0:1"], "it takes the name of a network interface, or 'auto'",
        &[]),
    row("cluster-key", Text, &["/no/such/key"], &[""], "it takes the path of a file with 32 hexadecimal digits", &[]),
    row("node-number", Whole, &["0", "65535"], &["-1", "65536", "4294967296", "1.5", "one", ""],
        "it takes a whole number from 0 to 65535", &[]),
    row("prefetch", Whole, &["0", "8"], &["-1", "9", "4294967296", "1.5", "all", ""],
        "it takes a whole number from 0 to 8", &[]),
    row("prefetch-port", Whole, &["1", "65535"], &["0", "-1", "65536", "1.5", "udp", ""],
        "it takes a whole number from 1 to 65535", &[]),
    row("metrics-listen", Text, &["none"],
        &["9937", "", ":9937", "127.0.0.1", "127.0.0.1:65536", "127.0.0.1:-1", "localhost:9937", "::1:9937"],
        "it takes ADDRESS:PORT", &[]),
    row("jobs-top", Whole, &["0", "4096"], &["-1", "4097", "4294967296", "1.5", "all", ""],
        "it takes a whole number from 0 to 4096", &[]),
    row("stats", Number, &["0.01", "3600"], &["0.009", "3600.5", "0", "-1", "NaN", "inf", "often", ""],
        "it takes a number of seconds from 0.01 to 3600", &[]),
    row("exit-dump-len", Whole, &["0", "16777216"], &["-1", "16777217", "4294967296", "0.5", "1M", ""],
        "it takes a whole number of bytes from 0 to 16777216", &[]),
    row("control-socket", Text, &["/no/such/directory/a.sock"], &["relative.sock", "./a", ""],
        "it takes an absolute path", &[]),
    row("hints-socket", Text, &["/no/such/directory/b.sock"], &["relative.sock", "./b", ""],
        "it takes an absolute path", &[]),
    row("seconds", Number, &[], &["0.09", "3600.5", "0", "-1", "NaN", "inf", "long", ""],
        "it takes a number of seconds from 0.1 to 3600", &[]),
    row("events", Text, &["arrivals", "switches,decisions", "arrivals,decisions,switches"],
        &["", "Arrivals", "arrivals,", "arrivals decisions", "all"], "it takes any of arrivals, decisions and switches", &[]),
    row("job", Text, &["/slurm/job_7*"], &["", "/a\nb"], "it takes a job's name as 'status' shows it", &[]),
    row("perfetto", File, &[], &[""], "a value is required", &[]),
    row("config", File, &[], &[""], "a value is required", &[]),
    row("verbose", Switch, &[], &["1", "true", "false"], "no more were expected", &[]),
    row("json", Switch, &[], &["1", "true"], "no more were expected", &[]),
    row("monitor", Number, &[], &["0.009", "3600.5", "0", "-1", "NaN", "x", ""],
        "it takes a number of seconds from 0.01 to 3600", &[]),
    row("help-stats", Switch, &[], &["1"], "no more were expected", &[]),
];

const fn row(
    flag: &'static str,
    kind: Kind,
    good: &'static [&'static str],
    bad: &'static [&'static str],
    takes: &'static str,
    needs: &'static [Need],
) -> Setting {
    Setting { flag, kind, good, bad, takes, needs }
}

impl Setting {
    fn arg(&self) -> String {
        format!("--{}", self.flag)
    }

    fn key(&self) -> String {
        self.flag.replace('-', "_") + if matches!(self.kind, Lines | List) { "s" } else { "" }
    }

    /// `value` as TOML, if it can be written as what this is made of.
    fn toml(&self, value: &str) -> String {
        match self.kind {
            Text => format!("{value:?}"),
            Number => value.to_lowercase(),
            List => format!("[{value:?}]"),
            Lines => value.rsplit_once('=').map_or(value.into(), |(job, row)| format!("{{ {job:?} = {row} }}")),
            _ => value.into(),
        }
    }

    /// A value that it takes.
    fn any(&self) -> &'static str {
        self.good.first().copied().unwrap_or("1")
    }

    /// The flag without which it is of no use, and a value of that.
    fn company(&self) -> &'static [&'static str] {
        match self.flag {
            "prefetch" => &["--peer", "10.1.0.0/16", "--cluster-key", "/no/such/key"],
            "prefetch-port" => &["--peer", "10.1.0.0/16", "--cluster-key", "/no/such/key", "--prefetch", "1"],
            "interface" | "cluster-key" | "node-number" => &["--peer", "10.1.0.0/16"],
            _ => &[],
        }
    }

    /// Every rule under which it has no effect, the other axes being those of the default policy.
    fn moot_with(&self) -> impl Iterator<Item = (&'static str, String, &'static str)> {
        self.needs.iter().flat_map(|need| {
            let rules = choices(need.axis);
            assert!(need.rules.iter().all(|needed| rules.iter().any(|rule| rule == needed)), "{}", need.axis);
            let others = rules.into_iter().filter(|rule| !need.rules.contains(&rule.as_str()));
            others.map(|rule| (need.axis, rule, need.rules[0]))
        })
    }

    /// The first of its needs that `policy` does not meet.
    fn unmet(&self, policy: &Value) -> Option<&'static Need> {
        let is = |axis: &str, rules: &[&str]| policy[axis].as_str().is_some_and(|rule| rules.contains(&rule));
        self.needs.iter().find(|need| !is(need.axis, need.rules) && !is(need.or.0, need.or.1))
    }
}

/// All choices on this axis, as the program knows them.
fn choices(axis: &str) -> Vec<String> {
    let (message, _) = error_of(&["run", &format!("--{axis}"), "?"]);
    let known = message.split_once("(known: ").unwrap().1.trim_end_matches(')');
    known.split(", ").map(String::from).collect()
}

/// Each command but `bench` and `sim` with its flags; the first is the program itself.
fn commands() -> Vec<(Vec<String>, BTreeSet<String>)> {
    fn walk(path: Vec<String>, command: &clap::Command, found: &mut Vec<(Vec<String>, BTreeSet<String>)>) {
        for sub in command.get_subcommands().filter(|sub| !["bench", "sim"].contains(&sub.get_name())) {
            walk([path.clone(), vec![sub.get_name().into()]].concat(), sub, found);
        }
        found.push((path, command.get_arguments().filter_map(|arg| arg.get_long().map(String::from)).collect()));
    }
    let mut found = Vec::new();
    walk(Vec::new(), &Cli::command(), &mut found);
    found.reverse();
    found
}

/// The flags of the command `path`.
fn flags_of(path: &[&str]) -> BTreeSet<String> {
    commands().into_iter().find(|(found, _)| found == path).unwrap().1
}

/// The program takes `args`, since what it does not like is what comes next: exit code 1, and not their fault.
fn accepts(args: &[&str]) {
    let mut all = [&["run"], args].concat();
    for elsewhere in [["--metrics-listen", "none"], ["--control-socket", "/no/such/directory/a.sock"]] {
        if !args.contains(&elsewhere[0]) {
            all.extend(elsewhere);
        }
    }
    let (message, code) = error_of(&all);
    assert_eq!(code, 1, "{all:?}: {message}");
    assert!(!message.contains(".toml"), "{all:?}: {message}");
}

#[test]
fn every_flag_has_a_row() {
    let rows: BTreeSet<String> = SETTINGS.iter().map(|setting| setting.flag.into()).collect();
    let flags: BTreeSet<String> = commands().into_iter().flat_map(|(_, flags)| flags).collect();
    assert_eq!(rows, flags, "a flag without a row, or a row without a flag");
    assert_eq!(rows.len(), SETTINGS.len(), "one is there twice");
}

#[test]
fn every_flag_of_run_is_a_key_of_the_configuration() {
    let (message, _) = error_of_config("x = 1\n", &[]);
    let keys: BTreeSet<String> = message.split('`').skip(3).step_by(2).map(String::from).collect();
    let flags = SETTINGS.iter().filter(|setting| setting.kind != File && flags_of(&["run"]).contains(setting.flag));
    assert_eq!(keys, flags.map(Setting::key).collect());
}

#[test]
fn a_value_that_a_flag_does_not_take_is_refused() {
    for (command, flags) in commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        for setting in SETTINGS.iter().filter(|setting| flags.contains(setting.flag)) {
            let flag = setting.arg();
            for value in setting.bad {
                let folded = value.split_whitespace().collect::<Vec<_>>().join(" ");
                let wanted = [flag.as_str(), &folded, setting.takes];
                match setting.kind {
                    Switch => refuses(&[&command[..], &[&format!("{flag}={value}")]].concat(), &wanted),
                    _ => refuses(&[&command[..], &[&flag, value]].concat(), &wanted),
                }
            }
        }
    }
    let long = format!("/{}", "a".repeat(107));
    for flag in ["--control-socket", "--hints-socket"] {
        refuses(&["run", flag, &long], &[flag, "at most 107 bytes"]);
    }
}

#[test]
fn a_flag_without_a_value_or_given_twice_is_refused() {
    for (command, flags) in commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        for setting in SETTINGS.iter().filter(|setting| flags.contains(setting.flag)) {
            let flag = setting.arg();
            let given: &[&str] = if setting.kind == Switch { &[&flag] } else { &[&flag, setting.any()] };
            let says =
                if matches!(setting.kind, Lines | List) { "is given twice" } else { "cannot be used multiple times" };
            refuses(&[&command[..], given, given].concat(), &[&flag, says]);
            if setting.kind != Switch {
                refuses(&[&command[..], &[&flag]].concat(), &[&flag, "a value is required"]);
            }
        }
    }
}

#[test]
fn a_value_that_a_flag_takes_is_not_refused() {
    for setting in SETTINGS.iter().filter(|setting| flags_of(&["run"]).contains(setting.flag)) {
        let (flag, key) = (setting.arg(), setting.key());
        for value in setting.good {
            let needs: Vec<String> =
                setting.needs.iter().map(|need| format!("--{}={}", need.axis, need.rules[0])).collect();
            let needs: Vec<&str> = needs.iter().map(String::as_str).chain(setting.company().iter().copied()).collect();
            accepts(&[&needs[..], &[&flag, value]].concat());
            let config = Config::new(format!("{key} = {}\n", setting.toml(value)));
            accepts(&[&needs[..], &["--config", config.path()]].concat());
        }
    }
    accepts(&["--config", Config::new("verbose = false\n").path()]);
}

#[test]
fn a_flag_of_another_command_is_refused() {
    for (command, flags) in commands() {
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        for setting in SETTINGS.iter().filter(|setting| !flags.contains(setting.flag)) {
            refuses(&[&command[..], &[&setting.arg()]].concat(), &[&setting.arg(), "unexpected argument"]);
        }
        // Those of the program itself go with no command.
        if let Some(name) = command.first() {
            refuses(&[&["--monitor", "1"], &command[..]].concat(), &["--monitor", name]);
            refuses(&[&["--help-stats"], &command[..]].concat(), &["--help-stats", name]);
        }
    }
    for flag in flags_of(&["run"]) {
        refuses(&["--monitor", "1", &format!("--{flag}")], &[&flag, "unexpected argument"]);
    }
}

#[test]
fn what_has_no_effect_with_the_rest_is_refused() {
    for setting in SETTINGS {
        let (flag, key, value) = (setting.arg(), setting.key(), setting.any());
        let toml = setting.toml(value);
        for (axis, choice, needed) in setting.moot_with() {
            let line = format!("it has no effect with {axis} '{choice}' (leave it out, or choose {axis} '{needed}')");
            let by_flag = format!("{flag}: {line}");
            refuses(&["run", "--policy", "dcs", &format!("--{axis}"), &choice, &flag, value], &[&by_flag]);
            let rules = format!("{axis} = \"{choice}\"\npolicy = \"dcs\"\n");
            let (message, code) = error_of_config(&rules, &[&flag, value]);
            assert_eq!((message, code), (by_flag, 2));
            refuses_config(&format!("{rules}{key} = {toml}\n"), &format!(":3: {key}: {line}"));
            refuses_config(&format!("{key} = {toml}\n{rules}"), &format!(":1: {key}: {line}"));

            // The file is not wrong if it is a flag that makes a line of it moot.
            let config = Config::new(format!("{key} = {toml}\n"));
            accepts(&["--config", config.path(), "--policy", "dcs", &format!("--{axis}"), &choice]);
        }
        for (name, preset) in presets::all() {
            let has = serde_json::to_value(preset.policy.view()).unwrap();
            let Some(Need { axis, rules: [needed, ..], .. }) = setting.unmet(&has) else { continue };
            let choice = has[axis].as_str().unwrap();
            let line = format!("it has no effect with {axis} '{choice}' (leave it out, or choose {axis} '{needed}')");
            refuses(&["run", "--policy", name, &flag, value], &[&format!("{flag}: {line}")]);
            refuses_config(&format!("policy = \"{name}\"\n{key} = {toml}\n"), &format!(":2: {key}: {line}"));
        }
    }
}

#[test]
fn what_has_no_effect_with_the_policy_in_force_is_refused() {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let control = ControlSocket::bind(&path).unwrap();
    control.serve(fake_scheduler()).unwrap();
    let refuses = |args: &[&str], wanted: &str| {
        let args = [&["policy", "set", "--control-socket", path.to_str().unwrap()], args].concat();
        let (message, code) = error_of(&args);
        assert_eq!(code, 1, "{args:?}: {message}");
        assert!(message.starts_with(wanted), "{args:?}: {message}");
    };
    for setting in SETTINGS {
        let (flag, value) = (setting.arg(), setting.any());
        for (axis, choice, _) in setting.moot_with() {
            let wanted = format!("{flag}: it has no effect with {axis} '{choice}'");
            refuses(&[&format!("--{axis}"), &choice, &flag, value], &wanted);
        }
        if let [Need { axis: "arrival", .. }, ..] = setting.needs {
            refuses(&["local", &flag, value], &format!("{flag}: it has no effect with arrival 'none'"));
        }
    }
    // Under dcs, which is in force.
    refuses(&["--rate-exponent", "1"], "--rate-exponent: it has no effect with gate 'equalizing'");
}

#[test]
fn a_row_is_given_to_a_job_that_can_be_there_and_once() {
    let both = ["run", "--gang-row", "/a=1", "--gang-row", "/a*=1"];
    accepts(&both[1..]);
    refuses(&[&both[..], &["--gang-row", "/a=2"]].concat(), &["--gang-row: '/a' is given twice"]);
    for (job_by, name) in [("cgroup", "a"), ("cgroup", "session:1"), ("session", "/a"), ("process", "session:*")] {
        let line = format!("'{name}' is no job by {job_by} (a name starts with '");
        refuses(&["run", "--job-by", job_by, "--gang-row", &format!("{name}=1")], &[&format!("--gang-row: {line}")]);
        let text = format!("job_by = \"{job_by}\"\n[gang_rows]\n\n\"{name}\" = 1\n");
        refuses_config(&text, &format!(":4: gang_rows: {line}"));
    }
    accepts(&["--job-by", "session", "--gang-row", "session:7=1", "--gang-row", "*=2"]);
    // Flag and file may name the same job: the flag wins.
    let config = Config::new("[gang_rows]\n\"/a\" = 1\n\"/b/*\" = 2\n");
    accepts(&["--config", config.path(), "--gang-row", "/a=2"]);
    for (text, wanted) in [
        (
            "[gang_rows]\n\"/a\" = 1\n\"/b\" = 1024\n",
            ":3: gang_rows: '/b': 1024 is out of range: it takes a whole number",
        ),
        ("[gang_rows]\n\"/a\" = 1\n\"/a\" = 2\n", ":3: \"/a\": duplicate key"),
        ("[gang_rows]\n\"/a\" = \"1\"\n", ":2: \"/a\": invalid type: string \"1\", expected a whole number"),
        ("[gang_rows]\n\"\" = 1\n", ":2: gang_rows: '': it takes a job's name"),
        ("[gang_rows]\n\"/a*b\" = 1\n", ":2: gang_rows: '/a*b': it takes a job's name"),
        ("[gang_rows]\n\"/a\" = 1\nslice_us = 1000\n", ":3: gang_rows: 'slice_us' is no job by cgroup"),
        ("gang_rows = 1\n", ":1: gang_rows: invalid type: integer `1`, expected a table"),
        ("[[gang_rows]]\n\"/a\" = 1\n", ":1: gang_rows: invalid type: "),
    ] {
        refuses_config(text, wanted);
    }
}

#[test]
fn what_only_peers_are_for_is_refused_without_one() {
    let line = "it has no effect without a peer (leave it out, or name the peers' networks with --peer)";
    for (flag, value, toml) in [
        ("interface", "auto", "interfaces = [\"auto\"]"),
        ("cluster-key", "/no/such/key", "cluster_key = \"/no/such/key\""),
        ("node-number", "7", "node_number = 7"),
        ("prefetch", "1", "prefetch = 1"),
        ("prefetch-port", "9", "prefetch_port = 9"),
    ] {
        refuses(&["run", &format!("--{flag}"), value], &[&format!("--{flag}: {line}")]);
        let key = toml.split_once(' ').unwrap().0;
        refuses_config(&format!("\n{toml}\n"), &format!(":2: {key}: {line}"));
    }
    refuses_config("peers = [\n\"10.0.0.0/8\",\n\"10.0.0.1/8\"]\n", ":3: peers: '10.0.0.1/8': it takes a network");
    refuses_config("peers = [\"::/0\",\n\"::/0\"]\n", ":2: peers: '::/0' is given twice (give it once)");
    // Flags take the place of a list, and are not added to it.
    accepts(&["--config", Config::new("peers = [\"::/0\"]\n").path(), "--peer", "::/0"]);
}

#[test]
fn prefetching_without_a_key_or_its_port_without_prefetching_is_refused() {
    let key = "nobody believes what is not signed (leave it out, or name the cluster's key with --cluster-key)";
    let port = "it has no effect without --prefetch (leave it out, or give --prefetch 1 to 8)";
    refuses(&["run", "--peer", "::/0", "--prefetch", "1"], &[&format!("--prefetch: {key}")]);
    refuses(&["run", "--peer", "::/0", "--prefetch-port", "9"], &[&format!("--prefetch-port: {port}")]);
    refuses(
        &["run", "--peer", "::/0", "--cluster-key", "/no/such/key", "--prefetch", "0", "--prefetch-port", "9"],
        &[&format!("--prefetch-port: {port}")],
    );
    refuses_config("peers = [\"::/0\"]\nprefetch = 1\n", &format!(":2: prefetch: {key}"));
    refuses_config("peers = [\"::/0\"]\nprefetch_port = 9\n", &format!(":2: prefetch_port: {port}"));
}

#[test]
fn a_port_of_prefetches_that_is_taken_is_named() {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    fs::write(&path, "0123456789abcdef0123456789abcdef\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let taken = UdpSocket::bind("[::]:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let socket = dir.path().join("a.sock");
    let key = path.to_str().unwrap();
    let (message, code) = error_of(&[
        "run",
        "--peer",
        "::/0",
        "--cluster-key",
        key,
        "--prefetch",
        "1",
        "--prefetch-port",
        &port,
        "--metrics-listen",
        "none",
        "--control-socket",
        socket.to_str().unwrap(),
    ]);
    assert_eq!(code, 1, "{message}");
    assert!(message.starts_with(&format!("cannot hear prefetches at UDP port {port}: ")), "{message}");
    assert!(message.ends_with("(choose another --prefetch-port, the same on all nodes)"), "{message}");
}

#[test]
fn a_key_that_cannot_be_used_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("key");
    let refuses = |wanted: &str| {
        let (message, code) = error_of(&["run", "--peer", "::/0", "--cluster-key", path.to_str().unwrap()]);
        assert_eq!(code, 1);
        assert!(message.starts_with(&format!("{}: {wanted}", path.display())), "{message}");
        assert!(!message.contains("0123456789"), "{message}");
    };
    refuses("No such file or directory");
    fs::write(&path, "0123456789abcdef0123456789abcdeg\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    refuses("others may read it (chmod 600 ");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    refuses("not a file with 32 hexadecimal digits (--cluster-key takes ");
}

#[test]
fn what_nobody_knows_is_refused() {
    refuses(&["run", "--policy", "dsc"], &["--policy: unknown policy 'dsc'", "known: cc, dcs"]);
    refuses(&["policy", "set", "dsc"], &["unknown policy 'dsc'", "known: cc, dcs"]);
    refuses(&["policy", "set"], &["nothing to set"]);
    refuses(&["policy", "set", "--json"], &["nothing to set"]);
    refuses(&["policy", "set", "dcs", "local"], &["local"]);
    refuses(&["policy", "change"], &["change"]);
    refuses(&["policy"], &["no command", "--help"]);
    refuses(&["run", "--frobnicate"], &["--frobnicate"]);
    refuses(&["run", "now"], &["now"]);
    refuses(&["start"], &["start"]);
    refuses(&["run", "--gate"], &["--gate"]);
    refuses(&[], &["no command", "--help"]);
    refuses(&["--monitor", "1", "--help-stats"], &["--monitor", "--help-stats"]);
    refuses(&["run", "--gate", "a\n\nb"], &["--gate", "known: always"]);
    refuses(&["trace", "--json", "--perfetto", "a"], &["--json", "cannot be used with '--perfetto <FILE>'"]);
    refuses(&["trace", "/a"], &["/a"]);
}

#[test]
fn a_trace_that_cannot_be_written_is_named() {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.sock");
    let control = ControlSocket::bind(&path).unwrap();
    control.serve(fake_scheduler()).unwrap();
    for file in ["/no/such/file.json", "/"] {
        let args = ["trace", "--perfetto", file, "--control-socket", path.to_str().unwrap()];
        let (message, code) = error_of(&args);
        assert_eq!(code, 1);
        assert!(message.starts_with(&format!("cannot write {file}: ")), "{message}");
        assert!(message.ends_with("(choose another --perfetto)"), "{message}");
    }
}

/// A configuration file.
struct Config {
    _dir: TempDir,
    path: PathBuf,
}

impl Config {
    fn new(text: impl AsRef<[u8]>) -> Config {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("c.toml");
        fs::write(&path, text).unwrap();
        Config { _dir: dir, path }
    }

    fn path(&self) -> &str {
        self.path.to_str().unwrap()
    }
}

/// What `run` says of the configuration without the path of the file, with the exit code.
fn error_of_config(text: &str, flags: &[&str]) -> (String, i32) {
    let config = Config::new(text);
    let (message, code) = error_of(&[&["run", "--config", config.path()], flags].concat());
    (message.replace(config.path(), ""), code)
}

/// The program refuses the configuration with exit code 1 and a line that starts with the file and `wanted`.
fn refuses_config(text: &str, wanted: &str) {
    let (message, code) = error_of_config(text, &[]);
    assert_eq!(code, 1, "{text:?}: {message}");
    assert!(message.starts_with(wanted), "{text:?}: {message:?} should start with {wanted:?}");
}

#[test]
fn a_value_that_a_key_does_not_take_is_named_with_its_line() {
    for setting in SETTINGS.iter().filter(|setting| flags_of(&["run"]).contains(setting.flag)) {
        let key = setting.key();
        let wrong_type: &[&str] = match setting.kind {
            Text => &["1", "1.5", "true", "[\"a\"]", "{ a = 1 }", "1979-05-27"],
            Whole => &["\"1\"", "1.5", "1.0", "true", "[1]", "{ a = 1 }"],
            Number => &["\"1\"", "true", "[1]", "{ a = 1 }", "1979-05-27"],
            Truth | Switch => &["1", "0", "\"true\"", "[true]"],
            List => &["1", "\"a\"", "true", "[1]", "[[\"a\"]]", "{ a = 1 }"],
            Lines => &["1", "\"/a=1\"", "true", "[1]", "{ \"/a\" = \"1\" }", "{ \"/a\" = [1] }"],
            File => continue,
        };
        for value in wrong_type {
            refuses_config(&format!("\n{key} = {value}\n"), &format!(":2: {key}: invalid type: "));
        }
        for value in setting.bad.iter().filter(|_| setting.kind != Switch) {
            let text = format!("# {key} = 1\n{key} = {}\n", setting.toml(value));
            refuses_config(&text, &format!(":2: {key}: "));
            let says = match setting.kind {
                Text | List => true,
                Number => value.parse::<f64>().is_ok(),
                Whole => value.parse::<i64>().is_ok(),
                // They are of another type, or no TOML.
                Truth | Switch | File => false,
                Lines => value.rsplit_once('=').is_some_and(|(_, row)| row.parse::<i64>().is_ok()),
            };
            if says {
                let (message, _) = error_of_config(&text, &[]);
                assert!(message.contains(setting.takes), "{text:?}: {message}");
            }
        }
        let good = if setting.kind == Switch { "true".into() } else { setting.toml(setting.any()) };
        refuses_config(&format!("{key} = {good}\n\n{key} = {good}\n"), &format!(":3: {key}: duplicate key"));
        // Neither a flag nor the beginning of a key is a key; but for arrival, which is another one.
        let flag = setting.flag;
        if flag != key {
            refuses_config(&format!("{flag} = {good}\n"), &format!(":1: unknown field `{flag}`"));
        }
        let short = &key[..key.len() - 1];
        if key != "arrivals" {
            refuses_config(&format!("{short} = {good}\n"), &format!(":1: unknown field `{short}`"));
        }
    }
}

#[test]
fn what_is_no_setting_is_named_with_its_line() {
    refuses_config("# nothing\nslice = 5\n", ":2: unknown field `slice`");
    refuses_config("config = \"other.toml\"\n", ":1: unknown field `config`");
    refuses_config("json = true\n", ":1: unknown field `json`");
    refuses_config("monitor = 1\n", ":1: unknown field `monitor`");
    refuses_config("\n[run]\nh_ms = 1\n", ":2: unknown field `run`");
    refuses_config("[[run]]\nh_ms = 1\n", ":1: unknown field `run`");
    refuses_config("h_ms = 1, slice_us = 1000\n", ":1: h_ms: ");
    refuses_config("h_ms.x = 1\n", ":1: h_ms.x: invalid type");
    refuses_config("h_ms = [\n1,\n]\n", ":1: h_ms: invalid type");
    refuses_config("policy = \"\"\"a\nb\"\"\"\n", ":1: policy: unknown policy 'a b'");
    refuses_config("slice_us = 1000\r\nh_ms = \"x\"\r\n", ":2: h_ms: invalid type");
    refuses_config("policy = \"dcs\n", ":1: policy: ");
    refuses_config("h_ms\n", ":1: ");
    refuses_config("= 1\n", ":1: ");
}

#[test]
fn a_configuration_that_cannot_be_read_is_named() {
    for path in ["/no/such/file.toml", "/", "/dev/null"] {
        let (message, code) = error_of(&["run", "--config", path]);
        assert_eq!(code, 1);
        assert!(message.starts_with(path) && message.contains("readable TOML file"), "{message}");
    }
    for (bytes, what) in [(b"policy = \"\xe4\"\n".to_vec(), "UTF-8"), (vec![b'\n'; (1 << 20) + 1], "larger than")] {
        let config = Config::new(bytes);
        let (message, code) = error_of(&["run", "--config", config.path()]);
        assert_eq!(code, 1);
        assert!(message.starts_with(config.path()) && message.contains(what), "{message}");
    }
}

#[test]
fn a_flag_wins_over_the_configuration() {
    // The file's h_ms is moot under the flag's gate; the next thing to go wrong is another one.
    let config = Config::new("policy = \"dcs\"\nh_ms = -20\n");
    for flags in [["--gate", "rate"], ["--policy", "local"], ["--h-ms", "-10"], ["--arrival", "none"]] {
        accepts(&[&["--config", config.path()], &flags[..]].concat());
    }
}

#[test]
fn a_policy_by_flag_does_not_hide_what_is_wrong_in_the_configuration() {
    let policy = ["--policy", "dcs"];
    for (text, wanted) in [
        ("gate = \"rate\"\nh_ms = 1\n", ":2: h_ms: it has no effect with gate 'rate'"),
        ("arrival = \"none\"\nh_ms = 1\n", ":2: h_ms: it has no effect with arrival 'none'"),
        ("wait = \"busy\"\nspin_us = 1\n", ":2: spin_us: it has no effect with wait 'busy'"),
        ("policy = \"dsc\"\n", ":1: policy: unknown policy 'dsc'"),
        ("[h_ms]\na = 1\n", ":1: h_ms: invalid type"),
    ] {
        let (message, code) = error_of_config(text, &policy);
        assert_eq!(code, 1, "{text:?}: {message}");
        assert!(message.starts_with(wanted), "{text:?}: {message}");
    }
}

#[test]
fn somebody_who_is_not_root_is_told() {
    needs_root();
    let output = Command::new(env!("CARGO_BIN_EXE_scx_cosched")).arg("run").uid(65534).gid(65534).output();
    // The build directory may be closed to others.
    let Ok(output) = output else { return };
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(stderr, "scx_cosched: error: root: the effective user is 65534 (run it as root, e.g. with sudo)\n");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn a_metrics_port_in_use_is_named_before_anything_else_is_tried() {
    needs_root();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let (message, code) = error_of(&["run", "--metrics-listen", &address]);
    assert_eq!(code, 1);
    assert!(message.contains(&address) && message.contains("choose another --metrics-listen"), "{message}");
}

#[test]
fn a_kernel_without_sched_ext_is_named_and_nothing_is_left_behind() {
    needs_root();
    if fs::exists("/sys/kernel/sched_ext").unwrap() {
        println!("this kernel has sched_ext: tests/vm/cases/refuses_bad_input_in_one_line.sh tries it without");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("a.sock");
    let args = ["run", "--metrics-listen", "none", "--control-socket", socket.to_str().unwrap()];
    let (message, code) = error_of(&args);
    assert_eq!(code, 1);
    assert!(message.starts_with("sched_ext: ") && message.contains("CONFIG_SCHED_CLASS_EXT=y"), "{message}");
    assert!(!socket.exists());

    let output = common::scx_cosched(&["check"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("missing  sched_ext: ") && text.contains("ok       root: "), "{text}");
}

#[test]
fn without_a_running_scheduler_its_clients_say_so() {
    let dir = tempfile::tempdir().unwrap();
    let socket = dir.path().join("a.sock");
    let socket = socket.to_str().unwrap();
    let policy = [&["policy", "show"][..], &["policy", "recommend"], &["policy", "set", "local"]];
    for command in [&["status"][..], &["status", "--json"], &["trace"]].iter().chain(&policy) {
        let mut args = command.to_vec();
        args.extend(["--control-socket", socket]);
        let (message, code) = error_of(&args);
        assert_eq!(code, 1);
        assert!(message.starts_with("no scheduler is running at"), "{message}");
    }
    let (message, _) = error_of(&["status", "--control-socket", "/dev/null"]);
    assert!(message.contains("/dev/null"), "{message}");
}
