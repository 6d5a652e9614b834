#!/bin/bash
# Without a command, and with flags of "run", the scheduler runs; SIGTERM ends it, as SIGINT does in all other cases.
# This is how scx_loader and scx.service start and stop one.
. "$(dirname -- "$0")/../case.sh"

scx_cosched --policy local --slice-us 4000 >"$tmp/log" 2>&1 &
loader=$!
eventually 90 runs || fail "the scheduler is not there after 90 s: $(state)"
is "$(scx_cosched policy show --json | jq -r .name)" local+slice_us=4000 "the policy is"
kill -TERM "$loader"
wait "$loader" || fail "the loader ended with $? after SIGTERM"
is "$(state)" disabled "after SIGTERM the state is"
