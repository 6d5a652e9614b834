#!/bin/bash
# Without a command, and with flags of "run", the scheduler runs; SIGTERM ends it, and so does SIGINT
# (falls_back_when_the_loader_is_killed). This is how scx_loader and scx.service start and stop one.
. "$(dirname -- "$0")/../case.sh"

start_by scx_cosched --policy local --slice-us 4000
is "$(scx_cosched policy show --json | jq -r .name)" local+slice_us=4000 "the policy is"
stop TERM
