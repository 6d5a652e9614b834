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
 * finds the message and asks it (as in the thesis, 4.2.2). A demand that was denied is asked again when its CPU
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
 * @p, which waits for a CPU, has been marked: that CPU is to put it into the queue where it belongs (queues.bpf.h).
 * Another CPU may have taken the task meanwhile, and looked for the mark before it was there. So the task's CPU is read
 * after the mark is set. NULL: the task has to wait for its turn.
 */
static struct cpu_ctx *post_marked(const struct task_struct *p, const struct task_ctx *tctx, s32 *cpu)
{
	struct cpu_ctx *cctx;

	full_barrier();
	*cpu = READ_ONCE(tctx->cpu);
	cctx = *cpu < 0 ? NULL : cpu_ctx_of(*cpu);
	return cctx && post(cctx, task_id(p)) ? cctx : NULL;
}

/*
 * @p waits in a queue of its CPU and has been granted a boost: have its CPU take it next. A kernel thread that runs
 * there is not cut short; the boost follows it. A global function, as the next one: they are verified once.
 */
__noinline int request_boost(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	struct cpu_ctx *cctx;
	s32 cpu;

	__sync_val_compare_and_swap(&tctx->park, PARK_PARKED, PARK_UNPARK);
	tctx->boost = BOOST_GRANTED;
	cctx = post_marked(p, tctx, &cpu);
	if (cctx)
		preempt_for(cctx, cpu);
	else
		tctx->boost = BOOST_NONE;
	return 0;
}

/* A message has come for @p, and no boost was granted. A parked task takes its turn again; a denied one asks again. */
__noinline int note_demand(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull)
{
	bool parked = __sync_val_compare_and_swap(&tctx->park, PARK_PARKED, PARK_UNPARK) == PARK_PARKED;
	struct cpu_ctx *cctx;
	s32 cpu;

	if (!parked && (!tctx->denied || tctx->queue == QUEUE_ASKED))
		return 0;
	cctx = post_marked(p, tctx, &cpu);
	if (parked && cctx && preempts(tctx, cctx, cpu))
		preempt_for(cctx, cpu);
	return 0;
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
		request_boost(p, tctx);
	else
		note_demand(p, tctx);
}

/* Puts @p, which a hook has marked, into the queue of @cpu where it belongs by now. */
static void sort_marked(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	if (READ_ONCE(tctx->state) != TASK_QUEUED || tctx->cpu != cpu)
		return;
	if (tctx->park)
		unpark(p, tctx, cctx, cpu);
	else
		move_to_queue(p, tctx, cpu, queue_for(p, tctx), 0);
}

/* Sorts the tasks that hooks have marked on @cpu. */
__noinline int empty_box(s32 cpu)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	u32 i;

	if (!cctx || !READ_ONCE(cctx->posted) || !__sync_lock_test_and_set(&cctx->posted, 0))
		return 0;
	bpf_for(i, 0, CPU_BOX) {
		u64 *place = MEMBER_VPTR(cctx->box, [i]);
		u64 id = place && READ_ONCE(*place) ? __sync_lock_test_and_set(place, 0) : 0;
		struct task_struct *p = id ? bpf_task_from_pid(task_id_pid(id)) : NULL;
		struct task_ctx *tctx;

		if (!p)
			continue;
		tctx = task_ctx_of(p);
		if (tctx && task_id(p) == id)
			sort_marked(p, tctx, cctx, cpu);
		bpf_task_release(p);
	}
	return 0;
}

/* Takes the first task in QUEUE_GRANTED. A boost that was cut short lasts for what is left of it, and no longer. */
__noinline int take_granted(s32 cpu)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, queue_id(cpu, QUEUE_GRANTED), 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx)
			break;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, tctx->boost == BOOST_RESUMED ? resume_slice(tctx, cpu) :
								   begin_slice(tctx, tctx->granted_ns));
		tctx->boost = BOOST_NONE;
		tctx->boosted = 1;
		return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
	}
	return false;
}

/* Asks the gate again for the first of those that it has denied, and takes one that it grants a boost now. */
__noinline int ask_again(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_struct *p;
	u32 asked = 0;

	if (!cctx || !arrivals_demand())
		return false;
	bpf_for_each(scx_dsq, p, queue_id(cpu, QUEUE_ASKED), 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx || asked++ >= MAX_ASKED)
			break;
		if (is_held(p, tctx, cpu, now))
			continue;
		if (!has_demand(tctx)) {
			tctx->denied = 0;
			if (!tctx->hint_page)
				move_to_queue(p, tctx, cpu, queue_for(p, tctx), 0);
			continue;
		}
		if (!demand_granted(p, tctx, cctx, now))
			continue;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, begin_slice(tctx, tctx->granted_ns));
		tctx->boosted = 1;
		return scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
	}
	return false;
}

#endif
