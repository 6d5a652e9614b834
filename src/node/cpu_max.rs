// SPDX-License-Identifier: GPL-2.0-only
//! Limits of cgroups (`cpu.max`) that are not kept. A kernel before 6.17 does not tell a scheduler of them, and one
//! with PREEMPT_RT has no timers to keep them by. So whoever has set one is told which.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use libbpf_rs::Btf;
use libbpf_rs::btf::types::Struct;

use crate::node::host::Host;

/// Of so many cgroups the limit is named; the rest is counted.
const NAMED_MAX: usize = 10;
/// More cgroups are not looked at.
const LOOKED_AT_MAX: usize = 20_000;
/// What was seen is believed for so long: `status` and the metrics may be asked for often.
const BELIEVED: Duration = Duration::from_secs(10);

/// Whether the kernel that `btf` describes tells a scheduler what `cpu.max` says.
pub fn is_told(btf: &Btf<'_>) -> bool {
    let ops = btf.type_by_name::<Struct<'_>>("sched_ext_ops");
    ops.is_some_and(|ops| ops.iter().any(|member| member.name.is_some_and(|name| name == "cgroup_set_bandwidth")))
}

/// What to do about limits that are not kept on `host`; none if they are.
pub fn remedy(host: &Host) -> Option<&'static str> {
    if !host.types().is_some_and(is_told) {
        return Some("use Linux 6.17 or newer");
    }
    (!host.has_timers()).then_some("use a kernel without PREEMPT_RT")
}

/// The limits of a machine on which they are not kept; none of another.
#[derive(Default)]
pub struct Unkept {
    /// What to do about them.
    pub remedy: &'static str,
    root: Option<PathBuf>,
    seen: Option<Instant>,
    lines: Vec<String>,
}

impl Unkept {
    /// Those of `host`, below where its cgroups are mounted.
    pub fn of(host: &Host) -> Unkept {
        let Some(remedy) = remedy(host) else { return Unkept::default() };
        Unkept { remedy, root: host.cgroup_root().map(|root| host.path(&root)), ..Unkept::default() }
    }

    /// A line for each of the first cgroups that have a limit now, and one for the rest.
    pub fn lines(&mut self) -> &[String] {
        if let Some(root) = &self.root
            && self.seen.is_none_or(|seen| seen.elapsed() >= BELIEVED)
        {
            (self.lines, self.seen) = (describe(&limits_below(root)), Some(Instant::now()));
        }
        &self.lines
    }
}

/// The cgroups below `root` that have a limit, and that limit, parents first.
fn limits_below(root: &Path) -> Vec<(String, String)> {
    let (mut found, mut ahead) = (Vec::new(), vec![root.to_path_buf()]);
    for _ in 0..LOOKED_AT_MAX {
        let Some(dir) = ahead.pop() else { break };
        // A cgroup may be gone by now, and the root has no limit.
        let max = fs::read_to_string(dir.join("cpu.max")).unwrap_or_else(|_| "max".into());
        if !max.starts_with("max") {
            let name = dir.strip_prefix(root).unwrap_or(&dir).display();
            found.push((format!("/{name}"), max.trim().to_string()));
        }
        let entries = fs::read_dir(&dir).into_iter().flatten().flatten();
        let mut below: Vec<PathBuf> = entries
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        below.sort_unstable_by(|a, b| b.cmp(a));
        ahead.append(&mut below);
    }
    found
}

fn describe(limits: &[(String, String)]) -> Vec<String> {
    let named = limits.iter().take(NAMED_MAX);
    let mut lines: Vec<String> = named.map(|(cgroup, max)| format!("{cgroup} has {max}, which is not kept")).collect();
    if limits.len() > NAMED_MAX {
        lines.push(format!("and {} more", limits.len() - NAMED_MAX));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cgroups with this in their `cpu.max`, below a directory.
    fn cgroups(limits: &[(String, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        for (path, max) in limits {
            fs::create_dir_all(dir.path().join(path)).unwrap();
            fs::write(dir.path().join(path).join("cpu.max"), max).unwrap();
        }
        dir
    }

    #[test]
    fn each_limit_is_named_and_nothing_else() {
        let dir = cgroups(&[
            ("a".into(), "max 100000\n"),
            ("a/b".into(), "10000 100000\n"),
            ("c".into(), "50000 20000\n"),
            ("c/d/e".into(), "1000 1000000\n"),
        ]);
        let expected = [
            "/a/b has 10000 100000, which is not kept",
            "/c has 50000 20000, which is not kept",
            "/c/d/e has 1000 1000000, which is not kept",
        ];
        assert_eq!(describe(&limits_below(dir.path())), expected);
    }

    #[test]
    fn many_are_counted() {
        let limits: Vec<_> = (0..NAMED_MAX + 7).map(|n| (format!("job{n}"), "1000 2000\n")).collect();
        let dir = cgroups(&limits);
        let lines = describe(&limits_below(dir.path()));
        assert_eq!(lines.len(), NAMED_MAX + 1);
        assert_eq!(lines[NAMED_MAX], "and 7 more");
    }

    #[test]
    fn a_kernel_that_tells_of_them_has_none() {
        let dir = cgroups(&[("a".into(), "10000 100000\n")]);
        let mut kept = Unkept::default();
        assert!(kept.lines().is_empty());
        let mut unkept = Unkept { root: Some(dir.path().into()), ..Unkept::default() };
        assert_eq!(unkept.lines().len(), 1);
        // What was seen is believed for a while.
        fs::write(dir.path().join("a/cpu.max"), "max 100000\n").unwrap();
        assert_eq!(unkept.lines().len(), 1);
    }
}
