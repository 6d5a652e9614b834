#!/bin/bash
# A real-time task that wakes each millisecond beside 5,000 busy threads on its CPU runs as promptly as under the kernel's own
# scheduler in the same boot: the latest it comes is at most 1.5 times as late. And with 5,000 threads on one CPU the
# scheduler stays for a minute, and each of them runs.
. "$(dirname -- "$0")/../case.sh"

# latest: how late a task of real-time priority is at most in 5 s, us
latest() {
	LD_LIBRARY_PATH=$RT/usr/lib/x86_64-linux-gnu "$RT/usr/bin/cyclictest" --quiet --priority 80 --affinity 0 --threads 1 \
		--interval 1000 --duration 5 --policy fifo | grep -oP 'Max: *\K[0-9]+'
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
(( ours * 2 <= theirs * 3 )) || fail "a real-time task is $ours us late beside 5,000 threads, and $theirs us under EEVDF"

before=$(cat /proc/$crowd/task/*/schedstat | cut -d " " -f 3)
sleep $(( 60 - (SECONDS - began) ))
after=$(cat /proc/$crowd/task/*/schedstat | cut -d " " -f 3)
# The first one only waits for the end.
still=$(paste <(echo "$before") <(echo "$after") | tail -n +2 | awk '$1 == $2' | wc -l)
(( still == 0 )) || fail "$still of 5,000 threads did not run for a minute"
runs
unwarned
kill $crowd
stop
