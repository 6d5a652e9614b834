/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance: which CPU of a node takes a task that waits on another one.
 *
 * A CPU that idles takes any waiting task. Busy CPUs have to compare. Otherwise tasks that never sleep would stay where
 * they happened to start: of three tasks on two CPUs, two would have half of a CPU for good, and the third a whole one.
 *
 * A busy CPU compares how much room there has been on each CPU of late (fair_room()). That is a mean over time, since
 * tasks that wait for messages come and go. The load of a CPU is the weight that leaves so much room. A task moves if
 * the loads differ by its own weight: tasks change sides again and again, and in the long run all have the same.
 *
 * A task that sleeps often is seldom found waiting. It looks for a less busy CPU itself, now and then when it wakes.
 * Since it runs for a part of the time, a smaller difference is enough.
 *
 * No paper has this; in theirs a node has one CPU.
 */
#ifndef COSCHED_BALANCE_H
#define COSCHED_BALANCE_H

#include "policy.h"

#define COSCHED_LOAD_EIGHTHS	6	/* of a task's weight: the mean with one task more is that close soon */
#define COSCHED_WAKE_EIGHTHS	2	/* the same for a task that wakes: it runs for a part of the time */
#define COSCHED_SHARE_SHIFT	20	/* shares are in 1 / 2^20 of a CPU */

/*
 * Is the load @here of a CPU less than the load @there of another one by what a task of @weight makes of a difference?
 * @woken: the task wakes there. @far: the CPUs do not share their memory. Then a move costs for as long as the task
 * stays, and the loads have to differ by its weight more.
 */
static inline int cosched_load_differs(u64 here, u64 there, u32 weight, int woken, int far)
{
	u64 eighths = (woken ? COSCHED_WAKE_EIGHTHS : COSCHED_LOAD_EIGHTHS) + (far ? 8 : 0);

	return there > here && there - here >= weight * eighths / 8;
}

/* Is a task whose share is @share_there of its CPU no worse off with @share_here of another one? */
static inline int cosched_move_pays(u64 share_here, u64 share_there)
{
	return share_here >= share_there - share_there / 16;
}

#endif
