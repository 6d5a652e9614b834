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
 * Where it hurts: a charge walks up the tree, and the scale is that of the moment of the charge, not an integral over
 * the slice. A group beyond MAX_GROUPS counts as part of its parent.
 */
#ifndef COSCHED_WEIGHTS_BPF_H
#define COSCHED_WEIGHTS_BPF_H

enum {
	WEIGHT_DEFAULT	= 100,		/* nice 0, and cpu.weight by default */
	WEIGHT_SHIFT	= 10,		/* effective weights carry this many fractional bits */
	MAX_GROUPS	= 4096,
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
	__uint(max_entries, MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group);
} groups SEC(".maps");

/* Of one group on one CPU. */
struct group_load {
	u64 sum;		/* of the weights of its runnable tasks and groups */
	u64 counted;		/* the weight with which it counts in its parent's sum */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, MAX_GROUPS);
	__type(key, u32);
	__type(value, struct group_load);
} group_loads SEC(".maps");

/* From a cgroup's id to its place in the arrays. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_GROUPS);
	__type(key, u64);
	__type(value, u32);
} group_of_cgroup SEC(".maps");

static u32 find_group(struct cgroup *cgrp)
{
	u64 id = cgrp->kn->id;
	u32 *group = bpf_map_lookup_elem(&group_of_cgroup, &id);

	return group ? *group : ROOT_GROUP;
}

static u32 task_weight(const struct task_struct *p)
{
	return p->scx.weight ?: 1;
}

/* Adds @weight, which may be negative, to the sum of @group on @cpu, and carries it up where that matters. */
static void change_load(u32 group, s32 cpu, s64 weight)
{
	struct group_load *load;
	struct group *g;
	u64 before, after;
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		load = bpf_map_lookup_percpu_elem(&group_loads, &group, cpu);
		g = bpf_map_lookup_elem(&groups, &group);
		if (!load || !g)
			return;
		before = __sync_fetch_and_add(&load->sum, weight);
		after = before + weight;
		if (group == ROOT_GROUP || (before && after))
			return;
		if (after) {
			load->counted = g->weight;
			weight = load->counted;
		} else {
			weight = -(s64)load->counted;
		}
		group = g->parent;
	}
}

/* The weight of a task of @weight in @group against everything else on @cpu, in 1 / 2^WEIGHT_SHIFT. At least 1. */
static u64 effective_weight(u32 group, u32 weight, s32 cpu)
{
	u64 effective = (u64)weight << WEIGHT_SHIFT;
	struct group_load *load;
	struct group *g;
	u32 depth;

	bpf_for(depth, 0, MAX_DEPTH) {
		if (group == ROOT_GROUP)
			break;
		load = bpf_map_lookup_percpu_elem(&group_loads, &group, cpu);
		g = bpf_map_lookup_elem(&groups, &group);
		if (!load || !g)
			break;
		if (load->sum)
			effective = effective * load->counted / load->sum;
		group = g->parent;
	}
	return effective ?: 1;
}

static u64 root_load(s32 cpu)
{
	u32 root = ROOT_GROUP;
	struct group_load *load = bpf_map_lookup_percpu_elem(&group_loads, &root, cpu);

	return load ? load->sum : 0;
}

/* A new group starts with nothing runnable, whatever was left behind in its place. */
static void clear_loads(u32 group)
{
	struct group_load *load;
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		load = bpf_map_lookup_percpu_elem(&group_loads, &group, cpu);
		if (load)
			load->sum = 0;
	}
}

/* Finds a free place for @cgrp. A kernel with more groups than places lets the rest count as their parents. */
static s32 add_group(struct cgroup *cgrp, u32 weight)
{
	struct cgroup *parent = bpf_cgroup_ancestor(cgrp, cgrp->level - 1);
	u32 parent_group = ROOT_GROUP, group;
	u64 id = cgrp->kn->id;

	if (parent) {
		parent_group = find_group(parent);
		bpf_cgroup_release(parent);
	}
	bpf_for(group, ROOT_GROUP + 1, MAX_GROUPS) {
		u32 key = group;
		struct group *g = bpf_map_lookup_elem(&groups, &key);

		if (!g || __sync_val_compare_and_swap(&g->used, 0, 1))
			continue;
		g->cgroup = id;
		g->parent = parent_group;
		g->weight = weight ?: WEIGHT_DEFAULT;
		clear_loads(key);
		return bpf_map_update_elem(&group_of_cgroup, &id, &key, BPF_ANY);
	}
	count(COSCHED_COUNTER_groups_full);
	return bpf_map_update_elem(&group_of_cgroup, &id, &parent_group, BPF_ANY);
}

static void remove_group(struct cgroup *cgrp)
{
	u64 id = cgrp->kn->id;
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);

	bpf_map_delete_elem(&group_of_cgroup, &id);
	if (g && g->cgroup == id)
		__sync_lock_test_and_set(&g->used, 0);
}

/* Gives @cgrp a new weight, on the CPUs too where it is counted in its parent's sum with the old one. */
static void reweigh_group(struct cgroup *cgrp, u32 weight)
{
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);
	struct group_load *load;
	u64 before;
	s32 cpu;

	if (!g || g->cgroup != cgrp->kn->id)
		return;
	g->weight = weight;
	bpf_for(cpu, 0, nr_cpu_ids) {
		load = bpf_map_lookup_percpu_elem(&group_loads, &group, cpu);
		if (!load || !load->sum)
			continue;
		before = __sync_lock_test_and_set(&load->counted, weight);
		change_load(g->parent, cpu, (s64)weight - (s64)before);
	}
}

#endif
