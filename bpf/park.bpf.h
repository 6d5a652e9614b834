/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Parking: a task that polls in vain leaves its CPU to the others, and comes back when it has a message.
 *
 * It stays runnable and in the fair order, but waits in QUEUE_PARKED. A CPU takes tasks from there when there is
 * nothing else to run. A parked task loses nothing. What it does not use of its share it may use later, as far as a
 * task that slept might.
 *
 * A message must not be lost between the empty poll and the parking. Pending is a level here too (demand.bpf.h):
 *
 *	arrival:	data into the socket;  full barrier;  read the phase
 *	parking:	phase = PARKED;        full barrier;  read the sockets
 *
 * At least one of the two sees the other. tests/parking_model.rs tries the interleavings.
 *
 * Yet an arrival may go unnoticed: the kernel does not run a hook on a CPU where a task was preempted inside that very
 * hook. So the CPU of a parked task reads its sockets too when it looks for work, once a tick at most. Of many parked
 * tasks it looks at a few at a time, in turn. A message may also come where no hook watches. So the task looks again by
 * itself after the recheck time.
 *
 * With PREEMPT_RT a task may lose its CPU while it holds a spin lock, such as that of the socket that it polls. If it
 * is parked so, the sender waits for the lock, and no message comes. So the CPU of a parked task looks for such a
 * waiter too, and lets the task go on. The same holds there for the kernel's mutexes, and everywhere for users' mutexes
 * that hand priorities on.
 */
#ifndef COSCHED_PARK_BPF_H
#define COSCHED_PARK_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "intf.h"
#include "polls.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "../policies/phase.h"

/* Was @tctx asked to leave its CPU, and has it had no message since? */
static bool is_to_park(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	return tctx->leaves && !may_have_read(tctx, cctx) && !has_message(tctx);
}

/* @tctx was asked to park and has left its CPU. Does it stay away? Not if its message has come meanwhile. */
static bool park(struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	u32 phase = READ_ONCE(tctx->phase), parked = phase_parks(phase);

	if (parked == phase || !change_phase(tctx, phase, parked))
		return false;
	if (has_demand(tctx)) {
		change_phase(tctx, parked, phase_calms(parked));
		return false;
	}
	tctx->look_at = now;
	if (!cctx->parked_looked_at)
		cctx->parked_looked_at = now;
	return true;
}

/* Does another task wait for a lock that @p holds? Only locks that hand priorities on can tell. */
static bool is_waited_for(const struct task_struct *p)
{
	return bpf_core_field_exists(p->pi_waiters) && p->pi_waiters.rb_root.rb_node;
}

/*
 * Does @p have a signal to handle? Its own flag says so too, in a place that depends on the architecture (waits.bpf.h).
 */
static bool is_signalled(const struct task_struct *p)
{
	return (p->pending.signal.sig[0] | p->signal->shared_pending.signal.sig[0]) & ~p->blocked.sig[0];
}

/* Is @p, which waits in QUEUE_PARKED, to take its turn again? */
static bool is_to_unpark(const struct task_struct *p, struct task_ctx *tctx, const struct cpu_ctx *cctx, u64 now)
{
	u32 phase = READ_ONCE(tctx->phase);

	if (phase != PHASE_PARKED)
		return true;
	if (has_message(tctx)) {
		/* As if denied: then ask_again() asks the gate in this very dispatch. */
		change_phase(tctx, phase,
			     phase_message(phase, arrivals_demand(cctx) ? ANSWER_DENIED : ANSWER_NOT_ASKED));
		return true;
	}
	if (!is_waited_for(p) && !is_signalled(p)) {
		if ((s64)(now - tctx->queued_at - current_policy()->recheck_ns) < 0)
			return false;
		count(COSCHED_COUNTER_rechecks);
	}
	change_phase(tctx, phase, phase_calms(phase));
	return true;
}

/* @p, which was parked on @cpu, takes its place in the order again. */
__noinline int unpark(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		      struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	bound_debts(p, tctx);
	bound_credit(tctx, cctx);
	move_to_queue(p, tctx, cpu, queue_for(p, tctx), resume_slice(tctx, cpu));
	return 0;
}

/* Looks at parked tasks of @cpu, and unparks tasks that have a message or are to look again. */
__noinline int look_at_parked(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_struct *p;
	u32 looks = forget_ways(0);

	if (!cctx || !cctx->parked_looked_at || now - cctx->parked_looked_at < tick_ns())
		return 0;
	cctx->parked_looked_at = 0;
	bpf_for_each(scx_dsq, p, queue_id(cpu, QUEUE_PARKED), 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx)
			continue;
		if (looks++ < MAX_LOOKS && is_to_unpark(p, tctx, cctx, now)) {
			unpark(p, tctx, cctx, cpu);
			continue;
		}
		cctx->parked_looked_at = now;
		if (looks > MAX_LOOKS)
			break;
		tctx->look_at = now;
		move_to_queue(p, tctx, cpu, QUEUE_PARKED, 0);
	}
	return 0;
}

#endif
