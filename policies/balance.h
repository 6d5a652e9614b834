/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance: which CPU of a node takes a task that waits on another one.
 *
 * A CPU that idles takes any waiting task. Busy CPUs have to compare. Otherwise tasks that never sleep would stay where
 * they happened to start. Of three tasks on two CPUs, two would have half of a CPU for good, and the third a whole CPU.
 *
 * A busy CPU compares how much room there has been on each CPU of late (fair_room()). That is a mean over time, since
 * tasks that wait for messages come and go. The load of a CPU is the weight that leaves so much room. A task moves if
 * the loads differ by its own weight. So tasks change sides again and again, each in its turn, and all have the same.
 * Of several tasks that may move, the task that evens out most does. Otherwise a heavy task would change sides for
 * ever, and the light tasks would never follow.
 *
 * A task that sleeps often is seldom found waiting. It looks for a less busy CPU itself, now and then when it wakes.
 * The smaller the part of the time in which it runs, the less of a difference it makes. So a smaller difference of the
 * loads is enough.
 *
 * No paper has this; in theirs a node has one CPU.
 */
#ifndef COSCHED_BALANCE_H
#define COSCHED_BALANCE_H

#include "policy.h"

#define COSCHED_LOAD_PARTS	64	/* parts of a task's weight, by which loads can differ */
#define COSCHED_WAITS_PARTS	48	/* for a task that waits: the mean with one task more is that close soon */
#define COSCHED_WAKES_PARTS	16	/* the most for a task that wakes */
#define COSCHED_LEAST_PARTS	4	/* the least: what runs for less makes no difference that is worth a move */
#define COSCHED_REST_NS		300000000ULL	/* for which a task that has moved stays */
#define COSCHED_SHARE_SHIFT	20	/* shares are in 1 / 2^20 of a CPU */

/*
 * By how many parts of its weight loads have to differ for a task that wakes. It has run for @ran_ns in the last
 * @passed_ns. It makes no more of a load than that, so it does not leave the other CPU busier than its own was.
 */
static inline u32 cosched_wakes_parts(u64 ran_ns, u64 passed_ns)
{
	u64 parts = passed_ns ? ran_ns * COSCHED_LOAD_PARTS / passed_ns : COSCHED_WAKES_PARTS;

	if (parts < COSCHED_LEAST_PARTS)
		return COSCHED_LEAST_PARTS;
	return parts < COSCHED_WAKES_PARTS ? parts : COSCHED_WAKES_PARTS;
}

/*
 * Is a CPU's load @here less than another's load @there by so many @parts of the @weight of a task there? @far: the
 * CPUs do not share their memory. Then a move costs for as long as the task stays, and the loads have to differ by
 * another whole weight.
 */
static inline int cosched_load_differs(u64 here, u64 there, u32 weight, u32 parts, int far)
{
	u64 all = (u64)parts + (far ? COSCHED_LOAD_PARTS : 0);

	return there > here && there - here >= weight * all / COSCHED_LOAD_PARTS;
}

/* How far apart the loads @here and @there are once a task of @weight has come here, whichever is the larger then. */
static inline u64 cosched_left_apart(u64 here, u64 there, u32 weight)
{
	u64 after_here = here + weight, after_there = there - weight;

	return (s64)(after_here - after_there) < 0 ? after_there - after_here : after_here - after_there;
}

/* Is a task whose share is @share_there of its CPU no worse off with @share_here of another one? */
static inline int cosched_move_pays(u64 share_here, u64 share_there)
{
	return share_here >= share_there - share_there / 16;
}

/*
 * May a task that waits move again, so long since it moved last? Which task waits when a CPU looks is chance. Say that
 * two of three tasks share one of two CPUs, and that one of the two has just come. It would be as likely to go as the
 * other task, and whichever stays has a CPU to itself.
 */
static inline int cosched_has_rested(u64 since_ns)
{
	return since_ns >= COSCHED_REST_NS;
}

#endif
