#!/bin/bash
# A task that asks in vain may be parked with a lock in its hands. If another task waits for that lock, it goes on, and
# gives the lock away. Else it would keep the lock until it looks again by itself, which is a second later here.
#
# The kernel knows who waits for a lock that hands priorities on: as each spin lock does with PREEMPT_RT, and a mutex
# of a program anywhere. This case takes the latter.
. "$(dirname -- "$0")/../case.sh"

# A hog's slice of 20 ms, which ends at a tick of 4 ms, twice: until its CPU looks, and until it is the holder's turn.
longest=50

start --policy sb --recheck-ms 1000
hog taskset -c 1
timeout 60 python3 -IS - >"$tmp/longest" <<'END' || fail "the lock is kept"
import ctypes, itertools, mmap, os, socket, time
from functools import partial

PTHREAD_PROCESS_SHARED = PTHREAD_PRIO_INHERIT = 1
libc = ctypes.CDLL(None)
attributes = ctypes.create_string_buffer(64)
lock = ctypes.byref(ctypes.c_char.from_buffer(mmap.mmap(-1, 4096)))
libc.pthread_mutexattr_init(attributes)
libc.pthread_mutexattr_setpshared(attributes, PTHREAD_PROCESS_SHARED)
libc.pthread_mutexattr_setprotocol(attributes, PTHREAD_PRIO_INHERIT)
libc.pthread_mutex_init(lock, attributes)

holder = os.fork()
if not holder:
    os.sched_setaffinity(0, {1})
    here, there = socket.socketpair()
    there.send(b"?")
    here.recv(1)
    ask = partial(libc.recv, here.fileno(), ctypes.create_string_buffer(1), 1, socket.MSG_DONTWAIT)
    while True:
        libc.pthread_mutex_lock(lock)
        any(map((-1).__ne__, itertools.islice(iter(ask, None), 100)))
        libc.pthread_mutex_unlock(lock)

os.sched_setaffinity(0, {0})
longest = 0
for _ in range(30):
    time.sleep(0.1)
    began = time.monotonic()
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_unlock(lock)
    longest = max(longest, time.monotonic() - began)
print(round(longest * 1000))
os.kill(holder, 9)
END
waited=$(cat "$tmp/longest") parks=$(counter parks)
echo "waited $waited ms at most, $parks parks, $(counter rechecks) rechecks"
(( parks >= 10 )) || fail "the holder was not parked, so this proves nothing"
(( waited <= longest )) || fail "a parked task kept its lock"
stop
