#!/bin/bash
# When a task begins a slice, the one that it talks to is asked for on its node before there is a message, and runs
# ahead of the order if the gate allows. What another key has signed is refused.
#
# Between addresses of the loopback interface: this machine is its own peer.
. "$(dirname -- "$0")/../case.sh"

(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
# Whatever asks is granted, and nobody is parked, so that who waits is in the queue half of the time.
start --policy dcs --gate always --peer 127.77.0.0/16 --cluster-key "$tmp/key" --prefetch 2 --prefetch-port 9940
is "$(scx_cosched status --json | jq -c .prefetch)" '{"correspondents":2,"port":9940}' "status says"

# after EXPRESSION: is it true of the counts of prefetches? They are in the array counts.
declare -A counts
after() {
	local name count
	while read -r name count; do
		counts[$name]=$count
	done < <(scx_cosched status --json | jq -r '.counters | to_entries[] | "\(.key) \(.value)"' | sed -n 's/^prefetches_//p')
	(( $1 ))
}
told() { echo "sent ${counts[sent]}, lost ${counts[lost]}, heard ${counts[heard]}, granted ${counts[granted]}, unmapped ${counts[unmapped]}, refused ${counts[refused]}"; }

for cpu in 0 1; do hog taskset -c $cpu; done
"$tests/prefetcher" talk &
talkers=$!
trap 'kill "$talkers" "${hogs[@]}" 2>/dev/null || true' EXIT
eventually 120 after 'counts[granted] >= 3' || fail "prefetches have no effect: $(told)"
kill "$talkers" "${hogs[@]}"
wait "$talkers" "${hogs[@]}" || true
# One may still be on its way. A connection that has just begun, or is about to end, may have no receiver.
eventually 20 after 'counts[heard] + counts[unmapped] == counts[sent]' || fail "they are not heard: $(told)"
told
is "${counts[refused]} ${counts[lost]}" "0 0" "refused and lost:"

# What is no prefetch, what is signed with another key, and a good one for a connection that there is not.
heard=${counts[heard]} unmapped=${counts[unmapped]}
"$tests/prefetcher" forge 9940
eventually 20 after 'counts[refused] + counts[unmapped] >= 3 + unmapped' || fail "they are not refused: $(told)"
is "${counts[refused]} ${counts[unmapped]} ${counts[heard]}" "2 $((unmapped + 1)) $heard" "refused, unmapped and heard:"
unwarned
stop
