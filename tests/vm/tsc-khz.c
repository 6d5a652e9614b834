/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Prints how many times a millisecond this machine's time stamp counter counts, measured over 0.3 s to some millionths.
 *
 * An emulated CPU reads the same counter. A guest that boots on a busy host measures it wrongly: one of eight had a
 * clock that ran 2.6 times too fast.
 */
#define _GNU_SOURCE
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <x86intrin.h>

struct reading {
	int64_t ns;
	uint64_t count;
};

static int64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Reads both a hundred times, and returns the quickest reading. */
static struct reading read_both(void)
{
	struct reading best = { 0 };
	int64_t best_ns = INT64_MAX;

	for (int i = 0; i < 100; i++) {
		int64_t before = clock_ns();
		uint64_t count = __rdtsc();
		int64_t took = clock_ns() - before;

		if (took < best_ns) {
			best_ns = took;
			best = (struct reading){ .ns = before + took / 2, .count = count };
		}
	}
	return best;
}

int main(void)
{
	const struct timespec pause = { .tv_nsec = 300000000 };
	struct reading begin = read_both(), end;

	nanosleep(&pause, NULL);
	end = read_both();
	printf("%" PRIu64 "\n", (uint64_t)((end.count - begin.count) * 1e6 / (end.ns - begin.ns)));
	return 0;
}
