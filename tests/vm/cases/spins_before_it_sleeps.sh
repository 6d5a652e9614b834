#!/bin/bash
# Under the wait rule "spin" a blocking receive whose peer runs has its message
# without a switch. One that waits in vain, because its peer is slow or shares its
# CPU, hardly spins; a real-time task and a task under "busy" never do.
. "$(dirname -- "$0")/../case.sh"

# pass COUNT GAP_MS CPU: COUNT round trips over TCP with blocking receives
# between CPU 0 and CPU, each message GAP_MS late. Sets spins and answered to what that made of
# the counters.
pass() {
	local spins_before answered_before
	spins_before=$(counter spins) answered_before=$(counter spins_answered)
	${as:-} taskset -c 0 python3 -IS -c '
import os, socket, sys, time
count, gap, cpu = int(sys.argv[1]), float(sys.argv[2]) / 1000, int(sys.argv[3])
with socket.create_server(("127.0.0.1", 0)) as server:
    here = socket.create_connection(server.getsockname())
    there = server.accept()[0]
for end in here, there:
    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
child = os.fork()
os.sched_setaffinity(0, {0 if child else cpu})
for _ in range(count):
    if child:
        time.sleep(gap) if gap else None
        here.send(b"?")
        assert here.recv(1) == b"!"
    else:
        assert there.recv(1) == b"?"
        time.sleep(gap) if gap else None
        there.send(b"!")
if child:
    assert os.wait()[1] == 0' "$@"
	spins=$(( $(counter spins) - spins_before ))
	answered=$(( $(counter spins_answered) - answered_before ))
	echo "$*${as:+ as $as}: $spins spins, $answered answered"
}

start --policy dcs --spin-us 1000
pass 1000 0 1
(( answered > 1000 )) || fail "of 2000 waits for a peer that runs, $answered had their message while they spun"

pass 1000 3 1
(( spins < 100 )) || fail "a task spun $spins times for a peer that is slow"

pass 2000 0 0
(( spins < 100 )) || fail "two tasks on one CPU spun $spins times for each other"

# The counters are of the whole machine, and there are others: 20 of 400 waits at most.
as='chrt --fifo 1'
pass 200 0 1
(( spins < 20 )) || fail "a real-time task spun"
as=''

# A thread that sends over the socket that another thread reads, and holds meanwhile, is not kept from it: the
# median of 21 first sends while the reader may spin for 10 ms.
scx_cosched policy set --spin-us 10000
median=$(taskset -c 0,1 python3 -IS -c '
import os, socket, statistics, threading, time
times = []
with socket.create_server(("127.0.0.1", 0)) as server:
    for _ in range(21):
        here = socket.create_connection(server.getsockname())
        there = server.accept()[0]
        reader = threading.Thread(target=here.recv, args=(1,))
        reader.start()
        time.sleep(0.004)
        begin = time.monotonic()
        here.send(b"?")
        times.append(time.monotonic() - begin)
        there.send(b"!")
        reader.join()
print(round(statistics.median(times) * 1e6))')
echo "a send on a socket whose reader spins takes $median us"
(( median < 4000 )) || fail "a send had to wait for a reader that spins"

# A task that gets a signal while it spins sees to it at once. Each time it is a new process, since a task that has spun
# in vain does not spin the next time.
for _ in 1 2 3; do
	late=$(taskset -c 0 python3 -IS -c '
import signal, socket, time
class Alarm(Exception):
    pass
def alarm(*_):
    raise Alarm
signal.signal(signal.SIGALRM, alarm)
with socket.create_server(("127.0.0.1", 0)) as server:
    here = socket.create_connection(server.getsockname())
    there = server.accept()[0]
begin = time.monotonic()
signal.setitimer(signal.ITIMER_REAL, 0.002)
try:
    here.recv(1)
except Alarm:
    print(round((time.monotonic() - begin - 0.002) * 1e6))')
	echo "a signal to a task that spins is $late us late"
	(( late < 4000 )) || fail "a signal had to wait for the spin"
done

# A spin that goes on while other messages come for the task has an end: 4 * (2 * 100 + 2 * 50 + 200) us here. The next
# waits sleep at once.
scx_cosched policy set --wait spin --spin conditional --latency-us 100 --overhead-us 50 --switch-us 200
used=$(python3 -IS -c '
import os, socket, time
os.sched_setaffinity(0, {1})
other = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
other.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
other.bind(("127.0.0.1", 0))
with socket.create_server(("127.0.0.1", 0)) as server:
    here = socket.create_connection(server.getsockname())
    there = server.accept()[0]
accomplice = os.fork()
if not accomplice:
    os.sched_setaffinity(0, {0})
    sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sender.connect(other.getsockname())
    other.close()
    while True:
        sender.send(b"?")
time.sleep(0.05)
here.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, bytes(8) + (100_000).to_bytes(8, "little"))
begin = time.thread_time()
try:
    here.recv(1)
except BlockingIOError:
    print(round((time.thread_time() - begin) * 1e6))
os.kill(accomplice, 9)')
echo "fed by an accomplice, a wait of 100 ms uses $used us"
(( used > 500 )) || fail "it has not spun, so this proves nothing"
(( used < 4000 )) || fail "an accomplice has a task spin without an end"

scx_cosched policy set --wait busy
pass 200 0 1
(( spins < 20 )) || fail "under the wait rule busy a task spun"

# Messages are no demand here, but a wait is a wait.
scx_cosched policy set local --wait spin --spin-us 1000
pass 1000 0 1
(( answered > 1000 )) || fail "under local, of 2000 waits $answered had their message while they spun"
stop
