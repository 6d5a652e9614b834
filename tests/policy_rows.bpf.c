/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the rules on one row (a policy, a demand, what is known of a task) inside the kernel, by test_run. The
 * differential test feeds it random rows and holds every answer against the native build of the same files.
 *
 * The answers go back in the row, which test_run copies out again.
 */
#include <scx/common.bpf.h>
#include "../policies/boost_choice.h"
#include "../policies/epoch.h"
#include "../policies/gang.h"
#include "../policies/gate.h"
#include "../policies/wait.h"
#include "../policies/window.h"

char _license[] SEC("license") = "GPL";

struct policy_answers {
	u64 reason;
	u64 slice_ns;
	u64 begin_ns;			/* for how long a wait would spin now... */
	u64 spin_ns;			/* ...and if it was not to be skipped, when it has learned and heard */
	u64 goes_on;
	u64 epoch_next;
	u64 epoch_adopted;
	u64 rank;
	u64 prefers;
	u64 row_at;
	u64 rest_ns;
	u64 row_of;
};

struct policy_row {
	struct cosched_policy policy;
	struct cosched_demand demand;
	struct cosched_candidate candidate, best;
	struct cosched_window window;		/* before and after a run */
	struct cosched_wait_history history;	/* before and after a wait and a message */
	u32 heard_us;			/* with that message */
	u64 message_came;		/* at the end of that wait */
	u64 time_ns;			/* a wait took as long, the last arrival was as long ago, or it is as late */
	u64 number;			/* of a node, of a job */
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
	answers->begin_ns = cosched_wait_begin(policy, &row.history);
	cosched_wait_end(policy, &row.history, row.message_came != 0);
	cosched_spin_learn(policy, &row.history, row.time_ns);
	spin_adaptive_hear(&row.history, row.heard_us);
	answers->spin_ns = cosched_spin_ns(policy, &row.history);
	answers->goes_on = cosched_spin_goes_on(policy, row.time_ns);
	cosched_window_add(&row.window, policy, demand->now_ns, demand->cpu_ns, demand->fair_ns);
	answers->epoch_next = cosched_epoch_next(demand->node_epoch, row.number);
	answers->epoch_adopted = cosched_epoch_adopt(demand->node_epoch, demand->message_epoch);
	answers->rank = cosched_choice_rank(choice, &row.candidate);
	answers->prefers = cosched_choice_prefers(choice, &row.candidate, &row.best);
	answers->row_at = gang_row_at(policy, row.time_ns);
	answers->rest_ns = gang_rest_ns(policy, row.time_ns);
	answers->row_of = gang_row_of(policy, row.number);

	context->history = row.history;
	context->window = row.window;
	context->answers = row.answers;
	return 0;
}
