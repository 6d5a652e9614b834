/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Demand: a message for a task that is not running asks for that task to run.
 *
 * Whether a message is pending is a level. It is not kept, but read off the sockets. A task has a message if one of the
 * sockets where messages for it arrived lately is not empty. That is read whenever the task changes state:
 *
 *	arrival:	data into the socket;  full barrier;  read the phase
 *	switch:		phase = ...;  full barrier;  read the sockets
 *
 * At least one of the two sees the other, so a message that arrives between an empty receive and the switch is never
 * lost. Either the arrival finds the task off the CPU, or the switch finds the message (as in the thesis, 4.2.2).
 * Whichever of them it is asks the gate. A demand that was denied is asked again when its CPU looks for work. That ends
 * when it is granted, when the fair order has its turn, or when the message is gone.
 *
 * The gate is asked where the arrival is seen, which may be another CPU, on a snapshot of the receiver's CPU. A denied
 * message therefore costs no interrupt and no switch. So a flood of packets cannot make a CPU reschedule more often
 * than the gate grants boosts.
 */
#ifndef COSCHED_DEMAND_BPF_H
#define COSCHED_DEMAND_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "gang.bpf.h"
#include "groups.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "limits.bpf.h"
#include "park.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "trace.bpf.h"
#include "../policies/account.h"
#include "../policies/beat.h"
#include "../policies/fair.h"
#include "../policies/gate.h"
#include "../policies/phase.h"
#include "../policies/policy.h"
#include "../policies/window.h"

/*
 * For how long a boost that the gate has granted lasts, in ns of CPU time. Under beat it lasts until the turn ends, as
 * the slice of its sender does. The gates of two nodes would give different times, and one task would wait for the
 * other.
 */
static u64 boost_slice(const struct task_ctx *tctx, const struct cosched_policy *policy,
		       const struct cosched_demand *demand)
{
	u64 slice_ns = forget_ways(is_beat() ? beat_rest_ns() : cosched_gate_slice(policy, demand));
	u64 rest_ns = tctx->message_slice_ns;
	u64 waited_ns = tctx->arrival_ns ? demand->now_ns - tctx->arrival_ns : 0;

	/* If the message has waited for longer, its sender does not run any more. The answer will make it run. */
	if (policy->residual_slice && waited_ns < rest_ns && rest_ns - waited_ns < slice_ns)
		slice_ns = rest_ns - waited_ns;
	return slice_ns > FAIR_LEAST_SLICE_NS ? slice_ns : FAIR_LEAST_SLICE_NS;
}

/* What the gate is to know of @tctx, which has a demand on @cctx's CPU, and is due @due_ns there by @demand->now_ns. */
static void describe_demand(struct cosched_demand *demand, const struct task_ctx *tctx, const struct cpu_ctx *cctx,
			    s64 lead, u64 due_ns)
{
	const struct cosched_policy *policy = current_policy();

	demand->last_boost_ns = tctx->last_boost_ns;
	account_describe(demand, lead, tctx->effective, root_weight(tctx->order_cpu), cctx->nr_runnable,
			 is_in_order(tctx));
	demand->denied = READ_ONCE(tctx->phase) == PHASE_ASKS;
	demand->message_epoch = tctx->message_epoch;
	demand->node_epoch = cctx->epoch;
	demand->node_quiet = !cctx->curr_talks;
	demand->mean_waiting = cctx->waiting.mean;
	if (policy->gate == COSCHED_GATE_AUTO) {
		struct cosched_window window = tctx->window;

		cosched_window_add(&window, policy, demand->now_ns, 0, due_ns);
		demand->cpu_ns = window.cpu_ns;
		demand->fair_ns = window.fair_ns;
	}
}

/*
 * Asks the gate whether @p, which has a demand, may run now on @cctx's CPU, and counts its answer. The paper compares
 * @p with the task that runs there. Here @p is compared with the average of the others, which is the same if there is
 * one other task. With several, the answer depends less on which of them happens to run. So the nodes of a job come to
 * the same answer at nearly the same time, and do not talk to each other about it.
 */
__noinline bool ask(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		    struct cpu_ctx *cctx __arg_nonnull, u64 now)
{
	const struct cosched_policy *policy = current_policy();
	struct cosched_cpu_stats *stats = this_cpu_stats();
	struct cosched_demand demand = { .now_ns = now };
	s64 lead = note_standing(tctx, tctx->order_cpu);
	u64 due_ns = due_share(tctx, now);	/* by what has just been noted */
	u32 reason;

	describe_demand(&demand, tctx, cctx, lead, due_ns);
	reason = forget_ways(cosched_gate_decide(policy, &demand));
	if (cosched_reason_grants(reason) && is_beat() && !beat_may_demand(tctx->beat_ahead_ns - due_ns))
		reason = COSCHED_REASON_not_behind;
	if (cosched_reason_grants(reason) && cctx->loan.starving)
		reason = COSCHED_REASON_starving;
	if (stats && reason < COSCHED_NR_REASONS)
		stats->decisions[reason]++;
	if (!cosched_reason_grants(reason)) {
		trace_decision(p, reason, 0);
		return false;
	}
	tctx->last_boost_ns = now;
	tctx->granted_ns = boost_slice(tctx, policy, &demand);
	trace_decision(p, reason, tctx->granted_ns);
	return true;
}

/* What the gate says of @p, which has a message, if the policy has it asked. */
static u32 answer_to(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	if (!arrivals_demand(cctx))
		return ANSWER_NOT_ASKED;
	return ask(p, tctx, cctx, now) ? ANSWER_GIVEN : ANSWER_DENIED;
}

/*
 * Does @p, which comes to a queue, have a demand for which it is granted a boost? If so, it is in phase GRANTED from
 * now on.
 */
static bool is_granted_at_once(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	u32 phase = READ_ONCE(tctx->phase), next;

	if (phase != PHASE_WAITS || !arrivals_demand(cctx) || !has_demand(tctx))
		return false;
	next = phase_message(phase, answer_to(p, tctx, cctx, now));
	return change_phase(tctx, phase, next) && next == PHASE_GRANTED;
}

/* Makes the task that runs on @cpu leave it to a task in the queue, unless it is a kernel thread. */
static void preempt_for(struct cpu_ctx *cctx, s32 cpu)
{
	if (!cctx->curr_kthread && !stop_spin(cctx))
		scx_bpf_kick_cpu(cpu, SCX_KICK_PREEMPT);
}

/*
 * A boost is due on @cpu: the running task makes way for it, now or when its moment is over (is_in_moment()). Without
 * that moment the next message would cut short a task that has just woken and taken the CPU from the receiver. That
 * task would then wait until the boost ends.
 */
static void make_way(struct cpu_ctx *cctx, s32 cpu)
{
	/* The task that runs after a kernel thread may be settled already: it is told as it begins. */
	if (cctx->curr_kthread)
		WRITE_ONCE(cctx->preempt_at_tick, 1);
	else if (!has_moment(cctx))
		preempt_for(cctx, cpu);
}

/*
 * Takes @p, which waits in phase @from, to phase @to. Its CPU is to put it into the queue where it belongs
 * (queues.bpf.h). That CPU is read after the phase is changed. Otherwise another CPU might have taken the task in
 * between, and have looked for a change before there was one. A kernel thread that runs there is not cut short; a boost
 * follows it. A parked task goes ahead of the running task where a task that wakes would. A global function, as the
 * next one: they are verified once.
 */
__noinline int mark(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, u32 from, u32 to)
{
	struct cpu_ctx *cctx;
	s32 cpu;

	if (from == to || !change_phase(tctx, from, to))
		return 0;
	cpu = READ_ONCE(tctx->cpu);
	cctx = cpu_ctx_of(cpu);
	if (!cctx || !post(cctx, task_id(p)))
		change_phase(tctx, PHASE_GRANTED, PHASE_ASKS);	/* the boost is lost: @p waits for its turn */
	else if (to == PHASE_GRANTED)
		make_way(cctx, cpu);
	else if (from == PHASE_PARKED && takes_cpu(p, tctx, cctx, cpu))
		preempt_for(cctx, cpu);
	return 0;
}

/* @p, which waits in @phase on @cctx's CPU, has a message. */
__noinline int hear(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		    struct cpu_ctx *cctx __arg_nonnull, u32 phase)
{
	return mark(p, tctx, phase, phase_message(phase, answer_to(p, tctx, cctx, scx_bpf_now())));
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
	struct cpu_ctx *cctx;
	bool follows;
	u32 phase;
	s32 cpu;

	full_barrier();		/* see above */
	phase = READ_ONCE(tctx->phase);

	count_arrival(endpoint, phase == PHASE_RUNS);
	trace_arrival(p, endpoint, phase == PHASE_RUNS);
	if (phase == PHASE_RUNS)
		return;
	if (!tctx->arrival_ns)
		tctx->arrival_ns = scx_bpf_now();
	cpu = READ_ONCE(tctx->cpu);
	cctx = cpu_ctx_of(cpu);
	if (!cctx)
		return;
	follows = tctx->job_astray && is_beat() && follow(p, tctx, cctx, cpu);
	if (!phase_hears(phase))
		return;
	hear(p, tctx, cctx, phase);
	if (follows)
		make_way(cctx, cpu);
}

/* Puts @p, which a hook has marked, into the queue of @cpu where it belongs by now. */
static void sort_marked(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u32 phase = READ_ONCE(tctx->phase);

	if (tctx->cpu != cpu || tctx->queue >= NR_QUEUES || phase == PHASE_BLOCKED || phase == PHASE_PARKED)
		return;
	if (tctx->queue == QUEUE_PARKED)
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

/*
 * Asks the gate again for the first tasks in QUEUE_ASKED. A task that is granted a boost now goes to QUEUE_GRANTED. A
 * task without a demand goes back to its ordinary queue.
 */
__noinline int ask_again(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_struct *p;
	u32 asked = forget_ways(0);

	if (!cctx || !arrivals_demand(cctx) || !may_hold(cctx, QUEUE_ASKED) || holds(cctx, cpu, QUEUE_GRANTED))
		return 0;
	bpf_for_each(scx_dsq, p, queue_id(cpu, QUEUE_ASKED), 0) {
		struct task_ctx *tctx = task_ctx_of(p);
		u32 phase, next;

		if (!tctx || asked++ >= MAX_ASKED)
			break;
		if (is_held(p, tctx, cpu, now))
			continue;
		phase = READ_ONCE(tctx->phase);
		next = has_demand(tctx) ? phase_message(phase, answer_to(p, tctx, cctx, now)) : phase_calms(phase);
		if (next != phase && !change_phase(tctx, phase, next))
			continue;	/* a hook has changed it: the task is in the box */
		if (queue_for(p, tctx) != QUEUE_ASKED)
			move_to_queue(p, tctx, cpu, queue_for(p, tctx), 0);
		if (next == PHASE_GRANTED)
			break;
	}
	return 0;
}

/*
 * Takes a task on @cpu that is granted a boost now or has been before. Not if another task goes ahead of boosts, or if
 * the fair order is to have its turn first. More boosts may have been granted at once than that order lets pass.
 */
static bool take_boosted(const struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	ask_again(cpu, now);
	return !cctx->front && !cctx->loan.starving && may_hold(cctx, QUEUE_GRANTED) &&
	       scx_bpf_dsq_move_to_local(queue_id(cpu, QUEUE_GRANTED), 0);
}

#endif
