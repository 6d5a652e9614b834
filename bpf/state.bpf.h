/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * All state of the scheduler: what it knows of a CPU (cpu.bpf.h), of a task and of an endpoint.
 *
 * Most of a CPU's context is written under that CPU's runqueue lock. Without it are written:
 * - by CPUs that take a task from another one: @nr_runnable and @newcomers, atomically;
 * - by hooks: @spin and the box, atomically; @messages, @arrived and @hold, where one of two changes may be lost;
 *   @noted; @preempt_at_tick, only to 1; and @curr_has_turn, only to 0;
 * - by ops.select_cpu(): @shed_at;
 * - by timers: @pulse_at, @beats, @looks and @balance_at of their own CPU, and @limited_until.
 * Other CPUs read all of it without a lock: a stale value costs a wrong decision about one boost and nothing else.
 *
 * A task's place is written under the lock of its order (groups.bpf.h). What else it has for the fair order is written
 * under the lock of the runqueue that it is on. Of its demand, @phase (policies/phase.h), @endpoints and
 * @more_endpoints are written atomically. What else hooks write are plain words: @woken, @pending, @arrival_ns, what
 * the gate has granted and what came with a message. Hooks write these while the task waits, and its CPU clears them
 * when it runs.
 */
#ifndef COSCHED_STATE_BPF_H
#define COSCHED_STATE_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "units.h"
#include "../policies/beat.h"
#include "../policies/fair.h"
#include "../policies/gang.h"
#include "../policies/policy.h"
#include "../policies/window.h"

/* Set by the loader before the scheduler starts. */
const volatile u32 nr_cpu_ids = 1;
const volatile u32 job_by = COSCHED_JOB_BY_CGROUP;
const volatile u32 has_timers = 1;	/* the kernel lets BPF set them: not with PREEMPT_RT */
const volatile u32 wire_on;	/* epochs cross the network (wire_notes.bpf.h) */
const volatile u32 node_number;	/* of CPU 0 as a node there */
const volatile u32 llc_of[COSCHED_MAX_CPUS];	/* which last-level cache a CPU uses */
const volatile u32 numa_of[COSCHED_MAX_CPUS];	/* which memory is its own */
const volatile u32 receive_calls[COSCHED_MAX_CALLS];	/* system calls that read a file, ~0 at the end (polls.bpf.h) */
const volatile u32 poll_calls[COSCHED_MAX_CALLS];	/* calls that look at several files, or wait otherwise */
const volatile u32 pollfd_calls[COSCHED_MAX_CALLS];	/* those of them like poll */
const volatile u32 fd_set_calls[COSCHED_MAX_CALLS];	/* those of them like select */
const volatile u32 futex_calls[COSCHED_MAX_CALLS];	/* calls that may wake a task by a futex (wakes.bpf.h) */
const volatile u32 write_calls[COSCHED_MAX_CALLS];	/* calls that write to the file in their first argument */
const volatile u32 send_calls[COSCHED_MAX_CALLS];	/* calls that send to the socket in their first argument */
const volatile u32 arrivals_wanted;	/* 1 << enum cosched_endpoint: which wake-ups within a job are messages */

/*
 * The policy, twice. The loader fills the slot that is not in use and then counts policy_now up, whose lowest bit says
 * which slot is in use. So a reader sees the old policy or the new policy, and never a mixture.
 */
struct cosched_policy policies[2];
u32 policy_now;
u32 limits_version;		/* of all cpu.max together (limits.bpf.h); 0: there never was one */

u64 nought;	/* always 0, which the verifier does not know */

/*
 * Returns @value, of which the verifier forgets what it knew. The verifier then walks through what follows once, and
 * not for each value or each way there. Loops over queues count from forget_ways(0).
 */
static u64 forget_ways(u64 value)
{
	return value ^ READ_ONCE(nought);
}

static const struct cosched_policy *current_policy(void)
{
	return &policies[READ_ONCE(policy_now) & 1];
}

static bool is_beat(void)
{
	return current_policy()->arrival == COSCHED_ARRIVAL_BEAT;
}

/*
 * By how much the clock of turns is ahead of TAI, because a peer's clock is. It is the same on all CPUs (beat.bpf.h).
 */
u64 beat_ahead_ns;

/* The time that turns by beat follow from. */
static u64 beat_time(void)
{
	return bpf_ktime_get_tai_ns() + READ_ONCE(beat_ahead_ns);
}

static u64 beat_turn(void)
{
	return beat_time() / gang_quantum_ns(current_policy());
}

/* What is left of this turn, in ns. */
static u64 beat_rest_ns(void)
{
	return gang_rest_ns(current_policy(), beat_time());
}

/* The job that goes first on @cctx's CPU under beat; 0: none does. */
static u64 first_job(const struct cpu_ctx *cctx)
{
	u64 winner = READ_ONCE(cctx->turn_job);

	return READ_ONCE(cctx->hold.until_ns) ? beat_first(&cctx->hold, winner, scx_bpf_now()) : winner;
}

/*
 * Is the arrival of a message on @cctx's CPU a demand by itself? Under beat it is one while no job goes first. Under
 * the rules without demands the pulse or the order sees to the receiver.
 */
static bool arrivals_demand(const struct cpu_ctx *cctx)
{
	u32 arrival = current_policy()->arrival;

	return arrival == COSCHED_ARRIVAL_DEMAND || (arrival == COSCHED_ARRIVAL_BEAT && !first_job(cctx));
}

enum spin {
	SPIN_NONE,
	SPIN_ON,
	SPIN_STOP,		/* it was asked to leave the CPU: it is to sleep instead */
};

/*
 * Asks the running task of @cctx's CPU to leave it, if it spins. Otherwise returns false, and the task is to be
 * preempted: see waits.bpf.h.
 */
static bool stop_spin(struct cpu_ctx *cctx)
{
	return READ_ONCE(cctx->spin) == SPIN_ON &&
	       __sync_val_compare_and_swap(&cctx->spin, SPIN_ON, SPIN_STOP) == SPIN_ON;
}

/*
 * On memory of its own: an atomic operation on shared memory would take the line from the CPU that uses it. It is an
 * exchange, since clang leaves the fetch out of a __sync_fetch_and_add() whose result is not used, and arm64 orders
 * nothing then.
 */
static void full_barrier(void)
{
	u32 own = 0;

	__sync_lock_test_and_set(&own, 1);
}

#define TASK_ENDPOINTS	32
#define FIRST_ENDPOINTS	4	/* the others are for messages that come while there is one in each of these */

struct task_ctx {
	/* The fair order. */
	struct cosched_place place;	/* in the order of its group on a CPU */
	u32 weight;		/* by its nice level, as of when it was last in an order; 0: it was in none yet */
	u32 group;		/* of the cgroup that it is in */
	u32 order_group;	/* the group and CPU whose order it is in, or was last */
	s32 order_cpu;		/* -1: none yet */
	u64 order_cgroup;	/* whose that group was then */
	u64 effective;		/* its weight against all on its CPU, as of when it was last measured */
	u64 key;		/* its place in the queue: where it stood when the present slice began */
	u64 slice_ns;		/* the length of the present slice */
	u64 slice_used_ns;	/* of the present slice */
	u64 charged_ns;		/* sum_exec_runtime up to which it is charged */
	u64 queued_at;		/* when it was last put into a queue */
	u64 look_at;		/* its place among tasks parked or set aside: when its CPU has looked at it, or will */
	u32 queue;		/* enum queue: that it waits in; NR_QUEUES: it has run since */
	u64 shed_at;		/* when it woke and looked for a less busy CPU last */
	u64 shed_ran_ns;	/* sum_exec_runtime then */
	u64 pulled_at;		/* when a busy CPU took it from a busier one last */
	u32 policy_seen;	/* policy_now when its debts were last forgiven */
	u64 beat_period;	/* in which its share was last noted (beat.bpf.h) */
	s64 beat_ahead_ns;	/* of its share, see beat_charge() */
	u64 share_seen;		/* the share clock of order_cpu up to which the fair share is counted */
	s32 cpu;		/* where it runs, or whose queue it waits in; -1: none yet */
	u32 held;		/* set aside: the furthest group upwards that is kept from running (aside.bpf.h) */
	u32 newcomer;		/* has not run yet since it came to order_cpu */
	u32 woken_sync;		/* the task that woke it, on the CPU where it waits, promised to sleep */

	/* Not yet posted to the job's account (jobs.bpf.h). */
	u64 unposted_cpu_ns;
	u64 unposted_fair_ns;
	u64 unposted_boosts;

	/* Demand. */
	u64 endpoints[TASK_ENDPOINTS];	/* addresses of endpoints where messages for it arrived lately */
	u32 more_endpoints;	/* messages that went to the further places; 0: none is there, or it has slept */
	u32 phase;		/* enum cosched_phase */
	u32 leaves;		/* runs, has waited for long enough, and is asked to leave the CPU */
	u32 owes;		/* was stopped between reading a message and having answered it */
	u32 woken;		/* a task of its job has woken it, and it has not run since (wakes.bpf.h) */
	u32 slept;		/* it has slept, and has not run since */
	u32 yields;		/* has called sched_yield() */
	u64 yields_to;		/* the key of the task that was next then */
	u32 awaits;		/* asleep, or about to be, until a message comes */
	u64 arrival_ns;		/* when the first message came that found it not running; 0: none */
	u64 last_boost_ns;
	u64 granted_ns;		/* how long its boost is to run, or the rest of it */
	struct cosched_window window;	/* for the gate "auto" */

	/* What came with the last message from its sender. */
	u64 message_epoch;
	u64 message_slice_ns;	/* what was left of the sender's slice; 0: not known */
	u32 message_wired;	/* it came from another machine, which sent an epoch */

	/* What peers have told of its job's turns since it was told (beat.bpf.h). */
	struct cosched_beat_news news;
	u64 news_ahead_ns;	/* by how much the latest of their clocks was ahead of TAI */
	u32 news_job;		/* 1 + cosched_wire_job() of it; 0: it has not run since there are turns */
	u32 astray;		/* a peer sends messages without news, so the job draws no turns (policies/beat.h) */
	u32 job_astray;		/* its job draws none for that reason, as of when it ran last */

	/* Hints (hints.bpf.h). */
	u64 hint_page;		/* of its process; 0: it gives none */
	u64 hint_exec;		/* self_exec_id when it got that: each program gives hints of its own */
	u32 hint_slot;

	/* Waiting (waits.bpf.h, park.bpf.h). */
	struct cosched_wait_history wait_history;
	u32 receives;		/* was inside a receive when it was last looked at */
	u32 pending;		/* messages that have come since it ran */
	u32 polling;		/* how often looks found it inside a receive, in 1 / MAX_POLLING (polls.bpf.h) */
	u32 wait_messages;	/* cctx->messages at wait_since */
	u32 wait_progress;	/* progress_of() at wait_since */
	u32 had_message;	/* there was one for it at wait_since, which it may have read since */
	u64 wait_since;		/* when it last made progress, as far as is known */
	u64 read_inside_at;	/* when a look found it inside a receive that may have read; 0: the last did not */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_ctx);
} task_ctxs SEC(".maps");

/* Do messages come to @tctx, or does it say when it waits? */
static bool is_known_to_wait(const struct task_ctx *tctx)
{
	return tctx->endpoints[0] || tctx->hint_page;
}

static struct task_ctx *task_ctx_of(struct task_struct *p)
{
	return bpf_task_storage_get(&task_ctxs, p, NULL, 0);
}

/* Weak, so that the scheduler also runs where the kernel's configuration cannot be read. */
extern unsigned CONFIG_HZ __kconfig __weak;

static u64 tick_ns(void)
{
	return NSEC_PER_SEC / (CONFIG_HZ ?: 250);
}

static bool is_kthread(const struct task_struct *p)
{
	return p->flags & PF_KTHREAD;
}

/* Takes @tctx from phase @from to @to. False if it has left @from already; otherwise this is a full barrier. */
static bool change_phase(struct task_ctx *tctx, u32 from, u32 to)
{
	return __sync_val_compare_and_swap(&tctx->phase, from, to) == from;
}

/* Takes @tctx to @phase, whichever it was in. A full barrier. */
static void set_phase(struct task_ctx *tctx, u32 phase)
{
	__sync_lock_test_and_set(&tctx->phase, phase);
}

/* A timer on each CPU. */
struct timer_on {
	struct bpf_timer timer;
};

#define TIMER_ON_EACH_CPU(name)				\
struct {						\
	__uint(type, BPF_MAP_TYPE_ARRAY);		\
	__uint(max_entries, COSCHED_MAX_CPUS);		\
	__type(key, u32);				\
	__type(value, struct timer_on);		\
} name SEC(".maps")

/* Sets @callback to be called when the timer of @cpu in @timers runs out. Inline: the verifier wants to know both. */
static __always_inline s32 init_timer(void *timers, u32 cpu, int (*callback)(void *, u32 *, struct timer_on *))
{
	struct timer_on *timer = bpf_map_lookup_elem(timers, &cpu);

	if (!has_timers)
		return 0;
	if (!timer)
		return -ENOENT;
	return bpf_timer_init(&timer->timer, timers, CLOCK_MONOTONIC) ?:
	       bpf_timer_set_callback(&timer->timer, callback);
}

/*
 * A pid says which task to look up, and the start time whether it is still the task that was meant. The id is not kept
 * in the context: a task has no start time yet when ops.init_task() sees it.
 */
static u64 task_id(const struct task_struct *p)
{
	return (p->start_boottime >> 20) << 32 | (u32)p->pid;	/* to a millisecond or so */
}

static u32 task_id_pid(u64 id)
{
	return (u32)id;
}

/*
 * Where messages for a task arrive. That of a socket is in the socket's own storage, and gone when the socket is freed.
 * For the others see completions.bpf.h.
 */
struct endpoint {
	u64 receiver;		/* task_id of the last task that received here, or will as far as is known */
	u32 cpu;		/* where that task was when a message last came */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct endpoint);
} endpoints SEC(".maps");

#endif
