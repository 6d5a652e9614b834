/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prefetch: at the start of a task's slice its node tells the nodes of its recent correspondents (thesis 6.2.3, 6.2.6;
 * docs/wire-format.md). It does so before the task has a message for these, so that they may run by then. Here: the
 * datagram, and which datagram is believed.
 *
 *	magic 32 bits			with the version
 *	flow 288 bits			of the connection, from the running task to its correspondent: addresses, ports
 *	time 64 bits			when it was sent, ns of TAI
 *	epoch 64 bits, slice 16 bits	of the sender, as a message has them (wire.h)
 *	zero 16 bits
 *	MAC 64 bits			SipHash-2-4 of all that
 *
 * Each datagram has one effect at most, so a datagram that was recorded must have none. The times of a node's datagrams
 * increase, and a node that has heard one datagram believes none that is not later. Hence ns, where epochs count in
 * units: a node sends several at once.
 *
 * Without a key nothing is sent, nor is anything believed.
 */
#ifndef COSCHED_PREFETCH_H
#define COSCHED_PREFETCH_H

#include "siphash.h"
#include "wire.h"

#define COSCHED_PREFETCH_MAGIC		0xC05CF001U
#define COSCHED_PREFETCH_LENGTH		68	/* bytes of the datagram */
#define COSCHED_PREFETCH_SIGNED		60	/* of which the MAC is */
#define COSCHED_PREFETCH_WINDOW_NS	60000000000ULL

/* A task begins its slice, and has a correspondent. */
struct cosched_prefetch {
	struct cosched_wire_flow flow;	/* from the task to its correspondent */
	u32 reserved;
	u64 time_ns;			/* TAI */
	u64 epoch;			/* 0: none */
	u64 slice_ns;			/* of the slice; 0: not known */
};

/* The MAC of @datagram, the rest of which is there. */
static inline u64 prefetch_mac(const u8 *datagram, const struct cosched_wire_key *key)
{
	union {
		u8 bytes[64];
		u64 words[8];
	} text = { .bytes = { [63] = COSCHED_PREFETCH_SIGNED } };
	u32 i;

	for (i = 0; i < COSCHED_PREFETCH_SIGNED; i++)
		text.bytes[i] = datagram[i];
	return siphash_2_4(text.words, 8, key->words);
}

/* Writes @prefetch to @datagram, which has place for COSCHED_PREFETCH_LENGTH bytes, signed with @key. */
static inline void cosched_prefetch_encode(u8 *datagram, const struct cosched_prefetch *prefetch,
					   const struct cosched_wire_key *key)
{
	wire_put(datagram, COSCHED_PREFETCH_MAGIC, 4);
	__builtin_memcpy(datagram + 4, &prefetch->flow, 36);	/* as it is on the wire */
	wire_put(datagram + 40, prefetch->time_ns, 8);
	wire_put(datagram + 48, prefetch->epoch, 8);
	wire_put(datagram + 56, wire_slice_units(prefetch->slice_ns), 2);
	wire_put(datagram + 58, 0, 2);
	wire_put(datagram + 60, prefetch_mac(datagram, key), 8);
}

/* Reads @datagram, @length bytes, into @prefetch. Returns 0 if its writer does not have the key. */
static inline int cosched_prefetch_decode(struct cosched_prefetch *prefetch, const u8 *datagram, u32 length,
					  const struct cosched_wire_key *key)
{
	if (!key->is_set || length != COSCHED_PREFETCH_LENGTH || wire_get(datagram, 4) != COSCHED_PREFETCH_MAGIC ||
	    wire_get(datagram + 60, 8) != prefetch_mac(datagram, key))
		return 0;
	__builtin_memcpy(&prefetch->flow, datagram + 4, 36);
	prefetch->reserved = 0;
	prefetch->time_ns = wire_get(datagram + 40, 8);
	prefetch->epoch = wire_get(datagram + 48, 8);
	prefetch->slice_ns = wire_get(datagram + 56, 2) << COSCHED_WIRE_UNIT_BITS;
	return 1;
}

/*
 * Is @prefetch, which has come from the address @source, to be believed at @tai_ns? @newest_ns: the latest time that
 * was believed from there; 0: none. It is not to be believed if it speaks for another node, has been heard before, or
 * is of another time.
 */
static inline int cosched_prefetch_credible(const struct cosched_prefetch *prefetch, const u32 *source, u64 newest_ns,
					    u64 tai_ns)
{
	const struct cosched_wire_flow *flow = &prefetch->flow;
	u64 time_ns = prefetch->time_ns, apart_ns = time_ns > tai_ns ? time_ns - tai_ns : tai_ns - time_ns;
	int is_own = 1, i;

	for (i = 0; i < 4; i++) {
		if (flow->from[i] != source[i])
			return 0;
		is_own &= flow->from[i] == flow->to[i];
	}
	return !is_own && time_ns > newest_ns && apart_ns <= COSCHED_PREFETCH_WINDOW_NS &&
	       (!prefetch->epoch || cosched_wire_credible(prefetch->epoch, tai_ns));
}

#endif
