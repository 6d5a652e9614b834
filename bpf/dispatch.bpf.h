/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU runs next: a boosted task, one of a busier CPU, the one that runs already, the first of its queue, or whatever
 * waits on another CPU.
 */
#ifndef COSCHED_DISPATCH_BPF_H
#define COSCHED_DISPATCH_BPF_H

/*
 * @prev has used its slice, or was asked to yield the CPU: let it go on if it has a message and the gate
 * allows, or if nobody in the queue comes before it.
 */
static bool keep_running(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			 u64 now)
{
	struct task_struct *first = __COMPAT_scx_bpf_dsq_peek(cpu);
	bool granted = false;
	u64 key;

	if (is_held_now(prev, tctx, cpu, now) || (first && is_to_park(tctx, cctx)))
		return false;
	tctx->park = PARK_NONE;
	if (first && tctx->yields) {
		tctx->yields_to = first->scx.dsq_vtime;
		return false;
	}
	tctx->yields = 0;
	bound_debts(prev, tctx);
	key = present_key(tctx, cpu);
	if (first && !vtime_before(key, first->scx.dsq_vtime)) {
		tctx->owes = has_question(tctx);
		granted = arrivals_demand() && has_demand(tctx) &&
			  demand_granted(prev, tctx, cctx, now);
		if (!granted)
			return false;
	}
	if (tctx->boosted != granted) {
		tctx->boosted = granted;
		trace_switch_in(prev, tctx);
	}
	scx_bpf_task_set_slice(prev, granted ? begin_slice(tctx, tctx->granted_ns) : rest_or_whole_slice(tctx));
	bound_slice(prev, tctx, cctx, cpu, now);
	tctx->key = key;
	note_position(cctx, tctx, key, now);
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
static bool steal(s32 cpu, u64 now)
{
	u32 pass, i;

	if (!any_queued())
		return false;
	bpf_for(pass, 0, 2) {
		bpf_for(i, 1, nr_cpu_ids) {
			s32 other = cpu + i < nr_cpu_ids ? cpu + i : cpu + i - nr_cpu_ids;

			if (share_cache(cpu, other) != !pass || !is_queued(other) || is_front_held(other, cpu, now))
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
	bool may_take;

	if (!cctx)
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		tctx = task_ctx_of(prev);
		if (tctx)
			settle(prev, tctx, cctx, now);
	}
	refresh_last(cctx, cpu, now);
	unpark(cctx, cpu, now);
	take_back(cctx, cpu, now);
	may_take = clear_front(cpu, cctx, cpu, now);
	if (dispatch_boosted(cctx, cpu, now) ||
	    dispatch_row(prev, tctx, cctx, cpu) || pull(cctx, cpu, now))
		return;
	if (prev && tctx && keep_running(prev, tctx, cctx, cpu, now))
		return;
	if (!may_take || scx_bpf_dsq_move_to_local(cpu, 0))
		return;
	note_empty(cpu);
	if (!steal(cpu, now) && clear_front(WAITERS + cpu, cctx, cpu, now))
		scx_bpf_dsq_move_to_local(WAITERS + cpu, 0);
}

#endif
