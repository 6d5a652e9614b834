/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks on RDMA: what has arrived, and which task waits for it.
 *
 *	arrives		rxe_cq_post		soft RoCE (rdma_rxe) puts a completion into a queue, polled or not
 *			ib_uverbs_comp_handler	any driver tells a channel of events that there is something in a queue
 *	is awaited	ib_uverbs_comp_event_read, ib_uverbs_event_poll		a task sleeps at the channel
 *			rxe_post_send		a task sends, if the queue has no channel
 *	ends		ib_destroy_cq_user, ib_uverbs_free_event_queue
 *
 * No hook is needed to know which thread made a queue: the kernel keeps that in the queue. So hooks that come late,
 * after a job has begun, find everything that they need. Until a task is seen to wait or to send, the thread that made
 * the queue counts as its receiver.
 *
 * These functions are in modules, and a hook keeps its module from being unloaded. So the loader attaches these hooks
 * only while a process has an RDMA device open. They are in a copy of this object that shares all maps with the first.
 *
 * Where it hurts: a task that polls a queue of a real device leaves no trace in the kernel, and has no demand. Soft
 * RoCE is seen, but a task that polls it does so in user space. It looks as if it computed, and is not parked. Memory
 * that a peer has written to (RDMA write without immediate data) brings no completion. Messages by RDMA carry no epoch.
 * The kernel's own threads put completions into queues. If such a thread is preempted inside this very hook, the hook
 * does not run on that CPU. So a completion may go unnoticed until the next.
 */
#ifndef COSCHED_RDMA_BPF_H
#define COSCHED_RDMA_BPF_H

#include <scx/common.bpf.h>
#include "completions.bpf.h"
#include "cpu.bpf.h"
#include "intf.h"
#include "sockets.bpf.h"
#include "state.bpf.h"
#include "waits.bpf.h"

#define O_NONBLOCK	00004000

/* What is needed of the modules' types, which are not in vmlinux.h. libbpf finds out where in them each field is. */
#define MODULE_TYPE __attribute__((preserve_access_index))

struct rdma_restrack_entry {
	struct task_struct *task;
} MODULE_TYPE;

struct ib_cq {
	void *cq_context;
	struct rdma_restrack_entry res;
} MODULE_TYPE;

struct ib_qp {
	struct ib_cq *send_cq;
	struct ib_cq *recv_cq;
} MODULE_TYPE;

struct ib_uverbs_event_queue {
	struct list_head event_list;
} MODULE_TYPE;

struct ib_uverbs_completion_event_file {
	struct ib_uverbs_event_queue ev_queue;
} MODULE_TYPE;

struct rxe_queue_buf {
	u32 producer_index;
	u32 consumer_index;
} MODULE_TYPE;

struct rxe_queue {
	struct rxe_queue_buf *buf;
	unsigned int index_mask;
	unsigned int index;
} MODULE_TYPE;

struct rxe_cq {
	struct ib_cq ibcq;
	struct rxe_queue *queue;
	bool is_user;
} MODULE_TYPE;

struct ib_uverbs_wc {
	u32 opcode;
} MODULE_TYPE;

struct rxe_cqe {
	struct ib_uverbs_wc uibwc;
} MODULE_TYPE;

/*
 * Kinds of completions. The first two are the answer to a read and to an atomic operation. From the third on they are
 * what a peer has sent.
 */
enum {
	WC_RDMA_READ = 2,
	WC_FETCH_ADD = 4,
	WC_RECV = 128,
};

/* Does a completion of this kind bring data, or does it only say that data has been sent? */
static bool brings_data(u32 opcode)
{
	return opcode >= WC_RECV || (opcode >= WC_RDMA_READ && opcode <= WC_FETCH_ADD);
}

static struct completions *completions_at(u64 addr)
{
	return bpf_map_lookup_elem(&completions, &addr);
}

/* What is known of the queue at @addr; if nothing is, @receiver waits there. */
static struct completions *completions_at_or_of(u64 addr, u64 receiver)
{
	struct completions *queue = completions_at(addr), first = { .at.receiver = receiver };

	if (queue)
		return queue;
	bpf_map_update_elem(&completions, &addr, &first, BPF_NOEXIST);
	queue = completions_at(addr);
	if (!queue)
		count(COSCHED_COUNTER_endpoints_full);
	return queue;
}

/* The thread that made a queue, or if it has ended, its process; 0: the kernel did. */
static u64 id_of_creator(struct task_struct *creator)
{
	struct task_struct *p = bpf_core_cast(creator, struct task_struct);

	if (!creator)
		return 0;
	return task_id(p->exit_state ? p->group_leader : p);
}

/* The current task waits at the channel at @channel. */
static struct completions *note_waiter(u64 channel, u64 list)
{
	u64 id = task_id(bpf_get_current_task_btf());
	struct completions *queue = completions_at_or_of(channel + COMPLETIONS_TAG, id);

	if (!queue)
		return NULL;
	queue->level_at = list;
	queue->at.receiver = id;
	return queue;
}

/*
 * A completion is about to be put into the ring of @cq. The lock for that is not held yet, so another completion may
 * come first and take the place. If the program then reads just that far, this message counts as read one place too
 * early.
 */
SEC("fentry/rdma_rxe:rxe_cq_post")
int BPF_PROG(on_rxe_completion, struct rxe_cq *cq, struct rxe_cqe *cqe)
{
	struct rxe_queue *ring = BPF_CORE_READ(cq, queue);
	struct rxe_queue_buf *buf = BPF_CORE_READ(ring, buf);
	struct completions *queue, *channel;
	u64 addr = (u64)cq + COMPLETIONS_TAG, waits_at;

	if (!BPF_CORE_READ(cq, is_user) || !brings_data(BPF_CORE_READ(cqe, uibwc.opcode)))
		return 0;
	queue = completions_at(addr);
	if (!queue)
		queue = completions_at_or_of(addr, id_of_creator(BPF_CORE_READ(cq, ibcq.res.task)));
	if (!queue)
		return 0;
	queue->mask = BPF_CORE_READ(ring, index_mask);
	queue->end_at = (u64)__builtin_preserve_access_index(&buf->producer_index);
	queue->level_at = (u64)__builtin_preserve_access_index(&buf->consumer_index);
	queue->message = (BPF_CORE_READ(ring, index) + 1) & queue->mask;
	queue->message_at = bpf_ktime_get_ns();
	waits_at = (u64)BPF_CORE_READ(cq, ibcq.cq_context);
	channel = waits_at ? completions_at(waits_at + COMPLETIONS_TAG) : NULL;
	if (channel)
		queue->at.receiver = channel->at.receiver;
	deliver(&queue->at, addr, COSCHED_ENDPOINT_rdma);
	return 0;
}

/* The current task sends, and has @cq for what comes back: it has answered what it had read there. */
static __always_inline void note_sender(struct ib_cq *cq)
{
	u64 id = task_id(bpf_get_current_task_btf());
	struct completions *queue;

	if (!cq)
		return;
	queue = completions_at_or_of((u64)cq + COMPLETIONS_TAG, id);
	if (!queue)
		return;
	queue->answered = queue->message;
	if (!BPF_CORE_READ(cq, cq_context))
		queue->at.receiver = id;
}

SEC("fentry/rdma_rxe:rxe_post_send")
int BPF_PROG(on_rxe_send, struct ib_qp *qp)
{
	struct ib_cq *receives = BPF_CORE_READ(qp, recv_cq), *sends = BPF_CORE_READ(qp, send_cq);

	if (is_kthread(bpf_get_current_task_btf()))
		return 0;
	note_sender(receives);
	if (sends != receives)
		note_sender(sends);
	return 0;
}

/* The event is in the list by now: pending is read off it (demand.bpf.h). */
SEC("fexit/ib_uverbs:ib_uverbs_comp_handler")
int BPF_PROG(on_uverbs_completion, struct ib_cq *cq, void *channel)
{
	struct completions *queue = completions_at((u64)cq + COMPLETIONS_TAG);
	struct ib_uverbs_event_queue *events = channel;

	/* on_rxe_completion was told of it before, and knows more. */
	if (!channel || (queue && queue->level_at))
		return 0;
	queue = completions_at_or_of((u64)channel + COMPLETIONS_TAG, id_of_creator(BPF_CORE_READ(cq, res.task)));
	if (!queue)
		return 0;
	queue->level_at = (u64)__builtin_preserve_access_index(&events->event_list);
	deliver(&queue->at, (u64)channel + COMPLETIONS_TAG, COSCHED_ENDPOINT_rdma);
	return 0;
}

SEC("fentry/ib_uverbs:ib_uverbs_comp_event_read")
int BPF_PROG(on_uverbs_read, struct file *file)
{
	struct task_ctx *tctx = task_ctx_of(bpf_get_current_task_btf());
	struct ib_uverbs_completion_event_file *events = file->private_data;
	struct completions *queue;

	queue = note_waiter((u64)__builtin_preserve_access_index(&events->ev_queue),
			    (u64)__builtin_preserve_access_index(&events->ev_queue.event_list));
	if (tctx && queue && !is_unread(queue) && !(file->f_flags & O_NONBLOCK))
		sleep_begins(tctx);
	return 0;
}

SEC("fentry/ib_uverbs:ib_uverbs_event_poll")
int BPF_PROG(on_uverbs_poll, struct ib_uverbs_event_queue *events)
{
	note_waiter((u64)events, (u64)__builtin_preserve_access_index(&events->event_list));
	return 0;
}

SEC("fentry/ib_core:ib_destroy_cq_user")
int BPF_PROG(on_cq_end, struct ib_cq *cq)
{
	u64 addr = (u64)cq + COMPLETIONS_TAG;

	bpf_map_delete_elem(&completions, &addr);
	return 0;
}

SEC("fentry/ib_uverbs:ib_uverbs_free_event_queue")
int BPF_PROG(on_channel_end, struct ib_uverbs_event_queue *events)
{
	u64 addr = (u64)events + COMPLETIONS_TAG;

	bpf_map_delete_elem(&completions, &addr);
	return 0;
}

#endif
