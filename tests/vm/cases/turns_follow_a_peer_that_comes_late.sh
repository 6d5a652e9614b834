#!/bin/bash
# Under beat a node takes over clock and theta of a peer that joins late, within two periods (docs/beat.md). So does a
# node whose scheduler is restarted while its job runs. News that are lost, late, doubled or out of order do no harm.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../wire.sh"

# turns SECONDS: records what becomes of the job's turns for so long, in the background
turns() {
	scx_cosched trace --json --job /job --events turns --seconds "$1" >"$tmp/turns" &
	tracer=$!
}

# won LEAST MOST [AHEAD_MS]: of the turns that were recorded, from LEAST to MOST per mille were won on CPU 0. With
# AHEAD_MS that is from two periods on after the first message of a peer whose clock is so far ahead, and the clock has
# followed it, by a twentieth of a turn in a turn. Of 0 ms: it has not moved.
won() {
	wait "$tracer"
	python3 -IS - "$tmp/turns" "$@" <<-'END' || fail "the job does not have the turns that it ought to"
		import collections, json, sys
		path, least, most = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
		turn_ns, period = 20_000_000, 16
		events = [json.loads(line) for line in open(path)]
		clock = [event for event in events if event["event"] == "clock"]
		begin = events[0]["time_ns"]
		if len(sys.argv) > 4 and clock:
		    begin = clock[0]["time_ns"] + 2 * period * turn_ns
		wins = [e["turn"] for e in events if e["event"] == "turn" and e["won"] and e["cpu"] == 0 and e["time_ns"] >= begin]
		share = 1000 * len(set(wins)) // (max(wins) - min(wins) + 1)
		print(f"{share} of 1000 turns are won, of {max(wins) - min(wins) + 1}")
		assert least <= share <= most, f"it ought to be from {least} to {most}"
		ahead_ns = int(sys.argv[4]) * 1_000_000 if len(sys.argv) > 4 else 0
		if not ahead_ns:
		    assert len(sys.argv) == 4 or not clock, f"the clock was moved: {clock[0]}"
		    sys.exit()
		# The peer needs a ms or two to sign a message, by which its clock seems to be earlier.
		most_ns = max(event["ahead_ns"] for event in clock)
		there = next(event for event in clock if event["ahead_ns"] >= most_ns - turn_ns // 20)
		took = (there["time_ns"] - clock[0]["time_ns"]) / turn_ns
		print(f"the clock is {most_ns} ns ahead at most, and {there['ahead_ns']} ns after {took:.1f} turns")
		assert ahead_ns - 2_500_000 <= most_ns <= ahead_ns + 16_384, "it does not follow the peer's"
		assert took <= 2 * period, "it takes too long"
		steps = collections.Counter()
		for event in clock:
		    steps[(event["time_ns"] + event["ahead_ns"] - event["by_ns"]) // turn_ns] += event["by_ns"]
		turn, by_ns = max(steps.items(), key=lambda step: step[1])
		assert by_ns <= turn_ns // 20, f"the clock goes forward by {by_ns} ns in turn {turn}"
	END
}

# freeze YES: whether the job and its competitors stand still, beside which the scheduler takes long to start
freeze() {
	local group
	for group in job hogs; do echo "$1" >/sys/fs/cgroup/$group/cgroup.freeze; done
}

begin() { start --policy beat "${loops[@]}" --interface lo --node-number 100 --cluster-key "$tmp/key"; }

loop
(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
begin
coproc LIAR { exec chrt --fifo 1 "$tests/liar" "$tmp/key" /job; }
in_group job "$tests/liar" job &
for cpu in 0 1; do hog in_group hogs taskset -c $cpu; done
sleep 3
turns 4
won 400 550 0
turns 5
sleep 1
echo "peer 7 16384" >&"${LIAR[1]}"
won 180 320 7
unwarned

freeze 1
stop
begin
turns 5
sleep 1
freeze 0
won 180 320 7

# What the peer says has a priority of its own, and so a queue of its own.
tc qdisc add dev lo root handle 1: prio
tc qdisc add dev lo parent 1:3 netem delay 50ms 40ms loss 20% duplicate 10%
turns 4
won 180 320
echo silence >&"${LIAR[1]}"
unwarned
kill "$LIAR_PID"
end_groups job hogs
stop
