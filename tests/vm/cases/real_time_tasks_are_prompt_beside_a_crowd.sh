#!/bin/bash
# A real-time task that wakes each millisecond beside 5,000 busy threads on its CPU is at most 200 us late, at 4 ns an
# instruction: what it waits for is what we do at one switch, however many threads there are. And with 5,000 threads on
# one CPU the scheduler stays for a minute, and each of them runs.
. "$(dirname -- "$0")/../case.sh"

# latest: how late a task of real-time priority is at most in 5 s, us
latest() {
	LD_LIBRARY_PATH=$RT/usr/lib/x86_64-linux-gnu "$RT/usr/bin/cyclictest" --quiet --policy fifo --priority 80 \
		--affinity 0 --threads 1 --interval 1000 --duration 5 | grep -oP 'Max: *\K[0-9]+'
}

taskset -c 0 "$LOADS" threads 5000 >"$tmp/crowd" &
crowd=$!
eventually 120 grep -q ready "$tmp/crowd" || fail "there are no 5,000 threads after 120 s"
sleep 1
theirs=$(latest)
start
began=$SECONDS
sleep 1
ours=$(latest)
echo "the latest of 5 s: $theirs us under EEVDF, $ours us under us"
(( ours <= 200 )) || fail "a real-time task is $ours us late beside 5,000 threads, and $theirs us under EEVDF"

# turns: how often each thread has run
turns() { cat /proc/$crowd/task/*/schedstat | cut -d " " -f 3; }
before=$(turns)
sleep $(( 60 - (SECONDS - began) ))
still=$(paste <(echo "$before") <(turns) | awk '$1 == $2' | wc -l)
# The first of them only waits for the end.
(( still == 1 )) || fail "$((still - 1)) of 5,000 threads did not run for a minute"
runs
unwarned
kill $crowd
stop
