/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the BPF side and the Rust side share: the shapes of maps that the loader reads, and limits that both must agree
 * on. The policy itself is in policies/policy.h.
 */
#ifndef COSCHED_INTF_H
#define COSCHED_INTF_H

#include "counters.h"
#include "../policies/account.h"
#include "../policies/balance.h"
#include "../policies/beat.h"
#include "../policies/boost_choice.h"
#include "../policies/limit.h"
#include "../policies/phase.h"
#include "../policies/policy.h"
#include "../policies/prefetch.h"
#include "../policies/window.h"
#include "../policies/wire.h"
#include "../hints/hint.h"

#define COSCHED_COUNTER_ENUM(name, help) COSCHED_COUNTER_##name,
enum cosched_counter {
	COSCHED_COUNTERS(COSCHED_COUNTER_ENUM)
	COSCHED_NR_COUNTERS,
};

#define COSCHED_ENDPOINT_ENUM(name) COSCHED_ENDPOINT_##name,
enum cosched_endpoint {
	COSCHED_ENDPOINTS(COSCHED_ENDPOINT_ENUM)
	COSCHED_NR_ENDPOINTS,
};

enum {
	COSCHED_MAX_CPUS = 1024,	/* a kernel with more CPUs is refused by the loader */
	COSCHED_MAX_GROUPS = 4096,	/* cgroups with a weight of their own; the rest counts as their parents */
	COSCHED_MAX_JOBS = 4096,	/* jobs told apart; the rest is counted together */
	COSCHED_MAX_CALLS = 16,		/* system calls of a kind, see polls.bpf.h */
	COSCHED_LATENCY_BUCKETS = 26,	/* bucket i counts latencies <= 2^i us, the last the rest */
	COSCHED_TRACE_BYTES = 4 << 20,	/* of the ring through which a trace is read; else there is no ring */
	COSCHED_MAX_COMPLETIONS = 8192,	/* RDMA queues that completions are followed in; of more, those used lately */
	COSCHED_WIRE_CONNECTIONS = 16384,	/* whose messages' epochs are kept; of more, those used lately */
	COSCHED_WIRE_PEERS = 1024,	/* networks (--peer) */
	COSCHED_PREFETCH_MAX = 8,	/* correspondents of a task (--prefetch) */
	COSCHED_PREFETCH_BYTES = 1 << 16,	/* of the ring that prefetches go through on their way out */
	COSCHED_COMM_LEN = 16,		/* of a task's name, with its NUL */
};

/* What makes two tasks members of one job (--job-by). */
enum cosched_job_by {
	COSCHED_JOB_BY_CGROUP,		/* id: cgroup v2 id */
	COSCHED_JOB_BY_SESSION,		/* id: session leader's pid */
	COSCHED_JOB_BY_PROCESS,		/* id: thread group id */
};

#define COSCHED_JOB_OTHER 0ULL		/* the id under which jobs beyond COSCHED_MAX_JOBS are counted */

/* One per CPU (a per-CPU array with a single element): only its CPU writes it. */
struct cosched_cpu_stats {
	u64 counters[COSCHED_NR_COUNTERS];
	u64 endpoint_arrivals[COSCHED_NR_ENDPOINTS];	/* the counter "arrivals", by endpoint */
	u64 decisions[COSCHED_NR_REASONS];
	u64 latency_buckets[COSCHED_LATENCY_BUCKETS];
	u64 latency_sum_ns;
	u64 skew_sum_ns;		/* gang: by how much the turns of rows began late, all together */
	u64 skew_max_ns;		/* and at most */
};

/* One per CPU and job (a per-CPU hash keyed by job id). */
struct cosched_job_stats {
	u64 cpu_ns;			/* T_C: CPU time used */
	u64 fair_ns;			/* the CPU time that fair sharing would have given: T_E / N, by weight */
	u64 boosts;
};

/* What a trace shows (trace.bpf.h). */
enum cosched_event_kind {
	COSCHED_EVENT_ARRIVAL,		/* a message arrives for the task */
	COSCHED_EVENT_DECISION,		/* the gate grants the task a boost, or denies it */
	COSCHED_EVENT_SWITCH_IN,	/* the task runs from here on; if it ran already, it goes on as the flags say */
	COSCHED_EVENT_SWITCH_OUT,	/* it has left its CPU */
	COSCHED_EVENT_TURN,		/* beat: the job wins a turn on the CPU, or not, though it has on another CPU */
	COSCHED_EVENT_CLOCK,		/* beat: the clock of turns goes forward, as peers of the job have it */
	COSCHED_NR_EVENTS,
};

enum cosched_event_flag {
	COSCHED_EVENT_RUNNING = 1,	/* arrival: it found the task running */
	COSCHED_EVENT_BOOSTED = 2,	/* switches: the task runs, or ran, because of a boost */
	COSCHED_EVENT_PARKED = 4,	/* switches: it has been parked until now, or is to be parked */
	COSCHED_EVENT_RUNNABLE = 8,	/* switch out: it does not sleep */
	COSCHED_EVENT_WON = 16,		/* turn: the job has won it on this CPU */
};

/* How a job's draw for a turn on one CPU compares with its draw on another. */
enum cosched_verdict {
	COSCHED_VERDICT_FIRST,		/* no other CPU of this machine has drawn for it yet */
	COSCHED_VERDICT_ALIKE,
	COSCHED_VERDICT_UNLIKE,
};

struct cosched_event {
	u64 time_ns;			/* CLOCK_MONOTONIC, which is the same on all CPUs; scx_bpf_now() is not */
	u64 job;			/* of the task */
	u64 ns;				/* decision: how long the boost is to last; switch: the task's CPU time so far;
					   turn: its number; clock: how far it is ahead of TAI */
	u32 pid;			/* 0: of a job, and not of a task */
	u32 cpu;			/* that the task is on, runs or not */
	u32 kind;			/* enum cosched_event_kind */
	u32 detail;			/* arrival: enum cosched_endpoint; decision: enum cosched_reason; turn: enum
					   cosched_verdict; clock: by how much it goes forward, ns */
	u32 flags;			/* enum cosched_event_flag */
	u32 reserved;
	char comm[COSCHED_COMM_LEN];
};

/* Where a thread gives its hints, or does so no longer (hints.bpf.h). */
struct cosched_hint_place {
	u64 page;			/* key of the page of its process */
	u32 process;			/* this and the next: as the first namespace of processes has them */
	u32 thread;
	u32 slot;
	u32 is_over;			/* 1: it has given them there, and is to be forgotten */
};

/* A network of peers, the key of a trie: IPv4 as ::ffff:a.b.c.d. */
struct cosched_wire_network {
	u32 prefix;			/* bits, 0 to 128 */
	u8 address[16];			/* as on the wire */
};

/* What the messages of a connection brought last (wire_notes.bpf.h). */
struct cosched_wire_note {
	u64 epoch;			/* 0: none was believed yet */
	u64 slice_ns;			/* what was left of the sender's slice then; 0: not known */
	u64 waits_us;			/* what the sender's waits say of its job's imbalance; 0: nothing */
	u64 noted_at;			/* CLOCK_MONOTONIC: when what came was believed last; 0: never */
	u64 xdp_at;			/* of a connection: when XDP saw one last; 0: never */
	u64 receiver;			/* of a connection, with --prefetch: the receiver's task_id; 0: not known */
	struct cosched_beat_news news;	/* of its job's turns; without sizes: none were believed since the last epoch */
	u64 job;			/* whose they are: cosched_wire_job() */
};

/* What the loader's thread has to say of a prefetch (prefetch.bpf.h). */
enum cosched_prefetch_kind {
	COSCHED_PREFETCH_SENT,
	COSCHED_PREFETCH_LOST,		/* could not be sent */
	COSCHED_PREFETCH_HEARD,		/* is to be believed */
	COSCHED_PREFETCH_REFUSED,	/* is not */
};

struct cosched_prefetch_news {
	struct cosched_prefetch prefetch;	/* heard: which */
	u32 kind;			/* enum cosched_prefetch_kind */
	u32 reserved;
};

#endif
