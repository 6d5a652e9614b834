// SPDX-License-Identifier: GPL-2.0-only
//! A letter for each job, by which lanes name it.

use std::collections::BTreeMap;

use crate::jobs::OTHER;

/// Of a job that is not in the table, and of those for which there is no letter.
pub const NONE: char = '*';

/// Letters by the jobs' names. A job keeps its letter for as long as it is there.
#[derive(Clone, Debug, Default)]
pub struct Letters(BTreeMap<String, char>);

impl Letters {
    /// Gives a letter to each of `jobs` that has none, and takes it from those that are gone.
    pub fn follow<'a>(&mut self, jobs: impl Iterator<Item = &'a String> + Clone) {
        self.0.retain(|known, _| jobs.clone().any(|job| job == known));
        for job in jobs.filter(|job| *job != OTHER) {
            let is_free = |letter: &char| !self.0.values().any(|taken| taken == letter);
            if !self.0.contains_key(job)
                && let Some(letter) = ('a'..='z').find(is_free)
            {
                self.0.insert(job.clone(), letter);
            }
        }
    }

    /// The letter of `job`.
    pub fn of(&self, job: &str) -> char {
        self.0.get(job).copied().unwrap_or(NONE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| name.to_string()).collect()
    }

    #[test]
    fn a_job_keeps_its_letter_and_leaves_it_to_another_when_it_is_gone() {
        let mut letters = Letters::default();
        letters.follow(names(&["/x", "/y", OTHER]).iter());
        assert_eq!((letters.of("/x"), letters.of("/y"), letters.of(OTHER)), ('a', 'b', NONE));
        letters.follow(names(&["/z", "/y"]).iter());
        assert_eq!((letters.of("/x"), letters.of("/y"), letters.of("/z")), (NONE, 'b', 'a'));
    }

    #[test]
    fn when_letters_run_out_the_rest_has_none() {
        let jobs: Vec<String> = (10..40).map(|i| format!("/{i}")).collect();
        let mut letters = Letters::default();
        letters.follow(jobs.iter());
        assert_eq!((letters.of("/35"), letters.of("/36")), ('z', NONE));
    }
}
