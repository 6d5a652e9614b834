// SPDX-License-Identifier: GPL-2.0-only
//! Core scheduling: cookies that keep tasks apart on the hyperthreads of a core (`PR_SCHED_CORE`). It has nothing to do
//! with coscheduling but the name. A machine where a task has a cookie can hang under any sched_ext scheduler, so that
//! only a reset helps (issue 3715 of the scx project, open in August 2026).

use std::fs;
use std::path::Path;

/// What to do about tasks with a cookie.
pub const REMEDY: &str = "end them, have their starter set no cookie, or turn hyperthreads off \
                          (echo off >/sys/devices/system/cpu/smt/control)";

/// The threads below `proc` that have a cookie, as `cookie_of` tells: how many, and what the first is called.
pub fn tagged(proc: &Path, cookie_of: impl Fn(u32) -> Option<u64>) -> Option<(usize, String)> {
    let has_cookie = |thread: &u32| cookie_of(*thread).is_some_and(|cookie| cookie != 0);
    let with_cookie: Vec<u32> = numbers(proc)
        .into_iter()
        .flat_map(|process| numbers(&proc.join(process.to_string()).join("task")))
        .filter(has_cookie)
        .collect();
    let first = with_cookie.first()?;
    let name = fs::read_to_string(proc.join(first.to_string()).join("comm")).unwrap_or_default();
    Some((with_cookie.len(), format!("{first}, '{}'", name.trim())))
}

/// The numbers that name directories of `dir`, in their order. Processes come and go meanwhile.
fn numbers(dir: &Path) -> Vec<u32> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut numbers: Vec<u32> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// The cookie of a thread, 0 if it has none. None if the kernel does not tell: it has no core scheduling, the machine
/// has no hyperthreads, or the thread is gone.
pub fn cookie_of(thread: u32) -> Option<u64> {
    let mut cookie = 0u64;
    let scope = libc::PR_SCHED_CORE_SCOPE_THREAD;
    // SAFETY: the kernel writes one number to `cookie`.
    let code = unsafe { libc::prctl(libc::PR_SCHED_CORE, libc::PR_SCHED_CORE_GET, thread, scope, &raw mut cookie) };
    (code == 0).then_some(cookie)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_with_a_cookie_are_counted_and_the_first_is_named() {
        let proc = tempfile::tempdir().unwrap();
        for (thread, name) in [("10/task/10", "init"), ("9/task/9", "qemu"), ("9/task/11", "vcpu"), ("self/task/9", "")]
        {
            let dir = proc.path().join(thread);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.parent().unwrap().parent().unwrap().join("comm"), format!("{name}\n")).unwrap();
        }
        let tagged = |cookies: &[u32]| tagged(proc.path(), |thread| Some(u64::from(cookies.contains(&thread))));
        assert_eq!(tagged(&[]), None);
        assert_eq!(tagged(&[10]), Some((1, "10, 'init'".into())));
        assert_eq!(tagged(&[9, 10, 11]).map(|(count, _)| count), Some(3));
    }

    #[test]
    fn our_own_threads_have_none() {
        assert_eq!(cookie_of(std::process::id()).unwrap_or(0), 0);
    }
}
