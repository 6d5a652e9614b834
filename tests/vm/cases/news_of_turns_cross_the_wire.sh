#!/bin/bash
# Under beat messages tell of their job's turns, by TCP and behind datagrams, and what they tell is believed. TCP does
# not say the same with each segment. A policy without turns has messages take epochs along again, and the other way
# round, while the connections go on. Under spin adaptive-global they tell how long their sender's waits took.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

# crossed: sets sent, heard, refused, epochs and arrivals to what is counted in half a second
crossed() {
	local counts='.counters | "\(.news_sent) \(.news_heard) \(.epochs_refused) \(.epochs_heard) \(.arrivals)"' before
	# Beside eight busy tasks to ask would take longer than that.
	told() { chrt --fifo 1 sh -c 'scx_cosched status --json | jq -r "$1"' - "$counts"; }
	read -ra before < <(told)
	sleep 0.5
	read -r sent heard refused epochs arrivals < <(told)
	: $((sent -= before[0], heard -= before[1], refused -= before[2], epochs -= before[3], arrivals -= before[4]))
	echo "$1: news sent $sent, heard $heard, refused $refused; epochs heard $epochs; $arrivals messages"
	is "$refused" 0 "of them refused:"
}

loop
start --policy beat "${loops[@]}" --interface lo --node-number 100
compete
talk 20000 loop4/spin loop6/block
crossed "by TCP under beat"
(( sent > 0 && heard > 0 && sent * 2 < arrivals )) || fail "$sent of $arrivals messages told news, heard were $heard"
quiet
talk 20000 loop4/spin loop6/block round4/spin round6/block
crossed "under beat"
(( sent > 0 && heard * 10 >= sent * 8 )) || fail "news do not cross the wire"
scx_cosched policy set dcs --gate epochs
sleep 0.5
crossed "under dcs"
is "$sent" 0 "news sent without turns:"
(( epochs > 0 )) || fail "epochs do not cross the wire after news have"
scx_cosched policy set beat
sleep 0.5
crossed "under beat again"
(( heard > 0 )) || fail "news do not cross the wire after epochs have"
is "$(scx_cosched status --json | jq .counters.clock_steps)" 0 "a machine's own clock moved it:"

# waits MAP: how many notes in it tell of waits
waits() { bpftool --json map dump name "$1" | jq '[.[].formatted.value | select(.waits_us > 0)] | length'; }
tell() { (( $(waits wire_notes) > 0 && $(waits wire_datagrams) > 0 )); }
is "$(waits wire_notes) $(waits wire_datagrams)" "0 0" "notes that tell of waits under beat:"
scx_cosched policy set sb --spin adaptive-global
eventually 20 tell || fail "waits do not cross the wire: $(waits wire_notes) of TCP and $(waits wire_datagrams) of UDP"
is "$(scx_cosched status --json | jq .counters.epochs_refused)" 0 "refused:"
quiet
unwarned
stop
