/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Messages inside a node that come by no socket (run --arrivals). A task wakes another task of its job by a futex,
 * through a pipe or with an eventfd.
 *
 * Processes of a job that share memory on a node talk in this way. So do runtimes that hand work to their own threads.
 * A task that is woken so has a message: it asks the gate, like a task with data in its socket, until it runs. The
 * message itself is in the task's memory, and only the task could read it. So the level is not read off the message, as
 * it is for sockets (demand.bpf.h). The wake-up is the level, and the kernel does not lose it.
 *
 * The system call of the waking task says by what it wakes. The woken task's call does not matter: it may sleep in a
 * read, in poll or in epoll_wait. A task that looks at memory, or polls and does not sleep, is not woken: hints
 * (hints.bpf.h) are for such tasks. Pipes and eventfds of a parked task are not read either, unlike its sockets
 * (park.bpf.h). Which of them it hands to poll or select is in its own memory, which can be read only while it
 * runs. And the address of a file does not say whether it is still the same file.
 *
 * Where it hurts: a lock is a futex too, and its next owner counts as a task with a message. An interrupt may strike a
 * task that is in such a call. If the interrupt wakes another task of that job, that counts as a message too. Time
 * asleep here is no claim to a share, unlike at a socket (jobs.bpf.h), since most tasks that sleep at a futex are idle.
 */
#ifndef COSCHED_WAKES_BPF_H
#define COSCHED_WAKES_BPF_H

#include <scx/common.bpf.h>
#include "carry.bpf.h"
#include "demand.bpf.h"
#include "intf.h"
#include "jobs.bpf.h"
#include "polls.bpf.h"
#include "state.bpf.h"
#include "../policies/phase.h"

#define S_IFIFO		0010000
#define EVENTFD_NAME	"[eventfd]"

/* Is @file an eventfd? It has no inode of its own, but a name that /proc shows. */
static bool is_eventfd(const struct file *file)
{
	char name[sizeof(EVENTFD_NAME)] = {};

	bpf_probe_read_kernel(name, sizeof(name), file->f_path.dentry->d_name.name);
	return !__builtin_memcmp(name, EVENTFD_NAME, sizeof(name));
}

/* What the current task, which wakes another one, does it by; COSCHED_NR_ENDPOINTS: nothing that counts. */
static enum cosched_endpoint wakes_by(struct task_struct *p)
{
	struct call call = {};
	struct file *file;
	u64 addr;

	current_call(p, &call);
	if (is_among(futex_calls, call.number))
		return COSCHED_ENDPOINT_futex;
	addr = is_among(write_calls, call.number) ? file_of_fd(p, call.argument) : 0;
	if (!addr)
		return COSCHED_NR_ENDPOINTS;
	file = bpf_core_cast((void *)addr, struct file);
	if ((file->f_inode->i_mode & S_IFMT) == S_IFIFO)
		return COSCHED_ENDPOINT_pipe;
	return is_eventfd(file) ? COSCHED_ENDPOINT_eventfd : COSCHED_NR_ENDPOINTS;
}

/* In the context of the task that wakes @p, and before anything is done about it. */
SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *p)
{
	struct task_struct *waker = bpf_get_current_task_btf();
	enum cosched_endpoint kind;
	struct task_ctx *tctx;

	if (is_kthread(waker) || is_kthread(p) || job_of(waker) != job_of(p))
		return 0;
	kind = wakes_by(waker);
	if (kind >= COSCHED_NR_ENDPOINTS || !(arrivals_wanted & 1U << kind))
		return 0;
	tctx = task_ctx_of(p);
	if (!tctx)
		return 0;
	if (policy_reads_messages())
		carry_own(tctx);
	/* A task that is only about to sleep goes on, and looks again. */
	if (READ_ONCE(tctx->phase) != PHASE_RUNS)
		tctx->woken = 1;
	demand_on_arrival(p, tctx, kind);
	return 0;
}

#endif
