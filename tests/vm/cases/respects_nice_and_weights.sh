#!/bin/bash
# On one CPU, tasks share it by the kernel's own weights: by nice level, by cgroup
# weight, and by cgroup first, however many tasks each cgroup has.
. "$(dirname -- "$0")/../case.sh"

# share SECONDS: the hogs' use in that time; then they end. Where one is due three times what the others are, 5% of that
# in 5 s are three slices of these, and now and then the window has two fewer of them.
share() {
	sleep 1
	mapfile -t used < <(usage "$1" "${hogs[@]}")
	kill "${hogs[@]}"
	wait "${hogs[@]}" || true
	hogs=()
	echo "used: ${used[*]}"
}

start
mkdir /sys/fs/cgroup/{light,heavy}
echo 300 >/sys/fs/cgroup/heavy/cpu.weight

hog taskset -c 0
hog taskset -c 0 nice -n 5
share 5
near "nice 0 beside nice 5" "${used[0]}" $(( (used[0] + used[1]) * 1024 / (1024 + 335) ))
near "nice 5 beside nice 0" "${used[1]}" $(( (used[0] + used[1]) * 335 / (1024 + 335) ))

hog in_group light taskset -c 0
hog in_group heavy taskset -c 0
share 8
near "weight 300 beside weight 100" "${used[1]}" $((used[0] * 3))

echo 100 >/sys/fs/cgroup/heavy/cpu.weight
hog in_group light taskset -c 0
for _ in 1 2 3; do hog in_group heavy taskset -c 0; done
share 5
near "one task beside a cgroup of three" "${used[0]}" $((used[1] + used[2] + used[3]))

hog in_group light taskset -c 0
for _ in 1 2 3; do hog in_group heavy taskset -c 0; done
sleep 1
echo 300 >/sys/fs/cgroup/light/cpu.weight
share 8
near "weights that change under way" "${used[0]}" $(( (used[1] + used[2] + used[3]) * 3 ))

# Where no group is counted any more, what runs there counts in the last one that is.
path=deep
mkdir /sys/fs/cgroup/$path
for _ in {2..40}; do
	echo +cpu >/sys/fs/cgroup/$path/cgroup.subtree_control
	path+=/d
	mkdir /sys/fs/cgroup/$path
	echo 10000 >/sys/fs/cgroup/$path/cpu.weight
done
echo 100 >/sys/fs/cgroup/light/cpu.weight
hog in_group light taskset -c 0
for _ in 1 2 3; do hog in_group $path taskset -c 0; done
share 5
near "one task beside three that are 40 cgroups deep" "${used[0]}" $((used[1] + used[2] + used[3]))
stop
