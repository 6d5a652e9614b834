#!/bin/bash
# Processes that exit take turns with everybody else, for as long as it takes to free their memory.
. "$(dirname -- "$0")/../case.sh"

# exits: sets took and longest, ms: until eight processes of 100 MiB are gone, and that a busy task beside them did not run
exits() {
	read -r took longest < <(taskset -c 0 "$LOADS" exits 8 100)
	echo "$1: gone after $took ms, the longest wait beside them $longest ms"
}

exits eevdf
start
exits ours
# Nine tasks, one of them the loader, that have a slice each: a round of the CPU.
(( took > 400 )) || fail "they were gone so soon that nobody had to wait"
(( longest <= 200 )) || fail "a busy task waited for $longest ms while others exited"
stop
