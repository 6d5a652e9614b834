/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What is known of a CPU, and what is counted there. In a file of its own, since two objects share these maps: the
 * scheduler, and the programs that put epochs on the wire (wire.bpf.c).
 */
#ifndef COSCHED_CPU_BPF_H
#define COSCHED_CPU_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "intf.h"
#include "../policies/account.h"
#include "../policies/beat.h"

#define CPU_BOX 16	/* a power of two */

struct cpu_ctx {
	/* The fair order (fair.bpf.h). */
	struct cosched_share_clock shares;
	u32 nr_runnable;
	u32 newcomers;		/* of these, tasks that have not run yet since they came */
	u64 refreshed_at;	/* when the last in the queue was looked at */

	/* The running task: the gate is asked whether a boost over it is fair. */
	u64 curr_effective;	/* its effective weight (groups.bpf.h); 0: idle, or not ours */
	u64 curr_key;		/* its place in the order at curr_since */
	u64 curr_since;
	u64 curr_slice_since;	/* when its slice began, or would have, had it not been interrupted */
	u64 curr_slice_ns;
	u64 cut_key;		/* the place of the task that was cut short, as it stood then */
	u32 cut;		/* there is such a task, and no task of a user has run since */
	u32 front;		/* the first task in the queue may go ahead of boosts (dispatch.bpf.h) */
	u64 curr_id;		/* its task_id; 0: idle, or not ours */
	u64 stopped_at;		/* up to when the last task of ours was charged, on the clock of its run queue */
	u64 arrived;		/* where a message for it arrived last (sockets.bpf.h) */
	u32 messages;		/* that arrived for it: no exact count, but it changes when there is one */
	u32 curr_kthread;
	u32 curr_boosted;	/* it runs because of a boost */
	u32 curr_slept;		/* it has slept since it last ran */
	u32 curr_talks;		/* messages have arrived for it, some time or other */
	u32 curr_has_turn;	/* gang, beat: its row or job had its turn when this CPU last looked for work */
	u32 curr_slot;		/* beat: 1 + the index of its job's slot here (beat.bpf.h); 0: none */
	u32 curr_limited;	/* cpu.max holds for it (limits.bpf.h) */
	u32 preempt_at_tick;	/* a task goes ahead of the running one, but only then (fair.bpf.h, demand.bpf.h) */
	u64 noted;		/* the socket that the running task was noted for last (sockets.bpf.h) */
	u64 epoch;		/* of this CPU as a node (policies/epoch.h) */
	u64 epoch_id;		/* task_id of the task that runs in this epoch */
	u32 curr_waits_us;	/* what messages of the running task tell of its waits; 0: nothing */
	u64 slice_ends_at;	/* of the running task, on CLOCK_MONOTONIC; kept only if epochs cross the network */

	u32 filled;		/* a bit for each queue that may hold something (queues.bpf.h) */

	/* Demand (demand.bpf.h). */
	struct cosched_loan loan;	/* what boosts have had more than the fair order */
	struct cosched_loan urgent;	/* the same of kernel threads (enqueue.bpf.h) */
	struct cosched_presence waiting;	/* tasks that waited, as of the last tick; for the gate "rate" */
	u32 spin;		/* enum spin: of the running task, in a receive that would sleep (waits.bpf.h) */

	u64 limited_until;	/* when the first task set aside here is looked at; 0: none is (aside.bpf.h) */

	/* Beat (beat.bpf.h). */
	u64 turn;		/* that was drawn last */
	u64 turn_job;		/* that has won it; 0: none */
	struct cosched_beat_hold hold;	/* the job that is astray and has taken this CPU last */
	u64 clock_ahead_ns;	/* of the clock of turns, before TAI */
	u32 curr_theta;		/* what messages of the running task tell of its job (policies/beat.h) */
	u32 curr_sizes;		/* 0: nothing */
	u32 curr_job;		/* which it is: cosched_wire_job() */

	/* Balance (balance.bpf.h). */
	u64 balance_at;		/* when this CPU is to look for a busier one next */
	u32 looks;		/* it is to do so now */
	u32 retries;		/* how often it has found what had just moved */
	u64 shed_at;		/* when a task that woke here last looked for a less busy CPU */

	/* Tasks that wait without sleeping (park.bpf.h, pulse.bpf.h). */
	u64 parked_looked_at;	/* when a task here was last seen to be parked; 0: none is */
	u64 pulse_at;		/* when the timer runs out; 0: it is not set */
	u32 beats;		/* it has run out, and what is due is being done: a tick may come in between */

	/* Tasks that hooks have marked, by id: other CPUs write here (queues.bpf.h). */
	u32 posted __attribute__((aligned(128)));	/* there is something in the box */
	u64 box[CPU_BOX];
} __attribute__((aligned(128)));	/* cache lines are fetched in pairs, and none is another CPU's */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, COSCHED_MAX_CPUS);
	__type(key, u32);
	__type(value, struct cpu_ctx);
} cpu_ctxs SEC(".maps");

/* NULL if @cpu is -1, which is no CPU. */
static struct cpu_ctx *cpu_ctx_of(s32 cpu)
{
	u32 key = cpu;

	return bpf_map_lookup_elem(&cpu_ctxs, &key);
}

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct cosched_cpu_stats);
} cpu_stats SEC(".maps");

static struct cosched_cpu_stats *this_cpu_stats(void)
{
	u32 zero = 0;

	return bpf_map_lookup_elem(&cpu_stats, &zero);
}

static void count(enum cosched_counter counter)
{
	struct cosched_cpu_stats *stats = this_cpu_stats();

	if (stats && counter < COSCHED_NR_COUNTERS)
		stats->counters[counter]++;
}

#endif
