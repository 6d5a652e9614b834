#!/bin/bash
# While a task sleeps until a message comes, its fair share grows as if it were runnable (policies/account.h). So a pair
# of processes that sleep for each message, each beside four busy tasks, is due a fifth of what they and the busy tasks
# have. Otherwise F would be too high, and what a process waits for would count as a surplus. The jobs are in cgroups
# within one. So the weight at the top does not change when one of the pair sleeps. With turns of 5 ms tasks are often
# preempted while they spin before a sleep. The kernel then changes where they may run, and back.
. "$(dirname -- "$0")/../case.sh"

# figures: so far, in us of CPU time: what the pair was due, and what all jobs have had
figures() {
	scx_cosched status --json | jq -r '[.jobs[] | select(.job | startswith("/case.jobs/"))] |
		[(.[] | select(.job == "/case.jobs/pair") | .fair_share_seconds), (map(.cpu_seconds) | add)] |
		map(. * 1000000 | round) | @tsv'
}

mkdir -p /sys/fs/cgroup/case.jobs
for policy in "beat --quantum-ms 5" dcs-sb; do
	# shellcheck disable=SC2086 # a policy and its options
	start --policy $policy
	groups=()
	for cpu in 0 1; do
		for i in 1 2 3 4; do
			groups+=("case.jobs/busy$cpu$i")
			hog in_group "${groups[-1]}" taskset -c $cpu
		done
	done
	in_group case.jobs/pair loads pair block "$tmp/trips" &
	hogs+=($!)
	sleep 2
	read -r due_before had_before < <(figures)
	sleep 8
	read -r due had < <(figures)
	permille=$(( (due - due_before) * 1000 / (had - had_before) ))
	echo "$policy: the pair is due $permille permille of what all have"
	(( permille >= 195 && permille <= 205 )) || fail "$policy: the pair is due $permille permille of what all have, not 200"
	end_groups case.jobs/pair "${groups[@]}"
	stop
done
