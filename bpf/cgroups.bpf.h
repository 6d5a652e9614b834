/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Cgroups come, go and get another weight: each has a place in the arrays of groups.bpf.h.
 */
#ifndef COSCHED_CGROUPS_BPF_H
#define COSCHED_CGROUPS_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "groups.bpf.h"
#include "intf.h"
#include "state.bpf.h"
#include "../policies/fair.h"

/*
 * Users may make cgroups within theirs, such as /user.slice/user-1000.slice/user@1000.service. So cgroups further down
 * than OPEN_LEVELS leave a quarter of the places to the others.
 */
enum {
	OPEN_LEVELS	= 3,
	DEEP_PLACES	= COSCHED_MAX_GROUPS / 4 * 3,
};

/*
 * Is nothing of the last owner of @group runnable? Before Linux 6.19 a task that dies may be runnable for longer than
 * its cgroup exists.
 */
static bool is_free(u32 group)
{
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		struct group_on *here = group_on(group, cpu);

		if (here && (READ_ONCE(here->order.weight) || READ_ONCE(here->place.weight)))
			return false;
	}
	return true;
}

/* @group, of which nothing is runnable, begins anew below @parent, with neither credit nor debt. */
static void begin_group(u32 group, struct group *g, u32 parent)
{
	s32 cpu;

	bpf_for(cpu, 0, nr_cpu_ids) {
		struct group_on *here = group_on(group, cpu), *above = group_on(parent, cpu);

		if (!here || !above)
			continue;
		here->presence.mean = 0;
		here->place.vtime = above->order.clock;
		here->place.lag = 0;
		here->portion.left_ns = 0;
	}
	g->parent = parent;
	g->present = 0;
	g->limit_seen = 0;
}

/*
 * Finds a free place for @cgrp. A cgroup for which there is none counts as its parent, and so does a cgroup deeper than
 * MAX_DEPTH.
 */
static void add_group(struct cgroup *cgrp, u32 weight)
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
		return;
	}
	*place = parent_group;
	if (cgrp->level > MAX_DEPTH)
		return;
	bpf_for(group, ROOT_GROUP + 1, cgrp->level > OPEN_LEVELS ? DEEP_PLACES : COSCHED_MAX_GROUPS) {
		u32 key = group;
		struct group *g = bpf_map_lookup_elem(&groups, &key);

		if (!g || __sync_val_compare_and_swap(&g->used, 0, 1))
			continue;
		if (!is_free(key)) {
			__sync_lock_test_and_set(&g->used, 0);
			continue;
		}
		begin_group(key, g, parent_group);
		g->cgroup = cgrp->kn->id;
		g->weight = weight ? in_units(weight) : FAIR_WEIGHT_DEFAULT;
		*place = key;
		return;
	}
	count(COSCHED_COUNTER_groups_full);
}

static void remove_group(struct cgroup *cgrp)
{
	u64 id = cgrp->kn->id;
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);

	bpf_cgrp_storage_delete(&group_of_cgroup, cgrp);
	if (!g || g->cgroup != id)
		return;
	WRITE_ONCE(g->cgroup, 0);	/* no task enters any more: see enter_order() */
	__sync_lock_test_and_set(&g->used, 0);
}

/* Gives @cgrp a new weight, also on the CPUs where it counts with the old one. */
static void reweigh_group(struct cgroup *cgrp, u32 weight)
{
	u32 group = find_group(cgrp);
	struct group *g = bpf_map_lookup_elem(&groups, &group);
	s32 cpu;

	if (!g || g->cgroup != cgrp->kn->id)
		return;
	g->weight = in_units(weight);
	bpf_for(cpu, 0, nr_cpu_ids)
		settle_groups(group, cpu, 0, 0, ROOT_GROUP);
}

#endif
