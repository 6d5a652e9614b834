#!/bin/bash
# Every message is seen as one arrival for the task that receives it: on TCP, UDP and Unix sockets, IPv4 and IPv6,
# however the receiver waits. And one that has been read is no demand any more.
#
# One of two tasks is sent two messages for each that it answers, so it has two thirds of the arrivals. An arrival that
# counts for the sender, or for another task, would show.
. "$(dirname -- "$0")/../case.sh"

# follow: trace arrivals, until "followed"
follow() {
	scx_cosched trace --events arrivals --json --job /case >"$tmp/trace" &
	tracer=$!
	eventually 20 tracing || fail "nobody traces"
}
tracing() { bpftool --json map | jq -e 'any(.[]; .name == "trace_ring")' >/dev/null; }
followed() {
	sleep 1
	kill -INT $tracer
	wait $tracer
}

# received TRIPS KIND...: of each kind, in the order of time, the last TRIPS round trips had three arrivals, each for
# its receiver; give or take 4%, since the scheduler has messages too
received() {
	python3 -IS - "$tmp/trace" "$@" <<'END' || fail "arrivals are missing, or are not those of their receivers"
import json, sys
path, trips, *kinds = sys.argv[1:]
trips = int(trips)
events = [json.loads(line) for line in open(path)]
wrong = sum(event["count"] for event in events if event["event"] == "lost")
print(f"{len(events)} events, {wrong} lost")
arrivals = [(event["comm"], event["endpoint"]) for event in events if event["event"] == "arrival"]
endpoints = {"t": "tcp", "u": "udp", "s": "unix", "d": "unix"}
for kind in kinds:
    ends = [(f"{kind}:{cpu}", endpoints[kind[0]]) for cpu in (0, 1)]
    when = [i for i, arrival in enumerate(arrivals) if arrival in ends]
    last = [arrival for arrival in arrivals[:when[-1] + 1] if arrival[1] == ends[0][1]][-3 * trips:] if when else []
    asks, answers = (last.count(end) for end in ends)
    print(f"{kind}: of {3 * trips} arrivals {asks} are for the one that asks, {answers} for the one that answers")
    wrong += abs(asks - trips) * 25 > trips or abs(answers - 2 * trips) * 25 > 2 * trips
sys.exit(bool(wrong))
END
}

sleepers=({tcp4,tcp6,udp4,udp6,stream,dgram}/{block,poll,epoll} {tcp4,udp6}/{worker,uring} {stream,dgram}/spin)
start --gate always
# Nobody has asked for those (wakes_are_arrivals).
is "$(scx_cosched status --json | jq '[.hooks | .attached, .missing | .[] | select(. == "on_waking")] | length')" 0 \
	"hooks on wake-ups:"
"$tests/wakes" pipe 0.5 || fail "a wake-up by a pipe is lost"
is "$(scx_cosched status --json | jq '.endpoint_arrivals.pipe // 0')" 0 "arrivals through a pipe:"
follow
# shellcheck disable=SC2046
"$tests/messages" 150 5000 $(printf '%s/0/halves then ' "${sleepers[@]:1}") "${sleepers[0]}/0/halves"
followed
received 100 "${sleepers[@]}"

# One that has not made its TCP or UDP socket, and never sleeps there, is found when a look comes upon it in a receive,
# in poll or in select, or when it has epoll watch the socket; until then arrivals count for the task that has made it.
spinners=({tcp,udp}{4,6}/spin {tcp,udp}4/{poll0,select0,epoll0})
compete
follow
# shellcheck disable=SC2046
"$tests/messages" 1s 5000 $(printf '%s/0/halves then ' "${spinners[@]:1}") "${spinners[0]}/0/halves"
followed
received 100 "${spinners[@]}"
drop

# A datagram is seen while its receiver holds the socket's lock, as it does while it puts together a long one itself.
udp() { scx_cosched status --json | jq .endpoint_arrivals.udp; }
before=$(udp)
python3 -IS -c '
import os, socket, time
receiver, sender, sink = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(3))
receiver.bind(("127.0.0.1", 0))
sink.bind(("127.0.0.1", 0))
sending = os.fork()
if not sending:
    os.sched_setaffinity(0, {0})
    piece, to = bytes(60000), sink.getsockname()
    while True:
        receiver.sendto(piece, socket.MSG_MORE, to)
        receiver.sendto(b"", to)
os.sched_setaffinity(0, {1})
time.sleep(0.2)
for _ in range(200):
    sender.sendto(b"?", receiver.getsockname())
    time.sleep(0.001)
os.kill(sending, 9)'
seen=$(($(udp) - before))
echo "of 200 datagrams for a socket that sends, $seen are seen"
(( seen >= 195 && seen <= 220 )) || fail "datagrams are not seen while their socket is locked"

# A message that another thread has read has not waited until its receiver runs again.
late() {
	curl --silent --fail "http://$metrics/metrics" | awk '
		/^scx_cosched_arrival_to_run_seconds_bucket/ && /le="0.524288"/ { within = $2 }
		/^scx_cosched_arrival_to_run_seconds_count/ { all = $2 }
		END { print all - within }'
}
before=$(late)
python3 -IS -c '
import socket, threading, time
here, there = socket.socketpair()
def receive():
    here.recv(1)
    time.sleep(2)
receiver = threading.Thread(target=receive)
receiver.start()
time.sleep(0.2)
there.send(b"?")
for _ in range(40):
    time.sleep(0.02)
    there.send(b"?")
    here.recv(1, socket.MSG_DONTWAIT)
receiver.join()'
after=$(late)
echo "messages that have waited for longer than half a second: $before before, $after after"
[[ -n $before ]] && (( after == before )) || fail "a message has waited that another thread has read"

# A receiver that spins on the socket that it has emptied has nothing to be boosted for.
hog taskset -c 0
before=$(granted)
taskset -c 0 python3 -IS -c '
import socket, time
here, there = socket.socketpair()
there.send(b"message")
here.recv(7)
here.setblocking(False)
end = time.monotonic() + 3
while time.monotonic() < end:
    try:
        here.recv(7)
    except BlockingIOError:
        pass'
boosts=$(($(granted) - before))
echo "boosts without a message: $boosts"
(( boosts < 20 )) || fail "a receiver was boosted that had no message"
stop
