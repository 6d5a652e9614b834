/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Hints: what a program itself says of its waits, where the kernel cannot see them (hints/cosched.h).
 *
 * A task that polls memory, such as the completion queue of a network card, makes no system call. What it waits for
 * arrives at no socket. So its process has a page that it shares with the scheduler, with a place for each of its
 * threads. A place holds a level, which is read wherever the sockets of a task are read, and never an event. To say
 * something costs a store to memory, and interrupts no CPU.
 *
 *	waits	odd while the thread waits. For as long as the number stays the same, the thread polls in vain in the
 *		sense of polls.bpf.h. It is parked after its spin time, until it has a message or is to look again
 *	pending	there is something for the thread. It counts as a message in one of its sockets. It asks the gate for
 *		what any message might ask, and keeps the thread from being parked
 *
 * Nothing here is believed. A thread that claims to wait, and does not, is off the CPU when others want it. A thread
 * that claims to have a message, and has none, is treated like a task whose socket is never empty. The gate counts what
 * it has used, and says no.
 *
 * The page is an array that can be mapped. Each process has one of its own, which the loader makes and hands over
 * (src/hints/). Every other way lets a process see or write more than its own. Since 6.13 the kernel can read memory of
 * the process itself (__uptr). But the loader would have to map that memory to hand it to the kernel.
 */
#ifndef COSCHED_HINTS_BPF_H
#define COSCHED_HINTS_BPF_H

#include <scx/common.bpf.h>
#include "intf.h"
#include "state.bpf.h"
#include "../hints/hint.h"

struct hint_page {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, COSCHED_HINT_THREADS);
	__uint(key_size, sizeof(u32));	/* as a type of a map in a map, clang describes only the name */
	__uint(value_size, sizeof(struct cosched_hint));
};

/* By a number that no other page ever had. So a task whose page is gone finds no page, and not that of another task. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH_OF_MAPS);
	__uint(max_entries, COSCHED_HINT_PROCESSES);
	__type(key, u64);
	__array(values, struct hint_page);
} hint_pages SEC(".maps");

u32 hinted_threads;		/* that are there and have a place in a page */

#define HINTS_OVER	(~0ULL)		/* no page has this number: the thread ends, and is not heard any more */

/* What @tctx says of itself; NULL: nothing. */
static const struct cosched_hint *hint_of(const struct task_ctx *tctx)
{
	u64 page = tctx->hint_page;
	u32 slot = tctx->hint_slot;
	void *hints;

	hints = page ? bpf_map_lookup_elem(&hint_pages, &page) : NULL;
	return hints ? bpf_map_lookup_elem(hints, &slot) : NULL;
}

/* A number that changes when a wait of @tctx begins or ends, and is odd in between; 0: it says nothing. */
__noinline u32 hinted_waits(const struct task_ctx *tctx __arg_nonnull)
{
	const struct cosched_hint *hint = hint_of(tctx);

	return hint ? READ_ONCE(hint->waits) : 0;
}

/* Does @tctx say that there is a message for it? */
__noinline bool hints_message(const struct task_ctx *tctx __arg_nonnull)
{
	const struct cosched_hint *hint = hint_of(tctx);

	return hint && READ_ONCE(hint->pending);
}

/* Hints are not heard at @page any more. False if they were not heard there: another CPU has been faster. */
static bool drop_hint(struct task_ctx *tctx, u64 page)
{
	if (__sync_val_compare_and_swap(&tctx->hint_page, page, 0) != page)
		return false;
	__sync_fetch_and_sub(&hinted_threads, 1);
	return true;
}

/* Places the hints of @p, which may be ending meanwhile, as the loader says. Nothing else changes where they stand. */
static int change_place(struct task_struct *p, const struct cosched_hint_place *place)
{
	struct task_ctx *tctx = task_ctx_of(p);
	u64 page;

	if (!tctx || p->tgid != place->process)
		return -ESRCH;
	if (place->slot >= COSCHED_HINT_THREADS)
		return -EINVAL;
	page = READ_ONCE(tctx->hint_page);
	if (place->is_over) {
		/* The thread may have another place meanwhile. */
		return page == place->page && tctx->hint_slot == place->slot && drop_hint(tctx, page) ? 0 : -ESRCH;
	}
	if (page == HINTS_OVER)
		return -ESRCH;
	tctx->hint_slot = place->slot;
	tctx->hint_exec = p->self_exec_id;
	/* Counted before: if @p ends right now, its end takes that off again. */
	if (!page)
		__sync_fetch_and_add(&hinted_threads, 1);
	if (__sync_val_compare_and_swap(&tctx->hint_page, page, place->page) == page)
		return 0;
	if (!page)
		__sync_fetch_and_sub(&hinted_threads, 1);
	return -ESRCH;
}

/* Run by the loader, since what is known of a task is not to be written from outside as a whole. */
SEC("syscall")
int place_hint(struct cosched_hint_place *place)
{
	struct task_struct *p = bpf_task_from_pid(place->thread);
	int err;

	if (!p)
		return -ESRCH;
	err = change_place(p, place);
	bpf_task_release(p);
	return err;
}

/*
 * @p leaves its CPU. If it now runs another program than when its hints were placed, they are not heard until it asks
 * again. The new program may have other rights, and the page is still shared with processes of the old one.
 */
static void check_hint(const struct task_struct *p, struct task_ctx *tctx)
{
	u64 page = READ_ONCE(tctx->hint_page);

	if (page && page != HINTS_OVER && tctx->hint_exec != p->self_exec_id)
		drop_hint(tctx, page);
}

/* The thread of @tctx ends, or the scheduler does. */
static void forget_hint(struct task_ctx *tctx)
{
	u64 page = __sync_lock_test_and_set(&tctx->hint_page, HINTS_OVER);

	if (page && page != HINTS_OVER)
		__sync_fetch_and_sub(&hinted_threads, 1);
}

#endif
