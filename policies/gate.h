/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The one question that the scheduler asks: may the receiver of a message run now?
 *
 * An unknown rule denies. The loader never writes one, but a policy is data, and data that the
 * scheduler does not understand must not be worth CPU time.
 */
#ifndef COSCHED_GATE_H
#define COSCHED_GATE_H

#include "policy.h"
#include "gate_always.h"
#include "gate_auto.h"
#include "gate_epochs.h"
#include "gate_equalizing.h"
#include "gate_rate.h"

/* Does @policy ever boost a task? A task that yields has another one take its place (Zhang 2.4.2). */
static inline int cosched_boosts(const struct cosched_policy *policy)
{
	return policy->arrival == COSCHED_ARRIVAL_DEMAND || policy->arrival == COSCHED_ARRIVAL_PERIODIC ||
	       policy->arrival == COSCHED_ARRIVAL_BEAT || policy->wait == COSCHED_WAIT_SPIN_YIELD;
}

static inline u32 cosched_gate_allows(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	switch (policy->gate) {
	case COSCHED_GATE_ALWAYS:
		return gate_always_allows();
	case COSCHED_GATE_EQUALIZING:
	case COSCHED_GATE_EPOCHS:
		return gate_equalizing_allows(policy, demand);
	case COSCHED_GATE_RATE:
		return gate_rate_allows(policy, demand);
	case COSCHED_GATE_AUTO:
		return gate_auto_allows(policy, demand);
	default:
		return COSCHED_REASON_no_demand;
	}
}

static inline u32 cosched_gate_decide(const struct cosched_policy *policy, const struct cosched_demand *demand)
{
	u32 reason;

	if (!cosched_boosts(policy))
		return COSCHED_REASON_no_demand;
	reason = cosched_gate_allows(policy, demand);
	return cosched_reason_grants(reason) ? gate_epochs_allows(policy, demand, reason) : reason;
}

/* For how long a boost that the gate grants lasts, in ns of CPU time: a slice at most. */
static inline u64 cosched_gate_slice(const struct cosched_policy *policy,
				     const struct cosched_demand *demand)
{
	switch (policy->gate) {
	case COSCHED_GATE_EQUALIZING:
	case COSCHED_GATE_EPOCHS:
		return gate_equalizing_slice(policy, demand);
	case COSCHED_GATE_AUTO:
		return gate_auto_slice(policy, demand);
	default:
		return policy->slice_ns;
	}
}

#endif
