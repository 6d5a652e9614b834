#!/bin/bash
# A peer that lies about the clock, the share or the size of a job moves nobody's share by more than 2% of a CPU, and no
# clock by more than four turns (docs/beat.md). Nor does an attacker who has no key, or who repeats what was said.
# Each lie is held against the truth of the same peer, in turn. Turns are of 5 ms, so a few seconds are many of them.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

loop
(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
start --policy beat --quantum-ms 5 "${loops[@]}" --interface lo --node-number 100 --cluster-key "$tmp/key"
in_group victim "$tests/liar" job &
in_group honest "$tests/messages" forever 60000 loop4/spin >"$tmp/messages" 2>&1 &
for cpu in 0 1; do hog in_group hogs taskset -c $cpu; done
coproc LIAR { exec chrt --fifo 1 "$tests/liar" "$tmp/key" /victim; }
sleep 3

# Those on CPU 0, and then those on CPU 1: a task of each cgroup.
pids=()
for cpu in 0 1; do
	for pid in $(cat /sys/fs/cgroup/{victim,honest,hogs}/cgroup.procs); do
		[[ $(taskset -p "$pid") != *" $((cpu + 1))" ]] || pids+=("$pid")
	done
done
is ${#pids[@]} 6 "tasks on a CPU of their own:"

# hears WORD: has the peer say that for five seconds. Notes what each task has of what the three on its CPU have, in
# 1 / 10,000, and sets refused to what has been refused meanwhile, and ahead_us to the clock's lead over TAI.
hears() {
	local i first before refused_then=$refused_in_all
	echo "$1" >&"${LIAR[1]}"
	sleep 0.5
	ran "${pids[@]}"
	before=("${times[@]}")
	sleep 5
	ran "${pids[@]}"
	echo silence >&"${LIAR[1]}"
	read -r refused_in_all ahead_us < <(chrt --fifo 1 scx_cosched status --json |
		jq -r '"\(.counters.epochs_refused) \(.clock_ahead_seconds * 1e6 | round)"')
	refused=$((refused_in_all - refused_then))
	for i in "${!pids[@]}"; do before[i]=$((times[i] - before[i])); done
	for i in "${!pids[@]}"; do
		first=$((i / 3 * 3))
		times[i]=$((10000 * before[i] / (before[first] + before[first + 1] + before[first + 2])))
	done
	echo "$1: shares ${times[*]}; refused $refused, clock $ahead_us us ahead"
	said+=("$1 ${times[*]}")
	(( ahead_us <= 20000 )) || fail "a clock is ahead of TAI by more than four turns"
}

said=() refused_in_all=0
hears truth
is "$refused $ahead_us" '0 0' "refused, and the clock:"
hears forged
(( refused > 100 )) || fail "what has the MAC of another key is believed"
is "$ahead_us" 0 "the clock, by what has the MAC of another key:"
hears replay
is "$refused $ahead_us" '0 0' "refused of what was sent before, and the clock:"
hears truth
hears share
hears truth
hears time
(( ahead_us > 14000 )) || fail "nobody has believed a clock that is later"
hears size

python3 -IS - "${said[@]}" <<'END' || fail "a peer that lies has moved a share"
import sys
rows = [line.split() for line in sys.argv[1:]]
truth = [[int(share) for share in row[1:]] for row in rows if row[0] == "truth"]
mean = [sum(column) / len(truth) for column in zip(*truth)]
for name, *shares in rows:
    moved = [(int(share) - was) / 100 for share, was in zip(shares, mean)]
    print(f"{name}: shares moved by", ", ".join(f"{percent:+.2f}%" for percent in moved), "of a CPU")
    # On either CPU a task of each job, and one that only computes, which has what both jobs lose. What is derived is
    # what a job can gain: nine turns in five seconds, and 1/128 of a third.
    assert max(moved[0], moved[1], moved[3], moved[4]) <= 0.9 + 0.26, "more than docs/beat.md derives"
    assert max(map(abs, moved)) <= 2, "more than 2% of a CPU"
END
kill "$LIAR_PID"
unwarned
end_groups victim honest hogs
stop
