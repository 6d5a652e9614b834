/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the gate on one row (a policy and a demand) inside the kernel, by test_run. The differential
 * test feeds it random rows and holds every answer against the native build of the same file.
 *
 * A return value has 32 bits, which is enough for the reason and not for the slice: the slice goes
 * back in the row, which test_run copies out again.
 */
#include <scx/common.bpf.h>
#include "../policies/gate.h"

char _license[] SEC("license") = "GPL";

struct policy_row {
	struct cosched_policy policy;
	struct cosched_demand demand;
	u64 slice_ns;			/* written here: for how long the boost would last */
};

SEC("syscall")
int decide_row(struct policy_row *row)
{
	struct cosched_policy policy = row->policy;
	struct cosched_demand demand = row->demand;

	row->slice_ns = cosched_gate_slice(&policy, &demand);
	return cosched_gate_decide(&policy, &demand);
}
