#!/bin/bash
# No CPU is idle while a task waits that may run there.
. "$(dirname -- "$0")/../case.sh"

# all_busy NAME SECONDS: the hogs use all of both CPUs, and each gets something
all_busy() {
	local used sum=0 one
	mapfile -t used < <(usage "$2" "${hogs[@]}")
	echo "$1: ${used[*]}"
	for one in "${used[@]}"; do
		(( one > 200000 * $2 )) || fail "$1: a hog got $one us only in $2 s"
		sum=$((sum + one))
	done
	(( sum > 1900000 * $2 )) || fail "$1: the hogs got $sum us of $2 s on 2 CPUs"
}

# taken: how many tasks a CPU has taken from another's queue
taken() { echo $(( $(counter steals) + $(counter pulls) )); }

start
for _ in 1 2 3; do hog; done
sleep 0.5
all_busy "three hogs that may run anywhere" 3
kill "${hogs[@]}"
hogs=()

hog taskset -c 0
hog taskset -c 1
hog
sleep 0.5
all_busy "one pinned to each CPU and one more" 3
kill "${hogs[@]}"
hogs=()

# Those on CPU 1 end, and nobody wakes or is moved: CPU 1 has to come and take some of those that wait for CPU 0.
for _ in 1 2 3 4; do hog taskset -c 1; done
others=("${hogs[@]}")
hogs=()
for _ in 1 2 3 4; do hog taskset -c 0; done
let_go "${hogs[@]}"
sleep 0.5
before=$(taken)
kill "${others[@]}"
all_busy "four that crowd on one CPU" 3
(( $(taken) > before )) || fail "they were not on one CPU: it has been taken none"
stop
