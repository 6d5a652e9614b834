#!/bin/bash
# Jobs come, wait for slots, run beside others and go, under demand and in the rows of a gang. All of them end, and
# nothing of them is left.
. "$(dirname -- "$0")/../case.sh"

out=$tmp/mix.json
scx_cosched bench mix --workload WL7 --nodes 2 --mpl 2 --jobs 5 --execution-s 0.2 --load 2 --repeats 1 \
	--schedulers dcs-sb,gang --out "$out" || fail "bench mix failed"
jq -c '.results[] | [.scheduler, .response_s.median, .wait_s.median, .utilization.median]' "$out"
is "$(jq -c '[.results[] | [.scheduler, .given_up]]' "$out")" '[["dcs-sb",0],["gang",0]]' "jobs that did not end:"
# A job without slots waits for some. With slots it begins, after it has come, and ends after that.
is "$(jq '[.results[].runs[].jobs[] | select(.began_s < .arrived_s or .done_s <= .began_s)] | length' "$out")" 0 \
	"jobs out of order:"
(( $(jq '[.results[].runs[].jobs[] | select(.began_s > .arrived_s + 0.05)] | length' "$out") > 0 )) ||
	fail "no job has waited for a slot"
[[ ! -e /sys/fs/cgroup/scx_cosched-bench ]] || fail "cgroups of jobs are left: $(ls /sys/fs/cgroup/scx_cosched-bench)"
