/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Balance: which CPU of a node takes a task that waits on another one.
 *
 * A CPU that idles takes whatever waits. Busy ones have to compare: tasks that never sleep, on CPUs whose number does
 * not divide theirs, would stay where they happened to start, and some would have half of a CPU and others a third
 * for good. What is compared is how many tasks a CPU has had to run of late, since those that wait for messages come
 * and go. A difference of one is enough: the one who goes changes sides with the others again and again, and in the
 * long run all have the same.
 *
 * No paper has this; in theirs a node has one CPU.
 */
#ifndef COSCHED_BALANCE_H
#define COSCHED_BALANCE_H

#include "policy.h"

#define COSCHED_LOAD_SHIFT	10	/* loads are in 1 / 2^10 tasks */
#define COSCHED_LOAD_AGE	32	/* ticks that the memory of a load reaches back */
#define COSCHED_LOAD_MAX_NR	(1U << 20)
#define COSCHED_LOAD_MARGIN	(3U << (COSCHED_LOAD_SHIFT - 2))	/* of one task: the mean of one more comes that close soon */
#define COSCHED_SHARE_SHIFT	20	/* shares are in 1 / 2^20 of a CPU */

/* The load of a CPU after a tick at which @nr tasks are runnable there. */
static inline u32 cosched_load_next(u32 load, u32 nr)
{
	u32 now = (nr < COSCHED_LOAD_MAX_NR ? nr : COSCHED_LOAD_MAX_NR) << COSCHED_LOAD_SHIFT;

	return load - load / COSCHED_LOAD_AGE + now / COSCHED_LOAD_AGE;
}

/*
 * Does a CPU of load @here have less to do than one of load @there? @far: its memory is another one, which is dear
 * for as long as a task stays, so there has to be one task more to be had.
 */
static inline int cosched_load_differs(u32 here, u32 there, u32 far)
{
	return there >= here + COSCHED_LOAD_MARGIN + (far << COSCHED_LOAD_SHIFT);
}

/* Is a task whose share is @share_there of its CPU no worse off with @share_here of another one? */
static inline int cosched_move_pays(u64 share_here, u64 share_there)
{
	return share_here >= share_there - share_there / 16;
}

#endif
