#!/bin/bash
# What never sleeps does not stay for good where it started: tasks whose number the CPUs do not divide have the same
# within seconds, and a crowd on one busy CPU spreads to another. What is started while no CPU idles is not put on one
# of them.
. "$(dirname -- "$0")/../case.sh"

# even NAME EXPECTED: in 10 s each hog has so many thousandths of a CPU, give or take 4%. Three on two CPUs had 654 to
# 675 in four boots. Before a task stayed for a while where it had come to, it was 635 to 697 in eight. Under EEVDF it
# was 655 to 680 in four.
even() {
	local share
	thousandths 10 "${hogs[@]}"
	echo "$1: ${shares[*]} thousandths"
	for share in "${shares[@]}"; do
		(( share * 100 >= $2 * 96 && share * 100 <= $2 * 104 )) || fail "$1: not $2 each"
	done
}

start
for _ in 1 2 3; do hog; done
sleep 1
even "each of three on two CPUs" 667
# All CPUs tick at once, so with slices of a tick both choose at the same moments, and neither has anything queued then.
scx_cosched policy set dcs --slice-us 4000
even "the same with slices of a tick" 667
scx_cosched policy set dcs
drop

# One that may not move on each CPU keeps both busy. The others all start on CPU 0, where they are let go.
hog taskset -c 0
hog taskset -c 1
for _ in 1 2 3 4; do hog taskset -c 0; done
sleep 0.5
before=$(counter pulls)
let_go "${hogs[@]:2}"
sleep 1
even "each of six, two of them pinned" 333
(( $(counter pulls) > before )) || fail "no busy CPU took anything"
drop

# apart WHAT: the first hog keeps CPU 0 to itself, since the other two have more on CPU 1 than they would have beside it
apart() {
	sleep 1
	let_go "${hogs[@]:1}"
	of 5 "${hogs[@]}"
	echo "$1: ${shares[*]} %"
	(( shares[0] > 90 && shares[1] > 40 && shares[2] > 40 )) || fail "$1: a task moved to where it has less"
	drop
}

hog taskset -c 0 nice -n -10
hog taskset -c 1
hog taskset -c 1
apart "nice -10, and two of nice 0"

mkdir -p /sys/fs/cgroup/{light,heavy}
echo 1000 >/sys/fs/cgroup/heavy/cpu.weight
hog in_group heavy taskset -c 0
hog in_group light taskset -c 1
hog in_group light taskset -c 1
apart "a cgroup of weight 1000, and two in one of weight 100"

# One alone in its group counts for all of its group wherever it goes. With 50 of 125 on CPU 1 it has more than with 50
# of 150 where it starts, and the one that it leaves has its CPU to itself.
mkdir -p /sys/fs/cgroup/{stays,moves,beside}
echo 50 >/sys/fs/cgroup/moves/cpu.weight
echo 75 >/sys/fs/cgroup/beside/cpu.weight
hog in_group stays taskset -c 0
hog in_group moves taskset -c 0
hog in_group beside taskset -c 1
sleep 1
let_go "${hogs[1]}"
sleep 1
of 5 "${hogs[@]}"
echo "cgroups of weight 100, 50 and 75, on CPU 0, either and 1: ${shares[*]} %"
(( shares[0] > 95 && shares[1] > 37 && shares[2] > 57 )) || fail "what is alone in its group stays where it has less"
drop

# Where rows take turns nobody moves from a busy CPU, so this is where they were put.
scx_cosched policy set gang
hog taskset -c 0
hog taskset -c 1
sleep 0.5
before=$(counter pulls)
for _ in 1 2 3 4; do hog; done
cpus=$(for pid in "${hogs[@]:2}"; do ps -o psr= -p "$pid"; done | sort | uniq -c | awk '{ print $1 }' | paste -sd ' ')
echo "four that one shell starts, by CPU: $cpus"
[[ $cpus == @(2 2|1 3|3 1) ]] || fail "all were put on one CPU"
is "$(counter pulls)" "$before" "pulled"
drop
stop
