#!/bin/bash
# Under beat a node takes over clock and theta of a peer that joins late, within the time that docs/beat.md says. So does
# a node whose scheduler starts while its job runs. A job with a peer on a node that does not draw has demand instead,
# and makes what it makes under dcs-sb.
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
		    steps[(event["time_ns"] + event["ahead_ns"]) // turn_ns] += event["by_ns"]
		assert max(steps.values()) <= 1.05 * turn_ns / 20, "the clock leaps"
	END
}

# rate POLICY: how many round trips a second a pair makes whose other end is on a node that does not draw: CPU 1, where
# it has every second turn of 20 ms
rate() {
	scx_cosched policy set "$1"
	in_group pair "$tests/messages" 5s 60000 far4/spin >"$tmp/rate" &
	pair=$!
	eventually 20 pgrep -f far4/spin:1 >/dev/null
	chrt --rr --pid 1 "$(pgrep -f far4/spin:1)"
	wait "$pair" || fail "the messages failed: $(cat "$tmp/rate")"
	read -r _ trips _ <"$tmp/rate"
	echo "$1: $trips round trips in 5 s"
}

join
loop
(umask 077 && printf '%032x\n' 12345 >"$tmp/key")
begin() {
	start --policy beat "${loops[@]}" --peer 10.77.1.0/24 --interface lo --node-number 100 --cluster-key "$tmp/key"
}
begin
coproc LIAR { exec chrt --fifo 1 "$tests/liar" "$tmp/key" /job; }
in_group job "$tests/liar" job &
for cpu in 0 1; do in_group hogs taskset -c $cpu sh -c 'while :; do :; done' & done
sleep 3
turns 4
won 400 550 0
turns 5
sleep 1
echo "peer 7 16384" >&"${LIAR[1]}"
won 180 320 7
stop
begin
sleep 1
turns 4
won 180 320
scx_cosched status --json | jq -e '.clock_ahead_seconds | . >= 0.0045 and . < 0.0071' ||
	fail "a node whose scheduler begins does not follow the clock of its peer"
echo silence >&"${LIAR[1]}"
sleep 1
turns 3
won 400 550 0
end_groups job hogs

echo 20 >/proc/sys/kernel/sched_rr_timeslice_ms
in_group hogs taskset -c 0 sh -c 'while :; do :; done' &
in_group hogs chrt --rr 1 taskset -c 1 sh -c 'while :; do :; done' &
best=0 worst=1000000
for _ in 1 2; do
	rate dcs-sb
	(( trips <= best )) || best=$trips
	rate beat
	(( trips >= worst )) || worst=$trips
done
(( worst * 10 >= best * 8 )) || fail "a job with a node that does not draw makes less than by demand"
unwarned
end_groups hogs
stop
