/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Gang scheduling: the row of jobs that has its turn goes first (policies/gang.h).
 *
 * The pulse ends each turn on every CPU, and notes how late it was. That is the skew between CPUs and, if their clocks
 * agree, between nodes. The tasks of the row come first, in the fair order among themselves. Where the row has none to
 * run, the others run. A job that goes first by beat is such a row (beat.bpf.h).
 */
#ifndef COSCHED_GANG_BPF_H
#define COSCHED_GANG_BPF_H

#include <scx/common.bpf.h>
#include "beat.bpf.h"
#include "cpu.bpf.h"
#include "fair.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "limits.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "../policies/beat.h"
#include "../policies/gang.h"
#include "../policies/policy.h"

static bool is_gang(void)
{
	return current_policy()->arrival == COSCHED_ARRIVAL_GANG;
}

/* Do turns by the clock say what goes first on @cctx's CPU? */
static bool has_row(const struct cpu_ctx *cctx)
{
	return is_gang() || (is_beat() && first_job(cctx));
}

/* Does the row of @p have its turn on the CPU of @p? A global function: it is verified once. */
__noinline bool has_turn(struct task_struct *p __arg_trusted)
{
	const struct cosched_policy *policy = current_policy();
	struct cpu_ctx *cctx;
	u64 job, *given;
	u32 row;

	if (is_beat()) {
		cctx = cpu_ctx_of(scx_bpf_task_cpu(p));
		return cctx && first_job(cctx) == beat_name_of(p);
	}
	job = job_of(p);
	given = bpf_map_lookup_elem(&turns_of_jobs, &job);
	row = given ? *given % gang_rows(policy) : gang_row_of(policy, job);
	return row == gang_row_at(policy, bpf_ktime_get_tai_ns());
}

/* May @tctx, whose row has its turn, go first for that? */
static bool may_lead(struct task_ctx *tctx, u64 now)
{
	return is_gang() || beat_may_lead(current_policy(), surplus_of(tctx, now));
}

/*
 * May @p, which wakes, take the CPU from the running task, because only the row of @p has its turn? The running task
 * has its moment first.
 */
static bool row_preempts(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	return has_row(cctx) && !cctx->curr_has_turn && !cctx->curr_kthread && has_turn(p) &&
	       may_lead(tctx, scx_bpf_now()) && !has_moment(cctx);
}

/* @p runs on @cctx's CPU. */
static void note_turn(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	cctx->curr_has_turn = has_row(cctx) && has_turn(p);
	cctx->curr_slot = 0;
	cctx->curr_sizes = 0;
	if (is_beat() && is_known_to_wait(tctx))
		note_talker(p, tctx, cctx, cpu);
}

/*
 * May @p, which wakes or was parked until now, take the CPU from the running task, by its turn or by the fair order? No
 * other job takes it from the job that has won the turn.
 */
__noinline bool takes_cpu(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			 struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	if (row_preempts(p, tctx, cctx))
		return true;
	if (is_beat() && has_row(cctx) && cctx->curr_has_turn && is_known_to_wait(tctx) && !has_turn(p))
		return false;
	return preempts_now_or_at_tick(tctx, cctx, cpu);
}

/*
 * Tasks that waited elsewhere when the policy became this one go to the queue in which rows are looked for. A global
 * function: see sum_presence() (groups.bpf.h).
 */
__noinline int gather(u64 queue, s32 cpu)
{
	struct task_struct *p;
	u32 looks = forget_ways(0);

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (looks++ >= MAX_LOOKS)
			break;
		if (tctx)
			move_to_queue(p, tctx, cpu, QUEUE_FREE, 0);
	}
	return 0;
}

/*
 * Takes the first task of the row that has its turn on @cpu. With @goes_on the running task is of this row as well, and
 * stands at @key: then the task has to come before it. A global function: see sum_presence() (groups.bpf.h).
 */
__noinline int take_of_row(s32 cpu, bool goes_on, u64 key, u64 now)
{
	struct task_struct *p;
	u32 looks = forget_ways(0);

	bpf_for_each(scx_dsq, p, queue_id(cpu, is_gang() ? QUEUE_FREE : QUEUE_ASKED), 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (looks++ >= MAX_CHOICES || (goes_on && vtime_before(key, p->scx.dsq_vtime)))
			break;
		if (!tctx || !has_turn(p) || is_held(p, tctx, cpu, now) || !may_lead(tctx, now))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, begin_whole_slice(tctx));
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0))
			return true;
	}
	return false;
}

/* The turn of a row is over on this CPU, or was @late_ns ago. */
static void note_row(u64 late_ns)
{
	struct cosched_cpu_stats *stats = this_cpu_stats();

	if (!stats)
		return;
	stats->counters[COSCHED_COUNTER_rows]++;
	stats->skew_sum_ns += late_ns;
	if (stats->skew_max_ns < late_ns)
		stats->skew_max_ns = late_ns;
}

#endif
