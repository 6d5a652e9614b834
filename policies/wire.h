/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a message of another machine carries in its TCP header, or behind its datagram (docs/wire-format.md). That is an
 * epoch, with what is left of a slice or what waits took, or news of its job's turns.
 *
 *	kind 253, length, ExID 16 bits		an experimental option (RFC 6994)
 *	epoch 64 bits				of the CPU that sent it (epoch.h; thesis 3.3); 0: none
 *	slice 16 bits				the rest of the sender's slice, in units (thesis 6.2.7); 0: not known
 *	MAC 32 bits				only if the cluster has a key
 *
 * News have the next ExID, and in place of epoch and slice what struct cosched_beat_news has (beat.h):
 *
 *	clock 32 bits				of the sender, in units: the lower half, which is 19 hours
 *	theta 16 bits				in 1 / 2^16; the lowest bit is that of the news
 *	sizes 16 bits				of each of its ranks the lower half byte
 *	job 16 bits				of the hash of its name
 *
 * Under spin "adaptive-global" the option has the ExID after that, and in place of the slice:
 *
 *	waits 16 bits				v as far as the sender's own waits tell, in us (spin_adaptive.h); not 0
 *
 * A node that does not know an ExID does not see the option.
 *
 * Behind a datagram the option is of kind 127, which is UDP's for experiments, and the checksum of UDP's options is
 * before it (RFC 9868).
 *
 * All numbers are in network byte order. With a key the option is 18 bytes, 20 with padding, and so fits beside
 * timestamps and one block of SACK.
 *
 * Epochs that come from afar have to be held against something. Otherwise one forged message with the last epoch of all
 * would end their use for good. So here they count in units of time. A spontaneous switch makes the epoch the present
 * one, and an epoch is believed if it is within a minute of the clock. A node that is drawn ahead of its clock by so
 * much stays there until the clock has caught up. Its epochs go back only if its clock is set back by more than that.
 *
 * The MAC is SipHash-2-4 (Aumasson, Bernstein 2012) over addresses, ports, what is carried, and kind. Its lower half is
 * what is sent. A message that was recorded can be sent again within the minute, by a machine that can send in its
 * sender's name. It says what was true when it was recorded.
 */
#ifndef COSCHED_WIRE_H
#define COSCHED_WIRE_H

#include "beat.h"
#include "epoch.h"
#include "siphash.h"

#define COSCHED_WIRE_KIND		253	/* an experimental option of TCP */
#define COSCHED_WIRE_UDP_KIND		127	/* and of UDP (RFC 9868) */
#define COSCHED_WIRE_EXID		0xC05C
#define COSCHED_WIRE_NEWS_EXID		0xC05D
#define COSCHED_WIRE_WAITS_EXID		0xC05E
#define COSCHED_WIRE_LENGTH		14	/* bytes, without a MAC */
#define COSCHED_WIRE_SIGNED_LENGTH	18
#define COSCHED_WIRE_UNIT_BITS		14	/* of times: 2^14 ns, 16.384 us */
#define COSCHED_WIRE_CLOCK_LOST		18	/* bits of a time in ns, above 32 bits of units */
#define COSCHED_WIRE_SLICE_MAX		0xffffULL	/* units: 1.07 s, more than the longest slice */
#define COSCHED_WIRE_WAITS_MAX		0xffffULL	/* us */
#define COSCHED_WIRE_WINDOW		(60000000000ULL >> COSCHED_WIRE_UNIT_BITS)

/* Sender and receiver: addresses and ports as they are on the wire, IPv4 as ::ffff:a.b.c.d. */
struct cosched_wire_flow {
	u32 from[4];
	u32 to[4];
	u16 from_port;
	u16 to_port;
};

/* The cluster's key: 16 bytes as two little-endian numbers. */
struct cosched_wire_key {
	u64 words[2];
	u32 is_set;
	u32 reserved;
};

/* What a message carries: an epoch, with a slice or waits, or news. */
struct cosched_wire_message {
	u64 epoch;
	u64 slice_ns;			/* 0: not known */
	u64 waits_us;			/* 0: none, and the slice goes */
	struct cosched_beat_news news;	/* without sizes: none. What is read has the lower part of the clock */
	u64 job;			/* whose news they are: cosched_wire_job() */
};

/* What the MAC is over: 47 bytes, and the end that SipHash gives them. */
struct cosched_wire_signed {
	struct cosched_wire_flow flow;
	u8 carried[10];
	u8 kind;			/* tells TCP from UDP; and the variant (0, 1, 2) is added */
	u8 length;
} __attribute__((aligned(8)));

static inline void wire_put(u8 *bytes, u64 number, int length)
{
	int i;

	for (i = 0; i < length; i++)
		bytes[i] = number >> 8 * (length - 1 - i);
}

static inline u64 wire_get(const u8 *bytes, int length)
{
	u64 number = 0;
	int i;

	for (i = 0; i < length; i++)
		number = number << 8 | bytes[i];
	return number;
}

/* Does @option, which is of an experimental kind and at least 4 bytes long, have one of our identifiers? */
static inline int cosched_wire_is_ours(const u8 *option)
{
	return wire_get(option + 2, 2) - COSCHED_WIRE_EXID <= COSCHED_WIRE_WAITS_EXID - COSCHED_WIRE_EXID;
}

/* What @option, which is ours, carries: how far its identifier is from that of epochs. */
static inline u32 wire_variant(const u8 *option)
{
	return (u32)option[3] - (COSCHED_WIRE_EXID & 0xff);
}

static inline int wire_has_news(const u8 *option)
{
	return wire_variant(option) == COSCHED_WIRE_NEWS_EXID - COSCHED_WIRE_EXID;
}

static inline int wire_has_waits(const u8 *option)
{
	return wire_variant(option) == COSCHED_WIRE_WAITS_EXID - COSCHED_WIRE_EXID;
}

/* The MAC of @option, of which all but the MAC is there, on its way along @flow. */
static inline u32 cosched_wire_mac(const u8 *option, const struct cosched_wire_flow *flow,
				   const struct cosched_wire_key *key)
{
	struct cosched_wire_signed text = { .flow = *flow, .kind = option[0] + wire_variant(option), .length = 47 };
	u64 words[sizeof(text) / 8];
	u32 i;

	for (i = 0; i < sizeof(text.carried); i++)
		text.carried[i] = option[4 + i];
	/* Not by a pointer of the other type: the compiler takes what that leads to for something else. */
	__builtin_memcpy(words, &text, sizeof(words));
	return siphash_2_4(words, sizeof(words) / 8, key->words);
}

/* How long the option is, in bytes. */
static inline u32 cosched_wire_length(const struct cosched_wire_key *key)
{
	return key->is_set ? COSCHED_WIRE_SIGNED_LENGTH : COSCHED_WIRE_LENGTH;
}

/* What is left of a slice in units, rounded up, so that a little is not mistaken for nothing known. */
static inline u64 wire_slice_units(u64 slice_ns)
{
	u64 units = slice_ns >> COSCHED_WIRE_UNIT_BITS;

	units += (slice_ns & ((1ULL << COSCHED_WIRE_UNIT_BITS) - 1)) != 0;
	return units < COSCHED_WIRE_SLICE_MAX ? units : COSCHED_WIRE_SLICE_MAX;
}

static inline u64 wire_waits(u64 waits_us)
{
	return waits_us < COSCHED_WIRE_WAITS_MAX ? waits_us : COSCHED_WIRE_WAITS_MAX;
}

/* Of each rank the lower half byte: none is greater (BEAT_RANK_MAX). */
static inline u16 wire_pack_sizes(u32 sizes)
{
	sizes = (sizes & 0x000f000f) | (sizes >> 4 & 0x00f000f0);
	return (sizes & 0xff) | sizes >> 8;
}

static inline u32 wire_unpack_sizes(u16 packed)
{
	u32 sizes = (packed & 0x00ff) | (packed & 0xff00U) << 8;

	return (sizes & 0x000f000f) | (sizes & 0x00f000f0) << 4;
}

/* The job called @name, as messages say it. What a task of another job tells is not for this one. */
static inline u16 cosched_wire_job(u64 name)
{
	return beat_mix(name) >> 48;
}

/* Writes the news of @message to the ten bytes at @carried. By what theta loses, one turn in 2^15 is drawn unlike. */
static inline void wire_put_news(u8 *carried, const struct cosched_wire_message *message)
{
	u32 theta = message->news.theta;

	wire_put(carried, message->news.tai_ns >> COSCHED_WIRE_UNIT_BITS, 4);
	wire_put(carried + 4, (theta >> 16 & 0xfffe) | (theta & 1), 2);
	wire_put(carried + 6, wire_pack_sizes(message->news.sizes), 2);
	wire_put(carried + 8, message->job, 2);
}

static inline void wire_get_news(struct cosched_wire_message *message, const u8 *carried)
{
	u32 theta = wire_get(carried + 4, 2);

	message->news.tai_ns = wire_get(carried, 4) << COSCHED_WIRE_UNIT_BITS;
	message->news.theta = (theta & 0xfffe) << 16 | (theta & 1);
	message->news.sizes = wire_unpack_sizes(wire_get(carried + 6, 2));
	message->job = wire_get(carried + 8, 2);
}

/* Of the times whose lower part, as a message brings it, is @lower_ns, the time nearest to @tai_ns. */
static inline u64 cosched_wire_time(u64 lower_ns, u64 tai_ns)
{
	return tai_ns + ((s64)((lower_ns - tai_ns) << COSCHED_WIRE_CLOCK_LOST) >> COSCHED_WIRE_CLOCK_LOST);
}

/* Writes @message to @option, which has place for the longest, as an option of this kind, and returns its length. */
static inline u32 wire_encode_as(u8 *option, u8 kind, const struct cosched_wire_message *message,
				 const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	u64 waits_us = message->waits_us;
	u32 length = cosched_wire_length(key);

	option[0] = kind;
	option[1] = length;
	if (message->news.sizes) {
		wire_put(option + 2, COSCHED_WIRE_NEWS_EXID, 2);
		wire_put_news(option + 4, message);
	} else {
		wire_put(option + 2, waits_us ? COSCHED_WIRE_WAITS_EXID : COSCHED_WIRE_EXID, 2);
		wire_put(option + 4, message->epoch, 8);
		wire_put(option + 12, waits_us ? wire_waits(waits_us) : wire_slice_units(message->slice_ns), 2);
	}
	if (key->is_set)
		wire_put(option + 14, cosched_wire_mac(option, flow, key), 4);
	return length;
}

/* The same as an option of TCP. */
static inline u32 cosched_wire_encode(u8 *option, const struct cosched_wire_message *message,
				      const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	return wire_encode_as(option, COSCHED_WIRE_KIND, message, flow, key);
}

/*
 * Reads @option into @message. As many bytes as the longest option has may be read. Returns 0 if no node of this
 * cluster wrote it for this flow: its kind is neither that of TCP nor that of UDP, its length or MAC is another one, or
 * it carries news without a node or waits of 0.
 */
static inline int cosched_wire_decode(struct cosched_wire_message *message, const u8 *option,
				      const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	if ((option[0] != COSCHED_WIRE_KIND && option[0] != COSCHED_WIRE_UDP_KIND) || !cosched_wire_is_ours(option) ||
	    option[1] != cosched_wire_length(key) || (wire_has_news(option) && !wire_get(option + 10, 2)) ||
	    (wire_has_waits(option) && !wire_get(option + 12, 2)))
		return 0;
	if (key->is_set && wire_get(option + 14, 4) != cosched_wire_mac(option, flow, key))
		return 0;
	*message = (struct cosched_wire_message){};
	if (wire_has_news(option)) {
		wire_get_news(message, option + 4);
		return 1;
	}
	message->epoch = wire_get(option + 4, 8);
	if (wire_has_waits(option))
		message->waits_us = wire_get(option + 12, 2);
	else
		message->slice_ns = wire_get(option + 12, 2) << COSCHED_WIRE_UNIT_BITS;
	return 1;
}

/* What an epoch counts at @tai_ns if no node is ahead. It ends in 2116. */
static inline u64 cosched_wire_clock(u64 tai_ns)
{
	u64 clock = tai_ns >> COSCHED_WIRE_UNIT_BITS, last = COSCHED_U64_MAX >> COSCHED_EPOCH_NODE_BITS;

	return clock < last ? clock : last;
}

/* Is an epoch that comes from another machine at @tai_ns within the window of this one's clock? */
static inline int cosched_wire_credible(u64 epoch, u64 tai_ns)
{
	u64 count = epoch >> COSCHED_EPOCH_NODE_BITS, clock = cosched_wire_clock(tai_ns);

	return count > clock ? count - clock <= COSCHED_WIRE_WINDOW : clock - count <= COSCHED_WIRE_WINDOW;
}

/*
 * The epoch of @node after a spontaneous switch in @epoch at @tai_ns: the present one, or the next if that is later. No
 * peer gets a node ahead by two windows. A node that is that far ahead has had its TAI set back, and its epoch follows.
 * Otherwise its peers would refuse its epochs, and theirs would be old to it, until TAI is there again.
 */
static inline u64 cosched_wire_epoch_next(u64 epoch, u32 node, u64 tai_ns)
{
	u64 count = cosched_wire_clock(tai_ns), next = cosched_epoch_next(epoch, node);
	u64 clock = count << COSCHED_EPOCH_NODE_BITS | (node & COSCHED_EPOCH_NODE_MASK);
	int is_set_back = next >> COSCHED_EPOCH_NODE_BITS > count + 2 * COSCHED_WIRE_WINDOW;

	return clock > next || is_set_back ? clock : next;
}

#endif
