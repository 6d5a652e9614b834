#!/bin/bash
# Even under the gate "always", which boosts at every arrival, boosts hold a CPU
# for at most 8 slices on end before the fair order has one turn. So of 8 hogs and
# a receiver each has its turn within 9 (8 + 1) slices of 20 ms, plus a tick of
# 4 ms for each: 1.9 s. And nobody pays without end for what it was granted, when
# the boosts end.
. "$(dirname -- "$0")/../case.sh"

# all_run NAME: everybody who wants the CPU gets it within 2 s, again and again
all_run() {
	local used
	for _ in 1 2; do
		# First of all tasks, or it would measure its own waiting.
		chrt --fifo 1 bash -c "tmp=$tmp; . '$tests/case.sh'; usage 2 $flooded ${hogs[*]}" >"$tmp/used"
		echo "$1, in 2 s: $(xargs <"$tmp/used") us"
		while read -r used; do
			(( used > 0 )) || fail "$1, a task did not run for 2 s"
		done <"$tmp/used"
	done
}

start --gate always
# One task has had the CPU to itself before the others come, and is not to pay for that.
hog taskset -c 0
sleep 1
# A receiver on CPU 0 that always has a message, since a sender on CPU 1 sees to it.
python3 -IS -c '
import os, socket
here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver = os.fork()
os.sched_setaffinity(0, {1 if receiver else 0})
while receiver:
    here.send(b"message")
while True:
    there.recv(7)' &
sender=$!
flooding() { flooded=$(pgrep --parent $sender); }
eventually 20 flooding
for _ in {2..8}; do hog taskset -c 0; done

before=$(granted)
all_run "under always"
(( $(granted) > before + 100 )) || fail "nothing was boosted, so this proves nothing"
scx_cosched policy set local
all_run "then under local"
kill "$sender" "$flooded"
drop

# Many may be granted a boost at the same moment. They do not all go before the fair order has its turn, which is not
# theirs: it takes 8 slices and a tick for each, too.
scx_cosched policy set dcs-sb --gate always
python3 -IS -c '
import os, socket, time
pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(40)]
for _, there in pairs:
    if os.fork() == 0:
        os.sched_setaffinity(0, {0})
        os.nice(19)
        while there.recv(7):
            end = time.thread_time() + 0.03
            while time.thread_time() < end:
                pass
os.sched_setaffinity(0, {1})
while True:
    for here, _ in pairs:
        try:
            here.send(b"message", socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
    time.sleep(0.1)' &
sender=$!
sleep 2
before=$(granted)
longest=$(taskset -c 0 loads crowd 1 9)
echo "beside 40 receivers a busy task waits for $longest ms at most; boosts granted: $(( $(granted) - before ))"
(( longest <= 250 )) || fail "a busy task waits for $longest ms beside 40 receivers"
(( $(granted) > before + 100 )) || fail "nothing was boosted, so this proves nothing"
pkill --parent "$sender"
kill "$sender"

# A share of next to nothing is no reason to wait for ever: half of the kernel's
# patience with a scheduler, which is 20 s, is the most that any task waits.
scx_cosched policy set local
hogs=()
for _ in 1 2 3; do hog taskset -c 0; done
sleep 1
renice -n -20 "${hogs[@]:0:2}" >/dev/null
renice -n 19 "${hogs[2]}" >/dev/null
for _ in 1 2; do
	least=$(usage 12 "${hogs[2]}")
	echo "nice 19 beside two of nice -20, in 12 s: $least us"
	(( least > 1000 )) || fail "a task of nice 19 had not even a slice in 12 s"
done
near "one of its competitors, in 3 s" "$(usage 3 "${hogs[0]}")" 1500000
stop
