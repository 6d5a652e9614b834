/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The tree of cgroups on each CPU: in every group an order of what is runnable in it there (policies/fair.h).
 *
 * An order and the places in it change under a lock of their own and not under the runqueue's, since a CPU may take a
 * task from another's queue. So nothing but a place and its order ever has to agree. Whether a group has a place in
 * the order above follows from its own order: whoever has changed that looks, under the lock above, whether the place
 * is what it has to be (settle_groups()). In whatever order they come, the last one has seen them all.
 *
 * Where it hurts: every switch goes up the tree. A group beyond COSCHED_MAX_GROUPS counts as part of its parent.
 */
#ifndef COSCHED_GROUPS_BPF_H
#define COSCHED_GROUPS_BPF_H

enum {
	MAX_DEPTH	= 16,
	ROOT_GROUP	= 0,
};

struct group {
	u64 cgroup;		/* its id: a cgroup that counts as its parent is not the owner of the place */
	u32 used;
	u32 parent;
	u32 weight;
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
	struct cosched_portion portion;	/* of its limit (limits.bpf.h) */
};

/* All groups of CPU 0, then all of CPU 1, and so on: CPUs share no cache line. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group_on);
} group_ons SEC(".maps");

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
	struct group_on *here, *above;	/* its order on a CPU, and that which its place is in */
};

/* Finds the level of @group on @cpu; false at the root, above which there is nothing. */
static __always_inline bool find_level(struct level *level, u32 group, s32 cpu)
{
	level->group = group == ROOT_GROUP ? NULL : bpf_map_lookup_elem(&groups, &group);
	level->here = level->group ? group_on(group, cpu) : NULL;
	level->above = level->here ? group_on(level->group->parent, cpu) : NULL;
	return level->above;
}

static u32 task_weight(const struct task_struct *p)
{
	return p->scx.weight ?: 1;
}

/* The sum of the weights at the root of @cpu, of what is runnable there. */
static u64 root_weight(s32 cpu)
{
	struct group_on *root = group_on(ROOT_GROUP, cpu);

	return root ? root->order.weight : 0;
}

/* What @level, whose order has changed or not, is to weigh in the one above. */
static u64 counts_there(const struct level *level)
{
	return READ_ONCE(level->here->order.weight) ? level->group->weight : 0;
}

/*
 * What runs in @group on @cpu has changed: puts its place in its parent's order right, and so on up. A group that has
 * slept may be behind the others by @credit_ns. Not so those below @held: that group was kept from running, and all in
 * it with it, so among each other they stand as they did. A global function: its loop is verified once. Such a function
 * has to return a number.
 */
__noinline int settle_groups(u32 group, s32 cpu, u64 credit_ns, u64 slice_ns, u32 held)
{
	u32 depth;

	full_barrier();		/* between the change and the look at the place */
	bpf_for(depth, 0, MAX_DEPTH) {
		struct level level;
		u32 weight;
		s64 lead;

		if (group == held)
			held = ROOT_GROUP;
		if (!find_level(&level, group, cpu) || level.here->place.weight == counts_there(&level))
			return 0;
		bpf_spin_lock(&level.above->lock);
		weight = counts_there(&level);
		lead = fair_lead(&level.above->order, &level.here->place);
		if (level.here->place.weight)
			fair_leave(&level.above->order, &level.here->place);
		else
			level.here->place.vtime = fair_place(&level.above->order, lead, weight,
							     held ? FAIR_LEAD_MAX : credit_ns, slice_ns);
		if (weight)
			fair_enter(&level.above->order, &level.here->place, weight);
		bpf_spin_unlock(&level.above->lock);
		group = level.group->parent;
	}
	return 0;
}

/* Something in @group has run on @cpu for @ran_ns. A global function, as above. */
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
 * Bounds the debts of @group on @cpu and of those above, of which none is left of another policy than @policy, and
 * their credit, to @credit_ns of CPU time. A global function, as above.
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
 * Takes @standing on @cpu up a level of the tree; false at the root. A global function and behind a pointer, since
 * the verifier knows no values there that would differ from level to level.
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

/* How a task of @weight stands on @cpu that has this @lead in @group. Where it is not runnable yet, as if it were. */
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

/* What of @cpu a task of @weight in @group would have if it came there, in 1 / 2^COSCHED_SHARE_SHIFT. */
static u64 share_of_newcomer(u32 group, u32 weight, s32 cpu)
{
	u64 effective = (u64)weight << FAIR_WEIGHT_SHIFT;
	u32 depth;

	for (depth = 0; depth < MAX_DEPTH && group != ROOT_GROUP; depth++) {
		struct group *g = bpf_map_lookup_elem(&groups, &group);
		struct group_on *here = group_on(group, cpu);
		u64 sum, counts;

		if (!here || !g)
			break;
		sum = here->order.weight;
		counts = here->place.weight ?: g->weight;
		effective = effective * counts / (sum + weight ?: 1);
		weight = sum ? 0 : counts;	/* a group that is there already makes no difference further up */
		group = g->parent;
	}
	return fair_share(1ULL << COSCHED_SHARE_SHIFT, effective, root_weight(cpu) + weight);
}

#endif
