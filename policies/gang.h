/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gang scheduling: a row of the Ousterhout matrix for each quantum of the clock (Zhang 2.2). It is the reference that
 * the other policies are measured against.
 *
 * Columns are CPUs, rows are turns. A job has one row on all nodes, by configuration or else by a hash of its name
 * (src/jobs/gang.rs). Until the loader has seen the job, its row is by a hash of its number.
 * Which row has its turn follows from the time alone: TAI, divided by the quantum, modulo the rows. In TAI no second is
 * counted twice. Nodes whose clocks are synchronized to within a small part of a quantum thus switch together and never
 * talk about it.
 *
 * In the paper a CPU whose row has nothing to run idles. Here it runs whatever else there is, in the fair order, until
 * the quantum is over or the row's job is runnable again. So tasks that are in no row run too.
 */
#ifndef COSCHED_GANG_H
#define COSCHED_GANG_H

#include "policy.h"

/* Never 0, which would mean division by zero on one side and not on the other. */
static inline u64 gang_quantum_ns(const struct cosched_policy *policy)
{
	return policy->quantum_ns ? policy->quantum_ns : 1;
}

static inline u32 gang_rows(const struct cosched_policy *policy)
{
	return policy->rows ? policy->rows : 1;
}

/* The row whose turn it is. */
static inline u32 gang_row_at(const struct cosched_policy *policy, u64 tai_ns)
{
	return (u32)(tai_ns / gang_quantum_ns(policy) % gang_rows(policy));
}

/* The time until the next row has its turn, in ns: from 1 to a quantum. */
static inline u64 gang_rest_ns(const struct cosched_policy *policy, u64 tai_ns)
{
	return gang_quantum_ns(policy) - tai_ns % gang_quantum_ns(policy);
}

/* The row of a job without a given one. Fibonacci hashing: numbers of jobs are often consecutive. */
static inline u32 gang_row_of(const struct cosched_policy *policy, u64 job)
{
	return (u32)((job * 11400714819323198485ULL >> 32) * gang_rows(policy) >> 32);
}

#endif
