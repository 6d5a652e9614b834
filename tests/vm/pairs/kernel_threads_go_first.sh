#!/bin/bash
# A kernel thread that another one has preempted goes on before any task of a user runs: messages wait for kernel threads.
#
# Soft RoCE does its work in some that wake each other, for a process that polls on a node's only CPU.
. "$(dirname -- "$0")/../rdma_pair.sh"

events=/sys/kernel/tracing/events/sched/sched_switch/enable
kernel_threads() { ps -o pid= --ppid 2; }

[[ -e $events ]] || mount -t tracefs none /sys/kernel/tracing
echo 16384 >/sys/kernel/tracing/buffer_size_kb
observe --gate always
kernel_threads >$tmp/threads
echo 1 >$events
command="ibv_rc_pingpong -d rxe0 -g 1 -s 64 -n 300"
both_nodes "$command" "$command $far"
echo 0 >$events
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
leave
