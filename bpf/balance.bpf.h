/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * On which CPU a task waits (policies/balance.h). A new task starts on the CPU with the fewest tasks. Now and then a
 * CPU takes a task from the queue of a busier CPU, if the task is no worse off for it. Only that queue is locked.
 */
#ifndef COSCHED_BALANCE_BPF_H
#define COSCHED_BALANCE_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "gang.bpf.h"
#include "groups.bpf.h"
#include "intf.h"
#include "limits.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "../policies/balance.h"
#include "../policies/fair.h"

enum {
	BALANCE_INTERVAL_NS	= 100 * 1000 * 1000,	/* on average: else the same CPU would come first for ever */
	BALANCE_QUEUES		= 4,	/* that one look goes through: tasks that may not move take time too */
	BALANCE_RETRIES		= 8,	/* looks on end, each at a tick or the next, that find what has just moved */
};

static bool share_cache(s32 cpu, s32 other)
{
	return llc_of[cpu & (COSCHED_MAX_CPUS - 1)] == llc_of[other & (COSCHED_MAX_CPUS - 1)];
}

static bool share_memory(s32 cpu, s32 other)
{
	return numa_of[cpu & (COSCHED_MAX_CPUS - 1)] == numa_of[other & (COSCHED_MAX_CPUS - 1)];
}

static bool is_online(s32 cpu)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	bool is = bpf_cpumask_test_cpu(cpu, online);

	scx_bpf_put_cpumask(online);
	return is;
}

/* Does another scheduling class have a task to run on @cpu? That task goes first, for as long as it wants. */
static bool is_taken(s32 cpu)
{
	const struct rq *rq = bpf_per_cpu_ptr(&runqueues, cpu);

	return rq && rq->nr_running > rq->scx.nr_running;
}

/* How much weight @cpu has had to run of late (policies/balance.h). */
static u64 load_of(s32 cpu, u64 now)
{
	struct group_on *root = group_on(ROOT_GROUP, cpu);

	return root ? fair_load(fair_presence(&root->presence, fair_room(root->order.weight), now)) : 0;
}

/*
 * Where @p, which has just been made or has lost its CPU, is to run while no CPU idles. That is the CPU with the fewest
 * tasks, and among equals @prev_cpu, which is its parent's or was its own, or one near it. Otherwise all tasks that one
 * task starts would share its CPU. A CPU with a real-time task is left out, since that leaves the CPU to no other task.
 * O(CPUs).
 */
static s32 least_busy(const struct task_struct *p, s32 prev_cpu)
{
	const struct cpumask *online = scx_bpf_get_online_cpumask();
	u32 least = ~0U;
	s32 best = prev_cpu, cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		struct cpu_ctx *cctx = cpu_ctx_of(cpu);
		u32 busy;

		if (!cctx || !bpf_cpumask_test_cpu(cpu, online) || !bpf_cpumask_test_cpu(cpu, p->cpus_ptr) ||
		    is_taken(cpu))
			continue;
		busy = 4 * READ_ONCE(cctx->nr_runnable) + 2 * !share_cache(prev_cpu, cpu) + (cpu != prev_cpu);
		if (busy >= least)
			continue;
		least = busy;
		best = cpu;
	}
	scx_bpf_put_cpumask(online);
	return best;
}

/* A possible move of a task between two CPUs. */
struct move_plan {
	s32 from, to;
	u64 load_from, load_to;
	u32 parts;		/* of the weight of the task, by which the loads have to differ; 0: they need not */
	u32 rests;		/* a task was found that is to move, and has just done so */
};

/* Do the loads differ by so much that a task of @effective weight is to move? */
static bool is_to_even_out(const struct move_plan *move, u64 effective)
{
	return cosched_load_differs(move->load_to, move->load_from, effective >> FAIR_WEIGHT_SHIFT, move->parts,
				    !share_memory(move->from, move->to));
}

/*
 * Is a waiting task of @weight in @group to move? It is if @move->from has more to do by as much as the task makes a
 * difference, and the task does not lose by it. A global function: its loops are verified once.
 */
__noinline int is_to_move(u32 group, u32 weight, struct move_plan *move __arg_nonnull)
{
	struct standing standing = {};
	struct newcomer newcomer = {};

	stand(group, weight, 0, move->from, &standing);
	if (!is_to_even_out(move, standing.effective))
		return false;
	imagine_newcomer(group, weight, move->to, true, &newcomer);
	return cosched_move_pays(fair_share(1ULL << COSCHED_SHARE_SHIFT, newcomer.effective,
					    root_weight(move->to) + newcomer.more),
				 fair_share(1ULL << COSCHED_SHARE_SHIFT, standing.effective, root_weight(move->from)));
}

/*
 * By how many parts of its weight loads have to differ for @tctx, which wakes. What it has run since it last asked
 * counts.
 */
static u32 parts_of_waking(const struct task_struct *p, struct task_ctx *tctx, u64 now)
{
	u32 parts = cosched_wakes_parts(p->se.sum_exec_runtime - tctx->shed_ran_ns, now - tctx->shed_at);

	tctx->shed_ran_ns = p->se.sum_exec_runtime;
	tctx->shed_at = now;
	return parts;
}

/*
 * Where @tctx, which wakes on @prev_cpu while no CPU idles, is to wait. Now and then it looks at one other CPU, drawn
 * at random. A task to which messages are sent stays on its CPU, where the policy boosts it.
 */
static s32 wake_elsewhere(struct task_struct *p, struct task_ctx *tctx, s32 prev_cpu)
{
	struct cpu_ctx *cctx = cpu_ctx_of(prev_cpu);
	struct move_plan move = { .from = prev_cpu };
	struct newcomer newcomer = {};
	u64 now = scx_bpf_now();

	if (!cctx || (s64)(now - cctx->shed_at) < BALANCE_INTERVAL_NS || is_gang() || is_known_to_wait(tctx))
		return prev_cpu;
	move.to = bpf_get_prandom_u32() % nr_cpu_ids;
	if (move.to == prev_cpu || is_migration_disabled(p) || !bpf_cpumask_test_cpu(move.to, p->cpus_ptr) ||
	    !is_online(move.to) || is_taken(move.to))
		return prev_cpu;
	cctx->shed_at = now;
	move.parts = parts_of_waking(p, tctx, now);
	move.load_from = load_of(move.from, now);
	move.load_to = load_of(move.to, now);
	imagine_newcomer(tctx->group, task_weight(p), move.from, false, &newcomer);
	return is_to_even_out(&move, newcomer.effective) ? move.to : prev_cpu;
}

/* May @p, which waits on @move->from, move? A task that has been released has no pid to find it by, and stays. */
static bool may_move(const struct task_struct *p, const struct task_ctx *tctx, const struct move_plan *move, u64 now)
{
	return p->sighand && !is_migration_disabled(p) && bpf_cpumask_test_cpu(move->to, p->cpus_ptr) &&
	       !is_held(p, tctx, move->to, now);
}

/*
 * The pid of the task that is to move, of the first ones in @queue; 0: none. Of the tasks that may move it chooses the
 * task that leaves the loads closest. A task that may run on a few CPUs only can stand behind many like it. Then it is
 * not found. A global function: see sum_presence() (groups.bpf.h).
 */
__noinline int choose_from(u64 queue, struct move_plan *move __arg_nonnull)
{
	u64 now = scx_bpf_now(), least = ~0ULL;
	u32 looks = forget_ways(0);
	struct task_struct *p;
	int chosen = 0;

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tctx = task_ctx_of(p);
		u64 apart;

		if (looks++ >= MAX_LOOKS)
			break;
		if (!tctx || !may_move(p, tctx, move, now))
			continue;
		apart = cosched_left_apart(move->load_to, move->load_from, tctx->effective >> FAIR_WEIGHT_SHIFT);
		if (apart >= least || (move->parts && !is_to_move(tctx->order_group, tctx->weight, move)))
			continue;
		if (move->parts && !cosched_has_rested(now - tctx->pulled_at)) {
			move->rests = true;
			continue;
		}
		least = apart;
		chosen = p->pid;
	}
	return chosen;
}

/*
 * @move->to takes the task of @pid from @queue, if it is still there. An iterator moves any task of its queue, so this
 * takes no walk. It moves no task that was queued after it began. So may_move() has been asked since the task was
 * queued, and the kernel never finds that the task may not move. A global function: see sum_presence() (groups.bpf.h).
 */
__noinline int take_pid(u64 queue, struct move_plan *move __arg_nonnull, int pid)
{
	struct task_struct *p = bpf_task_from_pid(pid), *first;
	struct task_ctx *tctx = p ? task_ctx_of(p) : NULL;
	bool taken = false;

	if (!p)
		return false;
	bpf_for_each(scx_dsq, first, queue, 0) {
		if (tctx && may_move(p, tctx, move, scx_bpf_now()))
			taken = scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0);
		break;
	}
	if (taken && tctx && move->parts)
		tctx->pulled_at = scx_bpf_now();
	bpf_task_release(p);
	return taken;
}

/*
 * @move->to takes the task of @queue that is to move. If another CPU has taken that task meanwhile, the next one will
 * do where loads need not differ. A global function: see sum_presence() (groups.bpf.h).
 */
__noinline int take_from(u64 queue, struct move_plan *move __arg_nonnull)
{
	u32 i;

	if (!scx_bpf_dsq_nr_queued(queue))
		return 0;
	bpf_for(i, 0, move->parts ? 1 : 2) {
		int chosen = choose_from(queue, move);

		if (!chosen || take_pid(queue, move, chosen))
			return chosen;
	}
	return 0;
}

/*
 * @cpu takes a task from a busier CPU, if any is busier. Less than 0: the task that is to move has just done so. A
 * global function: see sum_presence() (groups.bpf.h).
 */
__noinline int take_from_busier(s32 cpu)
{
	u64 now = scx_bpf_now();
	struct move_plan move = { .to = cpu, .load_to = load_of(cpu, now) };
	u32 first, i, queues = forget_ways(0);

	first = bpf_get_prandom_u32() % nr_cpu_ids;
	bpf_for(i, 0, nr_cpu_ids) {
		s32 other = first + i < nr_cpu_ids ? first + i : first + i - nr_cpu_ids;

		if (other == cpu || !is_queued(other))
			continue;
		move.from = other;
		move.load_from = load_of(other, now);
		/* A task that waits for a real-time task is worse off than any load says. */
		move.parts = is_taken(other) ? 0 : COSCHED_WAITS_PARTS;
		if (move.parts && move.load_from <= move.load_to)
			continue;
		if (take_from(queue_id(other, QUEUE_FREE), &move)) {
			count(COSCHED_COUNTER_pulls);
			return true;
		}
		if (++queues >= BALANCE_QUEUES)
			break;
	}
	return -(s32)move.rests;
}

/*
 * Is it time for @cctx's CPU to look for a busier one? Neither a boost nor a spin is cut short for that, and the rows
 * of a gang stay where they are.
 */
static bool is_to_look(const struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	return (s64)(now - cctx->balance_at) >= 0 && !cctx->curr_boosted && cctx->spin == SPIN_NONE &&
	       others_queued(cpu) && !is_gang();
}

/*
 * How long from now it is to look, in ns. CPUs all tick at once. At a tick the task that is to move may just have been
 * taken for its own CPU, or be about to be queued there. Where slices end together, it would stay for that reason.
 */
static u64 next_balance(void)
{
	return 1 + bpf_get_prandom_u32() % tick_ns();
}

/* @cctx's CPU is to look when it chooses next. */
static void look_for_busier(struct cpu_ctx *cctx, u64 now)
{
	cctx->looks = 1;
	cctx->balance_at = now + BALANCE_INTERVAL_NS / 2 + bpf_get_prandom_u32() % BALANCE_INTERVAL_NS;
}

/*
 * @cpu may take a task from a busier CPU. If the task that waits there has just moved, @cpu looks again soon. When that
 * task runs, another task waits.
 */
static bool pull(struct cpu_ctx *cctx, s32 cpu)
{
	int taken;

	if (!cctx->looks)
		return false;
	cctx->looks = 0;
	taken = take_from_busier(cpu);
	if (taken < 0 && ++cctx->retries < BALANCE_RETRIES)
		cctx->balance_at = 0;
	else
		cctx->retries = 0;
	return taken > 0;
}

/*
 * @p is about to wait in a queue of @cpu, on which nothing of ours runs. The CPU may be idle. It may also be about to
 * idle, since it lets go of its lock while it looks for work elsewhere. It needs no kick if it is @p that leaves it,
 * since its next task is then chosen anyway.
 */
static void wake_cpu_for(const struct task_struct *p, const struct cpu_ctx *cctx, s32 cpu)
{
	if (!cctx->curr_id && p != bpf_get_current_task_btf())
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

/* Work waits on a busy CPU: makes an idle CPU that may take it come, if there is any. */
static void wake_idle_cpu_for(struct task_struct *p)
{
	s32 cpu;

	if (p->nr_cpus_allowed == 1 || is_migration_disabled(p))
		return;
	cpu = scx_bpf_pick_idle_cpu(p->cpus_ptr, 0);
	if (cpu >= 0)
		scx_bpf_kick_cpu(cpu, SCX_KICK_IDLE);
}

#endif
