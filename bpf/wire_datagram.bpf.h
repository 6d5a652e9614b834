/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Epochs behind datagrams: UDP options in what IP sends beyond the length that UDP gives (RFC 9868). A host that
 * does not know them never sees them, since a kernel cuts a datagram to UDP's length.
 *
 *	IP header | UDP header, data | 0 if their length is odd | checksum of what follows | our option
 *
 * tc appends it to what this machine's sockets send to a peer, and XDP reads it (wire_packet.bpf.h). It is left out
 * where it might do harm:
 *
 *	several datagrams in one (GSO)		the option would be behind the last one only, if the device took it
 *	longer than 1280 bytes with it		no path between IPv6 hosts is narrower. What just fitted must still fit:
 *						a program that was told how much fits is not told when it is less
 *	longer than the path or the interface	where IPv4 has narrower ones
 *	fragments, IP options, what is in a tunnel, options of others		rare, and not worth the care
 *	a checksum that only a device knows how to compute	see checksum_allows()
 *	a peer that has not answered TOLD_MAX datagrams		it does not know the option, or something on the way
 *						drops what has one: that many are lost, and no more
 *
 * A checksum may be left to be computed later, by the device or on its behalf. It is then computed from UDP's header to
 * the end of the packet, and takes in what is beyond UDP's length. Because of its own checksum, the sum of that part is
 * the negative of its length. So that length is added to what UDP has put into the field for the device to begin with.
 */
#ifndef COSCHED_WIRE_DATAGRAM_BPF_H
#define COSCHED_WIRE_DATAGRAM_BPF_H

#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_core_read.h>
#include "cpu.bpf.h"
#include "intf.h"
#include "wire_epoch.bpf.h"
#include "wire_notes.bpf.h"
#include "wire_packet.bpf.h"
#include "../policies/surplus.h"
#include "../policies/wire.h"

#define TC_ACT_UNSPEC		(-1)
#define CHECKSUM_PARTIAL	3
#define NETIF_F(name)		(1ULL << NETIF_F_##name##_BIT)
#define SKB_DST_POINTER		(~3UL)		/* the lowest bits say how it is held */
#define DST_METRICS_POINTER	(~3UL)
#define TOLD_MAX		16
#define SAFE_LENGTH		1280		/* with the IP header */

/* Datagrams sent to an address with the option since a datagram with it came from there. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, COSCHED_WIRE_CONNECTIONS);
	__type(key, u32[4]);
	__type(value, u32);
} wire_told SEC(".maps");

/* Has any datagram been noted? Where none has, none need be forgotten. */
static bool datagrams_noted;

/* A datagram that leaves. */
struct datagram {
	struct cosched_wire_flow flow;
	u32 ip;			/* where its IP header begins */
	u32 udp;
	u32 length;		/* UDP's */
	bool is_ipv4;
};

/* Notes what @option, the first that has come along @flow, says. False if it is not believed. */
static bool note_first(const u8 *option, const struct cosched_wire_flow *flow)
{
	struct cosched_wire_note note = {};

	if (!is_from_peer(flow)) {
		count(COSCHED_COUNTER_epochs_refused);
		return false;
	}
	if (!note_option(&note, option, flow))
		return false;
	datagrams_noted = true;
	bpf_map_update_elem(&wire_datagrams, flow, &note, BPF_ANY);
	return true;
}

/* A datagram has brought @option along @flow. Where one has been noted before, a peer is at the other end. */
static void note_datagram(const u8 *option, const struct cosched_wire_flow *flow)
{
	struct cosched_wire_note *note = bpf_map_lookup_elem(&wire_datagrams, flow);
	u32 from[4], *told;

	if (note ? !note_option(note, option, flow) : !note_first(option, flow))
		return;
	__builtin_memcpy(from, flow->from, sizeof(from));
	told = bpf_map_lookup_elem(&wire_told, from);
	if (told)
		*told = 0;
}

/* A datagram has come along @flow without the option: what the datagram before brought is not of this one. */
static void forget_datagram(const struct cosched_wire_flow *flow)
{
	struct cosched_wire_note *note = datagrams_noted ? bpf_map_lookup_elem(&wire_datagrams, flow) : NULL;

	if (!note)
		return;
	note->epoch = 0;
	note->news.sizes = 0;
}

/*
 * The kernel's own form of what a program of tc is given. Its fields are read as the kernel's memory: the verifier
 * knows the pointer as something else.
 */
static struct sk_buff *kernels(struct __sk_buff *skb)
{
	return (void *)skb;
}

/*
 * Is it a datagram that a program of this machine sends? A packet that is only passed on has no socket. A packet that a
 * tunnel wraps has the socket of what is inside; the tunnel's own socket has a type. A packet that a macvlan of another
 * namespace sends has a socket of that namespace.
 */
static bool is_sent_by_program(struct __sk_buff *skb, u16 *port)
{
	struct bpf_sock *sk = skb->sk;
	struct udp_sock *udp;

	if (!sk)
		return false;
	sk = bpf_sk_fullsock(sk);
	if (!sk || sk->protocol != IPPROTO_UDP)
		return false;
	*port = bpf_htons(sk->src_port);
	udp = (void *)BPF_CORE_READ(kernels(skb), sk);
	return !BPF_CORE_READ(udp, encap_type) && wire_is_here((void *)udp);
}

/*
 * Reads the IP header of @skb. Returns its length, or 0 if it is not the header of a datagram. @length: the length of
 * what it heads.
 */
static u32 read_ip(struct __sk_buff *skb, struct datagram *datagram, u32 *length)
{
	if (skb->protocol == bpf_htons(ETH_P_IP)) {
		struct iphdr ip;

		if (bpf_skb_load_bytes(skb, datagram->ip, &ip, sizeof(ip)) || ip.version != 4 || ip.ihl != 5 ||
		    ip.protocol != IPPROTO_UDP || ip.frag_off & bpf_htons(IP_FRAGMENT))
			return 0;
		wire_map_ipv4(datagram->flow.from, ip.saddr);
		wire_map_ipv4(datagram->flow.to, ip.daddr);
		datagram->is_ipv4 = true;
		*length = bpf_ntohs(ip.tot_len) - sizeof(ip);
		return sizeof(ip);
	}
	if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr ip;

		if (bpf_skb_load_bytes(skb, datagram->ip, &ip, sizeof(ip)) || ip.version != 6 ||
		    ip.nexthdr != IPPROTO_UDP)
			return 0;
		__builtin_memcpy(datagram->flow.from, &ip.saddr, sizeof(datagram->flow.from));
		__builtin_memcpy(datagram->flow.to, &ip.daddr, sizeof(datagram->flow.to));
		*length = bpf_ntohs(ip.payload_len);
		return sizeof(ip);
	}
	return 0;
}

/* Finds the datagram that @skb is, unless it is to go as it is. */
static bool find_datagram(struct __sk_buff *skb, struct datagram *datagram)
{
	u32 header, length = 0;
	struct udphdr udp;
	u16 port = 0;

	if (skb->gso_size || !is_sent_by_program(skb, &port))
		return false;
	datagram->ip = sizeof(struct ethhdr);
	header = read_ip(skb, datagram, &length);
	if (!header)
		return false;
	datagram->udp = datagram->ip + header;
	if (datagram->udp + length != skb->len || bpf_skb_load_bytes(skb, datagram->udp, &udp, sizeof(udp)))
		return false;
	datagram->flow.from_port = udp.source;
	datagram->flow.to_port = udp.dest;
	datagram->length = length;
	return udp.source == port && length >= sizeof(udp) && bpf_ntohs(udp.len) == length;
}

/* Is a device, or the kernel on its behalf, to compute the checksum later? */
static bool lacks_checksum(struct __sk_buff *skb)
{
	return BPF_CORE_READ_BITFIELD_PROBED(kernels(skb), ip_summed) == CHECKSUM_PARTIAL;
}

/*
 * Will the checksum be right with something behind the datagram? It will if it is there. If it is still to come, it has
 * to be this datagram's, and be computed as the kernel describes it, whatever the bytes are. A device that knows no
 * more than TCP and UDP may go by UDP's length. What it is given to begin with would be wrong then.
 */
static bool checksum_allows(struct __sk_buff *skb, const struct datagram *datagram)
{
	u32 header = datagram->udp - datagram->ip;
	struct sk_buff *kernel_skb = kernels(skb);
	u64 features;

	if (!lacks_checksum(skb))
		return true;
	if (BPF_CORE_READ(kernel_skb, csum_start) != BPF_CORE_READ(kernel_skb, network_header) + header ||
	    BPF_CORE_READ(kernel_skb, csum_offset) != offsetof(struct udphdr, check))
		return false;
	features = BPF_CORE_READ(kernel_skb, dev, features);
	return features & NETIF_F(HW_CSUM) || !(features & (NETIF_F(IP_CSUM) | NETIF_F(IPV6_CSUM)));
}

/* Does the path of an IPv4 datagram take @length bytes, as far as this machine knows? */
static bool path_takes(struct __sk_buff *skb, u32 length)
{
	struct rtable *route = (void *)(BPF_CORE_READ(kernels(skb), _skb_refdst) & SKB_DST_POINTER);
	u32 *metrics = (void *)(BPF_CORE_READ(route, dst._metrics) & DST_METRICS_POINTER);
	u32 learned = BPF_CORE_READ_BITFIELD_PROBED(route, rt_pmtu), set = 0;

	bpf_probe_read_kernel(&set, sizeof(set), metrics + RTAX_MTU - 1);
	return (!learned || length <= learned) && (!set || length <= set);
}

/* Is there place for @added bytes behind @datagram? */
static bool has_place(struct __sk_buff *skb, const struct datagram *datagram, u32 added)
{
	u32 length = skb->len - datagram->ip + added, mtu = 0;

	return length <= SAFE_LENGTH && !bpf_check_mtu(skb, 0, &mtu, added, 0) &&
	       (!datagram->is_ipv4 || path_takes(skb, length));
}

/*
 * How many datagrams with the option have left for the other end of @flow since one came from there. NULL if that is no
 * peer.
 */
static u32 *told_to(const struct cosched_wire_flow *flow)
{
	struct cosched_wire_flow back = {};
	u32 to[4], none = 0, *told;

	if (wire_is_own(flow))
		return NULL;
	__builtin_memcpy(to, flow->to, sizeof(to));
	told = bpf_map_lookup_elem(&wire_told, to);
	if (told)
		return told;
	__builtin_memcpy(back.from, flow->to, sizeof(back.from));
	__builtin_memcpy(back.to, flow->from, sizeof(back.to));
	if (!is_from_peer(&back))
		return NULL;
	bpf_map_update_elem(&wire_told, to, &none, BPF_NOEXIST);
	return bpf_map_lookup_elem(&wire_told, to);
}

/* The sum of two numbers in ones' complement, in network byte order as they are. */
static u16 ones_complement_sum(u16 a, u16 b)
{
	u32 sum = (u32)a + b;

	return (sum & 0xffff) + (sum >> 16);
}

/* Makes the IP header, and the checksum that is not there yet, take in @added bytes. */
static void lengthen(struct __sk_buff *skb, const struct datagram *datagram, u32 added)
{
	u32 header = datagram->is_ipv4 ? sizeof(struct iphdr) : 0, checksum_at;
	u16 before = bpf_htons(header + datagram->length), after = bpf_htons(header + datagram->length + added);
	u16 checksum;

	if (datagram->is_ipv4) {
		bpf_l3_csum_replace(skb, datagram->ip + offsetof(struct iphdr, check), before, after, sizeof(after));
		bpf_skb_store_bytes(skb, datagram->ip + offsetof(struct iphdr, tot_len), &after, sizeof(after), 0);
	} else {
		bpf_skb_store_bytes(skb, datagram->ip + offsetof(struct ipv6hdr, payload_len), &after, sizeof(after),
				    0);
	}
	checksum_at = datagram->udp + offsetof(struct udphdr, check);
	if (!lacks_checksum(skb) || bpf_skb_load_bytes(skb, checksum_at, &checksum, sizeof(checksum)))
		return;
	checksum = ones_complement_sum(checksum, bpf_htons(added));
	bpf_skb_store_bytes(skb, checksum_at, &checksum, sizeof(checksum), 0);
}

/* Appends the option to @datagram, if that does no harm. */
static bool append_option(struct __sk_buff *skb, const struct datagram *datagram)
{
	struct cosched_wire_key key = key_of_cluster();
	u32 pad = datagram->length & 1, length = 2 + cosched_wire_length(&key), added = pad + length, end = skb->len;
	struct cosched_wire_message message = {};
	u8 surplus[COSCHED_WIRE_SURPLUS_MAX] = {};

	describe_sender(&message);
	if (!message.epoch && !message.news.sizes)
		return false;
	if (!has_place(skb, datagram, added) || !checksum_allows(skb, datagram))
		return false;
	cosched_wire_surplus_encode(surplus, pad, &message, &datagram->flow, &key);
	/* The new bytes are zero. */
	if (bpf_skb_change_tail(skb, end + added, 0))
		return false;
	bpf_skb_store_bytes(skb, end + pad, surplus, length, 0);
	lengthen(skb, datagram, added);
	count_sent(&message);
	return true;
}

#endif
