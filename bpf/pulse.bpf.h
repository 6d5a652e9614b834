/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pulse: a timer on each CPU, for what no event brings about.
 *
 *	periodic	each interval, 1 ms in the paper, a task in the queue is chosen and boosted (Zhang 2.4.4)
 *	spin-block,	a running task that polls in vain is found out, and after its spin time asked to leave the CPU
 *	spin-yield	(park.bpf.h; Zhang 2.4.1, 2.4.2)
 *	gang, beat	a turn ends (gang.bpf.h, beat.bpf.h)
 *	cpu.max		what a running task may have ends before the next tick (limits.bpf.h)
 *	all		it is time to look for a busier CPU (balance.bpf.h)
 *
 * It beats only while it has something to look at. That is a task in the queue, or now and then a task that waits on
 * another CPU. For the waits, messages also have to come to the running task. A boost that was granted for less than a
 * slice ends at the pulse too, where there is one, and not only at a tick.
 *
 * Tasks that poll are looked for at each tick too. If the interval is no shorter than a tick, they are looked for only
 * there, since a timer costs the task that it looks at. Under emulation, where timers are dear, one of 1 ms took 15% of
 * what the task got done.
 *
 * A task waits as long as no message has come for it, its sockets are empty and looks find it inside a receive. How
 * long it has waited is known to within an interval.
 *
 * A kernel with PREEMPT_RT gives BPF no timers. There the pulse beats at the tick that is nearest.
 */
#ifndef COSCHED_PULSE_BPF_H
#define COSCHED_PULSE_BPF_H

#include <scx/common.bpf.h>
#include "balance.bpf.h"
#include "carry.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "gang.bpf.h"
#include "hints.bpf.h"
#include "polls.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"
#include "../policies/boost_choice.h"
#include "../policies/fair.h"
#include "../policies/gang.h"
#include "../policies/gate.h"
#include "../policies/phase.h"
#include "../policies/policy.h"
#include "../policies/spin.h"
#include "../policies/wait.h"

TIMER_ON_EACH_CPU(pulses);

/* Does the policy want to know which task receives where, and which one polls? */
static bool looks_matter(void)
{
	const struct cosched_policy *policy = current_policy();

	return policy->wait != COSCHED_WAIT_BUSY || cosched_boosts(policy);
}

static bool is_watched(const struct task_ctx *tctx)
{
	return is_known_to_wait(tctx) && looks_matter();
}

/*
 * What the task that runs on @cctx's CPU may still have of cpu.max, in ns, if that ends before the next tick; else 0.
 */
static u64 rest_of_limit(const struct cpu_ctx *cctx)
{
	u64 rest_ns = cctx->curr_limited ? rest_of_slice(cctx, scx_bpf_now()) : 0;

	return rest_ns < tick_ns() ? rest_ns : 0;
}

/* Does the slice of @p, which runs on @cctx's CPU, end at the pulse and not at a tick? */
static bool ends_at_pulse(const struct task_struct *p, const struct cpu_ctx *cctx)
{
	return cctx->curr_limited && cctx->pulse_at && p->scx.slice;
}

/* In how many ns the pulse of @cctx's CPU, where @tctx runs, is to beat next if no turn ends before; 0: it need not. */
static u64 next_look(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	const struct cosched_policy *policy = current_policy();

	/* A slice that is over before the next tick. */
	if (cctx->curr_slice_ns < tick_ns())
		return rest_of_slice(cctx, scx_bpf_now()) ?: FAIR_LEAST_SLICE_NS;
	if (policy->arrival == COSCHED_ARRIVAL_PERIODIC)
		return policy->interval_ns;
	/* What a tick finds early enough needs no timer. */
	if (cosched_wait_parks(policy) && is_known_to_wait(tctx) && policy->interval_ns < tick_ns())
		return policy->interval_ns;
	return 0;
}

/* The sooner of two times from now; 0: never. */
static u64 sooner(u64 ns, u64 other_ns)
{
	return ns && (!other_ns || ns < other_ns) ? ns : other_ns;
}

/* When the pulse of @cpu, on which @tctx runs, is to beat next, in ns from now; 0: it need not. */
__noinline u64 next_pulse(const struct task_ctx *tctx __arg_nonnull, const struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	const struct cosched_policy *policy = current_policy();
	u64 next_ns = sooner(rest_of_limit(cctx), is_to_look(cctx, cpu, scx_bpf_now()) ? next_balance() : 0);

	if (!is_wanted(cctx, cpu) && (!cosched_boosts(policy) || !holds(cctx, cpu, QUEUE_PARKED)))
		return next_ns;
	if (policy->arrival == COSCHED_ARRIVAL_GANG)
		return sooner(next_ns, gang_rest_ns(policy, bpf_ktime_get_tai_ns()));
	return sooner(next_ns, sooner(next_look(tctx, cctx), is_beat() ? beat_rest_ns() : 0));
}

/* Sets the timer of @cctx's CPU, on which this runs, to run out in @next_ns. */
static void set_pulse(struct cpu_ctx *cctx, struct timer_on *pulse, u64 next_ns)
{
	if (!has_timers || !bpf_timer_start(&pulse->timer, next_ns, BPF_F_TIMER_CPU_PIN))
		cctx->pulse_at = scx_bpf_now() + next_ns;
}

/* May a pulse that was set for another task be too late for the next one: for its limit, or for its waits? */
static bool may_be_late(const struct cpu_ctx *cctx)
{
	return is_beat() || rest_of_limit(cctx);
}

/*
 * Sets the timer of @cpu, on which @tctx is about to run, unless it is set or need not be. If another CPU changes the
 * affinity or the cgroup of a running task, this runs on that CPU. The timer would beat there too, so the next tick
 * sets it.
 */
static void start_pulse(const struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	bool here = cpu == (s32)bpf_get_smp_processor_id();
	u64 next_ns = !here || (cctx->pulse_at && !may_be_late(cctx)) ? 0 : next_pulse(tctx, cctx, cpu);
	struct timer_on *pulse;
	u32 key = cpu;

	if (!next_ns || (cctx->pulse_at && (s64)(cctx->pulse_at - scx_bpf_now() - next_ns) <= 0))
		return;
	pulse = bpf_map_lookup_elem(&pulses, &key);
	if (pulse)
		set_pulse(cctx, pulse, next_ns);
}

/* What the choice of a task to boost is to know of @p. */
static void describe_candidate(struct cosched_candidate *candidate, const struct task_struct *p,
			       const struct task_ctx *tctx, u32 current_pid)
{
	bool has = has_message(tctx);

	candidate->distance = (u32)p->pid - current_pid;
	candidate->receives = tctx->receives;
	candidate->pending = has ? (tctx->pending ?: 1) : 0;
	candidate->arrival_ns = tctx->arrival_ns;
}

/* A choice while it is made. */
struct choice {
	struct cosched_candidate best, candidate;
	u32 current_pid;
	u32 looks;
	u32 some;		/* there is a best one */
	s32 chosen;		/* its pid, if it waits */
};

/*
 * Goes on with @choice in @queue. A global function that gets a pointer: otherwise the verifier would try all outcomes
 * of all comparisons.
 */
__noinline int choose_in(u64 queue, struct choice *choice __arg_nonnull)
{
	u32 rule = current_policy()->choice;
	struct task_struct *q;

	bpf_rcu_read_lock();	/* as in limits_end() */
	bpf_for_each(scx_dsq, q, queue, 0) {
		struct task_ctx *tctx = task_ctx_of(q);

		if (choice->looks++ >= MAX_CHOICES)
			break;
		if (!tctx)
			continue;
		describe_candidate(&choice->candidate, q, tctx, choice->current_pid);
		if (!cosched_choice_rank(rule, &choice->candidate) ||
		    (choice->some && !cosched_choice_prefers(rule, &choice->candidate, &choice->best)))
			continue;
		choice->best = choice->candidate;
		choice->chosen = q->pid;
		choice->some = 1;
	}
	bpf_rcu_read_unlock();
	return 0;
}

/*
 * Which task the policy would boost of the tasks that wait on @cpu and, if @with_current, the running @p. Returns the
 * pid, or 0 for no task that waits. The paper's policy knows all tasks of a node. Of a crowd this function knows the
 * tasks due first. It is apart, so that what it needs of the stack is free again when the gate is asked.
 */
static __noinline s32 choose(struct task_struct *p, struct task_ctx *tctx, s32 cpu, bool with_current)
{
	struct choice choice = { .current_pid = p->pid, .some = with_current };
	u32 queue;

	if (with_current)
		describe_candidate(&choice.best, p, tctx, p->pid);
	bpf_for(queue, 0, NR_ORDERED)
		choose_in(queue_id(cpu, queue), &choice);
	return choice.chosen;
}

/* Boosts the task that choose() names, if the gate grants that like any other boost. */
static void boost_one(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, bool with_current)
{
	s32 pid = choose(p, tctx, cpu, with_current);
	struct task_struct *q = pid ? bpf_task_from_pid(pid) : NULL;
	struct task_ctx *chosen;
	u32 phase;

	if (!q)
		return;
	chosen = task_ctx_of(q);
	phase = chosen ? READ_ONCE(chosen->phase) : PHASE_BLOCKED;
	if (chosen && phase_hears(phase) && chosen->cpu == cpu && ask(q, chosen, cctx, scx_bpf_now()))
		mark(q, chosen, phase, PHASE_GRANTED);
	bpf_task_release(q);
}

/* The running task @p is to leave @cpu now. */
static void end_slice(struct task_struct *p, struct cpu_ctx *cctx, s32 cpu)
{
	scx_bpf_task_set_slice(p, 0);
	preempt_for(cctx, cpu);
}

/* Looks whether @p, which runs on @cpu, polls in vain for longer than its spin time. */
static void watch_wait(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	const struct cosched_policy *policy = current_policy();
	enum look look;

	/* A task that spins in a hook sleeps by itself (waits.bpf.h). */
	if (cctx->spin != SPIN_NONE || !is_wanted(cctx, cpu))
		return;
	look = look_at(p, tctx, cctx);
	if (!is_watched(tctx))
		return;
	if (look == LOOK_ELSEWHERE || may_have_read(tctx, cctx) || has_message(tctx)) {
		begin_watch(tctx, cctx);
		return;
	}
	if (!polls_in_vain(tctx, cctx) || passed_ns(tctx->wait_since) < cosched_spin_ns(policy, &tctx->wait_history))
		return;
	tctx->leaves = 1;
	if (policy->wait == COSCHED_WAIT_SPIN_YIELD)
		boost_one(p, tctx, cctx, cpu, false);
	end_slice(p, cctx, cpu);
}

/*
 * Asks the gate for the first tasks in @queue that say that a message has come. No event has told of such a message. A
 * global function: it is verified once.
 */
__noinline int hear_hints_in(u64 queue, struct cpu_ctx *cctx __arg_nonnull)
{
	struct task_struct *p;
	u32 looks = forget_ways(0);

	bpf_for_each(scx_dsq, p, queue, 0) {
		struct task_ctx *tctx = task_ctx_of(p);
		u32 phase;

		if (looks++ >= MAX_LOOKS)
			break;
		if (!tctx || !tctx->hint_page)
			continue;
		phase = READ_ONCE(tctx->phase);
		if ((phase != PHASE_WAITS && phase != PHASE_PARKED) || !hints_message(tctx))
			continue;
		carry_nothing(tctx);
		hear(p, tctx, cctx, phase);
	}
	return 0;
}

/* To be called at each tick. Does nothing at all while no task gives hints. */
static void hear_hints(struct cpu_ctx *cctx, s32 cpu)
{
	if (!READ_ONCE(hinted_threads))
		return;
	if (may_hold(cctx, QUEUE_ASKED))
		hear_hints_in(queue_id(cpu, QUEUE_ASKED), cctx);
	if (may_hold(cctx, QUEUE_PARKED))
		hear_hints_in(queue_id(cpu, QUEUE_PARKED), cctx);
}

/* What is due on @cpu, on which @p runs. */
static void beat(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	const struct cosched_policy *policy = current_policy();
	u64 now = scx_bpf_now();

	if (cctx->curr_limited && !rest_of_slice(cctx, now)) {
		end_slice(p, cctx, cpu);
		return;
	}
	if (policy->arrival == COSCHED_ARRIVAL_GANG) {
		note_row(bpf_ktime_get_tai_ns() % gang_quantum_ns(policy));
		end_slice(p, cctx, cpu);
		return;
	}
	if (is_beat() && cctx->turn != beat_turn()) {
		if (has_moment(cctx))	/* of a task without a turn: the next tick ends it */
			return;
		note_row(beat_time() % gang_quantum_ns(policy));
		tctx->slice_ns = 0;	/* it is over: nothing of it is left to be resumed */
		end_slice(p, cctx, cpu);
		return;
	}
	if (cctx->curr_slice_ns < policy->slice_ns && !rest_of_slice(cctx, now))
		end_slice(p, cctx, cpu);
	if (cosched_wait_parks(policy))
		watch_wait(p, tctx, cctx, cpu);
	else if (policy->arrival == COSCHED_ARRIVAL_PERIODIC)
		look_at(p, tctx, cctx);		/* the last look may be a slice old, and says whether @p waits */
	if (policy->arrival == COSCHED_ARRIVAL_PERIODIC)
		boost_one(p, tctx, cctx, cpu, true);
	if (is_to_look(cctx, cpu, now)) {
		look_for_busier(cctx, now);
		end_slice(p, cctx, cpu);
	}
}

/* The pulse beats on @cpu, on which @p runs. Returns in how many ns it is to beat again; 0: it need not. */
static u64 beat_once(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	cctx->pulse_at = 0;
	/* A kernel thread, or another class: the next task that runs here starts it again. */
	if (!tctx || cctx->curr_id != task_id(p) || is_kthread(p))
		return 0;
	WRITE_ONCE(cctx->beats, 1);
	beat(p, tctx, cctx, cpu);
	WRITE_ONCE(cctx->beats, 0);
	return next_pulse(tctx, cctx, cpu);
}

static int pulse_beats(void *map, u32 *key, struct timer_on *pulse)
{
	struct task_struct *p = bpf_get_current_task_btf();
	s32 cpu = bpf_get_smp_processor_id();
	struct cpu_ctx *cctx = cpu_ctx_of(cpu);
	u64 next_ns;

	if (!cctx || (u32)cpu != *key)
		return 0;
	next_ns = beat_once(p, task_ctx_of(p), cctx, cpu);
	if (next_ns)
		set_pulse(cctx, pulse, next_ns);
	return 0;
}

/* To be called at each tick. Without timers the pulse beats now if no later tick is nearer to when it is due. */
static void beat_at_tick(struct task_struct *p, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu)
{
	u64 now = scx_bpf_now(), next_ns;

	if (has_timers || !cctx->pulse_at || (s64)(cctx->pulse_at - now) >= (s64)(tick_ns() / 2))
		return;
	next_ns = beat_once(p, tctx, cctx, cpu);
	if (next_ns)
		cctx->pulse_at = now + next_ns;
}

#endif
