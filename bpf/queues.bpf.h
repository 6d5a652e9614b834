/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The queues of a CPU. A runnable task that does not run waits in one of six:
 *
 *	QUEUE_FREE	other CPUs may take it
 *	QUEUE_PINNED	it may run on this CPU only
 *	QUEUE_ASKED	its demand was denied, or it gives hints: the gate is asked whenever the CPU looks for work.
 *			Under beat all tasks that communicate wait here, so that the job of a turn is found
 *	QUEUE_GRANTED	the gate has granted it a boost: it goes first
 *	QUEUE_PARKED	it polls in vain, and waits for a message (park.bpf.h)
 *	QUEUE_ASIDE	its group has used up its cpu.max (aside.bpf.h)
 *
 * The first four have one order, by key (fair.bpf.h), so the next task is at the head of one of them. In the others
 * tasks stand in the order in which the CPU looks at them. So whatever a CPU looks for is at a head. Nothing walks
 * through a whole queue. A look for a suitable task goes over a few tasks at most, and leaves the rest to the next
 * look.
 *
 * Most queues are empty most of the time, and to look into each would cost more than the rest of a switch. So a CPU has
 * a bit for each queue that has had a task since the CPU last found it empty. A task is put into a queue under the lock
 * of that CPU's runqueue, which ops.dispatch() holds too. So no task comes between the look and the bit.
 *
 * Only ops.dispatch() may move a task from one queue to another. A hook may grant a boost, or find a message for a
 * parked task. Then it marks the task and leaves its id in the box of its CPU. The CPU sorts what is in the box before
 * it looks for work. If the box is full, the task has to wait for its turn in the fair order. A boost is lost then, but
 * no message.
 */
#ifndef COSCHED_QUEUES_BPF_H
#define COSCHED_QUEUES_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "state.bpf.h"
#include "../policies/phase.h"
#include "../policies/policy.h"

enum queue {
	QUEUE_FREE,
	QUEUE_PINNED,
	QUEUE_ASKED,
	QUEUE_GRANTED,
	NR_ORDERED,		/* the queues above make up the fair order */
	QUEUE_PARKED = NR_ORDERED,
	QUEUE_ASIDE,
	NR_QUEUES,
	MOVABLE_QUEUES	= 1 << QUEUE_FREE | 1 << QUEUE_ASKED | 1 << QUEUE_GRANTED,	/* others may take from these */
};

enum {
	MAX_LOOKS	= 16,	/* tasks that one look goes over, which may be suitable or not */
	MAX_CHOICES	= 64,	/* the same where a policy chooses by more than the order: the tasks due first */
	MAX_ASKED	= 4,	/* times that one dispatch asks the gate again: each costs a walk up the tree */
};

static bool vtime_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/* The id that the kernel knows @queue of @cpu by. */
static u64 queue_id(s32 cpu, u32 queue)
{
	return (u64)queue << 16 | cpu;
}

/* May there be something in @queue of @cctx's CPU? If not, there is nothing. */
static bool may_hold(const struct cpu_ctx *cctx, u32 queue)
{
	return cctx->filled & 1U << queue;
}

static bool holds(const struct cpu_ctx *cctx, s32 cpu, u32 queue)
{
	return may_hold(cctx, queue) && scx_bpf_dsq_nr_queued(queue_id(cpu, queue)) > 0;
}

/* The task that a CPU runs next in the fair order. */
struct head {
	u32 queue;		/* at the head of which it is; NR_ORDERED: nothing waits */
	u64 key;
};

/* Finds the first in the order of @cpu. A global function: it is verified once. */
__noinline int first_of(struct cpu_ctx *cctx __arg_nonnull, s32 cpu, struct head *first __arg_nonnull)
{
	u32 queue;

	*first = (struct head){ .queue = NR_ORDERED };
	for (queue = 0; queue < NR_ORDERED; queue++) {
		struct task_struct *p;

		if (!may_hold(cctx, queue))
			continue;
		p = __COMPAT_scx_bpf_dsq_peek(queue_id(cpu, queue));
		if (!p && !scx_bpf_dsq_nr_queued(queue_id(cpu, queue)))
			cctx->filled &= ~(1U << queue);
		if (!p || (first->queue != NR_ORDERED && !vtime_before(p->scx.dsq_vtime, first->key)))
			continue;
		first->queue = queue;
		first->key = p->scx.dsq_vtime;
	}
	return 0;
}

/* Does anything wait on @cpu for its turn? */
static bool is_wanted(const struct cpu_ctx *cctx, s32 cpu)
{
	u32 queue;

	for (queue = 0; queue < NR_ORDERED; queue++)
		if (holds(cctx, cpu, queue))
			return true;
	return false;
}

/*
 * Which CPUs may have something that others can take, so that a CPU that goes idle need not look at all of them. A
 * CPU's bit is written under its lock: when there is something again, and when it finds nothing itself. Another CPU
 * that finds nothing must not clear it, as a task that is being enqueued just now is not in the queue yet.
 */
u64 queued_cpus[COSCHED_MAX_CPUS / 64];

static u64 *queued_word(s32 cpu)
{
	return &queued_cpus[cpu / 64 & (COSCHED_MAX_CPUS / 64 - 1)];
}

static bool is_queued(s32 cpu)
{
	return READ_ONCE(*queued_word(cpu)) & 1ULL << (cpu & 63);
}

/* A task has been put into a queue of @cpu from which others may take it. */
static void note_movable(s32 cpu)
{
	if (!is_queued(cpu))
		__sync_fetch_and_or(queued_word(cpu), 1ULL << (cpu & 63));
}

/* A task has been put into @queue of @cpu, from which others may take it or not. */
static void note_queued(s32 cpu, u32 queue)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);

	if (cctx)
		cctx->filled |= 1U << queue;
	if (MOVABLE_QUEUES & 1U << queue)
		note_movable(cpu);
}

/* Nothing waits on @cpu, on which this runs, that others may take. */
static void note_unmovable(s32 cpu)
{
	if (is_queued(cpu))
		__sync_fetch_and_and(queued_word(cpu), ~(1ULL << (cpu & 63)));
}

/* May a CPU other than @cpu have something to take? */
static bool others_queued(s32 cpu)
{
	u32 i;

	for (i = 0; i < COSCHED_MAX_CPUS / 64 && i * 64 < nr_cpu_ids; i++)
		if (READ_ONCE(queued_cpus[i]) & ~(i == cpu / 64 ? 1ULL << (cpu & 63) : 0))
			return true;
	return false;
}

/* The queue that @p is to wait in for its turn. */
static u32 queue_for(const struct task_struct *p, const struct task_ctx *tctx)
{
	u32 phase = READ_ONCE(tctx->phase);

	/* A row of a gang is looked for in one queue (gang.bpf.h). */
	if (current_policy()->arrival == COSCHED_ARRIVAL_GANG)
		return QUEUE_FREE;
	if (phase == PHASE_GRANTED)
		return QUEUE_GRANTED;
	if (phase == PHASE_ASKS || tctx->hint_page || (is_beat() && is_known_to_wait(tctx)))
		return QUEUE_ASKED;
	return p->nr_cpus_allowed == 1 || is_migration_disabled(p) ? QUEUE_PINNED : QUEUE_FREE;
}

/* Where @tctx stands in @queue. */
static u64 place_in(const struct task_ctx *tctx, u32 queue)
{
	return queue < NR_ORDERED ? tctx->key : tctx->look_at;
}

/* Has @p, which is being enqueued, wait for its CPU in @queue. */
static void insert(struct task_struct *p, struct task_ctx *tctx, u32 queue, u64 slice_ns, u64 enq_flags)
{
	tctx->queue = queue;
	scx_bpf_dsq_insert_vtime(p, queue_id(tctx->cpu, queue), slice_ns, place_in(tctx, queue), enq_flags);
	note_queued(tctx->cpu, queue);
}

/*
 * Moves @p, which waits on @cpu, to its place in @queue. Its slice is @slice_ns from now on; 0: what it was. An
 * iterator moves any task of its queue, so this takes no walk. Does nothing if @p has left meanwhile. A global
 * function: it is verified once.
 */
__noinline int move_to_queue(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull, s32 cpu,
			     u32 queue, u64 slice_ns)
{
	struct task_struct *first;
	bool moved = false;

	bpf_for_each(scx_dsq, first, queue_id(cpu, tctx->queue), 0) {
		if (slice_ns)
			scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, slice_ns);
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, place_in(tctx, queue));
		moved = scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, queue_id(cpu, queue), 0);
		break;
	}
	if (!moved)
		return false;
	tctx->queue = queue;
	note_queued(cpu, queue);
	return true;
}

/* Leaves the task of @id in the box of @cctx's CPU. False if the box is full. */
static bool post(struct cpu_ctx *cctx, u64 id)
{
	u32 i;

	bpf_for(i, 0, CPU_BOX) {
		u64 *place = MEMBER_VPTR(cctx->box, [(id + i) & (CPU_BOX - 1)]);

		if (!place)
			return false;
		if (READ_ONCE(*place) != id && __sync_val_compare_and_swap(place, 0, id) != 0)
			continue;
		__sync_lock_test_and_set(&cctx->posted, 1);	/* after the place is filled: a full barrier */
		return true;
	}
	count(COSCHED_COUNTER_boxes_full);
	return false;
}

#endif
