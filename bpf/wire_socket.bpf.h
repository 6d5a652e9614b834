/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What sock_ops does for epochs on the wire (wire.bpf.c): what a segment takes along, and what a segment that TCP takes
 * up has brought.
 */
#ifndef COSCHED_WIRE_SOCKET_BPF_H
#define COSCHED_WIRE_SOCKET_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "units.h"
#include "wire_epoch.bpf.h"
#include "wire_notes.bpf.h"
#include "../policies/wire.h"

#define UNHEARD_MAX		64
#define HEARD_PER_REPLY		16
#define NEWS_INTERVAL_NS	(4 * NSEC_PER_MSEC)	/* between news that say the same */

/* Not in vmlinux.h: a macro, and values of enums without a name. */
#define SOL_TCP			6
#define TCP_BPF_SOCK_OPS_CB_FLAGS	1008
#define BPF_WRITE_HDR_TCP_CURRENT_MSS	1

/* What this end of a connection has sent and heard, kept with the socket. */
struct wire_socket {
	struct cosched_wire_message last;	/* that its task sent, without the slice */
	u32 unheard;		/* segments sent with the option since one was heard */
	u32 heard;		/* segments that brought one */
	u32 owes;		/* the next acknowledgement takes one */
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wire_socket);
} wire_sockets SEC(".maps");

/* A field of the context. The verifier allows no computed address of a field, which the compiler would like to make. */
#define FIELD(field) (*(volatile u32 *)&(field))

/*
 * The addresses of the flow of what comes in at this socket, or of what goes out. Inline, since a function may leave no
 * pointer to a stack where its result would be.
 */
static __always_inline void flow_of(struct cosched_wire_flow *flow, struct bpf_sock_ops *skops, bool incoming)
{
	u32 peer[4] = { FIELD(skops->remote_ip6[0]), FIELD(skops->remote_ip6[1]), FIELD(skops->remote_ip6[2]),
			FIELD(skops->remote_ip6[3]) };
	u32 own[4] = { FIELD(skops->local_ip6[0]), FIELD(skops->local_ip6[1]), FIELD(skops->local_ip6[2]),
		       FIELD(skops->local_ip6[3]) };
	u32 peer_ipv4 = FIELD(skops->remote_ip4), own_ipv4 = FIELD(skops->local_ip4);
	u16 peer_port = FIELD(skops->remote_port) >> 16, own_port = bpf_htons(FIELD(skops->local_port));

	if (skops->family != AF_INET6) {
		wire_map_ipv4(peer, peer_ipv4);
		wire_map_ipv4(own, own_ipv4);
	}
	__builtin_memcpy(flow->from, incoming ? peer : own, sizeof(peer));
	__builtin_memcpy(flow->to, incoming ? own : peer, sizeof(own));
	flow->from_port = incoming ? peer_port : own_port;
	flow->to_port = incoming ? own_port : peer_port;
}

static struct wire_socket *wire_socket_of(struct bpf_sock_ops *skops, u64 flags)
{
	struct bpf_sock *sk = skops->sk;

	return sk ? bpf_sk_storage_get(&wire_sockets, sk, NULL, flags) : NULL;
}

static void set_writes(struct bpf_sock_ops *skops, bool writes)
{
	u32 flags = skops->bpf_sock_ops_cb_flags & ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;

	bpf_sock_ops_cb_flags_set(skops, writes ? flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG : flags);
}

/* What TCP is to call these programs for. */
#define CALLS (BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG |	\
	       BPF_SOCK_OPS_STATE_CB_FLAG)

/* A connection is there. If it is to no peer, it is of no interest ever after. */
static void begin_connection(struct bpf_sock_ops *skops)
{
	struct cosched_wire_note note = { .noted_at = bpf_ktime_get_ns() };
	struct cosched_wire_flow flow;

	flow_of(&flow, skops, true);
	if (!is_from_peer(&flow))
		return;
	if (!wire_socket_of(skops, BPF_SK_STORAGE_GET_F_CREATE) ||
	    bpf_map_update_elem(&wire_notes, &flow, &note, BPF_ANY)) {
		count(COSCHED_COUNTER_endpoints_full);
		return;
	}
	bpf_sock_ops_cb_flags_set(skops, skops->bpf_sock_ops_cb_flags | CALLS);
}

/*
 * The same for a connection that was there before these programs: it may have begun under a scheduler that has ended.
 * The loader has this run over all TCP sockets of its network namespace, once sock_ops is attached.
 */
static void adopt(struct sock_common *common, struct tcp_sock *tcp)
{
	int calls = tcp->bpf_sock_ops_cb_flags | CALLS;
	struct cosched_wire_note note = { .noted_at = bpf_ktime_get_ns() };
	struct cosched_wire_flow flow = {};
	struct wire_socket *socket;

	if (common->skc_state != BPF_TCP_ESTABLISHED || !flow_of_connection(&flow, common) || !is_from_peer(&flow))
		return;
	socket = bpf_sk_storage_get(&wire_sockets, tcp, NULL, BPF_SK_STORAGE_GET_F_CREATE);
	if (!socket || bpf_map_update_elem(&wire_notes, &flow, &note, BPF_NOEXIST) ||
	    bpf_setsockopt(tcp, SOL_TCP, TCP_BPF_SOCK_OPS_CB_FLAGS, &calls, sizeof(calls))) {
		count(COSCHED_COUNTER_endpoints_full);
		return;
	}
	/* The other end may have ceased while nothing answered here. */
	socket->owes = 1;
}

/* Is it a task that sends, and not a softirq? */
static bool a_task_sends(struct bpf_sock_ops *skops)
{
	struct bpf_sock *sk = skops->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	return tp && tp->inet_conn.icsk_inet.sk.sk_lock.owned;
}

/*
 * Has @socket just told the news of its sender's job? They are the same for many turns. To sign and verify them in
 * each segment took a tenth of a fine-grained job's share (docs/beat.md). Their clock is as good a while later.
 */
static bool has_told(struct bpf_sock_ops *skops, const struct wire_socket *socket)
{
	const struct cosched_wire_message *last = &socket->last;
	struct cpu_ctx *cctx = cpu_ctx_of(bpf_get_smp_processor_id());

	if (!last->news.sizes || !cctx ||
	    bpf_ktime_get_tai_ns() + cctx->clock_ahead_ns - last->news.tai_ns >= NEWS_INTERVAL_NS)
		return false;
	return !a_task_sends(skops) || (cctx->curr_sizes == last->news.sizes &&
					cctx->curr_theta == last->news.theta && cctx->curr_job == last->job);
}

/*
 * Does the segment that TCP is about to send go without the option? Segments without data do, since they bring no
 * message. Replies to a peer that is only ever sent acknowledgements are the exception. Those with data do if there is
 * no news.
 */
static bool goes_without(struct bpf_sock_ops *skops)
{
	struct wire_socket *socket = wire_socket_of(skops, 0);

	if (!socket)
		return true;
	return skops->skb_len ? has_told(skops, socket) : !socket->owes;
}

/* TCP asks how long the header is to be: of a segment, or of segments to come, which all might have the option. */
static void reserve_option(struct bpf_sock_ops *skops)
{
	struct cosched_wire_key key = key_of_cluster();

	if (skops->args[0] == BPF_WRITE_HDR_TCP_CURRENT_MSS || !goes_without(skops))
		bpf_reserve_hdr_opt(skops, cosched_wire_length(&key), 0);
}

static void write_option(struct bpf_sock_ops *skops)
{
	struct wire_socket *socket = wire_socket_of(skops, 0);
	struct cosched_wire_key key = key_of_cluster();
	struct cosched_wire_message message = {};
	u8 option[COSCHED_WIRE_SIGNED_LENGTH] = {};
	struct cosched_wire_flow flow;

	if (!socket)
		return;
	if (a_task_sends(skops)) {
		describe_sender(&message);
		socket->last = message;
		socket->last.slice_ns = 0;
	} else {
		message = socket->last;
	}
	flow_of(&flow, skops, false);
	cosched_wire_encode(option, &message, &flow, &key);
	if (bpf_store_hdr_opt(skops, option, cosched_wire_length(&key), 0))
		return;
	socket->owes = 0;
	count_sent(&message);
	if (++socket->unheard >= UNHEARD_MAX)
		set_writes(skops, false);
}

/* Does the segment that TCP has taken up have our option with this identifier? Then it is copied to @option. */
static bool load_option(struct bpf_sock_ops *skops, u8 *option, u16 exid)
{
	option[0] = COSCHED_WIRE_KIND;
	option[1] = 4;
	wire_put(option + 2, exid, 2);
	return bpf_load_hdr_opt(skops, option, COSCHED_WIRE_SIGNED_LENGTH, 0) >= 0;
}

/* TCP has taken up a segment of a peer with an option that TCP does not know. */
static void parse_option(struct bpf_sock_ops *skops)
{
	u8 option[COSCHED_WIRE_SIGNED_LENGTH] = {};
	struct wire_socket *socket = wire_socket_of(skops, 0);
	struct cosched_wire_note *note, none = {};
	struct cosched_wire_flow flow;

	if (!socket || (!load_option(skops, option, COSCHED_WIRE_EXID) &&
			!load_option(skops, option, COSCHED_WIRE_NEWS_EXID) &&
			!load_option(skops, option, COSCHED_WIRE_WAITS_EXID)))
		return;
	flow_of(&flow, skops, true);
	note = bpf_map_lookup_elem(&wire_notes, &flow);
	if (!note) {
		/* The note has made way for others, or the connection began with other programs than these. */
		bpf_map_update_elem(&wire_notes, &flow, &none, BPF_ANY);
		note = bpf_map_lookup_elem(&wire_notes, &flow);
	}
	/* What XDP has seen need not be read again; nor is it news if the segment has waited in the backlog. */
	if (!note || (bpf_ktime_get_ns() - note->xdp_at > NSEC_PER_SEC && !note_option(note, option, &flow)))
		return;
	socket->unheard = 0;
	if (++socket->heard % HEARD_PER_REPLY == 0)
		socket->owes = 1;
	if (!(skops->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG))
		set_writes(skops, true);
}

static void end_connection(struct bpf_sock_ops *skops)
{
	struct cosched_wire_flow flow;

	flow_of(&flow, skops, true);
	bpf_map_delete_elem(&wire_notes, &flow);
}

#endif
