/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Demand: a message for a task that is not running asks for that task to run.
 *
 * Pending is a level. It is raised by an arrival and lowered by the receive that empties the endpoint,
 * and it is looked at whenever a task changes state:
 *
 *	arrival:	pending = 1;  full barrier;  read state
 *	switch:		state = ...;  full barrier;  read pending
 *
 * At least one of the two sees the other, so a message that arrives between an empty receive and the
 * switch is never lost: either the arrival finds the task off the CPU and asks the gate, or the switch
 * finds the message and asks it. If the gate denies, the message waits for the fair order or for the
 * next message, whichever comes first (the thesis asks at arrivals and at switches, 4.2.2, and so do we).
 *
 * The gate is asked where the arrival is seen, which may be another CPU, on a snapshot of the receiver's
 * CPU. A denied message therefore costs no interrupt and no switch: a flood of packets cannot make a
 * CPU reschedule more often than the gate grants boosts.
 */
#ifndef COSCHED_DEMAND_BPF_H
#define COSCHED_DEMAND_BPF_H

/*
 * Boosts may hold a CPU for this many slices on end; then the fair order has one turn. It is what keeps
 * `always` from starving a task until the kernel's watchdog throws the scheduler out.
 */
#define MAX_BOOSTED_SLICES 8

static bool boosts_starve_others(const struct cpu_ctx *cctx, u64 slice_ns, u64 now)
{
	u64 since = cctx->boosted_since;

	return since && (s64)(now - since) > 0 && now - since > MAX_BOOSTED_SLICES * slice_ns;
}

/*
 * Asks the gate whether @tctx, which has a message, may run now on @cctx's CPU instead of the task whose vtime
 * is @other_vtime.
 */
static bool demand_granted(struct task_ctx *tctx, struct cpu_ctx *cctx, u64 other_vtime, u64 now)
{
	const struct cosched_policy *policy = current_policy();
	struct cosched_cpu_stats *stats = this_cpu_stats();
	struct cosched_demand demand = {
		.now_ns = now,
		.last_boost_ns = tctx->last_boost_ns,
		.receiver_ran_ns = (s64)(tctx->vtime - cctx->vtime_now),
		.running_ran_ns = (s64)(other_vtime - cctx->vtime_now),
		.nr_runnable = cctx->nr_runnable,
	};
	u32 reason = cosched_gate_decide(policy, &demand);

	if (cosched_reason_grants(reason) && boosts_starve_others(cctx, policy->slice_ns, now))
		reason = COSCHED_REASON_starving;
	if (stats && reason < COSCHED_NR_REASONS)
		stats->decisions[reason]++;
	if (!cosched_reason_grants(reason))
		return false;
	tctx->last_boost_ns = now;
	return true;
}

/*
 * @tctx waits in the queue of its CPU and has been granted a boost: have its CPU take it next. A kernel
 * thread that runs there is not cut short; the boost follows it.
 */
static void request_boost(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	tctx->boost = 1;
	__sync_lock_test_and_set(&cctx->demand, 1);
	if (!cctx->curr_kthread)
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/* A message has arrived for @tctx, and its level is raised. */
static void demand_on_arrival(struct task_ctx *tctx)
{
	u32 state = __sync_fetch_and_add(&tctx->state, 0);	/* full barrier: see above */
	s32 cpu = tctx->cpu;
	struct cpu_ctx *cctx;
	u64 now;

	count(COSCHED_COUNTER_arrivals);
	if (state == TASK_RUNNING) {
		count(COSCHED_COUNTER_arrivals_coscheduled);
		return;
	}

	now = scx_bpf_now();
	if (!tctx->arrival_ns)
		tctx->arrival_ns = now;
	if (state != TASK_QUEUED || tctx->boost)
		return;
	cctx = cpu < 0 ? NULL : cpu_ctx_of(cpu);
	if (cctx && demand_granted(tctx, cctx, running_vtime(cctx, now), now))
		request_boost(tctx, cctx, cpu);
}

/* Takes the fairest of the granted tasks in @cpu's queue ahead of the order. O(tasks in the queue). */
static bool dispatch_boosted(struct cpu_ctx *cctx, s32 cpu)
{
	bool taken = false, more = false;
	struct task_struct *p;

	if (!__sync_lock_test_and_set(&cctx->demand, 0))
		return false;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx || !tctx->boost)
			continue;
		if (taken) {
			more = true;
			break;
		}
		tctx->boost = 0;
		tctx->boosted = 1;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, next_slice(tctx, false));
		taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
	}
	if (more)
		__sync_lock_test_and_set(&cctx->demand, 1);
	return taken;
}

/* The bucket of a latency: the least i with @ns <= 2^i us, or the last one. */
static u32 latency_bucket(u64 ns)
{
	u64 us = (ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	u32 bucket = us > 1 ? log2_u64(us - 1) : 0;

	return bucket < COSCHED_LATENCY_BUCKETS ? bucket : COSCHED_LATENCY_BUCKETS - 1;
}

/* Records how long the message that @tctx now runs for has waited. */
static void record_latency(struct task_ctx *tctx, u64 now)
{
	struct cosched_cpu_stats *stats = this_cpu_stats();
	u64 arrival_ns = tctx->arrival_ns;
	u64 waited_ns;
	u64 *bucket;

	if (!stats || !arrival_ns)
		return;
	tctx->arrival_ns = 0;
	waited_ns = now > arrival_ns ? now - arrival_ns : 0;
	stats->latency_sum_ns += waited_ns;
	bucket = MEMBER_VPTR(stats->latency_buckets, [latency_bucket(waited_ns)]);
	if (bucket)
		(*bucket)++;
}

#endif
