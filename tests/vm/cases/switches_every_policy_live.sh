#!/bin/bash
# Every policy gives way to the next, and every gate to every setting of it,
# while messages flow and hogs run: no message is lost, and the scheduler stays
# the same one.
. "$(dirname -- "$0")/../case.sh"

# set_policy EXPECTED ARG...: what is in force afterwards is to have the EXPECTED fields: "all_were_set" looks
sets=()
set_policy() {
	local expected=$1
	shift
	scx_cosched policy set "$@" --json >"$tmp/set"
	echo "$SECONDS s: $*"
	sets+=("{said: \"$*\", expected: $expected, set: $(<"$tmp/set")}")
	sleep 0.5
}

# all_were_set N: of N switches, each. jq takes longer to start than a switch takes, so it is started once.
all_were_set() {
	local IFS=,
	is "${#sets[@]}" "$1" "switches:"
	jq -n -e "[${sets[*]}] | all(.expected as \$expected | .set | contains(\$expected))" >/dev/null ||
		fail "not all were set: ${sets[*]}"
}

start
scx_cosched policy show --json >"$tmp/first"
talk 8000 tcp4/spin/5 tcp6/block/5 udp4/block/50 udp4/poll/5 udp6/epoll/50 stream/spin/50 dgram/block/5
for cpu in 0 1; do hog taskset -c $cpu; done
sleep 2
before=$(restarts)

# One after the other.
mapfile -t presets < <(scx_cosched policy list --json | jq -r '.[].name')
for preset in "${presets[@]}"; do
	set_policy "{name: \"$preset\"}" "$preset"
done
set_policy '{arrival: "none"}' dcs --arrival none
set_policy '{arrival: "demand"}' --arrival demand
set_policy '{gate: "always"}' --gate always
for h in -200 -40 0 20; do
	set_policy "{gate: \"equalizing\", h_ms: $h}" dcs --gate equalizing --h-ms $h
done
for e in -4 0 4; do
	set_policy "{gate: \"rate\", rate_exponent: $e}" dcs --gate rate --rate-exponent $e --rate-constant-ms 5
done
set_policy '{gate: "rate", rate_average: true}' dcs --gate rate --rate-average true
set_policy '{wait: "busy"}' dcs --wait busy
for us in 1 10000; do
	set_policy "{wait: \"spin\", spin_us: $us}" dcs --wait spin --spin-us $us
done
for slice in 1000 100000; do
	set_policy "{slice_us: $slice}" dcs --slice-us $slice
done
set_policy "$(cat "$tmp/first")" dcs-sb
quiet
all_were_set $((${#presets[@]} + 17))

is "$(restarts)" "$before" "enable_seq is"
is "$(cat /sys/kernel/sched_ext/nr_rejected)" 0 "tasks rejected:"
! grep -q restart "$tmp/log" || fail "it was restarted"
ran "${hogs[@]}"
for time in "${times[@]}"; do
	(( time > 1000000 )) || fail "a hog has got $time us only"
done
stop
