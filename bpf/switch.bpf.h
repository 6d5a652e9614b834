/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A task becomes runnable, runs, stops or sleeps. What it used is charged, and its state is set where an arrival on
 * another CPU looks for it.
 */
#ifndef COSCHED_SWITCH_BPF_H
#define COSCHED_SWITCH_BPF_H

#include <scx/common.bpf.h>
#include "beat.bpf.h"
#include "carry.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "gang.bpf.h"
#include "groups.bpf.h"
#include "hints.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "limits.bpf.h"
#include "park.bpf.h"
#include "polls.bpf.h"
#include "prefetch.bpf.h"
#include "pulse.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "trace.bpf.h"
#include "units.h"
#include "../policies/account.h"
#include "../policies/epoch.h"
#include "../policies/fair.h"
#include "../policies/phase.h"
#include "../policies/policy.h"
#include "../policies/spin.h"
#include "../policies/wait.h"
#include "../policies/wire.h"

#define CLOCK_SKIPS_NEXT	1	/* RQCF_REQ_SKIP of the kernel's kernel/sched/sched.h, which BTF lacks */

/*
 * Charges @p for its run, and its job for the run and the fair share of the time since the last charge. If @p loses its
 * CPU, ops.dispatch() has already done so just before ops.stopping().
 */
static void settle(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	u64 ran_ns;

	if (p->se.sum_exec_runtime == tctx->charged_ns)
		return;
	ran_ns = charge(p, tctx);
	charge_limit(tctx, ran_ns);
	account_urgent(&cctx->urgent, is_kthread(p), ran_ns);
	if (!is_kthread(p))
		account_loan(&cctx->loan, current_policy(), cctx->curr_boosted, ran_ns);
	advance_share_clock(cctx, tctx->order_cpu, now);
	account(p, tctx, ran_ns, take_fair_share(tctx, cctx), false);
}

void BPF_STRUCT_OPS(cosched_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (tctx)
		become_idle(p, tctx);
}

/* @p runs next on @cpu because of a message: the CPU adopts its epoch. */
static void adopt_epoch(const struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	if (tctx->message_epoch == EPOCH_UNKNOWN)
		return;
	/* It may be of another CPU here, from before TAI was set back. */
	if (wire_on && !cosched_wire_credible(tctx->message_epoch, bpf_ktime_get_tai_ns()))
		return;
	if (wire_on && tctx->message_wired && tctx->message_epoch > cctx->epoch)
		count(COSCHED_COUNTER_epochs_adopted);
	cctx->epoch = cosched_epoch_adopt(cctx->epoch, tctx->message_epoch);
}

/*
 * @p runs next on @cpu. If it also ran there last, this is no switch. Otherwise it is a switch because of a message, or
 * a spontaneous switch (thesis 3.3).
 */
static void advance_epoch(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	if (cctx->epoch_id == task_id(p))
		return;
	cctx->epoch_id = task_id(p);
	if (cctx->curr_boosted)
		adopt_epoch(tctx, cctx);
	else if (wire_on)
		cctx->epoch = cosched_wire_epoch_next(cctx->epoch, node_number + cpu, bpf_ktime_get_tai_ns());
	else
		cctx->epoch = cosched_epoch_next(cctx->epoch, cpu);
}

/* The bucket of a latency: the least i with @ns <= 2^i us, or the last one. */
static u32 latency_bucket(u64 ns)
{
	u64 us = (ns + NSEC_PER_USEC - 1) / NSEC_PER_USEC;
	u32 bucket = us > 1 ? log2_u64(us - 1) : 0;

	return bucket < COSCHED_LATENCY_BUCKETS ? bucket : COSCHED_LATENCY_BUCKETS - 1;
}

/* Records how long the message that @tctx now runs for has waited, if it @is_there. Another thread may have read it. */
static void record_latency(struct task_ctx *tctx, bool is_there, u64 now)
{
	struct cosched_cpu_stats *stats = this_cpu_stats();
	u64 arrival_ns = tctx->arrival_ns;
	u64 waited_ns;
	u64 *bucket;

	if (!stats || !arrival_ns)
		return;
	tctx->arrival_ns = 0;
	if (!is_there)
		return;
	waited_ns = now > arrival_ns ? now - arrival_ns : 0;
	stats->latency_sum_ns += waited_ns;
	bucket = MEMBER_VPTR(stats->latency_buckets, [latency_bucket(waited_ns)]);
	if (bucket)
		(*bucket)++;
}

/*
 * When an idle CPU takes a task from one of our queues, the kernel (7.3) notes to skip the next update of that CPU's
 * clock. That comes at the next switch, up to a tick later. What the task has run since the last tick would then be
 * charged to the next task, or to none. So the CPU looks once more now, while nothing is lost by it.
 */
static void spend_clock_skip(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	if (rq && rq->clock_update_flags & CLOCK_SKIPS_NEXT)
		scx_bpf_kick_cpu(cpu, 0);
}

/*
 * @tctx runs on @cctx's CPU. What was noted while it waited is over, and so is what was noted of the task before it.
 * @awaits: it is about to sleep until a message comes.
 */
static void forget_wait(struct task_ctx *tctx, struct cpu_ctx *cctx, u32 awaits)
{
	tctx->queue = NR_QUEUES;
	tctx->pending = 0;
	tctx->owes = 0;
	tctx->woken = 0;
	tctx->woken_sync = 0;
	tctx->awaits = awaits;
	tctx->yields = 0;
	cctx->noted = 0;
	cctx->arrived = 0;
	cctx->spin = SPIN_NONE;
}

/* What is known of @p, whose place in the fair order is @key, for as long as it runs. */
static void note_current(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 key, u64 now)
{
	cctx->curr_id = task_id(p);
	tctx->charged_ns = p->se.sum_exec_runtime;
	note_position(cctx, tctx, key, now);
	cctx->curr_kthread = is_kthread(p);
	if (!cctx->curr_kthread)
		cctx->cut = 0;
	cctx->curr_slept = tctx->slept && !cctx->curr_kthread;
	tctx->slept = 0;
	cctx->curr_talks = tctx->endpoints[0] != 0;
}

/*
 * While @cpu switched, a boost may have come, or a task that goes ahead of this one (enqueue_fair()). Either preempts
 * the running task now. After a kernel thread it comes by itself.
 */
static void heed_latecomers(struct cpu_ctx *cctx, s32 cpu)
{
	if (cctx->curr_kthread)
		cctx->preempt_at_tick = 0;
	else if ((has_front(cctx, cpu) && !has_moment(cctx)) ||
		 (cctx->preempt_at_tick && !cctx->curr_slept))
		preempt_for(cctx, cpu);
}

void BPF_STRUCT_OPS(cosched_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	u64 now = scx_bpf_now(), key;
	u32 phase, still_awaits;
	bool moved, woken;

	if (!tctx || !cctx)
		return;
	count(COSCHED_COUNTER_context_switches);
	spend_clock_skip(cpu);
	phase = READ_ONCE(tctx->phase);
	/* A task that runs already has had its properties changed: see leave_phase(). It may be about to sleep. */
	cctx->curr_boosted = phase == PHASE_GRANTED || (phase == PHASE_RUNS && cctx->curr_boosted);
	still_awaits = phase == PHASE_RUNS && tctx->awaits;
	if (phase == PHASE_GRANTED)	/* perhaps while it waited with a slice of the fair order */
		scx_bpf_task_set_slice(p, begin_slice(tctx, tctx->granted_ns));
	trace_switch_in(p, tctx, cctx->curr_boosted);
	if ((tctx->awaits && !still_awaits) || tctx->queue == QUEUE_PARKED)
		cosched_spin_learn(current_policy(), &tctx->wait_history, passed_ns(tctx->wait_since));
	moved = tctx->order_cpu != cpu;
	resume_share_clock(p, cctx, cpu, now);
	become_runnable(p, tctx, cctx, cpu);
	come_no_more(tctx, cctx);
	tctx->cpu = cpu;
	key = present_key(tctx, cpu);
	if (moved || !tctx->slice_used_ns)
		tctx->key = key;
	/* Others may have come since it was queued. */
	if (!tctx->slice_used_ns && !cctx->curr_boosted)
		scx_bpf_task_set_slice(p, begin_whole_slice(tctx));
	bound_slice(p, tctx, cctx, cpu, now);

	if (cctx->curr_boosted) {
		count(COSCHED_COUNTER_boosts);
		tctx->unposted_boosts++;
	}
	if (!is_kthread(p))
		advance_epoch(p, tctx, cctx, cpu);
	woken = tctx->woken;
	forget_wait(tctx, cctx, still_awaits);
	note_current(p, tctx, cctx, key, now);
	note_turn(p, tctx, cctx, cpu);
	set_phase(tctx, PHASE_RUNS);
	heed_latecomers(cctx, cpu);
	if (looks_matter())
		begin_watch(tctx, cctx);
	record_latency(tctx, woken || tctx->had_message, now);
	start_pulse(tctx, cctx, cpu);
	begin_correspondence(p, tctx, cctx);
}

/*
 * @p leaves its CPU, and is runnable. If its turn is over and it waits for a message, it has no use for the next turn
 * until it has the message. Under spin-block it is then parked at once (park.bpf.h).
 */
static void look_at_preempted(struct task_struct *p, struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	if (!is_to_park(tctx, cctx))
		tctx->leaves = 0;
	if (!looks_matter())
		return;
	look_at(p, tctx, cctx);
	if (!is_watched(tctx) || !polls_in_vain(tctx, cctx))
		return;
	count(COSCHED_COUNTER_polls);
	if (current_policy()->wait == COSCHED_WAIT_SPIN_BLOCK && !has_rest(tctx))
		tctx->leaves = 1;
}

/*
 * @p has left @cctx's CPU. If a boost was cut short, its rest comes as soon as the task that cut it is done. A task
 * that has answered by RDMA has no rest: it polls, and its next message asks the gate again. Otherwise two such pairs,
 * each with a boost on one CPU, would poll for each other until both boosts end.
 *
 * A change of the task's properties, as by sched_setaffinity(), takes it off its CPU as if it slept, and puts it back
 * at once. Such a change counts as nothing. Otherwise the rest of a boost would count as a turn of the fair order.
 */
static void leave_phase(const struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, bool runnable)
{
	u32 phase = READ_ONCE(tctx->phase);
	bool rest = cctx->curr_boosted && has_rest(tctx) && !cctx->loan.starving && !tctx->leaves &&
		    !has_answered(tctx);

	if (!runnable && !p->__state)
		return;
	cctx->curr_boosted = 0;
	if (!runnable) {
		tctx->slept = 1;
		set_phase(tctx, PHASE_BLOCKED);
		return;
	}
	if (rest)
		tctx->granted_ns = tctx->slice_ns - tctx->slice_used_ns;
	change_phase(tctx, phase, phase_stops(phase, rest));
}

void BPF_STRUCT_OPS(cosched_stopping, struct task_struct *p, bool runnable)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_ctx *tctx = task_ctx_of(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	u64 now = scx_bpf_now();

	if (!tctx || !cctx)
		return;
	settle(p, tctx, cctx, now);
	note_cut(cctx, runnable, now);
	/* In all its runs since it woke it has one moment, which no change of its properties ends. */
	tctx->slept = (runnable || !p->__state) && is_in_moment(cctx) && !fair_has_had_time(tctx->slice_used_ns);
	cctx->stopped_at = p->se.exec_start;
	cctx->curr_id = 0;
	cctx->curr_slot = 0;
	cctx->curr_effective = 0;
	cctx->curr_kthread = 0;
	cctx->curr_slept = 0;	/* before the phase is set and the box looked into: no task is let be any more */
	check_hint(p, tctx);
	tctx->owes = runnable && owes_message(p, tctx);
	if (runnable) {
		/*
		 * If another class preempts it, the kernel would let it go on next with the rest of its slice. Which
		 * tasks wake or have a boost meanwhile, and which CPUs idle, would make no difference. Without a slice
		 * it comes to our queues, to where it was.
		 */
		scx_bpf_task_set_slice(p, 0);
		tctx->woken = 0;	/* set while it came to run: it has seen to it */
		look_at_preempted(p, tctx, cctx);
	} else {
		tctx->leaves = 0;
		tctx->more_endpoints = 0;
		leave_order(tctx);
		return_limit(tctx);
	}
	trace_switch_out(p, tctx, cctx->curr_boosted, runnable);
	leave_phase(p, tctx, cctx, runnable);
}

/*
 * Tells the gate "rate" how many tasks wait beside @tctx, which runs. While another CPU changes the weight of @tctx,
 * @nr_runnable may be without it.
 */
static void note_waiting(const struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	u32 nr = READ_ONCE(cctx->nr_runnable);

	fair_note_presence(&cctx->waiting, nr ? nr - is_in_order(tctx) : 0, scx_bpf_now());
}

/*
 * A slice can only end at a tick. If it would end less than half a tick from now, it ends now. Otherwise a slice that
 * began just after a tick would last a whole tick too long, on some nodes and not on others. A slice of 0 has been
 * used, or another task has preempted @p just now. Its rest is then kept, tick or no tick. That of a kernel thread is
 * not, since the pulse does not kick it.
 */
void BPF_STRUCT_OPS(cosched_tick, struct task_struct *p)
{
	s32 cpu = scx_bpf_task_cpu(p);
	struct task_ctx *tctx = task_ctx_of(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	bool preempted, cut;

	if (!tctx || !cctx)
		return;
	if (tctx->order_group != ROOT_GROUP) {
		advance_share_clock(cctx, tctx->order_cpu, scx_bpf_now());
		weigh_groups(tctx->order_group, tctx->order_cpu);
	}
	if (current_policy()->rate_average)
		note_waiting(tctx, cctx);
	start_pulse(tctx, cctx, cpu);
	beat_at_tick(p, tctx, cctx, cpu);
	cut = !p->scx.slice && !cctx->curr_kthread;
	hear_hints(cctx, cpu);
	if (cosched_wait_parks(current_policy()) && !READ_ONCE(cctx->beats))
		watch_wait(p, tctx, cctx, cpu);
	preempted = cctx->spin == SPIN_STOP || (cctx->preempt_at_tick && !cctx->curr_boosted && !has_moment(cctx));
	if (!preempted && (p->scx.slice >= tick_ns() / 2 || ends_at_pulse(p, cctx)))
		return;
	/* The slice of a task that spins ends when it sleeps, or with the next tick. */
	scx_bpf_task_set_slice(p, stop_spin(cctx) ? tick_ns() : 0);
	if (!preempted && !cut)
		tctx->slice_ns = 0;	/* it is over: nothing of it is left to be resumed */
}

#endif
