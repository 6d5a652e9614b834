/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prefetch: when a task begins a slice, its correspondents on other nodes are asked for before it has a message for
 * them (thesis 6.2.3, 6.2.6). Only with --prefetch: else prefetch_max is 0, the loader does not load tell_prefetch, and
 * the verifier drops the rest.
 *
 *	here				there
 *	on_readable	a message comes: the task has a correspondent, and the connection a receiver
 *	ops.running	a new slice: the connections of its correspondents into the ring
 *	the loader's	signs them and sends them	checks them
 *	thread
 *					tell_prefetch	asks the gate for the receiver of that connection
 *
 * A correspondent is the other end of a TCP connection to a peer, by which the task has been sent a message within
 * RECENT_NS. The thesis looks at what the task sends. A task that talks to another does both. What comes in is known
 * here anyway, and nothing has to be done while the task sends. But a task that only sends has no correspondents.
 *
 * A task may begin a thousand slices a second, if it sleeps in between. So each correspondent is asked for once in the
 * time of a slice at most (Tq).
 *
 * There is no message behind a prefetch, so nothing is left of it. It asks the gate once, and only for a task that
 * waits in a queue. A running task does not need it, and a sleeping task would find nothing to read. If the gate says
 * no, the gate is not asked again for that task. So a prefetch never brings a task more than a message would.
 *
 * XDP would spare a thread, but only here may the gate be asked and a CPU be kicked.
 */
#ifndef COSCHED_PREFETCH_BPF_H
#define COSCHED_PREFETCH_BPF_H

#include <scx/common.bpf.h>
#include "carry.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "endpoints.bpf.h"
#include "intf.h"
#include "state.bpf.h"
#include "units.h"
#include "wire_notes.bpf.h"
#include "../policies/phase.h"
#include "../policies/prefetch.h"
#include "../policies/wire.h"

#define TCP_ESTABLISHED	1
#define RECENT_NS	NSEC_PER_SEC

const volatile u32 prefetch_max;	/* correspondents of a task, at most; 0: there is no prefetch */

/* Where a task has heard from another node. All times in ns of CLOCK_MONOTONIC. */
struct correspondent {
	u64 addr;		/* of the socket, which may be gone (endpoints.bpf.h); 0: none */
	u64 heard_at;
	u64 told_at;		/* when it was asked for last; 0: never */
};

struct correspondents {
	struct correspondent of[COSCHED_PREFETCH_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct correspondents);
} correspondents SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, COSCHED_PREFETCH_BYTES);
} prefetch_ring SEC(".maps");

/* What is known of the connection to a peer whose messages come along @flow; NULL: there is none. */
static struct cosched_wire_note *connection_of(const struct cosched_wire_flow *flow)
{
	return wire_is_own(flow) ? NULL : bpf_map_lookup_elem(&wire_notes, flow);
}

/*
 * The socket at @addr is a correspondent from now on, in the place of the correspondent that was heard from longest
 * ago.
 */
static void keep_correspondent(struct correspondents *all, u64 addr)
{
	struct correspondent *place = &all->of[0];
	u32 i;

	for (i = 0; i < COSCHED_PREFETCH_MAX && i < prefetch_max; i++) {
		struct correspondent *other = &all->of[i];

		if (other->addr == addr) {
			place = other;
			break;
		}
		if (other->heard_at < place->heard_at)
			place = other;
	}
	if (place->addr != addr) {
		place->addr = addr;
		place->told_at = 0;
	}
	place->heard_at = bpf_ktime_get_ns();
}

/* A message has come for @p, whose task_id is @receiver, to the socket at @addr. */
__noinline int note_correspondent(struct task_struct *p __arg_trusted, u64 addr, u64 receiver)
{
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);
	struct cosched_wire_flow flow = {};
	struct cosched_wire_note *note;
	struct correspondents *all;

	if (sk->sk_protocol != IPPROTO_TCP || !wire_is_here(sk) || !flow_of_connection(&flow, &sk->__sk_common))
		return 0;
	note = connection_of(&flow);
	if (!note)
		return 0;
	note->receiver = receiver;
	all = bpf_task_storage_get(&correspondents, p, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (all)
		keep_correspondent(all, addr);
	return 0;
}

/* Makes the thread ask for the other end of the socket at @addr. False if there is none any more. */
static bool tell_correspondent(u64 addr, const struct cpu_ctx *cctx)
{
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);
	struct cosched_prefetch prefetch = {};
	struct cosched_wire_flow back = {};

	if (!is_socket(sk, addr) || sk->sk_protocol != IPPROTO_TCP || sk->__sk_common.skc_state != TCP_ESTABLISHED ||
	    !wire_is_here(sk) || !flow_of_connection(&back, &sk->__sk_common) || !connection_of(&back))
		return false;
	__builtin_memcpy(prefetch.flow.from, back.to, sizeof(back.to));
	__builtin_memcpy(prefetch.flow.to, back.from, sizeof(back.from));
	prefetch.flow.from_port = back.to_port;
	prefetch.flow.to_port = back.from_port;
	prefetch.epoch = cctx->epoch;
	prefetch.slice_ns = cctx->curr_slice_ns;
	if (bpf_ringbuf_output(&prefetch_ring, &prefetch, sizeof(prefetch), 0))
		count(COSCHED_COUNTER_prefetches_lost);
	return true;
}

/* @p has begun a slice on @cctx's CPU. */
__noinline int tell_correspondents(struct task_struct *p __arg_trusted, struct cpu_ctx *cctx __arg_nonnull)
{
	struct correspondents *all = bpf_task_storage_get(&correspondents, p, NULL, 0);
	u64 now = bpf_ktime_get_ns(), slice_ns = current_policy()->slice_ns;
	u32 i;

	if (!all)
		return 0;
	bpf_for(i, 0, COSCHED_PREFETCH_MAX) {
		struct correspondent *other = MEMBER_VPTR(all->of, [i]);

		if (!other || !other->addr || now - other->told_at < slice_ns)
			continue;
		if (now - other->heard_at < RECENT_NS && tell_correspondent(other->addr, cctx))
			other->told_at = now;
		else
			other->addr = 0;
	}
	return 0;
}

/* @p runs on @cctx's CPU. In a new slice, and not in the rest of one, its correspondents are asked for. */
static void begin_correspondence(struct task_struct *p, const struct task_ctx *tctx, struct cpu_ctx *cctx)
{
	if (prefetch_max && !tctx->slice_used_ns && arrivals_demand(cctx))
		tell_correspondents(p, cctx);
}

/* @p is asked for by a correspondent whose slice has begun. */
static void demand_ahead(struct task_struct *p, struct task_ctx *tctx, u64 epoch, u64 slice_ns)
{
	u32 phase = READ_ONCE(tctx->phase);
	struct cpu_ctx *cctx = phase_hears(phase) ? cpu_ctx_of(READ_ONCE(tctx->cpu)) : NULL;

	if (!cctx || !arrivals_demand(cctx))
		return;
	if (policy_reads_messages()) {
		tctx->message_wired = epoch != 0;
		tctx->message_epoch = epoch ?: EPOCH_UNKNOWN;
		tctx->message_slice_ns = slice_ns;
	}
	if (!ask(p, tctx, cctx, scx_bpf_now()))
		return;
	count(COSCHED_COUNTER_prefetches_granted);
	mark(p, tctx, phase, PHASE_GRANTED);
}

/* A prefetch that is believed has come along @flow. False if no task is known to receive there. */
static bool hear_prefetch(const struct cosched_wire_flow *flow, u64 epoch, u64 slice_ns)
{
	struct cosched_wire_note *note = connection_of(flow);
	u64 receiver = note ? note->receiver : 0;
	struct task_struct *p = receiver ? bpf_task_from_pid(task_id_pid(receiver)) : NULL;
	struct task_ctx *tctx;
	bool heard;

	if (!p)
		return false;
	tctx = task_ctx_of(p);
	heard = tctx && task_id(p) == receiver;
	if (heard)
		demand_ahead(p, tctx, epoch, slice_ns);
	bpf_task_release(p);
	return heard;
}

/* Run by the loader's thread, which sends and receives. */
SEC("syscall")
int tell_prefetch(struct cosched_prefetch_news *news)
{
	struct cosched_wire_flow flow;

	switch (news->kind) {
	case COSCHED_PREFETCH_SENT:
		count(COSCHED_COUNTER_prefetches_sent);
		break;
	case COSCHED_PREFETCH_LOST:
		count(COSCHED_COUNTER_prefetches_lost);
		break;
	case COSCHED_PREFETCH_HEARD:
		__builtin_memcpy(&flow, &news->prefetch.flow, sizeof(flow));
		if (hear_prefetch(&flow, news->prefetch.epoch, news->prefetch.slice_ns))
			count(COSCHED_COUNTER_prefetches_heard);
		else
			count(COSCHED_COUNTER_prefetches_unmapped);
		break;
	case COSCHED_PREFETCH_REFUSED:
		count(COSCHED_COUNTER_prefetches_refused);
		break;
	}
	return 0;
}

#endif
