#!/bin/bash
# A real-time task that wakes each millisecond beside 5,000 busy threads on its CPU is late by what one switch takes,
# however many threads there are: at most by three times as much as under EEVDF in the same boot. And with 5,000 threads
# on one CPU the scheduler stays for a minute, and each of them runs.
. "$(dirname -- "$0")/../case.sh"

# latest: how late a task of real-time priority is at most in a second, us: in nine seconds without the two worst. Each
# ten seconds the kernel's watchdog of sched_ext looks at all tasks of a queue that it has locked: 270 us with so many.
# cyclictest is of real-time priority from the start: else its start alone takes a round of the CPU.
latest() {
	for _ in {1..9}; do
		LD_LIBRARY_PATH=$RT/usr/lib/x86_64-linux-gnu chrt --fifo 80 "$RT/usr/bin/cyclictest" --quiet --policy fifo \
			--priority 80 --affinity 0 --threads 1 --interval 1000 --duration 1 | grep -oP 'Max: *\K[0-9]+'
	done | sort -n >"$tmp/latest"
	echo "by second: $(paste -s -d " " "$tmp/latest") us" >&2
	sed -n 7p "$tmp/latest"
}

taskset -c 0 "$LOADS" threads 5000 >"$tmp/crowd" &
crowd=$!
eventually 120 grep -q ready "$tmp/crowd" || fail "there are no 5,000 threads after 120 s"
sleep 1
theirs=$(latest)

# turns: how often each thread has run
turns() { cat /proc/$crowd/task/*/schedstat | cut -d " " -f 3; }
start
began=$SECONDS
before=$(turns)
ours=$(latest)
echo "the latest in a second: $theirs us under EEVDF, $ours us under us"
(( ours <= 3 * theirs )) || fail "a real-time task is $ours us late beside 5,000 threads, and $theirs us under EEVDF"

sleep $(( SECONDS - began < 60 ? 60 - (SECONDS - began) : 1 ))
still=$(paste <(echo "$before") <(turns) | awk '$1 == $2' | wc -l)
# The first of them only waits for the end.
(( still == 1 )) || fail "$((still - 1)) of 5,000 threads did not run for a minute"
runs
unwarned
kill $crowd
stop
