#!/bin/bash
# The scheduler loads, takes over, attaches every hook that it has, lets them rest
# a while after the policy takes no arrivals any more, and is gone without a trace
# when it is told to stop.
. "$(dirname -- "$0")/../case.sh"

# observing: how many links there are to programs that are hooks
observing() {
	local hooks
	hooks=$(bpftool --json prog | jq '[.[] | select(.name // "" | startswith("on_")) | .id]')
	bpftool --json link | jq --argjson hooks "$hooks" '[.[] | select(.prog_id | IN($hooks[]))] | length'
}

start
[[ $(cat /sys/kernel/sched_ext/root/ops) == cosched* ]] || fail "another scheduler is loaded"
is "$(cat /sys/kernel/sched_ext/switch_all)" 1 "switch_all is"
is "$(cat /sys/kernel/sched_ext/nr_rejected)" 0 "tasks rejected:"

scx_cosched status --json >"$tmp/status"
is "$(jq -c .hooks.missing "$tmp/status")" '[]' "missing hooks:"
attached=$(jq '.hooks.attached | length' "$tmp/status")
(( attached > 0 )) || fail "no hooks"
is "$(observing)" "$attached" "links of hooks:"
is "$(jq .pid "$tmp/status")" "$loader" "status names process"
scx_cosched status | grep "hooks .* $attached attached, .* of RDMA idle; missing: none" >/dev/null ||
	fail "$(scx_cosched status)"

# The kernel gives up at a million, and whoever starts the scheduler waits for each.
verified=$(sed -n 's/^verified_insns:[[:space:]]*//p' /proc/"$loader"/fdinfo/* | sort -n | tail -1)
(( verified > 0 && verified < 150000 )) || fail "the verifier went through '$verified' instructions of one program"

scx_cosched policy set local >/dev/null
is "$(observing)" "$attached" "links of hooks just after the switch to local:"
# They rest ten seconds later.
sleep 10
rest() { (( $(observing) == 0 )); }
eventually 60 rest || fail "$(observing) hooks observe under local"
is "$(scx_cosched status --json | jq '.hooks.resting | length')" "$attached" "hooks at rest:"
scx_cosched policy set dcs >/dev/null
is "$(observing)" "$attached" "links of hooks under dcs again:"

stop
is "$(bpftool --json link | jq length)" 0 "links left:"
[[ ! -e $socket ]] || fail "the control socket is left"
unwarned
