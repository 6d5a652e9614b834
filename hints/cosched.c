/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libcosched: see cosched.h for what it is for, hint.h for what it says to the scheduler.
 *
 * Each thread has a place in a page that is always there, so that a hint is two stores and asks nothing first. As
 * long as no scheduler listens the page is memory of the process. A scheduler that comes brings another one, which
 * takes its place at the same address. What a thread says is written anew at each wait and never read back, so nothing
 * need be carried over.
 *
 * Everything else happens once a second at most (look()), by whichever thread is first, and the others do not wait
 * for it.
 */
#define _GNU_SOURCE
#include "cosched.h"
#include "hint.h"
#include "link.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_VARIABLE	"COSCHED_HINTS_SOCKET"
#define SOCKET_DEFAULT	"/run/scx_cosched-hints.sock"
#define LOOK_MS		1000	/* between two looks for a scheduler */
#define ANSWER_MS	1000	/* how long one may take to answer */
#define GIVE_UP_MS	10000	/* how long one is left alone that did not */
#define NO_SLOT		(-1)

struct cosched_thread {
	struct cosched_hint *hint;	/* NULL: it has not said anything yet */
	unsigned int waits;
	unsigned int depth;		/* of nested waits */
	unsigned int connection;	/* on which the scheduler has come to know it; 0: none */
	int slot;
	int64_t looked_at;		/* ms */
};

static _Thread_local struct cosched_thread self = { .slot = NO_SLOT };

/* For threads beyond those that find a place, and for what they say. */
static struct cosched_hint nowhere;

static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	pthread_key_t key;		/* whose destructor gives a thread's place back */
	struct cosched_hint *page;	/* once set, for ever */
	uint64_t slots;			/* a bit for each place that is taken */
	unsigned int connection;	/* how many there have been */
	unsigned int lost;		/* the connection that was last found to be over */
	int fd;				/* -1: there is none */
	int64_t not_before;		/* ms: no connection is tried */
} process = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT, .fd = -1 };

/* No system call: the kernel leaves this where programs can read it. */
static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static size_t page_size(void)
{
	size_t size = (size_t)sysconf(_SC_PAGESIZE), wanted = COSCHED_HINT_THREADS * sizeof(struct cosched_hint);

	return size > wanted ? size : wanted;
}

static void end_thread(void *thread)
{
	struct cosched_thread *ended = thread;

	__atomic_store_n(&ended->hint->waits, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&ended->hint->pending, 0, __ATOMIC_RELAXED);
	__atomic_fetch_and(&process.slots, ~(UINT64_C(1) << ended->slot), __ATOMIC_RELEASE);
	ended->hint = &nowhere;
	ended->slot = NO_SLOT;
}

/*
 * What the process shares with the scheduler is its own, and so is what it says: a child begins anew, with one
 * thread.
 */
static void begin_child(void)
{
	pthread_mutex_t unlocked = PTHREAD_MUTEX_INITIALIZER;

	process.lock = unlocked;
	if (process.fd >= 0)
		close(process.fd);
	process.fd = -1;
	process.slots = self.slot == NO_SLOT ? 0 : UINT64_C(1) << self.slot;
	process.not_before = 0;
	self.connection = 0;
	self.looked_at = 0;
	if (process.page &&
	    mmap(process.page, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		 -1, 0) == MAP_FAILED) {
		process.page = NULL;
		self.hint = &nowhere;
		self.slot = NO_SLOT;
	}
}

static void begin_process(void)
{
	void *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED || pthread_key_create(&process.key, end_thread) ||
	    pthread_atfork(NULL, NULL, begin_child))
		return;
	process.page = page;
}

/* Finds the calling thread a place in the page. */
static void begin_thread(void)
{
	uint64_t taken, free_bit;

	pthread_once(&process.once, begin_process);
	self.hint = &nowhere;
	if (!process.page)
		return;
	taken = __atomic_load_n(&process.slots, __ATOMIC_RELAXED);
	do {
		free_bit = ~taken & (taken + 1);
		if (!free_bit)
			return;
	} while (!__atomic_compare_exchange_n(&process.slots, &taken, taken | free_bit, 0, __ATOMIC_ACQUIRE,
					      __ATOMIC_RELAXED));
	self.slot = __builtin_ctzll(free_bit);
	self.hint = &process.page[self.slot];
	if (pthread_setspecific(process.key, &self))
		end_thread(&self);
}

static void hang_up(void)
{
	if (process.fd >= 0)
		close(process.fd);
	process.fd = -1;
	process.lost = process.connection;
}

/* Puts the page behind @fd in the place of the one that is there. */
static void take_page(int fd)
{
	void *page = mmap(NULL, page_size(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (page == MAP_FAILED)
		return;
	/*
	 * Not mapped there in the first place: what is there would be gone if that failed, and others write to it
	 * now.
	 */
	if (mremap(page, page_size(), page_size(), MREMAP_MAYMOVE | MREMAP_FIXED, process.page) == MAP_FAILED)
		munmap(page, page_size());
}

static void call(int64_t now)
{
	const char *path = getenv(SOCKET_VARIABLE);

	process.fd = link_open(path && *path ? path : SOCKET_DEFAULT, ANSWER_MS);
	if (process.fd >= 0)
		process.connection++;
	else if (errno == EAGAIN)
		process.not_before = now + GIVE_UP_MS;
}

/* Has the scheduler know the calling thread. */
static void introduce(int64_t now)
{
	int page, error = link_ask(process.fd, (unsigned int)self.slot, &page);

	if (page >= 0) {
		take_page(page);
		close(page);
	}
	if (!error) {
		self.connection = process.connection;
	} else if (error < 0) {
		/* It is too busy to be bothered, or it is something else that listens there. */
		hang_up();
		process.not_before = now + GIVE_UP_MS;
	}
}

/* Sees whether there is a scheduler, and whether it knows the calling thread. */
static void look(int64_t now)
{
	int error = errno;

	self.looked_at = now;
	if (!self.hint)
		begin_thread();
	if (self.slot == NO_SLOT)
		return;
	if (pthread_mutex_trylock(&process.lock)) {
		/* Another thread is at it: again soon. */
		self.looked_at = now - LOOK_MS + LOOK_MS / 50;
		return;
	}
	if (process.fd >= 0 && link_is_over(process.fd))
		hang_up();
	if (process.fd < 0 && now >= process.not_before)
		call(now);
	if (process.fd >= 0 && self.connection != process.connection)
		introduce(now);
	pthread_mutex_unlock(&process.lock);
	errno = error;
}

cosched_thread *cosched_self(void)
{
	if (!self.hint || !cosched_is_heard())
		look(now_ms());
	return &self;
}

void cosched_wait_begin(void)
{
	int64_t now;

	if (self.depth++)
		return;
	now = now_ms();
	if (!self.hint || now - self.looked_at >= LOOK_MS)
		look(now);
	__atomic_store_n(&self.hint->pending, 0, __ATOMIC_RELAXED);
	self.waits |= 1;
	__atomic_store_n(&self.hint->waits, self.waits, __ATOMIC_RELAXED);
	/* A thread that sets pending from now on is not undone by this. What came before, the caller's next look finds. */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void cosched_wait_end(void)
{
	if (!self.depth || --self.depth)
		return;
	self.waits++;
	__atomic_store_n(&self.hint->waits, self.waits, __ATOMIC_RELAXED);
	__atomic_store_n(&self.hint->pending, 0, __ATOMIC_RELAXED);
}

void cosched_message_pending(cosched_thread *thread)
{
	/* What the caller has put somewhere is there before. */
	__atomic_store_n(&thread->hint->pending, 1, __ATOMIC_RELEASE);
}

int cosched_is_heard(void)
{
	unsigned int connection = self.connection;

	return connection && connection != __atomic_load_n(&process.lost, __ATOMIC_RELAXED);
}
