/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF side and the Rust side share: the shapes of the maps that the loader reads, and the
 * limits that both must agree on. The policy itself is in policies/policy.h.
 */
#ifndef COSCHED_INTF_H
#define COSCHED_INTF_H

#ifndef __VMLINUX_H__
#include "../policies/native.h"
#endif

#include "counters.h"
#include "../policies/boost_choice.h"
#include "../policies/policy.h"
#include "../policies/window.h"

#define COSCHED_COUNTER_ENUM(name, help) COSCHED_COUNTER_##name,
enum cosched_counter {
	COSCHED_COUNTERS(COSCHED_COUNTER_ENUM)
	COSCHED_NR_COUNTERS,
};

enum {
	COSCHED_MAX_CPUS = 1024,	/* a kernel with more CPUs is refused by the loader */
	COSCHED_MAX_GROUPS = 4096,	/* cgroups with a weight of their own; the rest counts as their parents */
	COSCHED_MAX_JOBS = 4096,	/* jobs told apart; the rest is counted together */
	COSCHED_MAX_CALLS = 16,		/* system calls of a kind, see polls.bpf.h */
	COSCHED_LATENCY_BUCKETS = 26,	/* bucket i counts latencies <= 2^i us, the last the rest */
};

/* What makes two tasks members of one job (--job-by). */
enum cosched_job_by {
	COSCHED_JOB_BY_CGROUP,		/* id: cgroup v2 id */
	COSCHED_JOB_BY_SESSION,		/* id: session leader's pid */
	COSCHED_JOB_BY_PROCESS,		/* id: thread group id */
};

#define COSCHED_JOB_OTHER 0ULL		/* the id under which jobs beyond COSCHED_MAX_JOBS are counted */

/* One per CPU (a per-CPU array with a single element): only its CPU writes it. */
struct cosched_cpu_stats {
	u64 counters[COSCHED_NR_COUNTERS];
	u64 decisions[COSCHED_NR_REASONS];
	u64 latency_buckets[COSCHED_LATENCY_BUCKETS];
	u64 latency_sum_ns;
	u64 skew_sum_ns;		/* gang: by how much the turns of rows began late, all together */
	u64 skew_max_ns;		/* and at most */
};

/* One per CPU and job (a per-CPU hash keyed by job id). */
struct cosched_job_stats {
	u64 cpu_ns;			/* T_C: CPU time used */
	u64 fair_ns;			/* the CPU time that fair sharing would have given: T_E / N, by weight */
	u64 boosts;
};

#endif
