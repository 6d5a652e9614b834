/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who polls: tasks that wait for a message by asking for it again and again.
 *
 * A task that spins through system calls is in the middle of one most of the time. So it is not watched at each
 * call, which would slow down the very loop that is to be fast; it is looked at now and then, when it loses the CPU and
 * at the pulse of its CPU (pulse.bpf.h). What it is in the middle of stands in the registers that it entered the
 * kernel with. Who computes and polls now and then is found there too, but seldom: one that is to count as polling has
 * been found in it several of the last few times.
 *
 *	receives	read, recvfrom, recvmsg and the like, on a socket
 *	polls		poll, select, epoll_wait, io_uring_enter and the like, and sched_yield
 *
 * Such a look also finds who reads a socket, for one that neither made it nor ever sleeps there. It cannot write to
 * the socket's storage, for which it has no reference, so it leaves a note that the next arrival takes up.
 *
 * Where it hurts: a receiver that looks for messages in memory alone is not seen, and one that seldom enters the
 * kernel, seldom. On an architecture whose registers are not known here nobody is seen to poll.
 */
#ifndef COSCHED_POLLS_BPF_H
#define COSCHED_POLLS_BPF_H

#define S_IFMT		00170000
#define S_IFSOCK	0140000
#define NO_CALL		(~0U)
#define MAX_POLLING	256
#define MIN_POLLING	96	/* programs in slow languages poll half of the time, and compute between two polls */
#define MAX_READERS	1024

/*
 * Which task was seen to read the socket at an address. One that is lost is seen again, and one that has served goes, lest
 * the next socket at that address find it.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, MAX_READERS);
	__type(key, u64);
	__type(value, u64);
} readers SEC(".maps");

/* The system call that @p, the current task, is in, and the first argument of it. */
static u32 current_call(struct task_struct *p, u64 *argument)
{
	struct pt_regs *regs = (struct pt_regs *)bpf_task_pt_regs(p);

#if defined(__TARGET_ARCH_x86)
	*argument = regs->di;
	return (s64)regs->orig_ax < 0 ? NO_CALL : (u32)regs->orig_ax;
#elif defined(__TARGET_ARCH_arm64)
	*argument = regs->orig_x0;
	return regs->syscallno < 0 ? NO_CALL : (u32)regs->syscallno;
#else
	*argument = 0;
	return NO_CALL;
#endif
}

static bool is_among(const volatile u32 *calls, u32 call)
{
	u32 i;

	for (i = 0; i < COSCHED_MAX_CALLS; i++)
		if (calls[i] == call)
			return true;
	return false;
}

/* The socket that file descriptor @fd of @p is; 0: it is none. */
static u64 socket_of_fd(struct task_struct *p, u64 fd)
{
	struct fdtable *fdt = p->files ? p->files->fdt : NULL;
	struct file **files, *file = NULL;
	struct socket *sock;

	if (!fdt || fd >= fdt->max_fds)
		return 0;
	files = fdt->fd;
	if (bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return 0;
	file = bpf_core_cast(file, struct file);
	if ((file->f_inode->i_mode & S_IFMT) != S_IFSOCK)
		return 0;
	sock = bpf_core_cast(file->private_data, struct socket);
	return (u64)sock->sk;
}

static void note_reader_at(u64 addr, u64 id)
{
	bpf_map_update_elem(&readers, &addr, &id, BPF_ANY);
}

/* A message arrives at @addr, where somebody else may have been seen to read than was known so far. */
static void correct_receiver(struct endpoint *ep, u64 addr)
{
	u64 *reader = bpf_map_lookup_elem(&readers, &addr);

	if (!reader)
		return;
	ep->receiver = *reader;
	bpf_map_delete_elem(&readers, &addr);
}

enum look {
	LOOK_OUTSIDE,		/* not in the kernel: nothing is known */
	LOOK_ELSEWHERE,		/* in the kernel, for something else */
	LOOK_RECEIVES,
};

/* What is @p, the current task, in the middle of? */
static enum look what_does(struct task_struct *p)
{
	u64 argument, addr;
	u32 call = current_call(p, &argument);

	if (call == NO_CALL)
		return LOOK_OUTSIDE;
	if (is_among(poll_calls, call))
		return LOOK_RECEIVES;
	if (!is_among(receive_calls, call))
		return LOOK_ELSEWHERE;
	addr = socket_of_fd(p, argument);
	if (!addr)
		return LOOK_ELSEWHERE;
	note_reader_at(addr, task_id(p));
	return LOOK_RECEIVES;
}

/* Looks at @p, the current task, and remembers what it found. */
static enum look look_at(struct task_struct *p, struct task_ctx *tctx)
{
	enum look look = what_does(p);

	tctx->receives = look == LOOK_RECEIVES;
	tctx->polling -= tctx->polling / 4;
	if (tctx->receives)
		tctx->polling += MAX_POLLING / 4;
	return look;
}

/* Does @tctx wait for a message, as far as looks can tell? */
static bool polls_in_vain(const struct task_ctx *tctx)
{
	return tctx->receives && tctx->polling >= MIN_POLLING && !has_message(tctx);
}

/* Forgets what is known of the wait of @tctx, which runs: it has made progress, or does something else. */
static void begin_watch(struct task_ctx *tctx, const struct cpu_ctx *cctx, u64 now)
{
	tctx->wait_since = now;
	tctx->wait_messages = cctx->messages;
	tctx->park = PARK_NONE;
}

#endif
