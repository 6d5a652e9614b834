// SPDX-License-Identifier: GPL-2.0-only
//! Claim: whatever is wrong in a configuration file, the program says so in one line that begins with the file and the
//! line in it, says what it takes, and loads nothing.

mod common;

use common::error_of;
use common::flags::{File, Lines, List, Number, SETTINGS, Switch, Text, Truth, Whole, flags_of};
use common::refusals::{Config, accepts, error_of_config, refuses, refuses_config};

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
fn a_name_is_given_to_a_job_that_can_be_there_and_once() {
    let both = ["run", "--job-name", "a=/a", "--job-name", "a=/b*"];
    accepts(&both[1..]);
    let twice = "--job-name: '/a' is given twice (give each job one name)";
    refuses(&[&both[..], &["--job-name", "b=/a"]].concat(), &[twice]);
    refuses(&["run", "--job-name", "a"], &["it takes NAME=JOB, such as ocean=/system.slice/ocean-*"]);
    for (job_by, job) in [("cgroup", "a"), ("cgroup", "session:1"), ("session", "/a"), ("process", "session:*")] {
        let line = format!("'{job}' is no job by {job_by} (a name starts with '");
        refuses(&["run", "--job-by", job_by, "--job-name", &format!("x={job}")], &[&format!("--job-name: {line}")]);
        let text = format!("job_by = \"{job_by}\"\njob_names = [\n\"x={job}\"]\n");
        refuses_config(&text, &format!(":3: job_names: {line}"));
    }
    // Those of the command line count, and not those of the file.
    let config = Config::new("job_names = [\"a=/a\", \"b=/b/*\"]\n");
    accepts(&["--config", config.path(), "--job-name", "c=/a"]);
    for (text, wanted) in [
        ("job_names = [\n\"a=/a\",\n\"b=/a\"]\n", ":3: job_names: '/a' is given twice"),
        ("job_names = [\"a\"]\n", ":1: job_names: 'a': it takes NAME=JOB"),
        ("job_names = [\"*=/a\"]\n", ":1: job_names: '*=/a': it takes NAME=JOB"),
        ("job_names = [\"a=/a*b\"]\n", ":1: job_names: 'a=/a*b': it takes a job's name"),
        ("job_names = [7]\n", ":1: job_names: invalid type: integer `7`"),
        ("job_names = \"a=/a\"\n", ":1: job_names: invalid type: string \"a=/a\""),
        ("[job_names]\na = \"/a\"\n", ":1: job_names: invalid type: map"),
    ] {
        refuses_config(text, wanted);
    }
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
