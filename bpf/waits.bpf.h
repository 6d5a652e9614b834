/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Waits: what a receive that finds nothing does before it sleeps.
 *
 * The hooks are on the functions in which a receive is about to sleep, in the context of the task and with interrupts
 * on. A hook that spins there until the message comes makes the sleep moot. The function then looks at the socket again
 * before it sleeps, and finds the message. The program is not changed and does not notice. The time is charged to it
 * like any other.
 *
 * The kernel does not run a program of this kind on a CPU while a task is preempted inside it there. No other wait on
 * that CPU would then spin until that task runs again. Therefore this scheduler does not preempt a task that spins. It
 * tells the task to stop, which the task does within a microsecond, and the task sleeps. That frees the CPU just as
 * well, and its wake-up is a matter of demand as always. Only a kernel thread or another scheduling class preempts it.
 *
 * Where it hurts: what comes for a socket whose owner spins goes to the backlog. A bare acknowledgement there ends the
 * spin like a message would, and the task sleeps.
 */
#ifndef COSCHED_WAITS_BPF_H
#define COSCHED_WAITS_BPF_H

#include <scx/common.bpf.h>
#include "cpu.bpf.h"
#include "endpoints.bpf.h"
#include "fair.bpf.h"
#include "intf.h"
#include "polls.bpf.h"
#include "sockets.bpf.h"
#include "state.bpf.h"
#include "../policies/phase.h"
#include "../policies/policy.h"
#include "../policies/spin.h"
#include "../policies/wait.h"

#define MSG_DONTWAIT	0x40
#define MAX_SPIN_ROUNDS (4 << 20)	/* more than fit into the longest time that the loader allows */

/*
 * However many other messages come meanwhile, a spin ends after so many times its time. A measured time is as long as a
 * sleep and a wake-up take, or longer. So to sleep after that many makes the wait dearer by a quarter at most. Without
 * an end, a process that feeds another socket of the task would make it keep its CPU until the tick.
 */
#define LONGEST_SPIN	4

/*
 * Does the current task have a signal to handle, or is it to leave its CPU? No type tells the numbers of the flags that
 * say so, and they depend on the architecture and the kernel. But in each layout the lowest flags are reasons to see to
 * something before the task returns to user space, and nothing else:
 *
 *	bit		0	1		2		3		4
 *	x86		-	resume		signal		reschedule	step, or lazily
 *	arm64		signal	reschedule	resume, lazily
 *	both, generic	resume	signal		task work	dying		reschedule
 */
static bool has_work(const struct task_struct *p)
{
#if defined(__TARGET_ARCH_arm64)
	return p->thread_info.flags & 0x07 || !p->thread_info.preempt.need_resched;
#elif defined(__TARGET_ARCH_x86)
	return p->thread_info.flags & 0x1f;
#else
	return false;
#endif
}

/* Does another task wait for the lock of @sk? A stream is locked here, and what is to be sent needs that lock. */
static bool is_lock_wanted(struct sock *sk)
{
	return (u64)sk->sk_lock.wq.head.next != (u64)&sk->sk_lock.wq.head;
}

/* The time that @tctx may spin is over. Does it go on, since other messages keep coming for it? */
static bool goes_on(struct task_ctx *tctx, struct cpu_ctx *cctx, u64 now)
{
	if (cctx->messages != tctx->wait_messages) {
		tctx->wait_messages = cctx->messages;
		tctx->wait_since = now;
	}
	return cosched_spin_goes_on(current_policy(), now - tctx->wait_since);
}

/* Must the task that spins at @sk stop, whether its time is over or not? */
static bool must_stop(const struct task_struct *p, const struct cpu_ctx *cctx, struct sock *sk)
{
	return READ_ONCE(cctx->spin) != SPIN_ON || is_lock_wanted(sk) || has_work(p);
}

/* Spins until there is a message at @sk (true), or @spin_ns are over and goes_on() says no, or it must stop. */
static bool spin(struct task_ctx *tctx, struct cpu_ctx *cctx, struct sock *sk, u64 spin_ns)
{
	struct task_struct *p = bpf_get_current_task_btf();
	bool came = false;
	u64 since, now;
	u32 i;

	begin_watch(tctx, cctx);
	since = now = tctx->wait_since;
	WRITE_ONCE(cctx->spin, SPIN_ON);
	bpf_for(i, 0, MAX_SPIN_ROUNDS) {
		came = holds_data((u64)sk);
		if (came || must_stop(p, cctx, sk))
			break;
		now = bpf_ktime_get_ns();
		if (now - since >= spin_ns && (now - since >= LONGEST_SPIN * spin_ns || !goes_on(tctx, cctx, now)))
			break;
	}
	if (came) {
		cosched_spin_learn(current_policy(), &tctx->wait_history, now - since);
		if (wire_on)
			cctx->curr_waits_us = waits_to_tell(tctx);
	}
	/*
	 * If it was told to stop and yet will not sleep, SPIN_STOP stays: the next wait sleeps, and the next tick ends
	 * its slice (switch.bpf.h).
	 */
	__sync_val_compare_and_swap(&cctx->spin, SPIN_ON, SPIN_NONE);
	return came;
}

/* Lets the current task, which is about to sleep until a message comes to @sk, spin first. Has one come? */
static bool spin_before_sleep(struct task_ctx *tctx, struct sock *sk)
{
	const struct cosched_policy *policy = current_policy();
	struct cpu_ctx *cctx = cpu_ctx_of(bpf_get_smp_processor_id());
	u64 spin_ns;
	bool came;

	/* A real-time task is not ours, and may have a CPU for itself for as long as it likes. */
	if (!cctx || tctx->phase != PHASE_RUNS || READ_ONCE(cctx->spin) != SPIN_NONE ||
	    is_kthread(bpf_get_current_task_btf()))
		return false;
	spin_ns = wait_begin(policy, &tctx->wait_history);
	if (!spin_ns)
		return false;
	count(COSCHED_COUNTER_spins);
	came = spin(tctx, cctx, sk, spin_ns);
	if (came)
		count(COSCHED_COUNTER_spins_answered);
	if (came || READ_ONCE(cctx->spin) == SPIN_NONE)
		wait_end(policy, &tctx->wait_history, came);
	return came;
}

/*
 * @tctx, the current task, is about to sleep until a message comes: its claim to a share goes on (jobs.bpf.h). The
 * mark is taken back when it is runnable or runs again, but not when its properties change: the kernel does that as
 * this hook ends, if the task was preempted in it.
 */
static void sleep_begins(struct task_ctx *tctx)
{
	count(COSCHED_COUNTER_sleeps);
	tctx->awaits = 1;
	tctx->wait_since = bpf_ktime_get_ns();
}

/* The current task finds nothing at @sk, which it reads, and is about to sleep until a message comes. */
static int wait_begins(struct sock *sk, bool may_spin)
{
	struct task_ctx *tctx = task_ctx_of(bpf_get_current_task_btf());

	note_reader(sk);
	if (!tctx || (may_spin && spin_before_sleep(tctx, sk)))
		return 0;
	sleep_begins(tctx);
	return 0;
}

SEC("fentry/sk_wait_data")
int BPF_PROG(on_stream_wait, struct sock *sk)
{
	return wait_begins(sk, true);
}

SEC("fentry/__skb_wait_for_more_packets")
int BPF_PROG(on_datagram_wait, struct sock *sk)
{
	return wait_begins(sk, true);
}

/* A receive on a Unix socket begins, which waits unless it was told not to or finds a message. */
static int unix_receive(struct sock *sk, int flags)
{
	struct task_ctx *tctx;

	if (!sk->sk_receive_queue.qlen && !(flags & MSG_DONTWAIT))
		return wait_begins(sk, false);
	note_reader(sk);
	/* The message's arrival may have gone unnoticed: see on_readable. */
	tctx = sk->sk_receive_queue.qlen ? task_ctx_of(bpf_get_current_task_btf()) : NULL;
	if (tctx)
		tctx->had_message = 1;
	return 0;
}

/* Unix sockets have waits of their own, which compilers inline: the whole receive stands for them. */
#define UNIX_WAIT_HOOK(name, function)						\
SEC("fentry/" #function)							\
int BPF_PROG(on_##name##_wait, struct socket *sock, struct msghdr *msg, size_t size, int flags)	\
{										\
	struct sock *sk = sock->sk;						\
										\
	return sk ? unix_receive(sk, flags) : 0;				\
}

UNIX_WAIT_HOOK(unix_stream, unix_stream_recvmsg)
UNIX_WAIT_HOOK(unix_dgram, unix_dgram_recvmsg)

#endif
