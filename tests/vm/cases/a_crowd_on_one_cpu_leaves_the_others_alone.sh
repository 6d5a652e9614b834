#!/bin/bash
# A thousand busy tasks that are tied to one CPU of 32 cost the other 31 nothing: these stay idle while they have
# nothing to do, and lose less than 2% when they are busy. And each of the thousand has a turn within 3 s.
#
# CPUs: 32
. "$(dirname -- "$0")/../case.sh"

# busy: of each CPU but the first, how long it has been busy so far, in hundredths of a second
busy() { awk '/^cpu[1-9]/ { for (i = 2; i <= 9; i++) busy += $i; print busy - $5 - $6; busy = 0 }' /proc/stat; }
# turns: how often each thread of the crowd has run
turns() { cat /proc/$crowd/task/*/schedstat | cut -d " " -f 3; }

start
"$LOADS" rates 31 1 | sort -n >"$tmp/alone"
taskset -c 0 "$LOADS" threads 1000 >"$tmp/crowd" &
crowd=$!
eventually 60 grep -q ready "$tmp/crowd" || fail "there are no 1,000 threads after 60 s"
sleep 1

turns >"$tmp/turns"
busy >"$tmp/busy"
sleep 3
busiest=$(paste <(busy) "$tmp/busy" | awk '{ print $1 - $2 }' | sort -n | tail -n 1)
still=$(paste <(turns) "$tmp/turns" | awk '$1 == $2' | wc -l)
"$LOADS" rates 31 1 | sort -n >"$tmp/beside"
worst=$(paste "$tmp/alone" "$tmp/beside" | awk '{ print $4 / $2 }' | sort -n | head -n 1)
echo "idle CPUs are busy for at most ${busiest}0 ms in 3 s; a busy one makes at least $worst of what it made before the crowd"

(( $(wc -l <"$tmp/beside") == 31 )) || fail "of 31 busy tasks $(wc -l <"$tmp/beside") have come to an end"
(( busiest <= 6 )) || fail "a CPU that has nothing to do was busy for ${busiest}0 ms of 3 s"
awk "BEGIN { exit !($worst >= 0.98) }" || fail "a busy CPU makes $worst of what it made before the crowd"
# The first of them only waits for the end.
(( still == 1 )) || fail "$((still - 1)) of 1,000 threads did not run for 3 s"
runs
unwarned
stop
