// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the tables of presets, rules, flags and metrics in docs/reference.md are those of the program, and the pages
//! that the simulator writes are those of the figures that are stored. `make docs` writes them anew.

mod common;

use std::collections::BTreeSet;
use std::fs;

use clap::{Arg, Command};
use common::command_line::command_line;
use common::docs::is_committed;
use common::{scx_cosched, snapshot};
use cosched_rules::axes::AXES;
use cosched_rules::presets;
use cosched_sim::paper::markdown::wrap;
use scx_cosched::metrics;
use serde_json::{Map, Value};

const HEAD: &str = "<!-- Made of the code by `make docs`: change the code, not this page. -->\n\n";

/// What a sentence of a flag's help looks like on a page.
fn sentence(help: &str) -> String {
    let text = help.split_whitespace().collect::<Vec<_>>().join(" ").replace('*', "\\*");
    if text.ends_with(['.', ']']) { text } else { text + "." }
}

/// What the program says of its presets.
fn listed() -> Vec<Map<String, Value>> {
    serde_json::from_slice(&scx_cosched(&["policy", "list", "--json"]).stdout).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), String::from)
}

fn presets_page() -> String {
    let mut page =
        "## Presets\n\nA preset is a choice on each axis. `scx_cosched policy list` shows them too.\n\n".to_string();
    page += "| preset | arrival | gate | wait | spin |\n|---|---|---|---|---|\n";
    let table = String::from_utf8(scx_cosched(&["policy", "list"]).stdout).unwrap();
    for row in table.lines().skip(1) {
        let cell = |word: &str| if word == "-" { word.into() } else { format!("`{word}`") };
        let cells: Vec<String> = row.split_whitespace().take(5).map(cell).collect();
        page += &format!("| {} |\n", cells.join(" | "));
    }
    page += "\nA `-` stands where a rule has no effect. What each of them does, and its other settings:\n\n";
    for preset in listed() {
        let is_other =
            |key: &str| !["name", "summary", "source", "default", "arrival", "gate", "wait", "spin"].contains(&key);
        let other = preset.iter().filter(|(key, _)| is_other(key));
        let others: Vec<String> = other.map(|(key, value)| format!("`{key} = {}`", text(value))).collect();
        let is_default = if preset["default"] == Value::Bool(true) { " (the default)" } else { "" };
        let (name, summary, source) = (text(&preset["name"]), text(&preset["summary"]), text(&preset["source"]));
        let said = format!("{summary} ({source}). {}.", others.join(", "));
        page += &wrap(&format!("- **`{name}`**{is_default}: "), 2, &said);
    }
    page + "\n"
}

fn rules_page() -> String {
    let mut page = "## Rules\n\nA policy has a rule on each of these axes.\n".to_string();
    for axis in AXES {
        let mut title = axis.name.to_string();
        title[..1].make_ascii_uppercase();
        page += &format!("\n### {title}\n\n{}\n", wrap("", 0, axis.help));
        for (name, help) in axis.rules {
            page += &wrap(&format!("- `{name}`: "), 2, &sentence(help));
        }
    }
    page + "\n"
}

fn help(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let mut said = sentence(&help);
    let values = arg.get_possible_values();
    let known: Vec<String> =
        values.iter().filter(|value| !value.is_hide_set()).map(|v| format!("`{}`", v.get_name())).collect();
    if arg.get_action().takes_values() && !known.is_empty() && !known.contains(&"`true`".to_string()) {
        said += &format!(" One of {}.", known.join(", "));
    }
    let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        said += &format!(" [default: {}]", defaults.join(" "));
    }
    said
}

fn line(arg: &Arg) -> String {
    let value = arg.get_value_names().unwrap_or_default().join(" ");
    let flags = [arg.get_short().map(|c| format!("-{c}")), arg.get_long().map(|long| format!("--{long}"))];
    let flags: Vec<String> = flags.into_iter().flatten().collect();
    let name = match (flags.is_empty(), arg.get_action().takes_values()) {
        (true, _) => value,
        (false, true) => format!("{} {value}", flags.join(", ")),
        (false, false) => flags.join(", "),
    };
    wrap(&format!("- `{name}`: "), 2, &help(arg))
}

fn args_of(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_own = |arg: &&Arg| !["help", "version"].contains(&arg.get_id().as_str()) && !arg.is_hide_set();
    command.get_arguments().filter(is_own)
}

fn find<'a>(command: &'a Command, path: &[&str]) -> &'a Command {
    path.iter().fold(command, |command, name| command.find_subcommand(name).unwrap())
}

/// The sections of `command` and all below it. Flags in `known` have a section of their own.
fn commands_page(command: &Command, path: &str, known: &BTreeSet<String>) -> String {
    let mut page = String::new();
    let about = command.get_long_about().or(command.get_about()).map(ToString::to_string).unwrap_or_default();
    if !command.has_subcommands() {
        page += &format!("### {path}\n\n{}\n", wrap("", 0, &sentence(&about)));
        let own: Vec<&Arg> = args_of(command).filter(|arg| !known.contains(arg.get_id().as_str())).collect();
        if own.len() < args_of(command).count() {
            page += "Takes the [choices of a policy](#choices-of-a-policy), and:\n\n";
        }
        own.iter().for_each(|arg| page += &line(arg));
        page += if own.is_empty() { "It has no flags.\n\n" } else { "\n" };
    }
    let below = command.get_subcommands().filter(|below| below.get_name() != "help" && !below.is_hide_set());
    below.for_each(|below| page += &commands_page(below, &format!("{path} {}", below.get_name()), known));
    page
}

/// The flags that `run` and `policy set` share: what a policy is made of.
fn choices(command: &Command) -> Vec<&Arg> {
    let set: BTreeSet<&str> = args_of(find(command, &["policy", "set"])).map(|arg| arg.get_id().as_str()).collect();
    let is_choice = |arg: &&Arg| set.contains(arg.get_id().as_str()) && arg.get_id() != "control_socket";
    args_of(find(command, &["run"])).filter(is_choice).collect()
}

fn flags_page() -> String {
    let mut command = command_line();
    command.build();
    let choices = choices(&command);
    assert!(choices.len() > 10, "run and policy set share hardly any flag");
    let mut page = "## Flags\n\n".to_string();
    page += &wrap("", 0, "Without a command, `scx_cosched` takes the flags of `scx_cosched run`, and these:");
    let run: BTreeSet<&str> = args_of(find(&command, &["run"])).map(|arg| arg.get_id().as_str()).collect();
    page += "\n";
    args_of(&command).filter(|arg| !run.contains(arg.get_id().as_str())).for_each(|arg| page += &line(arg));
    page += "\n### Choices of a policy\n\n";
    page += &wrap(
        "",
        0,
        "`run` and `policy set` take these, and the configuration file takes them with underscores. Where a default \
         is by preset, the table of [presets](#presets) has it. `policy set` leaves what it is not told as it is.",
    );
    page += "\n";
    choices.iter().for_each(|arg| page += &line(arg));
    let known = choices.iter().map(|arg| arg.get_id().to_string()).collect();
    page + "\n" + &commands_page(&command, "scx_cosched", &known)
}

fn metrics_page() -> String {
    let served = metrics::prometheus_text(&snapshot(&presets::find("dcs").unwrap().policy));
    let mut page = "## Metrics\n\n".to_string();
    page +=
        &wrap("", 0, "What `/metrics` serves, each name with its type. A counter has the label that its line names.");
    page += "\n";
    let of = |kind: &str, line: &str| -> Option<(String, String)> {
        let (name, rest) = line.strip_prefix(&format!("# {kind} "))?.split_once(' ')?;
        Some((name.into(), rest.into()))
    };
    let types: Vec<_> = served.lines().filter_map(|line| of("TYPE", line)).collect();
    for (name, help) in served.lines().filter_map(|line| of("HELP", line)) {
        let kind = types.iter().find(|(other, _)| *other == name).map_or("unknown", |(_, kind)| kind);
        page += &wrap(&format!("- `{name}` ({kind}): "), 2, &sentence(&help));
    }
    page
}

#[test]
fn the_reference_is_that_of_the_program() {
    let intro = "Presets, rules, flags and metrics, as the program has them. [policies.md](policies.md) explains the \
                 rules, [using.md](using.md) the commands.";
    let page = [presets_page(), rules_page(), flags_page(), metrics_page()].concat();
    is_committed("docs/reference.md", &format!("{HEAD}# Reference\n\n{}\n{page}", wrap("", 0, intro)));
}

#[test]
fn the_pages_of_the_simulator_are_those_of_the_stored_figures() {
    let dir = tempfile::tempdir().unwrap();
    for (command, figures) in [("paper", "docs/reproduction"), ("scale", "docs/scale")] {
        let page = dir.path().join("page.md");
        let output = scx_cosched(&["sim", command, "--out", figures, "--page", page.to_str().unwrap()]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // Pictures are named as the page in docs/ sees them.
        let text = fs::read_to_string(page).unwrap().replace(&format!("({figures}/"), &format!("({}/", &figures[5..]));
        is_committed(&format!("{figures}.md"), &text);
    }
}
