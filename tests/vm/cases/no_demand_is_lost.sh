#!/bin/bash
# A message gets its receiver to run, beside 4 hogs on each CPU. Where the gate has no reason to refuse, as with a
# message every 33 ms, its receiver runs at once, though it has had its share; under every gate, and with as many
# messages as there can be, none is forgotten.
#
# The receivers ask again and again: one that sleeps comes first when it wakes up, whoever counts its messages. They are
# alone with the hogs, since what else happens on a CPU would hide a demand that was forgotten.
. "$(dirname -- "$0")/../case.sh"

# soon PRESET [FLAG]...: a round trip takes 25 ms at most. In virtual time it takes 0.2 to 0.4; and under local 67
# mostly and up to 147, since its receiver waits for its turn.
soon() {
	scx_cosched policy set "$@"
	# shellcheck disable=SC2046
	"$tests/messages" 16 25 $(printf '%s/33 then ' tcp4/poll0 udp6/epoll0 tcp6/select0) stream/spin/33 ||
		fail "a message did not run its receiver"
}

# surely LONGEST_MS PRESET [FLAG]...: none takes longer
surely() {
	scx_cosched policy set "${@:2}"
	"$tests/messages" 1s "$1" tcp4/spin tcp6/block "then" udp4/spin udp6/epoll "then" stream/spin dgram/poll ||
		fail "a message was late"
}

start
compete 4
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
