#!/bin/bash
# What comes by RDMA from another node is an arrival on each, for programs that poll their queue and for those that wait
# for events, whether they find each other by TCP (ibv_rc_pingpong, ib_send_lat) or by RDMA's own connections (rping).
#
# Soft RoCE does its work in kernel threads that wake each other, for a process that polls on a node's only CPU. One
# that another has preempted goes on before any task of a user runs: messages wait for kernel threads.
. "$(dirname -- "$0")/../rdma_pair.sh"

# arrived: sets the array arrivals to what has arrived by RDMA on each node
arrived() {
	local node
	arrivals=()
	for node in "${nodes[@]}"; do
		arrivals+=("$(mpi-remote "$node" "scx_cosched status --json | jq .endpoint_arrivals.rdma")")
	done
}

# messages NUMBER SERVER CLIENT: so many arrive at least on each node while the commands run there and here. With
# traced=1 switches are traced meanwhile
messages() {
	local before seen
	arrived
	before=("${arrivals[@]}")
	echo "${traced:-0}" >$events
	both_nodes "$2" "$3"
	echo 0 >$events
	arrived
	seen=($((arrivals[0] - before[0])) $((arrivals[1] - before[1])))
	echo "$3: ${seen[*]} arrivals"
	(( seen[0] >= $1 && seen[1] >= $1 )) || die "of $1 messages ${seen[*]} have arrived"
}

events=/sys/kernel/tracing/events/sched/sched_switch/enable
kernel_threads() { ps -o pid= --ppid 2; }

[[ -e $events ]] || mount -t tracefs none /sys/kernel/tracing
echo 16384 >/sys/kernel/tracing/buffer_size_kb
observe --gate always
kernel_threads >$tmp/threads
command="ibv_rc_pingpong -d rxe0 -g 1 -s 64 -n 300"
traced=1 messages 290 "$command" "$command $far"
kernel_threads >>$tmp/threads
python3 -IS - $tmp/threads <<'EOF' || die "kernel threads wait for tasks of users"
import re, sys
threads = set(open(sys.argv[1]).read().split())
switch = re.compile(r" prev_pid=(\d+) prev_prio=\d+ prev_state=(\S+) ==> .* next_pid=(\d+) ")
preempted = set()
ran = overtaken = 0
for line in open("/sys/kernel/tracing/trace"):
    found = switch.search(line)
    if not found:
        continue
    before, state, after = found.groups()
    preempted.discard(after)
    if after in threads:
        ran += 1
        if before in threads and state.startswith("R"):
            preempted.add(before)
    elif after != "0":
        overtaken += len(preempted)
        preempted.clear()
print(f"kernel threads ran {ran} times, and were overtaken {overtaken} times")
# One whose slice is over has no claim.
sys.exit(ran < 300 or overtaken * 100 > ran)
EOF

messages 290 "$command -e" "$command $far -e"
command="ib_send_lat -d rxe0 -x 1 -n 300"
messages 280 "$command" "$command $far"
messages 190 "rping -s -a $far -C 100" "rping -c -a $far -C 100"
leave
