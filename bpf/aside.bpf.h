/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task whose group has used up its cpu.max is set aside until the group may run again.
 *
 * It stays runnable for the kernel, but waits in QUEUE_ASIDE of its CPU. That queue is ordered by when its tasks may
 * run again. The task leaves the fair order, so its weight takes nothing from the others. It counts as blocked, so an
 * arrival finds no task to boost. When the time has come, a timer wakes the CPU if that is idle. The timer preempts the
 * running task if the fair order has this task run at once, as if it had slept. Otherwise the CPU takes the task back
 * when it next looks for work.
 *
 * A group may also run out while its tasks wait in the CPU's queues. The tasks are set aside when they come to be first
 * there. Each dispatch looks at LIMIT_LOOKS tasks at most; if more are to go, the CPU dispatches again at once.
 */
#ifndef COSCHED_ASIDE_BPF_H
#define COSCHED_ASIDE_BPF_H

#include <scx/common.bpf.h>
#include "balance.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "fair.bpf.h"
#include "groups.bpf.h"
#include "jobs.bpf.h"
#include "limits.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "../policies/fair.h"
#include "../policies/limit.h"
#include "../policies/phase.h"

enum {
	LIMIT_LOOKS	= 8,
	WAITED_SHIFT	= 20,	/* a wait of 10 s counts for 10 us of the queue's order */
};

TIMER_ON_EACH_CPU(limit_timers);

/* Sets the timer of @cpu to run out at @at, unless it runs out earlier anyway. */
static void look_at_limits(struct cpu_ctx *cctx, s32 cpu, u64 at, u64 now)
{
	struct timer_on *timer;
	u32 key = cpu;

	if (cctx->limited_until && (s64)(at - cctx->limited_until) >= 0)
		return;
	cctx->limited_until = at ?: 1;
	timer = bpf_map_lookup_elem(&limit_timers, &key);
	if (timer && has_timers)
		bpf_timer_start(&timer->timer, (s64)(at - now) > (s64)LIMIT_LEAST_NS ? at - now : LIMIT_LEAST_NS, 0);
}

/* The place in QUEUE_ASIDE of @tctx, which is held until @until. Of tasks due together the longest waiting is first. */
static u64 aside_key(const struct task_ctx *tctx, u64 until, u64 now)
{
	s64 waited_ns = now - tctx->queued_at;

	if (waited_ns < 0)
		waited_ns = 0;
	return until + (limit_waited(waited_ns) ? 0 : (LIMIT_WAIT_NS - waited_ns) >> WAITED_SHIFT);
}

/* @p is in QUEUE_ASIDE of its CPU, or is about to be. */
static void put_aside(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	tctx->held = furthest_held(tctx->group, tctx->cpu, now);
	become_idle(p, tctx);
	return_limit(tctx);
	tctx->slice_used_ns = 0;
	set_phase(tctx, PHASE_BLOCKED);
	look_at_limits(cctx, tctx->cpu, tctx->look_at, now);
}

/* Sets @p, which comes to @cpu, aside if a limit holds it. */
static bool enqueue_aside(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 enq_flags)
{
	u64 now, at;

	tctx->held = ROOT_GROUP;	/* it was set aside elsewhere, or is no more */
	if (!is_limited(p, tctx))
		return false;
	now = scx_bpf_now();
	at = held_until(p, tctx, cpu, now, now);
	if (!at)
		return false;
	tctx->cpu = cpu;
	tctx->queued_at = now;
	tctx->look_at = aside_key(tctx, at, now);
	put_aside(p, tctx, cctx, now);
	insert(p, tctx, QUEUE_ASIDE, current_policy()->slice_ns, enq_flags);
	return true;
}

/*
 * Sets aside the tasks that are first in @queue of @cpu and are held. Returns false if there were so many that the next
 * task may be held too. Then nothing is to be taken from there, and @cpu looks again. A global function, as are others
 * that ops.dispatch() calls: the verifier checks each once, and not for every path that leads to it.
 */
__noinline int clear_front(u64 queue, s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_struct *p;
	u32 looked = forget_ways(0);

	if (!READ_ONCE(limits_version) || !cctx)
		return true;
	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tctx = task_ctx_of(p);
		u64 at = tctx ? held_until(p, tctx, cpu, tctx->queued_at, now) : 0;

		if (!at || !tctx)
			return true;
		if (looked++ >= LIMIT_LOOKS) {
			scx_bpf_kick_cpu(cpu, 0);
			return false;
		}
		tctx->look_at = aside_key(tctx, at, now);
		/* Only after the move is the task this CPU's alone: another CPU may be taking it. */
		if (move_to_queue(p, tctx, cpu, QUEUE_ASIDE, 0))
			put_aside(p, tctx, cctx, now);
	}
	return true;
}

/* The same for all queues that are in the fair order. */
static bool clear_fronts(const struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	u32 queue;

	if (!READ_ONCE(limits_version))
		return true;
	bpf_for(queue, 0, NR_ORDERED)
		if (may_hold(cctx, queue) && !clear_front(queue_id(cpu, queue), cpu, now))
			return false;
	return true;
}

/* @p, which was set aside on @cpu, is runnable again, as if it had slept. A message may have come meanwhile. */
__noinline int come_back(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			 struct cpu_ctx *cctx __arg_nonnull, s32 cpu, u64 now)
{
	become_runnable(p, tctx, cctx, cpu);
	bound_debts(p, tctx);
	set_phase(tctx, PHASE_WAITS);
	is_granted_at_once(p, tctx, cctx, now);
	return 0;
}

/* Takes back the tasks set aside on @cpu whose groups may run again. */
__noinline int take_back(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_struct *p;
	u32 looked = forget_ways(0);

	if (!cctx || !cctx->limited_until || (s64)(now - cctx->limited_until) < 0)
		return 0;
	cctx->limited_until = 0;
	bpf_for_each(scx_dsq, p, queue_id(cpu, QUEUE_ASIDE), 0) {
		struct task_ctx *tctx = task_ctx_of(p);
		u64 at = p->scx.dsq_vtime;

		if (!tctx)
			continue;
		if ((s64)(now - at) < 0 || looked++ >= LIMIT_LOOKS) {
			look_at_limits(cctx, cpu, at, now);
			break;
		}
		at = held_until(p, tctx, cpu, tctx->queued_at, now);
		if (at) {
			/* Another group is held than before. While only one of the two was, its neighbours went on. */
			if (tctx->held != furthest_held(tctx->group, cpu, now))
				tctx->held = ROOT_GROUP;
			tctx->look_at = aside_key(tctx, at, now);
			move_to_queue(p, tctx, cpu, QUEUE_ASIDE, 0);
			look_at_limits(cctx, cpu, tctx->look_at, now);
			continue;
		}
		come_back(p, tctx, cctx, cpu, now);
		wake_idle_cpu_for(p);
		move_to_queue(p, tctx, cpu, queue_for(p, tctx), resume_slice(tctx, cpu));
	}
	return 0;
}

/* Does the fair order have @tctx, which was set aside on @cpu, run instead of the running task? */
static bool comes_back_ahead(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	struct standing standing = {};

	if (!cctx->curr_effective || cctx->curr_kthread)
		return false;
	stand(tctx->group, tctx->weight, lead_in_group(tctx), cpu, &standing);
	return fair_preempts(running_key(cctx, scx_bpf_now()) - root_clock(cpu) - standing.lead, root_weight(cpu),
			     cctx->nr_runnable + 1);
}

/* A task on CPU @key may run again. The timer may run on another CPU, so it only asks CPU @key to look. */
static int limits_end(void *map, u32 *key, struct timer_on *timer)
{
	s32 cpu = *key;
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_ctx *tctx;
	struct task_struct *p;

	bpf_rcu_read_lock();	/* timers are set up where a program may sleep: before Linux 6.19 a look needs this */
	p = __COMPAT_scx_bpf_dsq_peek(queue_id(cpu, QUEUE_ASIDE));
	tctx = p ? task_ctx_of(p) : NULL;
	bpf_rcu_read_unlock();
	if (!cctx)
		return 0;
	/*
	 * NTP steers the timer's clock, so it may be too early by the scheduler's clock. Then the look sets the timer
	 * again. A task may also just be on its way to the queue, and have relied on the timer. The kick waits for the
	 * lock under which that task is queued.
	 */
	WRITE_ONCE(cctx->limited_until, 1);
	if (tctx && comes_back_ahead(tctx, cctx, cpu))
		preempt_for(cctx, cpu);
	else
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	return 0;
}

#endif
