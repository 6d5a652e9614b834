/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Beat: nodes that come to the same choice in each turn, though none tells the others what to choose.
 *
 * Time is cut into turns of quantum_ns, by TAI. In each turn a node draws which of its jobs goes first. A draw is a
 * function of the job's name and of the turn's number. So all nodes of a job draw alike, and never talk about it. Where
 * all processes of a job meet every few milliseconds, only this helps. If each of N nodes is right with probability p,
 * all of them are right with p^N.
 *
 *	the chance theta of a job	= its weight / (its weight + the weights of all that come after it on this node)
 *	job-wide theta			= the least that any of its nodes has, carried by messages
 *	the job wins the turn if	  it is drawn with a chance of theta, and no job before it has won
 *
 * An example. A node has jobs A and B and two tasks that do not communicate, all of weight 1. A draws first and wins
 * 1/4 of all turns. B wins 1/3 of the turns that A does not win, which is 1/4 of all as well. So 1/2 is left to the
 * rest.
 *
 * Jobs draw in the order of their sizes, the largest first. So two nodes with different other jobs agree where it is
 * most costly to disagree. Between equal sizes the names decide. Tasks that do not communicate come last, all of them
 * as one. So their number on a node changes nothing for the jobs before them.
 *
 * A turn that no job wins is in the fair order (fair.h), for jobs and others alike. There a job makes up for what it
 * lacks. So its share of the CPU does not depend on what others say of it.
 *
 * Nesting: all nodes draw with the theta of the node where it is least. Where no other job comes before it, a job that
 * wins there wins on all of its nodes.
 *
 * Nothing is remembered but theta, size and clock. Theta is renewed within two periods, and counts from the next block
 * of turns on. So nodes with any past agree soon. Counts of turns won, lags and credits do not work: each node would
 * remember its own errors.
 *
 * Nodes that do not draw. A message without news comes from a node that runs another scheduler. Its job is then astray:
 * its turns by draw are worth nothing where that node does not run it, so it draws none. Instead its messages are
 * demands (thesis 3.2). A demand that is met holds the CPU for a while. So all processes of the job gather behind the
 * node that cannot be told. The caller says which messages count: messages of peers of the same job on other nodes.
 *
 * What a lying peer can do (thesis 3.3 has the same question for epochs). Let S be the turn.
 *   - Clock. A clock is ahead of its own TAI by no more than BEAT_AHEAD_TURNS * S, whatever it hears. It goes forward
 *     by S / BEAT_STEPS a turn, or by whole turns at once. It goes back by S / BEAT_LEAK each turn. So a liar shifts
 *     the numbers of turns by BEAT_AHEAD_TURNS at once, and later by one in BEAT_LEAK turns.
 *   - Theta. A theta that is too high is cut to what the node itself would give. A theta that is too low costs the
 *     job its turns and not its share: the fair order gives that back. But those that draw after the job win more than
 *     their shares then. So a task that is ahead of its share by M = BEAT_SURPLUS_TURNS turns does not go first. A lead
 *     over the fair order would not do as a bound, since that is forgiven when a task sleeps or is parked, and a liar
 *     could have that go on for ever. Besides, it rises for a moment whenever another task wakes. The account of the
 *     surplus forgives 1 / BEAT_FORGIVES of the share only, and never goes below -M. It is at M + 1 turns at most when
 *     a turn ends. So in T seconds a task gains no more by turns than (2 * M + 1) * S, and 1 / BEAT_FORGIVES of its
 *     share. With turns of 20 ms that is 0.9% of a CPU in 20 s, and 0.8% of the share.
 *   - Size, or that a job is astray. A lie changes which nodes draw alike. A job that is astray goes first only in the
 *     bounds above. The shares of CPU time stay as they were.
 *
 * A message carries what struct cosched_beat_news has, in 10 bytes (wire.h). All nodes of a job need the same
 * quantum_ns.
 */
#ifndef COSCHED_BEAT_H
#define COSCHED_BEAT_H

#include "gang.h"
#include "window.h"

#define BEAT_ONE		0xffffffffU	/* a chance of 1, in 1 / 2^32 */
#define BEAT_BLOCK_SHIFT	6		/* each 2^this turns a job draws by another hash */
#define BEAT_PERIOD_TURNS	16		/* what is heard in so many turns counts in as many that follow */
#define BEAT_STEPS		20		/* by 1 / so much of a turn a clock goes forward in a turn */
#define BEAT_AHEAD_TURNS	4		/* a clock is ahead of its own TAI by so much at most */
#define BEAT_LEAK		2048		/* by 1 / so much of a turn it goes back in each */
#define BEAT_SILENT_PERIODS	2		/* a peer that sends, but tells nothing for so long, does not draw */
#define BEAT_SURPLUS_TURNS	4		/* a task that is ahead of its share by so much does not go first */
#define BEAT_FORGIVES		128		/* of which 1 / so much of its share is forgiven */
#define BEAT_HOLDS		4		/* by 1 / so much of a turn a job that is astray holds the CPU */
#define BEAT_FOLLOW_TURNS	3		/* it may be ahead of the running task by so much */
#define BEAT_SIZES		4		/* bytes of a size's sketch */
#define BEAT_RANK_MAX		15		/* of one of them: half a byte of a message, enough for 100,000 nodes */

/* What a message says. Its endpoint tells which job it is of, and its time tells which period. */
struct cosched_beat_news {
	u64 tai_ns;			/* the sender's clock, with its corrections */
	u32 theta;			/* the least that it has heard in this period; even: the job is astray */
	u32 sizes;			/* and the sketch of its nodes */
};

/* A job on one node. It starts as beat_job_begin() says. */
struct cosched_beat_job {
	u64 name;			/* the same on all nodes: a hash */
	u64 period;			/* in which it was renewed last */
	u32 theta;			/* what counts now, in 1 / 2^32 */
	u32 heard;			/* the least so far of this period */
	u32 sizes;			/* the sketch that counts now */
	u32 heard_sizes;		/* what has come together so far: a job's nodes stay while it lives */
	u32 astray;			/* a node of it does not draw: what counts now */
	u32 heard_astray;		/* and what was heard in this period */
	u32 draws;			/* how often it is drawn in a block of turns */
	u64 block;			/* which block that is */
};

/* The job that is astray and holds one CPU. It starts as zeroes. */
struct cosched_beat_hold {
	u64 name;
	u64 until_ns;
};

/* The clock of one CPU. It starts as zeroes. */
struct cosched_beat_clock {
	u64 ahead_ns;			/* of TAI */
	u64 stepped_ns;			/* by how much it has gone forward in this turn, without whole turns */
	u64 turn;			/* which turn that is */
};

/* SplitMix64: neighbours become strangers (Steele, Lea, Flood 2014). */
static inline u64 beat_mix(u64 x)
{
	x += 0x9e3779b97f4a7c15ULL;
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
	return x ^ (x >> 31);
}

/* The chance of a job of @weight, where those that come after it have weights that sum up to @after, in 1 / 2^32. */
static inline u32 beat_theta(u64 weight, u64 after)
{
	weight &= BEAT_ONE;
	after = after > (1ULL << 62) ? 1ULL << 62 : after;
	return after ? (weight << 32) / (weight + after) : BEAT_ONE;
}

/*
 * The weight of a task, in 1 / 2^@shift of its CPU. It is @due, the task's fair share there, but no more than twice
 * what the task used of late. A task that mostly sleeps until it is asked for something is due far more than it takes.
 * If that counted, its job would win turns that it leaves to others.
 */
static inline u32 beat_weight(const struct cosched_window *window, u32 due, u32 shift)
{
	u64 used_ns = cosched_add_u64(window->cpu_ns, window->cpu_ns);
	u64 used = used_ns / (COSCHED_WINDOW_STEPS * COSCHED_WINDOW_STEP_NS >> shift);

	return used < due ? used : due;
}

/* A sketch of one node, or of a process, called @node: a rank in one of its bytes (Flajolet, Martin 1985). */
static inline u32 beat_sketch(u64 node)
{
	u64 hash = beat_mix(node ^ 0x6265617473697a65ULL), below;
	u32 rank, at = hash % BEAT_SIZES;

	/*
	 * The bits below the lowest 1, and how many they are: without a loop, of which the verifier would try each end.
	 */
	hash >>= 2;
	below = (hash & -hash) - 1;
	below -= below >> 1 & 0x5555555555555555ULL;
	below = (below & 0x3333333333333333ULL) + (below >> 2 & 0x3333333333333333ULL);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	rank = 1 + (below * 0x0101010101010101ULL >> 56);
	return (rank < BEAT_RANK_MAX ? rank : BEAT_RANK_MAX) << 8 * at;
}

/* The sketch of the nodes of both: byte by byte the greater. */
static inline u32 beat_sketch_merge(u32 a, u32 b)
{
	u32 both = 0;

	for (u32 at = 0; at < BEAT_SIZES; at++) {
		u32 mask = 0xffU << 8 * at;

		both |= (a & mask) > (b & mask) ? a & mask : b & mask;
	}
	return both;
}

/* The size that a sketch stands for: about 4 log2 of the number of nodes, and the same wherever the sketch is. */
static inline u32 beat_size(u32 sizes)
{
	u32 sum = 0;

	for (u32 at = 0; at < BEAT_SIZES; at++)
		sum += sizes >> 8 * at & 0xff;
	return sum;
}

/* Does @a draw before @b? */
static inline int beat_is_before(const struct cosched_beat_job *a, const struct cosched_beat_job *b)
{
	u32 size_a = beat_size(a->sizes), size_b = beat_size(b->sizes);

	return size_a != size_b ? size_a > size_b : a->name < b->name;
}

static inline u64 beat_period(const struct cosched_policy *policy, u64 tai_ns)
{
	return tai_ns / gang_quantum_ns(policy) / BEAT_PERIOD_TURNS;
}

/* The job @name comes to a node called @node in @period. */
static inline void beat_job_begin(struct cosched_beat_job *job, u64 name, u64 node, u64 period)
{
	job->name = name;
	job->period = period;
	job->theta = job->heard = BEAT_ONE;
	job->astray = job->heard_astray = 0;
	job->draws = 0;
	job->block = 0;
	job->sizes = job->heard_sizes = beat_sketch(node);
}

/* What a message of the job says if it goes out when the sender's clock shows @clock_ns. */
static inline void beat_tell(struct cosched_beat_news *news, const struct cosched_beat_job *job, u64 clock_ns)
{
	news->tai_ns = clock_ns;
	news->theta = (job->heard | 1) - !!job->heard_astray;
	news->sizes = job->heard_sizes;
}

/* A message of the job has come with @news, from a peer that is believed. News of another period do not count. */
static inline void beat_hear(struct cosched_beat_job *job, const struct cosched_policy *policy,
			     const struct cosched_beat_news *news)
{
	if (beat_period(policy, news->tai_ns) != job->period)
		return;
	if (job->heard > (news->theta | 1))
		job->heard = news->theta | 1;
	job->heard_astray |= !(news->theta & 1);
	job->heard_sizes = beat_sketch_merge(job->heard_sizes, news->sizes);
}

/*
 * Adds @news, which came when the clock here showed @clock_ns, to @all: what a task has heard in this period. Without
 * sizes in @all the task has heard nothing so far.
 */
static inline void beat_gather(struct cosched_beat_news *all, const struct cosched_policy *policy,
			       const struct cosched_beat_news *news, u64 clock_ns)
{
	u32 astray = !(all->theta & news->theta & 1), least = all->theta < news->theta ? all->theta : news->theta;
	u64 period = beat_period(policy, clock_ns);

	if (beat_period(policy, news->tai_ns) != period)
		return;
	if (!all->sizes || beat_period(policy, all->tai_ns) != period) {
		*all = *news;
		return;
	}
	all->theta = (least | 1) - astray;
	all->sizes = beat_sketch_merge(all->sizes, news->sizes);
}

/* The block of turns that @turn is in, for the job called @name. */
static inline u64 beat_block(u64 name, u64 turn)
{
	return (turn + beat_mix(name)) >> BEAT_BLOCK_SHIFT;
}

/* The upper half: at which fraction the job called @name begins @block. The lower half: by what to round there. */
static inline u64 beat_fraction(u64 name, u64 block)
{
	return beat_mix(name ^ beat_mix(block));
}

/*
 * How often the job called @name, whose chance is @theta, is drawn in @block: rounded so that the mean is exact. A job
 * that is due less than one turn of a block draws none. Such a job mostly sleeps, as the scheduler's own loader does.
 * It would win turns that it does not use.
 */
static inline u32 beat_draws_in(u64 name, u64 block, u32 theta)
{
	u64 draws = ((u64)theta + 1) << BEAT_BLOCK_SHIFT;

	return draws >> 32 ? (draws + (u32)beat_fraction(name, block)) >> 32 : 0;
}

/*
 * Is @turn drawn for the job called @name, which is drawn @draws times in this block of turns? The job counts up by as
 * much in each turn, and is drawn whenever it comes to another whole number. This is systematic sampling (Cochran 1977,
 * chapter 8): nothing has a job's turns lie more evenly. By a hash of the name it begins each block at another
 * fraction. So it counts a little faster or slower in between, by less than one in a block. And so each two jobs stand
 * to each other in another way in each block, and no two names are unlucky with each other for long.
 *
 * A job that is drawn n times in each block at least has less than 2^BEAT_BLOCK_SHIFT / (n - 1) other turns between two
 * of its own.
 */
static inline int beat_draws(u64 name, u64 turn, u32 draws)
{
	u64 block = beat_block(name, turn), index = (turn + beat_mix(name)) & ((1 << BEAT_BLOCK_SHIFT) - 1);
	u64 here = beat_fraction(name, block) >> 32, next = beat_fraction(name, block + 1) >> 32;
	/* In 2^-(32 + BEAT_BLOCK_SHIFT). A step below 0 wraps, and the sum is right again. */
	u64 step = ((u64)draws << 32) + next - here;
	u64 count = (here << BEAT_BLOCK_SHIFT) + index * step;

	return draws >> BEAT_BLOCK_SHIFT ||
	       (count + step) >> (32 + BEAT_BLOCK_SHIFT) > count >> (32 + BEAT_BLOCK_SHIFT);
}

/*
 * How often the job is drawn in the block of @turn is settled when the block begins, unless theta changes by much. Each
 * change would move all draws that are left. If the shares on a node are just between two such numbers, that would come
 * again and again, and each time the job might be drawn twice, or have twice the pause.
 */
static inline void beat_settle(struct cosched_beat_job *job, u64 turn)
{
	u64 block = beat_block(job->name, turn);
	u32 draws = beat_draws_in(job->name, block, job->theta);

	if (job->block == block && draws <= job->draws + 1 && job->draws <= draws + 1)
		return;
	job->block = block;
	job->draws = draws;
}

/*
 * To be called in each @turn, before anything is told: what was heard in the last period counts in this period. @here:
 * beat_theta() on this node, now. No message brings theta above what the node itself had in the last period. It is not
 * compared with what the node has now, which others have not heard of: they would draw other turns. After a period
 * without a turn nothing is known.
 */
static inline void beat_renew(struct cosched_beat_job *job, u32 here, u64 turn)
{
	u64 period = turn / BEAT_PERIOD_TURNS;

	if (job->period == period) {
		if (job->heard > here)
			job->heard = here;
		return beat_settle(job, turn);
	}
	job->theta = job->period + 1 == period ? job->heard : here;
	job->sizes = job->heard_sizes;
	job->astray = job->heard_astray;
	job->heard_astray = 0;
	job->heard = here;
	job->period = period;
	beat_settle(job, turn);
}

/*
 * Does the job win @turn? @won says whether a job before it has: jobs are to be asked in the order of
 * beat_is_before().
 */
static inline int beat_wins(const struct cosched_beat_job *job, u64 turn, u32 won)
{
	return !won && !job->astray && beat_draws(job->name, turn, job->draws);
}

/*
 * By how much a task is ahead of its share, in ns. It was ahead by @ahead_ns, and has used @cpu_ns while it was due
 * @fair_ns. It starts as 0. The fair order forgives a lead when its task sleeps or is parked. This forgives
 * 1 / BEAT_FORGIVES of the share. So what came by other ways than turns does not bar a task from them for long. What a
 * task is behind by more than BEAT_SURPLUS_TURNS turns is forgotten. Otherwise a task that mostly sleeps could have all
 * of that at once.
 */
static inline s64 beat_charge(s64 ahead_ns, const struct cosched_policy *policy, u64 cpu_ns, u64 fair_ns)
{
	s64 turn_ns = gang_quantum_ns(policy), most_ns = (BEAT_SURPLUS_TURNS + 1) * turn_ns;
	s64 least_ns = -BEAT_SURPLUS_TURNS * turn_ns, more_ns = cpu_ns - fair_ns - fair_ns / BEAT_FORGIVES;

	ahead_ns = cosched_add_s64(ahead_ns, more_ns);
	if (ahead_ns < least_ns)
		return least_ns;
	return ahead_ns < most_ns ? ahead_ns : most_ns;
}

/*
 * May a task of the job that has won the turn go first in it, though it is ahead of its share by @surplus_ns? A draw is
 * for a job, by what all of its tasks are due. If some of these sleep, the others are not to have their turns too.
 */
static inline int beat_may_lead(const struct cosched_policy *policy, s64 surplus_ns)
{
	return surplus_ns <= (s64)(BEAT_SURPLUS_TURNS * gang_quantum_ns(policy));
}

/*
 * May a message make its receiver run, in a turn that no job has won? Draws give a job all that it is due, in the mean.
 * If demands gave more, one node after the other would reach the bound above, and turns would be won for half a job.
 */
static inline int beat_may_demand(s64 surplus_ns)
{
	return surplus_ns < 0;
}

/*
 * A message has come by a connection that has brought neither news nor an epoch for @silent_ns. Does the node at the
 * other end not draw? One segment without either says nothing: it lacked room, or its news had just been told.
 */
static inline int beat_is_silent(const struct cosched_policy *policy, u64 silent_ns)
{
	return silent_ns / gang_quantum_ns(policy) >= BEAT_SILENT_PERIODS * BEAT_PERIOD_TURNS;
}

/* A message of the job has come without news, from a node that runs another scheduler. */
static inline void beat_hear_nothing(struct cosched_beat_job *job)
{
	job->heard_astray = 1;
}

/*
 * May @job take the CPU at @now_ns, because it has a message and is astray? Then it holds the CPU. @lead_ns and
 * @running_lead_ns: how far the job and the running task, which is of another job, are ahead of the fair order.
 */
static inline int beat_follows(struct cosched_beat_hold *hold, const struct cosched_policy *policy,
			       const struct cosched_beat_job *job, s64 lead_ns, s64 running_lead_ns, u64 now_ns)
{
	u64 turn_ns = gang_quantum_ns(policy);
	s64 ahead_ns = cosched_sub_s64(lead_ns, running_lead_ns);

	if (!job->astray || (now_ns < hold->until_ns && hold->name != job->name))
		return 0;
	if (ahead_ns > 0 && (u64)ahead_ns / BEAT_FOLLOW_TURNS >= turn_ns)
		return 0;
	hold->name = job->name;
	hold->until_ns = cosched_add_u64(now_ns, turn_ns / BEAT_HOLDS);
	return 1;
}

/* The job that goes first on a CPU at @now_ns: the job that holds it, or else @winner, by the draw. */
static inline u64 beat_first(const struct cosched_beat_hold *hold, u64 winner, u64 now_ns)
{
	return now_ns < hold->until_ns ? hold->name : winner;
}

/* The time of a CPU whose TAI is @tai_ns. */
static inline u64 beat_clock_ns(const struct cosched_beat_clock *clock, u64 tai_ns)
{
	return tai_ns + clock->ahead_ns;
}

/* A turn may have begun: the clock goes back a little, once for each turn. */
static inline void beat_clock_turn(struct cosched_beat_clock *clock, const struct cosched_policy *policy, u64 tai_ns)
{
	u64 turn_ns = gang_quantum_ns(policy), back_ns = turn_ns / BEAT_LEAK;
	u64 turn = beat_clock_ns(clock, tai_ns) / turn_ns;

	/* It goes back by more than it can be ahead only if TAI is set back. */
	if (turn <= clock->turn && clock->turn - turn <= BEAT_AHEAD_TURNS)
		return;
	clock->turn = turn;
	clock->stepped_ns = 0;
	clock->ahead_ns -= clock->ahead_ns < back_ns ? clock->ahead_ns : back_ns;
}

/*
 * A peer that is believed has sent @heard_ns as its clock, to a CPU whose TAI is @tai_ns. A later clock is followed, so
 * that all come to the latest: by whole turns at once, and by small steps else. How long the message took makes the
 * clock seem earlier, and never drives the clocks. Returns by how much the clock went forward, in ns.
 */
static inline u64 beat_clock_hear(struct cosched_beat_clock *clock, const struct cosched_policy *policy, u64 tai_ns,
				  u64 heard_ns)
{
	u64 turn_ns = gang_quantum_ns(policy), step_ns = turn_ns / BEAT_STEPS, own_ns, by_ns, most_ns;
	u64 bound_ns = turn_ns > COSCHED_U64_MAX / BEAT_AHEAD_TURNS ? turn_ns : turn_ns * BEAT_AHEAD_TURNS;

	/* Messages may come before the first draw of the turn. Then they go by the steps of this turn as well. */
	beat_clock_turn(clock, policy, tai_ns);
	own_ns = beat_clock_ns(clock, tai_ns);
	if (heard_ns <= own_ns || clock->ahead_ns >= bound_ns)
		return 0;
	by_ns = heard_ns - own_ns;
	most_ns = bound_ns - clock->ahead_ns;
	if (by_ns >= turn_ns) {
		by_ns = (by_ns < most_ns ? by_ns : most_ns) / turn_ns * turn_ns;
	} else {
		step_ns = step_ns > clock->stepped_ns ? step_ns - clock->stepped_ns : 0;
		by_ns = by_ns < step_ns ? by_ns : step_ns;
		by_ns = by_ns < most_ns ? by_ns : most_ns;
		clock->stepped_ns += by_ns;
	}
	clock->ahead_ns += by_ns;
	return by_ns;
}

#endif
