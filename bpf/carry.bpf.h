/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a message carries from its sender's node to its receiver: the epoch, what is left of the sender's slice, and how
 * long the sender's waits take.
 *
 * Between the CPUs of one kernel nothing has to be written into a message: the last stage of its delivery runs on the
 * CPU that it was sent from, right behind the sender, so what it would carry is read off that CPU. A TCP message that
 * comes from another machine, a configured peer, carries the epoch and the slice in its header, and they have been noted
 * by now (wire.bpf.c). All others carry nothing: their epoch is not known to be old, and their sender's slice not to be
 * short.
 */
#ifndef COSCHED_CARRY_BPF_H
#define COSCHED_CARRY_BPF_H

#include "wire.bpf.h"

#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10
#define EPOCH_UNKNOWN	(~0ULL)

/* Do messages at @sk come from this kernel? */
static bool is_local(const struct sock *sk)
{
	switch (sk->__sk_common.skc_family) {
	case AF_UNIX:
		return true;
	case AF_INET:
		return sk->__sk_common.skc_daddr == sk->__sk_common.skc_rcv_saddr;
	case AF_INET6:
		return sk->__sk_common.skc_v6_daddr.in6_u.u6_addr32[3] ==
			sk->__sk_common.skc_v6_rcv_saddr.in6_u.u6_addr32[3];
	default:
		return false;
	}
}

/* What is left of the slice of the task that runs on @cctx's CPU, in ns; 0: nothing, or it is not known. */
static u64 rest_of_slice(const struct cpu_ctx *cctx, u64 now)
{
	u64 used_ns = now - cctx->curr_slice_since;

	return cctx->curr_scale && (s64)used_ns > 0 && used_ns < cctx->curr_slice_ns ? cctx->curr_slice_ns - used_ns : 0;
}

/* Messages to @sk go along this flow; false if they do so without epochs. */
static bool flow_to(struct cosched_wire_flow *flow, const struct sock *sk)
{
	const struct sock_common *common = &sk->__sk_common;

	if (sk->sk_protocol != IPPROTO_TCP)
		return false;
	if (common->skc_family == AF_INET) {
		wire_map_ipv4(flow->from, common->skc_daddr);
		wire_map_ipv4(flow->to, common->skc_rcv_saddr);
	} else if (common->skc_family == AF_INET6) {
		__builtin_memcpy(flow->from, &common->skc_v6_daddr, sizeof(flow->from));
		__builtin_memcpy(flow->to, &common->skc_v6_rcv_saddr, sizeof(flow->to));
	} else {
		return false;
	}
	flow->from_port = common->skc_dport;
	flow->to_port = bpf_htons(common->skc_num);
	return true;
}

/* What is left of the slice that @note was written in, in ns; 0: it is over, or it is not known. */
static u64 rest_of_noted(const struct cosched_wire_note *note)
{
	u64 passed_ns = bpf_ktime_get_ns() - note->noted_at;

	return passed_ns < note->slice_ns ? note->slice_ns - passed_ns : 0;
}

/* A message arrives for @tctx that carries nothing. */
static void carry_nothing(struct task_ctx *tctx)
{
	tctx->message_wired = 0;
	tctx->message_epoch = EPOCH_UNKNOWN;
	tctx->message_slice_ns = 0;
}

/* Hands what the message that arrives at @sk from another machine carries to @tctx. */
static void carry_from_afar(struct task_ctx *tctx, const struct sock *sk)
{
	struct cosched_wire_note *note = NULL;
	struct cosched_wire_flow flow;

	if (wire_on && flow_to(&flow, sk))
		note = bpf_map_lookup_elem(&wire_notes, &flow);
	tctx->message_wired = note && note->epoch;
	tctx->message_epoch = tctx->message_wired ? note->epoch : EPOCH_UNKNOWN;
	tctx->message_slice_ns = tctx->message_wired ? rest_of_noted(note) : 0;
}

/* Hands what the message that arrives at @sk carries to @tctx, its receiver. */
static void carry(struct task_ctx *tctx, const struct sock *sk)
{
	const struct cosched_policy *policy = current_policy();
	struct cpu_ctx *sender_cctx;
	struct task_ctx *sender;

	if (!cosched_uses_epochs(policy) && !policy->residual_slice &&
	    policy->spin != COSCHED_SPIN_ADAPTIVE_GLOBAL)
		return;
	sender_cctx = is_local(sk) ? cpu_ctx_of(bpf_get_smp_processor_id()) : NULL;
	if (!sender_cctx) {
		carry_from_afar(tctx, sk);
		return;
	}
	tctx->message_wired = 0;
	tctx->message_epoch = sender_cctx->epoch;
	tctx->message_slice_ns = rest_of_slice(sender_cctx, scx_bpf_now());
	sender = task_ctx_of(bpf_get_current_task_btf());
	if (sender)
		spin_adaptive_hear(&tctx->wait_history, sender->wait_history.estimate_us);
}

#endif
