/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Epochs on the wire (policies/wire.h; thesis 3.3, 4.2, 6.2.7). TCP segments and datagrams to peers take along the
 * epoch of the CPU that sends them, and what is left of its task's slice. Under beat they take along news of its job's
 * turns in place of both. What comes from peers is noted before the message reaches its socket.
 *
 * This is an object of its own, of programs that call no kfunc, and outlives a restart of the scheduler. It shares four
 * maps with the scheduler: the CPUs' epochs, the counters, and the notes (wire_notes.bpf.h).
 *
 *	sock_ops	writes the option into segments with data, unless its news have just been told, and reads it
 *			when TCP takes a segment up
 *	XDP		reads it before that. This matters while a receiver that was preempted inside receive holds its
 *			socket's lock. Segments then wait in the backlog, and TCP takes them up when that receiver runs
 *			again. The message is seen before (sockets.bpf.h), and so must be what it carries. Of datagrams
 *			only XDP reads it
 *	tc		puts the option behind datagrams as they leave
 *	iter		has TCP ask sock_ops for connections that were there before
 *
 * An example: on a node with two CPUs, CPU 0 is in epoch 7, and its task sends. TCP asks how long the header is to be
 * (reserve), and then for the option (write): epoch 7, 12 ms. The packet comes to the other node's interface. There XDP
 * finds the option and the connection's note, and notes epoch 7, 12 ms. TCP queues the data. The hook on its socket
 * takes what is noted for what the message carries. The gate compares 7 with the epoch of the receiver's CPU.
 *
 * A softirq may also send: more of a long message, when an acknowledgement makes room. What it sends comes from any
 * CPU, which may have nothing to do with the sender. A task that sends holds the socket's lock, and a softirq that
 * sends does not. So a softirq takes what the task sent last, without the slice, which may be over.
 *
 * A peer that does not know the option ignores it, and the bytes are spent for nothing. So an end that has sent it
 * UNHEARD_MAX times and heard none ceases until it hears one. An end that only receives sends it with an
 * acknowledgement after every HEARD_PER_REPLY segments that brought it.
 *
 * Where it hurts: the option keeps a segment off the kernel's short path for expected headers. GRO does not merge
 * segments with different options. XDP believes a segment before TCP has checked its sequence number. Without a key,
 * whoever can send in a peer's name and knows the ports can have any epoch within the window taken for the peer's.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "intf.h"
#include "cpu.bpf.h"
#include "wire_notes.bpf.h"

char _license[] SEC("license") = "GPL";

#include "wire_epoch.bpf.h"
#include "wire_socket.bpf.h"
#include "wire_packet.bpf.h"
#include "wire_datagram.bpf.h"

SEC("sockops")
int on_tcp_option(struct bpf_sock_ops *skops)
{
	if (bpf_get_netns_cookie(skops) != wire_namespace)
		return 1;
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

SEC("iter/tcp")
int on_connection(struct bpf_iter__tcp *ctx)
{
	struct sock_common *common = ctx->sk_common;
	struct tcp_sock *tcp = common ? bpf_skc_to_tcp_sock(common) : NULL;

	if (tcp)
		adopt(common, tcp);
	return 0;
}

SEC("xdp.frags")
int on_xdp(struct xdp_md *ctx)
{
	u8 option[COSCHED_WIRE_SIGNED_LENGTH] = {};
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	struct cosched_wire_flow flow = {};
	struct transport transport = {};
	struct cosched_wire_note *note;

	if (!find_transport(data, end, &flow, &transport))
		return XDP_PASS;
	if (transport.protocol == IPPROTO_UDP) {
		if (find_datagram_option(ctx, &transport, &flow, option))
			note_datagram(option, &flow);
		else
			forget_datagram(&flow);
		return XDP_PASS;
	}
	if (transport.protocol != IPPROTO_TCP || !find_option(ctx, transport.offset, &flow, option))
		return XDP_PASS;
	note = bpf_map_lookup_elem(&wire_notes, &flow);
	if (!note)
		count(COSCHED_COUNTER_epochs_refused);
	else if (note_option(note, option, &flow))
		note->xdp_at = bpf_ktime_get_ns();
	return XDP_PASS;
}

SEC("classifier")
int on_udp(struct __sk_buff *skb)
{
	struct datagram datagram = {};
	u32 *told;

	if (!find_datagram(skb, &datagram))
		return TC_ACT_UNSPEC;
	told = told_to(&datagram.flow);
	if (told && *told < TOLD_MAX && append_option(skb, &datagram))
		__sync_fetch_and_add(told, 1);
	return TC_ACT_UNSPEC;
}
