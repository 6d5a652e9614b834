#!/bin/bash
# Under beat a job with a peer on a node that does not draw has demand instead, and makes what it makes under dcs-sb.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

# rate POLICY: how many round trips a second a pair makes whose other end is on a node that does not draw: CPU 1, where
# it has every second turn of 20 ms
rate() {
	scx_cosched policy set "$1"
	in_group pair "$tests/messages" 5s 60000 far4/spin >"$tmp/rate" &
	pair=$!
	eventually 20 pgrep -x far4/spin:1 >/dev/null
	chrt --rr --pid 1 "$(pgrep -x far4/spin:1)"
	wait "$pair" || fail "the messages failed: $(cat "$tmp/rate")"
	read -r _ trips _ <"$tmp/rate"
	echo "$1: $trips round trips in 5 s"
}

join
start --policy beat --peer 10.77.1.0/24
echo 20 >/proc/sys/kernel/sched_rr_timeslice_ms
in_group hogs taskset -c 0 sh -c 'while :; do :; done' &
in_group hogs chrt --rr 1 taskset -c 1 sh -c 'while :; do :; done' &
best=0 worst=1000000
for _ in 1 2; do
	rate dcs-sb
	(( trips <= best )) || best=$trips
	rate beat
	(( trips >= worst )) || worst=$trips
done
(( worst * 10 >= best * 8 )) || fail "a job with a node that does not draw makes less than by demand"
unwarned
end_groups hogs
stop
