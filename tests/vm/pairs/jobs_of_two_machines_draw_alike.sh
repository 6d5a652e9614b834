#!/bin/bash
# Under beat a job of two machines draws alike on both, by what its messages tell: the least theta of the two, and the
# later clock. Without peers each machine goes by its own, and the job has more turns where there is less of a crowd.
# The job is there before the scheduler, whose restart does not end its news.
#
# The clock of node 1 is 7 ms ahead of that of node 0. COSCHED_APART_US=1000 has it so many us ahead, and
# COSCHED_DRIFT_PPM=500 has it gain so many us in a second besides.
set -Eeuo pipefail
# shellcheck source=../common.sh
. "$(dirname -- "$0")/../common.sh"
apart_us=${COSCHED_APART_US:-7000} drift_ppm=${COSCHED_DRIFT_PPM:-0}

mkdir -p /run/bin
install target/release/scx_cosched{,-bench} "$here"/{mpi-remote,mpi-task} /run/bin/
export PATH=/run/bin:$PATH
# shellcheck source=../nodes.sh
. "$here/nodes.sh"

# Two processes that pass a message to and fro for ever, and never sleep.
cat >$tmp/pair.py <<'END'
import socket, sys
server = len(sys.argv) < 2
end = socket.create_server(("", 7100)).accept()[0] if server else socket.create_connection((sys.argv[1], 7100))
end.setblocking(False)
end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
if server:
    end.send(b"x")
while True:
    try:
        end.send(end.recv(1))
    except BlockingIOError:
        pass
END

# How far the clock of the one that connects is ahead of the other's, in us, by the quickest of a hundred answers. Given
# two numbers, sets it so far ahead first, and has it gain so many us in a second.
cat >$tmp/clock.py <<'END'
import ctypes, socket, struct, sys, time
ADJ_FREQUENCY = 2
def gain(ppm):
    timex = ctypes.create_string_buffer(struct.pack("I4xqq", ADJ_FREQUENCY, 0, ppm << 16), 256)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.adjtimex(timex) < 0:
        sys.exit(f"adjtimex: errno {ctypes.get_errno()}")
def ahead(end):
    tries = []
    for _ in range(100):
        begin = time.monotonic_ns()
        end.send(b"?")
        there, = struct.unpack("q", end.recv(8))
        took = time.monotonic_ns() - begin
        tries.append((took, time.time_ns() - there - took // 2))
    return min(tries)[1]
if len(sys.argv) < 2:
    server = socket.create_server(("", 7101))
    while True:
        end = server.accept()[0]
        while end.recv(1):
            end.send(struct.pack("q", time.time_ns()))
else:
    end = socket.create_connection((sys.argv[1], 7101))
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if len(sys.argv) > 2:
        by = int(sys.argv[2]) * 1000 - ahead(end)
        time.clock_settime_ns(time.CLOCK_REALTIME, time.time_ns() + by)
        gain(int(sys.argv[3]))
    print(ahead(end) // 1000)
END
meet

on() { mpi-remote "${nodes[$1]}" "$2"; }
# begin NODE COMMAND: in the background there, until "over"
begin() { on "$1" "(exec setsid $2 >$tmp/said 2>&1) & echo \$! >>$tmp/begun"; }
over() { everywhere "kill \$(cat $tmp/begun) 2>/dev/null; rm -f $tmp/begun"; }
listens() { until on 0 "ss -Hltn 'sport = $1' | grep -q ."; do sleep 0.2; done; }

# freeze YES: whether the job and its competitors stand still. Beside them the scheduler starts for minutes.
freeze() { everywhere "for group in /sys/fs/cgroup/pair /sys/fs/cgroup/hog*; do echo $1 >\$group/cgroup.freeze; done"; }

# won NODE: the turns that have been drawn there so far, and those that the job has won
won() { on "$1" "scx_cosched status --json | jq -r '.counters | \"\(.turns) \(.turns_won)\"'"; }

# wins FLAG...: has both nodes schedule so, while the job goes on, and sets the array wins to how many of a thousand
# turns it wins on either
wins() {
	local node now before=()
	freeze 1
	schedule --policy beat "$@"
	freeze 0
	sleep 3
	for node in 0 1; do before[node]=$(won $node); done
	sleep 10
	for node in 0 1; do
		now=$(won $node)
		wins[node]=$((1000 * (${now#* } - ${before[node]#* }) / (${now% *} - ${before[node]% *})))
	done
	echo "${*:-without peers}: of a thousand turns the job wins ${wins[*]}"
}

begin 0 "python3 -IS $tmp/clock.py"
listens 7101
begun_us=$(on 1 "python3 -IS $tmp/clock.py ${nodes[0]} $apart_us $drift_ppm")
everywhere "umask 077; printf '%032x\n' 12345 >$tmp/key"
begin 0 "mpi-task pair python3 -IS $tmp/pair.py"
listens 7100
begin 1 "mpi-task pair python3 -IS $tmp/pair.py ${nodes[0]}"
begin 0 "mpi-task hog1 sh -c 'while :; do :; done'"
for i in 1 2 3; do begin 1 "mpi-task hog$i sh -c 'while :; do :; done'"; done

# The job's connection is older than either scheduler.
wins
alone=("${wins[@]}")
wins --peer 10.77.0.0/24 --cluster-key $tmp/key
heard=() refused=() ahead=()
for node in 0 1; do
	read -r "heard[node]" "refused[node]" "ahead[node]" < <(on $node "scx_cosched status --json |
		jq -r '\"\(.counters.news_heard) \(.counters.epochs_refused) \(.clock_ahead_seconds * 1e6 | round)\"'")
done
freeze 1
ended_us=$(on 1 "python3 -IS $tmp/clock.py ${nodes[0]}")
freeze 0
echo "news heard ${heard[*]}, refused ${refused[*]}; clocks ahead of TAI by ${ahead[*]} us;" \
	"that of node 1 is $begun_us us ahead of that of node 0, at the end $ended_us"
over
schedule
everywhere "! grep -E 'warning|error|panicked' $tmp/loader.log"
(( heard[0] > 100 && heard[1] > 100 )) || die "news do not cross the wire"
[[ ${refused[*]} == "0 0" ]] || die "news of a peer are refused"
(( alone[0] * 2 >= alone[1] * 3 )) || die "without peers the crowd of node 1 shows on node 0 too"
(( wins[0] * 4 <= wins[1] * 5 && wins[1] * 4 <= wins[0] * 5 )) || die "the job does not draw alike on both nodes"
# A clock goes forward by 1 ms in a turn at most, and back by 10 us. A message takes a ms or two under emulation.
(( ended_us >= apart_us - 3000 )) || die "the clocks do not run at the same rate"
# Before the last look at the clocks up to ten seconds pass, in which one that drifts goes on.
(( ahead[0] >= ended_us - 3000 - 10 * drift_ppm && ahead[0] <= ended_us + 2000 && ahead[1] <= 2000 )) ||
	die "the clock of node 0 does not follow that of node 1"
