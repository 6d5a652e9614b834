/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a message carries from its sender's node to its receiver. That is the epoch, with what is left of the sender's
 * slice or how long the sender's waits take.
 *
 * Between the CPUs of one kernel nothing has to be written into a message. The last stage of its delivery runs on the
 * CPU that it was sent from, right behind the sender. So what it would carry is read off that CPU. A TCP message or a
 * datagram from another machine, a configured peer, carries the epoch with the slice or the waits. Or it carries news
 * of its job's turns (beat.h). Either has been noted by now (wire.bpf.c). All other messages carry nothing: their epoch
 * is not known to be old, and their sender's slice is not known to be short.
 */
#ifndef COSCHED_CARRY_BPF_H
#define COSCHED_CARRY_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "state.bpf.h"
#include "units.h"
#include "wire_notes.bpf.h"
#include "../policies/beat.h"
#include "../policies/gate_epochs.h"
#include "../policies/policy.h"
#include "../policies/spin_adaptive.h"
#include "../policies/wire.h"

#define AF_UNIX		1
#define EPOCH_UNKNOWN	(~0ULL)
#define NOTE_LASTS_NS	((s64)NSEC_PER_SEC)	/* a message that brings an epoch arrives right after that was noted */

/* What is left of the slice of the task that runs on @cctx's CPU, in ns; 0: nothing, or it is not known. */
static u64 rest_of_slice(const struct cpu_ctx *cctx, u64 now)
{
	u64 used_ns = now - cctx->curr_slice_since;

	if (!cctx->curr_effective || (s64)used_ns < 0 || used_ns >= cctx->curr_slice_ns)
		return 0;
	return cctx->curr_slice_ns - used_ns;
}

/*
 * Writes to @flow along which flow the last datagram in the queue of @sk has come; false if it has been taken. The
 * sender to a socket that is not connected is named in the headers alone. They are read as the kernel's memory. The
 * datagram may be taken meanwhile, and then what is read is of no datagram, or of another one.
 */
static bool flow_of_datagram(struct cosched_wire_flow *flow, const struct sock *sk)
{
	struct sk_buff *skb = sk->sk_receive_queue.prev;
	u32 addresses[2] = {};
	u64 ip, udp;
	u8 version = 0;

	if ((u64)skb == (u64)&sk->sk_receive_queue)
		return false;
	ip = (u64)BPF_CORE_READ(skb, head);
	udp = ip + BPF_CORE_READ(skb, transport_header);
	ip += BPF_CORE_READ(skb, network_header);
	if (bpf_probe_read_kernel(&version, sizeof(version), (void *)ip) ||
	    bpf_probe_read_kernel(&flow->from_port, 2 * sizeof(flow->from_port), (void *)udp))
		return false;
	if (version >> 4 == 6)
		return !bpf_probe_read_kernel(flow, sizeof(flow->from) + sizeof(flow->to),
					      (void *)(ip + offsetof(struct ipv6hdr, saddr)));
	if (bpf_probe_read_kernel(addresses, sizeof(addresses), (void *)(ip + offsetof(struct iphdr, saddr))))
		return false;
	wire_map_ipv4(flow->from, addresses[0]);
	wire_map_ipv4(flow->to, addresses[1]);
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

/*
 * @tctx hears what was noted of its job's turns. Its CPU will tell the job (beat.bpf.h), since that takes a lock, which
 * a hook may not take. Two messages that arrive at once may be heard as one. The messages after them repeat the news.
 */
static void gather_news(struct task_ctx *tctx, const struct cosched_wire_note *note)
{
	u64 tai_ns = bpf_ktime_get_tai_ns(), ahead_ns = note->news.tai_ns - tai_ns;

	if ((s64)ahead_ns > (s64)tctx->news_ahead_ns)
		tctx->news_ahead_ns = ahead_ns;
	beat_gather(&tctx->news, current_policy(), &note->news, tai_ns + READ_ONCE(beat_ahead_ns));
}

/*
 * Hands what was noted of a message from another machine to @tctx. @tells: if the node at the other end drew, it would
 * say so. By TCP it would, and by datagrams that go one way it would not.
 */
static void carry_noted(struct task_ctx *tctx, const struct cosched_wire_note *note, bool tells)
{
	s64 noted_ns = note ? bpf_ktime_get_ns() - note->noted_at : 0;
	/* Without this bound, a peer that has ceased to tell would be taken for a peer that stays in its epoch. */
	u64 epoch = note && noted_ns < NOTE_LASTS_NS ? READ_ONCE(note->epoch) : 0;

	if (note && tells && is_beat() && tctx->news_job && noted_ns > 0 && beat_is_silent(current_policy(), noted_ns))
		tctx->astray = 1;
	if (note && note->news.sizes && is_beat() && note->job + 1 == tctx->news_job)
		gather_news(tctx, note);
	if (!epoch) {
		carry_nothing(tctx);
		return;
	}
	tctx->message_wired = 1;
	tctx->message_epoch = epoch;
	tctx->message_slice_ns = rest_of_noted(note);
	spin_adaptive_hear(&tctx->wait_history, note->waits_us);
}

/* Hands what the running task would write into a message to @tctx. */
static void carry_own(struct task_ctx *tctx)
{
	struct cpu_ctx *sender_cctx = cpu_ctx_of(bpf_get_smp_processor_id());
	struct task_ctx *sender;

	if (!sender_cctx) {
		carry_nothing(tctx);
		return;
	}
	tctx->message_wired = 0;
	tctx->message_epoch = sender_cctx->epoch;
	tctx->message_slice_ns = rest_of_slice(sender_cctx, scx_bpf_now());
	sender = task_ctx_of(bpf_get_current_task_btf());
	if (sender)
		spin_adaptive_hear(&tctx->wait_history, sender->wait_history.estimate_us);
}

/* A message arrives at the socket at @addr for @tctx, which gets what it carries. Not static: see has_message(). */
__noinline int carry_message(struct task_ctx *tctx __arg_nonnull, u64 addr)
{
	struct sock *sk = bpf_core_cast((void *)addr, struct sock);
	struct cosched_wire_flow flow = {};
	struct cosched_wire_note *note = NULL;
	bool is_known;

	is_known = sk->sk_protocol == IPPROTO_UDP ? flow_of_datagram(&flow, sk) :
						    flow_of_connection(&flow, &sk->__sk_common);
	if (sk->__sk_common.skc_family == AF_UNIX || (is_known && wire_is_own(&flow))) {
		carry_own(tctx);
		return 0;
	}
	is_known = is_known && wire_on && wire_is_here(sk);
	if (is_known && sk->sk_protocol == IPPROTO_UDP)
		note = bpf_map_lookup_elem(&wire_datagrams, &flow);
	else if (is_known && sk->sk_protocol == IPPROTO_TCP)
		note = bpf_map_lookup_elem(&wire_notes, &flow);
	carry_noted(tctx, note, sk->sk_protocol == IPPROTO_TCP);
	return 0;
}

/* Does it matter to the policy what messages carry? */
static bool policy_reads_messages(void)
{
	const struct cosched_policy *policy = current_policy();

	return cosched_uses_epochs(policy) || policy->residual_slice || policy->spin == COSCHED_SPIN_ADAPTIVE_GLOBAL ||
	       (wire_on && is_beat());
}

#endif
