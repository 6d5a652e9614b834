// SPDX-License-Identifier: GPL-2.0-only
//! Where a job goes: to slots on as many nodes as it has processes, if there are so many (Zhang 2.2, 2.3).
//!
//! Each node has as many slots as the multiprogramming level says. Under gang scheduling a slot is a row of the
//! Ousterhout matrix, and a job needs all its cells in one row: the first that has enough. Else any slot does, a job
//! goes to the nodes that have most of them free, and of equals to the first. Who does not fit waits, and all behind
//! him (FCFS).

/// The slots of all nodes.
#[derive(Clone, Debug)]
pub struct Slots {
    level: u32,
    /// Of the first node, then of the second, and so on.
    taken: Vec<bool>,
}

impl Slots {
    /// All free.
    pub fn new(nodes: u32, level: u32) -> Slots {
        Slots { level, taken: vec![false; nodes as usize * level as usize] }
    }

    fn nodes(&self) -> u32 {
        (self.taken.len() / self.level as usize) as u32
    }

    fn slots_of(&self, node: u32) -> &[bool] {
        let begin = node as usize * self.level as usize;
        &self.taken[begin..begin + self.level as usize]
    }

    /// Takes slots for a job of this size, in any row or all in the same one. Returns the slots' places, which are the
    /// node times the level plus the slot; none, if it has to wait.
    pub fn take(&mut self, size: u32, one_row: bool) -> Option<Vec<u32>> {
        let places = if one_row { self.in_one_row(size) } else { self.anywhere(size) }?;
        places.iter().for_each(|&place| self.taken[place as usize] = true);
        Some(places)
    }

    fn in_one_row(&self, size: u32) -> Option<Vec<u32>> {
        (0..self.level).find_map(|row| {
            let free = (0..self.nodes()).map(|node| node * self.level + row);
            let places: Vec<u32> = free.filter(|&place| !self.taken[place as usize]).take(size as usize).collect();
            (places.len() == size as usize).then_some(places)
        })
    }

    fn anywhere(&self, size: u32) -> Option<Vec<u32>> {
        let free = |node: u32| self.slots_of(node).iter().filter(|taken| !**taken).count();
        let mut nodes: Vec<u32> = (0..self.nodes()).filter(|&node| free(node) > 0).collect();
        if nodes.len() < size as usize {
            return None;
        }
        nodes.sort_by_key(|&node| std::cmp::Reverse(free(node)));
        nodes.truncate(size as usize);
        // Neighbours in the job are neighbours among the nodes too.
        nodes.sort_unstable();
        let first = |node: u32| {
            let slot = self.slots_of(node).iter().position(|taken| !taken).expect("one is free");
            node * self.level + slot as u32
        };
        Some(nodes.into_iter().map(first).collect())
    }

    /// Gives slots back.
    pub fn give(&mut self, places: &[u32]) {
        places.iter().for_each(|&place| self.taken[place as usize] = false);
    }

    /// The rows in which somebody is, first to last.
    pub fn rows(&self) -> Vec<u32> {
        let in_row = |row: u32| (0..self.nodes()).any(|node| self.slots_of(node)[row as usize]);
        (0..self.level).filter(|&row| in_row(row)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gang_needs_one_row_and_others_do_not() {
        for (in_one_row, fits) in [(true, false), (false, true)] {
            let mut slots = Slots::new(4, 2);
            let first = slots.take(3, in_one_row).unwrap();
            assert_eq!(first, [0, 2, 4]);
            // A row has one cell left, the other four; or each node has one slot and the last two.
            let second = slots.take(3, in_one_row).unwrap();
            assert_eq!(second, if in_one_row { [1, 3, 5] } else { [1, 3, 6] });
            assert_eq!(slots.rows(), [0, 1]);
            assert_eq!(slots.take(2, in_one_row).is_some(), fits);
            assert!(slots.take(3, in_one_row).is_none());
            slots.give(&first);
            assert!(slots.take(3, in_one_row).is_some());
        }
    }

    #[test]
    fn nodes_fill_up_evenly() {
        let mut slots = Slots::new(4, 3);
        assert_eq!(slots.take(2, false), Some(vec![0, 3]));
        assert_eq!(slots.take(2, false), Some(vec![6, 9]));
        assert_eq!(slots.take(4, false), Some(vec![1, 4, 7, 10]));
        assert!(slots.take(5, false).is_none());
        assert_eq!(slots.rows(), [0, 1]);
    }
}
