/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cpu.max: no more CPU time than a quota in each period, and what is left of earlier periods up to a burst.
 *
 * A group with a limit has a pool, which all CPUs share. At the end of each period the pool gains the quota, and then
 * holds no more than the quota and the burst. A CPU on which the group is to run takes a portion, so that it need not
 * come back to the pool at each switch. A portion belongs to the period in which it was taken. What is left of it when
 * that period is over counts as carried over. It goes back to the pool as far as the burst leaves room, and the rest is
 * lost.
 *
 *	quota 10 ms, period 100 ms, burst 0		pool	CPU 0	CPU 1
 *	the period begins				10	0	0
 *	both CPUs take a portion			0	5	5
 *	CPU 0 has run for 6 ms: a debt of 1 ms		0	-1	5
 *	CPU 1 has run for 2 ms, and its task sleeps	3	-1	0
 *	CPU 0 pays its debt, and takes the rest		0	2	0
 *
 * A run may end late: at a timer that is late, or because another task of the group has emptied the pool meanwhile.
 * What it has had too much is a debt, which the next refills pay. So over many periods the group has its quota,
 * however late its slices end. A debt is bounded by what LIMIT_WAIT_NS bring.
 *
 * Limits nest: a task runs while each group from its own up to the root has time left. But no task is kept from running
 * for longer than LIMIT_WAIT_NS: the kernel throws out a scheduler that leaves a task waiting for 20 s. The task then
 * runs for LIMIT_LEAST_NS, and its groups owe that.
 *
 * Times are in ns.
 */
#ifndef COSCHED_LIMIT_H
#define COSCHED_LIMIT_H

#include "fair.h"

#define LIMIT_PORTION_NS	5000000ULL	/* the most that a CPU takes at a time, as in the kernel's own limits */
#define LIMIT_LEAST_NS		100000ULL	/* a shorter run is not worth a switch */
#define LIMIT_WAIT_NS		10000000000ULL	/* after which a task runs whatever the limit */
#define LIMIT_NS_MAX		(1ULL << 42)	/* a quota or burst beyond counts as this: 73 minutes */
#define LIMIT_PERIODS_MAX	(1ULL << 20)	/* so that a product of both fits into 64 bits */

/* The pool of a group. It starts as zeroes. */
struct cosched_limit {
	u64 quota_ns;		/* 0: the group has no limit */
	u64 period_ns;
	u64 burst_ns;
	s64 left_ns;		/* that no CPU has taken; less than 0: a debt */
	u64 room_ns;		/* what portions of earlier periods may still bring back */
	u64 refill_at_ns;	/* when the period ends */
	u64 number;		/* of the period: never the same again */
};

/* What a CPU has of a pool. It starts as zeroes. */
struct cosched_portion {
	s64 left_ns;
	u64 number;		/* of the period in which it was taken */
};

static inline u64 limit_least(u64 a, u64 b)
{
	return a < b ? a : b;
}

/* The group has this limit from @now_ns on, and at first its whole quota. A @quota_ns of 0 is none. */
static inline void limit_set(struct cosched_limit *limit, u64 quota_ns, u64 period_ns, u64 burst_ns, u64 now_ns)
{
	limit->quota_ns = limit_least(quota_ns, LIMIT_NS_MAX);
	limit->period_ns = period_ns ? period_ns : 1;
	limit->burst_ns = limit_least(burst_ns, LIMIT_NS_MAX);
	limit->left_ns = limit->quota_ns;
	limit->room_ns = 0;
	limit->refill_at_ns = now_ns + limit->period_ns;
	limit->number++;
}

/* How many periods have ended by @now_ns that the pool has gained nothing for yet. */
static inline u64 limit_periods(const struct cosched_limit *limit, u64 now_ns)
{
	s64 late_ns = now_ns - limit->refill_at_ns;

	return late_ns < 0 ? 0 : 1 + (u64)late_ns / limit->period_ns;
}

/* What the pool has when it has paid @owed_ns, and then gains what so many @periods bring. */
static inline s64 limit_after(const struct cosched_limit *limit, u64 owed_ns, u64 periods)
{
	s64 left_ns = limit->left_ns - owed_ns + limit_least(periods, LIMIT_PERIODS_MAX) * limit->quota_ns;
	s64 most = limit->quota_ns + limit->burst_ns;

	return left_ns < most ? left_ns : most;
}

/* The pool gains what the periods bring that have ended by @now_ns. */
static inline void limit_refill(struct cosched_limit *limit, u64 now_ns)
{
	u64 periods = limit_periods(limit, now_ns);
	s64 carried;

	if (!periods)
		return;
	limit->refill_at_ns += periods * limit->period_ns;
	limit->number += periods;
	limit->left_ns = limit_after(limit, 0, periods);
	carried = limit->left_ns - (s64)limit->quota_ns;
	limit->room_ns = carried > 0 ? limit->burst_ns - carried : limit->burst_ns;
}

/* The furthest that a group may be in debt: what it gains in LIMIT_WAIT_NS, or in a period. */
static inline s64 limit_debt_max(const struct cosched_limit *limit)
{
	u64 periods = LIMIT_WAIT_NS / limit->period_ns;

	return limit->quota_ns * (periods < 1 ? 1 : limit_least(periods, LIMIT_PERIODS_MAX));
}

/* Gives the pool back what is left of @portion, or what it owes. */
static inline void limit_return(struct cosched_limit *limit, struct cosched_portion *portion)
{
	s64 left_ns = portion->left_ns, most = limit_debt_max(limit);

	if (left_ns > 0 && portion->number != limit->number) {
		left_ns = limit_least(left_ns, limit->room_ns);
		limit->room_ns -= left_ns;
	}
	limit->left_ns += left_ns;
	if (limit->left_ns < -most)
		limit->left_ns = -most;
	portion->left_ns = 0;
}

/*
 * What a CPU takes at a time, if the group counts for @counts there of its whole @weight: that part of the quota. If
 * the first CPU after a refill took all of a small quota, a task on another CPU might never run.
 */
static inline u64 limit_part(const struct cosched_limit *limit, u64 counts, u64 weight)
{
	u64 part_ns = fair_scale(limit->quota_ns, counts, weight);

	if (part_ns < LIMIT_LEAST_NS)
		part_ns = LIMIT_LEAST_NS;
	return limit_least(part_ns, LIMIT_PORTION_NS);
}

/*
 * The group is to run on a CPU at @now_ns. The CPU fills its @portion up to @part_ns if less than half of that is left,
 * so that it need not come again soon. Returns what it has then.
 */
static inline s64 limit_take(struct cosched_limit *limit, struct cosched_portion *portion, u64 part_ns, u64 now_ns)
{
	/* A debt first: what the pool cannot hold is lost. */
	if (portion->left_ns < 0)
		limit_return(limit, portion);
	limit_refill(limit, now_ns);
	if (portion->number == limit->number && portion->left_ns >= (s64)part_ns / 2)
		return portion->left_ns;
	limit_return(limit, portion);
	portion->number = limit->number;
	if (limit->left_ns > 0)
		portion->left_ns = limit_least(limit->left_ns, part_ns);
	limit->left_ns -= portion->left_ns;
	return portion->left_ns;
}

/*
 * When a CPU that has @portion may run the group again, as far as is known at @now_ns. That is at the end of a period,
 * or at once, which is 0. Changes nothing.
 */
static inline u64 limit_until(const struct cosched_limit *limit, const struct cosched_portion *portion, u64 now_ns)
{
	u64 owed_ns = portion->left_ns < 0 ? -(u64)portion->left_ns : 0;
	u64 periods;

	if (!limit->quota_ns)
		return 0;
	periods = limit_periods(limit, now_ns);
	if (!periods && portion->number == limit->number && portion->left_ns > 0)
		return 0;
	if (limit_after(limit, owed_ns, periods) > 0)
		return 0;
	return limit->refill_at_ns + periods * limit->period_ns;
}

/* Does a task that has waited for @waited_ns run whatever its limits? */
static inline int limit_waited(u64 waited_ns)
{
	return waited_ns >= LIMIT_WAIT_NS;
}

/*
 * How long a task that would have @slice_ns runs for at a time. @left_ns is the least that any of its groups has left.
 */
static inline u64 limit_slice(u64 slice_ns, s64 left_ns)
{
	u64 most = left_ns < (s64)LIMIT_LEAST_NS ? LIMIT_LEAST_NS : (u64)left_ns;

	return limit_least(slice_ns, most);
}

#endif
