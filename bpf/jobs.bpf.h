/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each job used and what its fair share would have been (thesis 5.1: F = N T_C / T_E).
 *
 * T_C is CPU time, and the share is that of policies/account.h. A task that waits for a message inside a receive is
 * still claiming its share. So that time counts too, as if the task had been runnable. Other sleep does not count. Jobs
 * are counted per CPU and summed by the loader, so no two CPUs share a counter.
 */
#ifndef COSCHED_JOBS_BPF_H
#define COSCHED_JOBS_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "fair.bpf.h"
#include "groups.bpf.h"
#include "intf.h"
#include "limits.bpf.h"
#include "state.bpf.h"
#include "units.h"
#include "../policies/account.h"
#include "../policies/beat.h"
#include "../policies/fair.h"
#include "../policies/policy.h"
#include "../policies/window.h"

#define POST_AFTER_NS (10 * NSEC_PER_MSEC)

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, COSCHED_MAX_JOBS);
	__type(key, u64);
	__type(value, struct cosched_job_stats);
} jobs SEC(".maps");

static u64 job_of(struct task_struct *p)
{
	switch (job_by) {
	case COSCHED_JOB_BY_SESSION:
		return (u64)BPF_CORE_READ(p, signal, pids[PIDTYPE_SID], numbers[0].nr);
	case COSCHED_JOB_BY_PROCESS:
		return (u64)p->tgid;
	default:
		return p->cgroups->dfl_cgrp->kn->id;
	}
}

/* NULL: the kernel has no memory at hand for a new job just now. */
static struct cosched_job_stats *job_stats_of(struct task_struct *p)
{
	struct cosched_job_stats zero = {}, *stats;
	u64 job = job_of(p);
	long err;

	stats = bpf_map_lookup_elem(&jobs, &job);
	if (stats)
		return stats;
	err = bpf_map_update_elem(&jobs, &job, &zero, BPF_NOEXIST);
	stats = bpf_map_lookup_elem(&jobs, &job);
	if (stats || err != -E2BIG)
		return stats;

	count(COSCHED_COUNTER_jobs_full);
	job = COSCHED_JOB_OTHER;	/* there since cosched_init() */
	return bpf_map_lookup_elem(&jobs, &job);
}

/*
 * The sum of weights for the share clock of @cpu. The clock stands still while no task of ours runs there: what a
 * real-time task has is nobody's share. Else all tasks would seem to be behind their shares, and each could go on with
 * boosts, or with turns of beat, at the expense of others.
 */
static u64 share_weight(const struct cpu_ctx *cctx, s32 cpu)
{
	return cctx->curr_id ? root_weight(cpu) : 0;
}

/* Call before the sum of weights on @cpu changes. */
static void advance_share_clock(struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	account_advance(&cctx->shares, share_weight(cctx, cpu), now);
}

/*
 * @p begins to run on @cpu, after another task or another class. What the kernel did to choose @p is charged to it, and
 * is a part of what all had.
 */
static void resume_share_clock(const struct task_struct *p, struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	account_skip(&cctx->shares, p->se.exec_start - cctx->stopped_at, now);
	account_advance(&cctx->shares, root_weight(cpu), now);
}

/* How much the fair share of @tctx has grown since this was last asked, in ns. */
static u64 take_fair_share(struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 passed_ns = cctx->shares.ns - tctx->share_seen;

	tctx->share_seen = cctx->shares.ns;
	return account_share(passed_ns, tctx->effective);
}

/*
 * How much the fair share of @tctx, which is in the order of a CPU, has grown from the last take_fair_share() up to
 * @now, in ns. Changes nothing.
 */
static u64 due_share(const struct task_ctx *tctx, u64 now)
{
	struct cpu_ctx *cctx = is_in_order(tctx) ? cpu_ctx_of(tctx->order_cpu) : NULL;

	if (!cctx)
		return 0;
	return account_share(account_clock(&cctx->shares, share_weight(cctx, tctx->order_cpu), now) - tctx->share_seen,
			     tctx->effective);
}

/* How much more than its fair share @tctx has run, under beat, in ns. A global function: it is verified once. */
__noinline s64 surplus_of(struct task_ctx *tctx __arg_nonnull, u64 now)
{
	return tctx->beat_ahead_ns - due_share(tctx, now);
}

/*
 * Notes what @p has run and what its fair share was. A task that switches often does so many times in a millisecond. So
 * the notes are posted to the job's account only when they come to POST_AFTER_NS, or at @end.
 */
static void account(struct task_struct *p, struct task_ctx *tctx, u64 cpu_ns, u64 fair_ns, bool end)
{
	const struct cosched_policy *policy = current_policy();
	struct cosched_job_stats *stats;

	if (policy->gate == COSCHED_GATE_AUTO || is_beat())
		cosched_window_add(&tctx->window, policy, scx_bpf_now(), cpu_ns, fair_ns);
	if (is_beat())
		tctx->beat_ahead_ns = beat_charge(tctx->beat_ahead_ns, policy, cpu_ns, fair_ns);
	tctx->unposted_cpu_ns += cpu_ns;
	tctx->unposted_fair_ns += fair_ns;
	if (!end && tctx->unposted_cpu_ns + tctx->unposted_fair_ns < POST_AFTER_NS)
		return;
	stats = job_stats_of(p);
	if (!stats)
		return;
	stats->cpu_ns += tctx->unposted_cpu_ns;
	stats->fair_ns += tctx->unposted_fair_ns;
	stats->boosts += tctx->unposted_boosts;
	tctx->unposted_boosts = 0;
	tctx->unposted_cpu_ns = 0;
	tctx->unposted_fair_ns = 0;
}

/*
 * @p is runnable on @cpu from now on. This is not in ops.runnable(): whatever becomes runnable is enqueued or run at
 * once, and one callback fewer makes a wake-up cheaper. If @p was taken from a queue of another CPU, what it was due
 * there stays due. So does what it was due here while it awaited a message.
 */
__noinline int become_runnable(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			       struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	u64 now, credit_ns, share_ns, awaited_ns, others;

	if (is_in_order(tctx) && tctx->order_cpu == cpu)
		return 0;
	now = scx_bpf_now();
	credit_ns = forget_ways(tctx->weight ? fair_credit(current_policy(), cctx->newcomers, tctx->awaits) : 0);
	advance_share_clock(cctx, cpu, now);
	share_ns = due_share(tctx, now);
	leave_order(tctx);
	if (tctx->order_cpu != cpu)
		return_limit(tctx);
	awaited_ns = forget_ways(tctx->awaits && tctx->order_cpu == cpu ? cctx->shares.ns - tctx->share_seen : 0);
	others = awaited_ns ? root_weight(cpu) : 0;
	tctx->awaits = 0;
	tctx->share_seen = cctx->shares.ns;
	enter_order(p, tctx, cctx, cpu, credit_ns);
	if (awaited_ns)
		share_ns = account_awaited(awaited_ns, tctx->effective, others, root_weight(cpu));
	if (share_ns)
		account(p, tctx, 0, share_ns, false);
	return 0;
}

/* @p leaves the order of its CPU while runnable: it is set aside, or its affinity, cgroup or scheduler changes. */
static void become_idle(struct task_struct *p, struct task_ctx *tctx)
{
	struct cpu_ctx *cctx = is_in_order(tctx) ? cpu_ctx_of(tctx->order_cpu) : NULL;

	if (!cctx)
		return;
	advance_share_clock(cctx, tctx->order_cpu, scx_bpf_now());
	account(p, tctx, 0, take_fair_share(tctx, cctx), false);
	leave_order(tctx);
}

#endif
