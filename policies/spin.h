/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How long a task that waits for a message spins, before it sleeps, leaves the CPU or yields it.
 *
 * "immediate" is not at all: right for a job whose peers never run at the same time. "fixed" is a time that the
 * operator has chosen. The papers say slightly more than a message takes (Zhang 2.4.1), or two switches and a round
 * trip (thesis 4.2.3). The others have files of their own.
 */
#ifndef COSCHED_SPIN_H
#define COSCHED_SPIN_H

#include "policy.h"
#include "spin_adaptive.h"
#include "spin_baseline.h"
#include "spin_conditional.h"

/* In ns; 0: not at all. */
static inline u64 cosched_spin_ns(const struct cosched_policy *policy, const struct cosched_wait_history *history)
{
	switch (policy->spin) {
	case COSCHED_SPIN_FIXED:
		return policy->spin_ns;
	case COSCHED_SPIN_BASELINE:
	case COSCHED_SPIN_CONDITIONAL:
		return spin_baseline_ns(policy);
	case COSCHED_SPIN_ADAPTIVE_LOCAL:
		return spin_adaptive_local_ns(policy, history);
	case COSCHED_SPIN_ADAPTIVE_GLOBAL:
		return spin_adaptive_global_ns(policy, history);
	default:
		return 0;
	}
}

/* May a wait whose time is over go on, if another message for the task came @since_arrival_ns ago? */
static inline int cosched_spin_goes_on(const struct cosched_policy *policy, u64 since_arrival_ns)
{
	return policy->spin == COSCHED_SPIN_CONDITIONAL && spin_conditional_goes_on(policy, since_arrival_ns);
}

/* A wait took @waited_ns. */
static inline void cosched_spin_learn(const struct cosched_policy *policy, struct cosched_wait_history *history,
				      u64 waited_ns)
{
	if (policy->spin == COSCHED_SPIN_ADAPTIVE_LOCAL || policy->spin == COSCHED_SPIN_ADAPTIVE_GLOBAL)
		spin_adaptive_learn(history, waited_ns);
}

#endif
