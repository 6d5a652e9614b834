#!/bin/bash
# Processes that exit take turns with everybody else, for as long as it takes to free their memory.
. "$(dirname -- "$0")/../case.sh"

start
read -r took longest < <(taskset -c 0 "$LOADS" exits 8 100)
echo "eight processes of 100 MiB are gone after $took ms, the longest wait of a busy task beside them is $longest ms"
# Eight slices of 20 ms, and one of the loader's if it has something to do on this CPU: a round.
(( took > 400 )) || fail "they were gone so soon that nobody had to wait"
(( longest <= 200 )) || fail "a busy task waited for $longest ms while others exited"
stop
