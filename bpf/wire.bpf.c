/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Epochs on the wire: TCP segments to peers take along the epoch of the CPU that sends them and what is left of its
 * task's slice, and what comes from peers is noted before the message reaches its socket (policies/wire.h; thesis 3.3,
 * 4.2, 6.2.7).
 *
 * An object of its own, of programs that call no kfunc, which outlives a restart of the scheduler. It shares three maps
 * with it: the CPUs' epochs, the counters, and the notes (wire.bpf.h).
 *
 *	sock_ops	writes the option into segments with data, and reads it when TCP takes a segment up
 *	XDP		reads it before that. It matters: while a receiver that was preempted inside receive holds its
 *			socket's lock, segments wait in the backlog, and TCP takes them up when that receiver runs again.
 *			The message is seen before (sockets.bpf.h), and so must be what it carries
 *
 * Of a node with two CPUs, CPU 0 in epoch 7 with a task that sends: TCP asks how long the header is to be (reserve), and
 * then for the option (write): epoch 7, 12 ms. The packet comes to the other node's interface, where XDP finds the option
 * and the connection's note, and notes epoch 7, 12 ms. TCP queues the data, the hook on its socket takes what is noted
 * for what the message carries, and the gate holds 7 against the epoch of the receiver's CPU.
 *
 * What a softirq sends (more of a long message, when an acknowledgement makes room) comes from any CPU, which may have
 * nothing to do with the sender. The task that sends holds the socket's lock, a softirq that sends does not: it takes
 * what the task sent last, without the slice, which may be over.
 *
 * A peer that does not know the option ignores it, and costs the bytes. So an end that has sent it UNHEARD_MAX times and
 * heard none ceases until it hears one. One that only receives sends it with every HEARD_PER_REPLY-th acknowledgement.
 *
 * Where it hurts: the option keeps a segment off the kernel's short path for expected headers, and segments with
 * different options are not merged by GRO. Connections that were there before these programs carry none. XDP believes a
 * segment before TCP has checked its sequence number: without a key, whoever can send in the name of a peer and knows
 * ports can have it count for one of its epochs, within the window.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "intf.h"
#include "cpu.bpf.h"
#include "wire.bpf.h"

#define AF_INET			2
#define AF_INET6		10
#define NSEC_PER_SEC		1000000000ULL
#define BPF_WRITE_HDR_TCP_CURRENT_MSS 1	/* not in vmlinux.h: an enum without a name */
#define UNHEARD_MAX		64
#define HEARD_PER_REPLY		16

char _license[] SEC("license") = "GPL";

/* Set by the loader before these programs start. */
const volatile struct cosched_wire_key wire_key;

/* What this end of a connection has sent and heard, with the socket. */
struct wire_socket {
	u64 epoch;		/* that its task sent last */
	u32 unheard;		/* segments sent with the option since one was heard */
	u32 heard;		/* segments that brought one */
	u32 owes;		/* the next acknowledgement takes one */
	u32 reserved;
};

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct wire_socket);
} wire_sockets SEC(".maps");

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

/* An option has come along @flow: has it been written by a peer, and is it of this time? Then it is noted. */
static bool note_option(struct cosched_wire_note *note, const u8 *option, const struct cosched_wire_flow *flow)
{
	struct cosched_wire_key key = key_of_cluster();
	struct cosched_wire_message message = {};

	if (!cosched_wire_decode(&message, option, flow, &key)) {
		count(COSCHED_COUNTER_epochs_refused);
		return false;
	}
	if (!message.epoch)
		return true;
	if (!cosched_wire_credible(message.epoch, bpf_ktime_get_tai_ns())) {
		count(COSCHED_COUNTER_epochs_refused);
		note->epoch = 0;
		return true;
	}
	note->slice_ns = message.slice_ns;
	note->noted_at = bpf_ktime_get_ns();
	note->epoch = message.epoch;
	count(COSCHED_COUNTER_epochs_heard);
	return true;
}

/* A field of the context. The verifier allows no computed address of one, which the compiler would like to make. */
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

/* Is what comes along @flow from another machine, and from a configured network? */
static bool is_from_peer(const struct cosched_wire_flow *flow)
{
	struct cosched_wire_network network = { .prefix = 128 };

	if (flow->from[3] == flow->to[3] && flow->from[0] == flow->to[0] && flow->from[1] == flow->to[1] &&
	    flow->from[2] == flow->to[2])
		return false;
	__builtin_memcpy(network.address, flow->from, sizeof(network.address));
	return bpf_map_lookup_elem(&wire_peers, &network);
}

static struct wire_socket *wire_socket_of(struct bpf_sock_ops *skops, u64 flags)
{
	struct bpf_sock *sk = skops->sk;

	return sk ? bpf_sk_storage_get(&wire_sockets, sk, NULL, flags) : NULL;
}

static void set_writes(struct bpf_sock_ops *skops, bool writes)
{
	u32 flags = skops->bpf_sock_ops_cb_flags;

	if (writes)
		flags |= BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	else
		flags &= ~BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG;
	bpf_sock_ops_cb_flags_set(skops, flags);
}

/* A connection is there: it is to a peer, or of no interest ever after. */
static void begin_connection(struct bpf_sock_ops *skops)
{
	struct cosched_wire_note note = {};
	struct cosched_wire_flow flow;

	flow_of(&flow, skops, true);
	if (!is_from_peer(&flow))
		return;
	if (!wire_socket_of(skops, BPF_SK_STORAGE_GET_F_CREATE) ||
	    bpf_map_update_elem(&wire_notes, &flow, &note, BPF_ANY)) {
		count(COSCHED_COUNTER_endpoints_full);
		return;
	}
	bpf_sock_ops_cb_flags_set(skops, skops->bpf_sock_ops_cb_flags | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG |
					 BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_STATE_CB_FLAG);
}

/*
 * TCP asks how long the header is to be: of a segment, or of segments to come, which all might have data. Those without
 * data bring no message, and go without, but for the replies that a peer needs who is only ever sent acknowledgements.
 */
static void reserve_option(struct bpf_sock_ops *skops)
{
	struct cosched_wire_key key = key_of_cluster();

	if (skops->args[0] != BPF_WRITE_HDR_TCP_CURRENT_MSS && !skops->skb_len) {
		struct wire_socket *socket = wire_socket_of(skops, 0);

		if (!socket || !socket->owes)
			return;
	}
	bpf_reserve_hdr_opt(skops, cosched_wire_length(&key), 0);
}

/* Is it a task that sends, and not a softirq? */
static bool a_task_sends(struct bpf_sock_ops *skops)
{
	struct bpf_sock *sk = skops->sk;
	struct tcp_sock *tp = sk ? bpf_skc_to_tcp_sock(sk) : NULL;

	return tp && tp->inet_conn.icsk_inet.sk.sk_lock.owned;
}

/* What a message takes along that is sent from here and now. */
static void describe_sender(struct cosched_wire_message *message)
{
	u64 now = bpf_ktime_get_ns(), ends_at;
	struct cpu_ctx *cctx;

	cctx = cpu_ctx_of(bpf_get_smp_processor_id());
	if (!cctx)
		return;
	message->epoch = cctx->epoch;
	ends_at = cctx->slice_ends_at;
	if (cctx->curr_scale && ends_at > now)
		message->slice_ns = ends_at - now;
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
		socket->epoch = message.epoch;
	} else {
		message.epoch = socket->epoch;
	}
	flow_of(&flow, skops, false);
	cosched_wire_encode(option, &message, &flow, &key);
	if (bpf_store_hdr_opt(skops, option, key.is_set ? COSCHED_WIRE_SIGNED_LENGTH : COSCHED_WIRE_LENGTH, 0))
		return;
	socket->owes = 0;
	if (message.epoch)
		count(COSCHED_COUNTER_epochs_sent);
	if (++socket->unheard >= UNHEARD_MAX)
		set_writes(skops, false);
}

/* TCP has taken up a segment of a peer with an option that TCP does not know. */
static void parse_option(struct bpf_sock_ops *skops)
{
	u8 option[COSCHED_WIRE_SIGNED_LENGTH] = {
		COSCHED_WIRE_KIND, 4, COSCHED_WIRE_EXID >> 8, COSCHED_WIRE_EXID & 0xff,
	};
	struct wire_socket *socket = wire_socket_of(skops, 0);
	struct cosched_wire_note *note, none = {};
	struct cosched_wire_flow flow;

	if (!socket || bpf_load_hdr_opt(skops, option, sizeof(option), 0) < 0)
		return;
	flow_of(&flow, skops, true);
	note = bpf_map_lookup_elem(&wire_notes, &flow);
	if (!note) {
		/* It has made way for others, or these programs are not those that the connection began with. */
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

SEC("sockops")
int on_tcp_option(struct bpf_sock_ops *skops)
{
	switch (skops->op) {
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		begin_connection(skops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		reserve_option(skops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_option(skops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		parse_option(skops);
		break;
	case BPF_SOCK_OPS_STATE_CB:
		if (skops->args[1] == BPF_TCP_CLOSE)
			end_connection(skops);
		break;
	}
	return 1;
}

#include "wire_packet.bpf.h"

SEC("xdp.frags")
int on_xdp(struct xdp_md *ctx)
{
	u8 option[COSCHED_WIRE_SIGNED_LENGTH] = {};
	struct cosched_wire_flow flow = {};
	struct cosched_wire_note *note;

	if (!find_option(ctx, &flow, option))
		return XDP_PASS;
	note = bpf_map_lookup_elem(&wire_notes, &flow);
	if (!note)
		count(COSCHED_COUNTER_epochs_refused);
	else if (note_option(note, option, &flow))
		note->xdp_at = bpf_ktime_get_ns();
	return XDP_PASS;
}
