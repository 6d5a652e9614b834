/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task does while it waits for a message: the columns of Zhang's Table 1.
 *
 *	busy		what its program does: the task polls on, or it sleeps
 *	spin		a task that is about to sleep spins before (wait_spin.h)
 *	spin-block	the same, and a task that polls leaves the CPU after its spin time until a message comes
 *			(Zhang 2.4.1)
 *	spin-yield	the same, but the task lets the next one on its CPU go first (Zhang 2.4.2)
 *
 * How long a task spins is a choice of its own (spin.h). As with the gate, an unknown rule does the least: the program
 * waits in its own way.
 */
#ifndef COSCHED_WAIT_H
#define COSCHED_WAIT_H

#include "policy.h"
#include "spin.h"
#include "wait_spin.h"

/* Does a task that polls in vain leave its CPU to others? */
static inline int cosched_wait_parks(const struct cosched_policy *policy)
{
	return policy->wait == COSCHED_WAIT_SPIN_BLOCK || policy->wait == COSCHED_WAIT_SPIN_YIELD;
}

/* Does a receive that would sleep spin before? */
static inline int cosched_wait_spins(const struct cosched_policy *policy)
{
	return policy->wait == COSCHED_WAIT_SPIN || cosched_wait_parks(policy);
}

/* How long the wait that begins now may spin before it sleeps, in ns; 0: it sleeps at once. */
static inline u64 wait_begin(const struct cosched_policy *policy, struct cosched_wait_history *history)
{
	if (!cosched_wait_spins(policy))
		return 0;
	return wait_spin_begin(history) ? cosched_spin_ns(policy, history) : 0;
}

/* A wait that was allowed to spin has done so to the end, or until the message came. */
static inline void wait_end(const struct cosched_policy *policy, struct cosched_wait_history *history,
				    int message_came)
{
	if (cosched_wait_spins(policy))
		wait_spin_end(history, message_came);
}

#endif
