/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance: which CPU of a node takes a task that waits on another one.
 *
 * A CPU that idles takes whatever waits. Busy ones have to compare: tasks that never sleep, on CPUs whose number does
 * not divide theirs, would stay where they happened to start, and some would have half of a CPU and others a third
 * for good. What is compared is how much room there was on a CPU of late (fair_room()), as the weight that leaves so
 * much, since those that wait for messages come and go. A difference of the one who goes is enough: he changes sides with the
 * others again and again, and in the long run all have the same.
 *
 * One that sleeps often is seldom found waiting. He looks himself now and then, when he wakes. What he brings along is
 * less than his weight.
 *
 * No paper has this; in theirs a node has one CPU.
 */
#ifndef COSCHED_BALANCE_H
#define COSCHED_BALANCE_H

#include "policy.h"

#define COSCHED_LOAD_EIGHTHS	6	/* of a task's weight: the mean of one more comes that close soon */
#define COSCHED_WAKE_EIGHTHS	2	/* the same of one that sleeps often */
#define COSCHED_SHARE_SHIFT	20	/* shares are in 1 / 2^20 of a CPU */

/*
 * Does a CPU of load @here have less to do than one of load @there, by what a task of @weight makes of a difference?
 * @woken: it has just woken there. @far: its memory is another one, which is dear for as long as a task stays, so there
 * has to be as much more to be had.
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
