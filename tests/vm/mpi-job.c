/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * mpi-job KIND FILE SECONDS: a parallel job for bench-mpi, one rank on each node.
 *
 *	pingpong	rank 0 sends 64 bytes, the others send them back
 *	barrier		a barrier
 *	stencil		a Jacobi step on 16 KiB a rank, whose edges are exchanged; each tenth the ranks agree on the residual
 *	coarse		some 50 ms of computing, then the ranks agree on the result
 *
 * It runs from the beginning, which rank 0 says by making FILE.ready, but counts from the time on that it then finds in
 * FILE.start, one of its CLOCK_MONOTONIC in seconds, for so many SECONDS; then it goes on for a second, so that others
 * that count have it beside them to the end. Rank 0 says when, in the messages that there are anyway or in one more for
 * each sixteen. The steps that are under way when it begins and when it ends count with all the time that they take:
 * some take seconds. Prints a line for each rank:
 *
 *	rank R steps N elapsed S cpu S
 */
#define _GNU_SOURCE
#include <mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define CELLS 2048
#define BETWEEN_CALLS 16

enum phase { WARM_UP, COUNT, COOL_DOWN, END };

static int rank, ranks;
static const char *file;
static double start, looked_at, seconds;	/* start: 0 until it is known */
static double cells[2][CELLS + 2];

static double monotonic(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec + now.tv_nsec / 1e9;
}

static double cpu(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_utime.tv_sec + usage.ru_stime.tv_sec + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static enum phase phase;	/* what the ranks have agreed on */

/* The path of FILE with this at its end. */
static FILE *open_beside(const char *suffix, const char *mode)
{
	char path[4096];

	snprintf(path, sizeof(path), "%s.%s", file, suffix);
	return fopen(path, mode);
}

static void look_for_start(double now)
{
	FILE *said = now - looked_at > 0.1 ? open_beside("start", "r") : NULL;

	if (now - looked_at > 0.1)
		looked_at = now;
	if (!said)
		return;
	if (fscanf(said, "%lf", &start) != 1)
		start = 0;
	fclose(said);
}

/* What rank 0 would have it. */
static enum phase phase_now(void)
{
	double now = monotonic();

	if (rank)
		return phase;
	if (!start)
		look_for_start(now);
	return !start || now < start ? WARM_UP : now < start + seconds ? COUNT : now < start + seconds + 1 ? COOL_DOWN : END;
}

/* Each does one step, and returns the phase that the ranks have agreed on. */

static enum phase pingpong(long step)
{
	int message[16] = { phase_now() }, other;

	(void)step;
	for (other = 1; other < ranks; other++) {
		if (!rank) {
			MPI_Send(message, 16, MPI_INT, other, 0, MPI_COMM_WORLD);
			MPI_Recv(message, 16, MPI_INT, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		} else if (rank == other) {
			MPI_Recv(message, 16, MPI_INT, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
			MPI_Send(message, 16, MPI_INT, 0, 0, MPI_COMM_WORLD);
		}
	}
	return message[0];
}

static enum phase agree(void)
{
	int said = phase_now();

	MPI_Bcast(&said, 1, MPI_INT, 0, MPI_COMM_WORLD);
	return said;
}

static enum phase barrier(long step)
{
	MPI_Barrier(MPI_COMM_WORLD);
	return step % BETWEEN_CALLS ? phase : agree();
}

static enum phase stencil(long step)
{
	double *from = cells[step & 1], *to = cells[!(step & 1)], change = 0, all;
	int left = rank ? rank - 1 : MPI_PROC_NULL, right = rank + 1 < ranks ? rank + 1 : MPI_PROC_NULL, i;

	MPI_Sendrecv(&from[1], 1, MPI_DOUBLE, left, 0, &from[CELLS + 1], 1, MPI_DOUBLE, right, 0, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	MPI_Sendrecv(&from[CELLS], 1, MPI_DOUBLE, right, 1, &from[0], 1, MPI_DOUBLE, left, 1, MPI_COMM_WORLD,
		     MPI_STATUS_IGNORE);
	for (i = 1; i <= CELLS; i++) {
		to[i] = (from[i - 1] + from[i + 1]) / 2;
		change += (to[i] - from[i]) * (to[i] - from[i]);
	}
	if (step % 10 == 0)
		MPI_Allreduce(&change, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return step % BETWEEN_CALLS ? phase : agree();
}

/* As much work as 50 ms are when nobody else runs, which rank 0 of the first job of a boot has found out for all. */
static long work;
static const char work_known[] = "/run/mpi-job.work";

static double compute(long rounds)
{
	volatile double x = 1;

	while (rounds--)
		x = x * 0.999999 + 1e-6;
	return x;
}

static void find_work(void)
{
	FILE *known = rank ? NULL : fopen(work_known, "r");
	int i, measure = !rank && (!known || fscanf(known, "%ld", &work) != 1);

	if (known)
		fclose(known);
	for (i = 0; measure && i < 8; i++) {	/* the fastest was disturbed least */
		double before = cpu(), rounds;

		compute(1000000);
		rounds = 0.05 * 1000000 / (cpu() - before);
		work = rounds > work ? rounds : work;
	}
	known = measure ? fopen(work_known, "w") : NULL;
	if (known) {
		fprintf(known, "%ld\n", work);
		fclose(known);
	}
	MPI_Bcast(&work, 1, MPI_LONG, 0, MPI_COMM_WORLD);
}

static enum phase coarse(long step)
{
	double mine = compute(work), all;

	(void)step;
	MPI_Allreduce(&mine, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
	return agree();
}

static void report(long steps, double elapsed, double used)
{
	double mine[3] = { steps, elapsed, used }, *all = calloc(3 * ranks, sizeof(double));
	int i;

	MPI_Gather(mine, 3, MPI_DOUBLE, all, 3, MPI_DOUBLE, 0, MPI_COMM_WORLD);
	for (i = 0; !rank && i < ranks; i++)
		printf("rank %d steps %.0f elapsed %.3f cpu %.3f\n", i, all[3 * i], all[3 * i + 1], all[3 * i + 2]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		enum phase (*step)(long);
	} kinds[] = { { "pingpong", pingpong }, { "barrier", barrier }, { "stencil", stencil }, { "coarse", coarse } };
	double began = 0, cpu_then = 0, elapsed = 0, used = 0;
	enum phase next;
	long step = 0, first = 0, steps = 0;
	size_t kind = 0;
	FILE *said;

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &ranks);
	while (kind < 4 && (argc != 4 || strcmp(argv[1], kinds[kind].name)))
		kind++;
	if (kind == 4) {
		fprintf(stderr, "usage: mpi-job pingpong|barrier|stencil|coarse FILE SECONDS\n");
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	file = argv[2];
	seconds = atof(argv[3]);
	cells[0][0] = cells[1][0] = !rank;
	find_work();
	said = rank ? NULL : open_beside("ready", "w");
	if (said)
		fclose(said);
	while (phase != END) {
		if (phase == WARM_UP) {
			began = monotonic();
			cpu_then = cpu();
			first = step;
		}
		next = kinds[kind].step(step++);
		if (phase <= COUNT && next > COUNT) {
			elapsed = monotonic() - began;
			used = cpu() - cpu_then;
			steps = step - first;
		}
		phase = next;
	}
	report(steps, elapsed, used);
	MPI_Finalize();
	return 0;
}
