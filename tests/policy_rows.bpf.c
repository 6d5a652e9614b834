/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the rules on one row (a policy, a demand, the history of a task's waits) inside the kernel, by test_run. The
 * differential test feeds it random rows and holds every answer against the native build of the same files.
 *
 * A return value has 32 bits, which is enough for the reason and not for the rest: that goes
 * back in the row, which test_run copies out again.
 */
#include <scx/common.bpf.h>
#include "../policies/gate.h"
#include "../policies/wait.h"

char _license[] SEC("license") = "GPL";

struct policy_row {
	struct cosched_policy policy;
	struct cosched_demand demand;
	struct cosched_wait_history history;	/* before a wait; afterwards written here */
	u64 message_came;		/* at the end of that wait */
	u64 spin_ns;			/* written here: for how long it would spin */
	u64 slice_ns;			/* written here: for how long the boost would last */
};

SEC("syscall")
int decide_row(struct policy_row *row)
{
	struct cosched_policy policy = row->policy;
	struct cosched_demand demand = row->demand;
	struct cosched_wait_history history = row->history;

	row->spin_ns = cosched_wait_begin(&policy, &history);
	cosched_wait_end(&policy, &history, row->message_came != 0);
	row->history = history;
	row->slice_ns = cosched_gate_slice(&policy, &demand);
	return cosched_gate_decide(&policy, &demand);
}
