#!/bin/bash
# `trace` shows the arrivals, decisions and switches of a job, as lines, as JSON and as a file for Perfetto: a message
# is followed by a grant with its reason, and that by a boosted run. One can trace at a time, and nobody traces after a
# tracer that was killed or a scheduler that has ended.
. "$(dirname -- "$0")/../case.sh"

# flag: which events the BPF side writes
flag() {
	bpftool --json map | jq '.[] | select(.name // "" | endswith(".bss")) | .id' | while read -r map; do
		bpftool --json map dump id "$map" | jq '.. | objects | select(has("trace_on")) | .trace_on'
	done
}
flag_is() { [[ $(flag) == "$1" ]]; }

# traced: the flag is set, a bit for each of six kinds of events
traced() { eventually 20 flag_is 63 || fail "the flag is $(flag)"; }

# ended CODE PID: the background trace ends with this exit code
ended() {
	local code=0
	wait "$2" || code=$?
	is "$code" "$1" "the trace ended with"
}

start
is "$(flag)" 0 "before anybody traces the flag is"
in_group job "$tests/messages" forever 5000 tcp4/spin udp6/block stream/poll >"$tmp/messages" 2>&1 &
talker=$!
eventually 60 talking 4
for cpu in 0 1; do hog in_group hogs taskset -c $cpu; done
sleep 2

scx_cosched trace --seconds 2 --json --job '/j*b' >"$tmp/trace"
wc --lines <"$tmp/trace"
python3 -IS -c '
import collections, json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
lost = sum(event["count"] for event in events if event["event"] == "lost")
events = [event for event in events if event["event"] != "lost"]
print(lost, "lost,", collections.Counter(event["event"] for event in events))
assert {event["job"] for event in events} == {"/job"}, "another job"
assert {event["cpu"] for event in events} == {0, 1}, "another CPU"
of = lambda kind: [event for event in events if event["event"] == kind]
assert {event["endpoint"] for event in of("arrival")} == {"tcp", "udp", "unix"}, "an endpoint is missing"
assert {event["running"] for event in of("arrival")} == {True, False}, "all arrivals found their receiver alike"
assert {event["granted_ns"] > 0 for event in of("decision") if event["granted"]} == {True}, "no grant has a length"
assert {event["reason"] for event in of("decision") if event["granted"]} == {"below_target"}, "another reason"
assert any(event["boosted"] for event in of("switch_in")), "no boosted run"
assert any(event["ran_ns"] for event in of("switch_out")), "nobody has run"

# Message, grant, run: of one task, and with nothing else of it in between.
last = collections.defaultdict(str)
chains = 0
for event in sorted(events, key=lambda event: event["time_ns"]):
    arrived = event["event"] == "arrival" and not event["running"]
    granted = event.get("granted") and last[event["pid"]] == "a"
    ran = event["event"] == "switch_in" and event["boosted"] and last[event["pid"]] == "g"
    chains += bool(ran)
    last[event["pid"]] = "a" if arrived else "g" if granted else ""
print(chains, "messages were granted a boost and ran their receiver")
assert chains > 10, "hardly any message ran its receiver"' "$tmp/trace"

scx_cosched trace --seconds 2 --events decisions,switches >"$tmp/trace"
head -n 20 "$tmp/trace"
for wanted in 'granted   below_target, for .* /job$' 'in        boosted .* /job$' 'in        in the fair order .* /hogs$' \
	'out       .* after .* ms.* /job$'; do
	grep -Eq "$wanted" "$tmp/trace" || fail "no line '$wanted'"
done
! grep -q arrival "$tmp/trace" || fail "there are arrivals, which nobody wanted"

for file in one two; do
	scx_cosched trace --job /job --perfetto "$tmp/$file" &
	tracer=$!
	eventually 20 test -s "$tmp/$file"
	sleep 1
	kill -INT "$tracer"
	ended 0 "$tracer"
done

# What has happened by the end is written, however far behind the trace is.
scx_cosched trace --events arrivals --json >"$tmp/late" &
tracer=$!
eventually 20 test -s "$tmp/late"
kill -STOP "$tracer"
behind=$(wc --lines <"$tmp/late") before=$(counter arrivals)
have_come() { (( $(counter arrivals) - before >= 10000 )); }
eventually 60 have_come
kill -INT "$tracer"
kill -CONT "$tracer"
ended 0 "$tracer"
behind=$(($(wc --lines <"$tmp/late") - behind))
echo "behind by 10000 arrivals, the trace has written $behind more"
(( behind >= 10000 )) || fail "a trace that is behind ends without what has happened"

quiet
kill "${hogs[@]}"

# Each by itself, and both together, as one would with those of two nodes.
python3 -IS -c '
import collections, itertools, json, sys

def check(events):
    of = lambda ph: [event for event in events if event["ph"] == ph]
    print(collections.Counter(event["ph"] + " " + event.get("cat", event["name"]) for event in events))
    names = {event["args"]["name"] for event in of("M") if event["name"] == "thread_name"}
    assert names == {"CPU 0", "CPU 1"}, names
    assert len({event["pid"] for event in events}) == 1, "a node has two numbers"
    assert {event["args"]["job"] for event in of("X")} == {"/job"}, "another job"
    assert sum(event["cat"] == "boosted" for event in of("X")) > 10, "hardly any boosted run"
    for _, runs in itertools.groupby(sorted(of("X"), key=lambda run: (run["tid"], run["ts"])), lambda run: run["tid"]):
        for one, next in itertools.pairwise(runs):
            assert one["ts"] + one["dur"] <= next["ts"], f"two run at once: {one} {next}"
    return of

files = [json.load(open(path))["traceEvents"] for path in sys.argv[1:]]
for file in files:
    of = check(file)
    arrivals = {(event["tid"], event["ts"]) for event in of("i") if event["cat"] == "arrival"}
    begins = {event["id"]: (event["tid"], event["ts"]) for event in of("s")}
    runs = {(event["tid"], event["ts"]) for event in of("X")}
    ends = of("f")
    assert len(ends) > 10, "hardly any arrow"
    for end in ends:
        assert begins[end["id"]] in arrivals and (end["tid"], end["ts"]) in runs, f"an arrow leads elsewhere: {end}"
check(files[0] + files[1])' "$tmp/one" "$tmp/two"

scx_cosched trace >"$tmp/trace" &
tracer=$!
traced
! scx_cosched trace --perfetto "$tmp/none" 2>"$tmp/error" || fail "two trace at once"
is "$(cat "$tmp/error")" "scx_cosched: error: process $tracer traces already (one can at a time: end that one first)"
[[ ! -e $tmp/none ]] || fail "a trace that is refused writes a file"
kill -KILL "$tracer"
ended 137 "$tracer"
eventually 3 flag_is 0 || fail "3 s after the tracer was killed the flag is $(flag)"
ring() { bpftool --json map | jq '[.[] | select(.name == "trace_ring")] | length'; }
ring_is() { [[ $(ring) == "$1" ]]; }
eventually 5 ring_is 0 || fail "$(ring) rings are left"

scx_cosched trace >"$tmp/trace" 2>"$tmp/error" &
tracer=$!
traced
stop
ended 1 "$tracer"
is "$(cat "$tmp/error")" \
	"scx_cosched: error: the scheduler has ended or was loaded again, and the trace with it (start it again)"
unwarned
