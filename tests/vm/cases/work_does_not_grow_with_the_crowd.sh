#!/bin/bash
# What the scheduler does under the lock of a CPU takes as long with 10,000 tasks there as with 10, while one of them is
# denied boosts and one parked again and again. And it stays with all of them.
. "$(dirname -- "$0")/../case.sh"

sysctl -q kernel.bpf_stats_enabled=1
sysctl -q kernel.threads-max=30000 kernel.pid_max=65536 vm.max_map_count=262144

# cost CALLBACK: sets ns to the mean time of a call of it so far, and runs to the number of calls
run_time() { bpftool --json prog | jq -r '.[] | select(.name == "'"$1"'") | "\(.run_time_ns) \(.run_cnt)"'; }

# costs: sets the array costs to the mean time in ns of dispatch, enqueue and tick, in 5 s
costs() {
	local callback before=() after=() i ns runs ns_before runs_before
	for callback in dispatch enqueue tick; do before+=("$(run_time cosched_$callback)"); done
	sleep 5
	for callback in dispatch enqueue tick; do after+=("$(run_time cosched_$callback)"); done
	costs=()
	for i in 0 1 2; do
		read -r ns_before runs_before <<<"${before[i]}"
		read -r ns runs <<<"${after[i]}"
		costs+=($(((ns - ns_before) / (runs - runs_before))))
	done
}

start
# A slice ends at a tick of 4 ms, so a round of 10,000 tasks may take 40 s. One in which 10,000 come and end took 20 s.
talk 60000 tcp4/spin
compete
# Else what this shell asks would wait behind the crowd.
chrt --fifo --pid 1 $$ >/dev/null
for crowd in 10 100 1000 10000; do
	exec 8< <(taskset -c 0 "$LOADS" threads $crowd)
	crowd_pid=$!
	read -r _ <&8
	sleep 1
	denied_before=$(scx_cosched status --json | jq '.denied | add')
	parks_before=$(counter parks)
	costs
	echo "$crowd tasks: dispatch, enqueue and tick take ${costs[*]} ns;" \
		"$(($(scx_cosched status --json | jq '.denied | add') - denied_before)) denials," \
		"$(($(counter parks) - parks_before)) parked"
	[[ $crowd != 10 ]] || least=("${costs[@]}")
	for i in 0 1 2; do
		(( costs[i] * 2 <= least[i] * 3 )) || grown="with $crowd tasks a call takes ${costs[*]} ns, with 10 ${least[*]}"
	done
	kill $crowd_pid
	wait $crowd_pid 2>/dev/null || true
	exec 8<&-
done
[[ -z ${grown:-} ]] || fail "$grown"
runs
quiet
drop
stop
