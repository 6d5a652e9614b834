/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hooks on sockets: which task receives where, what has arrived, and what has been consumed.
 *
 * Covers TCP and UDP over IPv4 and IPv6 and Unix sockets, through functions that they share.
 *
 *	arrives		sock_def_readable	in the receive queue, the waiters are about to be woken
 *			tcp_add_backlog		in the backlog, because the receiver holds the socket's lock
 *	is consumed	tcp_rcv_space_adjust	some bytes of a TCP stream
 *			skb_consume_udp		a UDP datagram
 *			unix_*_recvmsg		on a Unix socket
 *	is awaited	sk_wait_data, __skb_wait_for_more_packets, *_poll
 *	may come	sock_alloc_file, __inet_accept, unix_accept: whoever makes a socket will read it
 *	never comes	*_release
 *
 * Consuming and awaiting tell which task to run for the next message; making a socket does until then.
 *
 * The backlog matters. A spinning receiver is often preempted inside receive, where it holds its socket's
 * lock; packets that come then wait in the backlog and sock_def_readable is not called until that task runs
 * again, which is exactly when the demand is needed most.
 *
 * For TCP and UDP nothing runs when a poll finds nothing. Hooks on recvmsg would be simpler, but a spinning
 * receiver polls ten times per message, and they made such a job two to five times slower under emulation.
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
		raise_pending(ep, ep->receiver, tctx);
		demand_on_arrival(tctx);
	}
	bpf_task_release(p);
}

SEC("fentry/sock_def_readable")
int BPF_PROG(on_readable, struct sock *sk)
{
	/* The owner of the lock works off its own backlog: on_tcp_backlog was told of this before. */
	if (sk->sk_lock.owned)
		return 0;
	message_arrived(sk);
	return 0;
}

SEC("fentry/tcp_add_backlog")
int BPF_PROG(on_tcp_backlog, struct sock *sk)
{
	message_arrived(sk);
	return 0;
}

/* The current task makes, reads or awaits @sk: it is the one to run when a message arrives there. */
static struct endpoint *note_receiver(struct sock *sk)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct endpoint *ep;
	u64 id;

	ep = bpf_sk_storage_get(&endpoints, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!ep) {
		count(COSCHED_COUNTER_endpoints_full);
		return NULL;
	}
	id = task_id(p);
	if (ep->receiver != id)
		ep->receiver = id;
	return ep;
}

/* Is there nothing left to receive on @sk? */
static bool is_drained(struct sock *sk)
{
	if (sk->sk_protocol == IPPROTO_TCP) {
		struct tcp_sock *tp = bpf_core_cast(sk, struct tcp_sock);

		return tp->copied_seq == tp->rcv_nxt && !sk->sk_backlog.len;
	}
	if (sk->sk_protocol == IPPROTO_UDP) {
		struct udp_sock *up = bpf_core_cast(sk, struct udp_sock);

		return !sk->sk_receive_queue.qlen && !up->reader_queue.qlen;
	}
	return !sk->sk_receive_queue.qlen;
}

/*
 * The current task has received on @sk: lowers the level if that was the last message. A message that comes
 * between the two looks is seen by the second; one that comes later raises the level by itself.
 */
static int message_consumed(struct sock *sk)
{
	struct task_struct *p = bpf_get_current_task_btf();
	struct endpoint *ep = note_receiver(sk);
	struct task_ctx *tctx;

	if (!ep || !ep->pending_for || !is_drained(sk))
		return 0;
	clear_pending(ep);
	if (is_drained(sk))
		return 0;
	tctx = task_ctx_of(p);
	if (tctx)
		raise_pending(ep, task_id(p), tctx);
	return 0;
}

SEC("fentry/tcp_rcv_space_adjust")
int BPF_PROG(on_tcp_consumed, struct sock *sk)
{
	return message_consumed(sk);
}

SEC("fentry/skb_consume_udp")
int BPF_PROG(on_udp_consumed, struct sock *sk)
{
	return message_consumed(sk);
}

/*
 * The current task is about to sleep until a message comes: its claim to a share goes on (jobs.bpf.h). The mark is
 * taken back when it runs again.
 */
static int wait_begins(struct sock *sk)
{
	struct task_ctx *tctx = task_ctx_of(bpf_get_current_task_btf());

	note_receiver(sk);
	if (tctx)
		tctx->awaits = 1;
	return 0;
}

#define WAIT_HOOK(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_wait, struct sock *sk)					\
{										\
	return wait_begins(sk);							\
}

WAIT_HOOK(stream, sk_wait_data)
WAIT_HOOK(datagram, __skb_wait_for_more_packets)

/* Unix streams have a wait of their own, which compilers inline: the whole receive stands for it. */
#define UNIX_HOOKS(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_receive, struct socket *sock)				\
{										\
	struct sock *sk = sock->sk;						\
										\
	return sk ? wait_begins(sk) : 0;					\
}										\
SEC("fexit/" #function)								\
int BPF_PROG(on_##name##_received, struct socket *sock)				\
{										\
	struct sock *sk = sock->sk;						\
										\
	return sk ? message_consumed(sk) : 0;					\
}

UNIX_HOOKS(unix_stream, unix_stream_recvmsg)
UNIX_HOOKS(unix_dgram, unix_dgram_recvmsg)

/* A hook on a function whose argument @arg is a socket that the current task makes or polls. */
#define OWNER_HOOK(name, function, arg, args...)				\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name, args)							\
{										\
	struct sock *sk = arg->sk;						\
										\
	if (sk)									\
		note_receiver(sk);						\
	return 0;								\
}

OWNER_HOOK(tcp_poll, tcp_poll, sock, struct file *file, struct socket *sock)
OWNER_HOOK(udp_poll, udp_poll, sock, struct file *file, struct socket *sock)
OWNER_HOOK(unix_poll, unix_poll, sock, struct file *file, struct socket *sock)
OWNER_HOOK(unix_dgram_poll, unix_dgram_poll, sock, struct file *file, struct socket *sock)
OWNER_HOOK(socket, sock_alloc_file, sock, struct socket *sock)

SEC("fentry/__inet_accept")
int BPF_PROG(on_inet_accept, struct socket *sock, struct socket *newsock, struct sock *newsk)
{
	note_receiver(newsk);
	return 0;
}

SEC("fexit/unix_accept")
int BPF_PROG(on_unix_accept, struct socket *sock, struct socket *newsock)
{
	struct sock *sk = newsock->sk;

	if (sk)
		note_receiver(sk);
	return 0;
}

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
