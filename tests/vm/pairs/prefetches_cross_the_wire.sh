#!/bin/bash
# When a task begins a slice on one node, the one that it talks to on the other runs ahead of the order there, by IPv4
# and by IPv6. Its own node asks for nobody else, and both believe each other.
set -Eeuo pipefail
# shellcheck source=../common.sh
. "$(dirname -- "$0")/../common.sh"

mkdir -p /run/bin
install target/release/scx_cosched{,-bench} "$here"/{mpi-remote,prefetcher} /run/bin/
export PATH=/run/bin:$PATH
# shellcheck source=../nodes.sh
. "$here/nodes.sh"
meet

# count NODE NAME: of its prefetches
count() { mpi-remote "${nodes[$1]}" "scx_cosched status --json | jq .counters.prefetches_$2"; }
told() { everywhere "scx_cosched status --json | jq -c '.counters | with_entries(select(.key | startswith(\"prefetches\")))'"; }

# begin NODE COMMAND: in the background there, until the end of "over"
begin() { mpi-remote "${nodes[$1]}" "(exec setsid $2 >$tmp/said 2>&1) & echo \$! >>$tmp/begun"; }
over() { everywhere "kill \$(cat $tmp/begun) 2>/dev/null; rm $tmp/begun"; }

# reach TIMES: so many on either node who wait in the queue run ahead of the order by it
reach() {
	local node deadline=$((SECONDS + 120))
	for node in 0 1; do
		until (( $(count $node granted) >= $1 )); do
			(( SECONDS < deadline )) || die "prefetches have no effect on node $node: $(told)"
			sleep 0.5
		done
	done
}

everywhere "umask 077; printf '%032x\n' 12345 >$tmp/key"
schedule --policy dcs --gate always --peer 10.77.0.0/24 --peer fd77::/64 --cluster-key $tmp/key --prefetch 2 --prefetch-port 9940
granted=0
for address in 10.77.0.2 fd77::2; do
	begin 1 "prefetcher answer $address 7100"
	until mpi-remote "${nodes[1]}" "ss -Hltn 'sport = 7100' | grep -q ."; do sleep 0.2; done
	begin 0 "prefetcher call $address 7100"
	for node in 0 1; do begin $node "sh -c 'while :; do :; done'"; done
	reach $((granted + 3))
	over
	echo "$address:"
	told
	granted=$(($(count 0 granted) > $(count 1 granted) ? $(count 0 granted) : $(count 1 granted)))
done
for node in 0 1; do
	(( $(count $node sent) > 0 && $(count $node refused) == 0 )) || die "node $node sends none, or does not believe the other"
done
schedule
everywhere "! grep -E 'warning|error|panicked' $tmp/loader.log"
