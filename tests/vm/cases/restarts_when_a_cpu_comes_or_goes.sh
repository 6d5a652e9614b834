#!/bin/bash
# When a CPU comes or goes the kernel asks for the scheduler to be loaded again. The
# loader does so, with the policy that was in force, and counts on where it was. Meanwhile it answers within a second.
. "$(dirname -- "$0")/../case.sh"

online=/sys/devices/system/cpu/cpu1/online
trap 'echo 1 >$online' EXIT

wakers=()
misled() { scx_cosched status --json | jq .kernel_events.select_cpu_fallback; }
restarted() { (( $(restarts) > before )) && runs; }

# ask: asks again and again, and keeps the longest time that an answer took, in us
ask() {
	local asked took longest=0
	while sleep 0.1; do
		asked=${EPOCHREALTIME/./}
		scx_cosched status >/dev/null 2>&1 || true
		took=$((${EPOCHREALTIME/./} - asked))
		(( took <= longest )) || { longest=$took; echo "$longest" >"$tmp/longest"; }
	done
}

# change ONLINE: CPU 1 goes (0) or comes (1)
change() {
	before=$(restarts)
	switches=$(counter context_switches)
	echo "$1" >$online
	echo 0 >"$tmp/longest"
	ask &
	asker=$!
	# To load it takes 18 s of CPU time in virtual time, and the hog wants the same CPU.
	eventually 120 restarted || fail "it was not loaded again: $(state)"
	kill "$asker"
	wait "$asker" 2>/dev/null || true
	longest=$(<"$tmp/longest")
	(( longest < 1000000 )) || fail "an answer took $longest us while it was loaded again"
	# The socket is there before the scheduler answers.
	eventually 10 scx_cosched status --json >/dev/null
	is "$(scx_cosched policy show --json | jq -r .name)" dcs+h_ms=-20 "the policy is"
	(( $(counter context_switches) >= switches )) || fail "context switches fell below $switches"
	echo "CPU 1 is at $1: loaded again, policy and counters kept, an answer took up to $longest us"
}

start
scx_cosched policy set dcs --h-ms -20
hog taskset -c 0
# A task that sleeps on CPU 1, and wakes up when that CPU has gone.
mkfifo "$tmp/bell"
taskset -c 1 bash -c 'read -r <"$1"' - "$tmp/bell" &
sleeper=$!
sleep 1
taskset -pc 0,1 "$sleeper" >/dev/null
change 0
read -r used < <(usage 2 "${hogs[0]}")
(( used > 1500000 )) || fail "with one CPU its hog got $used us of 2 s"
for _ in 1 2 3 4; do
	loads part 500 5000 &
	wakers+=($!)
done
misled=$(misled)
echo >"$tmp/bell"
wait "$sleeper"
sleep 2
is "$(misled)" "$misled" "wake-ups that were sent to a CPU that is not there"
kill "${wakers[@]}"
change 1
"$tests/messages" 200 20000 tcp4/block udp6/spin
stop
grep -q 'EXIT' "$tmp/log" || fail "no exit information in the log"
cat "$tmp/log"
