/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which tasks poll: they wait for a message by asking for it again and again.
 *
 * A task that spins through system calls is in the middle of one most of the time. So it is not watched at each call,
 * which would slow down the very loop that is to be fast. It is looked at now and then: when it loses the CPU, and at
 * the pulse of its CPU (pulse.bpf.h). The registers that it entered the kernel with say which call it is in. A task
 * that computes, and polls now and then, is found in such a call too, but seldom. A task counts as polling if enough of
 * the last few looks have found it in one (MIN_POLLING).
 *
 *	receives	read, recvfrom, recvmsg and the like, on a socket
 *	polls		poll, select, epoll_wait, io_uring_enter and the like, and sched_yield
 *
 * A look may come upon a task that leaves a receive with a message, or that has just read a message inside. Such a task
 * does not wait. It is about to answer, and to park it would stop its peer as well. What the call returns tells the
 * first case. In the second, no wait counts in which there was a message to be read, as far back as the last look. If
 * the message's arrival went unnoticed, TCP says how far the stream has been read. The hooks on Unix sockets say
 * whether there was something. For UDP one look is not enough.
 *
 * A look also finds a reader that has neither made its socket nor ever sleeps there, in a receive, poll or select. The
 * look cannot write to the socket's storage, for which it has no reference. So it leaves a note that the next arrival
 * takes up.
 *
 * Where it hurts: a receiver that looks for messages in memory alone is not seen unless it says so (hints.bpf.h). A
 * receiver that seldom enters the kernel is seldom seen. On an architecture whose registers are not known here no task
 * is seen to poll. Of the tasks that read a socket which another task has made, some are found only in a receive. Such
 * a task polls by an epoll set of another task and never sleeps there, or waits by aio. Or it always yields between two
 * polls, where no tick looks at it.
 */
#ifndef COSCHED_POLLS_BPF_H
#define COSCHED_POLLS_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "endpoints.bpf.h"
#include "hints.bpf.h"
#include "intf.h"
#include "state.bpf.h"
#include "units.h"

#define S_IFMT		00170000
#define S_IFSOCK	0140000
#define NO_CALL		(~0U)
#define MAX_POLLING	256
#define MIN_POLLING	80	/* two looks of five: programs in slow languages compute for longer than they poll */
#define MAX_READERS	1024
#define MAX_CALL_NS	(3 * NSEC_PER_MSEC)	/* a receive that does not sleep is over by then */

/*
 * Which task was seen to read the socket at an address, or to wait there. An entry that the map drops is made again the
 * next time. It is deleted once it has been used, so that the next socket at that address does not find it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_READERS);
	__type(key, u64);
	__type(value, u64);
} readers SEC(".maps");

struct call {
	u32 number;		/* NO_CALL: none */
	u64 argument;		/* the first */
	u64 second;
	s64 result;		/* -ENOSYS: none yet */
};

/* The system call that @p, the current task, is in. */
static void current_call(struct task_struct *p, struct call *call)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

#if defined(__TARGET_ARCH_x86)
	call->number = (s64)regs->orig_ax < 0 ? NO_CALL : (u32)regs->orig_ax;
	call->argument = regs->di;
	call->second = regs->si;
	call->result = regs->ax;
#elif defined(__TARGET_ARCH_arm64)
	call->number = regs->syscallno < 0 ? NO_CALL : (u32)regs->syscallno;
	call->argument = regs->orig_x0;
	call->second = regs->regs[1];
	call->result = regs->regs[0] == call->argument ? -ENOSYS : (s64)regs->regs[0];
#else
	call->number = NO_CALL;
#endif
}

/* Does @call return with a message, or with anything but the answer that there is none? */
static bool is_answered(const struct call *call)
{
	return call->result && call->result != -ENOSYS && call->result != -EAGAIN;
}

static bool is_among(const volatile u32 *calls, u32 call)
{
	u32 i;

	for (i = 0; i < COSCHED_MAX_CALLS; i++)
		if (calls[i] == call)
			return true;
	return false;
}

/* The file behind file descriptor @fd of @p; 0: there is none. */
static u64 file_of_fd(struct task_struct *p, u64 fd)
{
	struct fdtable *fdt = p->files ? p->files->fdt : NULL;
	struct file **files, *file = NULL;

	if (!fdt || fd >= fdt->max_fds)
		return 0;
	files = fdt->fd;
	return bpf_probe_read_kernel(&file, sizeof(file), files + fd) ? 0 : (u64)file;
}

/* The socket behind the file at @addr; 0: it is no socket. */
static u64 socket_of_file(u64 addr)
{
	struct file *file;
	struct socket *sock;

	if (!addr)
		return 0;
	file = bpf_core_cast((void *)addr, struct file);
	if ((file->f_inode->i_mode & S_IFMT) != S_IFSOCK)
		return 0;
	sock = bpf_core_cast(file->private_data, struct socket);
	return (u64)sock->sk;
}

/* The socket behind file descriptor @fd of @p; 0: it is no socket. */
static u64 socket_of_fd(struct task_struct *p, u64 fd)
{
	return socket_of_file(file_of_fd(p, fd));
}

/* The task @id reads the socket at @addr, or waits there. */
static void note_reading(u64 id, u64 addr)
{
	bpf_map_update_elem(&readers, &addr, &id, BPF_ANY);
}

/*
 * Is @p, which is being stopped, in the middle of a send to a task that it hears from? Its answer may be on its way,
 * and not have arrived yet. TCP knows of no debt any more by then (endpoints.bpf.h).
 */
static bool is_sending(struct task_struct *p, const struct task_ctx *tctx)
{
	struct call call = {};
	u64 addr;

	current_call(p, &call);
	if (call.result != -ENOSYS || !is_among(send_calls, call.number))
		return false;
	addr = socket_of_fd(p, call.argument);
	return addr && remembers_endpoint(tctx, addr);
}

/* Does another task wait for a message from @p, which is being stopped, as far as is known? */
static bool owes_message(struct task_struct *p, const struct task_ctx *tctx)
{
	return has_question(tctx) || is_sending(p, tctx);
}

/* A message arrives at @addr, where another task may have been seen to read or to wait than was known so far. */
static void correct_receiver(struct endpoint *ep, u64 addr)
{
	u64 *reader = bpf_map_lookup_elem(&readers, &addr);

	if (!reader)
		return;
	ep->receiver = *reader;
	bpf_map_delete_elem(&readers, &addr);
}

/* One of the files that poll asks for, drawn by lot, or less than 0. */
static s32 one_of_pollfds(u64 table, u32 nr)
{
	struct pollfd pollfd;

	if (!nr || bpf_probe_read_user(&pollfd, sizeof(pollfd), (struct pollfd *)table + bpf_get_prandom_u32() % nr))
		return -1;
	return pollfd.fd;
}

/*
 * The same of select: a file of one word of its set, both drawn by lot. The kernel asks for no more files than @p can
 * have. It takes files out of the set before it returns, so a look at that moment finds none.
 */
static s32 one_of_fd_set(struct task_struct *p, u64 set, u32 nr)
{
	u32 most = p->files ? p->files->fdt->max_fds : 0, start = bpf_get_prandom_u32(), at, bit, i;
	u64 word;

	if (nr > most)
		nr = most;
	if (!set || !nr)
		return -1;
	at = bpf_get_prandom_u32() % ((nr + 63) / 64);
	if (bpf_probe_read_user(&word, sizeof(word), (u64 *)set + at))
		return -1;
	bpf_for(i, 0, 64) {
		bit = (start + i) % 64;
		if (word >> bit & 1 && at * 64 + bit < nr)
			return at * 64 + bit;
	}
	return -1;
}

/*
 * @p polls: it reads what it polls. A few looks find all of its sockets. A program that polls without sleeping comes
 * past no hook (sockets.bpf.h).
 */
static void note_polled(struct task_struct *p, const struct call *call)
{
	s32 fd = -1;
	u64 addr;

	if (is_among(pollfd_calls, call->number))
		fd = one_of_pollfds(call->argument, call->second);
	else if (is_among(fd_set_calls, call->number))
		fd = one_of_fd_set(p, call->second, call->argument);
	addr = fd >= 0 ? socket_of_fd(p, fd) : 0;
	if (addr)
		note_reading(task_id(p), addr);
}

enum look {
	LOOK_OUTSIDE,		/* not in the kernel: nothing is known */
	LOOK_ELSEWHERE,		/* in the kernel, for something else */
	LOOK_BEGINS,		/* it receives where no message has found it so far, so perhaps none will */
	LOOK_RECEIVES,
};

/* What is @p, the current task, in the middle of? @inside: the socket that it is inside a receive on. */
static enum look what_does(struct task_struct *p, const struct task_ctx *tctx, u64 *inside)
{
	struct call call = {};
	u64 addr;

	current_call(p, &call);
	if (call.number == NO_CALL)
		return LOOK_OUTSIDE;
	if (is_answered(&call))
		return LOOK_ELSEWHERE;
	if (is_among(poll_calls, call.number)) {
		note_polled(p, &call);
		return LOOK_RECEIVES;
	}
	if (!is_among(receive_calls, call.number))
		return LOOK_ELSEWHERE;
	addr = socket_of_fd(p, call.argument);
	if (!addr)
		return LOOK_ELSEWHERE;
	note_reading(task_id(p), addr);
	if (call.result == -ENOSYS)
		*inside = addr;
	return remembers_endpoint(tctx, addr) ? LOOK_RECEIVES : LOOK_BEGINS;
}

/* A number that changes when @tctx reads from a stream, or says that a wait begins or ends. */
static u32 progress_of(const struct task_ctx *tctx)
{
	return streams_read(tctx) + hinted_waits(tctx);
}

/* Has @tctx, which runs, had a message to read since its wait began? */
static bool may_have_read(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	return tctx->had_message || tctx->wait_messages != cctx->messages || tctx->wait_progress != progress_of(tctx);
}

/*
 * How long ago @since was. Not by scx_bpf_now(), which may be some ms behind: something that is over would count as
 * still going on.
 */
static u64 passed_ns(u64 since)
{
	return bpf_ktime_get_ns() - since;
}

/*
 * May @tctx, which runs, still be inside the receive that it was inside at an earlier look, and that may have read
 * something?
 */
static bool may_be_reading(const struct task_ctx *tctx)
{
	u64 since = tctx->read_inside_at;

	return since && passed_ns(since < tctx->wait_since ? tctx->wait_since : since) < MAX_CALL_NS;
}

/*
 * Notes whether the receive that @tctx is inside, on the socket at @addr, may have read something; 0: it is inside
 * none.
 */
static void note_inside(struct task_ctx *tctx, const struct cpu_ctx *cctx, u64 addr)
{
	bool hides = addr && is_udp(addr);	/* what was read there is not known */

	if (!addr)
		tctx->read_inside_at = 0;
	else if (may_have_read(tctx, cctx) || (hides && !tctx->read_inside_at))
		tctx->read_inside_at = bpf_ktime_get_ns();
	else if (!hides && !may_be_reading(tctx))
		tctx->read_inside_at = 0;
}

/* Looks at @p, the current task, and remembers what it found. */
static enum look look_at(struct task_struct *p, struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	u64 inside = 0;
	enum look look = what_does(p, tctx, &inside);

	note_inside(tctx, cctx, inside);
	/* A task that says so waits at each look, unless it is seen to do something else meanwhile, such as to send. */
	if (look != LOOK_ELSEWHERE && hinted_waits(tctx) & 1) {
		look = LOOK_RECEIVES;
		tctx->polling = MAX_POLLING;
	}
	tctx->receives = look == LOOK_RECEIVES;
	tctx->polling -= tctx->polling / 4;
	if (look >= LOOK_BEGINS)
		tctx->polling += MAX_POLLING / 4;
	return look;
}

/* Does @tctx, which runs, wait for a message, as far as looks can tell? */
static bool polls_in_vain(const struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	return tctx->receives && tctx->polling >= MIN_POLLING && !may_have_read(tctx, cctx) &&
	       !may_be_reading(tctx) && !has_message(tctx);
}

/*
 * Forgets what is known of the wait of @tctx, which runs: it has made progress, or does something else. A message that
 * comes right now is seen in its socket or changes the count: as in demand.bpf.h.
 */
static void begin_watch(struct task_ctx *tctx, const struct cpu_ctx *cctx)
{
	tctx->wait_since = bpf_ktime_get_ns();
	tctx->wait_messages = READ_ONCE(cctx->messages);
	full_barrier();
	tctx->had_message = has_message(tctx);
	tctx->wait_progress = progress_of(tctx);
	tctx->leaves = 0;
}

#endif
