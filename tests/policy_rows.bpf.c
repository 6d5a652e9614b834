/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Runs the gate on one row (a policy and a demand) inside the kernel, by test_run. The differential
 * test feeds it random rows and holds every answer against the native build of the same file.
 */
#include <scx/common.bpf.h>
#include "../policies/gate.h"

char _license[] SEC("license") = "GPL";

struct policy_row {
	struct cosched_policy policy;
	struct cosched_demand demand;
};

SEC("syscall")
int decide_row(struct policy_row *row)
{
	struct cosched_policy policy = row->policy;
	struct cosched_demand demand = row->demand;

	return cosched_gate_decide(&policy, &demand);
}
