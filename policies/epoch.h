/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Epochs: how far a node has come in its round of the jobs (thesis 3.3).
 *
 * Every message carries the epoch of the node that sent it. A node counts its own epoch up at each spontaneous switch.
 * That is a switch at the end of a slice or because a task sleeps, and not a switch for a message. Only then the node's
 * number becomes the low bits. So two nodes that have counted equally far, but to different jobs, differ. A node that
 * switches for a message adopts the message's epoch as it is. So the nodes that run a job share one epoch, whose low
 * bits are the number of the first of them.
 */
#ifndef COSCHED_EPOCH_H
#define COSCHED_EPOCH_H

#include "policy.h"

#define COSCHED_EPOCH_NODE_BITS 16
#define COSCHED_EPOCH_NODE_MASK ((1ULL << COSCHED_EPOCH_NODE_BITS) - 1)

/* The epoch of @node after a spontaneous switch in @epoch. The last one does not wrap: it is 2^48 switches away. */
static inline u64 cosched_epoch_next(u64 epoch, u32 node)
{
	u64 count = epoch >> COSCHED_EPOCH_NODE_BITS;

	if (count < COSCHED_U64_MAX >> COSCHED_EPOCH_NODE_BITS)
		count++;
	return count << COSCHED_EPOCH_NODE_BITS | (node & COSCHED_EPOCH_NODE_MASK);
}

/* The epoch of a node in @epoch that has switched for a message of @message_epoch. */
static inline u64 cosched_epoch_adopt(u64 epoch, u64 message_epoch)
{
	return message_epoch > epoch ? message_epoch : epoch;
}

#endif
