// SPDX-License-Identifier: GPL-2.0-only
//! Claim: every command in the documentation has the form that the program, the Makefile or the script takes, and every
//! command of `scx_cosched` there is run by a test.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use clap::error::ErrorKind;
use common::command_line::command_line;
use common::docs::{Code, code_of, files_below, pages, read};
use common::{fake_scheduler, needs_root, serve};

/// Made of the command line itself.
const GENERATED: &str = "docs/reference.md";

/// Programs of others, of which nothing is known here.
const FOREIGN: [&str; 13] = [
    "apt",
    "cargo",
    "cc",
    "curl",
    "jq",
    "kubectl",
    "mpirun",
    "openssl",
    "podman",
    "promtool",
    "systemctl",
    "systemd-analyze",
    "umask",
];

/// Flags of others.
const FOREIGN_FLAGS: [&str; 2] = ["--bind-to", "--help"];

/// The commands of a line of a shell, as words; comments, redirections and assignments are left out.
fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = vec![Vec::new()];
    let (mut word, mut quote, mut is_word) = (String::new(), None, false);
    for c in line.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => (quote, is_word) = (Some(c), true),
            (None, '#') if !is_word => break,
            (None, ' ' | ';' | '|' | '&') => {
                found.last_mut().unwrap().extend(is_word.then(|| std::mem::take(&mut word)));
                is_word = false;
                found.extend((c != ' ').then(Vec::new));
            }
            _ => (is_word, _) = (true, word.push(c)),
        }
    }
    let is_noise = |word: &String| word == "sudo" || word == "srun" || word.starts_with('>') || word == "...";
    let is_assignment = |word: &String| {
        word.split_once('=').is_some_and(|(name, _)| name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
    };
    let clean = |words: Vec<String>| -> Vec<String> {
        let words = words.into_iter().filter(|word| !is_noise(word));
        words.skip_while(is_assignment).collect()
    };
    found.into_iter().map(clean).filter(|words| !words.is_empty()).collect()
}

/// Whether a word stands for what a reader puts there: FILE, I/N, NAME..., $VARIABLE.
fn is_placeholder(word: &str) -> bool {
    let is_upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || "/._-".contains(c);
    let bare = word.trim_end_matches("...").trim_end_matches(".json");
    word.contains('$') || (bare.starts_with(|c: char| c.is_ascii_uppercase()) && bare.chars().all(is_upper))
}

/// `words` with each of a few things in the place of what a reader puts there.
fn filled(words: &[String]) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for word in words {
        let others = ["1", "x", "1/2", "all", "dcs", "10.0.0.0/8"].iter().filter(|_| is_placeholder(word));
        let may_be: Vec<&str> = [word.as_str()].into_iter().chain(others.copied()).collect();
        all = all
            .iter()
            .flat_map(|line: &Vec<String>| may_be.iter().map(|&w| [&line[..], &[w.into()]].concat()))
            .collect();
    }
    all
}

/// What is wrong with these arguments of the program, if anything is. A part of a command may lack the rest.
fn wrong(args: &[String], is_part: bool) -> Option<String> {
    let lacks = |kind| {
        use ErrorKind::{DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand};
        [DisplayHelpOnMissingArgumentOrSubcommand, MissingRequiredArgument, MissingSubcommand].contains(&kind)
    };
    let mut first = None;
    let is_flag = |word: &String| is_part && word.starts_with("--");
    let value = args.last().filter(|word| is_flag(word)).map(|_| "N".to_string());
    let lines = filled(args).into_iter().chain(filled(&args.iter().cloned().chain(value).collect::<Vec<_>>()));
    for line in lines {
        match command_line().try_get_matches_from([&["scx_cosched".to_string()], &line[..]].concat()) {
            Ok(_) => return None,
            Err(e) if e.kind() == ErrorKind::DisplayHelp || (is_part && lacks(e.kind())) => return None,
            Err(e) => _ = first.get_or_insert(e.to_string()),
        }
    }
    first
}

/// All commands of the program that have none below them, as words.
fn leaves(command: &clap::Command, path: &[String]) -> Vec<Vec<String>> {
    let below = command.get_subcommands().filter(|below| below.get_name() != "help");
    let deeper = below.flat_map(|below| leaves(below, &[path, &[below.get_name().to_string()]].concat()));
    let own = (!command.has_subcommands()).then(|| path.to_vec());
    deeper.chain(own).collect()
}

/// The flags of all commands.
fn all_flags(command: &clap::Command) -> BTreeSet<String> {
    let own = command.get_arguments().filter_map(|arg| arg.get_long().map(String::from));
    own.chain(command.get_subcommands().flat_map(all_flags)).collect()
}

/// What is wrong with flags that stand alone: they are those of a command, or of a script.
fn wrong_flags(words: &[String], leaves: &[Vec<String>], scripts: &str) -> Option<String> {
    let flags: Vec<&String> = words.iter().filter(|word| word.starts_with("--")).collect();
    let has_all = |leaf: &&Vec<String>| {
        let command = leaf.iter().fold(command_line(), |command, name| command.find_subcommand(name).unwrap().clone());
        let known = all_flags(&command);
        flags.iter().all(|flag| known.contains(flag.trim_start_matches('-')))
    };
    let alone = words.len() == 1 && all_flags(&command_line()).contains(words[0].trim_start_matches('-'));
    let is_known = alone
        || leaves.iter().filter(has_all).any(|leaf| wrong(&[leaf, words].concat(), true).is_none())
        || wrong(words, true).is_none()
        || flags.iter().all(|flag| scripts.contains(flag.as_str()))
        || FOREIGN_FLAGS.contains(&flags[0].as_str());
    (!is_known).then(|| "no command and no script takes this".into())
}

/// Whether there is a file in `tests` whose name is `pattern`, in which a `*` stands for anything.
fn is_any(pattern: &str) -> bool {
    let Some((begin, end)) = pattern.split_once('*') else { return false };
    let names = files_below("tests").into_iter().map(|path| path.to_str().unwrap().to_string());
    names.into_iter().any(|name| name.starts_with(begin) && name.ends_with(end))
}

/// What is wrong with a script and its flags. It may hand flags over to the program.
fn wrong_script(words: &[String], leaves: &[Vec<String>], scripts: &str) -> Option<String> {
    if words.len() == 1 && is_any(&words[0]) {
        return None;
    }
    let Ok(meta) = fs::metadata(&words[0]) else { return Some(format!("there is no {}", words[0])) };
    let rest = &words[1..];
    if !rest.is_empty() && (!meta.is_file() || meta.permissions().mode() & 0o100 == 0) {
        return Some(format!("{} is no program", words[0]));
    }
    if words[0] == "tests/vm/suite" {
        let is_there = |kind: &str, name: &String| Path::new(&format!("tests/vm/{kind}/{name}.sh")).exists();
        let is_case =
            |name: &String| is_placeholder(name) || ["cases", "pairs"].iter().any(|kind| is_there(kind, name));
        return rest.iter().find(|name| !is_case(name)).map(|name| format!("there is no case {name}"));
    }
    let flags: Vec<String> = rest.iter().filter(|word| word.starts_with("--")).cloned().collect();
    flags.iter().find_map(|flag| wrong_flags(std::slice::from_ref(flag), leaves, scripts))
}

fn wrong_target(words: &[String]) -> Option<String> {
    let makefile = read("Makefile");
    let phony = makefile.lines().filter_map(|line| line.strip_prefix(".PHONY:")).flat_map(str::split_whitespace);
    let targets: BTreeSet<&str> = phony.collect();
    let mut named = words[1..].iter().filter(|word| !word.starts_with('-') && !word.contains('='));
    named.find(|target| !targets.contains(target.as_str())).map(|target| format!("there is no target {target}"))
}

fn wrong_cargo(words: &[String]) -> Option<String> {
    let test = words.iter().skip_while(|word| *word != "--test").nth(1)?;
    (!Path::new(&format!("tests/{test}.rs")).exists()).then(|| format!("there is no test {test}"))
}

/// The arguments of the program that a command line has, if it is one of it.
fn arguments(words: &[String]) -> Option<&[String]> {
    ["scx_cosched", "target/release/scx_cosched"].contains(&words[0].as_str()).then_some(&words[1..])
}

/// What is wrong with a command line. In a block nothing is missing, and its program is known.
fn wrong_command(words: &[String], is_part: bool, leaves: &[Vec<String>], scripts: &str) -> Option<String> {
    let is_command = words.len() > 1 && leaves.iter().any(|leaf| leaf[0] == words[0]);
    match (words[0].as_str(), arguments(words)) {
        (_, Some(args)) => wrong(args, is_part),
        ("make", _) => wrong_target(words),
        ("cargo", _) => wrong_cargo(words),
        (script, _) if script.starts_with("tests/") => wrong_script(words, leaves, scripts),
        (flag, _) if is_part && flag.starts_with("--") => wrong_flags(words, leaves, scripts),
        _ if is_part && is_command => wrong(words, true),
        (program, _) if is_part || FOREIGN.contains(&program) => None,
        (program, _) => Some(format!("{program} is not known (a program of others belongs into FOREIGN)")),
    }
}

/// All code of all pages that people write.
fn code() -> Vec<Code> {
    let pages = pages().into_iter().filter(|page| page != Path::new(GENERATED));
    pages.flat_map(|page| code_of(page.to_str().unwrap(), &read(&page))).collect()
}

fn is_shell(code: &Code) -> bool {
    code.language.as_deref().is_none_or(|language| language == "sh")
}

#[test]
fn every_command_has_the_form_that_it_takes() {
    let leaves = leaves(&command_line(), &[]);
    let scripts: String = files_below("tests/vm").iter().map(read).collect();
    let (mut seen, mut faults) = (0, Vec::new());
    for code in code().iter().filter(|code| is_shell(code)) {
        for words in commands(&code.text) {
            seen += 1;
            let fault = wrong_command(&words, code.language.is_none(), &leaves, &scripts);
            faults.extend(
                fault.map(|fault| format!("{}: {}\n  {}", code.place, code.text, fault.lines().next().unwrap())),
            );
        }
    }
    assert!(seen > 500, "{seen} commands");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Commands that are run here: those that load nothing. What is added makes them end soon.
const RUN_HERE: [(&str, &[&str]); 16] = [
    ("policy list", &[]),
    ("policy show", &[]),
    ("policy set", &[]),
    ("policy recommend", &["--seconds", "0.3"]),
    ("status", &[]),
    ("reload", &[]),
    ("trace", &["--seconds", "0.2"]),
    ("sim markov", &[]),
    ("sim dynamic", &["--runs", "1"]),
    ("sim bsp", &["--runs", "1", "--iterations", "5"]),
    ("sim continuous", &["--runs", "1", "--iterations", "1"]),
    ("sim cluster", &["--jobs", "5"]),
    ("sim shared", &["--seconds", "0.1"]),
    ("sim replay", &[]),
    ("sim scale", &["--runs", "1", "--most-nodes", "2"]),
    ("bench report", &[]),
];

/// Commands that no test runs as they stand, and why.
const NOT_RUN: [(&str, &str); 6] = [
    ("run --arrivals futex,pipe,eventfd", "wakes_are_arrivals.sh has each with a policy"),
    ("run --peer", "it needs the networks and the key of that cluster: pairs/ and nodes.sh have their own"),
    ("run --gate epochs --peer", "as above"),
    ("top --interval 5", "it wants a terminal: tests/top_in_tmux.rs"),
    ("sim paper", "it takes minutes: tests/sim_paper.rs has parts"),
    ("sim sweep", "it takes minutes: tests/sim_sweep.rs has smaller ones"),
];

/// Runs a command where the files are that pages name, and a scheduler that only answers.
fn run_here(args: &[String], brief: &[&str], dir: &Path, socket: &Path) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_scx_cosched"));
    command.args(args).args(brief).current_dir(dir);
    if !["sim", "bench"].contains(&args[0].as_str()) && args[..] != ["policy", "list"] {
        command.arg("--control-socket").arg(socket);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{args:?} {brief:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// What cases in a VM run, as words: `start` of case.sh is `scx_cosched run`.
fn run_in_vm() -> Vec<Vec<String>> {
    let text: String = files_below("tests/vm/cases").iter().map(read).collect();
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    lines.map(|line| words(&line.replace("start ", "scx_cosched run "))).collect()
}

/// Whether `line` has `words` in this order, from the program's name on.
fn has(line: &[String], words: &[String]) -> bool {
    let mut rest = line.iter().skip_while(|word| *word != "scx_cosched").skip(1);
    line.iter().any(|word| word == "scx_cosched") && words.iter().all(|word| rest.any(|other| other == word))
}

#[test]
fn every_command_of_the_program_is_run_by_a_test() {
    needs_root();
    let dir = tempfile::tempdir().unwrap();
    for bench in ["demo", "bench-policies"] {
        let there = dir.path().join("target").join(bench);
        fs::create_dir_all(&there).unwrap();
        fs::copy("docs/measurements/demo.json", there.join("summary.json")).unwrap();
    }
    let (_dir, socket, _control) = serve(fake_scheduler());
    let blocks = code().into_iter().filter(|code| code.language.as_deref() == Some("sh"));
    let lines: BTreeSet<Vec<String>> = blocks.flat_map(|code| commands(&code.text)).collect();
    let used: Vec<&[String]> = lines.iter().filter_map(|words| arguments(words)).collect();
    assert!(used.len() > 30, "{used:?}");
    let in_vm = run_in_vm();
    let begins = |args: &[String], with: &str| format!("{} ", args.join(" ")).starts_with(&format!("{with} "));
    for args in &used {
        if let Some((_, brief)) = RUN_HERE.iter().find(|(command, _)| begins(args, command)) {
            run_here(args, brief, dir.path(), &socket);
        } else if !NOT_RUN.iter().any(|(command, _)| begins(args, command)) {
            assert!(in_vm.iter().any(|line| has(line, args)), "no test runs 'scx_cosched {}'", args.join(" "));
        }
    }
    for command in RUN_HERE.iter().map(|(command, _)| command).chain(NOT_RUN.iter().map(|(command, _)| command)) {
        assert!(used.iter().any(|args| begins(args, command)), "no page has '{command}' any more");
    }
}

#[test]
fn a_command_that_is_wrong_is_found() {
    let leaves = leaves(&command_line(), &[]);
    let wrong = |line: &str, is_part| wrong_command(&commands(line)[0], is_part, &leaves, "--from-a-script");
    for line in [
        "sudo scx_cosched policy set dcs --h-ms sixty",
        "scx_cosched run --pier 10.1.0.0/16",
        "make tset",
        "tests/vm/no-such-script --seconds 1",
        "cargo test --test no_such_test",
        "no-such-program",
        "scx_cosched sim",
    ] {
        assert!(wrong(line, false).is_some(), "{line}");
    }
    for part in ["--no-such-flag", "--recheck-ms 0", "sim shared --nodes 0", "policy list --yaml"] {
        assert!(wrong(part, true).is_some(), "{part}");
    }
    for line in ["A=1 sudo scx_cosched run --stats 1 >file # words", "make demo", "scx_cosched trace --job '/a b*'"] {
        assert_eq!(wrong(line, false), None, "{line}");
    }
    for part in ["--h-ms", "--beat-without", "--prefetch N", "--from-a-script", "sim sweep", "sim shared --cpus C"] {
        assert_eq!(wrong(part, true), None, "{part}");
    }
}
