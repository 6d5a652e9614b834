/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What every rule in this directory sees and answers.
 *
 * A rule is a pure function over integers: no maps, no helpers, no clock, no globals. So one file serves the BPF
 * scheduler, the native tests and the simulator. And a test can hold the BPF build and the native build against each
 * other bit for bit.
 *
 * The caller takes a snapshot of the receiver's CPU, hands it in, and gets back a reason. A reason is the whole
 * decision: some reasons grant, the others deny. Each is counted under its own name, so the metrics answer "why was my
 * job not boosted?".
 *
 * Integer types come from the includer: vmlinux.h in BPF, native.h elsewhere.
 */
#ifndef COSCHED_POLICY_H
#define COSCHED_POLICY_H

/*
 * A function with many paths. The verifier walks through a static function once for each path to each of its calls. It
 * walks through a global function once for each program. Without this, loading the scheduler took twice as long.
 */
#ifdef __bpf__
#define COSCHED_APART		__attribute__((noinline))
#define COSCHED_NONNULL		__attribute__((btf_decl_tag("arg:nonnull")))
#define cosched_for(i, end)	bpf_for(i, 0, end)	/* the verifier goes through it once, not @end times */
#else
#define COSCHED_APART		static inline
#define COSCHED_NONNULL
#define cosched_for(i, end)	for (i = 0; i < (end); i++)
#endif

/* What happens when a message arrives (Zhang, Table 1). */
enum cosched_arrival {
	COSCHED_ARRIVAL_NONE,		/* nothing: the local scheduler alone decides */
	COSCHED_ARRIVAL_DEMAND,		/* the receiver runs at once, if the gate allows */
	COSCHED_ARRIVAL_PERIODIC,	/* every interval one receiver is chosen, and runs if the gate allows */
	COSCHED_ARRIVAL_GANG,		/* nothing: the clock says which row of jobs has its turn (gang.h) */
	COSCHED_ARRIVAL_BEAT,		/* the receiver runs at once in a turn that no job has won (beat.h) */
	COSCHED_NR_ARRIVALS,
};

/* Whether a boost is fair now. */
enum cosched_gate {
	COSCHED_GATE_ALWAYS,		/* thesis 3.1 */
	COSCHED_GATE_EQUALIZING,	/* thesis 3.2 */
	COSCHED_GATE_EPOCHS,		/* thesis 3.3 */
	COSCHED_GATE_RATE,		/* thesis 4.2.1, Buchanan-Chien 2.2.2 */
	COSCHED_GATE_AUTO,		/* what thesis 4.1 and 6.2.4 ask for */
	COSCHED_NR_GATES,
};

/* What a receiver that finds nothing does (Zhang, Table 1). */
enum cosched_wait {
	COSCHED_WAIT_BUSY,		/* as the program has it */
	COSCHED_WAIT_SPIN,		/* a task that would sleep spins before */
	COSCHED_WAIT_SPIN_BLOCK,	/* and a task that polls leaves the CPU after as long, until a message comes */
	COSCHED_WAIT_SPIN_YIELD,	/* or lets the next one on its CPU go first */
	COSCHED_NR_WAITS,
};

/* How long it spins before it sleeps, parks or yields. */
enum cosched_spin {
	COSCHED_SPIN_IMMEDIATE,		/* not at all */
	COSCHED_SPIN_FIXED,		/* Zhang 2.4.1, Dusseau 5.1 */
	COSCHED_SPIN_BASELINE,		/* 2L + 2o + W (Arpaci-Dusseau 3.3) */
	COSCHED_SPIN_CONDITIONAL,	/* and on, while messages keep coming (Arpaci-Dusseau 3.4) */
	COSCHED_SPIN_ADAPTIVE_LOCAL,	/* as long as its own waits have taken (Dusseau 6.2) */
	COSCHED_SPIN_ADAPTIVE_GLOBAL,	/* or those of the tasks that it hears from (Dusseau 6.3) */
	COSCHED_NR_SPINS,
};

/* What the periodic boost, and a task that yields, put first (Zhang 2.4.4). */
enum cosched_choice {
	COSCHED_CHOICE_ROUND_ROBIN,	/* the paper's: pending in a receive, else outside of one */
	COSCHED_CHOICE_NEXT_PENDING,	/* the next in turn that has a message */
	COSCHED_CHOICE_MOST_PENDING,	/* the task with most messages */
	COSCHED_CHOICE_LONGEST_WAITING,	/* the task whose message has waited longest */
	COSCHED_NR_CHOICES,
};

/*
 * Why a demand was granted or denied, declared once: X(name, grants, help). The names reach the
 * metrics as the label "reason", in this order.
 */
#define COSCHED_REASONS(X)									\
	X(always,        1, "the gate always allows")						\
	X(lags,          1, "the receiver lags the running task by more than h")		\
	X(interval,      1, "long enough since the receiver's last boost")			\
	X(new_epoch,     1, "the gate would allow it, and the message is of a later epoch than the node")	\
	X(below_target,  1, "the receiver's fairness ratio is below its target")		\
	X(no_demand,     0, "the policy takes no arrival as a demand")				\
	X(not_behind,    0, "the receiver is too far ahead in the fair order (h, or two slices under auto)")	\
	X(too_soon,      0, "too soon after the receiver's last boost")				\
	X(old_epoch,     0, "the message is of no later epoch than the node")			\
	X(above_target,  0, "the receiver's fairness ratio is above its target")		\
	X(starving,      0, "boosts have held the CPU so long that the fair order goes first")

#define COSCHED_REASON_ENUM(name, grants, help) COSCHED_REASON_##name,
enum cosched_reason {
	COSCHED_REASONS(COSCHED_REASON_ENUM)
	COSCHED_NR_REASONS,
};

/* A choice on each axis, with its parameters: what the loader writes and every rule reads. */
struct cosched_policy {
	u32 arrival;			/* enum cosched_arrival */
	u32 gate;			/* enum cosched_gate */
	u32 wait;			/* enum cosched_wait */
	u32 spin;			/* enum cosched_spin */
	u32 choice;			/* enum cosched_choice */
	u32 residual_slice;		/* a boost lasts no longer than the slice of the message's sender */
	u64 slice_ns;			/* Tq: how long a task runs before the next decision */
	u64 interval_ns;		/* how often the CPU looks for a task to boost, and for vain polls */
	s64 h_ns;			/* equalizing, epochs: the lag that a boost needs; may be negative */
	s64 rate_constant_ns;		/* rate: C */
	s32 rate_exponent;		/* rate: E */
	u32 target_permille;		/* auto: the fairness ratio F to hold, times 1000 */
	u64 spin_ns;			/* fixed: how long a receiver spins */
	u64 latency_ns;			/* L: from one node to another */
	u64 overhead_ns;		/* o: of the processor, to send or to receive */
	u64 switch_ns;			/* W: to wake a task that is blocked on a message, and switch to it */
	u64 recheck_ns;			/* spin-block: how long a task that polled stays off the CPU at most */
	u64 quantum_ns;			/* gang, beat: how long a turn is */
	u32 rows;			/* gang */
	u32 epochs;			/* a boost needs a message of a later epoch besides what the gate asks for */
	u64 rate_average;		/* rate: R is demand.mean_waiting, not demand.nr_runnable */
};

/* One snapshot of the receiver's CPU, taken when the gate is asked. All times in ns. */
struct cosched_demand {
	u64 now_ns;			/* Tc: the time of the demand */
	u64 last_boost_ns;		/* Tp: when the receiver was last boosted; 0 is never */
	s64 receiver_ran_ns;		/* r_j: what the receiver has run, on its CPU's fair clock */
	s64 running_ran_ns;		/* r_i: what its competitors have run, on the same clock */
	u32 nr_runnable;		/* R: runnable tasks on the CPU, the running one included */
	u32 denied;			/* this demand has been denied, and is asked again */
	u32 scale;			/* CPU time over time on the fair clock, in 1 / 2^COSCHED_SCALE_SHIFT */
	u32 node_quiet;			/* the receiver's node runs a task that gets no messages: it is no job's turn */
	u64 max_lead_ns;		/* how far ahead of the clock a task may be; the rest of its debt is forgiven */
	u64 cpu_ns;			/* T_C: CPU time that the receiver used lately (window.h) */
	u64 fair_ns;			/* T_E / N: the fair share of the same time */
	u64 message_epoch;		/* of the message: that of its sender's node (epoch.h) */
	u64 node_epoch;			/* of the receiver's node */
	u64 mean_waiting;		/* R: tasks that waited of late, in 1 / 2^FAIR_MEAN_SHIFT (fair.h) */
};

#define COSCHED_SCALE_SHIFT 20

/* What the waits of a task have taught. It starts as zeroes. */
#define COSCHED_WAIT_SAMPLES 20		/* of which a tenth, the worst, is dropped */
struct cosched_wait_history {
	u32 skips;			/* how many waits slept at once after the last spin in vain */
	u32 skips_left;			/* how many of the next waits do */
	u32 waits_us[COSCHED_WAIT_SAMPLES];	/* adaptive: how long waits took */
	u32 nr_waits;			/* how many of them there have been */
	u32 estimate_us;		/* adaptive: what they say of the job's imbalance */
	u32 heard_us;			/* adaptive-global: the longest estimate that came with a message */
};

#define COSCHED_REASON_CASE(name, grants, help) case COSCHED_REASON_##name: return grants;
static inline int cosched_reason_grants(u32 reason)
{
	switch (reason) {
	COSCHED_REASONS(COSCHED_REASON_CASE)
	default: return 0;
	}
}

/*
 * Saturating arithmetic. Parameters come from operators and times from clocks, so every sum here is allowed to be
 * absurd. None is allowed to wrap: a wrapped sum would turn "never" into "always".
 */
#define COSCHED_U64_MAX ((u64)~0ULL)
#define COSCHED_S64_MAX ((s64)(COSCHED_U64_MAX >> 1))
#define COSCHED_S64_MIN (-COSCHED_S64_MAX - 1)

COSCHED_APART s64 cosched_add_s64(s64 a, s64 b)
{
	if (b > 0 && a > COSCHED_S64_MAX - b)
		return COSCHED_S64_MAX;
	if (b < 0 && a < COSCHED_S64_MIN - b)
		return COSCHED_S64_MIN;
	return a + b;
}

COSCHED_APART s64 cosched_sub_s64(s64 a, s64 b)
{
	if (b < 0 && a > COSCHED_S64_MAX + b)
		return COSCHED_S64_MAX;
	if (b > 0 && a < COSCHED_S64_MIN + b)
		return COSCHED_S64_MIN;
	return a - b;
}

COSCHED_APART u64 cosched_add_u64(u64 a, u64 b)
{
	return a > COSCHED_U64_MAX - b ? COSCHED_U64_MAX : a + b;
}

/*
 * By long multiplication on 32-bit halves. Division would be shorter, but it faults natively on zero
 * and yields zero in BPF, and b never needs more than 32 bits here.
 */
COSCHED_APART u64 cosched_mul_u64_u32(u64 a, u32 b)
{
	u64 low = (a & 0xffffffffULL) * b;
	u64 high = (a >> 32) * b + (low >> 32);

	if (high >> 32)
		return COSCHED_U64_MAX;
	return high << 32 | (low & 0xffffffffULL);
}

/* a * 2^exponent, rounded down. */
COSCHED_APART u64 cosched_scale_u64(u64 a, s32 exponent)
{
	if (exponent <= -64)
		return 0;
	if (exponent < 0)
		return a >> -exponent;
	if (exponent >= 64)
		return a ? COSCHED_U64_MAX : 0;
	if (exponent > 0 && a >> (64 - exponent))
		return COSCHED_U64_MAX;
	return a << exponent;
}

#endif
