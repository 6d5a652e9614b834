#!/bin/bash
# Epochs cross a network: between two namespaces, each with a CPU of its own, messages of TCP connections take the epoch
# along, and it is adopted; but not from who is no peer. Loss, reordering, duplicates and a key do no harm. An interface
# may come later, and nothing is left when the scheduler is killed.
. "$(dirname -- "$0")/../case.sh"

near=10.77.1.1 far=10.77.1.2
trap 'ip netns delete afar 2>/dev/null || true' EXIT

# join: the other namespace, and a wire to it
join() {
	ip netns add afar
	ip link add wire0 type veth peer name wire1 netns afar
	ip address add $near/24 dev wire0
	ip address add fd77::1/64 dev wire0 nodad
	ip -n afar address add $far/24 dev wire1
	ip -n afar address add fd77::2/64 dev wire1 nodad
	ip link set wire0 up
	ip -n afar link set wire1 up
}

# passed SECONDS: sets sent, heard, refused and adopted to what is counted while messages are passed
passed() {
	local counts='.counters | "\(.epochs_sent) \(.epochs_heard) \(.epochs_refused) \(.epochs_adopted)"' before
	read -ra before < <(scx_cosched status --json | jq -r "$counts")
	talk 20000 far4/spin far6/block far4/poll
	sleep "$1"
	quiet
	read -r sent heard refused adopted < <(scx_cosched status --json | jq -r "$counts")
	: $((sent -= before[0], heard -= before[1], refused -= before[2], adopted -= before[3]))
	echo "epochs sent $sent, heard $heard, refused $refused, adopted $adopted"
}

# heard_all: what was sent has been heard and had its effect
heard_all() {
	(( sent > 0 && heard * 10 >= sent * 8 && adopted > 0 )) || fail "epochs do not cross the wire"
	is "$refused" 0 "of them refused:"
}

missing() { scx_cosched status --json | jq -c .hooks.missing; }
complete() { [[ $(missing) == '[]' ]]; }

start --gate epochs --peer 10.77.1.0/24 --peer fd77::/64 --interface wire0 --node-number 100
is "$(missing)" '["on_xdp:wire0"]' "before the interface is there, these are missing:"
join
eventually 20 complete || fail "the interface is not followed: $(missing) is missing"
for cpu in 0 1; do hog taskset -c $cpu; done
passed 5
heard_all

echo "a bad wire:"
tc qdisc add dev wire0 root netem delay 2ms 1ms loss 2% duplicate 5% reorder 25%
tc -n afar qdisc add dev wire1 root netem delay 1ms loss 2% duplicate 5%
passed 10
(( heard > 0 && adopted > 0 )) || fail "epochs do not cross a bad wire"
is "$refused" 0 "of them refused:"
tc qdisc delete dev wire0 root
tc -n afar qdisc delete dev wire1 root

ip link delete wire0
ip netns delete afar
is "$(missing)" '["on_xdp:wire0"]' "when the interface has gone, these are missing:"
join
eventually 20 complete || fail "the interface that has come back is not followed: $(missing) is missing"
stop

echo "the other end is no peer:"
start --gate epochs --peer $near/32 --interface wire0
passed 3
(( sent > 0 )) || fail "the other end tells its peer nothing"
# Sixty-four on each connection whose other end is known: the one over IPv6 is not.
(( sent <= 2 * 64 )) || fail "it goes on telling who does not answer"
is "$heard $adopted" "0 0" "heard and adopted:"
(( refused > 0 )) || fail "nobody has refused it"
stop

echo "with a key:"
(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
start --gate epochs --peer 10.77.1.0/24 --peer fd77::/64 --interface auto --cluster-key "$tmp/key"
passed 3
heard_all
kill -KILL "$loader"
eventually 20 test "$(state)" = disabled || fail "killed, the state is $(state)"
gone() { [[ $(bpftool --json link | jq length) == 0 ]]; }
eventually 20 gone || fail "links are left: $(bpftool link)"
is "$(bpftool --json prog | jq -c '[.[].name // "" | select(startswith("on_"))]')" '[]' "programs left:"
! grep -E 'WARN|ERROR' "$tmp/log" || fail "the log has warnings"
