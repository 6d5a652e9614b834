/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which task is put first by the periodic boost, and by a task that yields (Zhang 2.4.4, 2.4.2).
 *
 * The tasks of a CPU are looked at one after the other, and each is compared with the best so far. What is left at the
 * end is the choice. "Round robin from the current task" is the order of their numbers, from that of the running task
 * on and around.
 *
 *	round-robin	the first task with a message for the receive that it is in; else the first that is not in a
 *			receive; else none. The paper's choice, one of eight that its authors tried
 *	next-pending	the first task with a message
 *	most-pending	the task with most messages
 *	longest-waiting	the task whose message came first
 */
#ifndef COSCHED_BOOST_CHOICE_H
#define COSCHED_BOOST_CHOICE_H

#include "policy.h"

/* A task that waits for its CPU. */
struct cosched_candidate {
	u32 distance;			/* how far its number is from that of the running task, going up and around */
	u32 receives;			/* it is inside a receive */
	u32 pending;			/* messages that wait for it; 0: none */
	u32 reserved;
	u64 arrival_ns;			/* when the first of them came */
};

/* Would @choice boost this task at all, and how much rather than others? 0: no. */
COSCHED_APART u32 cosched_choice_rank(u32 choice, const struct cosched_candidate *candidate COSCHED_NONNULL)
{
	if (choice == COSCHED_CHOICE_ROUND_ROBIN && !candidate->receives)
		return 1;
	return candidate->pending ? 2 : 0;
}

/* Is @candidate to be boosted rather than @best, which may be any task that has a rank? */
COSCHED_APART int cosched_choice_prefers(u32 choice, const struct cosched_candidate *candidate COSCHED_NONNULL,
					 const struct cosched_candidate *best COSCHED_NONNULL)
{
	u32 rank = cosched_choice_rank(choice, candidate), best_rank = cosched_choice_rank(choice, best);

	if (rank != best_rank)
		return rank > best_rank;
	if (choice == COSCHED_CHOICE_MOST_PENDING && candidate->pending != best->pending)
		return candidate->pending > best->pending;
	if (choice == COSCHED_CHOICE_LONGEST_WAITING && candidate->arrival_ns != best->arrival_ns)
		return candidate->arrival_ns < best->arrival_ns;
	return candidate->distance < best->distance;
}

#endif
