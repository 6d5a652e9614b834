/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spin "conditional": the baseline, and on for as long as a message has come within the last 3W + 2o
 * (Arpaci-Dusseau 3.4).
 *
 * A process that waits for one answer may be asked by others meanwhile. If it sleeps, each of those messages costs
 * a wake-up here, and each of their senders spins in vain and is woken too. 3W + 2o is the interval between such
 * messages at which spinning and sleeping cost the system the same. Whether the next one will come that soon is not
 * known; that the last one did is taken for it.
 */
#ifndef COSCHED_SPIN_CONDITIONAL_H
#define COSCHED_SPIN_CONDITIONAL_H

#include "policy.h"

static inline u64 spin_conditional_interval_ns(const struct cosched_policy *policy)
{
	u64 switches_ns = cosched_mul_u64_u32(policy->switch_ns, 3);

	return cosched_add_u64(switches_ns, cosched_mul_u64_u32(policy->overhead_ns, 2));
}

/* May a wait that is over go on, if another message for the task came @since_arrival_ns ago? */
static inline int spin_conditional_goes_on(const struct cosched_policy *policy, u64 since_arrival_ns)
{
	return since_arrival_ns < spin_conditional_interval_ns(policy);
}

#endif
