/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a message carries from its sender's node to its receiver: the epoch, what is left of the sender's slice, and how
 * long the sender's waits take.
 *
 * Between the CPUs of one kernel nothing has to be written into a message: the last stage of its delivery runs on the
 * CPU that it was sent from, right behind the sender, so what it would carry is read off that CPU. A message that comes
 * from another machine carries nothing: its epoch is not known to be old, and its sender's slice not to be short.
 */
#ifndef COSCHED_CARRY_BPF_H
#define COSCHED_CARRY_BPF_H

#define AF_UNIX		1
#define AF_INET		2
#define AF_INET6	10
#define EPOCH_UNKNOWN	(~0ULL)

/* Do messages at @sk come from this kernel? */
static bool is_local(struct sock *sk)
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

/* Hands what the message that arrives at @sk carries to @tctx, its receiver. */
static void carry(struct task_ctx *tctx, struct sock *sk)
{
	const struct cosched_policy *policy = current_policy();
	struct cpu_ctx *sender_cctx;
	struct task_ctx *sender;

	if (!cosched_uses_epochs(policy) && !policy->residual_slice &&
	    policy->spin != COSCHED_SPIN_ADAPTIVE_GLOBAL)
		return;
	sender_cctx = is_local(sk) ? cpu_ctx_of(bpf_get_smp_processor_id()) : NULL;
	if (!sender_cctx) {
		tctx->message_epoch = EPOCH_UNKNOWN;
		tctx->message_slice_ns = 0;
		return;
	}
	tctx->message_epoch = sender_cctx->epoch;
	tctx->message_slice_ns = rest_of_slice(sender_cctx, scx_bpf_now());
	sender = task_ctx_of(bpf_get_current_task_btf());
	if (sender)
		spin_adaptive_hear(&tctx->wait_history, sender->wait_history.estimate_us);
}

#endif
