#!/bin/bash
# A thread that polls memory and says so leaves its CPU to whoever computes there, and returns as soon as another thread
# of its process says that there is something for it; or by itself, after the recheck time. Who says that there is
# something when there is nothing has no more than his share of the CPU, and who says that he waits and computes, less.
# Processes of any user may say so, in containers too, of their own threads alone.
. "$(dirname -- "$0")/../case.sh"

hinter=/usr/local/bin/hinter
install target/release/hinter target/release/libcosched.so.0 /usr/local/bin/
hints=/run/scx_cosched-hints.sock
nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups)

hinted() { scx_cosched status --json | jq ".hinted.$1"; }
heard() { [[ $(hinted threads) == "$1" ]]; }

# beside MODE LEAST MOST: its share of a CPU that somebody who computes wants too
beside() {
	: >"$tmp/said"
	"${nobody[@]}" taskset -c 1 $hinter "$1" >"$tmp/said" &
	local pid=$!
	eventually 30 grep -q heard "$tmp/said" || fail "$1 is not heard"
	heard 1 || fail "$(hinted threads) threads are heard, and not 1"
	sleep 1
	of 3 $pid "${hogs[0]}"
	kill $pid
	wait $pid 2>/dev/null || true
	echo "$1: ${shares[0]}%, beside it ${shares[1]}%"
	(( shares[0] >= $2 && shares[0] <= $3 && shares[1] >= 95 - $3 )) || return 1
	eventually 10 heard 0 || fail "$1 has ended and counts on"
}

# finds MODE LEAST MOST: how long something is there before it is found, in ms
finds() {
	local ms
	ms=$($hinter "$1" 300 5 | tail -n 1) || fail "$1 ends with $?"
	echo "$1: found after $ms ms at most"
	(( ms >= $2 && ms <= $3 ))
}

start --policy dcs-sb --recheck-ms 1000 --hints-socket $hints
is "$(stat -c %a $hints)" 666 "the mode of the socket is"
taskset -c 1 $hinter waits >"$tmp/said" &
waiter=$!
eventually 30 grep -q heard "$tmp/said" || fail "it is not heard"
of 2 $waiter
kill $waiter
echo "waits alone: ${shares[0]}%"
(( shares[0] > 80 )) || fail "it does not run though nobody else wants to"

hog taskset -c 1
beside waits 0 12 || fail "it does not leave the CPU"
beside lies 38 55 || fail "it has more or less than its share"
beside waits-and-lies 38 55 || fail "it has more than its share"
(( $(counter parks) > 0 )) || fail "nobody was parked, so this proves nothing"

# A tick or two until it is noticed, and a slice of 20 ms, which ends at a tick, if the gate says no.
finds woken 0 100 || fail "it did not return when it was told to"
finds unwoken 200 1500 || fail "it did not return by itself, or was not away"

# More threads than there are places: the rest is not heard. And in a container.
$hinter crowd 70 &
crowd=$!
eventually 30 heard 64 || fail "$(hinted threads) threads of 70 are heard"
is "$(hinted processes)" 1 "processes that are heard:"
unshare --pid --fork --mount-proc --kill-child $hinter waits &
contained=$!
eventually 30 heard 65 || fail "it is not heard out of a container"
is "$(hinted processes)" 2 "processes that are heard:"

# What is no request ends the connection, and a thread of others is none of ours.
python3 -IS - $hints <<'END' || fail "what is wrong is not refused"
import os, socket, struct, sys
def ask(*messages):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(sys.argv[1])
    answers = []
    for message in messages:
        s.send(message)
        answers.append(struct.unpack("Ii", s.recv(64))[1])
    return answers, s
def request(magic=0x31484353, thread=os.getpid(), slot=0, reserved=0):
    return struct.pack("4I", magic, thread, slot, reserved)
EPROTO, ESRCH = 71, 3
for bad in [b"x", b"x" * 16, b"x" * 4000, request(magic=0), request(slot=64), request(slot=2**32 - 1), request(reserved=1),
            request() + b"x"]:
    answers, s = ask(bad)
    assert answers == [EPROTO] and s.recv(64) == b"", (bad, answers)
for thread in [1, 0, 2**31, 2**32 - 1, os.getppid()]:
    assert ask(request(thread=thread))[0] == [ESRCH], thread
assert ask(request(), request(thread=1), request(slot=63))[0] == [0, ESRCH, 0]
END

# Whoever keeps pages that he has hung up on takes memory: he gets half of all there may be, and none more until he lets
# go.
"${nobody[@]}" python3 -IS - $hints <<'END' || fail "the memory of pages has no bound"
import os, socket, struct, sys, time
def page():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(10)
    s.connect(sys.argv[1])
    s.send(struct.pack("4I", 0x31484353, os.getpid(), 0, 0))
    message, fds, *_ = socket.recv_fds(s, 64, 1)
    return struct.unpack("Ii", message)[1], fds
EUSERS, kept = 87, []
while (answer := page())[0] == 0:
    kept += answer[1]
assert answer[0] == EUSERS and len(kept) == 512, (answer, len(kept))
for fd in kept:
    os.close(fd)
until = time.monotonic() + 10
while page()[0] and time.monotonic() < until:
    time.sleep(0.1)
assert page()[0] == 0
END

# What another program does is not for those to say who have the page: it may have other rights.
python3 -IS - $hints "$tmp/go" <<'END' &
import os, socket, struct, sys, time
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(sys.argv[1])
s.send(struct.pack("4I", 0x31484353, os.getpid(), 0, 0))
assert struct.unpack("Ii", s.recv(64))[1] == 0
s.set_inheritable(True)
while not os.path.exists(sys.argv[2]):
    time.sleep(0.05)
os.execv("/bin/sleep", ["sleep", "60"])
END
program=$!
eventually 10 heard 66 || fail "$(hinted threads) threads are heard with one more"
touch "$tmp/go"
eventually 10 heard 65 || fail "another program is heard in its place"
kill $program

kill -KILL $contained    # it takes its child with it, and ignores a polite request
eventually 10 heard 64 || fail "$(hinted threads) threads are heard when the others are gone"
stop

[[ ! -e $hints ]] || fail "the socket stays"
