/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the messages of TCP connections and the datagrams from other machines brought last. It is written where a packet
 * comes in (wire.bpf.c), and read where it reaches its socket (carry.bpf.h): two objects share these maps.
 *
 * Notes are found by addresses and ports, since XDP knows no sockets. There is a note only for what comes from peers
 * that are believed. So a reader of a note need not ask which peer it is of. The note that was unused for longest makes
 * way for a new one.
 */
#ifndef COSCHED_WIRE_NOTES_BPF_H
#define COSCHED_WIRE_NOTES_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "intf.h"
#include "../policies/wire.h"

#define AF_INET		2
#define AF_INET6	10

/*
 * The cookie of the network namespace that the loader runs in, set by the loader. Sockets of other namespaces are not
 * told and not believed. In a namespace of their own users own any address, and so would pass for peers and for this
 * node.
 */
const volatile u64 wire_namespace;

static bool wire_is_here(const struct sock *sk)
{
	return BPF_CORE_READ(sk, __sk_common.skc_net.net, net_cookie) == wire_namespace;
}

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, COSCHED_WIRE_CONNECTIONS);
	__type(key, struct cosched_wire_flow);
	__type(value, struct cosched_wire_note);
} wire_notes SEC(".maps");

/* The same for UDP. A map of its own, since the same ports may be those of a connection as well. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, COSCHED_WIRE_CONNECTIONS);
	__type(key, struct cosched_wire_flow);
	__type(value, struct cosched_wire_note);
} wire_datagrams SEC(".maps");

/* An IPv4 address as it stands in a flow. */
static void wire_map_ipv4(u32 *address, u32 ipv4)
{
	address[0] = 0;
	address[1] = 0;
	address[2] = bpf_htonl(0xffff);
	address[3] = ipv4;
}

/* Messages of the connection of @common come along this flow; false if it has no addresses. */
static bool flow_of_connection(struct cosched_wire_flow *flow, const struct sock_common *common)
{
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

/* Is the sender along @flow the machine that it goes to? */
static bool wire_is_own(const struct cosched_wire_flow *flow)
{
	return flow->from[3] == flow->to[3] && flow->from[0] == flow->to[0] && flow->from[1] == flow->to[1] &&
	       flow->from[2] == flow->to[2];
}

#endif
