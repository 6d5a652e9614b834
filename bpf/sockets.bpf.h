/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks on sockets: which task receives where, and what has arrived.
 *
 * Covers TCP and UDP over IPv4 and IPv6 and Unix sockets, through functions that they share.
 *
 *	arrives		sock_def_readable	in the receive queue, the waiters are about to be woken
 *			tcp_add_backlog		in the backlog, because the receiver holds the socket's lock
 *	is awaited	poll, epoll and io_uring, below, and the hooks of waits.bpf.h
 *	may come	sock_alloc_file, __inet_accept, unix_accept: the task that makes a socket will read it
 *			find_receivers		and so will a task that had it open before
 *
 * All but the arrivals tell which task to run for the next message. A task may read a socket that it has not made,
 * without ever sleeping there. Looks find it: see polls.bpf.h. What has been consumed needs no hook: see
 * endpoints.bpf.h.
 *
 * The backlog matters. A spinning receiver is often preempted inside receive, where it holds its socket's lock. Packets
 * that come then wait in the backlog, and sock_def_readable is not called until that task runs again. That is exactly
 * when the demand is needed most.
 *
 * Nothing runs when a receive finds nothing, or finds a message. Hooks on recvmsg would be simpler. But a spinning
 * receiver polls ten times per message, and such hooks made its job two to five times slower under emulation. In a job
 * that is coscheduled each message finds its receiver running, so that case is kept short.
 *
 * These programs may mark and kick, not dispatch: moving a task between queues is up to ops.dispatch. All of
 * them are optional. Where a kernel lacks one, the loader warns and the rest works.
 */
#ifndef COSCHED_SOCKETS_BPF_H
#define COSCHED_SOCKETS_BPF_H

#include <scx/common.bpf.h>
#include "carry.bpf.h"
#include "cpu.bpf.h"
#include "demand.bpf.h"
#include "endpoints.bpf.h"
#include "intf.h"
#include "polls.bpf.h"
#include "prefetch.bpf.h"
#include "state.bpf.h"
#include "trace.bpf.h"

static bool is_unix(const struct sock *sk)
{
	return sk->__sk_common.skc_family == AF_UNIX;
}

static enum cosched_endpoint endpoint_kind(const struct sock *sk)
{
	if (is_unix(sk))
		return COSCHED_ENDPOINT_unix;
	switch (sk->sk_protocol) {
	case IPPROTO_TCP:
		return COSCHED_ENDPOINT_tcp;
	case IPPROTO_UDP:
		return COSCHED_ENDPOINT_udp;
	default:
		return COSCHED_ENDPOINT_other;
	}
}

/*
 * Has a message arrived at @addr for a task that runs, and did its last message since it began to run arrive there too?
 * Then there is nothing to do: the endpoint is among those that will be looked at when that task leaves its CPU. A
 * trace has to name the task, so with a trace the answer is no.
 */
static bool arrived_coscheduled(const struct endpoint *ep, u64 addr, enum cosched_endpoint kind)
{
	struct cpu_ctx *cctx = cpu_ctx_of(ep->cpu);

	full_barrier();		/* as in demand_on_arrival() */
	if (!cctx || cctx->curr_id != ep->receiver || cctx->arrived != addr || is_traced(COSCHED_EVENT_ARRIVAL))
		return false;
	cctx->messages++;
	count_arrival(kind, true);
	return true;
}

/* A message has arrived at @addr for @tctx: notes where. */
static void note_arrival(struct task_ctx *tctx, struct endpoint *ep, u64 addr)
{
	struct cpu_ctx *cctx = cpu_ctx_of(tctx->cpu);

	tctx->pending++;
	ep->cpu = tctx->cpu;
	remember_endpoint(tctx, addr);
	if (!cctx || cctx->curr_id != ep->receiver)
		return;
	cctx->arrived = addr;
	cctx->messages++;
}

/* A message has arrived at @at, for the task that @ep names. */
static __always_inline void deliver(struct endpoint *ep, u64 at, enum cosched_endpoint kind)
{
	struct task_struct *p;
	struct task_ctx *tctx;
	u64 addr = 0;

	if (ep && arrived_coscheduled(ep, at, kind))
		return;
	if (ep && kind != COSCHED_ENDPOINT_rdma)
		correct_receiver(ep, at);
	p = ep && ep->receiver ? bpf_task_from_pid(task_id_pid(ep->receiver)) : NULL;
	if (!p) {
		count(COSCHED_COUNTER_arrivals_unmapped);
		return;
	}
	/* The verifier hands no pointer over as a number, unless it has been read as one. */
	bpf_probe_read_kernel(&addr, sizeof(addr), &at);
	tctx = task_ctx_of(p);
	if (tctx && task_id(p) == ep->receiver) {
		if (kind == COSCHED_ENDPOINT_rdma)
			carry_nothing(tctx);
		else if (policy_reads_messages())
			carry_message(tctx, addr);
		if (kind != COSCHED_ENDPOINT_rdma && prefetch_max)
			note_correspondent(p, addr, ep->receiver);
		note_arrival(tctx, ep, addr);
		demand_on_arrival(p, tctx, kind);
	}
	bpf_task_release(p);
}

/*
 * The storage of @sk, made if need be; NULL: there is no memory for it. If another hook makes it at the same moment,
 * the first try fails, and the second finds what that hook has made.
 */
static struct endpoint *make_endpoint(struct sock *sk)
{
	return bpf_sk_storage_get(&endpoints, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE) ?:
	       bpf_sk_storage_get(&endpoints, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/* What is known of @sk; NULL: nothing. A socket that no hook has seen is known once a task is seen to read there. */
static struct endpoint *endpoint_of(struct sock *sk)
{
	struct endpoint *ep = bpf_sk_storage_get(&endpoints, sk, NULL, 0);
	u64 addr = (u64)sk;

	if (ep || !bpf_map_lookup_elem(&readers, &addr))
		return ep;
	return make_endpoint(sk);
}

static void message_arrived(struct sock *sk)
{
	deliver(endpoint_of(sk), (u64)sk, endpoint_kind(sk));
}

/*
 * While this runs on a CPU the kernel does not run it there for another message. Packets come in softirqs, which do not
 * interrupt each other. But a sender to a Unix socket is here as a task: packets would go unnoticed, for as long as it
 * is preempted here. So it keeps interrupts out, but for the few instructions before and after. The tracepoint in
 * sock_def_readable() is no better: in Linux 7.3 it can be preempted too.
 */
SEC("fentry/sock_def_readable")
int BPF_PROG(on_readable, struct sock *sk)
{
	unsigned long flags;

	if (is_unix(sk)) {
		bpf_local_irq_save(&flags);
		message_arrived(sk);
		bpf_local_irq_restore(&flags);
		return 0;
	}
	/* The owner of a stream's lock works off its own backlog: on_tcp_backlog was told of this before. */
	if (!sk->sk_lock.owned || sk->sk_protocol != IPPROTO_TCP)
		message_arrived(sk);
	return 0;
}

/*
 * Does @skb bring data, and not an acknowledgement alone? Every second packet of a dialogue is an acknowledgement
 * alone.
 */
static bool has_data(const struct sk_buff *skb)
{
	const struct tcp_skb_cb *cb = bpf_core_cast((void *)skb->cb, struct tcp_skb_cb);

	return cb->seq != cb->end_seq;
}

SEC("fentry/tcp_add_backlog")
int BPF_PROG(on_tcp_backlog, struct sock *sk, struct sk_buff *skb)
{
	if (has_data(skb))
		message_arrived(sk);
	return 0;
}

/* The task @id makes, reads or awaits @sk: it is to run when a message arrives there. */
static int note_receiver_of(struct sock *sk, u64 id)
{
	struct endpoint *ep;
	u64 addr = (u64)sk;

	ep = make_endpoint(sk);
	if (!ep) {
		count(COSCHED_COUNTER_endpoints_full);
		return 0;
	}
	if (ep->receiver == id)
		return 0;
	ep->receiver = id;
	bpf_map_delete_elem(&readers, &addr);
	return 0;
}

/* The current task makes, reads or awaits @sk. */
static int note_receiver(struct sock *sk)
{
	return note_receiver_of(sk, task_id(bpf_get_current_task_btf()));
}

/*
 * The same for a task that sleeps there again and again. It is noted once for as long as it runs without a switch.
 * Another thread may read the socket on another CPU meanwhile. That thread then counts as the receiver until the
 * switch.
 */
static int note_reader(struct sock *sk)
{
	struct cpu_ctx *cctx = cpu_ctx_of(bpf_get_smp_processor_id());

	if (!cctx || cctx->noted == (u64)sk)
		return 0;
	note_receiver(sk);
	cctx->noted = (u64)sk;
	return 0;
}

/* The task @id has @file open, or waits there. If that is a socket, the task is its receiver. */
static int note_receiver_at(struct file *file, u64 id)
{
	struct socket *sock = file ? bpf_sock_from_file(file) : NULL;
	struct sock *sk = sock ? sock->sk : NULL;

	return sk ? note_receiver_of(sk, id) : 0;
}

/*
 * A hook on a function by which a task is put among those that wait at a file. The kernel calls each through a pointer,
 * so no compiler renames it. Neither poll nor select comes here if it is not to sleep. Programs that poll so ask all of
 * their sockets again and again. A hook on the sockets' own functions took 5% of an MPI program's time.
 */
#define POLLER_HOOK(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name, struct file *file)					\
{										\
	return note_receiver_at(file, task_id(bpf_get_current_task_btf()));	\
}

POLLER_HOOK(poll, __pollwait)
POLLER_HOOK(epoll, ep_ptable_queue_proc)	/* epoll_ctl: the task that will wait there, as far as is known */
POLLER_HOOK(uring_poll, io_poll_queue_proc)
POLLER_HOOK(uring_receive, io_async_queue_proc)

/*
 * The task that is first to be woken from epoll_wait on @ep; 0: none. Nothing keeps it from leaving that queue right
 * now. So what is read there is believed only if it is a task.
 */
static u64 first_waiter(struct eventpoll *ep)
{
	struct list_head *head = &ep->wq.head;
	u64 first = (u64)head->next - bpf_core_field_offset(struct wait_queue_entry, entry), waiter, id;
	struct task_struct *p;

	if (head->next == head)
		return 0;
	waiter = (u64)bpf_core_cast((void *)first, struct wait_queue_entry)->private;
	p = bpf_task_from_pid(bpf_core_cast((void *)waiter, struct task_struct)->pid);
	if (!p)
		return 0;
	id = (u64)p == waiter ? task_id(p) : 0;
	bpf_task_release(p);
	return id;
}

/* There is something at a file that epoll watches: the task that is woken for it will read it. */
SEC("fentry/ep_poll_callback")
int BPF_PROG(on_epoll_wake, struct wait_queue_entry *wait)
{
	u64 entry = (u64)wait - bpf_core_field_offset(struct eppoll_entry, wait);
	struct epitem *item = bpf_core_cast((void *)entry, struct eppoll_entry)->base;
	u64 addr = socket_of_file((u64)item->ffd.file);
	u64 id = addr ? first_waiter(item->ep) : 0;

	if (id)
		note_reading(id, addr);
	return 0;
}

SEC("fentry/sock_alloc_file")
int BPF_PROG(on_socket, struct socket *sock)
{
	struct sock *sk = sock->sk;

	return sk ? note_receiver(sk) : 0;
}

SEC("fentry/__inet_accept")
int BPF_PROG(on_inet_accept, struct socket *sock, struct socket *newsock, struct sock *newsk)
{
	return note_receiver(newsk);
}

SEC("fexit/unix_accept")
int BPF_PROG(on_unix_accept, struct socket *sock, struct socket *newsock)
{
	struct sock *sk = newsock->sk;

	return sk ? note_receiver(sk) : 0;
}

/*
 * Run over all open files once the hooks are attached, for sockets that were there before: a task that has one open
 * will read it. If several have it open, the last one counts, since a process that leaves a connection to its child
 * often keeps it open. If another task reads it, that shows as at any other socket.
 */
SEC("iter/task_file")
int find_receivers(struct bpf_iter__task_file *ctx)
{
	struct task_struct *p = ctx->task;

	return p ? note_receiver_at(ctx->file, task_id(p)) : 0;
}

#endif
