/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU runs next, in this order:
 *
 *	1. a kernel thread, or a task in its moment (is_in_moment()), that was asked to leave meanwhile
 *	2. a task that is to go ahead of boosts (enqueue_fair())
 *	3. a task of the row or job that has its turn
 *	4. a boosted task
 *	5. a task from a busier CPU
 *	6. the running task, if its turn goes on
 *	7. the first task in its own queues
 *	8. a task that waits on another CPU
 *	9. a parked task of its own
 */
#ifndef COSCHED_DISPATCH_BPF_H
#define COSCHED_DISPATCH_BPF_H

#include <scx/common.bpf.h>
#include "aside.bpf.h"
#include "balance.bpf.h"
#include "beat.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "gang.bpf.h"
#include "intf.h"
#include "limits.bpf.h"
#include "park.bpf.h"
#include "polls.bpf.h"
#include "pulse.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "switch.bpf.h"
#include "trace.bpf.h"
#include "../policies/phase.h"

/* Lets @prev, which stands at @key, go on for @slice_ns. Inline: a function of BPF takes five arguments at most. */
static __always_inline void let_go_on(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
				      u64 slice_ns, u64 key, u64 now)
{
	cctx->curr_slept = 0;	/* a renewed slice is no new moment */
	scx_bpf_task_set_slice(prev, slice_ns);
	bound_slice(prev, tctx, cctx, cpu, now);
	tctx->key = key;
	note_position(cctx, tctx, key, now);
	/* The pulse has ended the last portion of its limit, and is to end this one before a tick does. */
	if (cctx->curr_limited)
		start_pulse(tctx, cctx, cpu);
}

/*
 * Under beat: is the first task in the order one of the job that has its turn, and in a queue where take_of_row() does
 * not look? It does not communicate, or was granted a boost before. Those of its job that do would come before it in
 * each turn, so the order decides between them. A global function: see sum_presence() (groups.bpf.h).
 */
__noinline bool is_own_turn(struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	struct task_struct *p;
	struct head first;

	first_of(cctx, cpu, &first);
	if (first.queue == NR_ORDERED || first.queue == QUEUE_ASKED)
		return false;
	p = __COMPAT_scx_bpf_dsq_peek(queue_id(cpu, first.queue));
	return p && has_turn(p);
}

/* Takes the first task of the row that has its turn on @cpu, or lets @prev go on if it is of that row. */
static bool dispatch_row(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	bool goes_on;
	u64 key = 0;
	u32 queue;

	if (!has_row(cctx))
		return false;
	if (is_gang())
		bpf_for(queue, QUEUE_FREE + 1, NR_ORDERED)
			gather(queue_id(cpu, queue), cpu);
	goes_on = prev && tctx && has_turn(prev) && !is_held_now(prev, tctx, cpu) && !is_to_park(tctx, cctx) &&
		  may_lead(tctx, now);
	cctx->curr_has_turn = goes_on;
	if (!is_gang() && is_own_turn(cctx, cpu))
		return false;
	if (goes_on)
		key = present_key(tctx, cpu);
	if (take_of_row(cpu, goes_on, key, now))
		return true;
	if (!goes_on || !prev || !tctx)	/* the verifier forgets what the first one says of the others */
		return false;
	tctx->leaves = 0;
	tctx->yields = 0;
	let_go_on(prev, tctx, cctx, cpu, begin_whole_slice(tctx), key, now);
	return true;
}

/*
 * @prev has used its slice, or was asked to yield the CPU. Lets it go on if it has a message and the gate allows, or if
 * no task in the queue comes before it.
 */
static bool keep_running(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			 const struct head *first, u64 now)
{
	bool others = first->queue != NR_ORDERED, asks, granted = false;
	u64 key;

	if (is_held_now(prev, tctx, cpu) || (others && is_to_park(tctx, cctx)))
		return false;
	tctx->leaves = 0;
	if (others && tctx->yields) {
		tctx->yields_to = first->key;
		return false;
	}
	tctx->yields = 0;
	bound_debts(prev, tctx);
	key = present_key(tctx, cpu);
	if (others && !vtime_before(key, first->key)) {
		tctx->owes = owes_message(prev, tctx);
		/*
		 * It has run since, so what was left of the sender's slice then is over. The sender goes on as well as
		 * @prev does.
		 */
		tctx->message_slice_ns = 0;
		asks = !cctx->front && arrivals_demand(cctx) && has_demand(tctx);
		granted = asks && ask(prev, tctx, cctx, now);
		if (!granted) {
			if (asks)
				set_phase(tctx, PHASE_ASKS);
			return false;
		}
	}
	if (cctx->curr_boosted != granted) {
		cctx->curr_boosted = granted;
		trace_switch_in(prev, tctx, granted);
	}
	let_go_on(prev, tctx, cctx, cpu, granted ? begin_slice(tctx, tctx->granted_ns) : rest_or_whole_slice(tctx), key,
		  now);
	return true;
}

/* sched_yield(): the task that is next in the queue runs before @from does again. */
bool BPF_STRUCT_OPS(cosched_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx_of(from);

	if (to)
		return false;
	if (tctx)
		tctx->yields = 1;
	scx_bpf_task_set_slice(from, 0);
	return false;
}

/*
 * An idle CPU takes work from other CPUs, first from those that share its cache. It may be idle for a moment only,
 * whatever the loads are. So it takes the lightest task, as a heavy task would leave the CPU to which it has just come.
 */
__noinline int steal(s32 cpu)
{
	struct move_plan move = { .to = cpu };
	u32 pass, i, queue;

	if (!others_queued(cpu))
		return false;
	bpf_for(pass, 0, 2) {
		bpf_for(i, 1, nr_cpu_ids) {
			s32 other = cpu + i < nr_cpu_ids ? cpu + i : cpu + i - nr_cpu_ids;

			if (share_cache(cpu, other) != !pass || !is_queued(other))
				continue;
			move.from = other;
			bpf_for(queue, 0, NR_ORDERED) {
				if (queue != QUEUE_PINNED && take_from(queue_id(other, queue), &move)) {
					count(COSCHED_COUNTER_steals);
					return true;
				}
			}
		}
	}
	return false;
}

static bool take_first(s32 cpu, const struct head *first)
{
	return first->queue != NR_ORDERED && scx_bpf_dsq_move_to_local(queue_id(cpu, first->queue), 0);
}

/*
 * Takes @first, or whatever waits elsewhere. A look elsewhere lets go of the CPU's lock. A kick for a task that is
 * enqueued meanwhile is forgotten as the idle task is picked. So this looks once more for what has come.
 */
static void take_next(struct cpu_ctx *cctx, s32 cpu, struct head *first, u64 now)
{
	if (take_first(cpu, first) || steal(cpu))
		return;
	first_of(cctx, cpu, first);
	if (!take_first(cpu, first) && clear_front(queue_id(cpu, QUEUE_PARKED), cpu, now))
		scx_bpf_dsq_move_to_local(queue_id(cpu, QUEUE_PARKED), 0);
}

/*
 * Lets @prev, which was asked to leave its CPU in mid-slice, go on if it is in its moment (fair.bpf.h) or is a kernel
 * thread. A kernel thread was not meant: the request was for the task before it. Otherwise the thread would wait behind
 * the boost that comes.
 */
static bool finish(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	if (tctx->yields || tctx->leaves || !has_rest(tctx) || is_held_now(prev, tctx, cpu))
		return false;
	if (!is_urgent(prev, cctx) && !has_moment(cctx))
		return false;
	scx_bpf_task_set_slice(prev, tctx->slice_ns - tctx->slice_used_ns);
	bound_slice(prev, tctx, cctx, cpu, now);
	return true;
}

/*
 * Is there nothing for @cpu to choose from, here or elsewhere? A CPU that goes idle mostly finds nothing, and need not
 * look everywhere. Under beat it draws in each turn.
 */
static bool has_nothing(const struct cpu_ctx *cctx, s32 cpu)
{
	return !cctx->filled && !cctx->preempt_at_tick && !is_queued(cpu) && !others_queued(cpu) && !is_beat();
}

void BPF_STRUCT_OPS(cosched_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_ctx *tctx = NULL;
	u64 now = scx_bpf_now();
	struct head first;
	bool may_take;

	if (!cctx)
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		tctx = task_ctx_of(prev);
		if (tctx)
			settle(prev, tctx, cctx, now);
	} else if (has_nothing(cctx, cpu)) {
		return;
	}
	refresh_last(cpu, now);
	/* A full barrier, before the box is looked into: whatever comes from now on sets it again. */
	if (cctx->preempt_at_tick)
		__sync_lock_test_and_set(&cctx->preempt_at_tick, 0);
	look_at_parked(cpu, now);
	empty_box(cpu);
	take_back(cpu, now);
	may_take = clear_fronts(cctx, cpu, now);
	begin_turn(prev, tctx, cctx, cpu, now);
	if (prev && tctx && finish(prev, tctx, cctx, cpu, now))
		return;
	if (has_front(cctx, cpu))
		WRITE_ONCE(cctx->preempt_at_tick, 1);
	else if (dispatch_row(prev, tctx, cctx, cpu, now))
		return;
	if (may_take && take_boosted(cctx, cpu, now))
		return;
	if (!cctx->front && pull(cctx, cpu))
		return;
	first_of(cctx, cpu, &first);
	if (!(cctx->filled & MOVABLE_QUEUES))
		note_unmovable(cpu);
	if (prev && tctx && keep_running(prev, tctx, cctx, cpu, &first, now))
		return;
	if (may_take)
		take_next(cctx, cpu, &first, now);
}

#endif
