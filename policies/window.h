/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The window over which the gate "auto" looks at fairness. It holds a task's CPU time on its CPU, and its fair share of
 * the same time. Both are forgotten exponentially.
 *
 * Every COSCHED_WINDOW_STEP_NS both lose 1 / COSCHED_WINDOW_STEPS of themselves, so the window is that many steps wide,
 * 2 s. After a gap of several steps they lose as many such parts of what there was. That is a little more than one
 * after the other, and spares a loop. After 2 s without a run nothing is left.
 *
 * A task may be behind its share for reasons of its own, such as a peer that is away for a second. What it could then
 * claim all at once is bounded: of a share that it has not used, all beyond COSCHED_WINDOW_CREDIT slices is forgotten.
 */
#ifndef COSCHED_WINDOW_H
#define COSCHED_WINDOW_H

#include "policy.h"

#define COSCHED_WINDOW_STEP_NS	125000000ULL
#define COSCHED_WINDOW_STEPS	16
#define COSCHED_WINDOW_CREDIT	4

/* It starts as zeroes. */
struct cosched_window {
	u64 cpu_ns;
	u64 fair_ns;
	u64 stepped_ns;			/* up to when it has forgotten */
};

/* Forgets what is due at @now_ns. */
static inline void cosched_window_step(struct cosched_window *window, u64 now_ns)
{
	u64 behind_ns = now_ns > window->stepped_ns ? now_ns - window->stepped_ns : 0;
	u64 steps = behind_ns / COSCHED_WINDOW_STEP_NS;

	if (steps >= COSCHED_WINDOW_STEPS) {
		window->cpu_ns = 0;
		window->fair_ns = 0;
		window->stepped_ns = now_ns;
		return;
	}
	window->cpu_ns -= window->cpu_ns / COSCHED_WINDOW_STEPS * steps;
	window->fair_ns -= window->fair_ns / COSCHED_WINDOW_STEPS * steps;
	window->stepped_ns += steps * COSCHED_WINDOW_STEP_NS;
}

/* A task has used @cpu_ns, and its fair share of the same time was @fair_ns. */
static inline void cosched_window_add(struct cosched_window *window, const struct cosched_policy *policy, u64 now_ns,
				      u64 cpu_ns, u64 fair_ns)
{
	u64 most_ns;

	cosched_window_step(window, now_ns);
	window->cpu_ns = cosched_add_u64(window->cpu_ns, cpu_ns);
	window->fair_ns = cosched_add_u64(window->fair_ns, fair_ns);
	most_ns = cosched_add_u64(window->cpu_ns, cosched_mul_u64_u32(policy->slice_ns, COSCHED_WINDOW_CREDIT));
	/* The credit is against the target: what could not be had under a target above 1 is not saved up either. */
	most_ns = cosched_mul_u64_u32(most_ns / (policy->target_permille ? policy->target_permille : 1), 1000);
	if (window->fair_ns > most_ns)
		window->fair_ns = most_ns;
}

#endif
