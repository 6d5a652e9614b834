/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sock_ops, XDP and tc have in common (wire.bpf.c): which machine is a peer, what a message takes along, and what
 * of that is believed.
 */
#ifndef COSCHED_WIRE_EPOCH_BPF_H
#define COSCHED_WIRE_EPOCH_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "wire_notes.bpf.h"
#include "../policies/wire.h"

/* Set by the loader before these programs start. */
const volatile struct cosched_wire_key wire_key;

/* The networks that peers are in (--peer). */
struct {
	__uint(type, BPF_MAP_TYPE_LPM_TRIE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, COSCHED_WIRE_PEERS);
	__type(key, struct cosched_wire_network);
	__type(value, u32);
} wire_peers SEC(".maps");

static struct cosched_wire_key key_of_cluster(void)
{
	struct cosched_wire_key key = {
		.words = { wire_key.words[0], wire_key.words[1] },
		.is_set = wire_key.is_set,
	};

	return key;
}

/* Is what comes along @flow from another machine, and from a configured network? */
static bool is_from_peer(const struct cosched_wire_flow *flow)
{
	struct cosched_wire_network network = { .prefix = 128 };

	if (wire_is_own(flow))
		return false;
	__builtin_memcpy(network.address, flow->from, sizeof(network.address));
	return bpf_map_lookup_elem(&wire_peers, &network);
}

/* What a message that is sent from here and now takes along. */
static void describe_sender(struct cosched_wire_message *message)
{
	u64 now = bpf_ktime_get_ns(), ends_at;
	struct cpu_ctx *cctx;

	cctx = cpu_ctx_of(bpf_get_smp_processor_id());
	if (!cctx)
		return;
	if (cctx->curr_sizes) {
		message->news.tai_ns = bpf_ktime_get_tai_ns() + cctx->clock_ahead_ns;
		message->news.theta = cctx->curr_theta;
		message->news.sizes = cctx->curr_sizes;
		message->job = cctx->curr_job;
		return;
	}
	message->epoch = cctx->epoch;
	if (cctx->curr_effective)
		message->waits_us = cctx->curr_waits_us;
	ends_at = cctx->slice_ends_at;
	if (cctx->curr_effective && ends_at > now)
		message->slice_ns = ends_at - now;
}

/* A packet that leaves takes @message along. */
static void count_sent(const struct cosched_wire_message *message)
{
	if (message->news.sizes)
		count(COSCHED_COUNTER_news_sent);
	else if (message->epoch)
		count(COSCHED_COUNTER_epochs_sent);
}

/*
 * An option has come along @flow. It is noted if a peer has written it, except an epoch that is not of this time.
 * False if no peer has written it.
 */
static bool note_option(struct cosched_wire_note *note, const u8 *option, const struct cosched_wire_flow *flow)
{
	struct cosched_wire_key key = key_of_cluster();
	struct cosched_wire_message message = {};

	if (!cosched_wire_decode(&message, option, flow, &key)) {
		count(COSCHED_COUNTER_epochs_refused);
		return false;
	}
	note->noted_at = bpf_ktime_get_ns();
	if (message.news.sizes) {
		message.news.tai_ns = cosched_wire_time(message.news.tai_ns, bpf_ktime_get_tai_ns());
		note->news = message.news;
		note->job = message.job;
		note->epoch = 0;
		count(COSCHED_COUNTER_news_heard);
		return true;
	}
	note->news.sizes = 0;
	note->slice_ns = message.slice_ns;
	note->waits_us = message.waits_us;
	if (!message.epoch)
		return true;
	if (!cosched_wire_credible(message.epoch, bpf_ktime_get_tai_ns())) {
		count(COSCHED_COUNTER_epochs_refused);
		note->epoch = 0;
		return true;
	}
	note->epoch = message.epoch;
	count(COSCHED_COUNTER_epochs_heard);
	return true;
}

#endif
