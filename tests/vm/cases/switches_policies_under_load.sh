#!/bin/bash
# Policies are switched at random while messages flow and hogs run: no message is lost or late, and the scheduler stays
# the same one. For 20 seconds, or with COSCHED_SOAK=1 a thousand times.
#
# A round trip waits four times at most, since either side may lose its CPU between a message and the answer, each time
# for each of the 6 others on its CPU: three pairs, a hog, the loader and its client. They have one turn each in the
# fair order, of 2 ms and what is left of a tick of 4 ms, and as boosted ones 8 slices: 4 * 6 * (6 + 16) = 528 ms. While
# hooks rest a parked task has its message when it looks again, 50 ms later. A switch forgives what boosted ones owe, so
# that they may go on for another 8 slices: 6 * 16 = 96 ms. There are 4 a second at most, which makes 578 / (1 - 0.096 *
# 4).
. "$(dirname -- "$0")/../case.sh"

longest=$(( (528 + 50) * 1000 / (1000 - 96 * 4) ))
seed=${COSCHED_SEED:-1}
if (( ${COSCHED_SOAK:-0} )); then length=(1000 0); else length=(30 20); fi

# switch: to another preset at random, so often at least and for so many seconds. Each has slices of 2 ms, and rows have
# turns as short. Those without hooks come seldom: on a busy machine it takes seconds to attach all hooks, and as long
# to detach them, which may be longer than whoever asks for it waits.
switch() {
	python3 -IS -c '
import json, random, socket, sys, time
seed, least, seconds, *presets = sys.argv[1:]
random = random.Random(seed)
weights = [1 if preset in ("local", "gang") else 4 for preset in presets]
end = time.monotonic() + float(seconds)
switches = 0
while switches < int(least) or time.monotonic() < end:
    preset = random.choices(presets, weights)[0]
    change = {"name": preset, "slice_us": 2000}
    if preset == "gang":
        change |= {"quantum_ms": 2, "rows": 2}
    with socket.socket(socket.AF_UNIX) as scheduler:
        scheduler.connect("'$socket'")
        scheduler.send(json.dumps({"request": "set_policy", "change": change}).encode() + b"\n")
        answer = json.loads(scheduler.makefile().readline())
    if "not answered" in answer.get("error", ""):
        continue
    assert "ok" in answer, answer
    assert answer["ok"]["name"].startswith(preset) and answer["ok"]["slice_us"] == 2000, answer
    switches += 1
    time.sleep(0.25)
print(f"{switches} switches of {len(presets)} presets, seed {seed}")' "$seed" "${length[@]}" "${presets[@]}"
}

# soak: true if no message is lost or late meanwhile
soak() {
	local code=0
	talk $longest tcp4/spin tcp6/poll0 udp4/block stream/recv0
	switch || fail "a switch failed (seed $seed)"
	hang_up || code=1
	cat "$tmp/messages"
	return $code
}

start
mapfile -t presets < <(scx_cosched policy list --json | jq -r '.[].name')
for cpu in 0 1; do hog in_group hogs taskset -c $cpu; done
before=$(restarts)
soak || fail "a message was late (seed $seed)"
runs
is "$(restarts)" "$before" "enable_seq is"
is "$(cat /sys/kernel/sched_ext/nr_rejected)" 0 "tasks rejected:"
scx_cosched status --json >"$tmp/status"
jq -e '.counters.arrivals > 1000 and .counters.parks > 0 and ([.jobs[].job] | contains(["/case", "/hogs"]))' "$tmp/status" >/dev/null ||
	fail "$(cat "$tmp/status")"
stop
unwarned
