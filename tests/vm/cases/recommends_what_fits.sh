#!/bin/bash
# `policy recommend` tells a machine whose jobs wait for each other from one where nobody does, and says so if it cannot
# know.
. "$(dirname -- "$0")/../case.sh"

# recommended PRESET: what it says now, as a person and as a program reads it
recommended() {
	scx_cosched policy recommend --seconds 3 --json >"$tmp/advice"
	jq -c '[.preset, .confidence, .reasons]' "$tmp/advice"
	is "$(jq -r .preset "$tmp/advice")" "$1" "it recommends"
	(( $(jq '.reasons | length' "$tmp/advice") )) || fail "it does not say why"
}

start
recommended local

talk 5000 tcp4/spin
for cpu in 0 1; do for _ in 1 2; do hog in_group hogs taskset -c $cpu; done; done
sleep 2
recommended dcs-sb
scx_cosched policy recommend --seconds 1

# Nothing is heard of messages while the hooks rest.
scx_cosched policy set local
at_rest() { scx_cosched status --json | jq -e '.hooks.attached == []' >/dev/null; }
eventually 60 at_rest || fail "$(scx_cosched status)"
recommended null
jq -r '.reasons[0]' "$tmp/advice" | grep "policy set dcs-sb" >/dev/null || fail "it does not say what to do"
scx_cosched policy set dcs-sb
quiet
stop
