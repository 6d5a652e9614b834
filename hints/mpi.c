/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libcosched_mpi: has MPI programs that nobody changes say when they wait.
 *
 *	LD_PRELOAD=libcosched_mpi.so mpirun ...
 *
 * Each MPI function in which a rank waits for others is wrapped in cosched_wait_begin() and cosched_wait_end(),
 * through the second name that the standard gives every function for such uses (PMPI_). What sends alone is left as
 * it is: that is work.
 *
 * One file for every MPI. Their handles differ, integers in MPICH and pointers in Open MPI, and so their mpi.h and the
 * types of these functions do. But all arguments of all of them are integers or pointers, and where both travel in
 * registers or stack slots of one size (LP64: x86-64, AArch64 and the like) they can be handed on as what they are,
 * without looking at them. So none of it is needed to build this, and the ranks of both can run with the same
 * library. Fortran's functions, which have pointers alone, are wrapped too, where the compiler puts one underscore
 * behind their names; those of the module mpi_f08 are not.
 *
 * The wrapped function is looked for in the whole program first, and then among what the caller was linked with: a
 * Python extension, say, that was loaded on its own.
 */
#define _GNU_SOURCE
#include "cosched.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#ifndef __LP64__
#error "Arguments are handed on as long, which must hold a pointer and have the place of an int: LP64"
#endif

typedef long word;		/* an argument, whatever its type */

/* The function called @name, for a caller at @caller. */
static void *find(const char *name, const void *caller)
{
	void *found = dlsym(RTLD_DEFAULT, name), *library;
	Dl_info info;

	if (!found && dladdr(caller, &info) && info.dli_fname) {
		library = dlopen(info.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			found = dlsym(library, name);
	}
	if (!found) {
		fprintf(stderr, "libcosched_mpi: there is no %s (run it without this library)\n", name);
		abort();
	}
	return found;
}

#define ARGS_1	word a
#define ARGS_2	ARGS_1, word b
#define ARGS_3	ARGS_2, word c
#define ARGS_4	ARGS_3, word d
#define ARGS_5	ARGS_4, word e
#define ARGS_6	ARGS_5, word f
#define ARGS_7	ARGS_6, word g
#define ARGS_8	ARGS_7, word h
#define ARGS_9	ARGS_8, word i
#define ARGS_10	ARGS_9, word j
#define ARGS_11	ARGS_10, word k
#define ARGS_12	ARGS_11, word l
#define ARGS_13	ARGS_12, word m
#define PASS_1	a
#define PASS_2	PASS_1, b
#define PASS_3	PASS_2, c
#define PASS_4	PASS_3, d
#define PASS_5	PASS_4, e
#define PASS_6	PASS_5, f
#define PASS_7	PASS_6, g
#define PASS_8	PASS_7, h
#define PASS_9	PASS_8, i
#define PASS_10	PASS_9, j
#define PASS_11	PASS_10, k
#define PASS_12	PASS_11, l
#define PASS_13	PASS_12, m

/* A wait that is left otherwise than by return, as by an exception of the program's own error handler, ends too. */
static void end_wait(const int *began)
{
	(void)began;
	cosched_wait_end();
}

/* The function @name of @count arguments, which waits inside @inner. */
#define WRAP(name, inner, count)								\
word name(ARGS_##count);									\
word name(ARGS_##count)										\
{												\
	static word (*wrapped)(ARGS_##count);							\
	word (*known)(ARGS_##count) = __atomic_load_n(&wrapped, __ATOMIC_RELAXED);		\
												\
	if (!known) {										\
		*(void **)&known = find(#inner, __builtin_return_address(0));			\
		__atomic_store_n(&wrapped, known, __ATOMIC_RELAXED);				\
	}											\
	cosched_wait_begin();									\
	int began __attribute__((cleanup(end_wait), unused)) = 1;				\
	return known(PASS_##count);								\
}

/* Fortran's has one argument more, for the error. */
#define WAITS(name, fortran, count, count_fortran)						\
	WRAP(MPI_##name, PMPI_##name, count)							\
	WRAP(mpi_##fortran##_, pmpi_##fortran##_, count_fortran)

WAITS(Recv, recv, 7, 8)
WAITS(Mrecv, mrecv, 5, 6)
WAITS(Probe, probe, 4, 5)
WAITS(Mprobe, mprobe, 5, 6)
WAITS(Sendrecv, sendrecv, 12, 13)
WAITS(Sendrecv_replace, sendrecv_replace, 9, 10)
WAITS(Wait, wait, 2, 3)
WAITS(Waitany, waitany, 4, 5)
WAITS(Waitall, waitall, 3, 4)
WAITS(Waitsome, waitsome, 5, 6)
WAITS(Barrier, barrier, 1, 2)
WAITS(Bcast, bcast, 5, 6)
WAITS(Gather, gather, 8, 9)
WAITS(Gatherv, gatherv, 9, 10)
WAITS(Scatter, scatter, 8, 9)
WAITS(Scatterv, scatterv, 9, 10)
WAITS(Allgather, allgather, 7, 8)
WAITS(Allgatherv, allgatherv, 8, 9)
WAITS(Alltoall, alltoall, 7, 8)
WAITS(Alltoallv, alltoallv, 9, 10)
WAITS(Alltoallw, alltoallw, 9, 10)
WAITS(Reduce, reduce, 7, 8)
WAITS(Allreduce, allreduce, 6, 7)
WAITS(Reduce_scatter, reduce_scatter, 6, 7)
WAITS(Reduce_scatter_block, reduce_scatter_block, 6, 7)
WAITS(Scan, scan, 6, 7)
WAITS(Exscan, exscan, 6, 7)
WAITS(Neighbor_allgather, neighbor_allgather, 7, 8)
WAITS(Neighbor_allgatherv, neighbor_allgatherv, 8, 9)
WAITS(Neighbor_alltoall, neighbor_alltoall, 7, 8)
WAITS(Neighbor_alltoallv, neighbor_alltoallv, 9, 10)
WAITS(Neighbor_alltoallw, neighbor_alltoallw, 9, 10)
WAITS(Win_fence, win_fence, 2, 3)
WAITS(Win_wait, win_wait, 1, 2)
