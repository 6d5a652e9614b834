#!/bin/bash
# Datagrams take the epoch along behind their data, signed, and it is adopted. Who is no peer is not believed. They go
# without where the path has no place for it. What drops those that have it drops sixteen. Loss, reordering and
# duplicates do no harm.
#
# Between addresses of the loopback interface: see wire.sh.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

loop
(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
start --gate epochs "${loops[@]}" --interface lo --cluster-key "$tmp/key"
is "$(scx_cosched status --json | jq -c .hooks.missing)" '[]' "missing:"
for cpu in 0 1; do hog taskset -c $cpu; done
passed 1 round4/spin round6/block
heard_all

echo "a stranger:"
passed 1 stranger4/block
# It goes to a peer, and so takes epochs along, until he does not answer.
is "$sent $heard $refused $adopted" "16 0 16 0" "sent, heard, refused and adopted:"

echo "a path that has no place for it:"
# 128 bytes and headers of 28 have.
for end in 127.77.0.1 127.77.1.1; do ip route add local $end dev lo mtu 160; done
passed 1 round4/spin
is "$sent $heard $refused" "0 0 0" "sent, heard and refused:"
for end in 127.77.0.1 127.77.1.1; do ip route delete local $end dev lo mtu 160; done

echo "a middlebox that drops what is longer than UDP says:"
cp -a "$NFT/." /
nft -f - <<'END'
table inet pedant {
	chain in { type filter hook input priority mangle; udp length 136 ip length != 156 drop; }
}
END
came=$("$tests/datagrams" 127.77.0.2 127.77.1.2 40 once)
is "$came" "$(echo {16..39})" "of forty came"
nft delete table inet pedant

echo "a bad wire:"
tc qdisc add dev lo root netem delay 2ms 1ms loss 2% duplicate 5% reorder 25%
before=$(counter epochs_heard)
"$tests/datagrams" 127.77.0.1 127.77.1.1 2 || fail "datagrams are altered or lost for good"
(( $(counter epochs_heard) > before )) || fail "epochs do not cross a bad wire"
tc qdisc delete dev lo root
unwarned
stop
