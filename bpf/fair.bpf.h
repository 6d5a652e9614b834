/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fair order: who runs next when no message says otherwise.
 *
 * Every CPU has a queue of its own, ordered by vtime, which is CPU time divided by weight. Three rules
 * make the boosts of demand.bpf.h harmless in the long run:
 *
 *  - Boosted time is charged like any other, from sum_exec_runtime and not from what is left of the
 *    slice, because a preemption sets that to zero. A boost is a loan, and the order collects it.
 *  - The CPU's fair clock is the least vtime of what is runnable there. A boosted task is ahead of it; if it
 *    took the clock with it, all that wake up later would start with the same debt.
 *  - A task that sleeps keeps its debt and loses its credit beyond one slice. A task that moves to
 *    another CPU takes its distance to the clock along, not its vtime.
 *
 * A task that is preempted in mid-slice keeps its place and the rest of its slice: its key is the vtime
 * at which the slice began. Otherwise each boost would also shuffle the tasks that it preempts.
 */
#ifndef COSCHED_FAIR_BPF_H
#define COSCHED_FAIR_BPF_H

enum {
	SCALE_SHIFT	= 20,
	MAX_WAIT_NS	= 1500 * 1000 * 1000,	/* for the others to catch up with a task that is ahead of them */
	MIN_REST_NS	= 1000 * 1000,		/* a shorter rest of a slice is not worth a switch */
	WAKE_MARGIN_NS	= 1000 * 1000,		/* a waking task preempts one that is ahead of it by more than this... */
	MIN_RUN_NS	= 2 * 1000 * 1000,	/* ...and has used this much of its slice; else it does at the next tick */
};

static bool vtime_before(u64 a, u64 b)
{
	return (s64)(a - b) < 0;
}

/*
 * The weight of @tctx over the average of what is runnable on @cctx's CPU, in 1 / 2^SCALE_SHIFT. At least 1.
 *
 * The average makes vtime a time: among equals it is CPU time, however deep in the tree of cgroups they are, and the
 * fair clock of n runnable tasks advances by 1/n of real time, whatever their weights are.
 */
static u64 vtime_scale(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 weight = tctx->weight << (SCALE_SHIFT - WEIGHT_SHIFT);

	return weight * (cctx->nr_runnable ?: 1) / (cctx->weight_sum ?: 1) ?: 1;
}

static u64 to_vtime(u64 ns, u64 scale)
{
	return (ns << SCALE_SHIFT) / (scale ?: 1 << SCALE_SHIFT);
}

static void leave_sums(struct task_ctx *tctx)
{
	s32 cpu = tctx->sum_cpu;
	struct cpu_ctx *cctx = cpu < 0 ? NULL : cpu_ctx_of(cpu);

	if (!cctx)
		return;
	change_load(cctx, tctx->sum_group, cpu, -(s32)tctx->sum_weight);
	__sync_fetch_and_sub(&cctx->nr_runnable, 1);
	__sync_fetch_and_sub(&cctx->vtime_sum, tctx->sum_vtime);
	tctx->sum_cpu = -1;
}

static void join_sums(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	advance_share_clock(cctx, scx_bpf_now());
	tctx->sum_cpu = cpu;
	tctx->sum_group = tctx->group;
	tctx->sum_weight = task_weight(p);
	tctx->share_seen = cctx->share_clock;
	tctx->share_cpu = cpu;
	change_load(cctx, tctx->sum_group, cpu, tctx->sum_weight);
	tctx->weight = effective_weight(tctx->sum_group, tctx->sum_weight, cpu);
	tctx->sum_vtime = tctx->vtime;
	__sync_fetch_and_add(&cctx->nr_runnable, 1);
	__sync_fetch_and_add(&cctx->vtime_sum, tctx->sum_vtime);
}

/* The vtime of @tctx has changed. */
static void update_sums(struct task_ctx *tctx)
{
	struct cpu_ctx *cctx = tctx->sum_cpu < 0 ? NULL : cpu_ctx_of(tctx->sum_cpu);

	if (!cctx || tctx->sum_vtime == tctx->vtime)
		return;
	__sync_fetch_and_add(&cctx->vtime_sum, tctx->vtime - tctx->sum_vtime);
	tctx->sum_vtime = tctx->vtime;
}

/* How far the tasks that are runnable on @cctx's CPU, apart from @tctx, are ahead of the fair clock, on the average. */
static s64 others_lead(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 clock = cctx->vtime_now, sum = cctx->vtime_sum;
	u32 n = cctx->nr_runnable;
	s64 lead;

	if (tctx->sum_cpu == tctx->cpu && n) {
		sum -= tctx->sum_vtime;
		n--;
	}
	if (!n)
		return 0;
	lead = sum - n * clock;
	if (lead < 0)
		return 0;
	lead = (u64)lead / n;
	return lead < MAX_WAIT_NS ? lead : MAX_WAIT_NS;
}

/*
 * A task that was away may be behind the clock by one slice at most: a sleeper could save up and then hold the CPU, and
 * the clock of a CPU that a task has left can make a leap. But one that waited for a message was not away by its own
 * choice. Where the gate lets it make up for that, the order must not forget it, or it would hold the making up against it.
 */
static void bound_credit(struct task_ctx *tctx, const struct cpu_ctx *cctx, bool awaited)
{
	u64 slices = awaited && current_policy()->gate == COSCHED_GATE_AUTO ? COSCHED_WINDOW_CREDIT : 1;
	u64 floor;

	if (!vtime_before(tctx->vtime, cctx->vtime_now))
		return;
	floor = cctx->vtime_now - slices * to_vtime(current_policy()->slice_ns, vtime_scale(tctx, cctx));
	if (vtime_before(tctx->vtime, floor))
		tctx->vtime = floor;
}

/* Puts @tctx on the fair clock of @cpu: a newcomer at the clock, a migrant at its old distance. */
static void place_on_cpu(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	struct cpu_ctx *old;

	if (tctx->cpu == cpu)
		return;
	old = tctx->cpu < 0 ? NULL : cpu_ctx_of(tctx->cpu);
	tctx->vtime = cctx->vtime_now + (old ? tctx->vtime - old->vtime_now : 0);
	bound_credit(tctx, cctx, false);
	tctx->slice_vtime = tctx->vtime;
	tctx->cpu = cpu;
}

/* Puts @tctx, which wakes and may have @awaited a message, on the fair clock of @cpu. */
static void place_woken(struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, bool awaited)
{
	place_on_cpu(tctx, cctx, cpu);
	bound_credit(tctx, cctx, awaited);
}

/* @tctx runs on @cpu: the clock goes to the least vtime of it and the queue, but never back. */
static void advance_fair_clock(const struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	struct task_struct *first = __COMPAT_scx_bpf_dsq_peek(cpu);
	u64 least = tctx->slice_vtime;

	if (first && vtime_before(first->scx.dsq_vtime, least))
		least = first->scx.dsq_vtime;
	if (vtime_before(cctx->vtime_now, least))
		cctx->vtime_now = least;
}

/* How far ahead of the clock, beyond a slice, a task may be on @cctx's CPU: what the others catch up with in MAX_WAIT_NS. */
static u64 max_debt(const struct cpu_ctx *cctx)
{
	return (u64)MAX_WAIT_NS / (cctx->nr_runnable ?: 1);
}

/*
 * A task may be ahead of the clock by what the fair order itself makes of a slice, and by as much more as the others
 * catch up with in MAX_WAIT_NS. The rest of a debt is forgiven: nobody waits without bound for having been favoured. And
 * a change of policy comes without a bill: whatever was granted under the old one is forgiven. Returns false if there was
 * nothing to forgive.
 */
static bool bound_debt(struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	u32 policy = READ_ONCE(policy_now);
	u64 ceiling = cctx->vtime_now;

	if (tctx->policy_seen == policy)
		ceiling += max_debt(cctx);
	tctx->policy_seen = policy;
	if (!vtime_before(ceiling, tctx->vtime) && !vtime_before(ceiling, tctx->slice_vtime))
		return false;
	ceiling += to_vtime(current_policy()->slice_ns, vtime_scale(tctx, cctx));
	if (vtime_before(ceiling, tctx->vtime))
		tctx->vtime = ceiling;
	if (vtime_before(ceiling, tctx->slice_vtime))
		tctx->slice_vtime = ceiling;
	return true;
}

/* Forgives those in @cpu's queue who wait for a debt that was made under another policy. O(tasks in the queue), once. */
static void forgive_debts(struct cpu_ctx *cctx, s32 cpu)
{
	u32 policy = READ_ONCE(policy_now);
	struct task_struct *p;

	if (cctx->policy_seen == policy)
		return;
	cctx->policy_seen = policy;
	bpf_for_each(scx_dsq, p, cpu, 0) {
		struct task_ctx *tctx = task_ctx_of(p);

		if (!tctx || !bound_debt(tctx, cctx))
			continue;
		update_sums(tctx);
		if (tctx->park)
			continue;
		scx_bpf_dsq_move_set_vtime(BPF_FOR_EACH_ITER, tctx->slice_vtime);
		scx_bpf_dsq_move_vtime(BPF_FOR_EACH_ITER, p, cpu, 0);
	}
}

/* @tctx has given up the CPU: its turn comes after that of the task at the head of the queue. */
static void fall_behind(struct task_ctx *tctx, u64 head_vtime)
{
	if (!vtime_before(head_vtime, tctx->vtime))
		tctx->vtime = head_vtime + 1;
	tctx->slice_used_ns = 0;
	tctx->slice_vtime = tctx->vtime;
}

/* Has @tctx been cut short, with enough left of its slice to be worth a switch? */
static bool has_rest(const struct task_ctx *tctx)
{
	return tctx->slice_used_ns && tctx->slice_used_ns + MIN_REST_NS <= tctx->slice_ns;
}

/* Starts a slice of @ns at the present vtime. Returns @ns. */
static u64 begin_slice(struct task_ctx *tctx, u64 ns)
{
	tctx->slice_ns = ns;
	tctx->slice_used_ns = 0;
	tctx->slice_vtime = tctx->vtime;
	return ns;
}

static u64 begin_whole_slice(struct task_ctx *tctx)
{
	return begin_slice(tctx, current_policy()->slice_ns);
}

/* The slice that @tctx runs for next in the fair order: the rest of the present one if it was cut short, else a new one. */
static u64 resume_slice(struct task_ctx *tctx)
{
	if (has_rest(tctx))
		return tctx->slice_ns - tctx->slice_used_ns;
	return begin_whole_slice(tctx);
}

/* Charges @p for what it has run since the last charge. Returns that, in ns. */
static u64 charge(struct task_struct *p, struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 total_ns = p->se.sum_exec_runtime;
	u64 ran_ns = total_ns - tctx->charged_ns;

	tctx->charged_ns = total_ns;
	tctx->vtime += to_vtime(ran_ns, cctx->curr_scale);
	tctx->slice_used_ns += ran_ns;
	update_sums(tctx);
	return ran_ns;
}

/* @tctx runs on @cctx's CPU from @now on, and is charged from here. */
static void note_position(struct cpu_ctx *cctx, const struct task_ctx *tctx, u64 now)
{
	cctx->curr_vtime = tctx->vtime;
	cctx->curr_since = now;
	cctx->curr_slice_since = now - tctx->slice_used_ns;
	cctx->curr_slice_ns = tctx->slice_ns;
	if (wire_on)	/* for programs that cannot read the scheduler's clock */
		cctx->slice_ends_at = bpf_ktime_get_ns() + tctx->slice_ns - tctx->slice_used_ns;
}

/* The position of the task that runs on @cctx's CPU on its fair clock, as of @now. */
static u64 running_vtime(const struct cpu_ctx *cctx, u64 now)
{
	u64 since = cctx->curr_since;
	u64 ran_ns = (s64)(now - since) > 0 ? now - since : 0;

	return cctx->curr_vtime + to_vtime(ran_ns, cctx->curr_scale);
}

/* Does the fair order have @tctx, which wakes, run instead of the running task? */
static bool preempts(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	return cctx->curr_scale && !cctx->curr_kthread &&
	       vtime_before(tctx->vtime + WAKE_MARGIN_NS, running_vtime(cctx, scx_bpf_now()));
}

#endif
