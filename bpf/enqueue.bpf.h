/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where a task that is to run goes. It goes to an idle CPU at once, if there is one. It goes ahead of the running task
 * where a boost or the fair order has it so. Otherwise it goes to its CPU's queue.
 */
#ifndef COSCHED_ENQUEUE_BPF_H
#define COSCHED_ENQUEUE_BPF_H

#include <scx/common.bpf.h>
#include "aside.bpf.h"
#include "balance.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "gang.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "limits.bpf.h"
#include "park.bpf.h"
#include "polls.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "../policies/fair.h"
#include "../policies/phase.h"
#include "../policies/policy.h"

s32 BPF_STRUCT_OPS(cosched_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);
	bool is_idle = false;
	s32 cpu;

	if (tctx && is_held_now(p, tctx, prev_cpu) && is_online(prev_cpu))
		return prev_cpu;
	/* The task that runs on another CPU than the waker's has promised nothing. */
	if (tctx)
		tctx->woken_sync = (wake_flags & SCX_WAKE_SYNC) && bpf_get_smp_processor_id() == prev_cpu;
	/*
	 * Without SCX_WAKE_SYNC, which would put @p behind a waker that promises to sleep, even with a CPU idle. Pipes
	 * and sockets promise it at every write, and a stream of messages then runs on one CPU.
	 */
	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags & ~SCX_WAKE_SYNC, &is_idle);
	/* A task that slept on a CPU that has gone is placed as if it had just been made. */
	if (!is_idle && (wake_flags & SCX_WAKE_FORK || !is_online(cpu)))
		return least_busy(p, cpu);
	/* A kernel thread need not wait for a real-time task where the waker's CPU will do. */
	if (!is_idle && is_kthread(p) && is_taken(cpu) && bpf_cpumask_test_cpu(bpf_get_smp_processor_id(), p->cpus_ptr))
		return bpf_get_smp_processor_id();
	if (!is_idle && tctx)
		return wake_elsewhere(p, tctx, cpu);
	if (tctx)
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, begin_slice(tctx, current_policy()->slice_ns), 0);
	return cpu;
}

/* Is it settled what @cpu runs next? That is a kernel thread, or a task that has just woken. */
static bool is_next_known(s32 cpu)
{
	return scx_bpf_dsq_nr_queued(SCX_DSQ_LOCAL_ON | cpu) > 0;
}

/* How a task gets ahead of the running task, which leaves by itself if it spins. */
static u64 preempt_flag(struct cpu_ctx *cctx)
{
	return stop_spin(cctx) ? SCX_ENQ_HEAD : SCX_ENQ_PREEMPT;
}

/*
 * @p has polled in vain, and leaves its CPU to the others until its message comes. If it yields, it does so to the task
 * that is next, which has just been taken, and has its own place in the fair order then. Returns false if its message
 * has come meanwhile.
 */
static bool enqueue_waiter(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 enq_flags)
{
	u64 slice_ns = resume_slice(tctx, cpu);

	if (current_policy()->wait == COSCHED_WAIT_SPIN_YIELD) {
		if (has_message(tctx))
			return false;
		insert(p, tctx, queue_for(p, tctx), slice_ns, enq_flags);
	} else {
		if (!park(tctx, cctx, tctx->queued_at))
			return false;
		insert(p, tctx, QUEUE_PARKED, slice_ns, enq_flags);
	}
	count(COSCHED_COUNTER_parks);
	tctx->polling = MAX_POLLING;	/* if it polls still when it looks again, one look is to find that out */
	return true;
}

/*
 * Puts @p into a queue of @cpu, in the fair order, and preempts or wakes a CPU for it where that is due. A task that is
 * to preempt as it wakes goes in front of all if it cannot. It cannot while a kernel thread runs, or when it is settled
 * what runs next. A task that has been cut short in its moment goes in front too (fair.bpf.h). Otherwise boosts would
 * go on before it. So does a kernel thread for which a real-time task leaves no CPU.
 */
static void enqueue_fair(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			 u64 enq_flags)
{
	bool woken = enq_flags & SCX_ENQ_WAKEUP, front;
	u64 slice_ns, key;

	if (woken || tctx->yields)
		tctx->slice_used_ns = 0;
	front = has_rest(tctx) && (tctx->slept || is_urgent(p, cctx));
	slice_ns = resume_slice(tctx, cpu);
	if (tctx->yields && !vtime_before(tctx->yields_to, tctx->key))
		tctx->key = tctx->yields_to + 1;
	if (woken && (is_urgent(p, cctx) || takes_cpu(p, tctx, cctx, cpu))) {
		count(COSCHED_COUNTER_preemptions);
		if (runs_user(cctx) && !is_next_known(cpu)) {
			scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | preempt_flag(cctx));
			return;
		}
		front = true;
	}
	cctx->front |= front;
	key = tctx->key;
	if (front) {
		u64 clock = root_clock(cpu);

		tctx->key = clock + fair_front(key - clock);
	}
	insert(p, tctx, queue_for(p, tctx), slice_ns, enq_flags);
	tctx->key = key;
	wake_cpu_for(p, cctx, cpu);
	/* If ops.select_cpu() was called, it has just looked for an idle CPU, and there was none. */
	if (!__COMPAT_is_enq_cpu_selected(enq_flags) && !scx_bpf_test_and_clear_cpu_idle(cpu))
		wake_idle_cpu_for(p);
}

/*
 * Makes @p run next. A task that wakes goes straight to the CPU's local queue, unless another task is to run before it.
 * Nor does it go there if a real-time task has the CPU: behind that, no other CPU could take it. A task that is just
 * being switched out cannot go there. Its successor is already picked, and preempting "the running task" would hit @p
 * itself. It goes to the queue, and ops.running() sees to it that it is taken from there.
 */
static void enqueue_boosted(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			    u64 enq_flags)
{
	u64 slice_ns = begin_slice(tctx, tctx->granted_ns);

	if (enq_flags & SCX_ENQ_WAKEUP && !is_next_known(cpu) && !has_moment(cctx) &&
	    (runs_user(cctx) || scx_bpf_test_and_clear_cpu_idle(cpu))) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | preempt_flag(cctx));
		return;
	}
	tctx->key = present_key(tctx, cpu);
	insert(p, tctx, QUEUE_GRANTED, slice_ns, enq_flags);
	if (cctx->curr_id) {
		make_way(cctx, cpu);
		return;
	}
	WRITE_ONCE(cctx->preempt_at_tick, 1);
	wake_cpu_for(p, cctx, cpu);
	if (is_taken(cpu))
		wake_idle_cpu_for(p);
}

/*
 * @p, which is urgent, runs at once. If another kernel thread is running, @p waits until that thread is done, or until
 * the next tick. The preempted thread then goes on right behind it, and does not wait for its turn. Otherwise whatever
 * needs that thread would wait for a whole slice of a task that only computes. Returns false if @p has to wait for its
 * turn, because it has used its slice or has yielded. It also waits if a real-time task has the CPU, and other CPUs may
 * take @p from its queue.
 */
static bool enqueue_kthread(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			    u64 enq_flags)
{
	if (is_taken(cpu) && p->nr_cpus_allowed > 1)
		return false;
	if (enq_flags & SCX_ENQ_WAKEUP) {
		enq_flags |= cctx->curr_kthread ? SCX_ENQ_HEAD : SCX_ENQ_PREEMPT;
		if (cctx->curr_kthread)
			WRITE_ONCE(cctx->preempt_at_tick, 1);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, begin_slice(tctx, current_policy()->slice_ns), enq_flags);
		return true;
	}
	if (tctx->yields || tctx->slice_used_ns + FAIR_LEAST_SLICE_NS > tctx->slice_ns)
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, tctx->slice_ns - tctx->slice_used_ns, enq_flags);
	return true;
}

/*
 * Does @p, which wakes, go to @cpu at once because that is idle? That is what ops.select_cpu() does. The kernel does
 * not call it for a task that has to stay where it is.
 */
static bool enqueue_idle(struct task_struct *p, struct task_ctx *tctx, s32 cpu, u64 enq_flags)
{
	if (!(enq_flags & SCX_ENQ_WAKEUP) || __COMPAT_is_enq_cpu_selected(enq_flags) ||
	    !scx_bpf_test_and_clear_cpu_idle(cpu))
		return false;
	scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, begin_slice(tctx, current_policy()->slice_ns), enq_flags);
	return true;
}

void BPF_STRUCT_OPS(cosched_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	u32 phase, leaves;

	if (!tctx || !cctx) {
		scx_bpf_error("enqueue: pid %d has no context on CPU %d", p->pid, cpu);
		return;
	}

	leaves = tctx->leaves;
	tctx->leaves = 0;
	/* The CPU would go idle: makes it look for work again, since @p counts as work from now on. */
	if (enq_flags & SCX_ENQ_LAST)
		scx_bpf_kick_cpu(cpu, 0);
	if (enqueue_aside(p, tctx, cctx, cpu, enq_flags))
		return;
	if (is_urgent(p, cctx) && enqueue_kthread(p, tctx, cctx, cpu, enq_flags))
		return;
	if (enqueue_idle(p, tctx, cpu, enq_flags))
		return;

	if (tctx->order_cpu != cpu)
		tctx->slice_used_ns = 0;	/* its key is of another clock */
	become_runnable(p, tctx, cctx, cpu);
	tctx->cpu = cpu;
	tctx->queued_at = scx_bpf_now();
	bound_debts(p, tctx);
	phase = READ_ONCE(tctx->phase);
	change_phase(tctx, phase, phase_queued(phase));	/* after its CPU is known: see demand.bpf.h */

	if (leaves && enqueue_waiter(p, tctx, cctx, cpu, enq_flags))
		return;
	if (is_granted_at_once(p, tctx, cctx, scx_bpf_now()))
		enqueue_boosted(p, tctx, cctx, cpu, enq_flags);
	else
		enqueue_fair(p, tctx, cctx, cpu, enq_flags);
}

#endif
