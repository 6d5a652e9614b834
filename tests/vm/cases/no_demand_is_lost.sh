#!/bin/bash
# Under every gate, and however the receiver waits, a message gets its receiver to
# run: beside 4 hogs on each CPU no round trip takes 3.5 s. (In the fair order alone
# one takes up to 10 turns of 20 ms; but whoever was charged for a CPU that the host
# had taken away, too shortly to be noticed, waits until the others have caught up,
# 1.5 s at most, and so may the other side.) Most receivers are alone with the hogs,
# since what else happens on a CPU would hide a demand that was forgotten.
. "$(dirname -- "$0")/../case.sh"

# pass_all: every kind of receiver for a second
pass_all() {
	# shellcheck disable=SC2046
	"$tests/messages" 1s 3500 $(printf '%s then ' "${alone[@]}") tcp4/spin stream/spin udp6/block
}

alone=(tcp4/spin tcp6/block udp4/spin udp6/epoll stream/spin stream/block dgram/poll)
start
for cpu in 0 1; do
	for _ in 1 2 3 4; do hog taskset -c $cpu; done
done
while read -r policy; do
	# shellcheck disable=SC2086
	scx_cosched policy set $policy
	pass_all || fail "a message was late"
done <<-END
	dcs
	dcs --h-ms 20
	dcs --gate always
	dcs --gate rate --rate-exponent 4
END
stop
