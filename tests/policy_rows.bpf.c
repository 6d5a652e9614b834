/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the rules on one row (a policy, a demand, what is known of a task; or what comes over the wire) inside the
 * kernel, by test_run. The differential tests feed it random rows and hold every answer against the native build of the
 * same files.
 *
 * The answers go back in the row, which test_run copies out again.
 */
#include <scx/common.bpf.h>
#include "../policies/account.h"
#include "../policies/balance.h"
#include "../policies/boost_choice.h"
#include "../policies/epoch.h"
#include "../policies/gang.h"
#include "../policies/gate.h"
#include "../policies/limit.h"
#include "../policies/prefetch.h"
#include "../policies/surplus.h"
#include "../policies/wait.h"
#include "../policies/window.h"
#include "../policies/wire.h"

char _license[] SEC("license") = "GPL";

struct policy_answers {
	u64 reason;
	u64 slice_ns;
	u64 begin_ns;			/* for how long a wait would spin now... */
	u64 spin_ns;			/* ...and if it was not to be skipped, when it has learned and heard */
	u64 goes_on;
	u64 interval_ns;		/* 3W + 2o */
	u64 parks;
	u64 epoch_next;
	u64 epoch_adopted;
	u64 rank;
	u64 prefers;
	u64 row_at;
	u64 rest_ns;
	u64 row_of;
	u64 wakes_parts;
	u64 load_differs;
	u64 move_pays;
	u64 has_rested;
};

struct policy_row {
	struct cosched_policy policy;
	struct cosched_demand demand;
	struct cosched_candidate candidate, best;
	struct cosched_window window;		/* before and after a run */
	struct cosched_wait_history history;	/* before and after a wait and a message */
	u32 heard_us;			/* with that message */
	u64 message_came;		/* at the end of that wait; or: the other CPU is far */
	u64 time_ns;			/* a wait took as long, the last arrival was as long ago, or it is as late */
	u64 number;			/* of a node, of a job, of runnable tasks */
	u64 load_here, load_there;	/* of two CPUs */
	u64 share_here, share_there;	/* of a task, on those */
	struct policy_answers answers;
};

/* Not on the stack, which it does not fit on together with what the rules put there. */
static struct policy_row row;

SEC("syscall")
int decide_row(struct policy_row *context)
{
	const struct cosched_policy *policy = &row.policy;
	const struct cosched_demand *demand = &row.demand;
	struct policy_answers *answers = &row.answers;
	u32 choice;

	row = *context;
	choice = policy->choice;

	answers->reason = cosched_gate_decide(policy, demand);
	answers->slice_ns = cosched_gate_slice(policy, demand);
	answers->begin_ns = wait_begin(policy, &row.history);
	wait_end(policy, &row.history, row.message_came != 0);
	cosched_spin_learn(policy, &row.history, row.time_ns);
	spin_adaptive_hear(&row.history, row.heard_us);
	answers->parks = cosched_wait_parks(policy);
	answers->spin_ns = cosched_spin_ns(policy, &row.history);
	answers->goes_on = cosched_spin_goes_on(policy, row.time_ns);
	answers->interval_ns = spin_conditional_interval_ns(policy);
	cosched_window_add(&row.window, policy, demand->now_ns, demand->cpu_ns, demand->fair_ns);
	answers->epoch_next = cosched_epoch_next(demand->node_epoch, row.number);
	answers->epoch_adopted = cosched_epoch_adopt(demand->node_epoch, demand->message_epoch);
	answers->rank = cosched_choice_rank(choice, &row.candidate);
	answers->prefers = cosched_choice_prefers(choice, &row.candidate, &row.best);
	answers->row_at = gang_row_at(policy, row.time_ns);
	answers->rest_ns = gang_rest_ns(policy, row.time_ns);
	answers->row_of = gang_row_of(policy, row.number);
	answers->wakes_parts = cosched_wakes_parts(row.share_here, row.share_there);
	answers->load_differs = cosched_load_differs(row.load_here, row.load_there, row.number, row.share_here & 63,
						      row.message_came != 0);
	answers->move_pays = cosched_move_pays(row.share_here, row.share_there);
	answers->has_rested = cosched_has_rested(row.time_ns);

	context->history = row.history;
	context->window = row.window;
	context->answers = row.answers;
	return 0;
}

/* The fair order and its accounts. */
struct fair_row {
	struct cosched_policy policy;
	struct cosched_demand demand;
	struct cosched_order order;
	struct cosched_place waits, comes;	/* one that is in the order, and one that is not */
	struct cosched_presence presence;
	struct cosched_share_clock clock;
	struct cosched_loan loan;
	struct cosched_loan urgent;
	s64 lead;
	u64 ns, effective, sum, now_ns;
	u32 weight, nr;
	u64 flag;
	u64 answers[17];
};

static struct fair_row fair;

/* Global functions: verified for themselves, or the paths through all rules were too many. */
__noinline int weigh_group(void)
{
	fair.answers[9] = fair_portion(fair.weight, fair.sum, fair.presence.mean, fair.effective);
	fair.answers[10] = fair_portion_differs(fair.sum, fair.weight);
	fair.answers[11] = fair_room(fair.sum);
	fair.answers[12] = fair_load(fair.presence.mean);
	fair_note_presence(&fair.presence, fair.sum, fair.now_ns);
	return 0;
}

__noinline int reweigh(void)
{
	fair_reweigh(&fair.order, &fair.comes, fair.nr);
	return 0;
}

SEC("syscall")
int fair_row(struct fair_row *context)
{
	u64 *answers = fair.answers;

	fair = *context;
	answers[0] = fair_lead(&fair.order, &fair.comes);
	answers[1] = fair_lead_above(fair.lead, &fair.order, fair.effective);
	answers[2] = fair_lead_ns(fair.lead, fair.sum, fair.nr);
	answers[3] = fair_slice(fair.ns, fair.effective, fair.sum);
	answers[4] = fair_credit(&fair.policy, fair.nr, fair.flag != 0);
	answers[5] = fair_has_rest(fair.ns, fair.now_ns);
	answers[6] = fair_preempts(fair.lead, fair.sum, fair.nr);
	answers[7] = account_share(fair.ns, fair.effective);
	answers[8] = account_awaited(fair.ns, fair.effective, fair.sum, fair.sum + fair.weight);
	answers[13] = fair_has_had_time(fair.ns);
	answers[14] = fair_is_due(fair.lead);
	answers[15] = fair_front((u64)fair.lead << 2);
	answers[16] = fair_is_front((u64)fair.lead << 2);
	weigh_group();
	fair.comes.vtime = fair_place(&fair.order, fair.lead, fair.comes.lag, fair.weight, fair.ns, fair.now_ns);
	fair_enter(&fair.order, &fair.comes, fair.weight);
	fair_charge(&fair.order, &fair.comes, fair.ns);
	reweigh();
	fair_bound(&fair.order, &fair.comes, fair.flag != 0);
	fair_bound_credit(&fair.order, &fair.waits, fair.now_ns);
	fair_leave(&fair.order, &fair.waits);
	account_advance(&fair.clock, fair.sum, fair.now_ns);
	account_loan(&fair.loan, &fair.policy, fair.flag != 0, fair.ns);
	account_urgent(&fair.urgent, fair.flag != 0, fair.ns);
	account_describe(&fair.demand, fair.lead, fair.effective, fair.sum, fair.nr, fair.flag != 0);
	*context = fair;
	return 0;
}

/* What a group has left of its cpu.max. */
struct limit_row {
	struct cosched_limit limit;
	struct cosched_limit fresh;		/* to be set anew */
	struct cosched_portion takes, returns;	/* of two CPUs */
	u64 now_ns, ns;
	u64 answers[5];
};

static struct limit_row limited;

SEC("syscall")
int limit_row(struct limit_row *context)
{
	u64 *answers = limited.answers;

	limited = *context;
	answers[0] = limit_until(&limited.limit, &limited.takes, limited.now_ns);
	answers[1] = limit_waited(limited.ns);
	limit_return(&limited.limit, &limited.returns);
	answers[4] = limit_part(&limited.limit, limited.ns, limited.limit.burst_ns);
	answers[2] = limit_take(&limited.limit, &limited.takes, answers[4], limited.now_ns);
	answers[3] = limit_slice(limited.ns, limited.takes.left_ns);
	limit_set(&limited.fresh, limited.ns, limited.limit.period_ns, limited.limit.burst_ns, limited.now_ns);
	*context = limited;
	return 0;
}

/* What goes over the wire, and what is made of what comes. */
struct wire_answers {
	struct cosched_wire_message came;
	struct cosched_prefetch heard;
	u64 length;			/* of what was written */
	u64 surplus_length;
	u64 ours;			/* the option */
	u64 credible;
	u64 epoch_next;
	u64 time_ns;
	u64 heard_ours;			/* the datagram that prefetches */
	u64 heard_credible;
	u8 option[20];			/* zeroes behind what was written */
	u8 surplus[20];
	u8 datagram[COSCHED_PREFETCH_LENGTH];
	u8 zero[4];
};

struct wire_row {
	struct cosched_wire_flow flow;
	u32 pad;			/* in front of a datagram's options */
	struct cosched_wire_key key;
	struct cosched_wire_message message;
	struct cosched_prefetch prefetch;
	u64 epoch;			/* that came, or is the node's own */
	u64 tai_ns;
	u64 newest_ns;			/* the latest time that was believed of */
	u32 source[4];
	u32 node;
	u32 length;			/* of the datagram that came */
	u8 option[20];			/* that came, of TCP or UDP */
	u8 datagram[COSCHED_PREFETCH_LENGTH];
	struct wire_answers answers;
};

static struct wire_row wire;

SEC("syscall")
int wire_row(struct wire_row *context)
{
	struct wire_answers *answers = &wire.answers;

	wire = *context;
	__builtin_memset(answers, 0, sizeof(*answers));

	answers->length = cosched_wire_encode(answers->option, &wire.message, &wire.flow, &wire.key);
	answers->surplus_length = cosched_wire_surplus_encode(answers->surplus, wire.pad, &wire.message, &wire.flow,
							      &wire.key);
	answers->ours = cosched_wire_decode(&answers->came, wire.option, &wire.flow, &wire.key);
	answers->credible = cosched_wire_credible(wire.epoch, wire.tai_ns);
	answers->epoch_next = cosched_wire_epoch_next(wire.epoch, wire.node, wire.tai_ns);
	answers->time_ns = cosched_wire_time(wire.epoch, wire.tai_ns);
	cosched_prefetch_encode(answers->datagram, &wire.prefetch, &wire.key);
	answers->heard_ours = cosched_prefetch_decode(&answers->heard, wire.datagram, wire.length, &wire.key);
	answers->heard_credible = cosched_prefetch_credible(&wire.prefetch, wire.source, wire.newest_ns, wire.tai_ns);

	context->answers = wire.answers;
	return 0;
}
