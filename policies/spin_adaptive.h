/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Spin "adaptive-local" and "adaptive-global": as long as the job's own imbalance makes its waits (Dusseau 6.1 to 6.3).
 *
 * Processes that wait for each other wait for the slowest, for up to v, the imbalance of their work. A process that
 * spins for v and a round trip outlasts that wait. Whatever takes longer means that its peers do not run. If v is above
 * V, ten switches, it pays to let another task run meanwhile. The spin is then the baseline, which keeps coordinated
 * processes together. In Dusseau 6.1 that is two switches, as there was no latency to speak of.
 *
 *	spin = max(baseline, v + 2L + 4o)	if v <= 10 W
 *	       baseline				else
 *
 * v is not known. "local" takes the longest of a task's own waits. It drops the worst tenth of them, since those were
 * waits for a peer that did not run. The paper found that too low, for what is dropped is sometimes true. "global"
 * takes the estimate of the root of a barrier, which sees all processes arrive and sends it along. Here every task
 * sends its estimate along with its messages. It takes the longest that it hears if that is longer than its own.
 */
#ifndef COSCHED_SPIN_ADAPTIVE_H
#define COSCHED_SPIN_ADAPTIVE_H

#include "policy.h"
#include "spin_baseline.h"

#define COSCHED_SPIN_WORST_TENTH 10
#define COSCHED_SPIN_BLOCKING_PAYS 10	/* V, in switches */

/*
 * v as far as the task's own waits tell, in us: the longest, but for the worst tenth, which is two of twenty at most.
 * In one pass, by keeping the three longest: the verifier walks through loops one round at a time.
 */
COSCHED_APART u32 spin_adaptive_estimate_us(const struct cosched_wait_history *history COSCHED_NONNULL)
{
	u32 nr = history->nr_waits < COSCHED_WAIT_SAMPLES ? history->nr_waits : COSCHED_WAIT_SAMPLES;
	u32 dropped = nr / COSCHED_SPIN_WORST_TENTH, first = 0, second = 0, third = 0, i;

	cosched_for(i, nr) {
		u32 wait_us = history->waits_us[i];

		if (wait_us > first) {
			third = second;
			second = first;
			first = wait_us;
		} else if (wait_us > second) {
			third = second;
			second = wait_us;
		} else if (wait_us > third) {
			third = wait_us;
		}
	}
	return dropped == 0 ? first : dropped == 1 ? second : third;
}

/* A wait of the task took @waited_ns. Once there are enough waits, a new one takes the place of any of the old. */
static inline void spin_adaptive_learn(struct cosched_wait_history *history, u64 waited_ns)
{
	u64 waited_us = waited_ns / 1000;
	u32 nr = history->nr_waits;
	/*
	 * Any sequence that comes to all places will do, and it has to be the same natively and in BPF. Not by
	 * remainder: the compiler knows that a remainder is below COSCHED_WAIT_SAMPLES, and the verifier does not.
	 */
	u32 place = nr < COSCHED_WAIT_SAMPLES ? nr : ((nr * 2654435761U) >> 16) * COSCHED_WAIT_SAMPLES >> 16;

	history->nr_waits = nr == ~0U ? COSCHED_WAIT_SAMPLES : nr + 1;
	if (place < COSCHED_WAIT_SAMPLES)
		history->waits_us[place] = waited_us < ~0U ? (u32)waited_us : ~0U;
	history->estimate_us = spin_adaptive_estimate_us(history);
}

/* A message has come with its sender's estimate. What was heard wears off, or one slow phase would last for ever. */
static inline void spin_adaptive_hear(struct cosched_wait_history *history, u32 estimate_us)
{
	u32 old_us = history->heard_us - history->heard_us / 8;

	history->heard_us = estimate_us > old_us ? estimate_us : old_us;
}

static inline u64 spin_adaptive_ns(const struct cosched_policy *policy, u32 imbalance_us)
{
	u64 baseline_ns = spin_baseline_ns(policy), imbalance_ns = (u64)imbalance_us * 1000;
	u64 message_ns = cosched_add_u64(policy->latency_ns, cosched_mul_u64_u32(policy->overhead_ns, 2));
	u64 spin_ns = cosched_add_u64(imbalance_ns, cosched_mul_u64_u32(message_ns, 2));

	if (imbalance_ns > cosched_mul_u64_u32(policy->switch_ns, COSCHED_SPIN_BLOCKING_PAYS))
		return baseline_ns;
	return spin_ns > baseline_ns ? spin_ns : baseline_ns;
}

static inline u64 spin_adaptive_local_ns(const struct cosched_policy *policy,
					 const struct cosched_wait_history *history)
{
	return spin_adaptive_ns(policy, history->estimate_us);
}

static inline u64 spin_adaptive_global_ns(const struct cosched_policy *policy,
					  const struct cosched_wait_history *history)
{
	u32 own_us = history->estimate_us, heard_us = history->heard_us;

	return spin_adaptive_ns(policy, own_us > heard_us ? own_us : heard_us);
}

#endif
