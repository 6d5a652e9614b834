#!/bin/bash
# With --arrivals, who wakes a task of his job by a futex, through a pipe or with an eventfd has a message for it, which
# asks the gate. What was not asked for is none, nor is what wakes a task of another job. That there is no hook without
# the flag is tried elsewhere (sees_tcp_udp_unix_v4_v6).
. "$(dirname -- "$0")/../case.sh"

arrived() { scx_cosched status --json | jq ".endpoint_arrivals.$1 // 0"; }

# passed KIND [threads]: $came arrivals of that kind while two wake each other
passed() {
	local before
	before=$(arrived "$1")
	"$tests/wakes" "$1" 0.5 "${@:2}" || fail "a wake-up by $1 is lost"
	came=$(($(arrived "$1") - before))
	echo "$came arrivals"
}

start --policy dcs-sb --arrivals pipe,eventfd
compete
is "$(scx_cosched status --json | jq -c .hooks.missing)" '[]' "missing:"
before=$(granted)
for kind in pipe eventfd; do
	passed $kind
	(( came > 20 )) || fail "$kind: nothing arrives"
done
(( $(granted) > before )) || fail "the gate was not asked, or grants nothing"
passed futex
is "$came" 0 "futex, which was not asked for:"
unwarned
drop
stop

start --policy dcs-sb --arrivals futex --job-by process
compete
passed futex threads
(( came > 20 )) || fail "futex: nothing arrives"
passed futex
# The loader has threads that wake each other now and then.
(( came < 100 )) || fail "$came messages come from another job"
drop
stop
