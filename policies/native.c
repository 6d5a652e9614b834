/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The rules as native code, for the tests, the simulator and `policy list`, and the names and helps
 * of everything that is counted, so that Rust reads them from where they are declared.
 */
#include "native.h"
#include "gate.h"
#include "wait.h"
#include "../bpf/counters.h"

u32 cosched_native_gate_decide(const struct cosched_policy *policy,
			       const struct cosched_demand *demand)
{
	return cosched_gate_decide(policy, demand);
}

u64 cosched_native_gate_slice(const struct cosched_policy *policy,
			      const struct cosched_demand *demand)
{
	return cosched_gate_slice(policy, demand);
}

u64 cosched_native_wait_begin(const struct cosched_policy *policy, struct cosched_wait_history *history)
{
	return cosched_wait_begin(policy, history);
}

void cosched_native_wait_end(const struct cosched_policy *policy, struct cosched_wait_history *history,
			     int message_came)
{
	cosched_wait_end(policy, history, message_came);
}

int cosched_native_reason_grants(u32 reason)
{
	return cosched_reason_grants(reason);
}

#define REASON_NAME(name, grants, help) #name,
#define REASON_HELP(name, grants, help) help,
const char *const cosched_reason_names[] = { COSCHED_REASONS(REASON_NAME) };
const char *const cosched_reason_helps[] = { COSCHED_REASONS(REASON_HELP) };

#define COUNTER_NAME(name, help) #name,
#define COUNTER_HELP(name, help) help,
const char *const cosched_counter_names[] = { COSCHED_COUNTERS(COUNTER_NAME) };
const char *const cosched_counter_helps[] = { COSCHED_COUNTERS(COUNTER_HELP) };
