/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libcosched: lets a program tell scx_cosched when it waits.
 *
 * The scheduler sees for itself which threads wait for a message in a system call, asleep or polling. It cannot see
 * which poll memory: the completion queue of a network card, a flag that another process sets, a queue of tasks. Such
 * a thread takes its whole share of the CPU to find nothing. If it says that it waits, the scheduler takes it off the
 * CPU after its spin time, as long as others want the CPU. So it has its share left when there is something for it:
 *
 *	while (!try_to_take(queue)) {
 *		cosched_wait_begin();
 *		while (!is_there_something(queue))
 *			;
 *		cosched_wait_end();
 *	}
 *
 * Say it and then look again, as this loop does: what came before cosched_wait_begin() has taken effect is found by
 * that look. Waits may be nested; the outermost counts.
 *
 * What wakes a thread that was taken off the CPU? Each of these, whichever is first:
 *
 *  - a message at a socket that the kernel knows it to read, as without this library;
 *  - another thread of the same process that calls cosched_message_pending() for it: one that watches a completion
 *    channel, say, or that puts work into a queue. It is looked at once a tick (1 to 10 ms);
 *  - the CPU, when it has nothing else to do: at once;
 *  - the scheduler's recheck time (--recheck-ms, 50 ms by default), after which the thread may look for itself.
 *
 * What another process or a network card writes to memory wakes no thread. Where messages come that way alone, a wait
 * can last for the recheck time longer than it need, and it is up to the program whether that is worth the CPU time
 * which the wait does not take.
 *
 * Nothing is promised to a thread that says that it waits, and nothing is taken from others. Hints lower the caller's
 * own claim, or ask for what any message might ask for, within its fair share. All this has no effect where no
 * scheduler runs, or one without --hints-socket, or a policy that parks no task. A call costs some 20 ns and no system
 * call. Once a second at most it sees whether there is a scheduler to talk to, and has the thread known there.
 *
 * All functions may be called by any thread, but not by signal handlers. A child after fork() starts anew. Linked with
 * -lcosched.
 */
#ifndef COSCHED_H
#define COSCHED_H

#ifdef __cplusplus
extern "C" {
#endif

/* A thread, as others of its process name it. Valid until it ends. */
typedef struct cosched_thread cosched_thread;

/*
 * The calling thread. Has it known to the scheduler at once, if there is one, which the first wait would do
 * otherwise. Never NULL.
 */
cosched_thread *cosched_self(void);

/* The calling thread has found nothing, and looks again and again from here on until cosched_wait_end(). */
void cosched_wait_begin(void);

/* It has found something, or waits no longer. */
void cosched_wait_end(void);

/*
 * There is something for @thread, which the caller has just put where it will look. It stands until the end of that
 * thread's present wait, or the beginning of its next.
 */
void cosched_message_pending(cosched_thread *thread);

/* 1 if a scheduler heard the calling thread when it was last asked, a second ago at most, or else 0. */
int cosched_is_heard(void);

#ifdef __cplusplus
}
#endif

#endif
