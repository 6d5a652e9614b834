/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Weights: nice levels and the cpu.weight of cgroups, as one number per task and CPU.
 *
 * The fair order is flat, but cgroups are a tree: of two groups of equal weight, one with a single task and one
 * with three, each gets half of a CPU. So a task's effective weight is its own, scaled at every level of the tree
 * by the weight of the group over the sum of what is runnable in it on this CPU:
 *
 *	root ── A (100) ── a1 (100)			a1: 100 * 100/100 = 100
 *	    └── B (100) ── b1, b2, b3 (100 each)	b1: 100 * 100/300 =  33
 *
 * The sums are kept per CPU and group, and a group counts in its parent's sum while anything of it is runnable. They
 * change by atomic additions, which commute: whoever takes a sum from or to zero carries the change to the
 * parent, and in whatever order such changes arrive, the result is the same. So a CPU can take a task from another's
 * queue and settle both sums without the other's lock.
 *
 * Where it hurts: every switch walks up the tree, and the scale of a run is that of its start, not an integral over
 * it. A group beyond COSCHED_MAX_GROUPS counts as part of its parent.
 */
#ifndef COSCHED_WEIGHTS_BPF_H
#define COSCHED_WEIGHTS_BPF_H

enum {
	WEIGHT_DEFAULT	= 100,		/* nice 0, and cpu.weight by default */
	WEIGHT_SHIFT	= 10,		/* effective weights carry this many fractional bits */
	MAX_DEPTH	= 16,
	ROOT_GROUP	= 0,
};

struct group {
	u64 cgroup;		/* its id: a cgroup that counts as its parent is not the owner of the place */
	u32 used;
	u32 parent;
	u32 weight;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* Of one group on one CPU. */
struct group_load {
	u32 sum;		/* of the weights of its runnable tasks and groups */
	u32 counted;		/* the weight with which it counts in its parent's sum */
};

/* All groups of CPU 0, then all of CPU 1, and so on: CPUs share no cache line. The loader sets the size. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group_load);
} group_loads SEC(".maps");

static struct group_load *group_load_of(u32 group, s32 cpu)
{
	u32 key = cpu * COSCHED_MAX_GROUPS + group;

	return bpf_map_lookup_elem(&group_loads, &key);
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

static u32 task_weight(const struct task_struct *p)
{
	return p->scx.weight ?: 1;
}

/*
 * Adds @weight, which may be negative, to the sum of @group on @cpu, and carries it up where that matters. The root's
 * sum is the CPU's own. A global function: its loop is verified once. Such a function has to return a number.
 */
__noinline int change_load(struct cpu_ctx *cctx __arg_nonnull, u32 group, s32 cpu, s32 weight)
{
	u32 depth;

	for (depth = 0; depth < MAX_DEPTH && group != ROOT_GROUP; depth++) {
		struct group_load *load = group_load_of(group, cpu);
		struct group *g = bpf_map_lookup_elem(&groups, &group);
		u32 before, after;

		if (!load || !g)
			return 0;
		before = __sync_fetch_and_add(&load->sum, weight);
		after = before + weight;
		if (before && after)
			return 0;
		if (after) {
			load->counted = g->weight;
			weight = load->counted;
		} else {
			weight = -load->counted;
		}
		group = g->parent;
	}
	__sync_fetch_and_add(&cctx->weight_sum, weight);
	return 0;
}

/*
 * The weight of a task of @weight in @group against everything else on @cpu, in 1 / 2^WEIGHT_SHIFT. At least 1. A
 * global function, as above.
 */
__noinline u64 effective_weight(u32 group, u32 weight, s32 cpu)
{
	u64 effective = (u64)weight << WEIGHT_SHIFT;
	u32 depth;

	for (depth = 0; depth < MAX_DEPTH && group != ROOT_GROUP; depth++) {
		struct group_load *load = group_load_of(group, cpu);
		struct group *g = bpf_map_lookup_elem(&groups, &group);

		if (!load || !g)
			break;
		if (load->sum)
			effective = effective * load->counted / load->sum;
		group = g->parent;
	}
	return effective ?: 1;
}

/* What @effective is of all that is runnable on a CPU, in 1 / 2^COSCHED_SHARE_SHIFT. */
static u64 share_of_weight(u64 effective, u64 weight_sum)
{
	return (effective << (COSCHED_SHARE_SHIFT - WEIGHT_SHIFT)) / (weight_sum ?: 1);
}

/* The share of @cpu, which is @cctx's, that a task of @weight in @group would have if it came there. */
static u64 share_of_newcomer(u32 group, u32 weight, const struct cpu_ctx *cctx, s32 cpu)
{
	u64 effective = (u64)weight << WEIGHT_SHIFT;
	u32 depth;

	for (depth = 0; depth < MAX_DEPTH && group != ROOT_GROUP; depth++) {
		struct group_load *load = group_load_of(group, cpu);
		struct group *g = bpf_map_lookup_elem(&groups, &group);
		u32 sum, counted;

		if (!load || !g)
			break;
		sum = load->sum;
		counted = sum ? load->counted : g->weight;
		effective = effective * counted / (sum + weight ?: 1);
		weight = sum ? 0 : counted;	/* a group that is there already makes no difference further up */
		group = g->parent;
	}
	return share_of_weight(effective, cctx->weight_sum + weight);
}

/* Brings the share clock up to @now. Call before the sum of weights changes. */
static void advance_share_clock(struct cpu_ctx *cctx, u64 now)
{
	s64 passed_ns = now - cctx->share_at;

	if (!passed_ns)
		return;
	if (passed_ns > 0 && cctx->weight_sum)
		cctx->share_clock += passed_ns * WEIGHT_DEFAULT / cctx->weight_sum;
	cctx->share_at = now;
}

/* A new group starts with nothing runnable, whatever was left behind in its place. */
static void clear_loads(u32 group)
{
	struct group_load *load;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		load = group_load_of(group, cpu);
		if (load)
			load->sum = 0;
	}
}

/* Finds a free place for @cgrp. A kernel with more groups than places lets the rest count as their parents. */
static s32 add_group(struct cgroup *cgrp, u32 weight)
{
	struct cgroup *parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	u32 parent_group = ROOT_GROUP, group;
	u32 *place;

	if (parent) {
		parent_group = find_group(parent);
		bpf_cgroup_release(parent);
	}
	place = bpf_cgrp_storage_get(&group_of_cgroup, cgrp, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!place) {
		count(COSCHED_COUNTER_groups_full);
		return 0;
	}
	*place = parent_group;
	bpf_for(group, ROOT_GROUP + 1, COSCHED_MAX_GROUPS) {
		u32 key = group;
		struct group *g = bpf_map_lookup_elem(&groups, &key);

		if (!g || __sync_val_compare_and_swap(&g->used, 0, 1))
			continue;
		g->cgroup = cgrp->kn->id;
		g->parent = parent_group;
		g->weight = weight ?: WEIGHT_DEFAULT;
		clear_loads(key);
		*place = key;
		return 0;
	}
	count(COSCHED_COUNTER_groups_full);
	return 0;
}

static void remove_group(struct cgroup *cgrp)
{
	u64 id = cgrp->kn->id;
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);

	bpf_cgrp_storage_delete(&group_of_cgroup, cgrp);
	if (g && g->cgroup == id)
		__sync_lock_test_and_set(&g->used, 0);
}

/* Gives @cgrp a new weight, on the CPUs too where it is counted in its parent's sum with the old one. */
static void reweigh_group(struct cgroup *cgrp, u32 weight)
{
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);
	struct group_load *load;
	u32 before;
	s32 cpu;

	if (!g || g->cgroup != cgrp->kn->id)
		return;
	g->weight = weight;
	bpf_for(cpu, 0, nr_cpu_ids) {
		struct cpu_ctx *cctx = cpu_ctx_of(cpu);

		load = group_load_of(group, cpu);
		if (!cctx || !load || !load->sum)
			continue;
		before = __sync_lock_test_and_set(&load->counted, weight);
		change_load(cctx, g->parent, cpu, weight - before);
	}
}

#endif
