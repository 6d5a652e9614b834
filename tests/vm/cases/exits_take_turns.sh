#!/bin/bash
# Processes that exit take turns with everybody else, for as long as it takes to free their memory.
. "$(dirname -- "$0")/../case.sh"

start
read -r took longest < <(taskset -c 0 "$LOADS" exits 8 100)
echo "eight processes of 100 MiB are gone after $took ms, the longest wait of a busy task beside them is $longest ms"
# Nine tasks, one of them the loader, that have a slice each: a round of the CPU.
(( took > 400 )) || fail "they were gone so soon that nobody had to wait"
(( longest <= 200 )) || fail "a busy task waited for $longest ms while others exited"
stop
