/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Wait "spin": a receiver that finds nothing spins for a while before it sleeps. This is spin-block message receipt,
 * for which demand-based coscheduling was conceived (thesis 4.1.1, 4.2.3; Zhang 2.4.1).
 *
 * A process whose peer runs just now has its answer within microseconds. If it sleeps meanwhile, it pays for two
 * switches and a wake-up, and its peer does the same for the next message. So two coscheduled processes that sleep
 * spend most of their share on switching.
 *
 * The spin should last as long as a message takes to wake the peer and come back: 2L + 2o + W (Arpaci-Dusseau 3.3).
 * Then coscheduled processes stay so, and a process whose peer is away loses no more than that.
 *
 * A message that comes just too late costs twice what sleeping at once would have. That is too much for a server that
 * waits for milliseconds each time. It is also too much for two processes on one CPU, where one can only answer when
 * the other sleeps. So after a spin in vain the next waits of that task sleep at once: 1, then 3, 7 and so on up to 63.
 * After a spin that succeeds, a quarter of that number do. Where less than a third of the spins succeed, hardly any are
 * tried. A wire whose round trip takes longer than most spins is such a case. Where more succeed, few are left out, and
 * two processes that begin to talk soon spin at each wait.
 */
#ifndef COSCHED_WAIT_SPIN_H
#define COSCHED_WAIT_SPIN_H

#include "policy.h"

#define COSCHED_MAX_WAIT_SKIPS 63

/* May the wait that begins now spin? */
static inline int wait_spin_begin(struct cosched_wait_history *history)
{
	if (!history->skips_left)
		return 1;
	history->skips_left--;
	return 0;
}

/* A wait has spun for all that it was allowed, or until the message came. */
static inline void wait_spin_end(struct cosched_wait_history *history, int message_came)
{
	if (message_came)
		history->skips = (history->skips < COSCHED_MAX_WAIT_SKIPS ? history->skips :
									    COSCHED_MAX_WAIT_SKIPS) / 4;
	else if (history->skips < COSCHED_MAX_WAIT_SKIPS / 2)
		history->skips = 2 * history->skips + 1;
	else
		history->skips = COSCHED_MAX_WAIT_SKIPS;
	history->skips_left = history->skips;
}

#endif
