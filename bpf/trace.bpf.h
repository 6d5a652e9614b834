/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The trace: arrivals, decisions and switches as they happen, for `scx_cosched trace`.
 *
 * While no trace is read, each of these places reads one flag, and there is no ring. The loader makes a ring for each
 * trace, then sets the flag. It clears the flag when the reader is gone.
 *
 * Writers never wait. An event for which the ring has no room is lost and counted. The ring's lock is taken with
 * interrupts off, and nothing is called under it. So an event may be written under a runqueue's lock, in a softirq and
 * in a timer. The reader is not woken up but looks by itself. To wake it would be one more switch to be traced, for
 * which it would be woken up again.
 */
#ifndef COSCHED_TRACE_BPF_H
#define COSCHED_TRACE_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "queues.bpf.h"
#include "state.bpf.h"

struct trace_ring {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, COSCHED_TRACE_BYTES);
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, 1);
	__type(key, u32);
	__array(values, struct trace_ring);
} trace_rings SEC(".maps");

u32 trace_on;	/* which events are wanted: a set of 1 << enum cosched_event_kind */

static bool is_traced(enum cosched_event_kind kind)
{
	return READ_ONCE(trace_on) & 1U << kind;
}

static void write_event(struct cosched_event *event)
{
	u32 zero = 0;
	void *ring = bpf_map_lookup_elem(&trace_rings, &zero);

	if (ring && bpf_ringbuf_output(ring, event, sizeof(*event), BPF_RB_NO_WAKEUP))
		count(COSCHED_COUNTER_trace_lost);
}

/* Not static, so that the verifier walks through it once and not for each place that it is called from. */
__noinline int trace(struct task_struct *p __arg_trusted, u32 kind, u32 detail, u32 flags, u64 ns)
{
	struct cosched_event event = {
		.time_ns = bpf_ktime_get_ns(),
		.job = job_of(p),
		.ns = ns,
		.pid = p->pid,
		.cpu = scx_bpf_task_cpu(p),
		.kind = kind,
		.detail = detail,
		.flags = flags,
	};

	bpf_probe_read_kernel(event.comm, sizeof(event.comm), p->comm);
	write_event(&event);
	return 0;
}

/* The same for a job on this CPU. */
__noinline int trace_job(u64 job, u32 kind, u32 detail, u32 flags, u64 ns)
{
	struct cosched_event event = {
		.time_ns = bpf_ktime_get_ns(),
		.job = job,
		.ns = ns,
		.cpu = bpf_get_smp_processor_id(),
		.kind = kind,
		.detail = detail,
		.flags = flags,
	};

	write_event(&event);
	return 0;
}

static void trace_arrival(struct task_struct *p, enum cosched_endpoint endpoint, bool running)
{
	if (is_traced(COSCHED_EVENT_ARRIVAL))
		trace(p, COSCHED_EVENT_ARRIVAL, endpoint, running ? COSCHED_EVENT_RUNNING : 0, 0);
}

static void trace_decision(struct task_struct *p, u32 reason, u64 granted_ns)
{
	if (is_traced(COSCHED_EVENT_DECISION))
		trace(p, COSCHED_EVENT_DECISION, reason, 0, granted_ns);
}

/* @p runs, and its context still says how it has come to run. */
static void trace_switch_in(struct task_struct *p, const struct task_ctx *tctx, bool boosted)
{
	u32 flags = (boosted ? COSCHED_EVENT_BOOSTED : 0) | (tctx->queue == QUEUE_PARKED ? COSCHED_EVENT_PARKED : 0);

	if (is_traced(COSCHED_EVENT_SWITCH_IN))
		trace(p, COSCHED_EVENT_SWITCH_IN, 0, flags, p->se.sum_exec_runtime);
}

/* @p has left its CPU, and its context still says how it ran. */
static void trace_switch_out(struct task_struct *p, const struct task_ctx *tctx, bool boosted, bool runnable)
{
	u32 flags = (boosted ? COSCHED_EVENT_BOOSTED : 0) | (runnable ? COSCHED_EVENT_RUNNABLE : 0) |
		    (tctx->leaves ? COSCHED_EVENT_PARKED : 0);

	if (is_traced(COSCHED_EVENT_SWITCH_OUT))
		trace(p, COSCHED_EVENT_SWITCH_OUT, 0, flags, p->se.sum_exec_runtime);
}

#endif
