// SPDX-License-Identifier: GPL-2.0-only
//! Which thread is meant. A process names its threads as it sees them itself, which in a container is not as we do.

use std::fs;
use std::path::Path;

/// In a container a process may have this many threads; of one with more, not all are found. To look at one takes 60 us.
const THREADS_MAX: usize = 512;

/// The number of the thread that process `pid` itself calls `thread`.
///
/// What is found is of that process only if it has not ended meanwhile.
pub fn thread_of(pid: u32, thread: u32) -> Option<u32> {
    find(Path::new("/proc"), pid, thread)
}

fn find(proc: &Path, pid: u32, thread: u32) -> Option<u32> {
    let tasks = proc.join(pid.to_string()).join("task");
    let own_name = |task: &str| {
        let status = fs::read_to_string(tasks.join(task).join("status")).ok()?;
        innermost(&status)
    };
    // Outside of a container the names are the same: then there is nothing to look for.
    let same = thread.to_string();
    if own_name(&same) == Some(thread) {
        return Some(thread);
    }
    if own_name(&pid.to_string()) == Some(pid) {
        return None;
    }
    let entries = fs::read_dir(&tasks).ok()?.take(THREADS_MAX).flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    names.into_iter().find(|task| own_name(task) == Some(thread))?.parse().ok()
}

/// What a thread is called in the innermost namespace that it is in.
fn innermost(status: &str) -> Option<u32> {
    let names = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    names.split_whitespace().next_back()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_threads_are_found_and_no_others() {
        let pid = std::process::id();
        assert_eq!(thread_of(pid, pid), Some(pid));
        let other = std::thread::spawn(|| nix::unistd::gettid().as_raw() as u32);
        let gone = other.join().unwrap();
        assert_eq!(thread_of(pid, gone), None);
        assert_eq!(thread_of(pid, 1), None);
        assert_eq!(thread_of(u32::MAX, 1), None);
    }

    #[test]
    fn in_a_container_a_thread_has_another_name() {
        let proc = tempfile::tempdir().unwrap();
        for (task, names) in [("700", "700\t1"), ("703", "703\t4"), ("4", "4\t9")] {
            let task = proc.path().join("700/task").join(task);
            fs::create_dir_all(&task).unwrap();
            fs::write(task.join("status"), format!("Name:\ta\nNSpid:\t{names}\nThreads:\t3\n")).unwrap();
        }
        assert_eq!(find(proc.path(), 700, 1), Some(700));
        // Another thread is called 4 outside.
        assert_eq!(find(proc.path(), 700, 4), Some(703));
        assert_eq!(find(proc.path(), 700, 703), None);
        // A process that is called the same inside and outside has no thread of which that is not true.
        fs::write(proc.path().join("700/task/700/status"), "NSpid:\t700\n").unwrap();
        assert_eq!(find(proc.path(), 700, 1), None);
        assert_eq!(find(proc.path(), 700, 4), None);
    }
}
