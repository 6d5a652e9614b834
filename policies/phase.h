/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The life of a demand: which phase a task is in, and what brings it to another one.
 *
 *	BLOCKED	not runnable, or set aside (bpf/aside.bpf.h). Its messages are looked for when it becomes runnable
 *	WAITS	waits for its turn in the fair order
 *	ASKS	the same, and the gate is asked again whenever its CPU looks for work
 *	GRANTED	the gate has granted it a boost: it waits to be taken first, or is about to run
 *	PARKED	polls in vain, and waits for a message
 *	RUNS	on a CPU. Whatever takes it from there looks for messages
 *
 * A demand is a message for a task that does not run. What the gate answers, if it is asked, is one of
 *
 *	NOT_ASKED	the policy boosts no task for a message
 *	DENIED
 *	GIVEN
 *
 * What happens, and where that leads to:
 *
 *			BLOCKED	WAITS	ASKS	GRANTED	PARKED	RUNS
 *	queued		WAITS	-	-	-	WAITS	WAITS
 *	message: not asked	-	-	-	-	WAITS	-
 *		denied	-	ASKS	-	-	ASKS	-
 *		given	-	GRANTED	GRANTED	-	GRANTED	-
 *	parks		-	PARKED	-	-	-	-
 *	calms down	-	-	WAITS	-	WAITS	-
 *	runs		RUNS	RUNS	RUNS	RUNS	RUNS	RUNS
 *	stops		WAITS	WAITS	ASKS	GRANTED	WAITS	WAITS
 *	sleeps		BLOCKED everywhere
 *
 * "Stops": the task is preempted, or its slice is over. With a rest of a boost, RUNS leads to GRANTED. "Calms down":
 * the task asks and has no message any more, or it is parked and is to look again by itself.
 *
 * Messages come on any CPU at any time. Everything else happens on the task's own CPU, under the lock of its runqueue.
 * So a phase is changed by a comparison and exchange: if two CPUs change it at the same moment, one of them succeeds.
 * The other CPU's event is void. It was about a task that has moved on, to where its messages are looked for.
 */
#ifndef COSCHED_PHASE_H
#define COSCHED_PHASE_H

#include "policy.h"

enum cosched_phase {
	PHASE_BLOCKED,	/* a new task is */
	PHASE_WAITS,
	PHASE_ASKS,
	PHASE_GRANTED,
	PHASE_PARKED,
	PHASE_RUNS,
	NR_PHASES,
};

enum cosched_answer {
	ANSWER_NOT_ASKED,
	ANSWER_DENIED,
	ANSWER_GIVEN,
};

/* Is a task in @phase in a queue where a message may change what becomes of it? */
static inline int phase_hears(u32 phase)
{
	return phase == PHASE_WAITS || phase == PHASE_ASKS || phase == PHASE_PARKED;
}

/* A message has come, and the gate's @answer. */
static inline u32 phase_message(u32 phase, u32 answer)
{
	if (!phase_hears(phase))
		return phase;
	if (answer == ANSWER_GIVEN)
		return PHASE_GRANTED;
	if (answer == ANSWER_DENIED)
		return PHASE_ASKS;
	return phase == PHASE_PARKED ? PHASE_WAITS : phase;
}

/* The task comes to a queue. So does a parked task that has to move to another queue. */
static inline u32 phase_queued(u32 phase)
{
	return phase == PHASE_ASKS || phase == PHASE_GRANTED ? phase : PHASE_WAITS;
}

/* It is to be parked. */
static inline u32 phase_parks(u32 phase)
{
	return phase == PHASE_WAITS ? PHASE_PARKED : phase;
}

/* It has nothing to ask for any more, or is to look again by itself. */
static inline u32 phase_calms(u32 phase)
{
	return phase == PHASE_ASKS || phase == PHASE_PARKED ? PHASE_WAITS : phase;
}

/* It leaves its CPU and is runnable, with a @rest of a boost or not. The gate may have been asked just before. */
static inline u32 phase_stops(u32 phase, int rest)
{
	if (phase == PHASE_ASKS || phase == PHASE_GRANTED)
		return phase;
	return rest ? PHASE_GRANTED : PHASE_WAITS;
}

#endif
