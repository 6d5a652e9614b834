/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * cimba CUSTOMERS SEED: the M/M/1 queue of crates/sim/examples/mm1.rs in Cimba, as Cimba's own benchmark has it: a
 * process that brings customers and one that serves them. The times are those of the other program, in the same
 * unit, so that both are held to one result.
 *
 * The library comes out of the wheel of PyPI's cimba, which has no headers: so the functions are declared here.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define SERVICE_NS 1e6
#define LOAD 0.9

struct cmb_process;
struct cmb_objectqueue;

void cmb_logger_flags_off(uint32_t flags);
void cmb_random_initialize(uint64_t seed);
void cmb_event_queue_initialize(double start);
void cmb_event_queue_execute(void);
double cmb_time(void);
struct cmb_process *cmb_process_create(void);
void cmb_process_initialize(struct cmb_process *process, const char *name,
			    void *(*body)(struct cmb_process *, void *), void *context, int64_t priority);
void cmb_process_start(struct cmb_process *process);
int64_t cmb_process_hold(double duration);
struct cmb_objectqueue *cmb_objectqueue_create(void);
void cmb_objectqueue_initialize(struct cmb_objectqueue *queue, const char *name, uint64_t capacity);
int64_t cmb_objectqueue_get(struct cmb_objectqueue *queue, void **object);
int64_t cmb_objectqueue_put(struct cmb_objectqueue *queue, void *object);

#define CMB_LOGGER_INFO 0x10000000u

static struct cmb_objectqueue *waiting;
static uint64_t customers, seed, served;
static double sum_ns;
/* More than ever wait: a ring, since Cimba's own pool of objects is not among what the library exports. */
static double came_ns[1 << 16];

static double exponential_ns(uint64_t *state, double mean_ns)
{
	uint64_t z;

	*state += 0x9e3779b97f4a7c15;
	z = (*state ^ (*state >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return floor(-log(1.0 - (double)((z ^ (z >> 31)) >> 11) / (double)(1ULL << 53)) * mean_ns);
}

static void *bring(struct cmb_process *me, void *context)
{
	uint64_t state = seed;

	(void)me;
	(void)context;
	for (uint64_t i = 0; i < customers; i++) {
		double *object = &came_ns[i & 0xffff];

		cmb_process_hold(exponential_ns(&state, SERVICE_NS / LOAD));
		*object = cmb_time();
		cmb_objectqueue_put(waiting, object);
	}
	return NULL;
}

static void *serve(struct cmb_process *me, void *context)
{
	uint64_t state = ~seed;

	(void)me;
	(void)context;
	for (;;) {
		void *object = NULL;

		cmb_objectqueue_get(waiting, &object);
		cmb_process_hold(exponential_ns(&state, SERVICE_NS));
		sum_ns += cmb_time() - *(double *)object;
		served++;
	}
	return NULL;
}

static void start(const char *name, void *(*body)(struct cmb_process *, void *))
{
	struct cmb_process *process = cmb_process_create();

	cmb_process_initialize(process, name, body, NULL, 0);
	cmb_process_start(process);
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	customers = strtoull(argv[1], NULL, 10);
	seed = strtoull(argv[2], NULL, 10);
	cmb_logger_flags_off(CMB_LOGGER_INFO);
	cmb_random_initialize(seed);
	cmb_event_queue_initialize(0.0);
	waiting = cmb_objectqueue_create();
	cmb_objectqueue_initialize(waiting, "waiting", UINT64_MAX);
	start("bring", bring);
	start("serve", serve);
	cmb_event_queue_execute();
	printf("{\"mean\": %.12g, \"served\": %" PRIu64 "}\n", sum_ns / (double)served / SERVICE_NS, served);
	return 0;
}
