/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fair order of tasks on their CPUs. policies/fair.h says what it is; here is when a task has its place in it.
 *
 * A CPU's queues (queues.bpf.h) are ordered by key: a task's lead when its slice began, on the clock of the CPU's root.
 * A task that a message boosts is taken ahead of that, and charged like any other. What it has run is read from
 * sum_exec_runtime and not from what is left of the slice, because a preemption sets that to zero. A boost is a loan,
 * and the order collects it.
 *
 * A task that is preempted in mid-slice keeps its key and the rest of its slice. Otherwise each boost would also
 * shuffle the tasks that it preempts.
 *
 * Kernel threads do what other tasks ask for, and it is not known for which task. They have a place like all tasks, but
 * neither credit nor debt while they are urgent.
 */
#ifndef COSCHED_FAIR_BPF_H
#define COSCHED_FAIR_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "groups.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "units.h"
#include "../policies/fair.h"
#include "../policies/policy.h"

#define REFRESH_NS	NSEC_PER_MSEC	/* how often the last in a queue is looked at, at most */

/*
 * Is @p a kernel thread, and is the budget of kernel threads on @cctx's CPU not used up (policies/account.h)? If it is
 * used up, @p keeps its debt. Without a debt it would be due each time that it wakes.
 */
static bool is_urgent(const struct task_struct *p, const struct cpu_ctx *cctx)
{
	return is_kthread(p) && !cctx->urgent.starving;
}

/* Is @tctx in the order of a CPU? */
static bool is_in_order(const struct task_ctx *tctx)
{
	return tctx->place.weight;
}

static struct group_on *order_of(const struct task_ctx *tctx)
{
	return group_on(tctx->order_group, tctx->order_cpu);
}

/* Is the group in whose order @tctx was last still the same, and not another group in its place? */
static bool is_order_the_same(const struct task_ctx *tctx)
{
	u32 key = tctx->order_group;
	struct group *g = bpf_map_lookup_elem(&groups, &key);

	return g && g->cgroup == tctx->order_cgroup;
}

/* @tctx runs, or leaves the order of its CPU without having run: it is no newcomer any more. */
static void come_no_more(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	if (!tctx->newcomer)
		return;
	tctx->newcomer = 0;
	__sync_fetch_and_sub(&cctx->newcomers, 1);
}

static void leave_order(struct task_ctx *tctx)
{
	struct group_on *on = order_of(tctx);
	struct cpu_ctx *cctx = cpu_ctx_of(tctx->order_cpu);
	u64 weight = tctx->place.weight, now;

	if (!is_in_order(tctx) || !on || !cctx)
		return;
	__sync_fetch_and_sub(&cctx->nr_runnable, 1);
	come_no_more(tctx, cctx);
	now = scx_bpf_now();
	bpf_spin_lock(&on->lock);
	note_presence(on, tctx->order_group, now);
	fair_leave(&on->order, &tctx->place);
	if (tctx->held && !on->order.weight)
		fair_hold_presence(&on->presence, weight, now);
	bpf_spin_unlock(&on->lock);
	settle_groups(tctx->order_group, tctx->order_cpu, 0, 0, tctx->held);
}

/* How far @tctx is ahead in the order of its group, or was when it was last in one. */
static s64 lead_in_group(const struct task_ctx *tctx)
{
	struct group_on *on = order_of(tctx);

	return on && is_order_the_same(tctx) ? fair_lead(&on->order, &tctx->place) : 0;
}

/* Puts @tctx into the order of its group on @cpu. It keeps its debt, and of its credit no more than @credit_ns. */
static void enter_order(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 credit_ns)
{
	u32 weight = forget_ways(task_weight(p)), key = tctx->group;
	struct group *g = bpf_map_lookup_elem(&groups, &key);
	u64 cgroup = forget_ways(g ? READ_ONCE(g->cgroup) : 0);
	struct group_on *on;
	u64 slice_ns = current_policy()->slice_ns;
	s64 lead = forget_ways(is_urgent(p, cctx) ? 0 : lead_in_group(tctx));
	/* A lag is owed by the tasks that were ahead, and these are on that CPU. */
	s64 lag = forget_ways(tctx->order_cpu == cpu ? tctx->place.lag : 0);
	u64 own_credit_ns = forget_ways(tctx->held ? FAIR_LEAD_MAX : credit_ns);
	u64 now = scx_bpf_now();

	/* A task that dies may outlast its cgroup, before Linux 6.19. */
	if (!cgroup)
		key = ROOT_GROUP;
	on = group_on(key, cpu);
	if (!on)
		return;
	tctx->weight = weight;
	tctx->order_group = key;
	tctx->order_cgroup = cgroup;
	tctx->order_cpu = cpu;
	bpf_spin_lock(&on->lock);
	note_presence(on, key, now);
	tctx->place.vtime = forget_ways(fair_place(&on->order, lead, lag, weight, own_credit_ns, slice_ns));
	fair_enter(&on->order, &tctx->place, weight);
	bpf_spin_unlock(&on->lock);
	settle_groups(key, cpu, credit_ns, slice_ns, tctx->held);
	tctx->held = ROOT_GROUP;
	__sync_fetch_and_add(&cctx->nr_runnable, 1);
	__sync_fetch_and_add(&cctx->newcomers, 1);
	tctx->newcomer = 1;
}

/*
 * Bounds the debt of @tctx, which is in the order of its CPU, and that of its groups. When the policy changes, what was
 * granted under the old policy is forgiven.
 */
static void bound_debts(struct task_struct *p, struct task_ctx *tctx)
{
	struct cpu_ctx *cctx = cpu_ctx_of(tctx->order_cpu);
	u32 policy = READ_ONCE(policy_now);
	bool forgives = tctx->policy_seen != policy || (cctx && is_urgent(p, cctx));
	struct group_on *on = order_of(tctx);

	tctx->policy_seen = policy;
	if (!on || !is_in_order(tctx))
		return;
	bpf_spin_lock(&on->lock);
	fair_bound(&on->order, &tctx->place, forgives);
	bpf_spin_unlock(&on->lock);
	bound_groups(tctx->order_group, tctx->order_cpu, policy, FAIR_LEAD_MAX);
}

/* @tctx, which awaited a message in the order of @cctx's CPU, keeps no more credit than a task that slept. */
static void bound_credit(struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 credit_ns = fair_credit(current_policy(), cctx->newcomers, true);
	struct group_on *on = order_of(tctx);

	if (!on || !is_in_order(tctx))
		return;
	bpf_spin_lock(&on->lock);
	fair_bound_credit(&on->order, &tctx->place, credit_ns);
	bpf_spin_unlock(&on->lock);
	bound_groups(tctx->order_group, tctx->order_cpu, READ_ONCE(policy_now), credit_ns);
}

/*
 * Notes how @tctx stands on @cpu, in whose order it is, and returns its lead there. A global function: it is verified
 * once.
 */
__noinline s64 note_standing(struct task_ctx *tctx __arg_nonnull, s32 cpu)
{
	struct standing standing = {};
	s64 furthest = fair_furthest(root_weight(cpu));

	stand(tctx->order_group, tctx->weight, lead_in_group(tctx), cpu, &standing);
	tctx->effective = standing.effective;
	return standing.lead < furthest ? standing.lead : furthest;
}

static u64 root_clock(s32 cpu)
{
	struct group_on *root = group_on(ROOT_GROUP, cpu);

	return root ? root->order.clock : 0;
}

/* Where @tctx stands now in the order of @cpu. */
static u64 present_key(struct task_ctx *tctx, s32 cpu)
{
	return root_clock(cpu) + note_standing(tctx, cpu);
}

/* Has @tctx been cut short, with enough left of its slice to be worth a switch? */
static bool has_rest(const struct task_ctx *tctx)
{
	return fair_has_rest(tctx->slice_ns, tctx->slice_used_ns);
}

/* Starts a slice of @ns. Returns @ns. */
static u64 begin_slice(struct task_ctx *tctx, u64 ns)
{
	tctx->slice_ns = ns;
	tctx->slice_used_ns = 0;
	return ns;
}

/*
 * Starts a slice of what is due to @tctx, which has just been measured by note_standing(). Under beat the turn ends it,
 * before the slice would end at a tick. A global function: see sum_presence() (groups.bpf.h).
 */
__noinline u64 begin_whole_slice(struct task_ctx *tctx __arg_nonnull)
{
	u64 slice_ns = is_beat() ? beat_rest_ns() + tick_ns() : current_policy()->slice_ns;

	return begin_slice(tctx, fair_slice(slice_ns, tctx->effective, root_weight(tctx->order_cpu)));
}

/* What @tctx, which has been measured, runs for next: the rest of its slice if that was cut short, else a new one. */
static u64 rest_or_whole_slice(struct task_ctx *tctx)
{
	return has_rest(tctx) ? tctx->slice_ns - tctx->slice_used_ns : begin_whole_slice(tctx);
}

/* The same for a task that is queued: with a new slice it has a new place in the queue. */
static u64 resume_slice(struct task_ctx *tctx, s32 cpu)
{
	if (!has_rest(tctx))
		tctx->key = present_key(tctx, cpu);
	return rest_or_whole_slice(tctx);
}

/* @p, the last in a queue of @cpu, goes to where it is due by now, if that is sooner. */
static void refresh(struct task_struct *p, struct task_ctx *tctx, s32 cpu)
{
	u64 key;

	bound_debts(p, tctx);
	key = present_key(tctx, cpu);
	if (!vtime_before(key, p->scx.dsq_vtime))
		return;
	tctx->key = key;
	move_to_queue(p, tctx, cpu, tctx->queue, 0);
}

/*
 * The last task in each queue of @cpu has waited while others may have left or joined. If it is due sooner by now, it
 * goes there. So no task waits for others that are gone, or behind more newcomers than the rest does.
 */
__noinline int refresh_last(s32 cpu, u64 now)
{
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	struct task_struct *p;
	u32 queue;

	if (!cctx || now - cctx->refreshed_at < REFRESH_NS)
		return 0;
	cctx->refreshed_at = now;
	bpf_for(queue, 0, NR_ORDERED) {
		if (!may_hold(cctx, queue))
			continue;
		bpf_for_each(scx_dsq, p, queue_id(cpu, queue), SCX_DSQ_ITER_REV) {
			struct task_ctx *tctx = task_ctx_of(p);

			if (tctx)
				refresh(p, tctx, cpu);
			break;
		}
	}
	return 0;
}

/* Charges @p for what it has run since the last charge. Returns that, in ns. */
static u64 charge(struct task_struct *p, struct task_ctx *tctx)
{
	u64 total_ns = p->se.sum_exec_runtime;
	u64 ran_ns = total_ns - tctx->charged_ns;
	struct group_on *on = order_of(tctx);

	tctx->charged_ns = total_ns;
	tctx->slice_used_ns += ran_ns;
	if (!on || !is_in_order(tctx))
		return ran_ns;
	bpf_spin_lock(&on->lock);
	fair_charge(&on->order, &tctx->place, ran_ns);
	bpf_spin_unlock(&on->lock);
	charge_groups(tctx->order_group, tctx->order_cpu, ran_ns);
	return ran_ns;
}

/*
 * What messages of @tctx to other nodes tell of its waits, in us; 0: nothing. Where boosts end with the sender's slice,
 * they tell of that instead.
 */
static u32 waits_to_tell(const struct task_ctx *tctx)
{
	const struct cosched_policy *policy = current_policy();

	if (policy->spin != COSCHED_SPIN_ADAPTIVE_GLOBAL || policy->residual_slice)
		return 0;
	return tctx->wait_history.estimate_us;
}

/* @tctx runs on @cctx's CPU from @now on, has been measured, and is charged from here. */
static void note_position(struct cpu_ctx *cctx, const struct task_ctx *tctx, u64 key, u64 now)
{
	cctx->curr_key = key;
	cctx->curr_effective = tctx->effective;
	cctx->curr_since = now;
	cctx->curr_slice_since = now - tctx->slice_used_ns;
	cctx->curr_slice_ns = tctx->slice_ns;
	if (wire_on) {	/* for programs that read neither the scheduler's clock nor its tasks */
		cctx->slice_ends_at = bpf_ktime_get_ns() + tctx->slice_ns - tctx->slice_used_ns;
		cctx->curr_waits_us = waits_to_tell(tctx);
	}
}

/* For how long the task that runs on @cctx's CPU has run at a stretch, as of @now, which another CPU may have read. */
static u64 has_run_ns(const struct cpu_ctx *cctx, u64 now)
{
	u64 since = cctx->curr_since;

	return (s64)(now - since) > 0 ? now - since : 0;
}

/* The position of the task that runs on @cctx's CPU on its fair clock, as of @now. */
static u64 running_key(const struct cpu_ctx *cctx, u64 now)
{
	return cctx->curr_key + fair_vtime(has_run_ns(cctx, now) << FAIR_WEIGHT_SHIFT, cctx->curr_effective);
}

/* Does a task of a user run on @cctx's CPU? */
static bool runs_user(const struct cpu_ctx *cctx)
{
	return cctx->curr_effective && !cctx->curr_kthread;
}

/*
 * The task that runs on @cctx's CPU leaves it, and is still @runnable. A kernel thread or another class may have cut it
 * short. Then tasks that wake meanwhile are compared with it, as no other task runs with which they could be compared.
 */
static void note_cut(struct cpu_ctx *cctx, bool runnable, u64 now)
{
	if (cctx->curr_kthread)
		return;
	cctx->cut = runnable;
	cctx->cut_key = running_key(cctx, now);
}

/*
 * A task that has slept has a moment when it runs, like a task that promises to sleep. Most sleep again by the end of
 * it. A task whose row has its turn needs no moment. Is the running task of @cctx's CPU in its moment?
 */
static bool is_in_moment(const struct cpu_ctx *cctx)
{
	return cctx->curr_slept && !cctx->curr_boosted && !cctx->curr_has_turn &&
	       !fair_has_had_time(has_run_ns(cctx, scx_bpf_now()));
}

/* The same. If it is in its moment, the next tick is told to preempt it, unless it sleeps by then. */
static bool has_moment(struct cpu_ctx *cctx)
{
	bool in_moment = is_in_moment(cctx);

	if (in_moment)
		WRITE_ONCE(cctx->preempt_at_tick, 1);
	return in_moment;
}

/* Does the first task in @cpu's queues go ahead of boosts (enqueue_fair())? */
static bool has_front(struct cpu_ctx *cctx, s32 cpu)
{
	struct head first;

	if (!cctx->front)
		return false;
	first_of(cctx, cpu, &first);
	cctx->front = first.queue != NR_ORDERED && fair_is_front(first.key - root_clock(cpu));
	return cctx->front;
}

/*
 * Does the fair order have @tctx, which wakes on @cpu, run instead of the user's task that runs or was cut short? If a
 * running task has woken @tctx and promised to sleep, it has a moment to do so. The tick sees to it that no moment
 * becomes a slice.
 */
static bool preempts_now_or_at_tick(const struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	bool runs = runs_user(cctx), first, waits;
	u64 now = scx_bpf_now(), key = runs ? running_key(cctx, now) : cctx->cut_key;

	if (!runs && !cctx->cut)
		return false;
	first = fair_preempts(key - tctx->key, root_weight(cpu), cctx->nr_runnable);
	if (!first && (!fair_is_due(tctx->key - root_clock(cpu)) || has_moment(cctx)))
		return false;
	waits = runs && tctx->woken_sync && !fair_has_had_time(has_run_ns(cctx, now));
	if (waits || !first)
		WRITE_ONCE(cctx->preempt_at_tick, 1);
	return !waits;
}

#endif
