#!/bin/bash
# A task that asks in vain may be parked with a lock in its hands. If another task waits for that lock, it goes on, and
# gives the lock away. Else it would keep the lock until it looks again by itself, which is a second later here.
#
# The kernel knows who waits for a lock that hands priorities on: as each spin lock does with PREEMPT_RT, and a mutex
# of a program anywhere. This case takes the latter.
. "$(dirname -- "$0")/../case.sh"
. "$(dirname -- "$0")/../parked.sh"

called_within "a parked task kept its lock" <<'END'
PTHREAD_PROCESS_SHARED = PTHREAD_PRIO_INHERIT = 1
attributes = ctypes.create_string_buffer(64)
lock = ctypes.byref(ctypes.c_char.from_buffer(mmap.mmap(-1, 4096)))
libc.pthread_mutexattr_init(attributes)
libc.pthread_mutexattr_setpshared(attributes, PTHREAD_PROCESS_SHARED)
libc.pthread_mutexattr_setprotocol(attributes, PTHREAD_PRIO_INHERIT)
libc.pthread_mutex_init(lock, attributes)

holder = fork_to_1()
while not holder:
    libc.pthread_mutex_lock(lock)
    ask_in_vain(100)
    libc.pthread_mutex_unlock(lock)

longest = 0
for _ in range(30):
    time.sleep(0.1)
    began = time.monotonic()
    libc.pthread_mutex_lock(lock)
    libc.pthread_mutex_unlock(lock)
    longest = max(longest, time.monotonic() - began)
print(round(longest * 1000))
os.kill(holder, signal.SIGKILL)
END
