/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gate "equalizing": boost receiver j over running task i only if r_j + h < r_i (thesis 3.2).
 *
 * r is the CPU time that a task has had since the task that most recently joined the run queue started running. So the
 * rule says: j goes first if it lags i by more than h. The scheduler passes positions on its CPU's fair clock instead
 * of raw times. A task that joins is placed at that clock, which is the same as setting every r to zero for it. The
 * clock runs slower for heavier tasks. So "equal" means equal by weight where nice levels and cgroup weights differ.
 *
 * h sets the volatility. If h is at least the longest possible lead, the gate never opens. With h = -H, a job may run
 * ahead of the others by up to H before the gate closes. Small |h| is fair at a fine grain and loses pairs: refusing to
 * switch is what breaks coscheduling up (thesis 3.2, Figure 3-4). Large negative h keeps pairs together for longer
 * turns. The debt is paid back either way, because the fair order that follows counts boosted time like any other. So h
 * sets the grain of fairness, not its long-run value.
 *
 * A boost lasts no longer than until the gate would deny it. A demand that has been denied is granted again only when
 * half of what h allows is paid back. Otherwise a job would start at the very edge. Its halves reach the edge at
 * slightly different times, and what one half runs beyond the other it spins for nothing.
 *
 * Example, h = -40 ms: the receiver has run 120 ms, the running task 90 ms. 120 - 40 = 80 < 90: it
 * is granted, for 10 ms. At 130 ms it is denied until the other has run more than 110 ms.
 */
#ifndef COSCHED_GATE_EQUALIZING_H
#define COSCHED_GATE_EQUALIZING_H

#include "policy.h"

/* @h_ns, but no lead that is never paid back: a CPU with very many tasks forgives what would take too long to repay. */
static inline s64 gate_equalizing_h(s64 h_ns, const struct cosched_demand *demand)
{
	s64 least_ns = demand->max_lead_ns <= COSCHED_S64_MAX ? -(s64)demand->max_lead_ns : COSCHED_S64_MIN;

	return h_ns > least_ns ? h_ns : least_ns;
}

/* How far the receiver may go until the gate closes at @h_ns, in ns on the fair clock; 0 or less: it is closed. */
static inline s64 gate_equalizing_room(s64 h_ns, const struct cosched_demand *demand)
{
	return cosched_sub_s64(demand->running_ran_ns, cosched_add_s64(demand->receiver_ran_ns, h_ns));
}

static inline int gate_equalizing_opens(s64 h_ns, const struct cosched_demand *demand)
{
	h_ns = gate_equalizing_h(h_ns, demand);
	if (h_ns < 0 && demand->denied)
		h_ns /= 2;
	return gate_equalizing_room(h_ns, demand) > 0;
}

/*
 * How long the receiver may run until the gate closes at @h_ns, up to a slice. On a CPU where the task's weight is not
 * the average, CPU time and time on the fair clock differ.
 */
static inline u64 gate_equalizing_time(s64 h_ns, const struct cosched_policy *policy,
				       const struct cosched_demand *demand)
{
	s64 room_ns = gate_equalizing_room(gate_equalizing_h(h_ns, demand), demand);
	u64 slice_ns;

	if (room_ns <= 0)
		return 0;
	slice_ns = cosched_mul_u64_u32(room_ns, demand->scale) >> COSCHED_SCALE_SHIFT;
	return slice_ns < policy->slice_ns ? slice_ns : policy->slice_ns;
}

static inline u32 gate_equalizing_allows(const struct cosched_policy *policy,
					 const struct cosched_demand *demand)
{
	return gate_equalizing_opens(policy->h_ns, demand) ? COSCHED_REASON_lags : COSCHED_REASON_not_behind;
}

static inline u64 gate_equalizing_slice(const struct cosched_policy *policy,
					const struct cosched_demand *demand)
{
	return gate_equalizing_time(policy->h_ns, policy, demand);
}

#endif
