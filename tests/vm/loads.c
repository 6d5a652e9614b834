// SPDX-License-Identifier: GPL-2.0-only
// loads: what programs do on a shared machine that is not a parallel job, for the suite.
//
//   loads busy                    computes, for ever, by a jump to itself, which is cheap to emulate (lockstep.patch)
//   loads chain MS                computes for so long, has a child that does the same, and exits, for ever
//   loads token N US              N processes pass a token; who has it computes for so long, and who has not sleeps
//   loads wake MS SECONDS         sleeps again and again until the next multiple of MS. Prints p50 and p99 of how late it
//                                 is, us, and how often that is more than 1 ms
//   loads write US SECONDS        the same with a period in us, but what counts is when it has changed its nice level and
//                                 written to a terminal, for which a kernel thread wakes and takes the CPU
//   loads cut US                  computes for so long and writes to a terminal, for which a kernel thread takes the CPU,
//                                 for ever
//   loads part US PERIOD_US       computes for so much of each period, for ever. If it is late it begins at once
//   loads crowd N SECONDS         N processes that compute. Prints the longest that one of them did not run, ms
//   loads rates N SECONDS         a process on each of the CPUs 1 to N computes for so long. Prints for each how far it has come
//   loads threads N               N threads that compute, for ever. Says "ready" when all of them do
//   loads exits N MIB             N processes that compute, each with so much memory, are killed at once. Prints how long it
//                                 takes until they are gone, and the longest that one which computes beside them did not
//                                 run meanwhile, ms
//   loads pair WAIT FILE          a process on CPU 0 and one on CPU 1 that pass a message to and fro over TCP. Round
//                                 trips are counted in FILE. Both receive as WAIT says: block; poll; spin, which asks
//                                 again and again; or seldom, which computes for 0.2 ms between two receives
//   loads behind N MS             N times, a process on CPU 1 sends a message to one on CPU 0, which computes for so long
//                                 when it comes, and at once wakes another one there. Prints p50 and p99 of how long the
//                                 latter takes to run, us, and how often that is more than 1 ms
//   loads many N SECONDS          a process on CPU 1 receives from N sockets in turn, without waiting. It is stopped until
//                                 there is a message in each. When it has read them, prints its pid; after so many
//                                 seconds sends it N more, and prints how long these take, us
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_US = 1000, NS_PER_MS = 1000000, NS_PER_S = 1000000000 };

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void send_byte(int fd)
{
	if (write(fd, "", 1) != 1)
		fail("write");
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * (int64_t)NS_PER_S + t.tv_nsec;
}

static int64_t now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

// Uses so much CPU time.
static void compute(int64_t ns)
{
	int64_t until = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		;
}

static void sleep_until(int64_t ns)
{
	struct timespec t = { ns / NS_PER_S, ns % NS_PER_S };

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

// A child that ends with its parent. Returns 0 in it.
static pid_t child(void)
{
	pid_t pid = fork();

	if (pid < 0)
		fail("fork");
	if (!pid)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void chain(int64_t ns)
{
	for (;;) {
		compute(ns);
		pid_t pid = fork();

		if (pid < 0)
			fail("fork");
		if (pid)
			_exit(0);
	}
}

static void pass(int from, int to, int64_t ns)
{
	char token;

	for (;;) {
		if (read(from, &token, 1) != 1)
			exit(0);
		compute(ns);
		if (write(to, &token, 1) != 1)
			exit(0);
	}
}

static void token(int n, int64_t ns)
{
	int ring[n][2];

	for (int i = 0; i < n; i++)
		if (pipe(ring[i]))
			fail("pipe");
	for (int i = 0; i < n; i++)
		if (!child())
			pass(ring[i][0], ring[(i + 1) % n][1], ns);
	send_byte(ring[0][1]);
	pause();
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static int terminal(void)
{
	int fd = posix_openpt(O_RDWR | O_NOCTTY);

	if (fd < 0 || grantpt(fd) || unlockpt(fd))
		fail("posix_openpt");
	return fd;
}

// Prints p50 and p99 of @n times, in us, and how many are longer than 1 ms.
static void print_times(int64_t *ns, int64_t n)
{
	int64_t longer = 0;

	qsort(ns, n, sizeof(*ns), compare);
	for (int64_t i = 0; i < n; i++)
		longer += ns[i] > NS_PER_MS;
	printf("%ld %ld %ld\n", (long)(ns[n / 2] / NS_PER_US), (long)(ns[n * 99 / 100] / NS_PER_US), (long)longer);
}

// A terminal of -1 is none. To change the nice level takes the task off its CPU and puts it back, as locks do with
// PREEMPT_RT.
static void wake(int64_t ns, int64_t seconds, int terminal)
{
	int64_t n = seconds * NS_PER_S / ns, *late = calloc(n, sizeof(*late)), next = now();

	for (int64_t i = 0; i < n; i++) {
		next += ns;
		sleep_until(next);
		if (terminal >= 0) {
			if (setpriority(PRIO_PROCESS, 0, i % 2))
				fail("setpriority");
			send_byte(terminal);
		}
		late[i] = now() - next;
		// One that comes after the next was due has missed that one.
		while (next + ns < now())
			next += ns;
	}
	print_times(late, n);
}

static void cut(int64_t ns)
{
	int fd = terminal();

	sleep_until(now() + NS_PER_MS);
	for (;;) {
		compute(ns);
		send_byte(fd);
	}
}

static void part(int64_t ns, int64_t period_ns)
{
	int64_t next = now();

	for (;;) {
		compute(ns);
		next += period_ns;
		if (next > now())
			sleep_until(next);
		else
			next = now();
	}
}

// Never returns.
static void compute_and_note(int64_t *longest, int64_t ns)
{
	int64_t begun = now(), seen = begun, t;

	while ((t = now()) < begun + ns) {
		if (t - seen > *longest)
			*longest = t - seen;
		seen = t;
	}
	_exit(0);
}

static void crowd(int n, int64_t seconds)
{
	int64_t *longest = mmap(NULL, n * sizeof(*longest), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t most = 0;
	// All begin together, when the last one is there.
	int64_t begin = now() + n * 5 * NS_PER_MS;

	if (longest == MAP_FAILED )
		fail("crowd");
	for (int i = 0; i < n; i++) {
		if (child())
			continue;
		sleep_until(begin);
		compute_and_note(longest + i, seconds * NS_PER_S);
	}
	sleep_until(begin + seconds * NS_PER_S);
	for (int i = 0; i < n; i++) {
		// Who has not run even once has waited all the time.
		if (!longest[i])
			longest[i] = seconds * NS_PER_S;
		if (longest[i] > most)
			most = longest[i];
	}
	printf("%ld\n", (long)(most / NS_PER_MS));
	while (wait(NULL) > 0)
		;
}

static void *compute_for_ever(void *unused)
{
	for (;;)
		;
	return unused;
}

static void threads(int n)
{
	// Else those that are there would keep the next one from being made.
	struct sched_param first = { .sched_priority = 1 }, ordinary = { 0 };
	pthread_attr_t attr;
	pthread_t thread;

	if (sched_setscheduler(0, SCHED_FIFO, &first))
		fail("sched_setscheduler");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &ordinary);
	for (int i = 0; i < n; i++) {
		errno = pthread_create(&thread, &attr, compute_for_ever, NULL);
		if (errno)
			fail("pthread_create");
	}
	puts("ready");
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	pause();
}

static void exits(int n, size_t bytes)
{
	pid_t pids[n];
	int64_t longest = 0, killed, seen, t;
	int left = n;

	for (int i = 0; i < n; i++) {
		pids[i] = child();
		if (pids[i])
			continue;
		char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			fail("mmap");
		madvise(memory, bytes, MADV_NOHUGEPAGE);
		for (size_t j = 0; j < bytes; j += 4096)
			memory[j] = 1;
		raise(SIGSTOP);
		for (;;)
			;
	}
	for (int i = 0; i < n; i++)
		waitpid(pids[i], NULL, WUNTRACED);
	/* All compute for a while. Otherwise those that had to wait to fill their memory would be owed that time. */
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGCONT);
	compute(200 * NS_PER_MS);
	killed = seen = now();
	for (int i = 0; i < n; i++)
		kill(pids[i], SIGKILL);
	while (left > 0) {
		while (waitpid(-1, NULL, WNOHANG) > 0)
			left--;
		t = now();
		if (t - seen > longest)
			longest = t - seen;
		seen = t;
	}
	printf("%ld %ld\n", (long)((seen - killed) / NS_PER_MS), (long)(longest / NS_PER_MS));
}

static void run_on(int cpu)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(cpu, &cpus);
	if (sched_setaffinity(0, sizeof(cpus), &cpus))
		fail("sched_setaffinity");
}

static void rates(int n, int64_t ns)
{
	int64_t from = now() + NS_PER_S / 4;

	for (int cpu = 1; cpu <= n; cpu++)
		if (!child()) {
			long far = 0;

			run_on(cpu);
			sleep_until(from);
			for (; now() < from + ns; far++)
				for (volatile int i = 0; i < 1000; i++)
					;
			printf("%d %ld\n", cpu, far);
			exit(0);
		}
	while (wait(NULL) > 0)
		;
}

static int listen_to(struct sockaddr_in *address, int n)
{
	socklen_t length = sizeof(*address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	if (bind(listener, (void *)address, length) || listen(listener, n) ||
	    getsockname(listener, (void *)address, &length))
		fail("listen");
	return listener;
}

static int connect_to(const struct sockaddr_in *address)
{
	int end = socket(AF_INET, SOCK_STREAM, 0), yes = 1;

	if (connect(end, (const void *)address, sizeof(*address)))
		fail("connect");
	setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return end;
}

static int accept_from(int listener)
{
	int end = accept(listener, NULL, NULL), yes = 1;

	if (end < 0)
		fail("accept");
	setsockopt(end, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return end;
}

// Two ends of a TCP connection.
static void connect_pair(int ends[2])
{
	struct sockaddr_in address;
	int listener = listen_to(&address, 1);

	ends[0] = connect_to(&address);
	ends[1] = accept_from(listener);
	close(listener);
}

static void receive(int end, const char *wait_how)
{
	int flags = strcmp(wait_how, "block") ? MSG_DONTWAIT : 0, polls = !strcmp(wait_how, "poll");
	int computes = !strcmp(wait_how, "seldom");
	char message[128];

	for (;;) {
		struct pollfd ready = { .fd = end, .events = POLLIN };
		ssize_t length;

		if (polls && poll(&ready, 1, -1) != 1)
			fail("poll");
		if (computes)
			compute(200 * NS_PER_US);
		length = recv(end, message, sizeof(message), flags);
		if (length == sizeof(message))
			return;
		if (length >= 0 || errno != EAGAIN)
			exit(0);
	}
}

// One end of a pair. The first one counts the round trips in @trips.
static void talk(int end, int begins, const char *wait_how, volatile int64_t *trips)
{
	static const char message[128];

	for (;;) {
		if (!begins)
			receive(end, wait_how);
		if (send(end, message, sizeof(message), MSG_NOSIGNAL) != sizeof(message))
			exit(0);
		if (!begins)
			continue;
		receive(end, wait_how);
		++*trips;
	}
}

static void pair(const char *wait_how, const char *path)
{
	int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), ends[2];
	int64_t *trips;

	if (file < 0 || ftruncate(file, sizeof(*trips)))
		fail(path);
	trips = mmap(NULL, sizeof(*trips), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (trips == MAP_FAILED)
		fail(path);
	connect_pair(ends);
	for (int i = 0; i < 2; i++) {
		if (child())
			continue;
		run_on(i);
		close(ends[!i]);
		talk(ends[i], !i, wait_how, trips);
	}
	close(ends[0]);
	close(ends[1]);
	while (wait(NULL) > 0)
		;
}

static void behind(int64_t n, int64_t ns)
{
	int64_t late[n], begun, ran;
	int ends[2], asked[2], told[2];
	char byte;

	connect_pair(ends);
	if (pipe(asked) || pipe(told))
		fail("pipe");
	if (!child()) {
		run_on(0);
		for (;;) {
			if (recv(ends[1], &byte, 1, 0) != 1)
				exit(0);
			compute(ns);
		}
	}
	if (!child()) {
		run_on(0);
		while (read(asked[0], &byte, 1) == 1) {
			ran = now();
			if (write(told[1], &ran, sizeof(ran)) != sizeof(ran))
				fail("write");
		}
	}
	run_on(1);
	for (int64_t i = 0; i < n; i++) {
		sleep_until(now() + 6 * ns);
		begun = now();
		send_byte(ends[0]);
		send_byte(asked[1]);
		if (read(told[0], &ran, sizeof(ran)) != sizeof(ran))
			fail("read");
		late[i] = ran - begun;
	}
	print_times(late, n);
}

// Reads from all sockets in turn, and tells of each N messages.
static void ask_many(int listener, int n, int told)
{
	int ends[n], left = n;
	char message;

	run_on(1);
	for (int i = 0; i < n; i++)
		ends[i] = accept_from(listener);
	for (int i = 0;; i = (i + 1) % n) {
		if (recv(ends[i], &message, 1, MSG_DONTWAIT) != 1 || --left)
			continue;
		if (write(told, "", 1) != 1)
			exit(0);
		left = n;
	}
}

static void send_many(const int *ends, int n)
{
	for (int i = 0; i < n; i++)
		if (send(ends[i], "", 1, MSG_NOSIGNAL) != 1)
			fail("send");
}

static void many(int n, int64_t seconds)
{
	struct sockaddr_in address;
	int listener = listen_to(&address, n), ends[n], told[2];
	int64_t begun;
	pid_t asker;
	char answer;

	if (pipe(told))
		fail("pipe");
	asker = child();
	if (!asker)
		ask_many(listener, n, told[1]);
	run_on(0);
	for (int i = 0; i < n; i++)
		ends[i] = connect_to(&address);
	sleep_until(now() + NS_PER_S / 2);
	if (kill(asker, SIGSTOP) || waitpid(asker, NULL, WUNTRACED) != asker)
		fail("stop");
	send_many(ends, n);
	if (kill(asker, SIGCONT) || read(told[0], &answer, 1) != 1)
		fail("continue");
	printf("%d\n", asker);
	sleep_until(now() + seconds * NS_PER_S);
	begun = now();
	send_many(ends, n);
	if (read(told[0], &answer, 1) != 1)
		fail("read");
	printf("%ld\n", (long)((now() - begun) / NS_PER_US));
}

static long number(char **args, int i, int count)
{
	char *end;
	long n = i < count ? strtol(args[i], &end, 10) : -1;

	if (n < 0 || *end) {
		fprintf(stderr, "loads: argument %d is no number of 0 or more: %s\n", i, i < count ? args[i] : "missing");
		exit(2);
	}
	return n;
}

int main(int count, char **args)
{
	const char *what = count > 1 ? args[1] : "";
#define N(i) number(args, i, count)
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (!strcmp(what, "busy"))
		compute_for_ever(NULL);
	else if (!strcmp(what, "chain"))
		chain(N(2) * NS_PER_MS);
	else if (!strcmp(what, "token"))
		token(N(2), N(3) * NS_PER_US);
	else if (!strcmp(what, "wake"))
		wake(N(2) * NS_PER_MS, N(3), -1);
	else if (!strcmp(what, "write"))
		wake(N(2) * NS_PER_US, N(3), terminal());
	else if (!strcmp(what, "cut"))
		cut(N(2) * NS_PER_US);
	else if (!strcmp(what, "part"))
		part(N(2) * NS_PER_US, N(3) * NS_PER_US);
	else if (!strcmp(what, "crowd"))
		crowd(N(2), N(3));
	else if (!strcmp(what, "rates"))
		rates(N(2), N(3) * NS_PER_S);
	else if (!strcmp(what, "threads"))
		threads(N(2));
	else if (!strcmp(what, "exits"))
		exits(N(2), (size_t)N(3) << 20);
	else if (!strcmp(what, "behind"))
		behind(N(2), N(3) * NS_PER_MS);
	else if (!strcmp(what, "many"))
		many(N(2), N(3));
	else if (!strcmp(what, "pair") && count == 4)
		pair(args[2], args[3]);
	else {
		fprintf(stderr, "loads: no load '%s'\n", what);
		return 2;
	}
	return 0;
}
