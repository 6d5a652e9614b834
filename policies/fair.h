/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fair order: which task runs next when no message says otherwise.
 *
 * On each CPU the runnable tasks and groups of a group stand in an order of their own. Each has a vtime there: the CPU
 * time that it has used over its weight. The order has a clock: the mean of these vtimes by weight. So the clock goes
 * on as if all had run at once, each by its weight. A task ahead of it has had more than its share, a task behind it
 * less.
 *
 *	root -- A (weight 100) -- a1		A and B go on at the same rate. So a1 goes on at three times
 *	    `-- B (weight 100) -- b1, b2, b3	that of b1, b2 and b3, however long each of these sleeps
 *
 * A group's vtime outlasts the sleep and the end of its tasks. What its tasks owe stays with the group, and its share
 * does not depend on how many of them happen to be runnable.
 *
 * On a machine of several CPUs a group's weight counts where its tasks are. Each CPU has a part of that weight: as much
 * as has run there of late, of all that has run in the group (fair_portion()). So a group does not have more of the
 * machine by being on many CPUs.
 *
 * The next to run is chosen over the whole tree. A task's lead says how far it is ahead of all others on its CPU, on
 * the clock of the root. It is the task's lead in its group, at the rate at which that group runs, and the group's own
 * lead (fair_lead_above()). The task with the least lead is next. The lead is measured when the task begins to wait,
 * and again for the last in the queue, since others may have gone meanwhile.
 *
 * No task waits without bound. While the CPU is busy the root's clock goes on by FAIR_WEIGHT_DEFAULT / the sum of
 * weights, whichever task runs. No task waits further ahead of that clock than it goes in FAIR_WAIT_NS and a round. No
 * task comes in further behind it than by a sleeper's credit, or by what it had waited for itself, up to
 * FAIR_LAG_SLICES. So after that time a task that waits is among the first. A slice is as much of FAIR_ROUND_NS as the
 * share that a task has of the CPU. So for shares above 1 / 2000 no turn is taken away by this.
 *
 * Times are in ns; vtimes in ns at WEIGHT_DEFAULT, and they wrap.
 */
#ifndef COSCHED_FAIR_H
#define COSCHED_FAIR_H

#include "window.h"

#define FAIR_WEIGHT_UNIT	16		/* a weight of 1 in the kernel: a group's weight is split over CPUs */
#define FAIR_WEIGHT_DEFAULT	(100 * FAIR_WEIGHT_UNIT)	/* nice 0, and cpu.weight by default */
#define FAIR_WEIGHT_SHIFT	6		/* effective weights carry this many fractional bits */
#define FAIR_WAIT_NS		1000000000ULL	/* in which the others catch up with the furthest ahead */
#define FAIR_ROUND_NS		1000000000ULL	/* in which all have had a slice */
#define FAIR_LEAST_SLICE_NS	500000ULL	/* a shorter slice, or rest of a slice, is not worth a switch */
#define FAIR_WAKE_MARGIN_NS	1000000ULL	/* a waking task preempts a task that is ahead by more than this */
#define FAIR_SYNC_NS		1000000ULL	/* a task that promises to sleep soon has so long for it */
#define FAIR_PRESENCE_NS	32000000ULL	/* in which a group's presence on a CPU is half forgotten */
#define FAIR_LAG_SLICES		8		/* so much of what a task has waited for outlasts its sleep */
#define FAIR_HOLD_NS		1000000000ULL	/* the longest period of a limit */
#define FAIR_MEAN_SHIFT		10		/* without the fraction, often noted means would forget faster */
#define FAIR_ROOM_WEIGHT	(4ULL * FAIR_WEIGHT_UNIT)	/* light beside tasks: room tells light loads apart */
#define FAIR_ROOM_SHIFT		20
#define FAIR_FEW		8		/* tasks on a CPU */
#define FAIR_MANY		(1U << 20)	/* more count as so many */
#define FAIR_LEAD_MAX		(1ULL << 36)	/* a lead beyond is as good as this: 69 s */
#define FAIR_FRONT		(FAIR_LEAD_MAX / 4)	/* of tasks that go ahead of boosts, leads beyond are alike */
#define FAIR_SUM_MAX		(1ULL << 27)	/* so that a product of both fits into 64 bits */

/* The runnable tasks and groups of one group, on one CPU. It starts as zeroes. */
struct cosched_order {
	u64 weight;		/* the sum of theirs */
	u64 weighted_vtime;	/* the sum of weight * vtime; wraps */
	u64 clock;		/* their mean vtime by weight; of none, what it was last */
	u64 ahead;		/* the sum of weight * lead of all places ahead of the clock, as noted there */
};

/* A task or a group among those of its group, on one CPU. It starts as zeroes. */
struct cosched_place {
	u64 vtime;
	u64 weight;		/* with which it counts in the order; 0: it is not runnable */
	s64 lag;		/* how far it was behind the clock when it left the order */
	u64 ahead;		/* its weight * lead when it last ran or came; 0: it was not ahead of the clock */
};

/*
 * How much has run in a group on one CPU of late; of the root: how much room there was on the CPU. It starts as zeroes.
 */
struct cosched_presence {
	u64 mean;		/* of the sum of its weights, or of fair_room() of that, in 1 / 2^FAIR_MEAN_SHIFT */
	u64 at_ns;		/* up to when; later than now: fair_hold_presence() */
};

static inline s64 fair_clamp(s64 value, s64 least, s64 most)
{
	return value < least ? least : value > most ? most : value;
}

/* @a * @b / @c, rounded towards zero, @b and @c being sums of weights; 0 for a @c of 0. */
static inline s64 fair_scale(s64 a, u64 b, u64 c)
{
	u64 magnitude = a < 0 ? -(u64)a : (u64)a;

	if (magnitude > FAIR_LEAD_MAX)
		magnitude = FAIR_LEAD_MAX;
	if (b > FAIR_SUM_MAX)
		b = FAIR_SUM_MAX;
	magnitude = c ? magnitude * b / c : 0;
	if (magnitude > FAIR_LEAD_MAX)
		magnitude = FAIR_LEAD_MAX;
	return a < 0 ? -(s64)magnitude : (s64)magnitude;
}

static inline void fair_set_clock(struct cosched_order *order)
{
	s64 off = order->weighted_vtime - order->weight * order->clock;

	/* Unsigned: BPF has no signed division. */
	if (!order->weight)
		return;
	if (off >= 0)
		order->clock += (u64)off / order->weight;
	else
		order->clock -= -(u64)off / order->weight;
}

/* How far @place is ahead of the clock of its order; less than 0: behind. */
static inline s64 fair_lead(const struct cosched_order *order, const struct cosched_place *place)
{
	return fair_clamp(place->vtime - order->clock, -(s64)FAIR_LEAD_MAX, FAIR_LEAD_MAX);
}

/* Notes how far @place is ahead by now. */
static inline void fair_note_ahead(struct cosched_order *order, struct cosched_place *place)
{
	s64 lead = fair_lead(order, place);

	order->ahead -= place->ahead;
	place->ahead = lead > 0 ? place->weight * lead : 0;
	order->ahead += place->ahead;
}

/* @place is runnable from now on, where it stands. */
static inline void fair_enter(struct cosched_order *order, struct cosched_place *place, u32 weight)
{
	if (!order->weight)
		order->clock = place->vtime;
	place->weight = weight ? weight : 1;
	place->ahead = 0;	/* what was noted may be of an order that is gone */
	order->weight += place->weight;
	order->weighted_vtime += place->weight * place->vtime;
	fair_set_clock(order);
	fair_note_ahead(order, place);
}

/* @place is not runnable any more, and keeps its vtime. */
static inline void fair_leave(struct cosched_order *order, struct cosched_place *place)
{
	order->weight -= place->weight;
	order->weighted_vtime -= place->weight * place->vtime;
	place->weight = 0;
	if (!order->weight)
		order->weighted_vtime = 0;
	fair_set_clock(order);
	place->lag = -fair_lead(order, place);
	fair_note_ahead(order, place);
}

/* @place goes to @vtime. */
static inline void fair_move(struct cosched_order *order, struct cosched_place *place, u64 vtime)
{
	order->weighted_vtime += place->weight * (vtime - place->vtime);
	place->vtime = vtime;
	fair_set_clock(order);
	fair_note_ahead(order, place);
}

/*
 * @place, which is in the order, counts with @weight from now on. Its lead in CPU time stays, and with that the leads
 * of all others.
 */
static inline void fair_reweigh(struct cosched_order *order, struct cosched_place *place, u32 weight)
{
	s64 lead = fair_scale(fair_lead(order, place), place->weight, weight ? weight : 1);

	order->weighted_vtime -= place->weight * place->vtime;
	order->weight -= place->weight;
	place->weight = weight ? weight : 1;
	place->vtime = order->clock + lead;
	order->weighted_vtime += place->weight * place->vtime;
	order->weight += place->weight;
	fair_set_clock(order);
	fair_note_ahead(order, place);
}

/* How long @ns of CPU time are on the clock of a task or group of @weight. */
static inline u64 fair_vtime(u64 ns, u64 weight)
{
	return ns * FAIR_WEIGHT_DEFAULT / (weight ? weight : 1);
}

/* Something of @place has run for @ran_ns. */
static inline void fair_charge(struct cosched_order *order, struct cosched_place *place, u64 ran_ns)
{
	fair_move(order, place, place->vtime + fair_vtime(ran_ns, place->weight));
}

/*
 * What @lead in the @order of a group is on the clock above that. The group runs for as long as it takes the order to
 * make up for the lead. Meanwhile the group's own vtime goes on by this.
 */
static inline s64 fair_lead_above(s64 lead, const struct cosched_order *order, u64 group_weight)
{
	return fair_scale(lead, order->weight, group_weight);
}

/*
 * How far ahead of the clock of @order a place of @weight may be: what the others catch up with in FAIR_WAIT_NS, and a
 * slice.
 */
static inline s64 fair_most_lead(const struct cosched_order *order, u32 weight, u64 slice_ns)
{
	return fair_clamp(fair_vtime(FAIR_WAIT_NS, order->weight + weight) + fair_vtime(slice_ns, weight), 0,
			  FAIR_LEAD_MAX);
}

/*
 * Where in @order a task or group of @weight is runnable again, with this @lead, and with this @lag when it left. It
 * may be behind the clock by @credit_ns of its CPU time. More credit, saved up in its sleep, could hold the CPU. Boosts
 * may have brought tasks ahead of the clock, and that goes back again when these leave. So what these tasks add to the
 * clock does not count here. Otherwise a task would lose its credit by waking while one of them is there. What it
 * waited for before it slept is still due. Otherwise a task that waits for several slices of the others, and then runs
 * for a moment at a time, would lose most of it. Either goes up to FAIR_LAG_SLICES, or less where many come at once and
 * have less credit. And it may be ahead by no more than fair_most_lead(). The rest of a debt is forgiven.
 */
static inline u64 fair_place(const struct cosched_order *order, s64 lead, s64 lag, u32 weight, u64 credit_ns,
			     u64 slice_ns)
{
	u64 lasts_ns = FAIR_LAG_SLICES * (credit_ns < slice_ns ? credit_ns : slice_ns);
	s64 lasts = fair_clamp(fair_vtime(lasts_ns, weight), 0, FAIR_LEAD_MAX);
	s64 ahead = fair_clamp(order->weight ? order->ahead / order->weight : 0, 0, lasts);
	s64 least = -fair_clamp(fair_vtime(credit_ns, weight) + ahead, fair_clamp(lag, 0, lasts), FAIR_LEAD_MAX);

	return order->clock + fair_clamp(lead, least, fair_most_lead(order, weight, slice_ns));
}

/* Brings @place, which is runnable, back to where fair_place() would let it begin; if @forgives, to the clock. */
static inline void fair_bound(struct cosched_order *order, struct cosched_place *place, int forgives)
{
	s64 lead = place->vtime - order->clock, most;

	if (lead <= 0)
		return;
	most = forgives ? 0 : fair_most_lead(order, place->weight, FAIR_LEAST_SLICE_NS);
	if (lead > most)
		fair_move(order, place, order->clock + most);
}

/* Leaves @place, which is in the order, no more credit than @credit_ns. */
static inline void fair_bound_credit(struct cosched_order *order, struct cosched_place *place, u64 credit_ns)
{
	s64 behind = order->clock - place->vtime, most;

	if (behind <= 0)
		return;
	most = fair_clamp(fair_vtime(credit_ns, place->weight), 0, FAIR_LEAD_MAX);
	if (behind > most)
		fair_move(order, place, order->clock - most);
}

/* The mean of @presence as of @now_ns, if the sum has been @weight since the last note. */
static inline u64 fair_mean(const struct cosched_presence *presence, u64 weight, u64 now_ns)
{
	u64 mean = presence->mean, passed_ns = now_ns > presence->at_ns ? now_ns - presence->at_ns : 0, off;

	weight <<= FAIR_MEAN_SHIFT;
	off = mean > weight ? mean - weight : weight - mean;
	off = passed_ns / FAIR_PRESENCE_NS < 32 ? off >> (passed_ns / FAIR_PRESENCE_NS) : 0;
	off = off * FAIR_PRESENCE_NS / (FAIR_PRESENCE_NS + passed_ns % FAIR_PRESENCE_NS);
	return mean > weight ? weight + off : weight - off;
}

/* The same without the fraction. */
static inline u64 fair_presence(const struct cosched_presence *presence, u64 weight, u64 now_ns)
{
	return fair_mean(presence, weight, now_ns) >> FAIR_MEAN_SHIFT;
}

/* Brings @presence up to @now_ns. To be called before the sum of weights changes, with what it was until then. */
static inline void fair_note_presence(struct cosched_presence *presence, u64 weight, u64 now_ns)
{
	presence->mean = fair_mean(presence, weight, now_ns);
	presence->at_ns = now_ns;
}

/*
 * A limit keeps the group from running from @now_ns on, up to when its presence has been noted. The presence stays as
 * it is meanwhile, and what had to leave last, of @weight, counts as if it ran. Otherwise the group would count for
 * more than its weight when it runs on all of its CPUs again. And it would count for next to nothing where it is kept
 * from running as soon as it comes.
 */
static inline void fair_hold_presence(struct cosched_presence *presence, u64 weight, u64 now_ns)
{
	if (presence->mean < weight << FAIR_MEAN_SHIFT)
		presence->mean = weight << FAIR_MEAN_SHIFT;
	presence->at_ns = now_ns + FAIR_HOLD_NS;
}

/*
 * The share of a CPU that a task of FAIR_ROOM_WEIGHT would have beside others whose weights sum up to @weight, in
 * 1 / 2^FAIR_ROOM_SHIFT. The mean of this over time says how much of the CPU there is to be had. The mean of the
 * weights does not: a heavy task that wakes often and runs for little takes little from the others.
 */
static inline u64 fair_room(u64 weight)
{
	return (FAIR_ROOM_WEIGHT << FAIR_ROOM_SHIFT) / (weight + FAIR_ROOM_WEIGHT);
}

/* The weight that leaves so much @room if it runs all the time: the load of a CPU (balance.h). */
static inline u64 fair_load(u64 room)
{
	return (FAIR_ROOM_WEIGHT << FAIR_ROOM_SHIFT) / (room ? room : 1) - FAIR_ROOM_WEIGHT;
}

/*
 * The part of its @weight with which a group counts on a CPU. The weights in the group sum up to @here on that CPU now,
 * to @mean of late, and to @all on all CPUs. A group that has just woken there is not in @all yet.
 */
static inline u64 fair_portion(u64 weight, u64 here, u64 mean, u64 all)
{
	u64 most = here > mean ? here : mean;

	all = all > mean ? all - mean + most : most;
	weight = all ? weight * most / all : weight;
	return weight ? weight : 1;
}

/* Is @portion so far from what it @was that the place in the order is to be changed? */
static inline int fair_portion_differs(u64 was, u64 portion)
{
	return (was > portion ? was - portion : portion - was) > was / 64;
}

/* What a task or group of @effective weight is to have of @ns of a CPU's time, if the weights there sum up to @sum. */
static inline u64 fair_share(u64 ns, u64 effective, u64 sum)
{
	u64 all = sum << FAIR_WEIGHT_SHIFT;

	return all && effective < all ? (ns >> FAIR_WEIGHT_SHIFT) * effective / (sum ? sum : 1) : ns;
}

/* How long a task of @effective weight runs for at a time. */
static inline u64 fair_slice(u64 slice_ns, u64 effective, u64 sum)
{
	u64 share_ns = fair_share(FAIR_ROUND_NS, effective, sum);

	if (share_ns < FAIR_LEAST_SLICE_NS)
		share_ns = FAIR_LEAST_SLICE_NS;
	return share_ns < slice_ns ? share_ns : slice_ns;
}

/*
 * How much of its CPU time a task may be behind the order as it comes, when @others have come and not run yet. That is
 * a slice. If many come at once, each has less, by the square of their number. So all of them together have no more
 * than FAIR_FEW have, and as much again. Otherwise the first of a thousand would wait until the last had used its
 * credit. A task that @awaited a message was not away by its own choice. Where the gate lets it make up for that, the
 * order must not forget it. Otherwise the order would hold the making up against it.
 */
static inline u64 fair_credit(const struct cosched_policy *policy, u32 others, int awaited)
{
	u64 slice_ns = policy->slice_ns, all = others < FAIR_MANY ? others + 1 : FAIR_MANY;

	if (all > FAIR_FEW)
		slice_ns = cosched_mul_u64_u32(slice_ns, FAIR_FEW * FAIR_FEW) / (all * all);
	if (awaited && policy->gate == COSCHED_GATE_AUTO)
		return cosched_mul_u64_u32(slice_ns, COSCHED_WINDOW_CREDIT);
	return slice_ns;
}

/* The furthest ahead of the root's clock that a task waits on a CPU whose weights sum up to @sum. */
static inline s64 fair_furthest(u64 sum)
{
	return fair_vtime(FAIR_WAIT_NS + FAIR_ROUND_NS, sum);
}

/*
 * @lead on the root's clock as CPU time: among @nr that are equal, it is what one of them has run more than the mean.
 * It is the same whatever nice level these have.
 */
static inline s64 fair_lead_ns(s64 lead, u64 sum, u32 nr)
{
	return fair_scale(lead, sum, (u64)FAIR_WEIGHT_DEFAULT * (nr ? nr : 1));
}

/* Does a task that wakes run instead of the running task, which is @ahead of it on the root's clock? */
static inline int fair_preempts(s64 ahead, u64 sum, u32 nr)
{
	return fair_lead_ns(ahead, sum, nr) > (s64)FAIR_WAKE_MARGIN_NS;
}

/*
 * Has a waking task with this @lead on the root's clock had no more than its share? Then it runs for a moment even
 * ahead of tasks that have had less. Boosts have had the time of those tasks. A task that mostly sleeps need not wait
 * until that is made up for.
 */
static inline int fair_is_due(s64 lead)
{
	return lead <= 0;
}

/*
 * Where in the queue a task that goes ahead of boosts stands, with this @lead on the root's clock. It stands before all
 * others. Among such tasks the fair order holds.
 */
static inline s64 fair_front(s64 lead)
{
	return fair_clamp(lead, -(s64)FAIR_FRONT, FAIR_FRONT) - 3 * (s64)FAIR_FRONT;
}

/* Does the task that stands at @place go ahead of boosts? */
static inline int fair_is_front(s64 place)
{
	return place <= -2 * (s64)FAIR_FRONT;
}

/*
 * Has the running task, which has run for @ran_ns at a stretch, had the time to sleep, as it promised the task that it
 * woke? Pipes and sockets promise it at every message. If each message took the CPU from its sender, there would be a
 * switch for each message.
 */
static inline int fair_has_had_time(u64 ran_ns)
{
	return ran_ns >= FAIR_SYNC_NS;
}

/* Is enough left of a slice, of which @used_ns are used, to be worth a switch, if it was cut short at all? */
static inline int fair_has_rest(u64 slice_ns, u64 used_ns)
{
	return used_ns && used_ns + FAIR_LEAST_SLICE_NS <= slice_ns;
}

#endif
