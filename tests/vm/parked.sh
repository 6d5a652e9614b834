# What the cases of parked tasks share that something else than their message calls: sourced by each after case.sh.
# shellcheck shell=bash disable=SC2154

# A hog's slice of 20 ms, which ends at a tick of 4 ms, twice: until its CPU looks, and until it is the task's turn.
longest=50

# What every program begins with. It runs on CPU 0. A child by fork_to_1() is on CPU 1, beside the hog, where
# ask_in_vain() has it parked.
program='
import ctypes, itertools, mmap, os, signal, socket, time
from functools import partial

libc = ctypes.CDLL(None)
os.sched_setaffinity(0, {0})

def ask_in_vain(times=None):
    any(map((-1).__ne__, itertools.islice(iter(ask, None), times)))

def fork_to_1():
    global ends, ask
    child = os.fork()
    if not child:
        os.sched_setaffinity(0, {1})
        ends = socket.socketpair()    # its own, so that messages there are known to be for it
        ends[1].send(b"?")
        ends[0].recv(1)
        ask = partial(libc.recv, ends[0].fileno(), ctypes.create_string_buffer(1), 1, socket.MSG_DONTWAIT)
    return child
'

# called_within MESSAGE: runs the rest of the program, from standard input, which prints how many ms a task took at most
# that was called. MESSAGE says what it is if that is too long. By itself a parked task would look after a second.
# Whether it is parked when it is called depends on where in the hog's slice that is, so it runs until enough were.
called_within() {
	local rest waited parks=0 runs=0
	rest=$(cat)
	start --policy sb --recheck-ms 1000
	hog taskset -c 1
	while (( parks < 10 )); do
		(( runs++ < 20 )) || fail "$parks parks in 20 runs: this proves nothing"
		waited=$(timeout 60 python3 -IS -c "$program$rest") || fail "$1: it did not end"
		parks=$(counter parks)
		echo "$waited ms at most, $parks parks, $(counter rechecks) rechecks"
		(( waited <= longest )) || fail "$1"
	done
	stop
}
