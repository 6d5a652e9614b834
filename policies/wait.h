/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a task does that waits for a message: the columns of Zhang's Table 1.
 *
 * As with the gate, a rule that nobody knows does the least: the program waits in its own way.
 */
#ifndef COSCHED_WAIT_H
#define COSCHED_WAIT_H

#include "policy.h"
#include "wait_spin.h"

/* How long the wait that begins now may spin before it sleeps, in ns; 0: it sleeps at once. */
static inline u64 cosched_wait_begin(const struct cosched_policy *policy, struct cosched_wait_history *history)
{
	switch (policy->wait) {
	case COSCHED_WAIT_SPIN:
		return wait_spin_begin(policy, history);
	default:
		return 0;
	}
}

/* A wait that was allowed to spin has done so to the end, or until the message came. */
static inline void cosched_wait_end(const struct cosched_policy *policy, struct cosched_wait_history *history,
				    int message_came)
{
	switch (policy->wait) {
	case COSCHED_WAIT_SPIN:
		wait_spin_end(history, message_came);
		break;
	default:
		break;
	}
}

#endif
