/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds our option in a packet: Ethernet with up to two VLAN tags, IPv4 or IPv6, TCP. Everything else, among it
 * fragments and IPv6 with extension headers, is none of ours here, and left to sock_ops. Reads and changes nothing.
 */
#ifndef COSCHED_WIRE_PACKET_BPF_H
#define COSCHED_WIRE_PACKET_BPF_H

#define ETH_P_IP		0x0800
#define ETH_P_IPV6		0x86DD
#define ETH_P_8021Q		0x8100
#define ETH_P_8021AD		0x88A8
#define VLAN_TAGS		2
#define IP_FRAGMENT		0x3fff		/* more fragments, or not the first */
#define TCP_OPTIONS_MAX		40
#define TCP_OPTION_END		0
#define TCP_OPTION_NOP		1
#define OPTIONS_WALKED		24		/* of a header: eight of two bytes, and padding */

/* The offset of the IP header, and its kind in @protocol; 0 if there is none. */
static u32 find_ip(void *data, void *end, u16 *protocol)
{
	u32 offset = sizeof(struct ethhdr), i;
	struct ethhdr *eth = data;

	if (data + offset > end)
		return 0;
	*protocol = eth->h_proto;
	for (i = 0; i < VLAN_TAGS; i++) {
		struct vlan_hdr *tag = data + offset;

		if (*protocol != bpf_htons(ETH_P_8021Q) && *protocol != bpf_htons(ETH_P_8021AD))
			break;
		if ((void *)(tag + 1) > end)
			return 0;
		*protocol = tag->h_vlan_encapsulated_proto;
		offset += sizeof(*tag);
	}
	return offset;
}

/* The offset of the TCP header, with the addresses in @flow; 0 if there is none. */
static u32 find_tcp(void *data, void *end, struct cosched_wire_flow *flow)
{
	u16 protocol = 0;
	u32 offset = find_ip(data, end, &protocol);

	if (!offset)
		return 0;
	if (protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + offset;

		if ((void *)(ip + 1) > end || ip->protocol != IPPROTO_TCP || ip->ihl < 5 ||
		    ip->frag_off & bpf_htons(IP_FRAGMENT))
			return 0;
		wire_map_ipv4(flow->from, ip->saddr);
		wire_map_ipv4(flow->to, ip->daddr);
		return offset + ip->ihl * 4;
	}
	if (protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data + offset;

		if ((void *)(ip + 1) > end || ip->nexthdr != IPPROTO_TCP)
			return 0;
		__builtin_memcpy(flow->from, &ip->saddr, sizeof(flow->from));
		__builtin_memcpy(flow->to, &ip->daddr, sizeof(flow->to));
		return offset + sizeof(*ip);
	}
	return 0;
}

/* Where among @length bytes of TCP options ours is; @length if it is not there. */
static u32 walk_options(const u8 *options, u32 length)
{
	u32 at = 0, i;

	for (i = 0; i < OPTIONS_WALKED; i++) {
		u8 kind;

		if (at + COSCHED_WIRE_LENGTH > length || at >= TCP_OPTIONS_MAX)
			return length;
		kind = options[at];
		if (kind == TCP_OPTION_END)
			return length;
		if (kind == TCP_OPTION_NOP) {
			at++;
			continue;
		}
		if (cosched_wire_begins(options + at))
			return at;
		if (options[at + 1] < 2)
			return length;
		at += options[at + 1];
	}
	return length;
}

/* Copies our option, as far as it is there, to @option, and says in @flow where the packet comes from and goes to. */
static bool find_option(struct xdp_md *ctx, struct cosched_wire_flow *flow, u8 *option)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u8 options[TCP_OPTIONS_MAX + COSCHED_WIRE_SIGNED_LENGTH] = {};
	u32 offset = find_tcp(data, end, flow), length, at;
	struct tcphdr *tcp;

	/* The verifier wants the bound of a packet's offset in sight. */
	if (!offset || offset > 128)
		return false;
	tcp = data + offset;
	if ((void *)(tcp + 1) > end)
		return false;
	flow->from_port = tcp->source;
	flow->to_port = tcp->dest;
	length = tcp->doff * 4;
	if (length < sizeof(*tcp) + COSCHED_WIRE_LENGTH)
		return false;
	length -= sizeof(*tcp);
	if (length > TCP_OPTIONS_MAX || bpf_xdp_load_bytes(ctx, offset + sizeof(*tcp), options, length))
		return false;
	at = walk_options(options, length);
	if (at + COSCHED_WIRE_LENGTH > length || at >= TCP_OPTIONS_MAX)
		return false;
	__builtin_memcpy(option, options + at, COSCHED_WIRE_SIGNED_LENGTH);
	return true;
}

#endif
