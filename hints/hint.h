/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a program that gives hints and the scheduler agree on: the page in which its threads say that they wait, and
 * what is said on the socket over which it gets that page. The library (cosched.c), the BPF side (bpf/hints.bpf.h) and
 * the server (src/hints/) all include this.
 *
 * The socket is of the kind SOCK_SEQPACKET, one connection for each process, which lasts as long as the process wants
 * to be heard. It sends a request for each of its threads and gets an answer to each. The first answer that is no
 * error brings a file descriptor (SCM_RIGHTS): the page, to be mapped shared.
 */
#ifndef COSCHED_HINT_H
#define COSCHED_HINT_H

#define COSCHED_HINT_THREADS	64		/* of a process; all together fill a page of 4 KiB */
#define COSCHED_HINT_PROCESSES	1024		/* of the machine */
#define COSCHED_HINT_MAGIC	0x31484353	/* "SCH1": this version of what is here */

/* What a thread says of itself: a cache line of its own. Written by its process alone, and never believed. */
struct cosched_hint {
	unsigned int waits;		/* counted up when a wait begins and when it ends: odd while the thread waits */
	unsigned int pending;		/* not 0: there is something for it that it has not taken */
	unsigned int reserved[14];
};

/* "This thread of mine gives its hints there." */
struct cosched_hint_request {
	unsigned int magic;
	unsigned int thread;		/* gettid(), as the process itself sees it */
	unsigned int slot;		/* its place in the page, below COSCHED_HINT_THREADS */
	unsigned int reserved;		/* 0 */
};

struct cosched_hint_answer {
	unsigned int magic;
	int error;			/* an errno; 0: its hints are heard from now on */
};

#endif
