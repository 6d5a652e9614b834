/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gate "rate": boost only if 2^E (Tc - Tp) + C >= Tq R (thesis 4.2.1, equation 4.1; Buchanan-Chien
 * 2.2.2).
 *
 * Tc - Tp is the time since this receiver's last boost. Tq R is the time that the CPU needs to go once round its R
 * runnable tasks. With E = 0 and C = 0 a task gets one boost a round, which for one slice a boost is its fair share.
 * E > 0 allows 2^E boosts a round, E < 0 one boost in 2^-E rounds. C shifts the point by a constant, for kernels whose
 * slices are not all alike.
 *
 * R is read in two ways. To the thesis it is the length of the run queue, as it is when a message comes. Buchanan and
 * Chien's monitor tells the network card every now and then how many threads have waited for the CPU in the mean
 * (2.2.1), and the running thread does not wait. That is rate_average.
 *
 * The rule is crude, as its author says: it counts boosts, not CPU time, and asks for tuning by hand.
 * It needs nothing but a clock and a queue length, though, which is why it ran on a network card.
 *
 * The scaled time is rounded down. That is exact: C and Tq R are whole numbers of ns, so the
 * comparison cannot tell a number from its floor.
 */
#ifndef COSCHED_GATE_RATE_H
#define COSCHED_GATE_RATE_H

#include "fair.h"
#include "policy.h"

/* Tq R, in ns. */
static inline u64 gate_rate_round(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	u64 waiting = demand->mean_waiting;

	if (!policy->rate_average)
		return cosched_mul_u64_u32(policy->slice_ns, demand->nr_runnable);
	return cosched_mul_u64_u32(policy->slice_ns, waiting < (u32)-1 ? waiting : (u32)-1) >> FAIR_MEAN_SHIFT;
}

static inline u32 gate_rate_allows(const struct cosched_policy *policy,
				   const struct cosched_demand *demand)
{
	/* Clocks of two CPUs may disagree by a little: a boost in the future was just now. */
	u64 since_ns = demand->now_ns > demand->last_boost_ns ?
		       demand->now_ns - demand->last_boost_ns : 0;
	u64 left = cosched_scale_u64(since_ns, policy->rate_exponent);
	u64 right = gate_rate_round(policy, demand);
	s64 constant_ns = policy->rate_constant_ns;

	/* Keep both sides unsigned: a negative C moves to the other side. */
	if (constant_ns >= 0)
		left = cosched_add_u64(left, (u64)constant_ns);
	else
		right = cosched_add_u64(right, 0 - (u64)constant_ns);

	return left >= right ? COSCHED_REASON_interval : COSCHED_REASON_too_soon;
}

#endif
