#!/bin/bash
# Every message is seen as one arrival for the task that receives it: on TCP, UDP
# and Unix sockets, IPv4 and IPv6, however the receiver waits. And one that has
# been read is no demand any more.
. "$(dirname -- "$0")/../case.sh"

trips=300
start --gate always
for transport in tcp4 tcp6 udp4 udp6 stream dgram; do
	for receiver in block poll epoll spin; do
		kind=$transport/$receiver
		before=$(counter arrivals)
		"$tests/messages" $trips 5000 $kind
		seen=$(($(counter arrivals) - before))
		echo "$kind: $seen arrivals for $((2 * trips)) messages"
		# Of the first ones the receiver may be unknown; some are not ours.
		(( seen >= 2 * trips - 20 && seen <= 2 * trips + 100 )) ||
			fail "$kind: $seen arrivals for $((2 * trips)) messages"
	done
done

# A receiver that spins on the socket that it has emptied has nothing to be boosted for.
hog taskset -c 0
before=$(granted)
taskset -c 0 python3 -IS -c '
import socket, time
here, there = socket.socketpair()
there.send(b"message")
here.recv(7)
here.setblocking(False)
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        here.recv(7)
    except BlockingIOError:
        pass'
boosts=$(($(granted) - before))
echo "boosts without a message: $boosts"
(( boosts < 20 )) || fail "a receiver was boosted that had no message"
stop
