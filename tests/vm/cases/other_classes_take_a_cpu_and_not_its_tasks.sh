#!/bin/bash
# A real-time task that takes a CPU takes no more than that, and it takes that from nobody's share. The task that ran
# there goes to a CPU that idles, or to one that is busy if none does. A kernel thread that ran there last runs where it
# is woken. A task that the real-time one wakes runs nearly as soon as under EEVDF, ahead of the busy task that was
# interrupted.
# Needs Linux 7.3: in 6.18 tasks that wait for a real-time one which never sleeps have nothing at all, this shell too
. "$(dirname -- "$0")/../case.sh"

# late: how late, us, a task on CPU 0 runs whom a real-time task there wakes each 10 ms, beside a busy one: the median
late() {
	taskset -c 0 python3 -IS - <<'END'
import os, statistics, time

read, write = os.pipe()
if os.fork() == 0:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
    for _ in range(200):
        time.sleep(0.01)
        os.write(write, time.monotonic_ns().to_bytes(8, "little"))
    os._exit(0)
late = []
for _ in range(200):
    woken = int.from_bytes(os.read(read, 8), "little")
    late.append(time.monotonic_ns() - woken)
print(round(statistics.median(late) / 1000))
END
}

hog taskset -c 0
theirs=$(late)
start
ours=$(late)
echo "a task that a real-time one wakes is late by $ours us, and by $theirs us under EEVDF"
(( ours <= 2 * theirs )) || fail "a task that a real-time one wakes is $ours us late, and $theirs us under EEVDF"
drop

# What a task has had of a CPU as a real-time one is not what its children owe, which are none.
hog taskset -c 0
latest=$(taskset -c 0 python3 -IS - <<'END'
import os, time

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

compute(0.02)
os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(50))
compute(0.05)
read, write = os.pipe()
latest = 0
for _ in range(5):
    began = time.monotonic_ns()
    if os.fork() == 0:
        os.write(write, time.monotonic_ns().to_bytes(8, "little"))
        os._exit(0)
    latest = max(latest, int.from_bytes(os.read(read, 8), "little") - began)
    os.wait()
print(round(latest / 1e6))
END
)
echo "of five children of a real-time task the last to run did so after $latest ms"
(( latest <= 50 )) || fail "a child of a real-time task waits for $latest ms beside one busy task"
drop

# A real-time task has half of CPU 0. Two jobs share the rest, and each has had its fair share.
in_group half taskset -c 0 python3 -IS - <<'END' &
import os, time

os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(50))
while True:
    end = time.thread_time() + 0.005
    while time.thread_time() < end:
        pass
    time.sleep(0.005)
END
for job in one other; do hog in_group $job taskset -c 0; done
sleep 4
scx_cosched status --json | jq -r '.jobs[] | select(.job == "/one" or .job == "/other") | "\(.job) \(.fairness_ratio)"' \
	>"$tmp/fairness"
cat "$tmp/fairness"
awk '$2 < 0.95 || $2 > 1.05 { off = 1 } END { exit off || NR != 2 }' "$tmp/fairness" ||
	fail "what a real-time task takes counts as the share of others"
end_groups half one other

# CPU 1 has another task, which ends once the real-time one has taken CPU 0.
hog taskset -c 0
let_go "${hogs[0]}"
hog taskset -c 1
hog chrt --fifo 50 taskset -c 0
sleep 0.5
kill "${hogs[1]}"
hogs=("${hogs[0]}" "${hogs[2]}")
sleep 0.5
used=$(usage 2 "${hogs[0]}")
echo "a task that may run on both CPUs, of which a real-time one has the first: $used us of 2 s"
(( used > 1500000 )) || fail "a task waits for a real-time one, and CPU 1 idles: it had $used us of 2 s"
drop

# The other CPU is busy too.
hog taskset -c 0
let_go "${hogs[0]}"
hog taskset -c 1
hog chrt --fifo 50 taskset -c 0
sleep 0.5
used=$(usage 2 "${hogs[0]}")
echo "the same while CPU 1 has another task: $used us of 2 s"
(( used > 700000 )) || fail "a task waits for a real-time one, and CPU 1 has one other: it had $used us of 2 s"

# What is written to a terminal a kernel thread brings to the other end. If it is preempted just where the real-time
# task leaves others a moment, it waits until the other CPU looks for work, each 50 to 150 ms.
longest=$(taskset -c 1 chrt --fifo 60 python3 -IS - <<'END'
import os, pty, time, tty

ends = pty.openpty()
for end in ends:
    tty.setraw(end)
longest = 0
for _ in range(200):
    time.sleep(0.01)
    began = time.monotonic_ns()
    os.write(ends[0], b"x")
    os.read(ends[1], 1)
    longest = max(longest, time.monotonic_ns() - began)
print(round(longest / 1000))
END
)
echo "of 200 bytes the last to arrive took $longest us"
(( longest <= 200000 )) || fail "a kernel thread waits for a real-time task: a byte took $longest us"
drop
runs
unwarned
stop
