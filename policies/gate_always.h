/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gate "always": boost on every arrival (thesis 3.1).
 *
 * The simplest rule and the one with the strongest coscheduling. With some hundreds of messages between spontaneous
 * switches, half of the time all nodes run the same job (thesis Figure 3-2). It is also completely unfair: a job that
 * sends a little more takes nearly everything. In Figure 3-3 rates of 0.49 and 0.50 mean full coscheduling for 2% and
 * 6% of the time. So this gate is for research, and for nodes where all jobs belong to one owner who wants exactly
 * that. The scheduler's bound on how long boosts may hold a CPU still applies.
 */
#ifndef COSCHED_GATE_ALWAYS_H
#define COSCHED_GATE_ALWAYS_H

#include "policy.h"

static inline u32 gate_always_allows(void)
{
	return COSCHED_REASON_always;
}

#endif
