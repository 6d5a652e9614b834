#!/bin/bash
# Who is no parallel job has what the kernel's own scheduler would give it, to the shell loop's, the pipe's and the
# editor's neighbour alike. EEVDF is measured in the same boot, and where the bound is one of its figures it is that
# one.
. "$(dirname -- "$0")/../case.sh"

# load NAME ARG...: a load on CPU 0, in the cgroup of that name
load() { (in_group "$1" taskset -c 0 "$LOADS" "${@:2}") & }

# compare: sets the arrays cut and late
compare() {
	hog in_group one taskset -c 0
	hog in_group one taskset -c 0
	load one cut 400
	sleep 1
	of 5 "${hogs[@]}"
	cut=("${shares[@]}")
	end_groups one other

	for _ in 1 2 3 4; do hog in_group one taskset -c 0; done
	sleep 1
	read -r -a late < <(in_group one taskset -c 0 "$LOADS" wake 10 10)
	end_groups one other
	echo "$1: beside a task cut short ${cut[*]}%, late by ${late[*]:0:2} us"
}

# measure: sets the arrays chain and token, and crowd
measure() {
	hog in_group one taskset -c 0
	hog in_group one taskset -c 0
	load one chain 4
	sleep 1
	of 5 "${hogs[@]}"
	chain=("${shares[@]}")
	end_groups one other

	hog in_group one taskset -c 0
	load other token 8 1000
	sleep 1
	of 5 "${hogs[@]}"
	token=("${shares[@]}")
	end_groups one other

	crowd=$(in_group one taskset -c 0 "$LOADS" crowd 1200 12)
	end_groups one other
	echo "beside the chain ${chain[*]}%, beside the token ${token[*]}%, longest wait $crowd ms"
}

compare eevdf
p99=${late[1]} least=$((cut[0] < cut[1] ? cut[0] : cut[1]))
start
compare ours
measure
(( chain[0] >= 30 && chain[1] >= 30 )) || fail "two busy tasks beside a chain of processes have ${chain[*]}%, not 30 each"
(( token[0] >= 45 && token[0] <= 60 )) || fail "a busy task beside a cgroup that passes a token has ${token[*]}%, not 45 to 60"
(( cut[0] * 10 >= least * 9 && cut[1] * 10 >= least * 9 )) ||
	fail "two busy tasks beside one that kernel threads cut short have ${cut[*]}%, and $least% or more under EEVDF"
(( late[1] * 10 <= p99 * 12 )) || fail "who wakes each 10 ms is ${late[1]} us late at p99, $p99 us under EEVDF"
(( crowd <= 2500 )) || fail "one of 1,200 busy tasks waits for $crowd ms"
runs
stop
