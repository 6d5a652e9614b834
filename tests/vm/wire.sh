# What the cases of epochs on the wire and bench-wire share: sourced by each after case.sh or nodes.sh, in the guest.
# shellcheck shell=bash disable=SC2034,SC2154

near=10.77.1.1 far=10.77.1.2
streams=(loop4/spin loop6/block)
loops=(--peer 127.77.0.0/16 --peer fd77:1::/64)
trap 'ip netns delete afar 2>/dev/null || true' EXIT

# loop: the addresses of the loopback interface that messages go between. A scheduler tells and believes the sockets of
# its own network namespace alone, so both ends are there.
loop() {
	ip address replace fd77:1::1/128 dev lo
	ip address replace fd77:1::2/128 dev lo
}

# join: another network namespace, and a wire to it
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

# passed SECONDS KIND...: sets sent, heard, refused and adopted to what is counted while messages are passed
passed() {
	local seconds=$1
	shift
	local counts='.counters | "\(.epochs_sent) \(.epochs_heard) \(.epochs_refused) \(.epochs_adopted)"' before
	read -ra before < <(scx_cosched status --json | jq -r "$counts")
	talk 20000 "$@"
	sleep "$seconds"
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
