/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_cosched: demand-based coscheduling as a sched_ext scheduler.
 *
 * A parallel job on time-shared nodes waits for messages from processes that are not running just now.
 * Here the arrival of a message is the demand to run its receiver, so that processes which talk to each
 * other come to run at the same time on all nodes, without a coordinator and without a change to them.
 *
 * Take two nodes, each with one process of the job and four busy competitors, all of equal weight, and
 * 20 ms slices. Left to themselves (`local`), each process runs a fifth of the time, and both at once
 * only a twenty-fifth: the job makes 4% of the round trips that it would make alone and spins through
 * the rest of its share. With demand, the process whose turn it is sends its message, the message runs
 * its peer, and both spend the same 20 ms talking. The share stays a fifth, for what is boosted is
 * charged and the fair order lets the others catch up, but now nearly all of that fifth is work.
 *
 *	state.bpf.h	what is known of a CPU, a task, an endpoint
 *	weights.bpf.h	nice levels and cgroup weights
 *	fair.bpf.h	the fair order: per-CPU queues by virtual time
 *	demand.bpf.h	pending messages, and the gate that says when a boost is fair
 *	jobs.bpf.h	what each job used, and what its share would have been
 *	sockets.bpf.h	hooks: who receives where, what has arrived
 *	main.bpf.c	the scheduler's callbacks, which tie these together
 *
 * Where it hurts: slices end at a timer tick, so two nodes that started together end up to a tick apart;
 * a receiver that spins in user space on shared memory is invisible; the fair order is kept per CPU, and
 * only idle CPUs balance, so long-run fairness between CPUs is as good as the initial placement.
 */
#include <scx/common.bpf.h>
#include "intf.h"
#include "../policies/gate.h"

#define NSEC_PER_USEC	1000ULL
#define NSEC_PER_MSEC	1000000ULL
#define NSEC_PER_SEC	1000000000ULL

char _license[] SEC("license") = "GPL";

/* Weak: a kernel whose configuration cannot be read is no reason not to run. */
extern unsigned CONFIG_HZ __kconfig __weak;

UEI_DEFINE(uei);

#include "state.bpf.h"
#include "weights.bpf.h"
#include "fair.bpf.h"
#include "jobs.bpf.h"
#include "demand.bpf.h"
#include "sockets.bpf.h"

static bool is_kthread(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD;
}

static void set_state(struct task_ctx *tctx, enum task_state state)
{
	__sync_lock_test_and_set(&tctx->state, state);	/* full barrier: see demand.bpf.h */
}

/* Charges @p for its run, and its job for the run and the fair share of the time since the last charge. */
static void settle(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	u64 ran_ns = charge(p, tctx, cctx);

	if (!is_kthread(p))
		balance_boosts(cctx, tctx->boosted, ran_ns);
	update_sums(tctx);
	advance_share_clock(cctx, scx_bpf_task_cpu(p), now);
	account(p, tctx, ran_ns, take_fair_share(p, tctx, cctx), false);
}

s32 BPF_STRUCT_OPS(cosched_select_cpu, struct task_struct *p, s32 prev_cpu, u64 wake_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);
	struct cpu_ctx *cctx;
	bool is_idle = false;
	s32 cpu;

	cpu = scx_bpf_select_cpu_dfl(p, prev_cpu, wake_flags, &is_idle);
	cctx = is_idle && tctx ? cpu_ctx_of(cpu) : NULL;
	if (cctx) {
		place_woken(p, tctx, cctx, cpu);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, begin_slice(tctx, current_policy()->slice_ns), 0);
	}
	return cpu;
}

/* Work waits on a busy CPU: have an idle one come and take it, if it may. */
static void wake_idle_cpu_for(struct task_struct *p)
{
	s32 cpu;

	if (p->nr_cpus_allowed == 1 || is_migration_disabled(p))
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Puts @p in the queue of @cpu, in the fair order, and preempts or wakes a CPU for it where that is due. */
static void enqueue_fair(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			 u64 enq_flags)
{
	bool woken = enq_flags & SCX_ENQ_WAKEUP;
	u64 slice_ns = woken ? begin_slice(tctx, current_policy()->slice_ns) : resume_slice(tctx);

	if (woken && cctx->curr_scale && !cctx->curr_kthread &&
	    vtime_before(tctx->vtime + WAKE_MARGIN_NS, running_vtime(cctx, scx_bpf_now()))) {
		count(COSCHED_COUNTER_preemptions);
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags | SCX_ENQ_PREEMPT);
		return;
	}
	scx_bpf_dsq_insert_vtime(p, cpu, slice_ns, tctx->slice_vtime, enq_flags);
	if (scx_bpf_test_and_clear_cpu_idle(cpu))
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
	else
		wake_idle_cpu_for(p);
}

/*
 * Has @p run next. A task that wakes goes straight to the CPU's local queue. One that is just being switched
 * out cannot: its successor is already picked, and preempting "the running task" would hit @p itself. It
 * goes to the queue and is taken from there as soon as the switch is done.
 */
static void enqueue_boosted(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			    u64 enq_flags)
{
	u64 slice_ns = begin_slice(tctx, tctx->granted_ns);

	if (enq_flags & SCX_ENQ_WAKEUP) {
		tctx->boosted = 1;
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, slice_ns, enq_flags |
				   (cctx->curr_kthread ? SCX_ENQ_HEAD : SCX_ENQ_PREEMPT));
		return;
	}
	scx_bpf_dsq_insert_vtime(p, cpu, slice_ns, tctx->slice_vtime, enq_flags);
	request_boost(tctx, cctx, cpu);
}

void BPF_STRUCT_OPS(cosched_enqueue, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);

	if (!tctx || !cctx) {
		scx_bpf_error("enqueue: pid %d has no context on CPU %d", p->pid, cpu);
		return;
	}

	/* A kernel thread runs at once. One that uses up its slice has no claim to the next one. */
	if (is_kthread(p) && (enq_flags & SCX_ENQ_WAKEUP)) {
		scx_bpf_dsq_insert(p, SCX_DSQ_LOCAL, begin_slice(tctx, current_policy()->slice_ns),
				   enq_flags | SCX_ENQ_PREEMPT);
		return;
	}

	if (enq_flags & SCX_ENQ_WAKEUP)
		place_woken(p, tctx, cctx, cpu);
	else
		place_on_cpu(tctx, cctx, cpu);
	bound_debt(p, tctx, cctx, cpu);
	update_sums(tctx);

	if (tctx->boost == BOOST_RESUMED)
		__sync_lock_test_and_set(&cctx->demand, 1);
	else if (!tctx->denied && arrivals_demand() && has_demand(tctx) &&
		 demand_granted(tctx, cctx, scx_bpf_now())) {
		enqueue_boosted(p, tctx, cctx, cpu, enq_flags);
		return;
	}
	enqueue_fair(p, tctx, cctx, cpu, enq_flags);
}

/*
 * @prev has used its slice, or was asked to yield the CPU: let it go on if it has a message and the gate
 * allows, or if nobody in the queue comes before it.
 */
static bool keep_running(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			 u64 now)
{
	struct task_struct *first = __COMPAT_scx_bpf_dsq_peek(cpu);
	bool granted = false;

	if (first && tctx->yields) {
		fall_behind(tctx, first->scx.dsq_vtime);
		return false;
	}
	if (first && !vtime_before(tctx->vtime, first->scx.dsq_vtime)) {
		tctx->owes = has_question(tctx);
		granted = arrivals_demand() && has_demand(tctx) &&
			  demand_granted(tctx, cctx, now);
		if (!granted)
			return false;
	}
	tctx->boosted = granted;
	scx_bpf_task_set_slice(prev, granted ? begin_slice(tctx, tctx->granted_ns) : resume_slice(tctx));
	cctx->curr_vtime = tctx->vtime;
	cctx->curr_since = now;
	return true;
}

/* sched_yield(): whoever is next in the queue runs before @from does again. */
bool BPF_STRUCT_OPS(cosched_yield, struct task_struct *from, struct task_struct *to)
{
	struct task_ctx *tctx = task_ctx_of(from);

	if (tctx && !to)
		tctx->yields = 1;
	scx_bpf_task_set_slice(from, 0);
	return false;
}

/* An idle CPU takes work from the others, from those that share its cache first. */
static bool steal(s32 cpu)
{
	u32 llc = llc_of[cpu & (COSCHED_MAX_CPUS - 1)];
	u32 pass, i;

	bpf_for(pass, 0, 2) {
		bpf_for(i, 1, nr_cpu_ids) {
			s32 other = cpu + i < nr_cpu_ids ? cpu + i : cpu + i - nr_cpu_ids;
			bool near = llc_of[other & (COSCHED_MAX_CPUS - 1)] == llc;

			if (near != !pass || scx_bpf_dsq_nr_queued(other) <= 0)
				continue;
			if (scx_bpf_dsq_move_to_local(other, 0)) {
				count(COSCHED_COUNTER_steals);
				return true;
			}
		}
	}
	return false;
}

void BPF_STRUCT_OPS(cosched_dispatch, s32 cpu, struct task_struct *prev)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_ctx *tctx = NULL;
	u64 now = scx_bpf_now();

	if (!cctx)
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		tctx = task_ctx_of(prev);
		if (tctx)
			settle(prev, tctx, cctx, now);
	}
	if (dispatch_boosted(cctx, cpu, now))
		return;
	if (prev && tctx && keep_running(prev, tctx, cctx, cpu, now))
		return;
	if (scx_bpf_dsq_move_to_local(cpu, 0))
		return;
	steal(cpu);
}

void BPF_STRUCT_OPS(cosched_runnable, struct task_struct *p, u64 enq_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);

	if (!tctx || !cctx)
		return;
	if (tctx->awaits && tctx->cpu == cpu) {
		advance_share_clock(cctx, cpu, scx_bpf_now());
		account(p, tctx, 0, awaited_share(p, tctx, cctx, cpu), false);
	}
	join_sums(p, tctx, cctx, cpu);
	set_state(tctx, TASK_QUEUED);
}

void BPF_STRUCT_OPS(cosched_quiescent, struct task_struct *p, u64 deq_flags)
{
	struct task_ctx *tctx = task_ctx_of(p);
	struct cpu_ctx *cctx = tctx ? cpu_ctx_of(tctx->sum_cpu) : NULL;

	if (!cctx)
		return;
	advance_share_clock(cctx, tctx->sum_cpu, scx_bpf_now());
	leave_sums(tctx);
}

void BPF_STRUCT_OPS(cosched_running, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx_of(p);
	s32 cpu = scx_bpf_task_cpu(p);
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	u64 now = scx_bpf_now();

	if (!tctx || !cctx)
		return;
	count(COSCHED_COUNTER_context_switches);
	place_on_cpu(tctx, cctx, cpu);
	if (tctx->sum_cpu != cpu) {
		leave_sums(tctx);
		join_sums(p, tctx, cctx, cpu);
	}

	if (tctx->boosted) {
		count(COSCHED_COUNTER_boosts);
		tctx->unposted_boosts++;
	}
	if (!is_kthread(p))
		advance_fair_clock(tctx, cctx, cpu);
	tctx->boost = BOOST_NONE;
	tctx->denied = 0;
	tctx->owes = 0;
	tctx->awaits = 0;
	tctx->yields = 0;

	tctx->charged_ns = p->se.sum_exec_runtime;
	cctx->curr_vtime = tctx->vtime;
	cctx->curr_since = now;
	cctx->curr_scale = vtime_scale(tctx, cctx, cpu);
	cctx->curr_kthread = is_kthread(p);
	set_state(tctx, TASK_RUNNING);
	record_latency(tctx, now);
}

void BPF_STRUCT_OPS(cosched_stopping, struct task_struct *p, bool runnable)
{
	struct task_ctx *tctx = task_ctx_of(p);
	struct cpu_ctx *cctx = cpu_ctx_of(scx_bpf_task_cpu(p));

	if (!tctx || !cctx)
		return;
	settle(p, tctx, cctx, scx_bpf_now());
	cctx->curr_scale = 0;
	cctx->curr_kthread = 0;
	tctx->owes = runnable && has_question(tctx);
	/* Granted a slice and cut short: the rest comes as soon as whoever preempted it is done. */
	tctx->boost = tctx->boosted && runnable && has_rest(tctx) && !cctx->starving ? BOOST_RESUMED : BOOST_NONE;
	tctx->boosted = 0;
	if (!runnable)
		tctx->more_endpoints = 0;
	set_state(tctx, runnable ? TASK_QUEUED : TASK_BLOCKED);
}

/*
 * A slice can only end at a tick. One that would end less than half a tick from now ends now: otherwise a
 * slice that began just after a tick would last a whole tick too long, on some nodes and not on others.
 */
void BPF_STRUCT_OPS(cosched_tick, struct task_struct *p)
{
	u64 tick_ns = NSEC_PER_SEC / (CONFIG_HZ ?: 250);

	struct task_ctx *tctx;

	if (!p->scx.slice || p->scx.slice >= tick_ns / 2)
		return;
	scx_bpf_task_set_slice(p, 0);
	tctx = task_ctx_of(p);
	if (tctx)
		tctx->slice_ns = 0;	/* it is over: nothing of it is left to be resumed */
}

void BPF_STRUCT_OPS(cosched_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (!tctx)
		return;
	tctx->cpu = -1;
	tctx->sum_cpu = -1;
	tctx->charged_ns = p->se.sum_exec_runtime;
}

s32 BPF_STRUCT_OPS(cosched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return -ENOMEM;
	tctx->cpu = -1;
	tctx->sum_cpu = -1;
	tctx->group = args->cgroup ? find_group(args->cgroup) : ROOT_GROUP;
	return 0;
}

void BPF_STRUCT_OPS(cosched_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (tctx && !args->cancelled)
		account(p, tctx, 0, 0, true);
}

/* A task's nice level has changed. */
void BPF_STRUCT_OPS(cosched_set_weight, struct task_struct *p, u32 weight)
{
	struct task_ctx *tctx = task_ctx_of(p);
	struct cpu_ctx *cctx;
	s32 cpu = tctx ? tctx->sum_cpu : -1;

	cctx = cpu < 0 ? NULL : cpu_ctx_of(cpu);
	if (!cctx)
		return;
	leave_sums(tctx);
	join_sums(p, tctx, cctx, cpu);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cosched_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	return cgrp->level ? add_group(cgrp, args->weight) : 0;
}

void BPF_STRUCT_OPS(cosched_cgroup_exit, struct cgroup *cgrp)
{
	remove_group(cgrp);
}

/* The kernel takes a runnable task off its queue for this, so the sums follow by themselves. */
void BPF_STRUCT_OPS(cosched_cgroup_move, struct task_struct *p, struct cgroup *from, struct cgroup *to)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (tctx)
		tctx->group = find_group(to);
}

void BPF_STRUCT_OPS(cosched_cgroup_set_weight, struct cgroup *cgrp, u32 weight)
{
	reweigh_group(cgrp, weight);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cosched_init)
{
	u32 cpu;
	s32 err;

	bpf_for(cpu, 0, nr_cpu_ids) {
		err = scx_bpf_create_dsq(cpu, __COMPAT_scx_bpf_cpu_node(cpu));
		if (err) {
			scx_bpf_error("cannot create the queue of CPU %u: %d", cpu, err);
			return err;
		}
	}
	return 0;
}

void BPF_STRUCT_OPS(cosched_exit, struct scx_exit_info *ei)
{
	UEI_RECORD(uei, ei);
}

SCX_OPS_DEFINE(cosched_ops,
	       .select_cpu	= (void *)cosched_select_cpu,
	       .enqueue		= (void *)cosched_enqueue,
	       .dispatch	= (void *)cosched_dispatch,
	       .yield		= (void *)cosched_yield,
	       .runnable	= (void *)cosched_runnable,
	       .quiescent	= (void *)cosched_quiescent,
	       .running		= (void *)cosched_running,
	       .stopping	= (void *)cosched_stopping,
	       .tick		= (void *)cosched_tick,
	       .enable		= (void *)cosched_enable,
	       .init_task	= (void *)cosched_init_task,
	       .exit_task	= (void *)cosched_exit_task,
	       .set_weight	= (void *)cosched_set_weight,
	       .cgroup_init	= (void *)cosched_cgroup_init,
	       .cgroup_exit	= (void *)cosched_cgroup_exit,
	       .cgroup_move	= (void *)cosched_cgroup_move,
	       .cgroup_set_weight = (void *)cosched_cgroup_set_weight,
	       .init		= (void *)cosched_init,
	       .exit		= (void *)cosched_exit,
	       .flags		= SCX_OPS_ENQ_MIGRATION_DISABLED | SCX_OPS_ALLOW_QUEUED_WAKEUP,
	       .timeout_ms	= 20000,
	       .name		= "cosched");
