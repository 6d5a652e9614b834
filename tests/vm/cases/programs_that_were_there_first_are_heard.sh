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

# made NAME: adds to trips[NAME] the round trips that it makes within 6 s, and stops it. A pair that has just come makes
# fewer in its first 4 s, from a half to all of what it makes then.
declare -A trips
made() {
	local before
	# shellcheck disable=SC2046
	kill -CONT $(halves "$1")
	sleep 4
	before=$(count "$1")
	sleep 6
	trips[$1]=$((trips[$1] + $(count "$1") - before))
	# shellcheck disable=SC2046
	kill -STOP $(halves "$1")
}

# as_many WAIT: those that were there first make 0.95 of the others' round trips. In 6 s either makes 1.6% more or less,
# by chance, so that 1 in 100 would fail. Then it is measured again, and added: four times at most, one in 100,000 by
# then.
as_many() {
	trips=([$1]=0 [late]=0)
	for _ in 1 2 3 4; do
		made "$1"
		made late
		(( trips[$1] * 100 < trips[late] * 95 )) || return 0
	done
	return 1
}

# compare WAIT...: those that were there first with new ones
compare() {
	local wait
	compete 4
	for wait; do
		unmapped=$(counter arrivals_unmapped)
		pair "$wait" late
		# shellcheck disable=SC2046
		kill -STOP $(halves late)
		as_many "$wait" || failed+=" $wait"
		unmapped=$(($(counter arrivals_unmapped) - unmapped))
		echo "$wait: ${trips[$wait]} round trips if there first, ${trips[late]} if not; $unmapped arrivals of nobody"
		kill "${pairs[$wait]}" "${pairs[late]}"    # and their halves end with them
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
