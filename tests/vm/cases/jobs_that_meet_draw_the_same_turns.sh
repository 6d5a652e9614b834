#!/bin/bash
# Under beat two CPUs that stand for two nodes draw the same job for a turn, though neither tells the other. A job that
# spins beside four competitors on each has its fair share, within 5%, and three quarters of what it could make of it.
. "$(dirname -- "$0")/../case.sh"

# Two processes that pass a message to and fro, one on each CPU, and never sleep.
pair='
import os, socket
ends = socket.create_server(("127.0.0.1", 7099)), None
ends = socket.create_connection(("127.0.0.1", 7099)), ends[0].accept()[0]
at = 0 if os.fork() else 1
os.sched_setaffinity(0, {at})
ends[at].setblocking(False)
ends[at].setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if at == 0:
    ends[at].send(b"x")
while True:
    try:
        ends[at].send(ends[at].recv(1))
    except BlockingIOError:
        pass'

scx_cosched bench policies --scenarios spin-4 --schedulers beat --repeats 1 --seconds 6 \
	--out "$tmp/summary.json" >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"
jq -r '.results[] | [.scenario, .scheduler, .fairness, .competitor_fairness_min, .efficiency,
	(.runs[].round_trips_per_s)] | @tsv' "$tmp/summary.json"
jq -e '.results[] | select(.scenario == "spin-4" and .scheduler == "beat")
	| .efficiency >= 0.75 and .fairness >= 0.95 and .fairness <= 1.05 and .competitor_fairness_min >= 0.95' \
	"$tmp/summary.json" || fail "turns by beat do not pay"

start --policy beat
compete 4
in_group pair python3 -IS -c "$pair" &
sleep 8
read -r turns won alike unlike < <(scx_cosched status --json |
	jq -r '.counters | "\(.turns) \(.turns_won) \(.turns_alike) \(.turns_unlike)"')
echo "$turns turns drawn, $won of them won, $alike on both CPUs, $unlike on one"
(( alike > 30 )) || fail "only $alike turns were won on both CPUs"
(( unlike * 20 <= alike )) || fail "more than a twentieth of the turns were for different jobs"
drop
end_groups pair

# A job has its turns for all of its tasks. If most of them sleep, those that ask all the time do not have the turns of
# the others, at the cost of the tasks beside them: each has at least its fifth of the CPU.
talk 60000 tcp4/spin stream/spin tcp4/block udp4/block
hog taskset -c 0
hog taskset -c 1
sleep 4
mapfile -t used < <(usage 6 "${hogs[@]}")
echo "beside a job that sleeps and spins: ${used[*]} us of 6 s"
for us in "${used[@]}"; do
	(( us > 1100000 )) || fail "a task that computes had $us us of 6 s"
done
quiet
drop

# A task of such a job that computes and never communicates waits for its round, as the others do: 25 slices of 20 ms.
mapfile -t pairs < <(yes tcp4/spin | head -n 24)
talk 60000 "${pairs[@]}"
sleep 4    # two periods
longest=$(taskset -c 0 "$LOADS" crowd 1 10)
echo "beside 24 tasks of its job that spin, a task that computes waits for at most $longest ms"
(( longest <= 1000 )) || fail "a task that computes waited for $longest ms beside 24 of its job that communicate"
quiet
stop
