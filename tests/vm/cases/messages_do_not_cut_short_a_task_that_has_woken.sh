#!/bin/bash
# A task that sleeps most of the time takes the CPU from the receiver of a job when it wakes, however little the busy
# tasks have had beside that job. A moment later the job's next message comes, or a kernel thread wakes. The receiver
# does not have the CPU back, after the kernel thread neither, until the task sleeps again, or has had time to. Else the
# task would wait for as long as the boost lasts, 20 ms.
. "$(dirname -- "$0")/../case.sh"

# measure WAIT: a task on each CPU wakes each 10 ms and writes to a terminal, for which a kernel thread wakes. Beside
# them is a pair that waits so, and two busy tasks on each CPU, in two starts. Sets late to when the latest task has
# written, at p99, in us, and trips to how many round trips the pair makes. At p99 is the fourth of 400, since now and
# then two or three are late together
measure() {
	local cpu before wakers
	late=0 trips=0
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
			in_group wake taskset -c $cpu "$LOADS" write 10 4 >"$tmp/late.$cpu" &
			wakers+=($!)
		done
		wait "${wakers[@]}"
		trips=$((trips + $(od -An -td8 "$tmp/trips") - before))
		late=$(awk -v most="$late" '{ if ($2 > most) most = $2 } END { print most }' "$tmp"/late.[01])
		end_groups pair one two wake
	done
	echo "$1: late by $late us at p99, $trips round trips"
}

start --policy dcs-sb
for how in spin block; do
	measure $how
	(( late < 1000 )) ||
		fail "beside a pair that waits by $how, a task that wakes each 10 ms has written $late us late at p99"
done
unwarned
stop
