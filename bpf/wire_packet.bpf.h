/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds our option in a packet: Ethernet, IPv4 or IPv6, TCP or UDP. Everything else is none of ours here, and left to
 * sock_ops. That includes fragments, and IPv6 with extension headers. A packet with a VLAN tag is one of another
 * network, in which a peer's address may be anybody's. The VLAN's own interface can be looked at instead. Reads and
 * changes nothing.
 */
#ifndef COSCHED_WIRE_PACKET_BPF_H
#define COSCHED_WIRE_PACKET_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "wire_notes.bpf.h"
#include "../policies/surplus.h"
#include "../policies/wire.h"

#define ETH_P_IP		0x0800
#define ETH_P_IPV6		0x86DD
#define IP_FRAGMENT		0x3fff		/* more fragments, or not the first */
#define TCP_OPTIONS_MAX		40
#define TCP_OPTION_END		0
#define TCP_OPTION_NOP		1
#define WITHOUT_MAC		(2 + COSCHED_WIRE_LENGTH)	/* behind a datagram: a checksum and the option */
#define OPTIONS_WALKED		24		/* of a header: eight of two bytes, and padding */

/* Where in a packet TCP or UDP begins, and how long it is, with what is behind it. */
struct transport {
	u32 offset;
	u32 length;
	u32 protocol;
};

static bool is_ipv4(const u32 *address)
{
	return !address[0] && !address[1] && address[2] == bpf_htonl(0xffff);
}

/* Finds where TCP or UDP begins, and the addresses, for @flow. */
static bool find_transport(void *data, void *end, struct cosched_wire_flow *flow, struct transport *transport)
{
	u32 offset = sizeof(struct ethhdr);
	struct ethhdr *eth = data;

	if (data + offset > end)
		return false;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = data + offset;

		if ((void *)(ip + 1) > end || ip->ihl < 5 || ip->frag_off & bpf_htons(IP_FRAGMENT))
			return false;
		wire_map_ipv4(flow->from, ip->saddr);
		wire_map_ipv4(flow->to, ip->daddr);
		transport->offset = offset + ip->ihl * 4;
		transport->length = bpf_ntohs(ip->tot_len) - ip->ihl * 4;
		transport->protocol = ip->protocol;
		return true;
	}
	if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = data + offset;

		if ((void *)(ip + 1) > end)
			return false;
		__builtin_memcpy(flow->from, &ip->saddr, sizeof(flow->from));
		__builtin_memcpy(flow->to, &ip->daddr, sizeof(flow->to));
		/*
		 * The kernel takes no such packet with an IPv4 address in it. Here it would be taken for a packet of
		 * IPv4.
		 */
		if (is_ipv4(flow->from) || is_ipv4(flow->to))
			return false;
		transport->offset = offset + sizeof(*ip);
		transport->length = bpf_ntohs(ip->payload_len);
		transport->protocol = ip->nexthdr;
		return true;
	}
	return false;
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
		if (kind == COSCHED_WIRE_KIND && cosched_wire_is_ours(options + at))
			return at;
		if (options[at + 1] < 2)
			return length;
		at += options[at + 1];
	}
	return length;
}

/*
 * Copies our option of the TCP segment at @offset to @option, as far as it is there. Writes the segment's ports to
 * @flow.
 */
static bool find_option(struct xdp_md *ctx, u32 offset, struct cosched_wire_flow *flow, u8 *option)
{
	void *data = (void *)(long)ctx->data, *end = (void *)(long)ctx->data_end;
	u8 options[TCP_OPTIONS_MAX + COSCHED_WIRE_SIGNED_LENGTH] = {};
	struct tcphdr *tcp;
	u32 length, at;

	/* The verifier wants the bound of a packet's offset in sight. */
	if (offset > 128)
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

/*
 * Copies our option of the datagram at @transport to @option, and writes the datagram's ports to @flow. A node appends
 * the option only where nothing is behind a datagram, so there is nothing else. No options have to be walked through,
 * which the verifier would take long for. RFC 9868 has all options ignored if their checksum is wrong, or if what pads
 * it to an even place is not zero.
 */
static bool find_datagram_option(struct xdp_md *ctx, const struct transport *transport, struct cosched_wire_flow *flow,
				 u8 *option)
{
	u8 surplus[COSCHED_WIRE_SURPLUS_MAX] = {}, zero = 0;
	u32 offset = transport->offset, length, pad;
	struct udphdr udp;

	if (offset > 128 || bpf_xdp_load_bytes(ctx, offset, &udp, sizeof(udp)))
		return false;
	flow->from_port = udp.source;
	flow->to_port = udp.dest;
	length = bpf_ntohs(udp.len);
	if (length < sizeof(udp) || length >= transport->length)
		return false;
	offset += length;
	pad = length & 1;
	length = transport->length - length - pad;
	/* Read by parts whose lengths are known: a verifier before 7.3 loses the bounds of a computed length. */
	if ((length != WITHOUT_MAC && length != sizeof(surplus)) ||
	    bpf_xdp_load_bytes(ctx, offset + pad, surplus, WITHOUT_MAC) ||
	    (length > WITHOUT_MAC && bpf_xdp_load_bytes(ctx, offset + pad + WITHOUT_MAC, surplus + WITHOUT_MAC,
							sizeof(surplus) - WITHOUT_MAC)) ||
	    (pad && bpf_xdp_load_bytes(ctx, offset, &zero, sizeof(zero))))
		return false;
	if (zero || cosched_wire_surplus_sum(surplus, length, pad) != 0xffff)
		return false;
	__builtin_memcpy(option, surplus + 2, COSCHED_WIRE_SIGNED_LENGTH);
	return option[0] == COSCHED_WIRE_UDP_KIND && cosched_wire_is_ours(option);
}

#endif
