/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parking: a task that polls in vain leaves its CPU to the others, and comes back when it has a message.
 *
 * It stays runnable and in the fair order, but waits in another queue of its CPU, which is taken from when there is
 * nothing else to run. It loses nothing: what it does not use of its share meanwhile it may use later, as far as a task
 * that slept might.
 *
 * A message must not be lost between the empty poll and the parking. Pending is a level here too (demand.bpf.h):
 *
 *	arrival:	data into the socket;  full barrier;  read state and park
 *	parking:	park = PARKED;         full barrier;  read the sockets
 *
 * At least one of the two sees the other. tests/parking_model.rs tries the interleavings.
 *
 * Yet an arrival may go unnoticed: the kernel does not run a hook on a CPU where a task was preempted inside that very
 * hook. So the CPU of a parked task reads its sockets too, once a tick at most, when it looks for work. And should a
 * message come where nobody watches, the task looks again by itself after the recheck time.
 */
#ifndef COSCHED_PARK_BPF_H
#define COSCHED_PARK_BPF_H

/* The queue of those that are parked on CPU 0, by when they look again; of CPU n, n more. */
#define WAITERS 0x10000

/* Was @tctx asked to leave its CPU, and has had no message since? */
static bool is_to_park(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	return tctx->park == PARK_WANTED && !may_have_read(tctx, cctx) && !has_message(tctx);
}

/* @tctx was asked to park and has left its CPU. Does it stay away? Not if its message has come meanwhile. */
static bool park(struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	__sync_lock_test_and_set(&tctx->park, PARK_PARKED);	/* full barrier */
	if (has_demand(tctx)) {
		tctx->park = PARK_NONE;
		return false;
	}
	if (!cctx->parked_looked_at)
		cctx->parked_looked_at = now;
	return true;
}

/* Has the queue of @cpu somebody who is not parked? */
static bool is_wanted(s32 cpu)
{
	return __COMPAT_scx_bpf_dsq_peek(cpu);
}

/* A place behind all in @cpu's queue, or @key if that is further behind. */
static u64 behind_all(s32 cpu, u64 key)
{
	struct task_struct *p;

	bpf_for_each(scx_dsq, p, cpu, SCX_DSQ_ITER_REV)
		return vtime_before(key, p->scx.dsq_vtime + 1) ? p->scx.dsq_vtime + 1 : key;
	return key;
}

/* Is @tctx, which is parked and waits in the queue, to take its turn again? */
static bool is_to_unpark(struct task_ctx *tctx, u64 recheck_at, u64 now)
{
	if (tctx->park != PARK_PARKED)
		return true;
	if (has_message(tctx))
		return true;
	if ((s64)(now - recheck_at) < 0)
		return false;
	count(COSCHED_COUNTER_rechecks);
	return true;
}

/*
 * Gives those in @cpu's queue their place in the order back that are parked no longer, have a message, or are to look
 * again. Called by ops.dispatch(). O(parked tasks), and nothing at all while there are none.
 */
static void unpark(struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	bool due = cctx->parked_looked_at && now - cctx->parked_looked_at >= tick_ns();
	u64 recheck_ns = current_policy()->recheck_ns;
	struct task_struct *p;

	if (!due && !(READ_ONCE(cctx->unpark) && __sync_lock_test_and_set(&cctx->unpark, 0)))
		return;
	cctx->parked_looked_at = 0;
	bpf_for_each(scx_dsq, p, WAITERS + cpu, 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx)
			continue;
		if (!is_to_unpark(tctx, tctx->queued_at + recheck_ns, now)) {
			cctx->parked_looked_at = now;
			continue;
		}
		__sync_lock_test_and_set(&tctx->park, PARK_UNPARK);
		bound_credit(tctx, cctx);
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, resume_slice(tctx, cpu));
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, tctx->key);
		if (scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, cpu, 0))
			tctx->park = PARK_NONE;
		note_queued(cpu);
	}
}

#endif
