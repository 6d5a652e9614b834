#!/bin/bash
# What comes by RDMA from another node is an arrival on each, for programs that poll their queue and for those that wait for
# events, whether they find each other by TCP (ibv_rc_pingpong, ib_send_lat) or by RDMA's own connections (rping).
. "$(dirname -- "$0")/../rdma_pair.sh"

# arrived: sets the array arrivals to what has arrived by RDMA on each node
arrived() {
	local node
	arrivals=()
	for node in "${nodes[@]}"; do
		arrivals+=("$(mpi-remote "$node" "scx_cosched status --json | jq .endpoint_arrivals.rdma")")
	done
}

# messages NUMBER SERVER CLIENT: so many arrive at least on each node while the commands run there and here
messages() {
	local before seen
	arrived
	before=("${arrivals[@]}")
	both_nodes "$2" "$3"
	arrived
	seen=($((arrivals[0] - before[0])) $((arrivals[1] - before[1])))
	echo "$3: ${seen[*]} arrivals"
	(( seen[0] >= $1 && seen[1] >= $1 )) || die "of $1 messages ${seen[*]} have arrived"
}

observe --gate always
for wait in '' ' -e'; do
	command="ibv_rc_pingpong -d rxe0 -g 1 -s 64 -n 300$wait"
	messages 290 "$command" "$command $far"
done
command="ib_send_lat -d rxe0 -x 1 -n 300"
messages 280 "$command" "$command $far"
messages 190 "rping -s -a $far -C 100" "rping -c -a $far -C 100"
leave
