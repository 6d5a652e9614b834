#!/bin/bash
# Without a command, and with flags of "run", the scheduler runs; SIGTERM ends it, and so does SIGINT
# (falls_back_when_the_loader_is_killed). This is how scx_loader and scx.service start and stop one. Meanwhile both
# "--stats" and "--monitor" print a line a second. Before, "check" finds nothing missing.
. "$(dirname -- "$0")/../case.sh"

# lines FILE: how many lines of statistics are there
lines() { grep -c '^\[dcs\] arrivals .* switches' "$1" || true; }
has_lines() { (( $(lines "$1") >= 2 )); }

scx_cosched check
start_by scx_cosched --policy dcs --stats 1
is "$(scx_cosched policy show --json | jq -r .name)" dcs "the policy is"
scx_cosched --monitor 1 >"$tmp/monitor" &
monitor=$!
for file in log monitor; do
	eventually 10 has_lines "$tmp/$file" || fail "$(lines "$tmp/$file") lines of statistics in $file"
done
kill -TERM "$monitor"
stop TERM
