#!/bin/bash
# Epochs cross a network: between two addresses, each with a CPU of its own, messages of TCP connections take the epoch
# along, and it is adopted. Where the option is stripped on the way they are passed without it. Loss, reordering and
# duplicates do no harm, and an interface may come and go.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

missing() { scx_cosched status --json | jq -c .hooks.missing; }
denied() { scx_cosched status --json | jq .denied.old_epoch; }
complete() { [[ $(missing) == '[]' ]]; }
absent='["on_xdp:wire0","on_udp:wire0"]'
incomplete() { [[ $(missing) == "$absent" ]]; }

loop
start --gate epochs "${loops[@]}" --interface wire0 --interface lo --node-number 100
is "$(missing)" "$absent" "before the interface is there, these are missing:"
join
eventually 20 complete || fail "the interface is not followed: $(missing) is missing"
for cpu in 0 1; do hog taskset -c $cpu; done
passed 1 "${streams[@]}"
heard_all

echo "a middlebox that strips the option:"
cp -a "$NFT/." /
talk 20000 "${streams[@]}"
sleep 1
nft -f - <<'END'
table inet strip {
	chain out { type filter hook postrouting priority mangle; tcp option 253 exists reset tcp option 253; }
}
END
# What has been told is soon of no account: else all messages of these connections would be of an old epoch from here
# on. A few other messages carry the epoch of a CPU of this machine, and may be.
sleep 1.5
denied=$(denied)
sleep 2
denied=$(( $(denied) - denied ))
(( denied < 100 )) || fail "$denied messages are denied for an epoch of seconds ago"
quiet
passed 1 "${streams[@]}"
is "$heard $refused $adopted" "0 0 0" "heard, refused and adopted:"
# Each end of the two connections sends sixty-four, and then no more.
(( sent > 0 && sent <= 256 )) || fail "it goes on telling who does not answer"
nft delete table inet strip

echo "a bad wire:"
tc qdisc add dev lo root netem delay 2ms 1ms loss 2% duplicate 5% reorder 25%
passed 3 "${streams[@]}"
(( heard > 0 && adopted > 0 )) || fail "epochs do not cross a bad wire"
is "$refused" 0 "of them refused:"
tc qdisc delete dev lo root

ip link delete wire0
ip netns delete afar
eventually 20 incomplete || fail "the interface has gone, and these are missing: $(missing)"
join
eventually 20 complete || fail "the interface that has come back is not followed: $(missing) is missing"
stop
