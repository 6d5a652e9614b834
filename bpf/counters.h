/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Every event counter of the scheduler, declared once: X(name, help). From here the list reaches the per-CPU array in
 * BPF, --stats, status and the OpenMetrics exporter (scx_cosched_<name>_total).
 */
#ifndef COSCHED_COUNTERS_H
#define COSCHED_COUNTERS_H

#define COSCHED_COUNTERS(X)									\
	X(arrivals,            "Messages that arrived where it is known who receives them")	\
	X(arrivals_coscheduled, "Arrivals that found their receiver running")			\
	X(arrivals_unmapped,   "Messages that arrived where it is not known who receives them") \
	X(boosts,              "Times a receiver ran ahead of the fair order")			\
	X(spins,               "Receives that found nothing and spun before they slept")		\
	X(spins_answered,      "Spins that ended with a message, without a switch")		\
	X(sleeps,              "Receives that found nothing and slept")				\
	X(polls,               "Times a task lost its CPU while it polled in vain")		\
	X(parks,               "Times a task that polled in vain was taken off its CPU, or yielded it") \
	X(rechecks,            "Times a parked task was let look again without a message")	\
	X(rows,                "Times a turn of a gang's row, or by beat, ended on a CPU")			\
	X(turns,               "Turns by beat for which a CPU has drawn, whether a job has won or none") \
	X(turns_won,           "Those of them that a job has won on the CPU")			\
	X(turns_alike,         "Times a job won a turn on two CPUs of this machine")		\
	X(turns_unlike,        "Times a job won a turn on one of two CPUs, and not on the other")	\
	X(holds,               "Times a job with a node that draws no turns took a CPU for a moment")	\
	X(news_sent,           "Segments and datagrams that took news of a job's turns to another machine")	\
	X(news_heard,          "Segments and datagrams that brought news of a job's turns which were believed")	\
	X(clock_steps,         "Times the clock of turns went forward since a peer's was later")	\
	X(context_switches,    "Times a CPU changed from one task to another")			\
	X(preemptions,         "Times a waking task preempted by the fair order, without a boost") \
	X(steals,              "Tasks that an idle CPU took from the queue of another")		\
	X(pulls,               "Tasks that a busy CPU took from the queue of a busier one")	\
	X(endpoints_full,      "Sockets and RDMA queues that could not be tracked for want of memory") \
	X(boxes_full,          "Boosts and messages that waited for a turn: too many came at once for tasks of a CPU") \
	X(groups_full,         "Cgroups that count as part of their parent for want of a place")	\
	X(jobs_full,           "Times a job was counted under \"other\" because the job map was full")	\
	X(epochs_sent,         "Segments and datagrams that took an epoch to another machine")	\
	X(epochs_heard,        "Segments and datagrams that brought an epoch which was believed")	\
	X(epochs_refused,      "Segments and datagrams that brought an epoch or news which were not believed") \
	X(epochs_adopted,      "Times a CPU took over the epoch of another machine's message")	\
	X(prefetches_sent,     "Times a correspondent on another machine was asked for ahead of a message") \
	X(prefetches_lost,     "Prefetches that were not sent: the ring was full, or the network refused")	\
	X(prefetches_heard,    "Prefetches for a task of this machine that were believed")		\
	X(prefetches_granted,  "Those of them that found it in the queue and that the gate granted")	\
	X(prefetches_unmapped, "Prefetches that were believed, for a connection whose receiver is not known") \
	X(prefetches_refused,  "Prefetches that were not believed")				\
	X(trace_lost,          "Events that a trace misses because it was not read fast enough")

/*
 * What messages arrive at, declared once: X(name). Arrivals are counted for each, and the names reach the metrics as
 * the label "endpoint".
 */
#define COSCHED_ENDPOINTS(X)									\
	X(tcp)											\
	X(udp)											\
	X(unix)											\
	X(rdma)											\
	X(futex)										\
	X(pipe)											\
	X(eventfd)										\
	X(other)

#endif
