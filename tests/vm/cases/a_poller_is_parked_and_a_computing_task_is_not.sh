#!/bin/bash
# Under spin-block and spin-yield a task that does nothing but ask for a message leaves its CPU to those who have
# something to do, until the message comes; then it has it as soon as the fair order allows. A task that computes and
# asks now and then keeps its share. And nobody is taken off a CPU that nobody else wants.
. "$(dirname -- "$0")/../case.sh"

# ask KIND: one that asks on CPU 1, whose pid is in asker, and is sent a message each 0.7 s by one that sleeps on CPU 0
ask() {
	talk $longest "$1/700"
	asker=$(pgrep --parent "$talker" | head -n 1)
}

# shared KIND MOST: beside a hog such a task has at most MOST per cent for so many seconds, and its messages in time
shared() {
	ask "$1"
	sleep 1
	of $seconds "$asker" "${hogs[0]}"
	echo "$1: asks ${shares[0]}%, computes ${shares[1]}%"
	hang_up || { cat "$tmp/messages"; return 1; }
	cat "$tmp/messages"
	(( shares[0] <= $2 && shares[1] >= 95 - $2 ))
}

# alone KIND: it keeps a CPU that nobody else wants
alone() {
	ask "$1"
	sleep 1
	of 1 "$asker"
	hang_up || true
	echo "$1 alone: ${shares[0]}%"
	(( shares[0] > 90 ))
}

# computes: a task that computes, and has a look at a socket every 1 to 3 ms, has half of the CPU that it shares with a
# hog. Under emulation such a look takes 0.1 to 0.2 ms, so ticks may find it there twice in a row and take it for one
# that waits: now and then, for the recheck time. The default of 50 ms does not show in its share.
computes() {
	local before
	before=$(counter parks)
	taskset -c 1 python3 -IS -c '
import random, socket, time
here, there = socket.socketpair()
there.send(b"?")
here.recv(1)
here.setblocking(False)
while True:
    until = time.monotonic() + random.uniform(0.001, 0.003)
    while time.monotonic() < until:
        pass
    try:
        here.recv(1)
    except BlockingIOError:
        pass' &
	local pid=$!
	sleep 1
	of 4 $pid "${hogs[0]}"
	kill $pid
	echo "computes and asks ${shares[0]}%, computes ${shares[1]}%, parked $(($(counter parks) - before)) times"
	(( shares[0] >= 42 && shares[1] >= 42 ))
}

# has_many MOST: a task that receives from eight sockets, and has had a message in each of them at once, is parked when
# it has read them. It has MOST per cent of its CPU, and the next eight messages long before it would look again.
has_many() {
	local many asker took
	"$LOADS" many 8 6 >"$tmp/many" &
	many=$!
	eventually 20 test -s "$tmp/many" || fail "eight messages do not come"
	asker=$(cat "$tmp/many")
	sleep 1
	of 4 "$asker" "${hogs[0]}"
	wait $many || fail "messages for a task that is parked do not come"
	took=$(tail -n 1 "$tmp/many")
	echo "asks at eight sockets ${shares[0]}%, computes ${shares[1]}%; the next eight messages take $took us"
	(( shares[0] <= $1 && shares[1] >= 95 - $1 && took <= longest * 1000 ))
}

# A hog's slice of 20 ms, which ends at a tick of 4 ms, twice for either side.
longest=100
start --policy sb --recheck-ms 1000
for wait in spin-block spin-yield; do
	# A task that yields has its turn after each of the hog's slices of 20 ms, and is found out at a tick or two of
	# 4 ms: it had 33 to 36% in twenty windows of 16 s. In ten boots one that spins to block had 0 to 3%. As recv0,
	# which is outside of its calls half of the time and so is found out later, it had 1 to 9%.
	kinds=(udp4/poll0 tcp6/poll0)
	if [[ $wait == spin-block ]]; then seconds=4 most=10 kinds+=(stream/select0 tcp4/recv0); else seconds=16 most=45; fi
	declare -A later=([tcp4/recv0]=25)
	for kind in tcp4/recv0 udp4/poll0 stream/select0; do
		alone $kind || fail "$kind does not run though nobody else wants to"
	done
	hog taskset -c 1
	parks=$(counter parks)
	for kind in "${kinds[@]}"; do
		shared $kind "${later[$kind]:-$most}" || fail "$kind is not parked"
	done
	if [[ $wait == spin-block ]]; then
		# To look again takes a few ticks of 4 ms each time, as it may be outside of its calls at a tick: 22% in
		# virtual time.
		rechecks=$(counter rechecks)
		scx_cosched policy set sb
		shared tcp4/poll0 30 || fail "one that looks again after 50 ms is not parked"
		looked=$(($(counter rechecks) - rechecks))
		echo "it looked again $looked times"
		(( looked > 20 )) || fail "it did not look again"
	fi
	computes || fail "one that computes is parked"
	if [[ $wait == spin-block ]]; then
		scx_cosched policy set sb --recheck-ms 1000
		has_many 30 || fail "one that has had many messages at once is not parked"
	fi
	echo "$wait: $(($(counter parks) - parks)) parks"
	kill "${hogs[0]}"
	hogs=()
	scx_cosched policy set sy
done
stop
