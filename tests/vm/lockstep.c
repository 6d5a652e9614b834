// SPDX-License-Identifier: GPL-2.0-only
// lockstep: what the clock of this machine is like, for "selftest" to hold against what virtual time promises.
//
// Prints lines of "NAME VALUE...". In virtual time, with a turn of TURN ns:
//   busy K RATE...    loops of each of K busy CPUs in 0.1 s: the same whatever K is
//   trip pause|plain US   a round trip over a word in memory between the first CPU and the last: one turn of all
//   backwards NS      how far the clock of one CPU was behind what another had read before: 0
//   sleep US          a sleep of 1,000 us, timer slack aside
//   switch US         half the median round trip over pipes between two processes on one CPU: two switches, no interrupt
//   thread US         the same between two threads, which share an address space
//   wake US           the same between two processes on two CPUs: an interrupt wakes the idle CPU
//   beside K US       the same while the K CPUs between these two are busy: as long, but for what the kernel does then
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CPUS = 64, TRIPS = 5000, MESSAGES = 500 };

static int n_cpus;
static pthread_barrier_t start;
static int64_t until;
static uint64_t loops[MAX_CPUS];
static bool with_pause;
static _Atomic int ball;
static _Atomic int64_t latest;
static _Atomic int64_t backwards;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set)) {
		perror("lockstep: sched_setaffinity");
		exit(1);
	}
}

static void *compute(void *cpu)
{
	uint64_t x = 1, n = 0;

	pin((intptr_t)cpu);
	pthread_barrier_wait(&start);
	for (; now() < until; n++)
		for (int i = 0; i < 2000; i++) {
			x = x * 6364136223846793005ULL + 1;
			__asm__ volatile("" : "+r"(x));
		}
	loops[(intptr_t)cpu] = n;
	return NULL;
}

static void *bounce(void *side)
{
	int odd = (intptr_t)side, at;

	pin(odd ? n_cpus - 1 : 0);
	pthread_barrier_wait(&start);
	while ((at = atomic_load(&ball)) < 2 * TRIPS)
		if ((at & 1) == odd)
			atomic_store(&ball, at + 1);
		else if (with_pause)
			__builtin_ia32_pause();
	return NULL;
}

static void *compare_clocks(void *cpu)
{
	pin((intptr_t)cpu);
	pthread_barrier_wait(&start);
	for (int i = 0; i < 20000; i++) {
		int64_t seen = atomic_load(&latest), here = now();

		if (here > seen)
			atomic_store(&latest, here);
		else if (seen - here > atomic_load(&backwards))
			atomic_store(&backwards, seen - here);
	}
	return NULL;
}

// n threads that run what, from the moment that all are there; returns how long it takes.
static int64_t together(int n, void *(*what)(void *), int64_t length)
{
	pthread_t threads[MAX_CPUS];
	int64_t began;

	pthread_barrier_init(&start, NULL, n + 1);
	for (intptr_t i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, what, (void *)i);
	until = now() + length;
	began = now();
	pthread_barrier_wait(&start);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&start);
	return now() - began;
}

static int there[2], back[2];

static void *echo(void *cpu)
{
	char c;

	pin((intptr_t)cpu);
	for (int i = 0; i < MESSAGES; i++)
		if (read(there[0], &c, 1) != 1 || write(back[1], &c, 1) != 1)
			exit(1);
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const int64_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

// Half of the median round trip.
static double call_us(void)
{
	static int64_t took_ns[MESSAGES];
	char c = 0;

	for (int i = 0; i < MESSAGES; i++) {
		int64_t began = now();

		if (write(there[1], &c, 1) != 1 || read(back[0], &c, 1) != 1)
			exit(1);
		took_ns[i] = now() - began;
	}
	qsort(took_ns, MESSAGES, sizeof(took_ns[0]), compare);
	return took_ns[MESSAGES / 2] / 2e3;
}

// Half a round trip over pipes to a process, or to a thread of this one, on that CPU.
static double message_us(int cpu, bool to_thread)
{
	pthread_t thread;
	double us;

	pin(0);
	if (pipe(there) || pipe(back))
		exit(1);
	if (to_thread) {
		pthread_create(&thread, NULL, echo, (void *)(intptr_t)cpu);
		us = call_us();
		pthread_join(thread, NULL);
	} else {
		if (fork() == 0) {
			echo((void *)(intptr_t)cpu);
			_exit(0);
		}
		us = call_us();
		wait(NULL);
	}
	for (int i = 0; i < 2; i++) {
		close(there[i]);
		close(back[i]);
	}
	return us;
}

int main(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };
	int64_t began;

	setvbuf(stdout, NULL, _IOLBF, 0);
	n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (n_cpus < 2 || n_cpus > MAX_CPUS)
		return 1;
	together(1, compute, 100000000);    // touches what it needs
	for (int k = 1; k <= n_cpus; k++) {
		together(k, compute, 100000000);
		printf("busy %d", k);
		for (int i = 0; i < k; i++)
			printf(" %lu", loops[i]);
		puts("");
	}
	for (int i = 0; i < 2; i++) {
		with_pause = i;
		ball = 0;
		printf("trip %s %.3f\n", i ? "pause" : "plain", together(2, bounce, 0) / 1e3 / TRIPS);
	}
	together(n_cpus, compare_clocks, 0);
	printf("backwards %ld\n", (long)backwards);

	prctl(PR_SET_TIMERSLACK, 1);
	began = now();
	for (int i = 0; i < 100; i++)
		nanosleep(&ms, NULL);
	printf("sleep %.3f\n", (now() - began) / 1e5);
	printf("switch %.3f\n", message_us(0, false));
	printf("thread %.3f\n", message_us(0, true));
	printf("wake %.3f\n", message_us(n_cpus - 1, false));
	for (intptr_t cpu = 1; cpu < n_cpus - 1; cpu++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			pin(cpu);
			for (;;)
				;
		}
	nanosleep(&ms, NULL);
	printf("beside %d %.3f\n", n_cpus - 2, message_us(n_cpus - 1, false));
	return 0;
}
