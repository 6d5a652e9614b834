#!/bin/bash
# A message gets its receiver to run, beside 4 hogs on each CPU. Where the gate has no reason to refuse, its receiver
# runs at once; under every gate, and with as many messages as there can be, none is forgotten.
#
# It has no reason with a message every 133 ms: a receiver that is boosted keeps its CPU for a slice of 20 ms at most,
# and its fair share of that time is 27. With one every 33 ms it has had 98 of the first 160 ms, and the gate has it
# wait until the others have caught up.
#
# The receivers ask again and again: one that sleeps comes first when it wakes up, whoever counts its messages. They are
# alone with the hogs, since what else happens on a CPU would hide a demand that was forgotten.
. "$(dirname -- "$0")/../case.sh"

# answered KIND: each of 16 round trips takes 25 ms at most. In virtual time they take 0.2 to 0.4
answered() { "$tests/messages" 16 25 "$1/133"; }

# soon PRESET [FLAG]...
soon() {
	local kind
	scx_cosched policy set "$@"
	for kind in tcp4/poll0 udp6/epoll0 tcp6/select0 stream/spin; do
		answered "$kind" || fail "a message did not run its receiver"
	done
}

# surely LONGEST_MS PRESET [FLAG]...: none takes longer
surely() {
	scx_cosched policy set "${@:2}"
	"$tests/messages" 1s "$1" tcp4/spin tcp6/block "then" udp4/spin udp6/epoll "then" stream/spin dgram/poll ||
		fail "a message was late"
}

start
compete 4
scx_cosched policy set local
! answered tcp4/poll0 || fail "its receiver runs as soon without a demand, so this proves nothing"
soon dcs
soon dcs --gate always
# In the fair order either side waits for ten turns of 20 ms and what is left of a tick at most, and one that has run
# ahead by 60 ms until four others have done so too: 2 * (240 + 4 * 60) ms. Boosts without a gate may come before each
# of those turns, for eight slices at a time.
surely 960 dcs
surely 960 dcs --h-ms 20
surely 960 dcs --gate rate --rate-exponent 4
surely 1900 dcs --gate always
stop
