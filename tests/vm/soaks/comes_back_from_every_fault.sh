#!/bin/bash
# For half an hour one thing after the other happens to the scheduler, as the seed decides: its loader is killed,
# stopped, or runs out of memory; a CPU goes and comes; modules that it hooks are unloaded; an interface that it looks
# at goes down; the clock is set; the policy is switched. Meanwhile stress-ng runs, and messages are passed.
#
# Each time our scheduler or the kernel's own is there, and soon ours again, since it is started anew as its unit has
# it. No message is lost, the kernel has nothing to complain of, and neither maps nor memory grow.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"
. "$(dirname -- "$0")/../rdma.sh"

seed=${COSCHED_SEED:-1}
minutes=${COSCHED_SOAK_MINUTES:-30}
RANDOM=$seed
groups=/sys/fs/cgroup
online=/sys/devices/system/cpu/cpu1/online
trap 'echo 1 >$online; ip netns delete afar 2>/dev/null || true' EXIT

enabled() { has_state enabled; }

# keep ARG...: a scheduler, which is started again when it fails
keep() {
	until (in_group loader scx_cosched run "$@") >>"$tmp/log" 2>&1; do sleep 1; done 2>/dev/null    # "Killed"
}

# answers: sets loader
answers() {
	enabled && loader=$(scx_cosched status --json 2>/dev/null | jq .pid) && [[ -n $loader ]]
}
back() { eventually 240 answers || fail "4 min later it is not back: $(state)"; }
anew() { (( $(restarts) > before )) && answers; }
another() { answers && (( loader != before )); }

loader_killed() {
	before=$loader
	kill -KILL "$loader"
	eventually 10 disabled || fail "10 s after its loader was killed, the state is $(state)"
	eventually 240 another || fail "no other loader is there: $(state)"
}

loader_stopped() {
	before=$(restarts)
	kill -STOP "$loader"
	sleep 5
	enabled || fail "with its loader stopped the state is $(state)"
	kill -CONT "$loader"
	eventually 20 answers || fail "20 s after its loader goes on it does not answer"
	is "$(restarts)" "$before" "starts of the scheduler:"
}

loader_out_of_memory() {
	before=$loader
	echo 1M >$groups/loader/memory.max
	eventually 20 disabled || fail "without memory the state is $(state)"
	echo max >$groups/loader/memory.max
	eventually 240 another || fail "no other loader is there: $(state)"
}

cpu_goes() {
	local to
	for to in 0 1; do
		before=$(restarts)
		echo $to >$online
		eventually 240 anew || fail "with CPU 1 at $to it was not loaded again: $(state)"
	done
}

hooked() { scx_cosched status --json | jq -e '.hooks.attached | contains(["on_rxe_completion"])' >/dev/null; }
modules_go() {
	eventually 60 scx_cosched policy set dcs-sb >/dev/null 2>&1 || fail "it does not switch to dcs-sb"    # has hooks
	soft_roce
	exec 8</dev/infiniband/uverbs0
	eventually 60 hooked || fail "the hooks of RDMA are not attached: $(scx_cosched status --json | jq -c .hooks)"
	both 18515 "${pingpong[@]}" -n 200
	exec 8<&-
	rdma link delete rxe0
	eventually 60 modprobe -r rdma_rxe 2>/dev/null || fail "a module stays: $(lsmod | grep rxe)"
}

interface_flaps() {
	local i
	for i in 1 2 3 4 5; do
		ip link set wire0 down
		sleep 0.3
		ip link set wire0 up
		sleep 0.3
	done
}

# An hour forth or back, and as much in the other direction.
clock_steps() {
	python3 -IS -c '
import sys, time
def step(seconds):
    time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)
    time.sleep(3)
by = 3600 * int(sys.argv[1])
step(by)
step(-by)' $((RANDOM % 2 * 2 - 1))
}

policy_switched() {
	local to=${presets[RANDOM % ${#presets[@]}]}
	eventually 60 scx_cosched policy set "$to" >/dev/null 2>&1 || fail "it does not switch to $to"
	echo "	$to"
}

# now: how many maps there are, their KiB, and those of the kernel's slabs and of the loader. All that was freed after a
# grace period is gone by then.
now() {
	sleep 5
	echo 2 >/proc/sys/vm/drop_caches
	bpftool --json map | jq -r '"\(length) \(map(.bytes_memlock) | add / 1024 | floor)"'
	awk '/^SUnreclaim/ {print $2}' /proc/meminfo
	awk '/^VmRSS/ {print $2}' "/proc/$loader/status"
}

faults=(loader_killed loader_stopped loader_out_of_memory cpu_goes modules_go interface_flaps clock_steps
	policy_switched policy_switched)

# befalls FAULT: it happens, and the scheduler is back
befalls() {
	local at=$SECONDS
	$1
	back
	echo "$1: $((SECONDS - at)) s"
	[[ -n $(<$groups/stress/cgroup.procs) ]] || fail "stress-ng has ended"
}

# slabs: the KiB that each kind of the kernel's slabs takes, "name KiB"
slabs() { awk 'NR > 2 {print $1, $15 * $6 * 4}' /proc/slabinfo | sort; }

cp -a "$RDMA/." /
echo +memory >$groups/cgroup.subtree_control
loop
join
keep --gate epochs "${loops[@]}" --interface wire0 --node-number 100 &
keeper=$!
back
mapfile -t presets < <(scx_cosched policy list --json | jq -r '.[].name')
talk 19000 tcp4/spin udp6/block stream/poll0 loop4/spin far4/block
for cpu in 0 1; do hog in_group hogs taskset -c $cpu; done
(in_group stress env LD_LIBRARY_PATH="$STRESS/usr/lib/x86_64-linux-gnu" "$STRESS/usr/bin/stress-ng" --quiet \
	--cpu 1 --fork 1 --switch 1 --futex 1 --sock 1) &

# What the kernel keeps of each kind of fault for the next one, it has after one round.
for fault in "${faults[@]}" loader_killed; do befalls "$fault"; done
mapfile -t first < <(now)
slabs >"$tmp/first"
faults_seen=0 began=$SECONDS
while (( SECONDS - began < minutes * 60 )); do
	befalls "${faults[RANDOM % ${#faults[@]}]}"
	faults_seen=$((faults_seen + 1))
done
befalls loader_killed
mapfile -t last < <(now)
slabs >"$tmp/last"
echo "kinds of slabs that grew most, in KiB:"
command join -a 2 -e 0 -o 0,1.2,2.2 "$tmp/first" "$tmp/last" | awk '{print $3 - $2, $1}' | sort -rn | head -n 8
echo "$faults_seen faults in $minutes min, seed $seed"
echo "maps, their KiB, and those of the kernel's slabs and of the loader: ${first[*]} at first, and ${last[*]} at the end"
quiet
kill -INT "$loader"
wait $keeper
is "$(state)" disabled "unloaded, the state is"

is "${last[0]}" "${first[0]}" "number of maps:"
for i in 1 2 3; do
	(( last[i] * 10 <= first[i] * 11 )) || fail "$((last[i] - first[i])) KiB more at the end than at first"
done
