#!/bin/bash
# Under beat a job with a node that does not draw wins no turns. Its messages are demands and have it hold a CPU
# instead, and it makes at least nine tenths of what it makes under dcs-sb (docs/beat.md). That node is CPU 1, whose
# tasks are real-time and none of the scheduler's. They have turns of 24 ms, which stand to those of 20 ms in all ways,
# one after the other.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"
turn_ms=/proc/sys/kernel/sched_rr_timeslice_ms arrived=/sys/class/net/wire0/statistics/rx_packets
trap 'echo 0 >$turn_ms; ip netns delete afar 2>/dev/null || true' EXIT    # 0: what the kernel has by itself

# rate POLICY: sets rate to how many messages a second arrive at the end on CPU 0, and won to how many turns are won
rate() {
	local before took
	scx_cosched policy set "$1" >/dev/null
	sleep 2    # two periods, and some more
	won=$(counter turns_won)
	before=$(<$arrived) took=$EPOCHREALTIME
	sleep 3
	rate=$(($(<$arrived) - before)) took=$((${EPOCHREALTIME/./} - ${took/./}))
	rate=$((1000 * rate / (took / 1000))) won=$(($(counter turns_won) - won))
	echo "$1: $rate messages/s, and $won turns won"
}

join
echo 24 >$turn_ms
taskset --cpu-list --pid 0 $$ >/dev/null    # what runs here would wait for seconds on CPU 1
start --policy beat --peer 10.77.1.0/24
talk 60000 far4/recv0
chrt --rr --pid 1 "$(pgrep -x far4/recv0:1)"
hog in_group hogs taskset -c 0
hog in_group afar chrt --rr 1 taskset -c 1
demand=0 turns=0
for _ in 1 2; do
	rate dcs-sb
	demand=$((demand + rate))
	rate beat
	turns=$((turns + rate))
	is "$won" 0 "turns that were won by a job with a node that does not draw:"
done
quiet
holds=$(counter holds)
echo "the job has taken a CPU and held it $holds times"
(( holds >= 20 )) || fail "the job holds no CPU"
(( turns * 10 >= demand * 9 )) || fail "a job with a node that does not draw makes less than under dcs-sb"
unwarned
end_groups hogs afar
stop
