/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tree of cgroups on each CPU: every group has an order of what is runnable in it there (policies/fair.h).
 *
 * An order and the places in it change under a lock of their own. The runqueue's lock would not do, since a CPU may
 * take a task from another CPU's queue. So nothing but a place and its order ever has to agree. Whether a group has a
 * place in the order above follows from its own order. A CPU that has changed a group's own order looks, under the lock
 * above, whether the place is what it has to be (settle_groups()). In whatever order such CPUs come, the last one has
 * seen all changes.
 *
 * Each CPU notes for itself what has run there in a group. The first CPU that finds the sum of these notes old makes a
 * new sum. So no switch writes what other CPUs write, and a group that sleeps costs nothing.
 *
 * Where it hurts: every switch goes up the tree. A group beyond COSCHED_MAX_GROUPS, or deeper than MAX_DEPTH, counts as
 * part of its parent.
 */
#ifndef COSCHED_GROUPS_BPF_H
#define COSCHED_GROUPS_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"
#include "state.bpf.h"
#include "../policies/fair.h"
#include "../policies/limit.h"

enum {
	MAX_DEPTH	= 32,			/* of cgroups in each other */
	ROOT_GROUP	= 0,
	SUM_INTERVAL_NS	= 2 * 1000 * 1000,	/* between two parts of a sum over CPUs */
	SUM_CPUS	= 64,			/* that such a part looks at */
};

struct group {
	u64 cgroup;		/* its id: a cgroup that counts as its parent is not the owner of the place */
	u32 used;
	u32 parent;
	u32 weight;
	u64 present;		/* what runs in it on all CPUs, as last summed up (sum_presence()) */
	u64 partial_sum;	/* of the CPUs before @next_cpu */
	u64 summed_at;		/* when @partial_sum was last added to */
	u64 next_cpu;
	u64 limit_seen;		/* limits_version << 32 | the nearest group upwards that had a limit then */
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* A group on one CPU. */
struct group_on {
	struct bpf_spin_lock lock;	/* of @order, and of the places in it */
	u32 policy_seen;		/* policy_now when its debt was last forgiven */
	struct cosched_order order;
	struct cosched_place place;	/* its own, in its parent's order */
	struct cosched_presence presence;	/* under @lock too */
	struct cosched_portion portion;	/* of its limit (limits.bpf.h) */
};

/* All groups of CPU 0, then all of CPU 1, and so on: CPUs share no cache line. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group_on);
} group_ons SEC(".maps");

/* NULL if @cpu is -1, which is no CPU. */
static struct group_on *group_on(u32 group, s32 cpu)
{
	u32 key = cpu * COSCHED_MAX_GROUPS + group;

	return bpf_map_lookup_elem(&group_ons, &key);
}

/* A cgroup's place in the arrays, in its own storage: as many as there are cgroups. */
struct {
	__uint(type, BPF_MAP_TYPE_CGRP_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, u32);
} group_of_cgroup SEC(".maps");

static u32 find_group(struct cgroup *cgrp)
{
	u32 *group = bpf_cgrp_storage_get(&group_of_cgroup, cgrp, NULL, 0);

	return group ? *group : ROOT_GROUP;
}

/* A step on the way up the tree. */
struct level {
	struct group *group;
	struct group_on *here, *above;	/* its order on a CPU, and the order that its place is in */
};

/* Finds the level of @group on @cpu; false at the root, above which there is nothing. */
static __always_inline bool find_level(struct level *level, u32 group, s32 cpu)
{
	level->group = group == ROOT_GROUP ? NULL : bpf_map_lookup_elem(&groups, &group);
	level->here = level->group ? group_on(group, cpu) : NULL;
	level->above = level->here ? group_on(level->group->parent, cpu) : NULL;
	return level->above;
}

/* The weight in an order of a task or a group to which the kernel gives this weight. */
static u32 in_units(u32 weight)
{
	return (weight ?: 1) * FAIR_WEIGHT_UNIT;
}

static u32 task_weight(const struct task_struct *p)
{
	return in_units(p->scx.weight);
}

/* The sum of the weights of what is runnable at the root of @cpu. */
static u64 root_weight(s32 cpu)
{
	struct group_on *root = group_on(ROOT_GROUP, cpu);

	return root ? root->order.weight : 0;
}

/* Call under the lock of @on, of @group, before its order changes. */
static __always_inline void note_presence(struct group_on *on, u32 group, u64 now)
{
	u64 weight = on->order.weight;

	fair_note_presence(&on->presence, group == ROOT_GROUP ? fair_room(weight) : weight, now);
}

/*
 * Adds SUM_CPUS more CPUs to the sum of what runs in @group, if it is time. One CPU does so at a time. If that takes
 * longer than the interval, another CPU may begin, and one sum is wrong. A global function, like all below with a loop:
 * the verifier walks through it once, and it has to return a number.
 */
__noinline int sum_presence(u32 group, u64 now)
{
	struct group *g = bpf_map_lookup_elem(&groups, &group);
	u64 sum, at_ns = g ? READ_ONCE(g->summed_at) : 0;
	u32 cpu, first;

	if (!g || (s64)(now - at_ns) < SUM_INTERVAL_NS)
		return 0;
	if (__sync_val_compare_and_swap(&g->summed_at, at_ns, now) != at_ns)
		return 0;
	first = g->next_cpu;
	sum = first ? g->partial_sum : 0;
	bpf_for(cpu, first, nr_cpu_ids) {
		struct group_on *on = group_on(group, cpu);

		if (cpu - first >= SUM_CPUS)
			break;
		if (on)
			sum += fair_presence(&on->presence, on->order.weight, now);
	}
	g->partial_sum = sum;
	g->next_cpu = first + SUM_CPUS < nr_cpu_ids ? first + SUM_CPUS : 0;
	if (!g->next_cpu)
		WRITE_ONCE(g->present, sum);
	return 0;
}

/*
 * With what weight @group counts on a CPU where it is @here, if its order weighs @weight there. @leaves: how much of
 * that leaves another CPU.
 */
static __always_inline u64 portion_of(const struct group *group, const struct group_on *here, u64 weight, u64 leaves,
				      u64 now)
{
	u64 all = READ_ONCE(group->present);

	return fair_portion(group->weight, weight, fair_presence(&here->presence, here->order.weight, now),
			    all > leaves ? all - leaves : 0);
}

/* What @level, whose order has changed or not, is to weigh in the order above. */
static __always_inline u64 counts_there(const struct level *level, u64 now)
{
	u64 weight = READ_ONCE(level->here->order.weight);

	return weight ? forget_ways(portion_of(level->group, level->here, weight, 0, now)) : 0;
}

/* Is the place of @level, which is to weigh @weight, as it has to be? */
static bool is_settled(const struct level *level, u64 weight)
{
	u64 counts = level->here->place.weight;

	return !counts == !weight && !fair_portion_differs(counts, weight);
}

/*
 * What runs in @group has changed on @cpu or on other CPUs: puts its place in the order above right. False if it was
 * right. @held: the group above is kept from running too. A global function as well. It calls none itself, since the
 * stack of all functions that call each other is bounded.
 */
__noinline int settle_level(u32 group, s32 cpu, u64 credit_ns, u64 slice_ns, bool held)
{
	u64 now = scx_bpf_now();
	struct level level;
	struct cosched_order *above;
	struct cosched_place *place;
	u32 weight, was;

	if (!find_level(&level, group, cpu) || is_settled(&level, counts_there(&level, now)))
		return false;
	above = &level.above->order;
	place = &level.here->place;
	bpf_spin_lock(&level.above->lock);
	note_presence(level.above, level.group->parent, now);
	weight = counts_there(&level, now);
	was = place->weight;
	if (weight && was) {
		fair_reweigh(above, place, weight);
	} else if (weight) {
		place->vtime = forget_ways(fair_place(above, fair_lead(above, place), place->lag, weight, credit_ns,
						      slice_ns));
		fair_enter(above, place, weight);
	} else if (was) {
		fair_leave(above, place);
		if (held && !above->weight)
			fair_hold_presence(&level.above->presence, was, now);
	}
	bpf_spin_unlock(&level.above->lock);
	return true;
}

/* The group above @group; of the root, the root. */
static u32 parent_of(u32 group)
{
	struct group *g = bpf_map_lookup_elem(&groups, &group);

	return g ? g->parent : ROOT_GROUP;
}

/*
 * What runs in @group on @cpu has changed: puts its place in its parent's order right. It does the same for each
 * group above, as far as that makes a difference. A group that has slept may be behind the others by @credit_ns. Groups
 * below @held may be behind by more. The group @held was kept from running, and all in it with it, so among each other
 * they stand as they did.
 */
__noinline int settle_groups(u32 group, s32 cpu, u64 credit_ns, u64 slice_ns, u32 held)
{
	u32 depth;

	full_barrier();		/* between the change and the look at the place */
	bpf_for(depth, 0, MAX_DEPTH) {
		if (group == ROOT_GROUP)
			break;
		if (group == held)
			held = ROOT_GROUP;
		sum_presence(group, scx_bpf_now());
		if (!settle_level(group, cpu, held ? FAIR_LEAD_MAX : credit_ns, slice_ns, held))
			break;
		group = parent_of(group);
	}
	return 0;
}

/* At a tick of @cpu, on which a task of @group runs: the same for what has changed on other CPUs, up to the root. */
__noinline int weigh_groups(u32 group, s32 cpu)
{
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		if (group == ROOT_GROUP)
			break;
		sum_presence(group, scx_bpf_now());
		settle_level(group, cpu, 0, 0, false);
		group = parent_of(group);
	}
	return 0;
}

/* Something in @group has run on @cpu for @ran_ns. */
__noinline int charge_groups(u32 group, s32 cpu, u64 ran_ns)
{
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct level level;

		if (!find_level(&level, group, cpu))
			return 0;
		bpf_spin_lock(&level.above->lock);
		if (level.here->place.weight)
			fair_charge(&level.above->order, &level.here->place, ran_ns);
		bpf_spin_unlock(&level.above->lock);
		group = level.group->parent;
	}
	return 0;
}

/*
 * Bounds the debts of @group on @cpu and of the groups above, and their credit to @credit_ns of CPU time. A debt from
 * another policy than @policy is forgiven.
 */
__noinline int bound_groups(u32 group, s32 cpu, u32 policy, u64 credit_ns)
{
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct level level;

		if (!find_level(&level, group, cpu))
			return 0;
		bpf_spin_lock(&level.above->lock);
		if (level.here->place.weight) {
			fair_bound(&level.above->order, &level.here->place, level.here->policy_seen != policy);
			fair_bound_credit(&level.above->order, &level.here->place, credit_ns);
		}
		level.here->policy_seen = policy;
		bpf_spin_unlock(&level.above->lock);
		group = level.group->parent;
	}
	return 0;
}

/* What the order has to say of a task on its CPU. */
struct standing {
	s64 lead;		/* over all others, on the clock of the root */
	u64 effective;		/* its weight against everything there, in 1 / 2^FAIR_WEIGHT_SHIFT: at least 1 */
	u32 weight;		/* of the task or the group that has come this far up */
	u32 group;		/* that it is in there */
};

/*
 * Takes @standing on @cpu up a level of the tree; false at the root. A global function that gets a pointer: the
 * verifier then knows no values there that would differ from level to level.
 */
__noinline bool stand_above(struct standing *standing __arg_nonnull, s32 cpu)
{
	struct level level;
	u64 counts;

	if (!find_level(&level, standing->group, cpu))
		return false;
	counts = level.here->place.weight ?: level.group->weight;
	standing->lead = fair_lead_above(standing->lead, &level.here->order, counts) +
			 fair_lead(&level.above->order, &level.here->place);
	standing->effective = standing->effective * counts / (level.here->order.weight ?: standing->weight ?: 1);
	standing->weight = counts;
	standing->group = level.group->parent;
	return true;
}

/* How a task of @weight with this @lead in @group stands on @cpu. Where it is not runnable yet, as if it were. */
static void stand(u32 group, u32 weight, s64 lead, s32 cpu, struct standing *standing)
{
	u32 depth;

	*standing = (struct standing){
		.lead = lead, .effective = (u64)weight << FAIR_WEIGHT_SHIFT, .weight = weight, .group = group,
	};
	bpf_for(depth, 0, MAX_DEPTH)
		if (!stand_above(standing, cpu))
			break;
	standing->effective = standing->effective ?: 1;
}

/* What a task that does not wait on a CPU would be if it came there. */
struct newcomer {
	u64 effective;		/* as in struct standing */
	u64 more;		/* by so much the sum of weights at the root would rise */
};

/*
 * What a task of @weight in @group would be on @cpu, if it came there. It comes from another CPU where it waits
 * (@leaves), or from its sleep. Its group counts for more on @cpu then. A global function: see sum_presence().
 */
__noinline int imagine_newcomer(u32 group, u32 weight, s32 cpu, bool leaves, struct newcomer *newcomer __arg_nonnull)
{
	u64 effective = (u64)weight << FAIR_WEIGHT_SHIFT, more = weight, now = scx_bpf_now();
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		struct group *g = group == ROOT_GROUP ? NULL : bpf_map_lookup_elem(&groups, &group);
		struct group_on *here = g ? group_on(group, cpu) : NULL;
		u64 sum, counts;

		if (!here)
			break;
		sum = here->order.weight + more;
		counts = portion_of(g, here, sum, leaves ? more : 0, now);
		effective = effective * counts / (sum ?: 1);
		more = counts > here->place.weight ? counts - here->place.weight : 0;
		group = g->parent;
	}
	newcomer->effective = effective;
	newcomer->more = more;
	return 0;
}

#endif
