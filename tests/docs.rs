// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the README is short and its figures stand in docs/measurements.md; lines of pages are not too wide; links
//! lead somewhere; and docs/architecture.md names every file that there is, and none else.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use common::docs::{code_of, files_below, pages, read};
use cosched_sim::paper::markdown::COLUMNS;

const WORDS: usize = 900;

#[test]
fn the_readme_is_short() {
    let words = read("README.md").split_whitespace().count();
    assert!(words <= WORDS, "README.md has {words} words, {WORDS} at most");
}

#[test]
fn the_readme_has_the_two_commands_that_do_everything() {
    let readme = read("README.md");
    for command in ["make demo", "make test"] {
        assert!(readme.lines().any(|line| line.starts_with(&format!("{command} "))), "no line {command}");
    }
}

/// Figures of a text: what has a digit, without what is about it.
fn figures(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| c.is_whitespace() || "()|".contains(c));
    let words = words.map(|word| word.trim_matches(|c: char| !c.is_ascii_alphanumeric()));
    words.filter(|word| word.starts_with(|c: char| c.is_ascii_digit())).collect()
}

#[test]
fn figures_of_the_readme_stand_in_the_measurements() {
    let (readme, measured) = (read("README.md"), read("docs/measurements.md"));
    let known: BTreeSet<&str> = figures(&measured).into_iter().collect();
    let result = readme.split("\n## ").find(|part| part.starts_with("The result")).expect("it has a result");
    let figures = figures(result);
    assert!(figures.len() > 20, "{figures:?}");
    for figure in figures {
        assert!(known.contains(figure), "{figure} is in the README, but not in docs/measurements.md");
    }
}

#[test]
fn lines_are_not_too_wide() {
    let mut wide = Vec::new();
    for page in pages() {
        for (number, line) in (1..).zip(read(&page).lines()) {
            let columns = line.chars().count();
            if columns > COLUMNS {
                wide.push(format!("{}:{number}: {columns} columns", page.display()));
            }
        }
    }
    assert!(wide.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wide.join("\n"));
}

/// The files below `tests` that are scripts of a shell or of Python.
fn scripts() -> Vec<PathBuf> {
    let is_script = |path: &PathBuf| {
        let begins = fs::read(path).unwrap_or_default();
        ["sh", "py"].iter().any(|end| path.extension().is_some_and(|is| is == *end)) || begins.starts_with(b"#!")
    };
    files_below("tests").into_iter().filter(|path| !path.is_symlink() && is_script(path)).collect()
}

#[test]
fn the_rules_and_what_scripts_say_of_themselves_are_not_too_wide() {
    // In a terminal, where a tab goes to the next eighth column.
    let columns =
        |line: &str| line.chars().fold(0, |column, c| if c == '\t' { column / 8 * 8 + 8 } else { column + 1 });
    let is_code = |path: &PathBuf| [".h", ".c", ".toml"].iter().any(|end| path.to_str().unwrap().ends_with(end));
    let code = ["bpf", "policies"].into_iter().flat_map(files_below).filter(is_code);
    let mut wide = Vec::new();
    for (path, is_script) in code.map(|path| (path, false)).chain(scripts().into_iter().map(|path| (path, true))) {
        for (number, line) in (1..).zip(read(&path).lines()) {
            if columns(line) > COLUMNS && (!is_script || line.trim_start().starts_with('#')) {
                wide.push(format!("{}:{number}: {} columns", path.display(), columns(line)));
            }
        }
    }
    assert!(wide.is_empty(), "lines of more than {COLUMNS} columns:\n{}", wide.join("\n"));
}

/// What GitHub makes of the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut is_code = false;
    let mut anchors = BTreeSet::new();
    for line in text.lines() {
        is_code ^= line.starts_with("```");
        let Some(title) = line.strip_prefix('#').filter(|_| !is_code) else { continue };
        let kept = title.trim_start_matches('#').trim().to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        anchors.insert(kept.map(|c| if c == ' ' { '-' } else { c }).collect());
    }
    anchors
}

/// Where the links of `text` lead, outside of code.
fn links(text: &str) -> Vec<String> {
    let parts = text.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
    let inline = parts.map(|(target, _)| target.split_whitespace().collect::<String>());
    let definitions = text.lines().filter(|line| line.starts_with('[')).filter_map(|line| line.split_once("]: "));
    inline.chain(definitions.map(|(_, target)| target.to_string())).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut seen = 0;
    for page in pages() {
        for link in links(&read(&page)).iter().filter(|link| !link.contains("://")) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let path = if file.is_empty() { page.clone() } else { page.with_file_name(file) };
            assert!(path.exists(), "{}: {link} leads nowhere", page.display());
            assert!(
                anchor.is_empty() || anchors(&read(&path)).contains(anchor),
                "{}: there is no {link}",
                page.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen} links");
}

/// The files of a directory, and its directories with a slash at the end, without modules that only test.
fn names_in(dir: &str) -> BTreeSet<String> {
    let name = |path: PathBuf| {
        let slash = if path.is_dir() { "/" } else { "" };
        format!("{}{slash}", path.file_name().unwrap().to_str().unwrap())
    };
    let names = fs::read_dir(dir).unwrap().map(|entry| name(entry.unwrap().path()));
    names.filter(|name| !name.ends_with("_tests.rs")).collect()
}

/// The names of files and directories that are in code spans of `text`.
fn names_of(text: &str) -> BTreeSet<String> {
    let is_file = |name: &str| [".rs", ".h", ".c", ".toml", "/"].iter().any(|end| name.ends_with(end));
    let spans = code_of("", text).into_iter().filter(|code| code.language.is_none());
    spans.map(|code| code.text).filter(|name| is_file(name) && !name.contains(['*', ' '])).collect()
}

#[test]
fn the_architecture_names_every_file_and_none_else() {
    let page = read("docs/architecture.md");
    let of = |dir: &str| -> &str {
        let is_its = |part: &&str| part.lines().next().is_some_and(|title| title.ends_with(&format!(": {dir}")));
        page.split("\n## ").find(is_its).unwrap_or_else(|| panic!("no section on {dir}"))
    };
    for dir in ["src/", "crates/rules/src/", "bpf/", "policies/"] {
        assert_eq!(names_of(of(dir)), names_in(dir), "named (left) and there (right) in {dir}");
    }
    let named = names_of(&page);
    let places = ["", "src/", "crates/rules/src/", "bpf/", "policies/"];
    for name in &named {
        assert!(places.iter().any(|place| Path::new(&format!("{place}{name}")).exists()), "there is no {name}");
    }
    assert!(named.iter().any(|name| name == "src/main.rs"), "{named:?}");
}

#[test]
fn the_way_of_a_flag_to_the_gate_is_there_and_short() {
    let page = read("docs/architecture.md");
    let section = page.split("\n## ").find(|part| part.starts_with("From a flag to the gate")).expect("a section");
    // Of each table its rows: file and function.
    let row = |line: &str| -> Option<(String, String)> {
        let cells: Vec<&str> = line.strip_prefix("| `")?.split(" | ").collect();
        Some((cells[0].trim_end_matches('`').into(), cells[1].trim_matches('`').trim_end_matches("()").into()))
    };
    let tables: Vec<Vec<_>> = section.split("\n\n").map(|part| part.lines().filter_map(row).collect()).collect();
    let tables: Vec<_> = tables.into_iter().filter(|table| !table.is_empty()).collect();
    assert_eq!(tables.len(), 2, "{tables:?}");
    assert!((6..=8).contains(&tables[0].len()), "it goes through {} files", tables[0].len());
    for (file, function) in tables.concat() {
        let begins = |line: &str| match file.ends_with(".rs") {
            true => line.contains(&format!("fn {function}")),
            false => line.starts_with(char::is_alphabetic) || line.starts_with('_'),
        };
        let named = [format!("{function}("), format!("{function}<")];
        let is_there = read(&file).lines().any(|line| begins(line) && named.iter().any(|name| line.contains(name)));
        assert!(is_there, "{file} has no {function}()");
    }
}
