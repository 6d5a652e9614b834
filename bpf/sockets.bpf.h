/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks on sockets: which task receives where, what has arrived, and what has been consumed.
 *
 * Covers TCP and UDP over IPv4 and IPv6 and Unix sockets, through functions that all of them share.
 *
 *	sock_def_readable	data is in the receive queue, the waiters are about to be woken
 *	tcp_add_backlog		data is in the backlog: the receiver holds the socket's lock
 *	*_recvmsg, *_poll	somebody looks for data: this is the task to run for the next message
 *	*_sendmsg		a socket that nobody has received on belongs to whoever sends there
 *	*_release		the socket is closed, and what was pending there with it
 *
 * The backlog matters. A spinning receiver is often preempted inside receive, where it holds its socket's
 * lock; packets that come then wait in the backlog and sock_def_readable is not called until that task runs
 * again, which is exactly when the demand is needed most.
 *
 * These programs may mark and kick, not dispatch: moving a task between queues is up to ops.dispatch. All of
 * them are optional. Where a kernel lacks one, the loader warns and the rest works.
 */
#ifndef COSCHED_SOCKETS_BPF_H
#define COSCHED_SOCKETS_BPF_H

/* Adds @delta to the pending level of the task with @id, if it still lives. */
static void add_pending(u64 id, s32 delta)
{
	struct task_struct *p = bpf_task_from_pid(task_id_pid(id));
	struct task_ctx *tctx;

	if (!p)
		return;
	tctx = task_ctx_of(p);
	if (tctx && task_id(p) == id)
		__sync_fetch_and_add(&tctx->pending, delta);
	bpf_task_release(p);
}

static void clear_pending(struct endpoint *ep)
{
	u64 id;

	if (!ep->pending_for)
		return;
	id = __sync_lock_test_and_set(&ep->pending_for, 0);
	if (id)
		add_pending(id, -1);
}

/* Raises the level of @tctx for @ep. It may have been raised for an earlier receiver: take that back. */
static void raise_pending(struct endpoint *ep, u64 id, struct task_ctx *tctx)
{
	u64 before;

	if (ep->pending_for == id)
		return;
	before = __sync_lock_test_and_set(&ep->pending_for, id);
	if (before == id)
		return;
	__sync_fetch_and_add(&tctx->pending, 1);
	if (before)
		add_pending(before, -1);
}

static void message_arrived(struct sock *sk)
{
	struct endpoint *ep = bpf_sk_storage_get(&endpoints, sk, NULL, 0);
	struct task_struct *p;
	struct task_ctx *tctx;

	p = ep && ep->receiver ? bpf_task_from_pid(task_id_pid(ep->receiver)) : NULL;
	if (!p) {
		count(COSCHED_COUNTER_arrivals_unmapped);
		return;
	}
	tctx = task_ctx_of(p);
	if (tctx && task_id(p) == ep->receiver) {
		raise_pending(ep, task_id(p), tctx);
		/* A receiver that works off its own backlog has been told of these messages before. */
		if (!tctx->in_receive || p->pid != bpf_get_current_task_btf()->pid)
			demand_on_arrival(tctx);
	}
	bpf_task_release(p);
}

SEC("fentry/sock_def_readable")
int BPF_PROG(on_readable, struct sock *sk)
{
	message_arrived(sk);
	return 0;
}

SEC("fentry/tcp_add_backlog")
int BPF_PROG(on_tcp_backlog, struct sock *sk)
{
	message_arrived(sk);
	return 0;
}

static struct endpoint *endpoint_of(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct endpoint *ep;

	if (!sk)
		return NULL;
	ep = bpf_sk_storage_get(&endpoints, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!ep)
		count(COSCHED_COUNTER_endpoints_full);
	return ep;
}

/* The current task looks for messages at @sock: it is the one to run when one arrives. */
static struct task_ctx *note_receiver(struct socket *sock)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx = task_ctx_of(p);
	struct endpoint *ep;

	if (!tctx)
		return NULL;
	ep = endpoint_of(sock);
	if (ep && ep->receiver != task_id(p))
		ep->receiver = task_id(p);
	return tctx;
}

static int receive_begins(struct socket *sock)
{
	struct task_ctx *tctx = note_receiver(sock);

	if (tctx)
		tctx->in_receive = 1;
	return 0;
}

/*
 * Lowers the level if the receive has emptied the queue. A message that is queued between the two looks
 * is seen by the second one; one that is queued later raises the level by itself.
 */
static int receive_ends(struct socket *sock)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx = task_ctx_of(p);
	struct sock *sk = sock->sk;
	struct endpoint *ep;

	if (tctx)
		tctx->in_receive = 0;
	if (!tctx || !sk)
		return 0;
	ep = bpf_sk_storage_get(&endpoints, sk, NULL, 0);
	if (!ep || !ep->pending_for || sk->sk_receive_queue.qlen)
		return 0;
	clear_pending(ep);
	if (sk->sk_receive_queue.qlen)
		raise_pending(ep, task_id(p), tctx);
	return 0;
}

#define RECEIVE_HOOKS(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_receive, struct socket *sock)				\
{										\
	return receive_begins(sock);						\
}										\
SEC("fexit/" #function)								\
int BPF_PROG(on_##name##_received, struct socket *sock)				\
{										\
	return receive_ends(sock);						\
}

RECEIVE_HOOKS(inet, inet_recvmsg)
RECEIVE_HOOKS(inet6, inet6_recvmsg)
RECEIVE_HOOKS(unix_stream, unix_stream_recvmsg)
RECEIVE_HOOKS(unix_dgram, unix_dgram_recvmsg)

#define POLL_HOOK(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_poll, struct file *file, struct socket *sock)		\
{										\
	note_receiver(sock);							\
	return 0;								\
}

POLL_HOOK(tcp, tcp_poll)
POLL_HOOK(udp, udp_poll)
POLL_HOOK(unix, unix_poll)
POLL_HOOK(unix_dgram, unix_dgram_poll)

/* The first to use a socket owns it until somebody receives there. */
static int note_sender(struct socket *sock)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct task_ctx *tctx = task_ctx_of(p);
	struct endpoint *ep = tctx ? endpoint_of(sock) : NULL;

	if (ep && !ep->receiver)
		ep->receiver = task_id(p);
	return 0;
}

#define SEND_HOOK(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_send, struct socket *sock)				\
{										\
	return note_sender(sock);						\
}

SEND_HOOK(inet, inet_sendmsg)
SEND_HOOK(inet6, inet6_sendmsg)
SEND_HOOK(unix_stream, unix_stream_sendmsg)
SEND_HOOK(unix_dgram, unix_dgram_sendmsg)

#define RELEASE_HOOK(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_release, struct socket *sock)				\
{										\
	struct sock *sk = sock->sk;						\
	struct endpoint *ep;							\
										\
	ep = sk ? bpf_sk_storage_get(&endpoints, sk, NULL, 0) : NULL;		\
	if (ep)									\
		clear_pending(ep);						\
	return 0;								\
}

RELEASE_HOOK(inet, inet_release)
RELEASE_HOOK(unix, unix_release)

#endif
