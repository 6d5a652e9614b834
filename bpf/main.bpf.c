/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * scx_cosched: demand-based coscheduling as a sched_ext scheduler.
 *
 * A parallel job on time-shared nodes waits for messages from processes that are not running just now. Here the arrival
 * of a message is a demand to run its receiver. So processes that talk to each other come to run at the same time on
 * all nodes. That takes no coordinator, and no change to the programs.
 *
 * Take two nodes, each with one process of the job and four busy competitors, all of equal weight, and 20 ms slices.
 * Left to themselves (`local`), each process runs a fifth of the time, and both run at once only a twenty-fifth of the
 * time. The job then makes 4% of the round trips that it would make alone, and spins through the rest of its share.
 * With demand, the process whose turn it is sends its message, the message makes its peer run, and both spend the same
 * 20 ms talking. The share stays a fifth, because boosted time is charged and the fair order lets the others catch up.
 * But now nearly all of that fifth is work.
 *
 *	cpu.bpf.h	what is known of a CPU, and counted there
 *	state.bpf.h	what is known of a task, and of an endpoint
 *	queues.bpf.h	where tasks wait, and what hooks have marked there
 *	groups.bpf.h	the tree of cgroups, with an order on each CPU
 *	cgroups.bpf.h	cgroups come and go
 *	limits.bpf.h	cpu.max: what a group has left
 *	fair.bpf.h	the fair order: when a task has its place in it
 *	jobs.bpf.h	what each job used, and what its share would have been
 *	trace.bpf.h	arrivals, decisions and switches, for `scx_cosched trace`
 *	hints.bpf.h	what programs themselves say of their waits
 *	completions.bpf.h	RDMA queues, and what they hold
 *	endpoints.bpf.h	whether a task has a message, or a question to answer
 *	polls.bpf.h	whether a task is in the middle of a receive
 *	park.bpf.h	a task that polls in vain leaves its CPU until a message comes
 *	carry.bpf.h	what a message brings along from its sender's node
 *	wire_notes.bpf.h the same across the network; an object of its own, wire.bpf.c, puts it there
 *	beat.bpf.h	turns by the clock that all nodes draw alike
 *	gang.bpf.h	the tasks whose turn it is go first; rows of a gang, for comparison
 *	demand.bpf.h	the demand to run, and the gate that says when a boost is fair
 *	prefetch.bpf.h	when a task's slice begins, the tasks that it hears from are asked for
 *	sockets.bpf.h	hooks: which task receives where, what has arrived
 *	waits.bpf.h	hooks: a receive that finds nothing spins before it sleeps
 *	wakes.bpf.h	a hook: what tasks of a job tell each other by waking
 *	rdma.bpf.h	hooks in modules: what has arrived by RDMA, and for which task
 *	pulse.bpf.h	a timer: what polls in vain, what to boost periodically, whose turn is over
 *	switch.bpf.h	a task becomes runnable, runs, stops, sleeps
 *	balance.bpf.h	on which CPU a task waits
 *	aside.bpf.h	a task whose group has used up its cpu.max waits apart
 *	enqueue.bpf.h	where a task that is to run goes: to a CPU, or to a queue
 *	dispatch.bpf.h	which task a CPU takes
 *	main.bpf.c	tasks and cgroups come and go; the table of callbacks
 *
 * Where it hurts. Slices end at a timer tick, so two nodes that started together end up to a tick apart. A receiver
 * that spins in user space on shared memory is invisible unless it gives hints. The fair order is kept per CPU, and
 * CPUs balance weights. So tasks that weigh little and wake often take more of a CPU than the balance allows for.
 */
#include <scx/common.bpf.h>
#include "intf.h"
#include "../policies/fair.h"
#include "../policies/phase.h"

char _license[] SEC("license") = "GPL";

UEI_DEFINE(uei);

#include "state.bpf.h"
#include "queues.bpf.h"
#include "groups.bpf.h"
#include "cgroups.bpf.h"
#include "limits.bpf.h"
#include "fair.bpf.h"
#include "jobs.bpf.h"
#include "trace.bpf.h"
#include "hints.bpf.h"
#include "completions.bpf.h"
#include "endpoints.bpf.h"
#include "polls.bpf.h"
#include "park.bpf.h"
#include "carry.bpf.h"
#include "beat.bpf.h"
#include "gang.bpf.h"
#include "demand.bpf.h"
#include "prefetch.bpf.h"
#include "sockets.bpf.h"
#include "waits.bpf.h"
#include "rdma.bpf.h"
#include "wakes.bpf.h"
#include "balance.bpf.h"
#include "pulse.bpf.h"
#include "switch.bpf.h"
#include "aside.bpf.h"
#include "enqueue.bpf.h"
#include "dispatch.bpf.h"

void BPF_STRUCT_OPS(cosched_enable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (!tctx)
		return;
	tctx->charged_ns = p->se.sum_exec_runtime;
	tctx->shed_ran_ns = p->se.sum_exec_runtime;
	tctx->shed_at = scx_bpf_now();
}

/*
 * @p goes to another scheduling class, perhaps while it runs. It is not ours to run any more, and is not to spin in our
 * hooks.
 */
void BPF_STRUCT_OPS(cosched_disable, struct task_struct *p)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (tctx)
		set_phase(tctx, PHASE_BLOCKED);
}

/*
 * @child starts where its parent stands. Otherwise a process that has its work done by ever new children would never be
 * charged.
 */
static void inherit_place(struct task_ctx *child)
{
	struct task_struct *parent = bpf_get_current_task_btf();
	struct task_ctx *tctx = task_ctx_of(parent);

	if (!tctx)
		return;
	child->place.vtime = tctx->place.vtime;
	/* What it runs in another scheduling class is not charged. */
	if (is_in_order(tctx))
		child->place.vtime += fair_vtime(parent->se.sum_exec_runtime - tctx->charged_ns, tctx->place.weight);
	child->order_group = tctx->order_group;
	child->order_cpu = tctx->order_cpu;
	child->order_cgroup = tctx->order_cgroup;
}

s32 BPF_STRUCT_OPS(cosched_init_task, struct task_struct *p, struct scx_init_task_args *args)
{
	struct task_ctx *tctx;

	tctx = bpf_task_storage_get(&task_ctxs, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!tctx)
		return -ENOMEM;
	tctx->cpu = -1;
	tctx->order_cpu = -1;
	if (args->fork)
		inherit_place(tctx);
	tctx->group = args->cgroup ? find_group(args->cgroup) : ROOT_GROUP;
	return 0;
}

void BPF_STRUCT_OPS(cosched_exit_task, struct task_struct *p, struct scx_exit_task_args *args)
{
	struct task_ctx *tctx = task_ctx_of(p);

	if (!tctx)
		return;
	forget_hint(tctx);
	if (!args->cancelled)
		account(p, tctx, 0, 0, true);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cosched_cgroup_init, struct cgroup *cgrp, struct scx_cgroup_init_args *args)
{
	if (!cgrp->level)
		return 0;
	add_group(cgrp, args->weight);
	/* Since 6.17, as is the callback. */
	if (bpf_core_field_exists(args->bw_quota_us))
		set_limit(cgrp, args->bw_period_us, args->bw_quota_us, args->bw_burst_us);
	return 0;
}

void BPF_STRUCT_OPS(cosched_cgroup_exit, struct cgroup *cgrp)
{
	remove_group(cgrp);
}

/*
 * The kernel takes a runnable task off its queue for this, so the sums follow by themselves. It does the same when a
 * task's nice level changes, for which there is no callback here.
 */
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

void BPF_STRUCT_OPS(cosched_cgroup_set_bandwidth, struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	set_limit(cgrp, period_us, quota_us, burst_us);
}

s32 BPF_STRUCT_OPS_SLEEPABLE(cosched_init)
{
	struct cosched_job_stats none = {};
	u64 other = COSCHED_JOB_OTHER;
	u32 cpu, queue;
	s32 err;

	/* Now, while there is room: it is needed when there is none. */
	bpf_map_update_elem(&jobs, &other, &none, BPF_NOEXIST);
	bpf_for(cpu, 0, nr_cpu_ids) {
		bpf_for(queue, 0, NR_QUEUES) {
			err = scx_bpf_create_dsq(queue_id(cpu, queue), __COMPAT_scx_bpf_cpu_node(cpu));
			if (err) {
				scx_bpf_error("cannot create queue %u of CPU %u: %d", queue, cpu, err);
				return err;
			}
		}
		err = init_timer(&limit_timers, cpu, limits_end) ?: init_timer(&pulses, cpu, pulse_beats);
		if (err) {
			scx_bpf_error("cannot create the timers of CPU %u: %d", cpu, err);
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
	       .quiescent	= (void *)cosched_quiescent,
	       .running		= (void *)cosched_running,
	       .stopping	= (void *)cosched_stopping,
	       .tick		= (void *)cosched_tick,
	       .enable		= (void *)cosched_enable,
	       .disable		= (void *)cosched_disable,
	       .init_task	= (void *)cosched_init_task,
	       .exit_task	= (void *)cosched_exit_task,
	       .cgroup_init	= (void *)cosched_cgroup_init,
	       .cgroup_exit	= (void *)cosched_cgroup_exit,
	       .cgroup_move	= (void *)cosched_cgroup_move,
	       .cgroup_set_weight = (void *)cosched_cgroup_set_weight,
	       .cgroup_set_bandwidth = (void *)cosched_cgroup_set_bandwidth,
	       .init		= (void *)cosched_init,
	       .exit		= (void *)cosched_exit,
	       .flags		= SCX_OPS_ENQ_LAST | SCX_OPS_ENQ_EXITING | SCX_OPS_ENQ_MIGRATION_DISABLED |
			  SCX_OPS_ALLOW_QUEUED_WAKEUP,
	       .timeout_ms	= 20000,
	       .name		= "cosched");
