/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Beat: which job each turn on a CPU is for (policies/beat.h).
 *
 * A CPU is a node of the rule. It draws when a turn begins, among the jobs whose tasks ran there of late and hear from
 * others by messages. The job that wins goes first until the turn ends, as a row of a gang does (gang.bpf.h). In a turn
 * that no job wins the fair order holds, and messages are demands. A job that is astray may take the CPU at a message,
 * and then goes first for a moment, whoever has won.
 *
 * A CPU knows a few jobs. Of each it notes what share of the CPU its tasks have. Shares are added up over a period, in
 * which each task counts once. It counts for its share, but for no more than twice what it used of late. So a job that
 * sleeps in between counts too, and a job that hardly runs takes no turn from others.
 *
 * What all CPUs of this machine have to agree on, theta and size, stands in a table by job. A CPU looks there once a
 * turn for each of its jobs, and nowhere else. A job that finds no place there draws nothing.
 *
 * With --peer messages carry theta, size and the clock to other machines (wire.bpf.c). A task tells its job what they
 * have told it, when it begins to run and when it goes on in another turn.
 */
#ifndef COSCHED_BEAT_BPF_H
#define COSCHED_BEAT_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "fair.bpf.h"
#include "groups.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "state.bpf.h"
#include "trace.bpf.h"
#include "../policies/balance.h"
#include "../policies/beat.h"
#include "../policies/fair.h"
#include "../policies/policy.h"
#include "../policies/wire.h"

#define BEAT_JOBS	8		/* on a CPU; tasks of other jobs count as tasks that do not communicate */
#define BEAT_TABLE	4096		/* a power of two */
#define BEAT_PROBES	4
#define BEAT_STALE	4		/* periods after which a place in the table is given away */
#define BEAT_AWAY_NS	FAIR_ROUND_NS	/* a job none of whose tasks has run for so long is not here */

/*
 * What the loader makes of the names of jobs: under gang their rows, under beat hashes that all nodes have alike. A job
 * that the loader has not seen yet is known by its number.
 */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, COSCHED_MAX_JOBS);
	__type(key, u64);
	__type(value, u64);
} turns_of_jobs SEC(".maps");

static u64 beat_name_of(struct task_struct *p)
{
	u64 job = job_of(p), *name = bpf_map_lookup_elem(&turns_of_jobs, &job);

	return name ? *name : job;
}

/* A job on one CPU. Only that CPU writes it. It starts as zeroes. */
struct beat_slot {
	u64 id;			/* its number here (jobs.bpf.h) */
	u64 seen_at;		/* when one of its tasks was last seen to run */
	u64 period;		/* of @share */
	u64 drawn;		/* the turn that it has drawn for */
	u32 share;		/* of the CPU, in 1 / 2^COSCHED_SHARE_SHIFT: of its tasks that ran in this period */
	u32 last_share;		/* the same of the period before */
	struct cosched_beat_job state;	/* of the job, as of that turn; without a name there is no job */
};

struct beat_cpu {
	struct beat_slot slots[BEAT_JOBS];
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_CPUS);
	__type(key, u32);
	__type(value, struct beat_cpu);
} beat_cpus SEC(".maps");

/* A job on all CPUs. */
struct beat_job {
	struct bpf_spin_lock lock;
	u64 verdict;		/* of the CPU that drew last: 2 * the turn, and 1 if the job has won it */
	struct cosched_beat_job state;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BEAT_TABLE);
	__type(key, u32);
	__type(value, struct beat_job);
} beat_jobs SEC(".maps");

/* The clock of turns. Two CPUs may hear of a later one at the same time. */
struct beat_clock {
	struct bpf_spin_lock lock;
	struct cosched_beat_clock clock;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct beat_clock);
} beat_clocks SEC(".maps");

static struct beat_slot *beat_slot_of(s32 cpu, u32 index)
{
	u32 key = cpu;
	struct beat_cpu *all = bpf_map_lookup_elem(&beat_cpus, &key);

	return all ? MEMBER_VPTR(all->slots, [index]) : NULL;
}

/* The index of the slot of @job on @cpu: its own slot, or else the slot that was unused for longest. */
__noinline int find_slot(s32 cpu, u64 job)
{
	u32 i, best = forget_ways(0);
	u64 oldest = ~0ULL;

	bpf_for(i, 0, BEAT_JOBS) {
		struct beat_slot *slot = beat_slot_of(cpu, i);

		if (!slot)
			break;
		if (slot->state.name == job)
			return i;
		if (slot->seen_at >= oldest)
			continue;
		oldest = slot->seen_at;
		best = i;
	}
	return best;
}

/* Adds the @share of a task to @slot, in which the task has not been counted yet in @period. */
static void add_share(struct beat_slot *slot, u64 period, u32 share)
{
	if (slot->period != period) {
		slot->last_share = slot->period + 1 == period ? slot->share : 0;
		slot->share = 0;
		slot->period = period;
	}
	slot->share += share;
}

static u32 share_of(const struct beat_slot *slot)
{
	return slot->share > slot->last_share ? slot->share : slot->last_share;
}

/* Is @slot without a job, or of a job that is not here any more? */
static bool is_vacant(const struct beat_slot *slot, u64 now)
{
	return !slot->state.name || (s64)(now - slot->seen_at) >= (s64)BEAT_AWAY_NS;
}

/* The place of the job called @name in the table, or a place that it may have; NULL: there is none. */
static struct beat_job *beat_job_of(u64 name, u64 period)
{
	struct beat_job *unused = NULL;
	u64 hash = beat_mix(name);
	u32 i;

	bpf_for(i, 0, BEAT_PROBES) {
		u32 key = (hash + i) & (BEAT_TABLE - 1);
		struct beat_job *job = bpf_map_lookup_elem(&beat_jobs, &key);

		if (!job)
			continue;
		if (job->state.name == name)
			return job;
		if (!unused && (!job->state.name || job->state.period + BEAT_STALE < period))
			unused = job;
	}
	return unused;
}

static struct beat_clock *beat_clock(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&beat_clocks, &zero);
}

/* The clock of a peer of the job @id was @ahead_ns ahead of TAI here. */
static void follow_clock(u64 id, u64 ahead_ns)
{
	u64 tai_ns = bpf_ktime_get_tai_ns(), by_ns, after_ns;
	struct beat_clock *clock = beat_clock();

	if (!clock || ahead_ns <= READ_ONCE(beat_ahead_ns))
		return;
	bpf_spin_lock(&clock->lock);
	by_ns = beat_clock_hear(&clock->clock, current_policy(), tai_ns, tai_ns + ahead_ns);
	after_ns = clock->clock.ahead_ns;
	WRITE_ONCE(beat_ahead_ns, after_ns);
	bpf_spin_unlock(&clock->lock);
	if (!by_ns)
		return;
	count(COSCHED_COUNTER_clock_steps);
	if (is_traced(COSCHED_EVENT_CLOCK))
		trace_job(id, COSCHED_EVENT_CLOCK, by_ns, 0, after_ns);
}

/* @turn begins: the clock goes back a little, on the first CPU to notice. */
static void ease_clock(u64 turn)
{
	u64 tai_ns = bpf_ktime_get_tai_ns();
	struct beat_clock *clock = beat_clock();

	if (!clock || READ_ONCE(clock->clock.turn) == turn)
		return;
	bpf_spin_lock(&clock->lock);
	beat_clock_turn(&clock->clock, current_policy(), tai_ns);
	WRITE_ONCE(beat_ahead_ns, clock->clock.ahead_ns);
	bpf_spin_unlock(&clock->lock);
}

/* Tells the job of @slot what @tctx has been told of it, and this machine's clock what the clocks of peers showed. */
static void hear_news(struct task_ctx *tctx, struct beat_slot *slot, u64 period)
{
	struct beat_job *job = tctx->news.sizes || tctx->astray ? beat_job_of(slot->state.name, period) : NULL;
	struct cosched_beat_news news = tctx->news;
	bool astray = tctx->astray;

	if (job) {
		bpf_spin_lock(&job->lock);
		if (job->state.name == slot->state.name) {
			if (news.sizes)
				beat_hear(&job->state, current_policy(), &news);
			if (astray)
				beat_hear_nothing(&job->state);
			slot->state = job->state;
		}
		bpf_spin_unlock(&job->lock);
	}
	follow_clock(slot->id, tctx->news_ahead_ns);
	tctx->news.sizes = 0;
	tctx->astray = 0;
	tctx->news_ahead_ns = 0;
}

/* Sets what messages of the running task tell others from now on. @slot is its job's. */
static void tell_news(struct task_ctx *tctx, struct cpu_ctx *cctx, const struct beat_slot *slot)
{
	struct cosched_beat_news news;

	beat_tell(&news, &slot->state, 0);
	cctx->curr_job = cosched_wire_job(slot->state.name);
	tctx->news_job = cctx->curr_job + 1;
	cctx->clock_ahead_ns = READ_ONCE(beat_ahead_ns);
	cctx->curr_theta = news.theta;
	cctx->curr_sizes = news.sizes;
}

/* @p, to which messages come, runs on @cctx's CPU. A global function: it is verified once. */
__noinline int note_talker(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
			   struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	u64 job = beat_name_of(p), now = scx_bpf_now(), period = beat_period(current_policy(), beat_time());
	u32 index = find_slot(cpu, job), due;
	struct beat_slot *slot = beat_slot_of(cpu, index);

	if (!slot || (slot->state.name != job && !is_vacant(slot, now)))
		return 0;
	if (slot->state.name != job) {
		*slot = (struct beat_slot){};
		beat_job_begin(&slot->state, job, node_number + cpu, period);
	}
	slot->id = job_of(p);
	slot->seen_at = now;
	if (tctx->beat_period != period) {
		tctx->beat_period = period;
		due = fair_share(1ULL << COSCHED_SHARE_SHIFT, tctx->effective, root_weight(cpu));
		add_share(slot, period, beat_weight(&tctx->window, due, COSCHED_SHARE_SHIFT));
	}
	cctx->curr_slot = index + 1;
	if (wire_on) {
		hear_news(tctx, slot, period);
		tell_news(tctx, cctx, slot);
	}
	tctx->job_astray = slot->state.astray;
	return 0;
}

/* The slot of the running task's job on @cctx's CPU; NULL: the CPU does not know that job. */
static struct beat_slot *running_slot(const struct cpu_ctx *cctx, s32 cpu)
{
	return cctx->curr_slot ? beat_slot_of(cpu, cctx->curr_slot - 1) : NULL;
}

/* How far ahead of the fair order on @cpu a task is that stands at @key. */
static s64 lead_at(const struct cpu_ctx *cctx, s32 cpu, u64 key)
{
	return fair_lead_ns(key - root_clock(cpu), root_weight(cpu), cctx->nr_runnable);
}

/*
 * A message has come for @p, whose job is astray. Does that job take @cctx's CPU from the running task, which is of
 * another job? A global function: see note_talker().
 */
__noinline bool follow(struct task_struct *p __arg_trusted, struct task_ctx *tctx __arg_nonnull,
		       struct cpu_ctx *cctx __arg_nonnull, s32 cpu)
{
	struct cosched_beat_job job = { .name = beat_name_of(p), .astray = 1 };
	struct beat_slot *running = running_slot(cctx, cpu);
	u64 now = scx_bpf_now();

	if (tctx->order_cpu != cpu || !runs_user(cctx) || (running && running->state.name == job.name) ||
	    !beat_may_lead(current_policy(), surplus_of(tctx, now)))
		return false;
	if (!beat_follows(&cctx->hold, current_policy(), &job, lead_at(cctx, cpu, tctx->key),
			  lead_at(cctx, cpu, running_key(cctx, now)), now))
		return false;
	WRITE_ONCE(cctx->curr_has_turn, 0);
	count(COSCHED_COUNTER_holds);
	return true;
}

/*
 * The index of the slot whose job draws next on @cpu in @turn; BEAT_JOBS: all have. A global function: see
 * note_talker().
 */
__noinline int next_to_draw(s32 cpu, u64 turn, u64 now)
{
	u32 i, best = forget_ways(0) + BEAT_JOBS;

	bpf_for(i, 0, BEAT_JOBS) {
		struct beat_slot *slot = beat_slot_of(cpu, i), *before = beat_slot_of(cpu, best);

		if (!slot || slot->drawn == turn || is_vacant(slot, now))
			continue;
		if (!before || beat_is_before(&slot->state, &before->state))
			best = i;
	}
	return best;
}

/*
 * Brings the state of the job of @slot to @turn. Tells the job what this CPU knows: that it is a node of the job, and
 * @here. Returns NULL if the job draws nothing.
 */
static struct beat_job *renew_job(struct beat_slot *slot, u32 here, s32 cpu, u64 turn)
{
	u64 period = turn / BEAT_PERIOD_TURNS;
	struct beat_job *job = beat_job_of(slot->state.name, period);
	struct cosched_beat_job fresh = {};

	if (!job)
		return NULL;
	/*
	 * It begins as if before the last period, so that @here counts at once. Else a new job would win all turns
	 * until the next period.
	 */
	beat_job_begin(&fresh, slot->state.name, node_number + cpu, period - 2);
	bpf_spin_lock(&job->lock);
	if (job->state.name != fresh.name)
		job->state = fresh;
	beat_renew(&job->state, here, turn);
	job->state.heard_sizes = beat_sketch_merge(job->state.heard_sizes, fresh.heard_sizes);
	slot->state = job->state;
	bpf_spin_unlock(&job->lock);
	return job;
}

/*
 * Has the job, which is @id here, won or lost @turn as on the CPU that drew before? That is counted if it has won on
 * either of the two. A win here and a difference are traced.
 */
static void compare_verdicts(struct beat_job *job, u64 id, u64 turn, bool won)
{
	u64 other = __sync_lock_test_and_set(&job->verdict, turn << 1 | won);
	enum cosched_verdict verdict = COSCHED_VERDICT_FIRST;

	if (other >> 1 == turn && (won || other & 1)) {
		verdict = won && other & 1 ? COSCHED_VERDICT_ALIKE : COSCHED_VERDICT_UNLIKE;
		count(verdict == COSCHED_VERDICT_ALIKE ? COSCHED_COUNTER_turns_alike : COSCHED_COUNTER_turns_unlike);
	}
	if (is_traced(COSCHED_EVENT_TURN) && (won || verdict == COSCHED_VERDICT_UNLIKE))
		trace_job(id, COSCHED_EVENT_TURN, verdict, won ? COSCHED_EVENT_WON : 0, turn);
}

/*
 * The job of @slot draws for @turn on @cpu, where @rest of the CPU is left to all that come after it. Returns whether
 * it wins. A global function: see note_talker().
 */
__noinline bool draw_for(struct beat_slot *slot __arg_nonnull, struct cpu_ctx *cctx __arg_nonnull, s32 cpu, u64 turn,
			 u32 rest)
{
	struct beat_job *job = renew_job(slot, beat_theta(share_of(slot), rest), cpu, turn);
	bool wins;

	if (!job)
		return false;
	wins = beat_wins(&slot->state, turn, cctx->turn_job != 0);
	compare_verdicts(job, slot->id, turn, wins);
	return wins;
}

/* Draws for @turn on @cpu. A global function: see note_talker(). */
__noinline int draw_turn(struct cpu_ctx *cctx __arg_nonnull, s32 cpu, u64 turn, u64 now)
{
	u32 i, rest = 1U << COSCHED_SHARE_SHIFT;

	if (wire_on)
		ease_clock(turn);
	cctx->turn = turn;
	cctx->turn_job = 0;
	count(COSCHED_COUNTER_turns);
	bpf_for(i, 0, BEAT_JOBS) {
		struct beat_slot *slot = beat_slot_of(cpu, next_to_draw(cpu, turn, now));

		if (!slot)
			break;
		slot->drawn = turn;
		rest -= share_of(slot) < rest ? share_of(slot) : rest;
		if (draw_for(slot, cctx, cpu, turn, rest))
			cctx->turn_job = slot->state.name;
	}
	if (cctx->turn_job)
		count(COSCHED_COUNTER_turns_won);
	return 0;
}

/* Another turn may have begun on @cpu, where @prev runs, since the CPU last looked for work. */
static void begin_turn(struct task_struct *prev, struct task_ctx *tctx, struct cpu_ctx *cctx, s32 cpu, u64 now)
{
	u64 turn;

	if (!is_beat())
		return;
	turn = beat_turn();
	if (cctx->turn == turn)
		return;
	if (prev && tctx && cctx->curr_slot)
		note_talker(prev, tctx, cctx, cpu);
	draw_turn(cctx, cpu, turn, now);
}

#endif
