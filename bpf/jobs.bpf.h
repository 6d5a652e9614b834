/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What each job used and what its fair share would have been (thesis 5.1: F = N T_C / T_E).
 *
 * T_C is CPU time. The share T_E / N is kept by a clock per CPU that runs at 1 / (sum of the weights of
 * the runnable tasks): over any time in which a task is runnable, its fair share is its weight times
 * what that clock advanced, whatever came and went meanwhile. A task that waits for a message inside
 * a receive is still claiming its share, so that time counts too, as if the task had been runnable; other
 * sleep does not. Jobs are counted per CPU and summed by the loader, so no two CPUs share a counter.
 */
#ifndef COSCHED_JOBS_BPF_H
#define COSCHED_JOBS_BPF_H

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

/* What the fair share of @tctx has grown by since this was last asked, in ns. */
static u64 take_fair_share(struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 share = cctx->share_clock - tctx->share_seen;

	tctx->share_seen = cctx->share_clock;
	return share * tctx->weight / (WEIGHT_DEFAULT << WEIGHT_SHIFT);
}

/* What the fair share of @tctx, which waits in a queue, will have grown by @now, in ns. Changes nothing. */
static u64 due_share(const struct task_ctx *tctx, const struct cpu_ctx *cctx, u64 now)
{
	u64 share = cctx->share_clock - tctx->share_seen;
	s64 passed_ns = now - cctx->share_at;

	if (tctx->sum_cpu < 0)
		return 0;
	if (passed_ns > 0 && cctx->weight_sum)
		share += passed_ns * WEIGHT_DEFAULT / cctx->weight_sum;
	return share * tctx->weight / (WEIGHT_DEFAULT << WEIGHT_SHIFT);
}

/*
 * The fair share of @tctx, which wakes, of the time that it awaited a message on @cctx's CPU. The clock ran without its
 * weight meanwhile, so it is scaled to what it would have been with it.
 */
static u64 awaited_share(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 weight_sum = cctx->weight_sum << WEIGHT_SHIFT;
	u64 share = cctx->share_clock - tctx->share_seen;

	if (!weight_sum)
		return 0;
	return share * tctx->weight / (WEIGHT_DEFAULT << WEIGHT_SHIFT) * weight_sum / (weight_sum + tctx->weight);
}

/*
 * Notes what @p has run and what its fair share was. A task that switches often does so many times in a
 * millisecond, so the notes are posted to the job's account only when there is something to post, or at @end.
 */
static void account(struct task_struct *p, struct task_ctx *tctx, u64 cpu_ns, u64 fair_ns, bool end)
{
	const struct cosched_policy *policy = current_policy();
	struct cosched_job_stats *stats;

	if (policy->gate == COSCHED_GATE_AUTO)
		cosched_window_add(&tctx->window, policy, scx_bpf_now(), cpu_ns, fair_ns);
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

#endif
