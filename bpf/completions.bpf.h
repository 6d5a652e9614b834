/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RDMA queues as endpoints: whose they are, and whether they hold a message. The hooks of rdma.bpf.h write this, since
 * they know the modules' types. The scheduler reads it. It is also loaded where there are no such modules, so here it
 * finds the addresses at which to look.
 *
 *	completion queue	a ring in memory that driver and program share: each of them moves one end
 *	channel of events	a list, from which the program is told that there is something in a queue
 *
 * A ring also has completions of what the task has sent. They are no messages, just as an acknowledgement of TCP is
 * none. So a ring holds a message as long as the program has not read up to the last message that came. It is the
 * program that says how far it has read. A program that lies has the demand of a program that leaves its socket unread,
 * and no more.
 */
#ifndef COSCHED_COMPLETIONS_BPF_H
#define COSCHED_COMPLETIONS_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"
#include "state.bpf.h"
#include "units.h"

/*
 * Kernel objects have even addresses, so this tells a queue's address from a socket's. It is added to the address,
 * since the verifier lets no bit of a pointer be set.
 */
#define COMPLETIONS_TAG	1ULL

/*
 * For how long a task that has read a message is expected to answer it. TCP waits as long for data with which it can
 * send an acknowledgement.
 */
#define ANSWER_NS	(40 * NSEC_PER_MSEC)

struct completions {
	struct endpoint at;
	u64 level_at;		/* of the list's head, or of the ring's end that the program moves; 0: unknown */
	u64 end_at;		/* of the ring's end that the driver moves; 0: it is a list */
	u64 message_at;		/* when a message came last */
	u32 mask;		/* of places in the ring */
	u32 message;		/* the place behind the last message */
	u32 answered;		/* @message when the task last sent something */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, COSCHED_MAX_COMPLETIONS);
	__type(key, u64);
	__type(value, struct completions);
} completions SEC(".maps");

static bool is_completions(u64 addr)
{
	return addr & COMPLETIONS_TAG;
}

static bool is_unread(const struct completions *queue)
{
	u32 read_up_to = 0, end = 0;
	u64 first = 0;

	if (!queue->level_at)
		return false;
	if (!queue->end_at) {
		bpf_probe_read_kernel(&first, sizeof(first), (void *)queue->level_at);
		return first && first != queue->level_at;
	}
	if (bpf_probe_read_kernel(&read_up_to, sizeof(read_up_to), (void *)queue->level_at) ||
	    bpf_probe_read_kernel(&end, sizeof(end), (void *)queue->end_at))
		return false;
	/* The message is announced a moment before it is in the ring: its place may be the next one. */
	return queue->message != read_up_to &&
	       ((queue->message - read_up_to) & queue->mask) <= ((end - read_up_to) & queue->mask) + 1;
}

/* Does the queue at @addr hold a message? Not static: see has_message(). */
__noinline bool holds_completion(u64 addr)
{
	struct completions *queue = bpf_map_lookup_elem(&completions, &addr);

	return queue && is_unread(queue);
}

/* Has the last message in @queue come lately, and been read? */
static bool is_read_lately(const struct completions *queue)
{
	return !is_unread(queue) && bpf_ktime_get_ns() - queue->message_at < ANSWER_NS;
}

/* Has a message been read from the queue at @addr lately, and nothing been sent since it came? */
__noinline bool owes_completion(u64 addr)
{
	struct completions *queue = bpf_map_lookup_elem(&completions, &addr);

	return queue && queue->message != queue->answered && is_read_lately(queue);
}

/* Has a message been read from the ring at @addr lately, and something been sent since it came? */
__noinline bool has_answered_completion(u64 addr)
{
	struct completions *queue = bpf_map_lookup_elem(&completions, &addr);

	return queue && queue->end_at && queue->message == queue->answered && is_read_lately(queue);
}

#endif
