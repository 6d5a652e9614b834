#!/bin/bash
# Under spin-block a receiver that asks in vain leaves its CPU, and has its message nevertheless, however it asks. A
# wake-up that is lost would show: such a receiver looks again by itself, but here only a second later.
#
# The fair order has a round trip wait four times at most, since either side may lose its CPU between a message and the
# answer; each time for two turns of each of the 7 others on its CPU; and a turn is a slice of 1 ms and what is left of
# a tick of 4 ms: 4 * 7 * 2 * 5 = 280 ms. With COSCHED_SOAK=1 messages are passed a million times.
#
# Who polls is looked for at ticks, as in the preset. Looks that are 0.2 ms apart (--interval-us 200) came upon the same
# receive twice where the host had taken the CPU away in between, and a task was parked with a message in its hands: 4
# to 40 times in half a million hand-overs under emulation.
. "$(dirname -- "$0")/../case.sh"

longest=280
handed=0

# pass SECONDS KIND...: adds to handed how often a message was handed over
pass() {
	local before
	before=$(counter parks)
	"$tests/messages" "${1}s" $longest "${@:2}" >"$tmp/passed" || { cat "$tmp/passed"; return 1; }
	cat "$tmp/passed"
	handed=$((handed + $(awk '{ n += 2 * $2 } END { print n }' "$tmp/passed")))
	parks=$(($(counter parks) - before))
	echo "parked $parks times"
}

late() { fail "a message was late ($(counter rechecks) looked again)"; }

start --policy sb --spin-us 100 --slice-us 1000 --recheck-ms 1000
for cpu in 0 1; do hog taskset -c $cpu; done

# A pair whose turns happen to meet waits for no message long enough to be parked, and in virtual time they go on
# meeting. So each kind is passed until it has been parked, each time from other phases. One that yields leaves its CPU
# by itself: it runs just after the ticks, and none finds it there.
for kind in tcp4/yield tcp6/poll0 udp4/epoll0 udp6/select0 dgram/poll0 stream/recv0 tcp4/recv0; do
	for _ in {1..5}; do
		pass 3 $kind || late
		[[ $kind != */yield ]] && (( !parks )) || break
	done
	[[ $kind == */yield ]] || (( parks )) || fail "$kind: it was not parked, so this proves nothing"
done

handed=0 parks_before=$(counter parks)
while
	pass 20 tcp4/recv0 tcp6/poll0 udp4/epoll0 udp6/select0 stream/recv0 dgram/poll0 tcp4/yield || late
	(( ${COSCHED_SOAK:-0} && handed < 1000000 ))
do :; done
echo "$handed messages, $(($(counter parks) - parks_before)) parks, $(counter rechecks) rechecks"
stop
