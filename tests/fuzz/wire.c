// SPDX-License-Identifier: GPL-2.0-only
/*
 * What other nodes send, to the parsers of policies/wire.h, policies/surplus.h and policies/prefetch.h. It is built for
 * libFuzzer with the sanitizers of addresses and of undefined behaviour (tests/fuzz/run). The same code runs in the
 * kernel, where the verifier sees to addresses; tests/wire_xdp*.rs hand it packets there.
 *
 * An input is a byte that says whether the cluster has a key, the present of the reader in 8 bytes, and what came. A
 * message that is believed must be the one that its sender writes.
 */
#include <stdlib.h>
#include <string.h>

#include "../../policies/native.h"
#include "../../policies/prefetch.h"
#include "../../policies/surplus.h"

#define HEAD	9

static const struct cosched_wire_flow flow = {
	.from = { 0, 0, 0xffff0000, 0x0100000a }, .to = { 0, 0, 0xffff0000, 0x0200000a },
	.from_port = 0x3412, .to_port = 0x7856,
};

static void check(int holds)
{
	if (!holds)
		abort();
}

/* @data as memory of exactly so many bytes, so that a read beyond them is seen. */
static u8 *exactly(const u8 *data, size_t size, size_t length)
{
	u8 *copy = calloc(1, length);

	memcpy(copy, data, size < length ? size : length);
	return copy;
}

static void read_option(const u8 *data, size_t size, const struct cosched_wire_key *key, u64 tai_ns)
{
	u8 *option = exactly(data, size, COSCHED_WIRE_SIGNED_LENGTH);
	u8 written[COSCHED_WIRE_SIGNED_LENGTH];
	struct cosched_wire_message message;

	if (cosched_wire_decode(&message, option, &flow, key)) {
		u32 length = wire_encode_as(written, option[0], &message, &flow, key);

		check(length == option[1] && !memcmp(written, option, length));
		if (cosched_wire_credible(message.epoch, tai_ns))
			check(cosched_wire_epoch_next(message.epoch, 1, tai_ns) >> COSCHED_EPOCH_NODE_BITS >=
			      message.epoch >> COSCHED_EPOCH_NODE_BITS);
	}
	free(option);
}

static void read_surplus(const u8 *data, size_t size, const struct cosched_wire_key *key)
{
	u8 *surplus = exactly(data, size, COSCHED_WIRE_SURPLUS_MAX);
	u8 written[COSCHED_WIRE_SURPLUS_MAX] = { 0 };
	struct cosched_wire_message message = { .epoch = wire_get(surplus, 8) };
	u32 pad = size & 1, length;

	cosched_wire_surplus_sum(surplus, COSCHED_WIRE_SURPLUS_MAX, pad);
	length = cosched_wire_surplus_encode(written, pad, &message, &flow, key);
	check(cosched_wire_surplus_sum(written, length, pad) == 0xffff);
	free(surplus);
}

static void read_prefetch(const u8 *data, size_t size, const struct cosched_wire_key *key, u64 tai_ns)
{
	u8 *datagram = exactly(data, size, size + 1);
	u8 written[COSCHED_PREFETCH_LENGTH];
	struct cosched_prefetch prefetch;

	if (cosched_prefetch_decode(&prefetch, datagram, size, key)) {
		cosched_prefetch_encode(written, &prefetch, key);
		check(!memcmp(written, datagram, 58) && size == COSCHED_PREFETCH_LENGTH);
		if (cosched_prefetch_credible(&prefetch, prefetch.flow.from, 0, tai_ns))
			check(!cosched_prefetch_credible(&prefetch, prefetch.flow.from, prefetch.time_ns, tai_ns));
	}
	free(datagram);
}

/*
 * A MAC of 32 bits is not found by chance: so the reader's key signs what came, after what came was tried as it is.
 */
static void sign(const u8 *data, size_t size, const struct cosched_wire_key *key, u64 tai_ns)
{
	u8 bytes[COSCHED_PREFETCH_LENGTH] = { 0 };

	if (!key->is_set)
		return;
	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	wire_put(bytes + 14, cosched_wire_mac(bytes, &flow, key), 4);
	read_option(bytes, COSCHED_WIRE_SIGNED_LENGTH, key, tai_ns);
	memcpy(bytes, data, size < sizeof(bytes) ? size : sizeof(bytes));
	wire_put(bytes + 60, prefetch_mac(bytes, key), 8);
	read_prefetch(bytes, sizeof(bytes), key, tai_ns);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size);

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	struct cosched_wire_key key = { .words = { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
	u64 tai_ns;

	if (size < HEAD)
		return 0;
	key.is_set = data[0] & 1;
	tai_ns = wire_get(data + 1, 8);
	data += HEAD;
	size -= HEAD;
	read_option(data, size, &key, tai_ns);
	read_surplus(data, size, &key);
	read_prefetch(data, size, &key, tai_ns);
	sign(data, size, &key, tai_ns);
	return 0;
}
