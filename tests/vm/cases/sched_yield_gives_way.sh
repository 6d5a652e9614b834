#!/bin/bash
# A program that relies on sched_yield() makes progress: two processes on one CPU, each of which yields until it is its
# turn, pass the turn to and fro, whoever else is there; and who else is there has its share.
. "$(dirname -- "$0")/../case.sh"

# turns LEAST NAME: sets per_s to how often a second the turn is passed, which is LEAST at least. A tenth of what an
# emulated CPU does under local is asked for: 15000, and 9000 beside a hog.
turns() {
	local used before=0 after=0 share
	(( ${#hogs[@]} == 0 )) || read -r before _ <"/proc/${hogs[0]}/schedstat"
	read -r per_s used < <(taskset -c 0 python3 -IS -c '
import mmap, os, time
turn = mmap.mmap(-1, 1)
begin = time.monotonic()
me = 0 if os.fork() else 1
passed = 0
while time.monotonic() < begin + 1.5:
    while turn[0] != me and time.monotonic() < begin + 2.5:
        os.sched_yield()
    turn[0] = 1 - me
    passed += 1
if me:
    os._exit(0)
os.wait()
used = time.monotonic() - begin
print(round(2 * passed / used), round(used * 1e9))')
	(( ${#hogs[@]} == 0 )) || read -r after _ <"/proc/${hogs[0]}/schedstat"
	share=$((100 * (after - before) / used))
	echo "$2: $per_s turns a second; the hog has $share%"
	(( per_s >= $1 && (${#hogs[@]} == 0 || (share >= 20 && share <= 60)) ))
}

start --policy local
hog taskset -c 0
for policy in local sb sy dcs-sb; do
	scx_cosched policy set $policy >/dev/null
	turns 900 "$policy, beside a hog" || fail "$policy: too few, or too much of the CPU"
	kill "${hogs[0]}"
	hogs=()
	turns 1500 $policy || fail "$policy: too few"
	hog taskset -c 0
done
stop
