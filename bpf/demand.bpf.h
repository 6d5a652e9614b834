/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Demand: a message for a task that is not running asks for that task to run.
 *
 * Pending is a level, and it is not kept but read off where it is true: a task has a message if one of the sockets
 * where messages for it arrived lately is not empty. It is read whenever the task changes state:
 *
 *	arrival:	data into the socket;  full barrier;  read state
 *	switch:		state = ...;  full barrier;  read the sockets
 *
 * At least one of the two sees the other, so a message that arrives between an empty receive and the
 * switch is never lost: either the arrival finds the task off the CPU and asks the gate, or the switch
 * finds the message and asks it (as in the thesis, 4.2.2). A demand that was denied is asked again whenever its CPU
 * looks for work, until it is granted, the fair order has its turn, or the message is gone.
 *
 * The gate is asked where the arrival is seen, which may be another CPU, on a snapshot of the receiver's
 * CPU. A denied message therefore costs no interrupt and no switch: a flood of packets cannot make a
 * CPU reschedule more often than the gate grants boosts.
 */
#ifndef COSCHED_DEMAND_BPF_H
#define COSCHED_DEMAND_BPF_H

/* Is the arrival of a message a demand by itself? Under the other rules the pulse or the order sees to it. */
static bool arrivals_demand(void)
{
	return current_policy()->arrival == COSCHED_ARRIVAL_DEMAND;
}

/* For how long a boost that the gate has granted lasts, in ns of CPU time. */
static u64 boost_slice(const struct task_ctx *tctx, const struct cosched_policy *policy,
		       const struct cosched_demand *demand)
{
	u64 slice_ns = cosched_gate_slice(policy, demand);

	if (policy->residual_slice && tctx->message_slice_ns && tctx->message_slice_ns < slice_ns)
		slice_ns = tctx->message_slice_ns;
	return slice_ns > FAIR_LEAST_SLICE_NS ? slice_ns : FAIR_LEAST_SLICE_NS;
}

/* What the gate is to know of @tctx, which has a demand on @cctx's CPU. */
static void describe_demand(struct cosched_demand *demand, struct task_ctx *tctx, const struct cpu_ctx *cctx,
			    const struct cosched_policy *policy, u64 now)
{
	s32 cpu = tctx->order_cpu;
	s64 lead = note_standing(tctx, cpu);

	demand->now_ns = now;
	demand->last_boost_ns = tctx->last_boost_ns;
	account_describe(demand, lead, tctx->effective, root_weight(cpu), cctx->nr_runnable, is_in_order(tctx));
	demand->denied = tctx->denied;
	demand->message_epoch = tctx->message_epoch;
	demand->node_epoch = cctx->epoch;
	demand->node_quiet = !cctx->curr_talks;
	if (policy->gate == COSCHED_GATE_AUTO) {
		struct cosched_window window = tctx->window;

		cosched_window_add(&window, policy, now, 0, due_share(tctx, now));
		demand->cpu_ns = window.cpu_ns;
		demand->fair_ns = window.fair_ns;
	}
}

/* The gate's answer to @demand of @tctx on @cctx's CPU, as of @now: enum cosched_reason. Counts it. */
static __always_inline u32 ask_gate(struct cosched_demand *demand, struct task_ctx *tctx,
				    const struct cpu_ctx *cctx, const struct cosched_policy *policy, u64 now)
{
	struct cosched_cpu_stats *stats = this_cpu_stats();
	u32 reason;

	describe_demand(demand, tctx, cctx, policy, now);
	reason = cosched_gate_decide(policy, demand);
	if (cosched_reason_grants(reason) && cctx->loan.starving)
		reason = COSCHED_REASON_starving;
	if (stats && reason < COSCHED_NR_REASONS)
		stats->decisions[reason]++;
	return reason;
}

/*
 * Asks the gate whether @p, which has a demand, may run now on @cctx's CPU. The paper compares it with the task that
 * runs there; here it is the average of the others. With one other task that is the same. With several it depends
 * less on who of them happens to run, so that the nodes of a job, which do not talk to each other about this, come to
 * the same answer at nearly the same time.
 */
__noinline bool demand_granted(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			       struct cpu_ctx *cctx __arg_nonnull, u64 now)
{
	const struct cosched_policy *policy = current_policy();
	struct cosched_demand demand = {};
	u32 reason;

	reason = ask_gate(&demand, tctx, cctx, policy, now);
	tctx->denied = !cosched_reason_grants(reason);
	if (tctx->denied) {
		trace_decision(p, reason, 0);
		if (reason != COSCHED_REASON_no_demand && arrivals_demand())
			__sync_lock_test_and_set(&cctx->demand, 1);
		return false;
	}
	tctx->last_boost_ns = now;
	tctx->granted_ns = boost_slice(tctx, policy, &demand);
	trace_decision(p, reason, tctx->granted_ns);
	return true;
}

/* Has the task that runs on @cpu make way for one in the queue, unless it is a kernel thread. */
static void preempt_for(struct cpu_ctx *cctx, s32 cpu)
{
	if (!cctx->curr_kthread && !stop_spin(cctx))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * The CPU in whose queue @tctx waits, which has just been marked. Another may have taken it meanwhile, and looked for
 * the mark before it was there: so whoever is to see to the mark is asked for after it is set.
 */
static struct cpu_ctx *cpu_of_marked(const struct task_ctx *tctx, s32 *cpu)
{
	full_barrier();
	*cpu = READ_ONCE(tctx->cpu);
	return *cpu < 0 ? NULL : cpu_ctx_of(*cpu);
}

/*
 * @tctx waits in the queue of its CPU and has been granted a boost: have its CPU take it next. A kernel
 * thread that runs there is not cut short; the boost follows it.
 */
static void request_boost(struct task_ctx *tctx)
{
	bool parked = __sync_val_compare_and_swap(&tctx->park, PARK_PARKED, PARK_UNPARK) == PARK_PARKED;
	struct cpu_ctx *cctx;
	s32 cpu;

	tctx->boost = BOOST_GRANTED;
	cctx = cpu_of_marked(tctx, &cpu);
	if (!cctx)
		return;
	if (parked)
		__sync_lock_test_and_set(&cctx->unpark, 1);
	__sync_lock_test_and_set(&cctx->demand, 1);
	preempt_for(cctx, cpu);
}

/* A message has come for @tctx, which may be parked, and no boost was granted: it takes its turn again. */
static void unpark_on_arrival(struct task_ctx *tctx)
{
	struct cpu_ctx *cctx;
	s32 cpu;

	if (__sync_val_compare_and_swap(&tctx->park, PARK_PARKED, PARK_UNPARK) != PARK_PARKED)
		return;
	cctx = cpu_of_marked(tctx, &cpu);
	if (!cctx)
		return;
	__sync_lock_test_and_set(&cctx->unpark, 1);
	if (preempts(tctx, cctx, cpu))
		preempt_for(cctx, cpu);
}

/* A message has arrived at an @endpoint of a known receiver, which runs or not. */
static void count_arrival(enum cosched_endpoint endpoint, bool running)
{
	struct cosched_cpu_stats *stats = this_cpu_stats();

	if (!stats || endpoint >= COSCHED_NR_ENDPOINTS)
		return;
	stats->counters[COSCHED_COUNTER_arrivals]++;
	stats->endpoint_arrivals[endpoint]++;
	if (running)
		stats->counters[COSCHED_COUNTER_arrivals_coscheduled]++;
}

/* A message has arrived for @p, at an @endpoint that it remembers. */
static void demand_on_arrival(struct task_struct *p, struct task_ctx *tctx, enum cosched_endpoint endpoint)
{
	s32 cpu = tctx->cpu;
	struct cpu_ctx *cctx;
	u32 state;
	u64 now;

	full_barrier();		/* see above */
	state = READ_ONCE(tctx->state);

	count_arrival(endpoint, state == TASK_RUNNING);
	trace_arrival(p, endpoint, state == TASK_RUNNING);
	if (state == TASK_RUNNING)
		return;

	now = scx_bpf_now();
	if (!tctx->arrival_ns)
		tctx->arrival_ns = now;
	if (state != TASK_QUEUED || tctx->boost == BOOST_GRANTED)
		return;
	cctx = cpu < 0 ? NULL : cpu_ctx_of(cpu);
	if (!cctx)
		return;
	if (arrivals_demand() && demand_granted(p, tctx, cctx, now))
		request_boost(tctx);
	else
		unpark_on_arrival(tctx);
}

/* May @p, which waits in the queue, be taken ahead of the order? */
static bool may_overtake(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	return tctx->boost || (tctx->denied && has_demand(tctx) && demand_granted(p, tctx, cctx, now));
}

/*
 * Takes the fairest task with a demand that is granted from @cpu's queue, ahead of the order. O(tasks in the
 * queue), and nothing at all while there is no demand.
 */
static bool dispatch_boosted(struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	bool taken = false, more = false;
	struct task_struct *p;

	if (!cctx->demand || !__sync_lock_test_and_set(&cctx->demand, 0))
		return false;

	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx || !(tctx->boost || (tctx->denied && arrivals_demand())) || is_held(p, tctx, cpu, now))
			continue;
		if (taken || !may_overtake(p, tctx, cctx, now)) {
			more = true;
			continue;
		}
		/* What is left of a boost that was cut short is all that it gets. */
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, tctx->boost == BOOST_RESUMED ? resume_slice(tctx, cpu) :
								   begin_slice(tctx, tctx->granted_ns));
		tctx->boost = BOOST_NONE;
		tctx->boosted = 1;
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
