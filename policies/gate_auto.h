/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gate "auto": boost a receiver until its fairness ratio F = N T_C / T_E is at its target. This is the automatic tuning
 * that the thesis asks for and does not have (4.1, 6.2.4).
 *
 * What is controlled is F over the last seconds (window.h). T_C is the CPU time that the task used on this CPU, and
 * T_E / N what its fair share was. The control is the simplest there is, on and off with hysteresis:
 *
 *	a boost is granted		while T_C < target T_E / N + band
 *	and once one was denied, only	while T_C < target T_E / N - band
 *
 * A boost lasts no longer than up to the upper bound. The band is 2.5% of the share of the last two seconds. It is no
 * less than two fifths of a slice: a turn much shorter than a slice wins nothing. Nor is it more than six fifths of a
 * slice. A task that is denied waits until the others have had what lies between the bounds, and short slices are for
 * short waits. Seen as the equalizing gate, h is set for each task and moment. So a task with half of a CPU may lead by
 * more than a task with a tenth. And F is held where the paper's rule lets it drift: for a task that sleeps, whose lag
 * the fair order forgets.
 *
 * Why it is stable: between two decisions the plant is an integrator. While the task runs, T_C grows by 1 and T_E / N
 * by 1 / N per unit of time; while it does not, T_C stands still. So the error moves towards the band from either side
 * at a rate that does not depend on the past. It reaches the band and stays in it. This is an on-off control of a
 * first-order system. It has a limit cycle as wide as the band, and cannot build up an oscillation. The delay is a
 * boost in the worst case, and a boost ends at the bound. When competitors come or go, N changes, but not the error.
 * What was used and what was due up to then are what they were, and both go on from there. So there is no transient of
 * F beyond the band, and what the band inherits from the time before is forgotten in some 2 s.
 *
 * A task is not boosted further ahead of the others in the fair order than COSCHED_AUTO_LEAD slices either. This is the
 * equalizing rule with that for -h. The window forgets in 2 s what half of the band has gained, and the order does not.
 * So a task that runs for long comes to this bound, and stays with it. Nor does the window see a lead where tasks of
 * one group wait for messages in turns, since each has a claim of its own on the group's share.
 *
 * What it cannot do: hold back a task that the fair order itself gives more than its share. Nor does a task that does
 * not want to run as much reach the target.
 */
#ifndef COSCHED_GATE_AUTO_H
#define COSCHED_GATE_AUTO_H

#include "gate_equalizing.h"
#include "policy.h"
#include "window.h"

#define COSCHED_AUTO_BAND_SHARE	40	/* 2.5%, half of what F may be off */
#define COSCHED_AUTO_LEAD	2	/* slices ahead of the fair order at most */

/* @permille / 1000 of @ns. */
static inline u64 gate_auto_part(u64 ns, u32 permille)
{
	return cosched_add_u64(cosched_mul_u64_u32(ns / 1000, permille), ns % 1000 * permille / 1000);
}

static inline u64 gate_auto_band(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	u64 band_ns = demand->fair_ns / COSCHED_AUTO_BAND_SHARE, fifth_ns = policy->slice_ns / 5;
	u64 most_ns = cosched_mul_u64_u32(fifth_ns, 6);

	if (band_ns > most_ns)
		return most_ns;
	return band_ns > 2 * fifth_ns ? band_ns : 2 * fifth_ns;
}

static inline u64 gate_auto_upper(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	return cosched_add_u64(gate_auto_part(demand->fair_ns, policy->target_permille),
			       gate_auto_band(policy, demand));
}

static inline u64 gate_auto_lower(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	u64 due_ns = gate_auto_part(demand->fair_ns, policy->target_permille), band_ns = gate_auto_band(policy, demand);

	return due_ns > band_ns ? due_ns - band_ns : 0;
}

static inline s64 gate_auto_h(const struct cosched_policy *policy)
{
	u64 lead_ns = cosched_mul_u64_u32(policy->slice_ns, COSCHED_AUTO_LEAD);

	return lead_ns < COSCHED_S64_MAX ? -(s64)lead_ns : -COSCHED_S64_MAX;
}

static inline u32 gate_auto_allows(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	u64 bound = demand->denied ? gate_auto_lower(policy, demand) : gate_auto_upper(policy, demand);

	if (!gate_equalizing_opens(gate_auto_h(policy), demand))
		return COSCHED_REASON_not_behind;
	return demand->cpu_ns < bound ? COSCHED_REASON_below_target : COSCHED_REASON_above_target;
}

/*
 * While a boost lasts the share grows too, which is left out: the boost ends a little early, and may be granted
 * again.
 */
static inline u64 gate_auto_slice(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	u64 upper = gate_auto_upper(policy, demand);
	u64 slice_ns = gate_equalizing_time(gate_auto_h(policy), policy, demand);

	if (demand->cpu_ns >= upper)
		return 0;
	return upper - demand->cpu_ns < slice_ns ? upper - demand->cpu_ns : slice_ns;
}

#endif
