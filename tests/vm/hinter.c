/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * hinter MODE [MS TIMES]: a program that gives hints, for tests/vm/cases. It polls memory alone, so that the scheduler
 * knows of its waits what it says, and nothing else. Prints "heard" when a scheduler hears it, and ends with 3 if none
 * has within 30 s.
 *
 *	waits			says that it waits, and looks for something that never comes
 *	dozes			says each second that it waits, and sleeps
 *	lies			says all the time that there is a message for it, and computes
 *	waits-and-lies		says that it waits and that there is a message for it, and computes
 *	woken MS TIMES		waits on CPU 1 for what another thread, on CPU 0, has for it every MS ms, and says so; prints
 *				the longest time in ms from there until it was found
 *	unwoken MS TIMES	the same, but the other thread says nothing
 *	crowd N			N threads say that they wait, and sleep
 */
#define _GNU_SOURCE
#include "../../hints/cosched.h"

#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static int64_t sent_at;		/* ns; 0: nothing is there */
static int wanted;		/* something is */
static int silent;
static long interval_ms;
static cosched_thread *receiver;

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static void sleep_ms(long ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

static void stay_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static int is_heard_soon(void)
{
	int i;

	for (i = 0; i < 300; i++) {
		cosched_self();
		if (cosched_is_heard())
			return 1;
		sleep_ms(100);
	}
	return 0;
}

static void be_heard(void)
{
	if (!is_heard_soon())
		exit(3);
	puts("heard");
	fflush(stdout);
}

static void *send_all(void *unused)
{
	stay_on(0);
	for (;;) {
		if (!__atomic_load_n(&wanted, __ATOMIC_ACQUIRE)) {
			sleep_ms(1);
			continue;
		}
		sleep_ms(interval_ms);
		__atomic_store_n(&wanted, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&sent_at, now_ns(), __ATOMIC_RELEASE);
		if (!silent)
			cosched_message_pending(receiver);
	}
	return unused;
}

static void receive(long times)
{
	int64_t longest = 0, sent, took;
	pthread_t sender;

	stay_on(1);
	be_heard();
	receiver = cosched_self();
	if (pthread_create(&sender, NULL, send_all, NULL))
		exit(1);
	while (times--) {
		__atomic_store_n(&sent_at, 0, __ATOMIC_RELAXED);
		__atomic_store_n(&wanted, 1, __ATOMIC_RELEASE);
		cosched_wait_begin();
		while (!(sent = __atomic_load_n(&sent_at, __ATOMIC_ACQUIRE)))
			;
		took = now_ns() - sent;
		cosched_wait_end();
		if (took > longest)
			longest = took;
	}
	printf("%ld\n", (long)(longest / 1000000));
}

/* For a second at a time, as one does who has other things to look after. */
static void wait_in_vain(void)
{
	int64_t until;

	for (;;) {
		until = now_ns() + 1000000000;
		cosched_wait_begin();
		while (now_ns() < until)
			;
		cosched_wait_end();
	}
}

static void doze(void)
{
	for (;;) {
		cosched_wait_begin();
		sleep_ms(1000);
		cosched_wait_end();
	}
}

static void *sleep_in_wait(void *unused)
{
	if (is_heard_soon())
		cosched_wait_begin();
	for (;;)
		pause();
	return unused;
}

static void crowd(long count)
{
	pthread_t thread;

	while (count--)
		if (pthread_create(&thread, NULL, sleep_in_wait, NULL))
			exit(1);
	for (;;)
		pause();
}

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "";
	long number = argc > 2 ? atol(argv[2]) : 0;

	if (!strcmp(mode, "crowd"))
		crowd(number);
	silent = !strcmp(mode, "unwoken");
	if (silent || !strcmp(mode, "woken")) {
		interval_ms = number;
		receive(argc > 3 ? atol(argv[3]) : 1);
		return 0;
	}
	be_heard();
	if (!strcmp(mode, "waits"))
		wait_in_vain();
	if (!strcmp(mode, "dozes"))
		doze();
	if (!strcmp(mode, "waits-and-lies"))
		cosched_wait_begin();
	cosched_message_pending(cosched_self());
	for (;;)
		__atomic_load_n(&wanted, __ATOMIC_ACQUIRE);
}
