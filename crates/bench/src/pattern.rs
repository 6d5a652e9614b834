// SPDX-License-Identifier: GPL-2.0-only
//! Which processes of a job talk to which.

use std::fmt;

use cosched_sim::jobs::neighbour;
use serde::{Deserialize, Serialize};

/// What a job of one process on each node does (`bench spmd`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// Computes and meets at a barrier (BARRIER in Dusseau 3.2).
    Bulk,
    /// After the barrier reads from its neighbours in a grid, and meets again (NEWS).
    News,
    /// After the barrier reads from all others in turn, and meets again (TRANSPOSE).
    Transpose,
    /// Reads from one at random after each computation, and meets each 100 ms (Arpaci-Dusseau 5.2).
    Random,
    /// Sends twice to each of its neighbours in a row and receives as often, and meets nowhere (Zhang 3.2).
    Line,
}

impl Pattern {
    /// Those of jobs that go on until their time is over: all but that of jobs that come and go.
    pub const ENDLESS: [Pattern; 4] = [Pattern::Bulk, Pattern::News, Pattern::Transpose, Pattern::Random];

    /// From whom process `rank` of so many reads between two barriers, in order.
    pub fn reads(self, rank: usize, number: usize) -> Vec<usize> {
        match self {
            Pattern::Bulk | Pattern::Random | Pattern::Line => Vec::new(),
            Pattern::News => neighbours(rank, number),
            Pattern::Transpose => (1..number).map(|step| (rank + step) % number).collect(),
        }
    }
}

/// Those before and after a process in a row of so many, which has two ends.
pub fn beside(rank: usize, number: usize) -> impl Iterator<Item = usize> {
    [rank.checked_sub(1), Some(rank + 1).filter(|next| *next < number)].into_iter().flatten()
}

/// In the torus of `sim paper`. Where that is two wide, a process has the same neighbour on both sides; itself it does
/// not read from.
fn neighbours(rank: usize, number: usize) -> Vec<usize> {
    let all = (0..4).map(|read| neighbour(rank as u32, number as u32, read) as usize);
    all.filter(|peer| *peer != rank).collect()
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.pad(match self {
            Pattern::Bulk => "bulk",
            Pattern::News => "news",
            Pattern::Transpose => "transpose",
            Pattern::Random => "random",
            Pattern::Line => "line",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_those_of_a_grid_without_edges() {
        assert_eq!(Pattern::News.reads(0, 16), [12, 1, 3, 4]);
        assert_eq!(Pattern::News.reads(5, 8), [1, 6, 4, 1], "two rows of four");
        assert_eq!(Pattern::News.reads(3, 4), [1, 2, 2, 1]);
        assert_eq!(Pattern::News.reads(1, 2), [0, 0], "a row has no other north of it");
    }

    #[test]
    fn a_row_has_two_ends() {
        let all: Vec<Vec<usize>> = (0..3).map(|rank| beside(rank, 3).collect()).collect();
        assert_eq!(all, [vec![1], vec![0, 2], vec![1]]);
        assert_eq!(beside(0, 1).count(), 0);
    }

    #[test]
    fn a_transpose_reads_from_all_others() {
        assert_eq!(Pattern::Transpose.reads(2, 4), [3, 0, 1]);
        assert!(Pattern::Bulk.reads(0, 4).is_empty());
    }

    #[test]
    fn each_has_one_name_everywhere() {
        for pattern in Pattern::ENDLESS.into_iter().chain([Pattern::Line]) {
            assert_eq!(serde_json::to_string(&pattern).unwrap(), format!("\"{pattern}\""));
        }
    }
}
