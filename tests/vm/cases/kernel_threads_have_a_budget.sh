#!/bin/bash
# A kernel thread that wants the CPU nearly all of the time leaves a busy task beside it its share, whether it is late
# with its work and never sleeps, or wakes often.
. "$(dirname -- "$0")/../case.sh"

# The kernel's packet generator: a thread for each CPU that sends bursts, and sleeps until the next is due.
modprobe pktgen
ip link add burst type dummy
ip link set burst up
pktgen=/proc/net/pktgen
echo "add_device burst" >$pktgen/kpktgend_0
for setting in "count 0" "pkt_size 60" "clone_skb 1000000" "burst 10000" "delay 3200000" \
	"dst 10.9.9.9" "dst_mac 02:00:00:00:00:01"; do
	echo "$setting" >$pktgen/burst
done
thread=$(pgrep -x kpktgend_0)

# share: sets the arrays alone and shares to the per cent that the thread has of CPU 0 alone, and beside a busy task
# both have
share() {
	echo start >$pktgen/pgctrl &
	starter=$!
	of 3 "$thread"
	alone=("${shares[@]}")
	hog taskset -c 0
	sleep 1
	of 5 "$thread" "${hogs[@]}"
	drop
	echo stop >$pktgen/pgctrl
	wait $starter || true
	echo "the thread alone ${alone[0]}%; beside a busy task ${shares[0]}%, and that one ${shares[1]}%"
}

start
for _ in 1 2 3; do
	share
	(( alone[0] >= 80 )) || fail "the thread wants no more than ${alone[0]}%"
	(( shares[1] >= 40 )) || fail "the busy task has ${shares[1]}%"
	(( shares[0] >= 40 )) || fail "the thread has ${shares[0]}%"
done
stop
