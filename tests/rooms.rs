// SPDX-License-Identifier: GPL-2.0-only
//! Claim: the loader's modules depend on each other in one direction only, so that each can be read after those that it
//! uses.

mod common;

use std::collections::{BTreeMap, BTreeSet};

use common::docs::{files_below, read};

/// For each module at the top of src/, the others that it uses. Comments and tests do not count.
fn uses() -> BTreeMap<String, BTreeSet<String>> {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in files_below("src") {
        let module = path.iter().nth(1).unwrap().to_str().unwrap().trim_end_matches(".rs").to_string();
        let text = read(&path);
        let code = text.split("#[cfg(test)]").next().unwrap();
        let lines = code.lines().map(|line| line.split("//").next().unwrap());
        let used = lines.flat_map(|line| line.split("crate::").skip(1));
        let name = |rest: &str| rest.split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap().to_string();
        uses.entry(module.clone()).or_default().extend(used.map(name).filter(|name| *name != module));
    }
    uses
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
