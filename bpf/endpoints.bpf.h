/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Endpoints: the sockets and RDMA queues where messages for a task arrived lately, and what they say about it.
 *
 * A task remembers the addresses of a few, and holds no references. So an entry may be stale, but never wrong.
 */
#ifndef COSCHED_ENDPOINTS_BPF_H
#define COSCHED_ENDPOINTS_BPF_H

#include <scx/common.bpf.h>
#include "completions.bpf.h"
#include "hints.bpf.h"
#include "state.bpf.h"

/*
 * Is there still a socket at @addr? No reference is held, but reads through such a pointer are safe. What they find is
 * believed only if it is a socket that names itself. Nothing at an odd address does (completions.bpf.h).
 */
static bool is_socket(const struct sock *sk, u64 addr)
{
	struct socket *sock = sk->sk_socket;

	return sock && (u64)sock->sk == addr;
}

/* Does the socket at @addr hold data? */
static bool holds_data(u64 addr)
{
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);

	if (!is_socket(sk, addr))
		return false;
	switch (sk->sk_protocol) {
	case IPPROTO_TCP: {
		struct tcp_sock *tp = bpf_core_cast((void *)addr, struct tcp_sock);

		return tp->copied_seq != tp->rcv_nxt || sk->sk_backlog.len;
	}
	case IPPROTO_UDP: {
		struct udp_sock *up = bpf_core_cast((void *)addr, struct udp_sock);

		return sk->sk_receive_queue.qlen || up->reader_queue.qlen;
	}
	default:
		return sk->sk_receive_queue.qlen;
	}
}

/* Does the endpoint at @addr hold a message? @addr is no pointer: the verifier lets no bit of one be tested. */
static bool holds_message(u64 addr)
{
	return is_completions(addr) ? holds_completion(addr) : holds_data(addr);
}

static bool is_udp(u64 addr)
{
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);

	return is_socket(sk, addr) && sk->sk_protocol == IPPROTO_UDP;
}

/* How far the stream at @addr has been read. Only TCP says so. */
static u32 read_up_to(u64 addr)
{
	struct tcp_sock *tp = bpf_core_cast((void *)addr, struct tcp_sock);
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);

	return is_socket(sk, addr) && sk->sk_protocol == IPPROTO_TCP ? tp->copied_seq : 0;
}

/*
 * Has a message been read from the endpoint at @addr that is not answered yet? TCP knows. In a dialogue it owes the
 * peer an acknowledgement until it has data with which to send it.
 */
static bool owes_answer(u64 addr)
{
	struct inet_connection_sock *icsk = bpf_core_cast((void *)addr, struct inet_connection_sock);
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);

	if (is_completions(addr))
		return owes_completion(addr);
	return is_socket(sk, addr) && sk->sk_protocol == IPPROTO_TCP && icsk->icsk_ack.pending & ICSK_ACK_SCHED;
}

/* Is what @test asks true of one of the first FIRST_ENDPOINTS endpoints of @tctx? */
static __always_inline bool any_endpoint(const struct task_ctx *tctx, bool (*test)(u64 addr))
{
	u32 i;

	for (i = 0; i < FIRST_ENDPOINTS; i++) {
		u64 addr = READ_ONCE(tctx->endpoints[i]);

		if (addr && test(addr))
			return true;
	}
	return false;
}

/*
 * Does one of the further endpoints of @tctx hold a message? If none does, they are not looked at again until a message
 * arrives there. A message that arrives right now takes its place first, and then counts more_endpoints up.
 */
static bool holds_more(const struct task_ctx *tctx)
{
	u32 *more = (u32 *)&tctx->more_endpoints;
	u32 seen = READ_ONCE(*more), i;

	if (!seen)
		return false;
	full_barrier();
	bpf_for(i, FIRST_ENDPOINTS, TASK_ENDPOINTS) {
		const u64 *place = MEMBER_VPTR(tctx->endpoints, [i]);
		u64 addr = place ? READ_ONCE(*place) : 0;

		if (addr && holds_message(addr))
			return true;
	}
	return __sync_val_compare_and_swap(more, seen, 0) != seen;
}

/*
 * Is a message for @tctx waiting at one of the endpoints that it remembers, or does it say that there is one?
 *
 * Not static: the verifier walks through a static function once for each path to each of its callers, but through a
 * global function only once. When this function and ask() were static, it took minutes to load the scheduler.
 */
__noinline bool has_message(const struct task_ctx *tctx __arg_nonnull)
{
	return any_endpoint(tctx, holds_message) || holds_more(tctx) || hints_message(tctx);
}

/* Has @tctx read a message that it has not answered? Ask when it is stopped: TCP forgets in some 40 ms. */
__noinline bool has_question(const struct task_ctx *tctx __arg_nonnull)
{
	return any_endpoint(tctx, owes_answer);
}

static bool answered_at(u64 addr)
{
	return is_completions(addr) && has_answered_completion(addr);
}

/* Has @tctx answered what came by RDMA? Then it polls in user space for the next message, as far as can be told. */
__noinline bool has_answered(const struct task_ctx *tctx __arg_nonnull)
{
	return any_endpoint(tctx, answered_at) && !has_message(tctx);
}

/* A number that changes when @tctx reads from a stream which it remembers. */
__noinline u32 streams_read(const struct task_ctx *tctx __arg_nonnull)
{
	u32 i, sum = 0;

	for (i = 0; i < FIRST_ENDPOINTS; i++) {
		u64 addr = READ_ONCE(tctx->endpoints[i]);

		if (addr)
			sum += read_up_to(addr);
	}
	return sum;
}

/*
 * Is there a reason to ask for @tctx to run? If it was stopped with a question unanswered, its peer waits as much as if
 * a message were in the socket. Half of all slices of a pair end like that. Without this, nothing would ask for the
 * task to run again.
 */
static bool has_demand(const struct task_ctx *tctx)
{
	return tctx->owes || tctx->woken || has_message(tctx);
}

/* Has a message for @tctx arrived at @addr, as far as it remembers? */
static bool remembers_endpoint(const struct task_ctx *tctx, u64 addr)
{
	u32 i;

	bpf_for(i, 0, TASK_ENDPOINTS) {
		const u64 *place = MEMBER_VPTR(tctx->endpoints, [i]);

		if (place && READ_ONCE(*place) == addr)
			return true;
	}
	return false;
}

/* Does @place, one of a task's, remember @addr from now on? Not if the endpoint that it remembers holds a message. */
static bool take_place(u64 *place, u64 addr)
{
	u64 old = READ_ONCE(*place);

	if (old == addr)
		return true;
	if (old && holds_message(old))
		return false;
	return __sync_val_compare_and_swap(place, old, addr) == old;
}

/*
 * A message for @tctx has arrived at @addr: has_message() is to look there from now on. A task with a message in all of
 * its places has demand enough. Should it read all of them and not this one, it finds this one when it looks again by
 * itself (park.bpf.h). Not static: see has_message().
 */
__noinline int remember_endpoint(struct task_ctx *tctx __arg_nonnull, u64 addr)
{
	u32 i;

	for (i = 0; i < FIRST_ENDPOINTS; i++)
		if (READ_ONCE(tctx->endpoints[i]) == addr)
			return 0;
	bpf_for(i, 0, TASK_ENDPOINTS) {
		u64 *place = MEMBER_VPTR(tctx->endpoints, [i]);

		if (!place || !take_place(place, addr))
			continue;
		if (i >= FIRST_ENDPOINTS)
			__sync_fetch_and_add(&tctx->more_endpoints, 1);
		return 0;
	}
	return 0;
}

#endif
