/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What goes behind a datagram: UDP's options, which are our option (wire.h) and a checksum in front of it.
 */
#ifndef COSCHED_SURPLUS_H
#define COSCHED_SURPLUS_H

#include "wire.h"

#define COSCHED_WIRE_SURPLUS_MAX	20	/* most bytes behind a datagram */

/*
 * The sum of @surplus and of its length. @surplus has @length bytes of a datagram's options with their checksum, and
 * zeroes behind them. Its length here counts the @pad bytes in front. The sum is 0xffff if the options came as they
 * were sent: their sum and that of their length cancel out. So a host that mistakes them for data finds the datagram's
 * own checksum right (RFC 9868, 9).
 *
 * All that may be there is added up, since the verifier follows a loop of one length more easily.
 */
static inline u16 cosched_wire_surplus_sum(const u8 *surplus, u32 length, u32 pad)
{
	u32 sum = length + pad, i;

	for (i = 0; i < COSCHED_WIRE_SURPLUS_MAX; i += 2)
		sum += surplus[i] << 8 | surplus[i + 1];
	sum = (sum & 0xffff) + (sum >> 16);
	return (sum & 0xffff) + (sum >> 16);
}

/*
 * Writes what goes behind a datagram to @surplus, which has place for COSCHED_WIRE_SURPLUS_MAX bytes that are zero: the
 * checksum and the option. Returns its length. In front of it go @pad bytes that are zero: one, if the datagram's
 * length is odd.
 */
static inline u32 cosched_wire_surplus_encode(u8 *surplus, u32 pad, const struct cosched_wire_message *message,
					      const struct cosched_wire_flow *flow, const struct cosched_wire_key *key)
{
	u32 length = 2 + wire_encode_as(surplus + 2, COSCHED_WIRE_UDP_KIND, message, flow, key);
	u16 sum;

	sum = ~cosched_wire_surplus_sum(surplus, length, pad);
	wire_put(surplus, sum ? sum : 0xffff, 2);
	return length;
}

#endif
