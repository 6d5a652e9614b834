// SPDX-License-Identifier: GPL-2.0-only
// switch-price: what a switch between two processes on one CPU takes on this machine, caches and TLB included.
//
// For several sizes of what each process touches between two messages it prints a line:
//   KIB SELF_NS SWITCH_NS
// SELF_NS is a message over a pipe to the process itself and the touching, without a switch; SWITCH_NS is what it takes
// more if another process answers. The least of many samples: whatever disturbs only adds.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 400, MESSAGES = 20, LINE = 64, KIB = 1024 };

static volatile char memory[512 * KIB];

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void touch(int bytes)
{
	for (int i = 0; i < bytes; i += LINE)
		memory[i]++;
}

static void message(int to, int from, int bytes)
{
	char c = 0;

	if (write(to, &c, 1) != 1 || read(from, &c, 1) != 1)
		exit(1);
	touch(bytes);
}

// The least time of a message, ns.
static double least(int to, int from, int bytes)
{
	double least = 1e18;

	for (int i = 0; i < SAMPLES; i++) {
		int64_t began = now();

		for (int m = 0; m < MESSAGES; m++)
			message(to, from, bytes);
		double ns = (double)(now() - began) / MESSAGES;
		if (ns < least)
			least = ns;
	}
	return least;
}

int main(void)
{
	const int sizes[] = { 0, 4, 16, 32, 64, 128, 256, 512 };
	cpu_set_t one;
	int there[2], back[2], self[2];

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (sched_setaffinity(0, sizeof(one), &one))
		return 1;
	for (unsigned i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		int bytes = sizes[i] * KIB;

		if (pipe(there) || pipe(back) || pipe(self))
			return 1;
		pid_t child = fork();
		if (child == 0) {
			char c;

			while (read(there[0], &c, 1) == 1) {
				touch(bytes);
				if (write(back[1], &c, 1) != 1)
					break;
			}
			_exit(0);
		}
		// A round trip is two messages and two switches, and both processes touch.
		double alone = least(self[1], self[0], bytes);
		double both = least(there[1], back[0], bytes) / 2;
		printf("%d %.0f %.0f\n", sizes[i], alone, both - alone);
		fflush(stdout);
		kill(child, SIGKILL);
		wait(NULL);
		for (int end = 0; end < 2; end++) {
			close(there[end]);
			close(back[end]);
			close(self[end]);
		}
	}
	return 0;
}
