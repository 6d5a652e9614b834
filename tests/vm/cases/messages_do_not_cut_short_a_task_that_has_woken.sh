#!/bin/bash
# A task that sleeps most of the time takes the CPU from the receiver of a job when it wakes, however little the busy
# tasks have had beside that job. A moment later the job's next message comes, or a kernel thread wakes. The receiver
# does not have the CPU back, after the kernel thread neither, until the task sleeps again, or has had time to. Else the
# task would wait for as long as the boost lasts, 20 ms.
#
# So it is where the message has come just before, and the receiver is to run next: the task has its moment first. And
# so it is where the job has won the turn. Under "local" it is the receiver that has a moment, which the next tick ends.
. "$(dirname -- "$0")/../case.sh"

# measure WAIT POLICY: a task on each CPU wakes each 10.02 ms, at all times within a tick. It changes its nice level and
# writes to a terminal, for which a kernel thread wakes. Beside them is a pair that waits so, and two busy tasks on each
# CPU, in two starts. Sets late to when the latest task has written, at p99, in us, missed to how often one of them had
# not after 1 ms, of 1,600 times, and trips to how many round trips the pair makes
measure() {
	local cpu before wakers
	scx_cosched policy set "$2"
	late=0 missed=0 trips=0
	for _ in 1 2; do
		(in_group pair "$LOADS" pair "$1" "$tmp/trips") &
		for cpu in 0 1; do
			hog in_group one taskset -c $cpu
			hog in_group two taskset -c $cpu
		done
		sleep 2.5
		before=$(od -An -td8 "$tmp/trips")
		wakers=()
		for cpu in 0 1; do
			in_group wake taskset -c $cpu "$LOADS" write 10020 4 >"$tmp/late.$cpu" &
			wakers+=($!)
		done
		wait "${wakers[@]}"
		trips=$((trips + $(od -An -td8 "$tmp/trips") - before))
		late=$(awk -v most="$late" '{ if ($2 > most) most = $2 } END { print most }' "$tmp"/late.[01])
		missed=$((missed + $(awk '{ sum += $3 } END { print sum }' "$tmp"/late.[01])))
		end_groups pair one two wake
	done
	echo "$2, $1: late by $late us at p99, $missed times by more than 1 ms, $trips round trips"
	(( late < 1000 )) || fail "under $2, beside a pair that waits by $1, a task has written $late us late at p99"
	# Another task that has just woken may be in its moment, until the next tick.
	(( missed < 2 )) ||
		fail "under $2, beside a pair that waits by $1, a task has written more than 1 ms late $missed times"
}

# measure_behind: the same beside one busy task for a task that wakes just after a message has come, at p50
measure_behind() {
	hog in_group one taskset -c 0
	(in_group behind "$LOADS" behind 50 10 >"$tmp/behind")
	read -r late _ <"$tmp/behind"
	echo "just after a message: late by $late us at p50"
	end_groups one behind
}

start --policy dcs-sb
measure_behind
(( late < 1000 )) || fail "a task that wakes just after a message runs $late us late at p50"
measure spin dcs-sb
measure block dcs-sb
measure spin beat
scx_cosched policy set local
measure_behind
(( late < 6000 )) || fail "under local, a task that wakes just after another one runs $late us late at p50"
unwarned
stop
