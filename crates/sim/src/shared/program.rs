// SPDX-License-Identifier: GPL-2.0-only
//! What the processes of a parallel job do: compute, send, receive, and begin again.

/// What is exchanged in an iteration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pattern {
    /// One message goes to and fro between the processes 2i and 2i + 1, as in the demo: one of them waits while the
    /// other computes. A process with an odd number begins with the wait. It takes an even number of processes.
    Token,
    /// All send to both neighbours on a ring and receive from both.
    Ring,
    /// And then all meet, by dissemination: in round k each sends to the process 2^k further on, and receives from that
    /// 2^k behind, until 2^k is their number. That is a barrier or a small reduction, as message-passing libraries do
    /// them.
    Meeting,
}

/// How a process waits for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receiver {
    /// It polls.
    Spin,
    /// It sleeps, unless the policy has it spin before.
    Block,
}

/// A job.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// Who sends to whom.
    pub pattern: Pattern,
    /// How it waits.
    pub receiver: Receiver,
    /// How long a process computes in an iteration, in ns, in the mean.
    pub grain_ns: u64,
    /// By how much that differs from process to process and time to time, in ns: uniform, at most 2 grains.
    pub imbalance_ns: u64,
}

/// The most channels that a process of any job on [`MOST_NODES`] nodes receives from.
pub const CHANNELS: usize = 18;
/// The most nodes.
pub const MOST_NODES: u32 = 1 << 16;

/// What a process does in one of the rounds of an iteration: at most two messages go out and two come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// To whom, as a distance on the ring of all, and in which channel of his.
    pub sends: [Option<(u32, u8)>; 2],
    /// From which of its own channels.
    pub receives: [Option<u8>; 2],
}

impl Program {
    /// How many rounds an iteration of a job with so many processes has; 0: nobody to talk to.
    pub fn rounds(&self, processes: u32) -> u8 {
        let meeting = match self.pattern {
            Pattern::Meeting => processes.next_power_of_two().trailing_zeros() as u8,
            Pattern::Token | Pattern::Ring => 0,
        };
        if processes < 2 { 0 } else { 1 + meeting }
    }

    /// The round with this number of a process that has this rank.
    pub fn round(&self, number: u8, rank: u32, processes: u32) -> Round {
        if self.pattern == Pattern::Token {
            let peer = if rank.is_multiple_of(2) { 1 } else { processes - 1 };
            return Round { sends: [Some((peer, 0)), None], receives: [Some(0), None] };
        }
        match number {
            // Both neighbours of one of two are the other.
            0 => Round { sends: [Some((1, 0)), Some((processes - 1, 1))], receives: [Some(0), Some(1)] },
            k => Round { sends: [Some(((1 << (k - 1)) % processes, 1 + k)), None], receives: [Some(1 + k), None] },
        }
    }

    /// Which rank sends on this channel of the process that has this rank.
    pub fn source(&self, channel: u8, rank: u32, processes: u32) -> u32 {
        let behind = match (self.pattern, channel) {
            (Pattern::Token, _) if rank.is_multiple_of(2) => processes - 1,
            (Pattern::Token, _) | (_, 0) => 1,
            (_, 1) => processes - 1,
            (_, k) => (1 << (k - 2)) % processes,
        };
        (rank + processes - behind) % processes
    }

    /// What a process of a job with so many computes in an iteration when all is even, in ns, each message taking
    /// `overhead_ns` to send and as much to receive.
    pub fn work_ns(&self, processes: u32, overhead_ns: u64) -> u64 {
        let messages = match self.pattern {
            _ if processes < 2 => 0,
            Pattern::Token => 1,
            Pattern::Ring | Pattern::Meeting => 1 + u64::from(self.rounds(processes)),
        };
        self.grain_ns + 2 * messages * overhead_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(pattern: Pattern) -> Program {
        Program { pattern, receiver: Receiver::Spin, grain_ns: 1000, imbalance_ns: 0 }
    }

    #[test]
    fn what_is_sent_is_received() {
        for pattern in [Pattern::Token, Pattern::Ring, Pattern::Meeting] {
            for processes in [2u32, 3, 4, 7, 64] {
                if pattern == Pattern::Token && processes % 2 == 1 {
                    continue;
                }
                let program = program(pattern);
                let (mut sent, mut received) = (Vec::new(), Vec::new());
                for rank in 0..processes {
                    for number in 0..program.rounds(processes) {
                        let round = program.round(number, rank, processes);
                        let to = |(distance, channel): (u32, u8)| ((rank + distance) % processes, channel);
                        for (receiver, channel) in round.sends.into_iter().flatten().map(to) {
                            let source = program.source(channel, receiver, processes);
                            assert_eq!(source, rank, "{pattern:?} {processes}: {channel} of {receiver}");
                        }
                        sent.extend(round.sends.into_iter().flatten().map(to));
                        received.extend(round.receives.into_iter().flatten().map(|channel| (rank, channel)));
                    }
                }
                sent.sort_unstable();
                received.sort_unstable();
                assert_eq!(sent, received, "{pattern:?} {processes}");
            }
        }
        let most = program(Pattern::Meeting);
        assert_eq!(usize::from(most.rounds(MOST_NODES)) + 1, CHANNELS);
    }

    #[test]
    fn who_is_alone_only_computes() {
        assert_eq!(program(Pattern::Ring).rounds(1), 0);
        assert_eq!(program(Pattern::Ring).work_ns(1, 10), 1000);
        assert_eq!(program(Pattern::Token).work_ns(2, 10), 1020);
        assert_eq!(program(Pattern::Meeting).work_ns(8, 10), 1000 + 2 * 5 * 10);
    }
}
