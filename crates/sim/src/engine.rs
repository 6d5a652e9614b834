// SPDX-License-Identifier: GPL-2.0-only
//! The engine: events in the order of their times, and of equal times in the order in which they were scheduled.
//!
//! Time is an integer number of ns since the start, so nothing is lost to rounding, and the order is total: one seed
//! makes one trace, byte for byte.
//!
//! Most delays of a simulated cluster are constants: the latency of the network, a context switch, a tick. Whatever is
//! scheduled with one constant delay falls due in the order in which it was scheduled, so it needs no priority queue:
//! each such delay has a lane, which is a ring buffer with O(1) in and out. Only delays that vary go to the heap, which
//! is 4-ary since that halves its height at no more cache lines a level. An event that is cancelled stays where it is,
//! and its receiver passes it over.

use std::collections::VecDeque;

/// A point in time, or the end of time for what never comes, in ns.
pub const NEVER_NS: u64 = u64::MAX;

const ARITY: usize = 4;
const NOTHING: u128 = u128::MAX;

/// An event with its place in the order: the time in the high half, the sequence number in the low one.
#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    key: u128,
    event: E,
}

/// Which lane a constant delay has: a number below that of [`Queue::new`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lane(pub usize);

/// The events to come.
#[derive(Debug)]
pub struct Queue<E> {
    now_ns: u64,
    sequence: u64,
    heap: Vec<Entry<E>>,
    lanes: Vec<VecDeque<Entry<E>>>,
    /// The key of the first event in each lane.
    fronts: Vec<u128>,
}

impl<E: Copy> Queue<E> {
    /// An empty queue at time 0, with lanes for this many constant delays.
    pub fn new(lanes: usize) -> Self {
        Queue {
            now_ns: 0,
            sequence: 0,
            heap: Vec::new(),
            lanes: (0..lanes).map(|_| VecDeque::new()).collect(),
            fronts: vec![NOTHING; lanes],
        }
    }

    /// The time of the event that was taken last, in ns.
    #[inline]
    pub fn now_ns(&self) -> u64 {
        self.now_ns
    }

    /// How many events wait, those included that their receivers will pass over.
    pub fn len(&self) -> usize {
        self.heap.len() + self.lanes.iter().map(VecDeque::len).sum::<usize>()
    }

    /// Whether no event is left.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn entry(&mut self, at_ns: u64, event: E) -> Entry<E> {
        debug_assert!(at_ns >= self.now_ns, "the past is over");
        self.sequence += 1;
        Entry { key: u128::from(at_ns) << 64 | u128::from(self.sequence), event }
    }

    /// Schedules `event` at `at_ns`, which must not be in the past.
    #[inline]
    pub fn at(&mut self, at_ns: u64, event: E) {
        let entry = self.entry(at_ns, event);
        self.push_heap(entry);
    }

    /// Schedules `event` after `delay_ns`, which should be the same for all that goes to `lane`: what would come out of
    /// order there goes to the heap.
    #[inline]
    pub fn after(&mut self, lane: Lane, delay_ns: u64, event: E) {
        let entry = self.entry(self.now_ns + delay_ns, event);
        let queue = &mut self.lanes[lane.0];
        match queue.back() {
            None => self.fronts[lane.0] = entry.key,
            Some(last) if last.key > entry.key => return self.push_heap(entry),
            Some(_) => {}
        }
        queue.push_back(entry);
    }

    /// Takes the next event, and makes its time the present.
    #[inline]
    pub fn pop(&mut self) -> Option<E> {
        let mut first = self.heap.first().map_or(NOTHING, |entry| entry.key);
        let mut from = None;
        for (lane, &key) in self.fronts.iter().enumerate() {
            if key < first {
                (first, from) = (key, Some(lane));
            }
        }
        if first == NOTHING {
            return None;
        }
        self.now_ns = (first >> 64) as u64;
        Some(match from {
            Some(lane) => self.pop_lane(lane),
            None => self.pop_heap(),
        })
    }

    #[inline]
    fn pop_lane(&mut self, lane: usize) -> E {
        let queue = &mut self.lanes[lane];
        let entry = queue.pop_front().expect("it has a front");
        self.fronts[lane] = queue.front().map_or(NOTHING, |next| next.key);
        entry.event
    }

    #[inline]
    fn push_heap(&mut self, entry: Entry<E>) {
        let mut place = self.heap.len();
        self.heap.push(entry);
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent].key < entry.key {
                break;
            }
            self.heap[place] = self.heap[parent];
            place = parent;
        }
        self.heap[place] = entry;
    }

    #[inline]
    fn pop_heap(&mut self) -> E {
        let last = self.heap.pop().expect("it has a first");
        let Some(&first) = self.heap.first() else { return last.event };
        let (mut place, len) = (0, self.heap.len());
        loop {
            let begin = place * ARITY + 1;
            if begin >= len {
                break;
            }
            let end = (begin + ARITY).min(len);
            let (mut least, mut key) = (begin, self.heap[begin].key);
            for child in begin + 1..end {
                if self.heap[child].key < key {
                    (least, key) = (child, self.heap[child].key);
                }
            }
            if last.key < key {
                break;
            }
            self.heap[place] = self.heap[least];
            place = least;
        }
        self.heap[place] = last;
        first.event
    }
}

/// What happens in a simulation.
pub trait Model {
    /// What can happen. Small, since it is copied about.
    type Event: Copy;

    /// `event` happens now. False: it had been cancelled, and does not count.
    fn handle(&mut self, event: Self::Event, queue: &mut Queue<Self::Event>) -> bool;

    /// Whether nothing is of interest any more.
    fn is_over(&self) -> bool;
}

/// Lets events happen until the model is over or none is left. `seen` is told of each before it happens: the trace.
/// Returns how many there were, without those that were cancelled.
pub fn run<M: Model>(model: &mut M, queue: &mut Queue<M::Event>, mut seen: impl FnMut(u64, &M::Event)) -> u64 {
    let mut events = 0;
    while !model.is_over() {
        let Some(event) = queue.pop() else { break };
        seen(queue.now_ns(), &event);
        events += u64::from(model.handle(event, queue));
    }
    events
}
