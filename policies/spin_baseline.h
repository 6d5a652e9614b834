/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spin "baseline": 2L + 2o + W (Arpaci-Dusseau 3.3).
 *
 * A request goes out, L; is taken, o; answered, o; and the answer comes back, L. If the peer was not running, its node
 * needs W to switch to it. A receiver that spins for as long as that stays on its CPU if its peer is scheduled or
 * becomes so by the request. If the peer does not, the receiver loses no more than that time.
 */
#ifndef COSCHED_SPIN_BASELINE_H
#define COSCHED_SPIN_BASELINE_H

#include "policy.h"

static inline u64 spin_baseline_ns(const struct cosched_policy *policy)
{
	u64 one_way_ns = cosched_add_u64(policy->latency_ns, policy->overhead_ns);

	return cosched_add_u64(cosched_mul_u64_u32(one_way_ns, 2), policy->switch_ns);
}

#endif
