#!/bin/bash
# A pair that was connected before the scheduler started, or while it was restarted, makes at least 0.95 of the round
# trips of a pair that came after, beside four competitors on each CPU: however its halves receive.
. "$(dirname -- "$0")/../case.sh"

# pair WAIT NAME: starts one; its round trips are counted in the file of that name
declare -A pairs
pair() {
	"$LOADS" pair "$1" "$tmp/$2" &
	pairs[$2]=$!
	eventually 20 begun "$2" || fail "the pair $1 makes no round trips"
}
begun() { [[ -s $tmp/$1 ]] && (( $(count "$1") > 10 )); }
count() { od -A n -t d8 "$tmp/$1"; }
halves() { pgrep --parent "${pairs[$1]}"; }

# early WAIT...: pairs that stand still until it is their turn
early() {
	local wait
	for wait; do
		pair "$wait" "$wait"
		# shellcheck disable=SC2046
		kill -STOP $(halves "$wait")
	done
}

# made NAME: sets trips to how many round trips it makes within some seconds, and ends it
made() {
	local before
	sleep 2
	before=$(count "$1")
	sleep 6
	trips=$(($(count "$1") - before))
	kill "${pairs[$1]}"
	while halves "$1" >/dev/null; do sleep 0.1; done
}

# compare WAIT...: those that were there first with new ones
compare() {
	local wait before
	compete 4
	for wait; do
		unmapped=$(counter arrivals_unmapped)
		# shellcheck disable=SC2046
		kill -CONT $(halves "$wait")
		made "$wait"
		before=$trips
		unmapped=$(($(counter arrivals_unmapped) - unmapped))
		pair "$wait" late
		made late
		echo "$wait: $before round trips if there first, $trips if not; $unmapped arrivals of nobody"
		(( before * 100 >= trips * 95 )) || failed+=" $wait"
	done
	drop
}

early spin poll
start
compare spin poll
stop
early seldom block
start
compare seldom block
[[ -z ${failed:-} ]] || fail "not heard if there first:$failed"
stop
