/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.max: which groups have a limit, and what they have left (policies/limit.h). aside.bpf.h says what becomes of a
 * task whose group has nothing left.
 *
 * Each group remembers the nearest group on its way up that has a limit. So tasks of a group without a limit look at a
 * word or two. A change of any limit counts limits_version up, and what a group remembers of another version is void.
 *
 * A portion changes under the runqueue lock of its CPU, and a pool under a lock of its own.
 *
 * Without timers (PREEMPT_RT) no group has a limit: nothing would make an idle CPU run a task that was set aside.
 *
 * Where it hurts: a task that holds a lock inside the kernel is set aside like any other. Tasks that want that lock
 * wait with it. A group that counts as its parent for want of a place (groups.bpf.h) has no limit.
 */
#ifndef COSCHED_LIMITS_BPF_H
#define COSCHED_LIMITS_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "groups.bpf.h"
#include "intf.h"
#include "state.bpf.h"
#include "units.h"
#include "../policies/limit.h"

struct pool {
	struct bpf_spin_lock lock;
	struct cosched_limit limit;
};

/* By group. The kernel tells of no limit at the root. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_GROUPS);
	__type(key, u32);
	__type(value, struct pool);
} pools SEC(".maps");

/* A group with a limit, on a CPU. */
struct limited {
	u32 key;		/* of @group */
	struct group *group;
	struct group_on *here;
	struct pool *pool;
};

/*
 * The nearest group with a limit from @group upwards, which is looked for once and then noted. A global function: its
 * loop is verified once.
 */
__noinline u32 find_limit(u32 group)
{
	u32 version = READ_ONCE(limits_version), depth;
	struct group *first = bpf_map_lookup_elem(&groups, &group);
	u64 seen = first ? READ_ONCE(first->limit_seen) : 0;

	if (seen >> 32 == version)
		return (u32)seen;
	full_barrier();		/* between the version and the limits: see set_limit() */
	bpf_for(depth, 0, MAX_DEPTH) {
		struct group *g = group == ROOT_GROUP ? NULL : bpf_map_lookup_elem(&groups, &group);
		struct pool *pool = g ? bpf_map_lookup_elem(&pools, &group) : NULL;

		if (!pool || READ_ONCE(pool->limit.quota_ns))
			break;
		group = g->parent;
	}
	if (first)
		WRITE_ONCE(first->limit_seen, (u64)version << 32 | group);
	return group;
}

/* The nearest group with a limit from @group upwards; ROOT_GROUP: there is none. */
static u32 limit_of(u32 group)
{
	return READ_ONCE(limits_version) ? find_limit(group) : ROOT_GROUP;
}

/* Finds the nearest group with a limit from @group upwards, as it is on @cpu; false: there is none. */
static __always_inline bool find_limited(struct limited *limited, u32 group, s32 cpu)
{
	limited->key = group = limit_of(group);
	limited->group = group == ROOT_GROUP ? NULL : bpf_map_lookup_elem(&groups, &group);
	limited->here = limited->group ? group_on(group, cpu) : NULL;
	limited->pool = limited->here ? bpf_map_lookup_elem(&pools, &group) : NULL;
	return limited->pool;
}

/*
 * When the limits of @group and above let it run on @cpu; 0: at once. Takes nothing. A global function: see
 * find_limit().
 */
__noinline u64 limits_until(u32 group, s32 cpu, u64 now)
{
	u64 until = 0;
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct limited limited;
		u64 at;

		if (!find_limited(&limited, group, cpu))
			break;
		at = limit_until(&limited.pool->limit, &limited.here->portion, now);
		if (at && (!until || (s64)(at - until) > 0))
			until = at;
		group = limited.group->parent;
	}
	return until;
}

/*
 * The furthest group from @group upwards that a limit keeps from running on @cpu. A global function: see find_limit().
 */
__noinline u32 furthest_held(u32 group, s32 cpu, u64 now)
{
	u32 held = ROOT_GROUP, depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct limited limited;

		if (!find_limited(&limited, group, cpu))
			break;
		if (limit_until(&limited.pool->limit, &limited.here->portion, now))
			held = limited.key;
		group = limited.group->parent;
	}
	return held;
}

/* What a CPU takes at a time from the pool of @limited itself (limit_part()). */
static __always_inline u64 part_of(const struct limited *limited, u64 now)
{
	u64 counts = portion_of(limited->group, limited->here, limited->here->order.weight, 0, now);

	return forget_ways(limit_part(&limited->pool->limit, counts, limited->group->weight));
}

/*
 * @group is about to run on @cpu: takes portions for it and the groups above, where they are needed. Returns the least,
 * in ns. A global function: see find_limit().
 */
__noinline s64 take_portions(u32 group, s32 cpu, u64 now)
{
	s64 least = LIMIT_NS_MAX;
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct limited limited;
		u64 part_ns;
		s64 left;

		if (!find_limited(&limited, group, cpu))
			break;
		part_ns = part_of(&limited, now);
		bpf_spin_lock(&limited.pool->lock);
		limit_take(&limited.pool->limit, &limited.here->portion, part_ns, now);
		/*
		 * Not what limit_take() returns: a verifier before 7.3 knows so much of it that no level is like the
		 * one before.
		 */
		left = READ_ONCE(limited.here->portion.left_ns);
		bpf_spin_unlock(&limited.pool->lock);
		if (left < least)
			least = left;
		group = limited.group->parent;
	}
	return least;
}

/* Something in @group has run on @cpu for @ran_ns. A global function: see find_limit(). */
__noinline int charge_limits(u32 group, s32 cpu, u64 ran_ns)
{
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct limited limited;

		if (!find_limited(&limited, group, cpu))
			break;
		limited.here->portion.left_ns -= ran_ns;
		group = limited.group->parent;
	}
	return 0;
}

/*
 * Gives back what @group and the groups above have left on @cpu, if they have nothing to run there any more. A global
 * function: see find_limit().
 */
__noinline int return_portions(u32 group, s32 cpu)
{
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct limited limited;

		if (!find_limited(&limited, group, cpu))
			break;
		if (!limited.here->order.weight && limited.here->portion.left_ns) {
			bpf_spin_lock(&limited.pool->lock);
			/*
			 * This may run on another CPU: a task that has come to @cpu meanwhile has taken its part, or is
			 * about to.
			 */
			if (!READ_ONCE(limited.here->order.weight))
				limit_return(&limited.pool->limit, &limited.here->portion);
			bpf_spin_unlock(&limited.pool->lock);
		}
		group = limited.group->parent;
	}
	return 0;
}

/*
 * Kernel threads do what others ask for, and a task that exits frees what it holds: no limit keeps them from running.
 */
static bool is_limited(const struct task_struct *p, const struct task_ctx *tctx)
{
	return limit_of(tctx->group) != ROOT_GROUP && !(p->flags & (PF_KTHREAD | PF_EXITING));
}

/*
 * Until when a limit keeps @p from running on @cpu, for which it has waited since @since; 0: nothing does. A boost
 * makes no difference.
 */
__noinline u64 held_until(const struct task_struct *p __arg_trusted, const struct task_ctx *tctx __arg_nonnull, s32 cpu,
			  u64 since, u64 now)
{
	s64 waited_ns = now - since;

	if (!is_limited(p, tctx) || (waited_ns > 0 && limit_waited(waited_ns)))
		return 0;
	return limits_until(tctx->group, cpu, now);
}

/* Does a limit keep @p, which waits in a queue, from running on @cpu? */
static bool is_held(const struct task_struct *p, const struct task_ctx *tctx, s32 cpu, u64 now)
{
	return READ_ONCE(limits_version) && held_until(p, tctx, cpu, tctx->queued_at, now);
}

/* Does a limit keep @p, which runs or wakes and so has not waited yet, from running on @cpu? */
static bool is_held_now(const struct task_struct *p, const struct task_ctx *tctx, s32 cpu)
{
	u64 now;

	if (!READ_ONCE(limits_version))
		return false;
	now = scx_bpf_now();
	return held_until(p, tctx, cpu, now, now);
}

/* @p, which is about to run on @cctx's CPU, runs for no longer than what its limits leave. */
static void bound_slice(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	u64 slice_ns = p->scx.slice, ns;

	cctx->curr_limited = is_limited(p, tctx);
	if (!cctx->curr_limited)
		return;
	ns = limit_slice(slice_ns, take_portions(tctx->group, cpu, now));
	if (ns >= slice_ns)
		return;
	tctx->slice_ns = tctx->slice_used_ns + ns;
	scx_bpf_task_set_slice(p, ns);
}

/* @tctx, which is in the order of its CPU, has run for @ran_ns. */
static void charge_limit(const struct task_ctx *tctx, u64 ran_ns)
{
	if (limit_of(tctx->order_group) != ROOT_GROUP)
		charge_limits(tctx->order_group, tctx->order_cpu, ran_ns);
}

/* @tctx has left the order of a CPU: it sleeps, or has gone to another one. */
static void return_limit(const struct task_ctx *tctx)
{
	if (limit_of(tctx->order_group) != ROOT_GROUP)
		return_portions(tctx->order_group, tctx->order_cpu);
}

/*
 * The kernel tells what cpu.max says of @cgrp; a quota beyond all measure is "max". Each limit that is set begins with
 * a whole quota. A task that waits for the old limit looks again when the old period ends.
 */
static void set_limit(struct cgroup *cgrp, u64 period_us, u64 quota_us, u64 burst_us)
{
	u64 quota_ns = quota_us < LIMIT_NS_MAX / NSEC_PER_USEC ? quota_us * NSEC_PER_USEC : 0;
	u64 burst_ns = burst_us < LIMIT_NS_MAX / NSEC_PER_USEC ? burst_us * NSEC_PER_USEC : LIMIT_NS_MAX;
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);
	struct pool *pool = bpf_map_lookup_elem(&pools, &group);
	u64 now = scx_bpf_now();

	/* A place that has had another owner may still have that owner's limit. */
	if (!has_timers || !g || !pool || g->cgroup != cgrp->kn->id || !(quota_ns | pool->limit.quota_ns))
		return;
	bpf_spin_lock(&pool->lock);
	limit_set(&pool->limit, quota_ns, period_us * NSEC_PER_USEC, burst_ns, now);
	bpf_spin_unlock(&pool->lock);
	/* A full barrier, since the value is used: a CPU that sees the version sees the limit. */
	if (__sync_add_and_fetch(&limits_version, 1) == 0)
		limits_version = 1;
}

#endif
