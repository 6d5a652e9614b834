#!/bin/bash
# A pinned task stays on its CPU, whatever arrives for it and whoever is idle;
# one that is moved goes at once.
. "$(dirname -- "$0")/../case.sh"

# cpu_of PID: the one that it ran on last
cpu_of() {
	local fields
	read -ra fields <"/proc/$1/stat"
	echo "${fields[38]}"
}

start
for cpu in 0 0 0; do hog taskset -c $cpu; done
talk 20000 tcp4/spin udp4/block stream/poll
sleep 1
for _ in {1..60}; do
	for pid in "${hogs[@]}"; do
		is "$(cpu_of "$pid")" 0 "a hog that is pinned to CPU 0 is on CPU"
	done
	sleep 0.03
done
quiet

taskset -cp 1 "${hogs[0]}" >/dev/null
moved() { [[ $(cpu_of "${hogs[0]}") == 1 ]]; }
eventually 2 moved || fail "a hog that is moved to CPU 1 stays where it was"
mapfile -t used < <(usage 4 "${hogs[@]}")
near "alone on CPU 1" "${used[0]}" $((used[1] + used[2]))
near "one of two on CPU 0" "${used[1]}" "${used[2]}"
stop
