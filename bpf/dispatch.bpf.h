/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a CPU runs next: a boosted task, one of a busier CPU, the one that runs already, the first of its queue, or whatever
 * waits on another CPU.
 */
#ifndef COSCHED_DISPATCH_BPF_H
#define COSCHED_DISPATCH_BPF_H

#define CHECK_INTERVAL_NS (250 * NSEC_PER_MSEC)
#define MAX_PATIENCE_NS (10 * NSEC_PER_SEC)	/* half of .timeout_ms */

/*
 * @prev has used its slice, or was asked to yield the CPU: let it go on if it has a message and the gate
 * allows, or if nobody in the queue comes before it.
 */
static bool keep_running(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu,
			 u64 now)
{
	struct task_struct *first = is_wanted(cctx, cpu) ? __COMPAT_scx_bpf_dsq_peek(cpu) : NULL;
	bool granted = false;

	if (first && is_to_park(tctx, cctx))
		return false;
	tctx->park = PARK_NONE;
	if (first && tctx->yields) {
		fall_behind(tctx, first->scx.dsq_vtime);
		return false;
	}
	if (first && !vtime_before(tctx->vtime, first->scx.dsq_vtime)) {
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
	scx_bpf_task_set_slice(prev, granted ? begin_slice(tctx, tctx->granted_ns) : resume_slice(tctx));
	note_position(cctx, tctx, now);
	if (!is_kthread(prev))
		advance_fair_clock(tctx, cctx, cpu);
	return true;
}

/*
 * How long @tctx may wait in the queue, in ns. Twice as long as the fair order alone has it wait, and as long again as
 * it takes to pay a debt back; in any case less than the kernel waits before it throws the scheduler out.
 */
static u64 patience(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 round_ns = to_vtime(current_policy()->slice_ns, vtime_scale(tctx, cctx)) * cctx->nr_runnable;
	u64 patience_ns = MAX_WAIT_NS + 2 * round_ns;

	return patience_ns < MAX_PATIENCE_NS ? patience_ns : MAX_PATIENCE_NS;
}

/*
 * Takes a task that has waited too long, whatever the order says. What is next to nothing of a CPU, and what boosts and
 * tasks that come and go make of the order, must not add up to a wait without bound. O(tasks in the queue), but
 * seldom.
 */
static bool dispatch_overdue(struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	struct task_struct *p;

	if (now - cctx->overdue_at < CHECK_INTERVAL_NS)
		return false;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx || (s64)(now - tctx->queued_at) < (s64)patience(tctx, cctx))
			continue;
		/* First in the order from now on, or it would wait again if it were preempted in this slice. */
		if (vtime_before(cctx->vtime_now, tctx->vtime))
			tctx->vtime = cctx->vtime_now;
		scx_bpf_dsq_move_set_slice(BPF_FOR_EACH_ITER, begin_whole_slice(tctx));
		if (scx_bpf_dsq_move(BPF_FOR_EACH_ITER, p, SCX_DSQ_LOCAL, 0)) {
			count(COSCHED_COUNTER_overdue);
			return true;
		}
	}
	cctx->overdue_at = now;
	return false;
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
static bool steal(s32 cpu)
{
	u32 pass, i;

	if (!any_queued())
		return false;
	bpf_for(pass, 0, 2) {
		bpf_for(i, 1, nr_cpu_ids) {
			s32 other = cpu + i < nr_cpu_ids ? cpu + i : cpu + i - nr_cpu_ids;

			if (share_cache(cpu, other) != !pass || !is_queued(other))
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

	if (!cctx)
		return;
	if (prev && (prev->scx.flags & SCX_TASK_QUEUED)) {
		tctx = task_ctx_of(prev);
		if (tctx)
			settle(prev, tctx, cctx, now);
	}
	forgive_debts(cctx, cpu);
	unpark(cctx, cpu, now);
	if (dispatch_overdue(cctx, cpu, now) || dispatch_boosted(cctx, cpu, now) ||
	    dispatch_row(prev, tctx, cctx, cpu) || pull(cctx, cpu, now))
		return;
	if (prev && tctx && keep_running(prev, tctx, cctx, cpu, now))
		return;
	if (scx_bpf_dsq_move_to_local(cpu, 0))
		return;
	note_empty(cpu);
	steal(cpu);
}

#endif
