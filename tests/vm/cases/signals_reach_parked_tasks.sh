#!/bin/bash
# A signal to a parked task is not put off until the task looks again by itself, which is a second later here.
. "$(dirname -- "$0")/../case.sh"

# A hog's slice of 20 ms, which ends at a tick of 4 ms, twice: until its CPU looks, and until it is the task's turn.
longest=50

start --policy sb --recheck-ms 1000
hog taskset -c 1
python3 -IS - >"$tmp/longest" <<'END' || fail "no poller ran"
import ctypes, os, signal, socket, time
from functools import partial

libc = ctypes.CDLL(None)
os.sched_setaffinity(0, {0})
longest = 0
for number in [signal.SIGKILL, signal.SIGTERM] * 5:
    poller = os.fork()
    if not poller:
        os.sched_setaffinity(0, {1})
        here, there = socket.socketpair()
        there.send(b"?")
        here.recv(1)
        ask = partial(libc.recv, here.fileno(), ctypes.create_string_buffer(1), 1, socket.MSG_DONTWAIT)
        any(map((-1).__ne__, iter(ask, None)))
    time.sleep(0.25)
    began = time.monotonic()
    os.kill(poller, number)
    os.waitpid(poller, 0)
    longest = max(longest, time.monotonic() - began)
print(round(longest * 1000))
END
waited=$(cat "$tmp/longest") parks=$(counter parks)
echo "$waited ms at most, $parks parks, $(counter rechecks) rechecks"
(( parks >= 10 )) || fail "the pollers were not parked, so this proves nothing"
(( waited <= longest )) || fail "a signal took too long"
stop
