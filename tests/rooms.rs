// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the loader's modules are few, and depend on each other in one direction only, so that each can be read after
//! those that it uses.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::docs::{files_below, read};

/// Modules at the top of src/, those of programs aside.
const MOST: usize = 15;
const PROGRAMS: [&str; 3] = ["bin", "lib", "main"];

/// The modules at the top that `text` uses: `crate::one`, and of `crate::{one, two::{a, b}}` both. Comments and tests
/// do not count.
fn used_by(text: &str) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    let code: String = code.lines().map(|line| line.split("//").next().unwrap().to_string() + "\n").collect();
    code.split("crate::").skip(1).flat_map(names).collect()
}

/// The names that a path begins with: one, or all of a list in braces.
fn names(path: &str) -> Vec<String> {
    let name = |rest: &str| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap().to_string();
    let Some(list) = path.strip_prefix('{') else { return vec![name(path)] };
    let with_depth = list.chars().scan(0, |depth, c| {
        *depth += i32::from(c == '{') - i32::from(c == '}');
        (*depth >= 0).then_some((*depth, c))
    });
    let outer: String = with_depth.filter(|(depth, _)| *depth == 0).map(|(_, c)| c).collect();
    outer.split(',').map(|rest| name(rest.trim_start())).filter(|name| !name.is_empty()).collect()
}

/// For each module at the top of src/, the others that it uses.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_below("src") {
        let module = path.iter().nth(1).unwrap().to_str().unwrap().trim_end_matches(".rs").to_string();
        let used = used_by(&read(&path)).into_iter().filter(|name| *name != module);
        uses.entry(module.clone()).or_default().extend(used);
    }
    uses
}

#[test]
fn there_are_no_more_modules_than_one_can_keep_in_mind() {
    let modules: Vec<String> = uses().into_keys().filter(|name| !PROGRAMS.contains(&name.as_str())).collect();
    assert!(modules.len() <= MOST, "{}: {modules:?}", modules.len());
}

#[test]
fn lists_in_braces_are_seen() {
    let text = "use crate::{jobs, trace::{event, lines}, \n  wire::key::Key};\nuse crate::bpf::Hooks; // crate::top\n";
    assert_eq!(used_by(text).into_iter().collect::<Vec<_>>(), ["bpf", "jobs", "trace", "wire"]);
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let mut uses = uses();
    assert!(uses["scheduler"].contains("bpf") && uses["control"].contains("scheduler"), "{uses:?}");
    let known: BTreeSet<String> = uses.keys().cloned().collect();
    uses.values_mut().for_each(|used| used.retain(|name| known.contains(name)));
    // Those that use nothing go, then those that use nothing that is left.
    while let Some(free) = uses.iter().find(|(_, used)| used.is_empty()).map(|(name, _)| name.clone()) {
        uses.remove(&free);
        uses.values_mut().for_each(|used| _ = used.remove(&free));
    }
    assert!(uses.is_empty(), "these are in a circle, or use one that is: {uses:?}");
}
