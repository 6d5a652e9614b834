/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What tasks are due, what they have borrowed, and what a gate is told of it.
 *
 * The fair share T_E / N (thesis 5.1: F = N T_C / T_E) is kept by a clock per CPU. That clock runs at 1 / (sum of the
 * weights of the runnable tasks). Over any time in which a task is runnable, its share is its weight times what the
 * clock went on, whatever came and went meanwhile.
 *
 * Boosts may have ACCOUNT_MAX_BOOSTED times the CPU time of the fair order. Once they are that many slices ahead, the
 * fair order has one whole slice. Otherwise the gate "always" could starve a task until the kernel's watchdog throws
 * the scheduler out. So among n others, a task waits for n * (ACCOUNT_MAX_BOOSTED + 1) slices at most.
 *
 * Kernel threads run as soon as they wake, since others wait for what they do. They have a budget of the same kind.
 * Once they have had ACCOUNT_MAX_URGENT times what the tasks of users have, and ACCOUNT_URGENT_NS more, they wait for
 * their turns until that is repaid. So on a busy CPU users keep a third of the time, whatever kernel threads do. And a
 * thread that works for less than two thirds of the time is not delayed.
 */
#ifndef COSCHED_ACCOUNT_H
#define COSCHED_ACCOUNT_H

#include "fair.h"

#define ACCOUNT_MAX_BOOSTED	8
#define ACCOUNT_MAX_URGENT	2
#define ACCOUNT_URGENT_NS	40000000ULL	/* as long as a softirq or a batch of work takes, and a few more */

/* Of a CPU. It starts as zeroes. */
struct cosched_share_clock {
	u64 ns;			/* of CPU that a task of weight FAIR_WEIGHT_DEFAULT should have had there */
	u64 at_ns;		/* when it was last advanced */
};

/* By how much CPU time boosts, or kernel threads, are ahead of the fair order. It starts as zeroes. */
struct cosched_loan {
	u64 ahead_ns;
	u32 starving;		/* they wait until the fair order has had its turn */
	u32 reserved;
};

/*
 * What @clock shows at @now_ns, if the weights have summed up to @sum since it was last set. It stands still if @sum is
 * 0: no task was runnable, or a task of another scheduling class ran.
 */
static inline u64 account_clock(const struct cosched_share_clock *clock, u64 sum, u64 now_ns)
{
	s64 passed_ns = now_ns - clock->at_ns;

	return clock->ns + (passed_ns > 0 && sum ? fair_vtime(passed_ns, sum) : 0);
}

/* Brings @clock up to @now_ns. To be called before the sum of weights changes, with what it was until then. */
static inline void account_advance(struct cosched_share_clock *clock, u64 sum, u64 now_ns)
{
	clock->ns = account_clock(clock, sum, now_ns);
	clock->at_ns = now_ns;
}

/* Of the time since @clock was last set @ns do not count, or all of it up to @now_ns if that is less. */
static inline void account_skip(struct cosched_share_clock *clock, u64 ns, u64 now_ns)
{
	s64 passed_ns = now_ns - clock->at_ns;

	if (passed_ns > 0)
		clock->at_ns += ns < (u64)passed_ns ? ns : (u64)passed_ns;
}

/* What a task of @effective weight is due while the clock goes on by @ns. */
static inline u64 account_share(u64 ns, u64 effective)
{
	return ns * effective / (FAIR_WEIGHT_DEFAULT << FAIR_WEIGHT_SHIFT);
}

/*
 * The same while it was not runnable, since it awaited a message. The clock went on among others whose weights sum up
 * to @others. With the task they sum up to @all, so @ns is scaled to what it would have been then. Where other tasks of
 * its cgroup run, @all may be no more than @others.
 */
static inline u64 account_awaited(u64 ns, u64 effective, u64 others, u64 all)
{
	u64 whole = FAIR_WEIGHT_DEFAULT << FAIR_WEIGHT_SHIFT;
	/* A sleep may be long: no product of it is to wrap. */
	u64 scaled_ns = all ? ns / all * others + ns % all * others / all : 0;

	return scaled_ns / whole * effective + account_share(scaled_ns % whole, effective);
}

/*
 * A task has run for @ran_ns, @ahead of the fair order or in it. The fair order's turns repay @times what they take.
 * The loan is used up at @most_ns.
 */
static inline void account_lend(struct cosched_loan *loan, u64 most_ns, u32 times, int ahead, u64 ran_ns)
{
	u64 repaid_ns = times * ran_ns;

	if (ahead)
		loan->ahead_ns += ran_ns;
	else
		loan->ahead_ns = loan->ahead_ns > repaid_ns ? loan->ahead_ns - repaid_ns : 0;

	if (loan->ahead_ns >= most_ns)
		loan->starving = 1;
	else if (!loan->ahead_ns)
		loan->starving = 0;
}

/* A task has run for @ran_ns because of a boost, or in the fair order. */
static inline void account_loan(struct cosched_loan *loan, const struct cosched_policy *policy, int boosted, u64 ran_ns)
{
	account_lend(loan, cosched_mul_u64_u32(policy->slice_ns, ACCOUNT_MAX_BOOSTED), ACCOUNT_MAX_BOOSTED, boosted,
		     ran_ns);
}

/*
 * A kernel thread has run for @ran_ns, or a task of a user. What kernel threads had while no other task was there is
 * mostly forgiven. Up to two budgets are left to repay, since the last run of a budget may end a slice later.
 */
static inline void account_urgent(struct cosched_loan *loan, int kthread, u64 ran_ns)
{
	account_lend(loan, ACCOUNT_URGENT_NS, ACCOUNT_MAX_URGENT, kthread, ran_ns);
	if (loan->ahead_ns > 2 * ACCOUNT_URGENT_NS)
		loan->ahead_ns = 2 * ACCOUNT_URGENT_NS;
}

/*
 * Tells a gate how the receiver stands, which has this @lead and @effective weight. On its CPU there are @nr runnable
 * tasks, whose weights sum up to @sum. @counts: the receiver's own weight is among them.
 */
static inline void account_describe(struct cosched_demand *demand, s64 lead, u64 effective, u64 sum, u32 nr, int counts)
{
	u64 all = sum << FAIR_WEIGHT_SHIFT, own = counts ? effective : 0;
	s64 others = own < all ? -fair_scale(lead, own, all - own) : 0;

	demand->receiver_ran_ns = fair_lead_ns(lead, sum, nr);
	demand->running_ran_ns = fair_lead_ns(others, sum, nr);
	demand->nr_runnable = nr;
	demand->scale = fair_share((u64)nr << COSCHED_SCALE_SHIFT, effective, sum);
	demand->max_lead_ns = FAIR_WAIT_NS / (nr ? nr : 1);
}

#endif
