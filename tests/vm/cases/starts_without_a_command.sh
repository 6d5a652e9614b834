#!/bin/bash
# Without a command, and with flags of "run", the scheduler runs; SIGINT ends it, and
# so does SIGTERM. This is how scx_loader and scx.service start and stop one.
. "$(dirname -- "$0")/../case.sh"

for signal in INT TERM; do
	scx_cosched --policy local --slice-us 4000 >"$tmp/log" 2>&1 &
	loader=$!
	eventually 90 runs || fail "the scheduler is not there after 90 s: $(state)"
	is "$(scx_cosched policy show --json | jq -r .name)" local+slice_us=4000 "the policy is"
	kill -$signal "$loader"
	wait "$loader" || fail "the loader ended with $? after SIG$signal"
	is "$(state)" disabled "after SIG$signal the state is"
done
